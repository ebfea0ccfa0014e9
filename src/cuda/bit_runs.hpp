/// A run of variables of one colour, on the device: blankets, and the digits of their probabilities.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <poise/lanes/bit_tables.hpp>
#include <poise/lanes/keyed_words.hpp>
#include <poise/thread_pool.hpp>

#include "bit_kernels.hpp"
#include "call.hpp"

namespace poise::cuda {

static_assert(kRandomDigits == kKeyDigits && kWordChains == 2 * kKeyChains);

/// P(up | configuration) of one variable, by configuration.
template <unsigned size>
using Thresholds = std::array<std::uint64_t, std::size_t{1} << size>;

template <unsigned size>
void digits_of(const Thresholds<size>& thresholds, std::span<Digits<size>, kDigitGroups> out) {
  using Digit = typename DigitOf<size>::type;
  for (unsigned first = 0; first < 64; first += 8) {
    const std::array<Digit, 8> eight = eight_digits<Digit>(thresholds, first);
    for (unsigned k = 0; k < 8; ++k) out[(first + k) / kKeyDigits].digit[(first + k) % kKeyDigits] = eight[k];
  }
}

/// Digits of the probabilities of a run's variables. Variables that are alike share a table, where few tables are
/// different: on a lattice without fields.
template <unsigned size>
struct DigitTables {
  Array<std::uint32_t> of_variable;
  Array<Digits<size>> digits;  // [group of digits][table]
  std::uint32_t count = 0;

  DigitTables(const BitTables& tables, const BitTables::Run& run) {
    if (share(tables, run)) return;
    count = static_cast<std::uint32_t>(run.count);
    std::vector<std::uint32_t> own(run.count);
    std::iota(own.begin(), own.end(), 0U);
    of_variable = Array<std::uint32_t>(own);
    digits = Array<Digits<size>>(std::size_t{count} * kDigitGroups);
    std::vector<Thresholds<size>> block;
    for (std::uint32_t first = 0; first < count; first += kBlock) {
      block.resize(std::min(kBlock, count - first));
      pool_.for_each(block.size(), [&](std::size_t k) { tables.thresholds(run.variable[first + k], block[k]); });
      upload(block, first);
    }
  }

 private:
  static constexpr std::uint32_t kBlock = 1U << 16;  // tables at a time
  static constexpr std::size_t kFewTables = 4096;

  /// Where there are too many different ones it gives up, soon.
  bool share(const BitTables& tables, const BitTables::Run& run) {
    std::map<Thresholds<size>, std::uint32_t> numbers;
    std::vector<std::uint32_t> own;
    std::vector<Thresholds<size>> different, block;
    for (std::size_t first = 0; first < run.count; first += kBlock) {
      block.resize(std::min<std::size_t>(kBlock, run.count - first));
      pool_.for_each(block.size(), [&](std::size_t k) { tables.thresholds(run.variable[first + k], block[k]); });
      for (const Thresholds<size>& thresholds : block) {
        const auto [found, is_new] = numbers.try_emplace(thresholds, static_cast<std::uint32_t>(different.size()));
        if (is_new) different.push_back(thresholds);
        own.push_back(found->second);
        if (different.size() > kFewTables) return false;
      }
    }
    count = static_cast<std::uint32_t>(different.size());
    of_variable = Array<std::uint32_t>(own);
    digits = Array<Digits<size>>(std::size_t{count} * kDigitGroups);
    upload(different, 0);
    return true;
  }

  void upload(const std::vector<Thresholds<size>>& block, std::uint32_t first) {
    std::vector<Digits<size>> made(block.size() * kDigitGroups);  // [table][group]
    pool_.for_each(block.size(), [&](std::size_t k) {
      digits_of<size>(block[k], std::span<Digits<size>, kDigitGroups>(&made[k * kDigitGroups], kDigitGroups));
    });
    std::vector<Digits<size>> row(block.size());
    for (std::size_t group = 0; group < kDigitGroups; ++group) {
      for (std::size_t k = 0; k < block.size(); ++k) row[k] = made[k * kDigitGroups + group];
      digits.upload(row, group * count + first);
    }
  }

  ThreadPool pool_{std::max(1U, std::thread::hardware_concurrency())};
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
    if (size == 4) take(DigitTables<4>(all, run), digits4);
    if (size == 5) take(DigitTables<5>(all, run), digits5);
    if (size == 6) take(DigitTables<6>(all, run), digits6);
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
