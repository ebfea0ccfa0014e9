/// Gibbs with many chains in one block of memory, as bits of words or across lanes, as an engine.
///
/// A layout makes blocks of chains of a target and observes all chains of a block at once: BitLayout
/// (cpu/bits/ising_bits.hpp) and LaneLayout (cpu/lanes/lane_layout.hpp).
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <poise/extend/engines/chain.hpp>
#include <poise/extend/engines/engine.hpp>

namespace poise {

/// After so many sweeps of all chains: what Gibbs proposes is always accepted.
inline void observe_sweeps(std::uint64_t sweeps, const Observables& out) {
  std::fill(out.accepted.begin(), out.accepted.end(), static_cast<double>(sweeps));
}

template <Target T, class Layout>
class BlockEngine final : public Engine {
 public:
  using Block = typename Layout::Block;

  BlockEngine(std::shared_ptr<const T> target, Layout layout, const EngineOptions& options)
      : Engine(traits_of(*target, options)),
        target_(std::move(target)),
        layout_(std::move(layout)),
        seed_(options.seed),
        first_chain_(options.first_chain),
        reference_(options.reference),
        chains_(options.starts.size()) {
    layout_.set_reference(reference_);
    blocks_ = make_blocks(Layout::group(traits_.chains, first_chain_, 1));
    for (std::size_t c = 0; c < chains_.size(); ++c) {
      std::function<std::vector<Value>(unsigned)> next;
      if (options.other_start) next = [&](unsigned attempt) { return options.other_start(c, attempt); };
      place(c, options.starts[c], next);
    }
  }

  std::vector<ChainGroup> share_out(unsigned threads) override {
    std::vector<ChainGroup> groups = Layout::group(traits_.chains, first_chain_, threads);
    if (std::equal(blocks_.begin(), blocks_.end(), groups.begin(), groups.end(), has_chains)) return groups;
    const std::vector<Block> before = std::exchange(blocks_, make_blocks(groups));
    std::vector<Value> levels(traits_.variables);
    for (Block& block : blocks_) {
      block.set_progress(before.front().progress());
      for (std::size_t c = block.group().first; c < block.group().first + block.group().count; ++c) {
        const Block& old = block_of(before, c);
        old.get_levels(c, levels);
        block.set_levels(c, levels);
        if (block.counts()) block.set_totals(c, old.get_totals(c));
      }
    }
    return groups;
  }

  void advance(ChainGroup group, std::uint64_t steps) override { block_of(group).sweep(steps); }

  void observe(ChainGroup group, const Observables& out) const override {
    for (const Block& block : blocks_) {
      const std::size_t first = std::max(group.first, block.group().first);
      const std::size_t last = std::min(group.first + group.count, block.group().first + block.group().count);
      if (first >= last) continue;
      const std::size_t at = first - group.first;
      const bool whole = last - first == block.group().count;
      if (whole) layout_.observe(*target_, block, part_of(out, at, block.group().count));
      for (std::size_t c = first; c < last; ++c) observe_chain(block, c, c - group.first, out, whole);
    }
  }

  void advance_and_observe(ChainGroup group, std::uint64_t steps, std::span<const Observables> draws) override {
    if constexpr (kRecordsManyDraws) {
      const bool plain = draws.front().levels.empty() && draws.front().frozen.empty() &&
                         draws.front().empirical_marginals.empty() && draws.front().evals.empty();
      if (plain) {
        layout_.sweep_and_observe(*target_, block_of(group), steps, draws);
        return;
      }
    }
    Engine::advance_and_observe(group, steps, draws);
  }

  void restart(std::size_t c, std::span<const Value> levels) override {
    place(c, levels, {});
    Block& block = block_of(c);
    if (!block.counts()) return;
    chains_[c].counted_from = block.sweeps();
    auto totals = block.get_totals(c);
    std::fill(totals.counts.begin(), totals.counts.end(), std::uint64_t{0});
    block.set_totals(c, totals);
  }

