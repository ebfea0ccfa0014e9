/// A target of one's own: the hard-core gas, particles on a ring that must not be neighbours. A small one is checked, a
/// large one is sampled.
#include <poise/extend/check/conformance.hpp>
#include <poise/extend/check/exactness.hpp>
#include <poise/extend/engines/own_model.hpp>
#include <poise/poise.hpp>

#include <cmath>
#include <cstdio>
#include <limits>

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
  void apply(State& state, Move move) const {
    state.log_prob += move.value ? activity_ : -activity_;
    state.x[move.variable] = move.value;
  }

 private:
  Index left(Index i) const { return i > 0 ? i - 1 : sites_ - 1; }
  Index right(Index i) const { return i + 1 < sites_ ? i + 1 : 0; }

  Index sites_;
  double activity_;
};

int main() {
  const HardCoreRing small(7, 0.4);
  for (const poise::CheckReport& report : {poise::check_target(small), poise::check_exactness(small)}) {
    std::fputs(report.text().c_str(), stderr);
    if (!report.ok()) return 1;
  }

  const auto ring = std::make_shared<const HardCoreRing>(40, 0.0);
  const poise::Model model = poise::own_model("hard-core ring", ring);
  poise::RunOptions options;
  options.start = poise::Start::zeros;  // the empty ring is a legal state
  const poise::RunResult fit = poise::run(model, poise::parse_sampler("lsb"), options);

  double density = 0.0;
  for (const double occupied : fit.empirical_marginals) density += occupied / 40.0;
  const double exact = (1.0 - 1.0 / std::sqrt(5.0)) / 2.0;  // of the infinite ring at activity 0, by transfer matrix
  std::printf("density %.4f, exact %.4f\n", density, exact);
  return std::abs(density - exact) < 0.005 ? 0 : 1;
}
