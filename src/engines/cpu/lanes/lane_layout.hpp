/// Chains across lanes, of networks and of Ising models on any graph: their conditionals, and what a tile of chains
/// is worth.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <poise/extend/engines/tuner.hpp>
#include "engines/common/factor_scopes.hpp"
#include "engines/cpu/lanes/lane_tile.hpp"
#include "engines/cpu/tile_engine.hpp"
#include "models/ising/graph_ising.hpp"
#include "models/network/markov_network.hpp"

namespace poise {

[[nodiscard]] LaneSource lane_source(const std::shared_ptr<const MarkovNetwork>& target);
[[nodiscard]] LaneSource lane_source(const std::shared_ptr<const GraphIsing>& target);

/// Adds up the terms of log p of an Ising model, which are by position, lane by lane.
void sum_spin_terms(const LaneTile& tile, const SpinTerms& terms, std::span<std::int64_t, LaneTile::kMost> sums);

/// Sums over a tile that log p and the statistics of its chains follow from.
template <class T>
class LaneObserver;

template <>
class LaneObserver<MarkovNetwork> {
 public:
  LaneObserver(const MarkovNetwork& target, const LaneModel& model);
  void observe(const MarkovNetwork& target, const LaneTile& tile, const Observables& out) const;

 private:
  void observe_order(const MarkovNetwork& target, const LaneTile& tile, std::span<double> out) const;

  FactorScopes scopes_;  // by position
  Index most_levels_ = 0;
};

template <>
class LaneObserver<GraphIsing> {
 public:
  LaneObserver(const GraphIsing& target, const LaneModel& model);
  void observe(const GraphIsing& target, const LaneTile& tile, const Observables& out) const;

 private:
  SpinTerms terms_;  // by position
};

template <class T>
class LaneLayout {
 public:
  using Tile = LaneTile;
  static constexpr std::size_t kMostChains = LaneTile::kMost;
  static constexpr bool kRaoBlackwellises = true;

  LaneLayout(const std::shared_ptr<const T>& target, LaneSource source);
  [[nodiscard]] std::vector<double> rounding() const { return model_->rounding(); }
  void set_reference(std::span<const Value> reference);
  /// How a run's chains are shared out in tiles: by whole vectors where there are enough of them for all threads.
  [[nodiscard]] static std::vector<ChainGroup> group(std::size_t chains, std::uint64_t first_chain, unsigned threads) {
    return group_words(chains, first_chain, threads, {LaneTile::kVector, LaneTile::kMost / LaneTile::kVector});
  }
  [[nodiscard]] LaneTile make_tile(ChainGroup group, std::uint64_t seed, std::uint64_t first_chain) const {
    return {model_, group, seed, first_chain};
  }
  /// log p, statistics, distance and levels of all chains of a tile.
  void observe(const T& target, const LaneTile& tile, const Observables& out) const;

 private:
  std::shared_ptr<const LaneModel> model_;
  LaneObserver<T> observer_;
  std::vector<Value> reference_;  // by position
};

/// Gibbs with chains across lanes.
template <class T>
[[nodiscard]] TunableEngine make_lane_engine(const std::shared_ptr<const T>& target, LaneSource source,
                                             const EngineOptions& options) {
  using Layout = LaneLayout<T>;
  return {std::make_unique<TileEngine<T, Layout>>(target, Layout(target, std::move(source)), options), nullptr};
}

}  // namespace poise