  void exchange(std::size_t c, Engine& other) override {
    auto& there = dynamic_cast<BlockEngine&>(other);
    std::vector<Value> x(traits_.variables), y(traits_.variables);
    block_of(c).get_levels(c, x);
    there.block_of(c).get_levels(c, y);
    block_of(c).set_levels(c, y);
    there.block_of(c).set_levels(c, x);
  }

  void start_marginals(ChainGroup group, bool rao_blackwell) override {
    Block& block = block_of(group);
    block.reset_counts();
    if constexpr (Layout::kRaoBlackwellises) {
      if (rao_blackwell) block.reset_sums();
    }
    for (std::size_t c = group.first; c < group.first + group.count; ++c) {
      chains_[c].counted_from = chains_[c].averaged_from = block.sweeps();
      if (!Layout::kRaoBlackwellises && rao_blackwell) {
        chains_[c].rao_blackwell = {std::vector<double>(target_->num_moves(), 0.0), 0};
      }
    }
  }

  void visit_marginals(ChainGroup group) override {
    if constexpr (!Layout::kRaoBlackwellises) {
      for (std::size_t c = group.first; c < group.first + group.count; ++c) {
        if (chains_[c].rao_blackwell.sums.empty()) continue;
        add_conditionals(*target_, state_of(c), chains_[c].log_ratios, chains_[c].rao_blackwell);
      }
    }
  }

  [[nodiscard]] RaoBlackwell rao_blackwell(std::size_t c) const override {
    if constexpr (Layout::kRaoBlackwellises) {
      const Block& block = block_of(c);
      if (!block.averages()) return {};
      RaoBlackwell out{std::vector<double>(traits_.entries), block.sweeps() - chains_[c].averaged_from};
      block.get_sums(c, out.sums);
      return out;
    } else {
      return chains_[c].rao_blackwell;
    }
  }

  void save_common(Saver& out) const override { out(blocks_.front().progress()); }

  void load_common(Loader& in) override {
    BlockProgress progress;
    in(progress);
    for (Block& block : blocks_) block.set_progress(progress);
  }

  void save_chain(std::size_t c, Saver& out) const override {
    const Block& block = block_of(c);
    std::vector<Value> levels(traits_.variables);
    block.get_levels(c, levels);
    out(levels, block.get_totals(c), chains_[c]);
  }

  void load_chain(std::size_t c, Loader& in) override {
    std::vector<Value> levels;
    typename Block::Totals totals;
    in(levels, totals, chains_[c]);
    block_of(c).set_levels(c, levels);
    if (block_of(c).counts()) block_of(c).set_totals(c, totals);
  }

 private:
  /// What is known of a chain beside its levels.
  struct Kept {
    std::uint64_t counted_from = 0;   // sweep at which counting its levels began
    std::uint64_t averaged_from = 0;  // and averaging its conditionals
    std::uint64_t placed = 0;         // evaluations that finding its start took
    RaoBlackwell rao_blackwell;       // at recorded draws; unused where blocks average them by themselves
    std::vector<double> log_ratios;   // a buffer for it

    template <class A>
    void archive(A& archive) {
      archive(counted_from, averaged_from, placed, rao_blackwell);
    }
  };

  static constexpr bool kRecordsManyDraws = requires { Layout::draws_at_once(std::size_t{1}); };
  static constexpr std::uint64_t kChunkUpdates = std::uint64_t{1} << 20;

  static EngineTraits traits_of(const T& target, const EngineOptions& options) {
    EngineTraits traits;
    traits.chains = options.starts.size();
    traits.variables = target.num_variables();
    traits.entries = target.num_moves();
    if constexpr (requires { target.statistic_names(); }) traits.statistics = target.statistic_names().size();
    traits.chunk = std::max<std::uint64_t>(1, kChunkUpdates / std::max<Index>(1, traits.variables));
    traits.group = Layout::kMostChains;
    if constexpr (kRecordsManyDraws) traits.draws_at_once = Layout::draws_at_once(traits.chains);
    return traits;
  }

