/// Gibbs with chains as bits (lanes/bit_block.hpp) as an engine.
///
/// A target says what its conditionals are by a BitModel, and how log p and its statistics follow from sums over a
/// block by a BitObserver.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <poise/lanes/bit_block.hpp>
#include <poise/lanes/bit_sums.hpp>
#include <poise/run/engine.hpp>
#include <poise/run/states.hpp>

namespace poise {

/// Sums that a target's log p and statistics follow from, of the chains of one block.
template <class T>
class BitObserver;

template <Target T>
class BitsEngine final : public Engine {
 public:
  BitsEngine(std::shared_ptr<const T> target, BitModel model, const EngineOptions& options)
      : Engine(traits_of(*target, options)),
        target_(std::move(target)),
        tables_(std::make_shared<const BitTables>(std::move(model))),
        observer_(*target_, *tables_),
        seed_(options.seed),
        first_chain_(options.first_chain),
        reference_(options.reference),
        sorted_reference_(options.reference.size()),
        chains_(options.starts.size()) {
    for (Index i = 0; i < sorted_reference_.size(); ++i) {
      sorted_reference_[tables_->position(i)] = reference_[i] != 0 ? ~std::uint64_t{0} : 0;
    }
    blocks_ = make_blocks(group_bits(traits_.chains, first_chain_, 1));
    for (std::size_t c = 0; c < chains_.size(); ++c) {
      std::function<std::vector<Value>(unsigned)> next;
      if (options.other_start) next = [&](unsigned attempt) { return options.other_start(c, attempt); };
      place(c, options.starts[c], next);
    }
  }

  std::vector<ChainGroup> share_out(unsigned threads) override {
    const std::vector<ChainGroup> groups = group_bits(traits_.chains, first_chain_, threads);
    if (std::equal(blocks_.begin(), blocks_.end(), groups.begin(), groups.end(), has_chains)) return groups;
    const std::vector<BitBlock> before = std::exchange(blocks_, make_blocks(groups));
    std::vector<Value> levels(traits_.variables);
    std::vector<std::uint64_t> counts(counting_ ? traits_.variables : 0);
    for (BitBlock& block : blocks_) {
      block.set_sweeps(before.front().sweeps());
      if (counting_) block.reset_counts();
      for (std::size_t c = block.group().first; c < block.group().first + block.group().count; ++c) {
        const BitBlock& old = block_of(before, c);
        old.get_levels(c, levels);
        block.set_levels(c, levels);
        if (!counting_) continue;
        old.get_counts(c, counts);
        block.set_counts(c, counts);
      }
    }
    return groups;
  }

  void advance(ChainGroup group, std::uint64_t steps) override { block_of(group).sweep(steps, counting_); }

  void observe(ChainGroup group, const Observables& out) const override {
    for (const BitBlock& block : blocks_) {
      const std::size_t first = std::max(group.first, block.group().first);
      const std::size_t last = std::min(group.first + group.count, block.group().first + block.group().count);
      if (first >= last) continue;
      const std::size_t at = first - group.first;
      const bool whole = last - first == block.group().count;
      if (whole) observe_block(block, at, out);
      for (std::size_t c = first; c < last; ++c) observe_chain(block, c, c - group.first, out, whole);
    }
  }

  void restart(std::size_t c, std::span<const Value> levels) override {
    place(c, levels, {});
    if (counting_) start_counts(c);
  }

  void start_marginals(ChainGroup group, bool rao_blackwell) override {
    block_of(group).reset_counts();
    for (std::size_t c = group.first; c < group.first + group.count; ++c) {
      chains_[c].counted_from = block_of(c).sweeps();
      if (rao_blackwell) chains_[c].rao_blackwell = {std::vector<double>(target_->num_moves(), 0.0), 0};
    }
    counting_ = true;
  }

  void visit_marginals(ChainGroup group) override {
    for (std::size_t c = group.first; c < group.first + group.count; ++c) {
      add_conditionals(*target_, state_of(c), chains_[c].log_ratios, chains_[c].rao_blackwell);
    }
  }

