/// A run of variables of one colour, on the device, for words of 32 variables: which neighbours stand side by side, and
/// the digits of probabilities.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <thread>
#include <vector>

#include <poise/lanes/bit_tables.hpp>
#include <poise/thread_pool.hpp>

#include "bit_runs.hpp"
#include "call.hpp"
#include "chain_kernels.hpp"

namespace poise::cuda {

/// Where positions are: runs begin with words of their own, and the variable that is always 0 has two words behind
/// them.
class ChainPlaces {
 public:
  explicit ChainPlaces(const BitTables& tables) : place_(tables.variables() + std::size_t{1}) {
    for (const BitTables::Run& run : tables.runs()) {
      for (std::size_t k = 0; k < run.count; ++k) place_[run.first + k] = static_cast<std::uint32_t>(32 * words_ + k);
      words_ += (run.count + 31) / 32;
    }
    place_.back() = static_cast<std::uint32_t>(32 * words_);
    words_ += 2;
  }

  [[nodiscard]] std::size_t words() const { return words_; }
  [[nodiscard]] std::uint32_t of(std::size_t position) const { return place_[position]; }
  [[nodiscard]] std::uint32_t zero() const { return place_.back(); }

 private:
  std::vector<std::uint32_t> place_;
  std::size_t words_ = 0;
};

class ChainRun {
 public:
  ChainRun(const BitTables& tables, const BitTables::Run& run, const ChainPlaces& places)
      : count_(static_cast<std::uint32_t>(run.count)), size_(run.size), first_(places.of(run.first) / 32) {
    std::vector<std::uint32_t> sorted(run.count * run.size);
    for (std::size_t k = 0; k < run.count; ++k) {
      for (unsigned j = 0; j < run.size; ++j) sorted[j * run.count + k] = places.of(run.blanket[k * run.size + j]);
    }
    variable_ = Array<std::uint32_t>(std::span<const std::uint32_t>(run.variable).first(run.count));
    blanket_ = Array<std::uint32_t>(sorted);
    together_ = Array<std::uint32_t>(side_by_side(sorted, places.zero()));
    if (size_ == 4) make_tables<4>(tables, run);
    if (size_ == 5) make_tables<5>(tables, run);
    if (size_ == 6) make_tables<6>(tables, run);
  }

  [[nodiscard]] ChainRunView view() const {
    return {count_,           words(),         first_,           size_,         stride_,       tables_,
            variable_.data(), blanket_.data(), together_.data(), table_.data(), alike_.data(), nibbles_.data(),
            digits_.data()};
  }

 private:
  static constexpr std::size_t kBlock = std::size_t{1} << 16;  // variables at a time
  static constexpr std::size_t kFewTables = 4096;

  [[nodiscard]] std::uint32_t words() const { return (count_ + 31) / 32; }
  /// Variables of a word.
  [[nodiscard]] std::uint32_t in_word(std::uint32_t word) const { return std::min(32U, count_ - 32 * word); }

  [[nodiscard]] std::vector<std::uint32_t> side_by_side(const std::vector<std::uint32_t>& sorted,
                                                        std::uint32_t zero) const {
    std::vector<std::uint32_t> out;
    for (unsigned j = 0; j < size_; ++j) {
      for (std::uint32_t word = 0; word < words(); ++word) {
        const std::uint32_t* const own = sorted.data() + std::size_t{j} * count_ + std::size_t{32} * word;
        bool together = true, none = true;
        for (std::uint32_t k = 0; k < in_word(word); ++k) {
          together = together && own[k] == own[0] + k;
          none = none && own[k] == zero;  // and so are those behind it
        }
        out.push_back(together || none ? own[0] : kApart);
      }
    }
    return out;
  }

