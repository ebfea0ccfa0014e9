/// A run of variables of one colour, on the device: blankets, and the digits of their probabilities.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <thread>
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

  /// Tables of all variables, or those that they share, on the device: [group of digits][table][of_table]. Calls
  /// make(thresholds, to) for each, where to(group) says where its numbers go.
  template <class Number, class Make>
  Array<Number> make_tables(const std::optional<SharedTables<size>>& shared, std::size_t of_table, Make&& make) {
    const std::size_t tables = shared ? shared->tables.size() : run_.count;
    Array<Number> out(tables * kDigitGroups * of_table);
    const auto upload = [&](const std::vector<Thresholds<size>>& block, std::size_t first) {
      const std::size_t row = block.size() * of_table;
      std::vector<Number> made(row * kDigitGroups);
      for_each_chunk(block.size(), [&](std::size_t begin, std::size_t end) {
        for (std::size_t k = begin; k < end; ++k) {
          make(block[k], [&](std::size_t group) { return made.data() + group * row + k * of_table; });
        }
      });
      for (std::size_t group = 0; group < kDigitGroups; ++group) {
        out.upload(std::span(made).subspan(group * row, row), (group * tables + first) * of_table);
      }
      return true;
    };
    if (shared) {
      upload(shared->tables, 0);
    } else {
      for_each_block(upload);
    }
    return out;
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

/// Offsets of neighbours, [neighbour][variable]: offset_of(position) is that of a bit or word.
template <class OffsetOf>
std::vector<std::uint32_t> blankets_of(const BitTables::Run& run, OffsetOf&& offset_of) {
  std::vector<std::uint32_t> sorted(run.count * run.size);
  for (std::size_t k = 0; k < run.count; ++k) {
    for (unsigned j = 0; j < run.size; ++j) sorted[j * run.count + k] = offset_of(run.blanket[k * run.size + j]);
  }
  return sorted;
}

/// The variables of one colour with blankets of one size.
class RunOnDevice {
 public:
  RunOnDevice(const BitTables& tables, const BitTables::Run& run)
      : size_(run.size),
        count_(static_cast<std::uint32_t>(run.count)),
        first_(run.first),
        variable_(std::span<const std::uint32_t>(run.variable).first(run.count)),
        blanket_(blankets_of(run, std::identity())) {
    if (size_ == 4) make_digits<4>({tables, run}, digits4_);
    if (size_ == 5) make_digits<5>({tables, run}, digits5_);
    if (size_ == 6) make_digits<6>({tables, run}, digits6_);
  }

  [[nodiscard]] RunView view() const {
    const void* digits = size_ == 4   ? static_cast<const void*>(digits4_.data())
                         : size_ == 5 ? static_cast<const void*>(digits5_.data())
                                      : static_cast<const void*>(digits6_.data());
    return {variable_.data(), blanket_.data(), table_.data(), digits, tables_, count_, first_, size_};
  }

 private:
  template <unsigned size>
  void make_digits(RunThresholds<size>&& run, Array<Digits<size>>& digits) {
    const std::optional<SharedTables<size>> shared = run.find_shared();
    std::vector<std::uint32_t> own(count_);
    std::iota(own.begin(), own.end(), 0U);
    table_ = Array<std::uint32_t>(shared ? shared->of_variable : own);
    tables_ = static_cast<std::uint32_t>(shared ? shared->tables.size() : count_);
    digits = run.template make_tables<Digits<size>>(shared, 1, [](const Thresholds<size>& thresholds, auto&& to) {
      std::array<Digits<size>, kDigitGroups> made{};
      digits_of<size>(thresholds, made);
      for (std::size_t group = 0; group < kDigitGroups; ++group) *to(group) = made[group];
    });
  }

  unsigned size_;
  std::uint32_t count_;
  std::uint32_t first_;
  std::uint32_t tables_ = 0;
  Array<std::uint32_t> variable_, blanket_, table_;
  Array<Digits<4>> digits4_;
  Array<Digits<5>> digits5_;
  Array<Digits<6>> digits6_;
};

}  // namespace poise::cuda
