/// Says when a balancing function that is being learned has stopped changing where it matters.
#pragma once

#include <span>
#include <vector>

#include <poise/extend/learning/transition_gradient.hpp>
#include <poise/extend/learning/balancing_function.hpp>

namespace poise {

/// Compares the mean of phi over a window of rounds with that over the window before, at the ratios that chains meet:
/// every |u| counts by the probability of the transitions that have it. A change that is the same everywhere changes no
/// proposal of single changes and does not count, but with steps of many it is their length, and does.
class SettleDetector {
 public:
  static constexpr std::size_t kWindow = 40;  ///< rounds
  static constexpr double kTolerance = 0.02;  ///< root mean square change of log g

  SettleDetector();

  /// The function that a round began with and the states it was looked at in.
  void add(const BalanceTable& table, std::span<const TransitionGradient> chains);
  [[nodiscard]] bool settled() const { return settled_; }

  template <class A>
  void archive(A& archive) {
    archive(rounds_, before_, now_, frequency_, settled_, many_);
  }

 private:
  [[nodiscard]] double change() const;

  std::size_t rounds_ = 0;         // in the present window
  std::vector<double> before_;     // mean of phi over the window before; empty in the first
  std::vector<double> now_;        // sum over the present one
  std::vector<double> frequency_;  // of |u|, by grid point
  bool settled_ = false;
  bool many_ = false;  // whether steps change many variables
};

}  // namespace poise
