/// What a pilot has seen of a candidate: log p, the model's statistics and variables at equal distances, and how well
/// its chains mix by them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <poise/extend/engines/division.hpp>
#include <poise/extend/engines/engine.hpp>
#include <poise/model.hpp>

namespace poise {

/// One quantity that should be estimated well.
struct PilotQuantity {
  std::string name;
  double ess_per_point = 0.0;
  double r_hat = 1.0;
  bool constant = false;
};

/// Summary of the later half of what was recorded.
struct PilotSummary {
  std::vector<PilotQuantity> monitors;
  // For each variable that is looked at, summed over its levels.
  std::vector<double> variance;
  std::vector<double> squared_error;  ///< of its marginal
  double points = 0.0;                ///< of all chains together
  std::size_t chains = 1;
  /// Root mean square, weighted by variance; the largest there is where a variable is frozen.
  double variables_r_hat = 1.0;
};

class PilotRecord {
 public:
  PilotRecord(const Model& model, std::size_t chains);
  /// The chains of this rank.
  void record(const Engine& engine);
  /// Has all ranks know what was recorded since the last time.
  void share(const Division& division);
  [[nodiscard]] std::size_t points() const { return points_; }  ///< of one chain
  /// What it was when it had so many points.
  [[nodiscard]] PilotRecord first(std::size_t points) const;
  [[nodiscard]] PilotSummary summarize() const;

  template <class A>
  void archive(A& archive) {
    archive(series_, levels_, points_, shared_);
  }

 private:
  std::vector<std::string> names_;
  std::vector<Index> looked_at_;  // variables; observing all of them would cost more than the pilot
  std::vector<std::vector<std::vector<double>>> series_;  // [monitor][chain]
  std::vector<std::vector<std::int8_t>> levels_;          // [chain], point by point
  Index variables_;
  std::size_t points_ = 0;
  std::size_t shared_ = 0;  // that all ranks know of
};

/// How well a candidate does, judged beside the others.
struct PilotScore {
  double ess_per_draw = 0.0;
  std::string slowest;
  double r_hat = 1.0;
  bool mixed = false;  ///< whether the chains were seen to forget where they were, several times over
};

/// The slowest of all quantities. `points_per_draw` is how often they were recorded. What varies in one of `all` but
/// not in this one counts as not estimated at all.
[[nodiscard]] PilotScore score_pilot(const PilotSummary& one, const std::vector<const PilotSummary*>& all,
                                     double points_per_draw);

}  // namespace poise