  [[nodiscard]] const RaoBlackwell& rao_blackwell(std::size_t c) const override { return chains_[c].rao_blackwell; }

  void save(Saver& out) const override {
    out(static_cast<bool>(counting_), blocks_.front().sweeps());
    for (std::size_t c = 0; c < chains_.size(); ++c) {
      const BitBlock& block = block_of(c);
      std::vector<Value> levels(traits_.variables);
      block.get_levels(c, levels);
      std::vector<std::uint64_t> counts(counting_ ? traits_.variables : 0);
      block.get_counts(c, counts);
      out(levels, counts, chains_[c].counted_from, chains_[c].placed, chains_[c].rao_blackwell);
    }
  }

  void load(Loader& in) override {
    bool counting = false;
    std::uint64_t sweeps = 0;
    in(counting, sweeps);
    counting_ = counting;
    for (BitBlock& block : blocks_) {
      block.set_sweeps(sweeps);
      if (counting) block.reset_counts();
    }
    for (std::size_t c = 0; c < chains_.size(); ++c) {
      std::vector<Value> levels;
      std::vector<std::uint64_t> counts;
      in(levels, counts, chains_[c].counted_from, chains_[c].placed, chains_[c].rao_blackwell);
      block_of(c).set_levels(c, levels);
      if (counting) block_of(c).set_counts(c, counts);
    }
  }

 private:
  /// What is known of a chain beside its bits.
  struct Kept {
    std::uint64_t counted_from = 0;  // sweep at which counting its levels began
    std::uint64_t placed = 0;        // evaluations that finding its start took
    RaoBlackwell rao_blackwell;
    std::vector<double> log_ratios;  // a buffer for it
  };

  static constexpr std::uint64_t kChunkUpdates = std::uint64_t{1} << 20;

  static EngineTraits traits_of(const T& target, const EngineOptions& options) {
    EngineTraits traits;
    traits.chains = options.starts.size();
    traits.variables = target.num_variables();
    traits.entries = target.num_moves();
    if constexpr (requires { target.statistic_names(); }) traits.statistics = target.statistic_names().size();
    traits.chunk = std::max<std::uint64_t>(1, kChunkUpdates / std::max<Index>(1, traits.variables));
    traits.group = 64 * BitBlock::kMostWords;
    return traits;
  }

  [[nodiscard]] std::vector<BitBlock> make_blocks(const std::vector<ChainGroup>& groups) const {
    std::vector<BitBlock> blocks;
    for (const ChainGroup& group : groups) blocks.emplace_back(tables_, group, seed_, first_chain_);
    return blocks;
  }

  static auto& block_of(auto& blocks, std::size_t chain) {
    const auto after = [](std::size_t c, const BitBlock& block) { return c < block.group().first; };
    return *std::prev(std::upper_bound(blocks.begin(), blocks.end(), chain, after));
  }
  [[nodiscard]] const BitBlock& block_of(std::size_t chain) const { return block_of(blocks_, chain); }
  BitBlock& block_of(std::size_t chain) { return block_of(blocks_, chain); }
  static bool has_chains(const BitBlock& block, const ChainGroup& group) {
    return block.group().first == group.first && block.group().count == group.count;
  }
  /// The block that has these chains and no others.
  BitBlock& block_of(const ChainGroup& group) {
    BitBlock& block = block_of(group.first);
    if (has_chains(block, group)) return block;
    throw std::logic_error("chains are handled in the groups that they were shared out in");
  }

  [[nodiscard]] typename T::State state_of(std::size_t c) const {
    std::vector<Value> levels(traits_.variables);
    block_of(c).get_levels(c, levels);
    return target_->make_state(levels);
  }

  void place(std::size_t c, std::span<const Value> levels, const std::function<std::vector<Value>(unsigned)>& other) {
    Evals evals;
    const typename T::State state = make_start(*target_, levels, first_chain_ + c, other, evals);
    chains_[c].placed += evals.target;
    std::vector<Value> found(traits_.variables);
    copy_levels(*target_, state, std::span<Value>(found));
    block_of(c).set_levels(c, found);
  }