  [[nodiscard]] std::vector<Block> make_blocks(const std::vector<ChainGroup>& groups) const {
    std::vector<Block> blocks;
    for (const ChainGroup& group : groups) blocks.push_back(layout_.make_block(group, seed_, first_chain_));
    return blocks;
  }

  static auto& block_of(auto& blocks, std::size_t chain) {
    const auto after = [](std::size_t c, const Block& block) { return c < block.group().first; };
    return *std::prev(std::upper_bound(blocks.begin(), blocks.end(), chain, after));
  }
  [[nodiscard]] const Block& block_of(std::size_t chain) const { return block_of(blocks_, chain); }
  Block& block_of(std::size_t chain) { return block_of(blocks_, chain); }
  static bool has_chains(const Block& block, const ChainGroup& group) {
    return block.group().first == group.first && block.group().count == group.count;
  }
  /// The block that has these chains and no others.
  Block& block_of(const ChainGroup& group) {
    Block& block = block_of(group.first);
    if (has_chains(block, group)) return block;
    throw std::logic_error("chains are handled in the groups that they were shared out in");
  }

  [[nodiscard]] typename T::State state_of(std::size_t c) const {
    std::vector<Value> levels(traits_.variables);
    block_of(c).get_levels(c, levels);
    return target_->make_state(levels);
  }

  void place(std::size_t c, std::span<const Value> levels, const std::function<std::vector<Value>(unsigned)>& other) {
    if constexpr (requires { Layout::kAllPossible; }) {  // nothing to look for, and no state that is worth its making
      chains_[c].placed += 1;
      block_of(c).set_levels(c, levels);
      return;
    }
    Evals evals;
    const typename T::State state = make_start(*target_, levels, first_chain_ + c, other, evals);
    chains_[c].placed += evals.target;
    std::vector<Value> found(traits_.variables);
    copy_levels(*target_, state, std::span<Value>(found));
    block_of(c).set_levels(c, found);
  }

  template <class Span>
  static auto row(Span span, std::size_t k, std::size_t width) {
    return span.subspan(k * width, width);
  }

  /// What is wanted of a state, for `count` chains from number `at` on.
  [[nodiscard]] Observables part_of(const Observables& out, std::size_t at, std::size_t count) const {
    const auto part = [&](auto span, std::size_t width) {
      return span.empty() ? span : span.subspan(at * width, count * width);
    };
    Observables some;
    some.log_prob = part(out.log_prob, 1);
    some.statistics = part(out.statistics, traits_.statistics);
    some.distance = part(out.distance, 1);
    some.levels = part(out.levels, traits_.variables);
    return some;
  }

  /// What is left of number k of the group, or all of it.
  void observe_chain(const Block& block, std::size_t c, std::size_t k, const Observables& out, bool rest) const {
    if (!out.accepted.empty()) out.accepted[k] = static_cast<double>(block.sweeps());
    if (!out.evals.empty()) {
      out.evals[k] = {};
      out.evals[k].ratio = block.sweeps() * traits_.entries;
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

  void copy_marginals(const Block& block, std::size_t c, std::span<double> out) const {
    const double sweeps = static_cast<double>(std::max<std::uint64_t>(1, block.sweeps() - chains_[c].counted_from));
    std::vector<std::uint64_t> counts(out.size(), 0);
    if (block.counts()) block.get_counts(c, counts);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(counts[i]) / sweeps;
  }

  std::shared_ptr<const T> target_;
  Layout layout_;
  std::uint64_t seed_;
  std::uint64_t first_chain_;
  std::vector<Value> reference_;
  std::vector<Kept> chains_;
  std::vector<Block> blocks_;
};

}  // namespace poise
