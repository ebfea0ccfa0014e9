/// A run of variables of one colour, on the device: blankets, and the digits of their probabilities.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/thread_pool.hpp"
#include "engines/common/keyed_words.hpp"
#include "engines/cpu/bits/bit_tables.hpp"
#include "engines/cuda/bits/bit_kernels.hpp"
#include "engines/cuda/common/call.hpp"

namespace poise::cuda {

// P(up | blanket) of the variables of one colour, and which variables have the same.

/// P(up | configuration) of one variable, by configuration, in units of 2^-64.
template <unsigned size>
using Thresholds = std::array<std::uint64_t, std::size_t{1} << size>;

/// Variables that are alike share a table, where few tables are different: on a lattice without fields.
template <unsigned size>
struct SharedTables {
  std::vector<std::uint32_t> of_variable;
  std::vector<Thresholds<size>> tables;
};

template <unsigned size>
class RunThresholds {
 public:
  RunThresholds(const BitTables& tables, const BitTables::Run& run)
      : tables_(tables), run_(run), pool_(std::max(1U, std::thread::hardware_concurrency())) {}

  [[nodiscard]] std::size_t count() const { return run_.count; }

  /// Calls use(thresholds of some variables, number of the first one) until it says that this is enough.
  template <class Use>
  void for_each_block(Use&& use) {
    std::vector<Thresholds<size>> block;
    for (std::size_t first = 0; first < run_.count; first += kBlock) {
      block.resize(std::min(kBlock, run_.count - first));
      for_each_chunk(block.size(), [&](std::size_t begin, std::size_t end) {
        for (std::size_t k = begin; k < end; ++k) tables_.thresholds(run_.variable[first + k], block[k]);
      });
      if (!use(block, first)) return;
    }
  }

  /// Calls use(first, last) for chunks of so many variables that threads do not write side by side.
  template <class Use>
  void for_each_chunk(std::size_t count, Use&& use) {
    constexpr std::size_t kChunk = 512;
    pool_.for_each((count + kChunk - 1) / kChunk,
                   [&](std::size_t chunk) { use(chunk * kChunk, std::min(count, (chunk + 1) * kChunk)); });
  }

  /// None where there are too many different ones, which it finds out soon.
  std::optional<SharedTables<size>> find_shared() {
    SharedTables<size> out;
    std::map<Thresholds<size>, std::uint32_t> numbers;
    std::uint32_t last = 0;
    for_each_block([&](const std::vector<Thresholds<size>>& block, std::size_t) {
      for (const Thresholds<size>& thresholds : block) {
        if (out.tables.empty() || thresholds != out.tables[last]) {
          const auto [found, is_new] = numbers.try_emplace(thresholds, static_cast<std::uint32_t>(out.tables.size()));
          if (is_new) out.tables.push_back(thresholds);
          last = found->second;
        }
        out.of_variable.push_back(last);
        if (out.tables.size() > kFew) return false;
      }
      return true;
    });
    if (out.of_variable.size() < run_.count) return {};
    return out;
  }

 private:
  static constexpr std::size_t kBlock = std::size_t{1} << 16;  // variables at a time
  static constexpr std::size_t kFew = 4096;

  const BitTables& tables_;
  const BitTables::Run& run_;
  ThreadPool pool_;
};

static_assert(kRandomDigits == kKeyDigits && kWordChains == 2 * kKeyChains);

template <unsigned size>
void digits_of(const Thresholds<size>& thresholds, std::span<Digits<size>, kDigitGroups> out) {
  using Digit = typename DigitOf<size>::type;
  for (unsigned first = 0; first < 64; first += 8) {
    const std::array<Digit, 8> eight = eight_digits<Digit>(thresholds, first);
    for (unsigned k = 0; k < 8; ++k) out[(first + k) / kKeyDigits].digit[(first + k) % kKeyDigits] = eight[k];
  }
}

/// Digits of the probabilities of a run's variables.
template <unsigned size>
struct DigitTables {
  Array<std::uint32_t> of_variable;
  Array<Digits<size>> digits;  // [group of digits][table]
  std::uint32_t count = 0;

  explicit DigitTables(RunThresholds<size>&& run) {
    const std::optional<SharedTables<size>> shared = run.find_shared();
    std::vector<std::uint32_t> own(run.count());
    std::iota(own.begin(), own.end(), 0U);
    of_variable = Array<std::uint32_t>(shared ? shared->of_variable : own);
    count = static_cast<std::uint32_t>(shared ? shared->tables.size() : run.count());
    digits = Array<Digits<size>>(std::size_t{count} * kDigitGroups);
    const auto upload = [&](const std::vector<Thresholds<size>>& block, std::size_t first) {
      std::vector<Digits<size>> made(block.size() * kDigitGroups);  // [group][table]
      run.for_each_chunk(block.size(), [&](std::size_t begin, std::size_t end) {
        std::vector<std::array<Digits<size>, kDigitGroups>> some(end - begin);
        for (std::size_t k = begin; k < end; ++k) digits_of<size>(block[k], some[k - begin]);
        for (std::size_t group = 0; group < kDigitGroups; ++group) {
          for (std::size_t k = begin; k < end; ++k) made[group * block.size() + k] = some[k - begin][group];
        }
      });
      for (std::size_t group = 0; group < kDigitGroups; ++group) {
        digits.upload(std::span(made).subspan(group * block.size(), block.size()), group * count + first);
      }
      return true;
    };
    if (shared) {
      upload(shared->tables, 0);
    } else {
      run.for_each_block(upload);
    }
  }
};

struct RunOnDevice {
  unsigned size = 4;
  std::uint32_t count = 0;
  std::uint32_t first = 0;
  std::uint32_t tables = 0;
  Array<std::uint32_t> variable;
  Array<std::uint32_t> blanket;
  Array<std::uint32_t> table;
  Array<Digits<4>> digits4;
  Array<Digits<5>> digits5;
  Array<Digits<6>> digits6;

  RunOnDevice(const BitTables& all, const BitTables::Run& run)
      : size(run.size), count(static_cast<std::uint32_t>(run.count)), first(run.first) {
    variable = Array<std::uint32_t>(std::span<const std::uint32_t>(run.variable).first(run.count));
    std::vector<std::uint32_t> sorted(run.count * run.size);
    for (std::size_t k = 0; k < run.count; ++k) {
      for (unsigned j = 0; j < run.size; ++j) sorted[j * run.count + k] = run.blanket[k * run.size + j];
    }
    blanket = Array<std::uint32_t>(sorted);
    if (size == 4) take(DigitTables<4>({all, run}), digits4);
    if (size == 5) take(DigitTables<5>({all, run}), digits5);
    if (size == 6) take(DigitTables<6>({all, run}), digits6);
  }

  template <unsigned s>
  void take(DigitTables<s>&& made, Array<Digits<s>>& digits) {
    tables = made.count;
    table = std::move(made.of_variable);
    digits = std::move(made.digits);
  }

  [[nodiscard]] RunView view() const {
    const void* digits = size == 4   ? static_cast<const void*>(digits4.data())
                         : size == 5 ? static_cast<const void*>(digits5.data())
                                     : static_cast<const void*>(digits6.data());
    return {variable.data(), blanket.data(), table.data(), digits, tables, count, first, size};
  }
};

}  // namespace poise::cuda
