/// Tempering with the replicas of a ladder across lanes: single-site Gibbs, each lane at a temperature of its own.
///
/// States stay where they are and temperatures move, so a swap costs nothing. With an even number of ladders each two
/// of them also exchange components of their states (lanes/components.hpp), where these differ in more than one.
#pragma once

#include <memory>
#include <vector>

#include <poise/extend/engines/tempered_engine.hpp>
#include <poise/extend/engines/tuner.hpp>
#include "engines/common/components.hpp"
#include "engines/common/factor_scopes.hpp"
#include "engines/cpu/lanes/lane_tile.hpp"
#include "models/ising/graph_ising.hpp"
#include "models/network/markov_network.hpp"

namespace poise {

/// Sums over all factors of a state, lane by lane: log weights without heat, and how many zeros are in them.
struct LaneEnergies {
  std::vector<double> log_weight;
  std::vector<double> zeros;
};

template <class T>
class LaneEnergy;

template <>
class LaneEnergy<MarkovNetwork> {
 public:
  LaneEnergy(const MarkovNetwork& target, const LaneModel& model);
  void sum(const LaneTile& tile, LaneEnergies& out) const;
  [[nodiscard]] double log_hot() const { return log_hot_; }  ///< log Z at beta = 0

 private:
  double unit_;
  double log_hot_;
  FactorScopes scopes_;               // by position
  std::vector<std::uint32_t> table_;  // of each factor, its first entry
  std::vector<double> units_;         // of all entries, a zero being the smallest entry of its table
  std::vector<double> is_zero_;       // empty where there is none
};

template <>
class LaneEnergy<GraphIsing> {
 public:
  LaneEnergy(const GraphIsing& target, const LaneModel& model);
  void sum(const LaneTile& tile, LaneEnergies& out) const;
  [[nodiscard]] double log_hot() const { return log_hot_; }

 private:
  double unit_;
  double log_hot_;
  SpinTerms terms_;  // by position
};

/// Ladders of a target whose conditionals are in `source`.
template <class T>
[[nodiscard]] TunableEngine make_tempered_lanes(const std::shared_ptr<const T>& target, LaneSource source,
                                                const EngineOptions& options);

}  // namespace poise