  void start_counts(std::size_t c) {
    chains_[c].counted_from = block_of(c).sweeps();
    block_of(c).set_counts(c, std::vector<std::uint64_t>(traits_.variables, 0));
  }

  template <class Span>
  static auto row(Span span, std::size_t k, std::size_t width) {
    return span.subspan(k * width, width);
  }

  /// All chains of a block at once, those of the group from number `at` on.
  void observe_block(const BitBlock& block, std::size_t at, const Observables& out) const {
    const std::size_t count = block.group().count;
    const BitView view{block.state(), block.words(), block.lane_number(block.group().first), count};
    if (!out.log_prob.empty() || !out.statistics.empty()) {
      const auto log_prob = out.log_prob.empty() ? out.log_prob : out.log_prob.subspan(at, count);
      const auto statistics = out.statistics.empty()
                                  ? out.statistics
                                  : out.statistics.subspan(at * traits_.statistics, count * traits_.statistics);
      observer_.observe(*target_, view, log_prob, statistics);
    }
    if (!out.distance.empty()) {
      count_differences(view, sorted_reference_, out.distance.subspan(at, count));
    }
    if (!out.levels.empty()) {
      block.get_all_levels(out.levels.subspan(at * traits_.variables, count * traits_.variables));
    }
  }

  /// What is left of number k of the group, or all of it.
  void observe_chain(const BitBlock& block, std::size_t c, std::size_t k, const Observables& out, bool rest) const {
    const double sweeps = static_cast<double>(block.sweeps());
    if (!out.accepted.empty()) out.accepted[k] = sweeps;
    if (!out.evals.empty()) {
      out.evals[k] = {};
      out.evals[k].ratio = block.sweeps() * traits_.variables;
      out.evals[k].target = chains_[c].placed;
    }
    if (!out.empirical_marginals.empty()) copy_marginals(block, c, row(out.empirical_marginals, k, traits_.entries));
    const bool wants_state =
        !out.log_prob.empty() || !out.statistics.empty() || !out.distance.empty() || !out.levels.empty();
    if ((rest || !wants_state) && out.frozen.empty()) return;
    const typename T::State state = state_of(c);
    if (!out.frozen.empty()) find_frozen(*target_, state, row(out.frozen, k, traits_.variables));
    if (rest) return;
    if (!out.log_prob.empty()) out.log_prob[k] = target_->log_prob(state);
    if (!out.statistics.empty()) target_->statistics(state, row(out.statistics, k, traits_.statistics));
    std::vector<Value> levels(traits_.variables);
    copy_levels(*target_, state, std::span<Value>(levels));
    if (!out.levels.empty()) std::copy(levels.begin(), levels.end(), row(out.levels, k, traits_.variables).begin());
    if (!out.distance.empty()) {
      out.distance[k] = 0;
      for (std::size_t i = 0; i < levels.size(); ++i) out.distance[k] += levels[i] != reference_[i] ? 1 : 0;
    }
  }

  void copy_marginals(const BitBlock& block, std::size_t c, std::span<double> out) const {
    const double sweeps = static_cast<double>(std::max<std::uint64_t>(1, block.sweeps() - chains_[c].counted_from));
    std::vector<std::uint64_t> counts(out.size(), 0);
    if (counting_) block.get_counts(c, counts);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(counts[i]) / sweeps;
  }

  std::shared_ptr<const T> target_;
  std::shared_ptr<const BitTables> tables_;
  BitObserver<T> observer_;
  std::uint64_t seed_;
  std::uint64_t first_chain_;
  std::vector<Value> reference_;
  std::vector<std::uint64_t> sorted_reference_;  // by position, all ones or all zeros
  std::vector<Kept> chains_;
  std::vector<BitBlock> blocks_;
  std::atomic<bool> counting_{false};
};

}  // namespace poise
