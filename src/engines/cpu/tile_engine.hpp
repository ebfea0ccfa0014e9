/// Gibbs with many chains in one tile, as bits of words or across lanes, as an engine.
///
/// A layout makes tiles of chains of a target and observes all chains of a tile at once: BitLayout
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
class TileEngine final : public Engine {
 public:
  using Tile = typename Layout::Tile;

  TileEngine(std::shared_ptr<const T> target, Layout layout, const EngineOptions& options)
      : Engine(traits_of(*target, options)),
        target_(std::move(target)),
        layout_(std::move(layout)),
        seed_(options.seed),
        first_chain_(options.first_chain),
        reference_(options.reference),
        chains_(options.starts.size()) {
    if constexpr (Layout::kRaoBlackwellises) traits_.rounding = layout_.rounding();
    layout_.set_reference(reference_);
    tiles_ = make_blocks(Layout::group(traits_.chains, first_chain_, 1));
    for (std::size_t c = 0; c < chains_.size(); ++c) {
      std::function<std::vector<Value>(unsigned)> next;
      if (options.other_start) next = [&](unsigned attempt) { return options.other_start(c, attempt); };
      place(c, options.starts[c], next);
    }
  }

  std::vector<ChainGroup> share_out(unsigned threads) override {
    std::vector<ChainGroup> groups = Layout::group(traits_.chains, first_chain_, threads);
    if (std::equal(tiles_.begin(), tiles_.end(), groups.begin(), groups.end(), has_chains)) return groups;
    const std::vector<Tile> before = std::exchange(tiles_, make_blocks(groups));
    std::vector<Value> levels(traits_.variables);
    for (Tile& tile : tiles_) {
      tile.set_progress(before.front().progress());
      for (std::size_t c = tile.group().first; c < tile.group().first + tile.group().count; ++c) {
        const Tile& old = tile_of(before, c);
        old.get_levels(c, levels);
        tile.set_levels(c, levels);
        if (tile.counts()) tile.set_totals(c, old.get_totals(c));
      }
    }
    return groups;
  }

  void advance(ChainGroup group, std::uint64_t steps) override { tile_of(group).sweep(steps); }

  void observe(ChainGroup group, const Observables& out) const override {
    for (const Tile& tile : tiles_) {
      const std::size_t first = std::max(group.first, tile.group().first);
      const std::size_t last = std::min(group.first + group.count, tile.group().first + tile.group().count);
      if (first >= last) continue;
      const std::size_t at = first - group.first;
      const bool whole = last - first == tile.group().count;
      if (whole) layout_.observe(*target_, tile, part_of(out, at, tile.group().count));
      for (std::size_t c = first; c < last; ++c) observe_chain(tile, c, c - group.first, out, whole);
    }
  }

  void advance_and_observe(ChainGroup group, std::uint64_t steps, std::span<const Observables> draws) override {
    if constexpr (kRecordsManyDraws) {
      const bool plain = draws.front().levels.empty() && draws.front().bits.empty() && draws.front().frozen.empty() &&
                         draws.front().empirical_marginals.empty() && draws.front().evals.empty();
      if (plain) {
        layout_.sweep_and_observe(*target_, tile_of(group), steps, draws);
        return;
      }
    }
    Engine::advance_and_observe(group, steps, draws);
  }

  void restart(std::size_t c, std::span<const Value> levels) override {
    place(c, levels, {});
    Tile& tile = tile_of(c);
    if (!tile.counts()) return;
    chains_[c].counted_from = tile.sweeps();
    auto totals = tile.get_totals(c);
    std::fill(totals.counts.begin(), totals.counts.end(), std::uint64_t{0});
    tile.set_totals(c, totals);
  }

  void exchange(std::size_t c, Engine& other) override {
    auto& there = dynamic_cast<TileEngine&>(other);
    std::vector<Value> x(traits_.variables), y(traits_.variables);
    tile_of(c).get_levels(c, x);
    there.tile_of(c).get_levels(c, y);
    tile_of(c).set_levels(c, y);
    there.tile_of(c).set_levels(c, x);
  }

  void start_marginals(ChainGroup group, bool rao_blackwell) override {
    Tile& tile = tile_of(group);
    tile.reset_counts();
    if constexpr (Layout::kRaoBlackwellises) {
      if (rao_blackwell) tile.reset_sums();
    }
    for (std::size_t c = group.first; c < group.first + group.count; ++c) {
      chains_[c].counted_from = chains_[c].averaged_from = tile.sweeps();
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
      const Tile& tile = tile_of(c);
      if (!tile.averages()) return {};
      RaoBlackwell out{std::vector<double>(traits_.entries), tile.sweeps() - chains_[c].averaged_from};
      tile.get_sums(c, out.sums);
      return out;
    } else {
      return chains_[c].rao_blackwell;
    }
  }

  void save_common(Saver& out) const override { out(tiles_.front().progress()); }

  void load_common(Loader& in) override {
    TileProgress progress;
    in(progress);
    for (Tile& tile : tiles_) tile.set_progress(progress);
  }

  void save_chain(std::size_t c, Saver& out) const override {
    const Tile& tile = tile_of(c);
    std::vector<Value> levels(traits_.variables);
    tile.get_levels(c, levels);
    out(levels, tile.get_totals(c), chains_[c]);
  }

