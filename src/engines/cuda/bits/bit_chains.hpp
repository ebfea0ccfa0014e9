/// Few chains of Gibbs on two-valued variables on a GPU, in words of 32 variables of one chain.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engines/common/keyed_words.hpp"
#include "engines/cuda/bits/bit_runs.hpp"
#include "engines/cuda/bits/bit_states.hpp"
#include "engines/cuda/bits/chain_kernels.hpp"

namespace poise {

namespace cuda {

// A run of variables of one colour in words of 32 variables: which neighbours stand side by side, and the digits of
// probabilities.

/// Where positions are: runs begin with words of their own, and the variable that is always 0 has two words behind
/// them.
class ChainOffsets {
 public:
  explicit ChainOffsets(const BitTables& tables) : offset_(tables.variables() + std::size_t{1}) {
    for (const BitTables::Run& run : tables.runs()) {
      for (std::size_t k = 0; k < run.count; ++k) offset_[run.first + k] = static_cast<std::uint32_t>(32 * words_ + k);
      words_ += (run.count + 31) / 32;
    }
    offset_.back() = static_cast<std::uint32_t>(32 * words_);
    words_ += 2;
  }

  [[nodiscard]] std::size_t words() const { return words_; }
  [[nodiscard]] std::uint32_t of(std::size_t position) const { return offset_[position]; }
  [[nodiscard]] std::uint32_t zero() const { return offset_.back(); }

 private:
  std::vector<std::uint32_t> offset_;
  std::size_t words_ = 0;
};

class ChainRun {
 public:
  ChainRun(const BitTables& tables, const BitTables::Run& run, const ChainOffsets& offsets)
      : count_(static_cast<std::uint32_t>(run.count)), size_(run.size), first_(offsets.of(run.first) / 32) {
    const std::vector<std::uint32_t> sorted =
        blankets_of(run, [&](std::uint32_t position) { return offsets.of(position); });
    variable_ = Array<std::uint32_t>(std::span<const std::uint32_t>(run.variable).first(run.count));
    blanket_ = Array<std::uint32_t>(sorted);
    together_ = Array<std::uint32_t>(side_by_side(sorted, offsets.zero()));
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
    nibbles_ =
        thresholds.template make_tables<std::uint32_t>(shared, kWords, [](const Thresholds<size>& all, auto&& to) {
          for (std::size_t group = 0; group < kDigitGroups; ++group) {
            for (std::size_t c = 0; c < all.size(); ++c) {
              to(group)[c / 8] |= static_cast<std::uint32_t>(all[c] >> (60 - 4 * group) & 15) << 4 * (c % 8);
            }
          }
        });
    alike_ = Array<std::uint32_t>(std::vector<std::uint32_t>(words(), kApart));
    if (!shared) return;
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

}  // namespace cuda

class CudaBitChains : public CudaBits<CudaBitChains> {
 public:
  /// Chains up to which this is faster than words of 32 chains.
  static constexpr std::size_t kMost = 5;

  /// As those of CudaBitTile.
  CudaBitChains(const std::shared_ptr<const BitTables>& tables, const std::shared_ptr<const CudaSpinTerms>& terms,
                ChainGroup group, std::uint64_t seed, std::uint64_t first_chain)
      : CudaBits(tables, group),
        offsets_(*tables),
        state_(group.count, offsets_.words()),
        edges_(static_cast<std::uint32_t>(terms->edges.size())),
        weights_(terms->weights),
        reference_(cuda::bits_on_device(terms->reference, offsets_.words(),
                                        [&](Index position) { return offsets_.of(position); })) {
    std::vector<cuda::ChainKey> keys;
    for (std::uint64_t number = first_chain + group.first; number < first_chain + group.first + group.count; ++number) {
      const WordKey key = word_key(seed, Stream::bits, number / kKeyChains);
      keys.push_back({key.first, key.second, static_cast<std::uint32_t>(number % kKeyChains)});
    }
    keys_ = cuda::Array<cuda::ChainKey>(keys);
    for (const BitTables::Run& run : tables->runs()) {
      if (run.count > 0) runs_.emplace_back(*tables, run, offsets_);
    }
    std::vector<std::int64_t> by_offset(terms->fields.empty() ? 0 : 32 * offsets_.words(), 0);
    for (std::size_t p = 0; p < terms->fields.size(); ++p) by_offset[offsets_.of(p)] = terms->fields[p];
    fields_ = cuda::Array<std::int64_t>(by_offset);
    std::vector<std::uint32_t> ends;
    for (const auto& edge : terms->edges) {
      for (const std::uint32_t end : edge) ends.push_back(offsets_.of(end));
    }
    ends_ = cuda::Array<std::uint32_t>(ends);
  }

