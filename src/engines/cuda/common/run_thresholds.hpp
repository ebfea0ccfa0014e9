/// P(up | blanket) of the variables of one colour, and which of them have the same.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "engines/cpu/bits/bit_tables.hpp"
#include "base/thread_pool.hpp"

namespace poise::cuda {

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

}  // namespace poise::cuda