  /// Variables that are alike share a table, where few tables are different: on a lattice without fields.
  template <unsigned size>
  void make_tables(const BitTables& tables, const BitTables::Run& run) {
    std::map<Thresholds<size>, std::uint32_t> numbers;
    std::vector<std::uint32_t> own;
    std::vector<Thresholds<size>> different;
    for_blocks<size>(tables, run, [&](const std::vector<Thresholds<size>>& block, std::size_t) {
      for (const Thresholds<size>& thresholds : block) {
        const auto [found, is_new] = numbers.try_emplace(thresholds, static_cast<std::uint32_t>(different.size()));
        if (is_new) different.push_back(thresholds);
        own.push_back(found->second);
        if (different.size() > kFewTables) return false;
      }
      return true;
    });
    constexpr std::size_t kWords = (std::size_t{1} << size) / 8;
    const bool share = own.size() == count_;
    tables_ = share ? static_cast<std::uint32_t>(different.size()) : count_;
    nibbles_ = Array<std::uint32_t>(std::size_t{tables_} * kDigitGroups * kWords);
    if (share) {
      upload<size>(different, 0);
      upload_digits<size>(different);
      table_ = Array<std::uint32_t>(own);
    } else {
      for_blocks<size>(tables, run, [&](const std::vector<Thresholds<size>>& block, std::size_t first) {
        upload<size>(block, first);
        return true;
      });
    }
    alike_ = Array<std::uint32_t>(find_alike(run, share ? own : std::vector<std::uint32_t>()));
  }

  /// Calls use(thresholds of some variables, number of the first one) until it says that this is enough.
  template <unsigned size, class Use>
  void for_blocks(const BitTables& tables, const BitTables::Run& run, Use&& use) {
    ThreadPool pool(std::max(1U, std::thread::hardware_concurrency()));
    std::vector<Thresholds<size>> block;
    for (std::size_t first = 0; first < count_; first += kBlock) {
      block.resize(std::min(kBlock, count_ - first));
      pool.for_each(block.size(), [&](std::size_t k) { tables.thresholds(run.variable[first + k], block[k]); });
      if (!use(block, first)) return;
    }
  }

  template <unsigned size>
  void upload(const std::vector<Thresholds<size>>& block, std::size_t first) {
    constexpr std::size_t kConfigurations = std::size_t{1} << size, kWords = kConfigurations / 8;
    std::vector<std::uint32_t> row(block.size() * kWords);
    for (unsigned group = 0; group < kDigitGroups; ++group) {
      std::fill(row.begin(), row.end(), 0U);
      for (std::size_t k = 0; k < block.size(); ++k) {
        for (std::size_t c = 0; c < kConfigurations; ++c) {
          const auto digits = static_cast<std::uint32_t>(block[k][c] >> (60 - 4 * group) & 15);
          row[k * kWords + c / 8] |= digits << 4 * (c % 8);
        }
      }
      nibbles_.upload(row, (std::size_t{group} * tables_ + first) * kWords);
    }
  }

  /// The first group is all that is compared for many variables together.
  template <unsigned size>
  void upload_digits(const std::vector<Thresholds<size>>& different) {
    std::vector<Digits<size>> firsts;
    for (const Thresholds<size>& thresholds : different) {
      std::array<Digits<size>, kDigitGroups> digits{};
      digits_of<size>(thresholds, digits);
      firsts.push_back(digits[0]);
    }
    const auto bytes = std::as_bytes(std::span(firsts));
    digits_ = Array<std::byte>(bytes);
  }

  [[nodiscard]] std::vector<std::uint32_t> find_alike(const BitTables::Run& run,
                                                      const std::vector<std::uint32_t>& table) {
    std::vector<std::uint32_t> out(words(), kApart);
    if (table.empty() || count_ < 2) return out;
    stride_ = run.variable[1] - run.variable[0];
    for (std::uint32_t word = 0; word < words(); ++word) {
      bool alike = true;
      for (std::uint32_t k = 32 * word + 1; k < 32 * word + in_word(word); ++k) {
        alike = alike && table[k] == table[32 * word] && run.variable[k] - run.variable[k - 1] == stride_;
      }
      if (alike) out[word] = table[32 * word];
    }
    return out;
  }

  std::uint32_t count_;
  unsigned size_;
  std::uint32_t first_;
  std::uint32_t stride_ = 1;
  std::uint32_t tables_ = 0;
  Array<std::uint32_t> variable_, blanket_, together_, table_, alike_, nibbles_;
  Array<std::byte> digits_;
};

}  // namespace poise::cuda