  [[nodiscard]] CudaSpinSums sums() const {
    state_.to_device(false);
    const auto out = cuda::zeros<std::int64_t>(kSums * group_.count);
    launch_sums(out.data());
    sums_here_ = out.download();
    return fetched(0);
  }
  void sweep_and_sum(std::uint64_t sweeps, std::size_t draws, const UseSpinSums& use) {
    const std::size_t width = kSums * group_.count;
    const auto out = cuda::zeros<std::int64_t>(draws * width);
    for (std::size_t draw = 0; draw < draws; ++draw) {
      start_sweeps(sweeps);
      launch_sums(out.data() + draw * width);
    }
    sums_here_ = out.download();
    for (std::size_t draw = 0; draw < draws; ++draw) use(draw, fetched(draw));
  }
  void get_all_levels(std::span<Value> levels) const {
    const std::size_t variables = tables_->variables();
    for (std::size_t k = 0; k < group_.count; ++k) {
      get_levels(group_.first + k, levels.subspan(k * variables, variables));
    }
  }

 private:
  friend CudaBits<CudaBitChains>;

  // For CudaBits. Bits of the counts are those of the states.
  void start_sweeps(std::uint64_t sweeps) {
    state_.to_device(true);
    cuda::BitCounts* const counts = counts_if_any();
    progress_.start(sweeps_, sweeps, counts, nullptr, [&](std::uint32_t ahead, cudaStream_t stream) {
      const cuda::ChainSweepView view{state_.on_device(),    words(), chains(), keys_.data(), tables_->variables(),
                                      progress_.on_device(), ahead};
      for (const cuda::ChainRun& run : runs_) cuda::launch_chain_sweep(run.view(), view, stream);
      if (counts == nullptr) return;
      cuda::launch_count(counts->view(), state_.on_device(), progress_.on_device(), ahead, stream);
    });
    sweeps_ += sweeps;
  }
  [[nodiscard]] std::size_t offset(Index variable) const { return offsets_.of(tables_->position(variable)); }
  [[nodiscard]] std::span<const std::uint32_t> row(std::size_t number) const { return state_.row(number); }
  [[nodiscard]] std::span<std::uint32_t> row_to_change(std::size_t number) const {
    return state_.row_to_change(number);
  }
  [[nodiscard]] std::size_t counted_words() const { return group_.count * offsets_.words(); }
  [[nodiscard]] CountedBits counted_bits(std::size_t number) const {
    return {number * 32 * offsets_.words(), 1, 32 * offsets_.words()};
  }

  [[nodiscard]] std::uint32_t words() const { return static_cast<std::uint32_t>(offsets_.words()); }
  [[nodiscard]] std::uint32_t chains() const { return static_cast<std::uint32_t>(group_.count); }

  static constexpr std::size_t kSums = 4;
  /// Adds the sums of the present states to zeros.
  void launch_sums(std::int64_t* out) const {
    cuda::launch_chain_sums({state_.on_device(), words(), chains(), edges_, fields_.data(), ends_.data(),
                             weights_.data(), reference_.data()},
                            out);
    cuda::check_launch("states were summed");
  }
  [[nodiscard]] CudaSpinSums fetched(std::size_t draw) const {
    const auto part = [&](std::size_t number) {
      return std::span<const std::int64_t>(sums_here_).subspan((draw * kSums + number) * group_.count, group_.count);
    };
    return {part(0), part(1), part(2), part(3)};
  }

  cuda::ChainOffsets offsets_;
  mutable cuda::MirroredWords state_;
  std::uint32_t edges_;
  std::vector<cuda::ChainRun> runs_;
  cuda::Array<cuda::ChainKey> keys_;
  cuda::Array<std::int64_t> fields_;
  cuda::Array<std::uint32_t> ends_;
  cuda::Array<std::int64_t> weights_;
  cuda::Array<std::uint32_t> reference_;
  cuda::SweepProgress progress_;
  mutable std::vector<std::int64_t> sums_here_;
};

}  // namespace poise
