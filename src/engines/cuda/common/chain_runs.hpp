/// A run of variables of one colour, on the device, for words of 32 variables: which neighbours stand side by side, and
/// the digits of probabilities.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engines/cpu/bits/bit_tables.hpp"

#include "engines/cuda/bits/bit_runs.hpp"
#include "engines/cuda/common/call.hpp"
#include "engines/cuda/common/chain_kernels.hpp"
#include "engines/cuda/common/run_thresholds.hpp"

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
    if (size_ == 4) make_tables<4>({tables, run}, run);
    if (size_ == 5) make_tables<5>({tables, run}, run);
    if (size_ == 6) make_tables<6>({tables, run}, run);
  }

  [[nodiscard]] ChainRunView view() const {
    return {count_,           words(),         first_,           size_,         stride_,       tables_,
            variable_.data(), blanket_.data(), together_.data(), table_.data(), alike_.data(), nibbles_.data(),
            digits_.data()};
  }

 private:
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

  template <unsigned size>
  void make_tables(RunThresholds<size>&& thresholds, const BitTables::Run& run) {
    constexpr std::size_t kWords = (std::size_t{1} << size) / 8;
    const std::optional<SharedTables<size>> shared = thresholds.find_shared();
    tables_ = shared ? static_cast<std::uint32_t>(shared->tables.size()) : count_;
    nibbles_ = Array<std::uint32_t>(std::size_t{tables_} * kDigitGroups * kWords);
    const auto upload = [&](const std::vector<Thresholds<size>>& block, std::size_t first) {
      std::vector<std::uint32_t> made(block.size() * kDigitGroups * kWords, 0);  // [group][table][word]
      thresholds.for_each_chunk(block.size(), [&](std::size_t begin, std::size_t end) {
        for (std::size_t group = 0; group < kDigitGroups; ++group) {
          std::uint32_t* to = made.data() + (group * block.size() + begin) * kWords;
          for (std::size_t k = begin; k < end; ++k) {
            for (std::size_t c = 0; c < block[k].size(); c += 8) {
              std::uint32_t eight = 0;
              for (std::size_t j = 0; j < 8; ++j) {
                eight |= static_cast<std::uint32_t>(block[k][c + j] >> (60 - 4 * group) & 15) << 4 * j;
              }
              *to++ = eight;
            }
          }
        }
      });
      const std::size_t row = block.size() * kWords;
      for (std::size_t group = 0; group < kDigitGroups; ++group) {
        nibbles_.upload(std::span(made).subspan(group * row, row), (group * tables_ + first) * kWords);
      }
      return true;
    };
    alike_ = Array<std::uint32_t>(std::vector<std::uint32_t>(words(), kApart));
    if (!shared) {
      thresholds.for_each_block(upload);
      return;
    }
    upload(shared->tables, 0);
    upload_digits<size>(shared->tables);
    table_ = Array<std::uint32_t>(shared->of_variable);
    alike_.upload(find_alike(run, shared->of_variable));
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
    if (count_ < 2) return out;
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