  void load_chain(std::size_t c, Loader& in) override {
    std::vector<Value> levels;
    typename Tile::Totals totals;
    in(levels, totals, chains_[c]);
    tile_of(c).set_levels(c, levels);
    if (tile_of(c).counts()) tile_of(c).set_totals(c, totals);
  }

 private:
  /// What is known of a chain beside its levels.
  struct Kept {
    std::uint64_t counted_from = 0;   // sweep at which counting its levels began
    std::uint64_t averaged_from = 0;  // and averaging its conditionals
    std::uint64_t placed = 0;         // evaluations that finding its start took
    RaoBlackwell rao_blackwell;       // at recorded draws; unused where tiles average them by themselves
    std::vector<double> log_ratios;   // a buffer for it

    template <class A>
    void archive(A& archive) {
      archive(counted_from, averaged_from, placed, rao_blackwell);
    }
  };

  static constexpr bool kRecordsManyDraws = requires { Layout::draws_at_once(std::size_t{1}); };
  static constexpr std::uint64_t kChunkUpdates = std::uint64_t{1} << 20;

  static EngineTraits traits_of(const T& target, const EngineOptions& options) {
    EngineTraits traits = EngineTraits::of(target, options.starts.size());
    traits.set_chunk(kChunkUpdates);
    traits.group = Layout::kMostChains;
    traits.gives_bits = requires { &Tile::get_all_bits; };
    if constexpr (kRecordsManyDraws) traits.draws_at_once = Layout::draws_at_once(traits.chains);
    return traits;
  }

  [[nodiscard]] std::vector<Tile> make_blocks(const std::vector<ChainGroup>& groups) const {
    std::vector<Tile> tiles;
    for (const ChainGroup& group : groups) tiles.push_back(layout_.make_tile(group, seed_, first_chain_));
    return tiles;
  }

  static auto& tile_of(auto& tiles, std::size_t chain) {
    const auto after = [](std::size_t c, const Tile& tile) { return c < tile.group().first; };
    return *std::prev(std::upper_bound(tiles.begin(), tiles.end(), chain, after));
  }
  [[nodiscard]] const Tile& tile_of(std::size_t chain) const { return tile_of(tiles_, chain); }
  Tile& tile_of(std::size_t chain) { return tile_of(tiles_, chain); }
  static bool has_chains(const Tile& tile, const ChainGroup& group) {
    return tile.group().first == group.first && tile.group().count == group.count;
  }
  /// The tile that has these chains and no others.
  Tile& tile_of(const ChainGroup& group) {
    Tile& tile = tile_of(group.first);
    if (has_chains(tile, group)) return tile;
    throw std::logic_error("chains are handled in the groups that they were shared out in");
  }

  [[nodiscard]] typename T::State state_of(std::size_t c) const {
    std::vector<Value> levels(traits_.variables);
    tile_of(c).get_levels(c, levels);
    return target_->make_state(levels);
  }

  void place(std::size_t c, std::span<const Value> levels, const std::function<std::vector<Value>(unsigned)>& other) {
    if constexpr (requires { Layout::kAllPossible; }) {  // nothing to look for, and no state that is worth its making
      chains_[c].placed += 1;
      tile_of(c).set_levels(c, levels);
      return;
    }
    Evals evals;
    const typename T::State state = make_start(*target_, levels, first_chain_ + c, other, evals);
    chains_[c].placed += evals.target;
    tile_of(c).set_levels(c, levels_of(*target_, state));
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
    some.bits = part(out.bits, (traits_.variables + 7) / 8);
    return some;
  }

  /// What is left of number k of the group, or all of it.
  void observe_chain(const Tile& tile, std::size_t c, std::size_t k, const Observables& out, bool rest) const {
    if (!out.accepted.empty()) out.accepted[k] = static_cast<double>(tile.sweeps());
    if (!out.evals.empty()) {
      out.evals[k] = {};
      out.evals[k].ratio = tile.sweeps() * traits_.entries;
      out.evals[k].target = chains_[c].placed;
    }
    if (!out.empirical_marginals.empty()) copy_marginals(tile, c, row(out.empirical_marginals, k, traits_.entries));
    if ((rest || !out.wants_state()) && out.frozen.empty()) return;
    const typename T::State state = state_of(c);
    if (!out.frozen.empty()) find_frozen(*target_, state, row(out.frozen, k, traits_.variables));
    if (!rest) observe_state(*target_, state, reference_, k, out);
  }

  void copy_marginals(const Tile& tile, std::size_t c, std::span<double> out) const {
    const double sweeps = static_cast<double>(std::max<std::uint64_t>(1, tile.sweeps() - chains_[c].counted_from));
    std::vector<std::uint64_t> counts(out.size(), 0);
    if (tile.counts()) tile.get_counts(c, counts);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(counts[i]) / sweeps;
  }

  std::shared_ptr<const T> target_;
  Layout layout_;
  std::uint64_t seed_;
  std::uint64_t first_chain_;
  std::vector<Value> reference_;
  std::vector<Kept> chains_;
  std::vector<Tile> tiles_;
};

}  // namespace poise
