/// A target given by the log probability of every state: categorical, dense, zeros allowed. The test double that makes
/// no use of any structure.
#pragma once

#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <poise/extend/base/concepts.hpp>
#include <poise/extend/base/rng.hpp>

namespace poise::testing {

class TableTarget {
 public:
  struct State {
    std::vector<Value> x;
    double log_prob;
  };

  /// log p of state x is at index sum_i x_i * prod_{j<i} cardinality_j.
  TableTarget(std::vector<Index> cardinalities, std::vector<double> log_p)
      : cardinalities_(std::move(cardinalities)), log_p_(std::move(log_p)) {
    for (const Index k : cardinalities_) moves_ += k - 1;
  }

  /// Random log probabilities of the given spread; one state in `zero_every` has none (0: all have some).
  static TableTarget random(std::vector<Index> cardinalities, double spread, std::uint64_t seed, Index zero_every = 0) {
    std::size_t states = 1;
    for (const Index k : cardinalities) states *= k;
    Rng rng(seed, 0);
    std::vector<double> log_p(states);
    for (std::size_t s = 0; s < states; ++s) {
      log_p[s] = spread * (2.0 * rng.uniform() - 1.0);
      if (zero_every != 0 && rng.uniform() * zero_every < 1.0) log_p[s] = -std::numeric_limits<double>::infinity();
    }
    return {std::move(cardinalities), std::move(log_p)};
  }

  [[nodiscard]] Index num_variables() const { return static_cast<Index>(cardinalities_.size()); }
  [[nodiscard]] Index num_moves() const { return moves_; }
  [[nodiscard]] Index cardinality(Index i) const { return cardinalities_[i]; }
  [[nodiscard]] std::size_t max_affected() const { return moves_; }

  [[nodiscard]] State make_state(std::span<const Value> x) const {
    State state{{x.begin(), x.end()}, 0.0};
    state.log_prob = look_up(state.x);
    return state;
  }
  [[nodiscard]] Value level(const State& state, Index i) const { return state.x[i]; }
  [[nodiscard]] double log_prob(const State& state) const { return state.log_prob; }

  [[nodiscard]] Move move_at(const State& state, Index number) const {
    Index i = 0;
    while (number >= cardinalities_[i] - 1) number -= cardinalities_[i++] - 1;
    return {i, static_cast<Value>(number < state.x[i] ? number : number + 1)};
  }
  [[nodiscard]] double log_ratio(const State& state, Move move) const {
    std::vector<Value> after = state.x;
    after[move.variable] = move.value;
    return look_up(after) - state.log_prob;
  }
  void log_ratios(const State& state, std::span<double> out) const {
    for (Index m = 0; m < moves_; ++m) out[m] = log_ratio(state, move_at(state, m));
  }
  template <class Visit>
  void for_each_affected(const State& state, Index move, Visit&& visit) const {
    State after = state;
    apply(after, move_at(state, move));
    for (Index first = 0; first < moves_; first += 8) {
      AffectedLanes lanes{};
      lanes.log_ratios = broadcast8(-std::numeric_limits<double>::infinity());
      for (Index m = first; m < std::min(first + 8, moves_); ++m) {
        lanes.moves[lanes.count] = m;
        lanes.log_ratios.set(lanes.count++, log_ratio(after, move_at(after, m)));
      }
      visit(lanes);
    }
  }
  void apply(State& state, Move move) const {
    state.x[move.variable] = move.value;
    state.log_prob = look_up(state.x);
  }

 private:
  [[nodiscard]] double look_up(const std::vector<Value>& x) const {
    std::size_t index = 0, stride = 1;
    for (std::size_t i = 0; i < x.size(); ++i) {
      index += x[i] * stride;
      stride *= cardinalities_[i];
    }
    return log_p_[index];
  }

  std::vector<Index> cardinalities_;
  std::vector<double> log_p_;
  Index moves_ = 0;
};

}  // namespace poise::testing
