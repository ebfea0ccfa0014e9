/// A target of one's own: the hard-core gas, particles on a ring that must not be neighbours.
#pragma once

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include <poise/extend/base/concepts.hpp>

using poise::Index;
using poise::Move;
using poise::Value;

/// log p(x) = activity * number of particles where no two are neighbours, -inf elsewhere.
class HardCoreRing {
 public:
  struct State {
    std::vector<Value> x;
    double log_prob;
  };

  HardCoreRing(Index sites, double activity) : sites_(sites), activity_(activity) {}

  Index num_variables() const { return sites_; }
  Index num_moves() const { return sites_; }  // binary: move number i flips variable i
  Index cardinality(Index) const { return 2; }
  std::size_t max_affected() const { return 3; }

  State make_state(std::span<const Value> x) const {
    State state{{x.begin(), x.end()}, 0.0};
    for (Index i = 0; i < sites_; ++i) {
      state.log_prob += activity_ * state.x[i];
      if (state.x[i] && state.x[right(i)]) state.log_prob = -std::numeric_limits<double>::infinity();
    }
    return state;
  }
  Value level(const State& state, Index i) const { return state.x[i]; }
  double log_prob(const State& state) const { return state.log_prob; }
  Move move_at(const State& state, Index i) const { return {i, static_cast<Value>(1 - state.x[i])}; }

  double log_ratio(const State& state, Move move) const {
    if (move.value == 0) return -activity_;
    const bool crowded = state.x[left(move.variable)] || state.x[right(move.variable)];
    return crowded ? -std::numeric_limits<double>::infinity() : activity_;
  }
  void log_ratios(const State& state, std::span<double> out) const {
    for (Index i = 0; i < sites_; ++i) out[i] = log_ratio(state, move_at(state, i));
  }
  void apply(State& state, Move move) const {
    state.log_prob += move.value ? activity_ : -activity_;
    state.x[move.variable] = move.value;
  }
  /// A flip changes the ratios of the site and of its two neighbours.
  template <class Visit>
  void for_each_affected(const State& state, Index i, Visit&& visit) const {
    State after = state;
    apply(after, move_at(state, i));
    poise::AffectedLanes lanes{};
    lanes.log_ratios = poise::broadcast8(-std::numeric_limits<double>::infinity());
    for (const Index j : {left(i), i, right(i)}) {
      lanes.moves[lanes.count] = j;
      lanes.log_ratios.set(lanes.count++, log_ratio(after, move_at(after, j)));
    }
    visit(lanes);
  }

 private:
  Index left(Index i) const { return i > 0 ? i - 1 : sites_ - 1; }
  Index right(Index i) const { return i + 1 < sites_ ? i + 1 : 0; }

  Index sites_;
  double activity_;
};
