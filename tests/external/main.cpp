/// A target of a user's own, in a project of its own: checked, then sampled with the installed library.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <span>
#include <vector>

#include <poise/extend/check/conformance.hpp>
#include <poise/extend/check/exactness.hpp>
#include <poise/extend/engines/own_model.hpp>
#include <poise/poise.hpp>

using poise::Index;
using poise::Move;
using poise::Value;

/// Dials of three levels; log p = -strength * (sum of levels - wanted)^2. Every move changes every ratio.
class Dials {
 public:
  struct State {
    std::vector<Value> x;
    int sum;
  };

  Dials(Index dials, int wanted, double strength) : dials_(dials), wanted_(wanted), strength_(strength) {}

  Index num_variables() const { return dials_; }
  Index num_moves() const { return 2 * dials_; }
  Index cardinality(Index) const { return 3; }
  State make_state(std::span<const Value> x) const {
    State state{{x.begin(), x.end()}, 0};
    for (const Value level : x) state.sum += level;
    return state;
  }
  Value level(const State& state, Index i) const { return state.x[i]; }
  double log_prob(const State& state) const { return log_prob_of(state.sum); }
  Move move_at(const State& state, Index m) const {
    const Value now = state.x[m / 2];
    const auto level = static_cast<Value>(m % 2);
    return {m / 2, static_cast<Value>(level < now ? level : level + 1)};
  }
  double log_ratio(const State& state, Move move) const {
    return log_prob_of(state.sum + move.value - state.x[move.variable]) - log_prob_of(state.sum);
  }
  void log_ratios(const State& state, std::span<double> out) const {
    for (Index m = 0; m < num_moves(); ++m) out[m] = log_ratio(state, move_at(state, m));
  }
  void apply(State& state, Move move) const {
    state.sum += move.value - state.x[move.variable];
    state.x[move.variable] = move.value;
  }

 private:
  double log_prob_of(int sum) const { return -strength_ * (sum - wanted_) * (sum - wanted_); }

  Index dials_;
  int wanted_;
  double strength_;
};

/// The same with a mistake that is easily made: what a move does to log p is told with the wrong sign.
class WrongDials : public Dials {
 public:
  using Dials::Dials;
  double log_ratio(const State& state, Move move) const { return -Dials::log_ratio(state, move); }
};

int main() {
  const Dials small(4, 5, 0.3);
  for (const poise::CheckReport& report : {poise::check_target(small), poise::check_exactness(small)}) {
    if (report.ok()) continue;
    std::printf("%s", report.text().c_str());
    return 1;
  }
  const poise::CheckReport wrong = poise::check_target(WrongDials(4, 5, 0.3));
  if (wrong.ok()) {
    std::printf("a wrong target passed\n");
    return 1;
  }
  std::printf("of the wrong target: %s", wrong.text().c_str());

  const poise::Model model = poise::own_model("dials", std::make_shared<const Dials>(12, 14, 0.3));
  poise::RunOptions options;
  options.warmup = 200;
  options.draws = 500;
  const poise::RunResult result = poise::run(model, poise::parse_sampler("lb"), options);
  double mean = 0.0;
  for (const std::int8_t level : result.trace.x) mean += level;
  mean /= static_cast<double>(result.trace.chains * result.trace.draws);
  std::printf("mean sum %.2f\n", mean);
  return std::abs(mean - 14.0) < 0.5 ? 0 : 1;
}
