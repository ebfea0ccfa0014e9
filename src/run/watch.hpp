/// A look at chains in the first part of their warm-up: whether they agree, how fast they mix, and whether they agree
/// with marginals that are known.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <poise/extend/engines/engine.hpp>
#include <poise/model.hpp>
#include <poise/network.hpp>
#include "exact/block_laws.hpp"

namespace poise {

/// Keeps up to kPoints points of a chain, at equal distances. When they are full, every second one is dropped and the
/// distance doubles, so that a watch of any length takes the same memory.
class Watch {
 public:
  static constexpr std::size_t kPoints = 128;

  /// `spacing`: steps between two points at first.
  Watch(const Model& model, std::size_t chains, std::uint64_t spacing);

  /// Steps from the beginning of the warm-up to the next point.
  [[nodiscard]] std::uint64_t next() const { return spacing_ * (points_ + 1); }
  /// The chains as they are now; all ranks call it.
  void record(const Engine& engine);
  [[nodiscard]] bool is_full() const { return points_ == kPoints; }
  [[nodiscard]] std::size_t points() const { return points_; }
  [[nodiscard]] std::uint64_t spacing() const { return spacing_; }
  void halve();

  /// What the later half of the points says.
  struct Look {
    /// The largest split R-hat of log p and the model's statistics, or that of the variables: their root mean square,
    /// weighted by variance; infinite where a variable is frozen at different levels.
    double r_hat = 1.0;
    double ess_per_step = 1.0;  ///< of one chain, by the slowest of these
    double ess = 1.0;           ///< of all chains together
    /// Whether chains agree and have forgotten several times over where they were.
    bool settled = false;
  };
  [[nodiscard]] Look look() const;
  /// The largest split R-hat of the later half along directions in which chains were apart in the earlier one. Modes
  /// that differ a little in each of many variables are far apart along these, and near in every single variable.
  [[nodiscard]] double r_hat_along_differences() const;
  /// Whether the later half contradicts what is known.
  [[nodiscard]] bool contradicts(const std::vector<ExactPart>& known) const;

  template <class A>
  void archive(A& archive) {
    archive(series_, levels_, points_, spacing_);
  }

 private:
  [[nodiscard]] std::size_t later() const { return points_ / 2; }
  /// Levels of the later half: chains by points by variables looked at.
  [[nodiscard]] std::vector<std::int8_t> later_levels() const;

  std::vector<Index> looked_at_;  // variables; observing all of them would cost more than the steps
  Index variables_;
  std::vector<std::vector<std::vector<double>>> series_;  // [log p and statistics][chain]
  std::vector<std::vector<std::int8_t>> levels_;          // [chain], point by point
  std::size_t points_ = 0;
  std::uint64_t spacing_;
};

}  // namespace poise
