/// Does a target keep its contract? Numbering of moves, ratios, affected moves and `apply` against log p from scratch.
///
///     const CheckReport report = check_target(my_target);
///     if (!report.ok()) std::cerr << report.text();
///
/// The check walks at random over the moves of the target and holds every claim against `make_state` and `log_prob` of
/// the state from scratch, so these two are what is believed. A step costs num_moves() evaluations from scratch: give
/// it a small instance.
#pragma once

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <poise/extend/base/concepts.hpp>

namespace poise {

/// What a check found: a sentence for each problem, none where all is well.
struct CheckReport {
  std::vector<std::string> problems;

  [[nodiscard]] bool ok() const { return problems.empty(); }
  /// All problems, a line each.
  [[nodiscard]] std::string text() const {
    std::string lines;
    for (const std::string& problem : problems) lines += problem + "\n";
    return lines;
  }
};

struct ConformanceOptions {
  int steps = 100;  ///< of the walk
  std::uint64_t seed = 1;
  double tolerance = 1e-9;   ///< between two ways to the same log p or log ratio; more where log p is beyond 1e6
  std::vector<Value> start;  ///< a state of positive probability; empty: every variable at level 0
};

template <Target T>
class ConformanceCheck {
 public:
  ConformanceCheck(const T& target, const ConformanceOptions& options) : target_(target), options_(options) {}

  CheckReport run() {
    std::vector<Value> x = options_.start;
    x.resize(target_.num_variables(), 0);
    if (!check_shape()) return report_;
    State state = target_.make_state(x);
    if (!(target_.log_prob(state) > -kInfinity)) {
      problem("start", fmt::format("log p of the start is {}, expected a state of positive probability: set "
                                   "ConformanceOptions::start",
                                   target_.log_prob(state)));
      return report_;
    }
    Rng rng(options_.seed, 0);
    for (step_ = 0; step_ < options_.steps && report_.ok(); ++step_) {
      check_state(state);
      const Index chosen = choose(rng);
      if (chosen == target_.num_moves() || !report_.ok()) break;
      check_move(state, chosen);
    }
    return report_;
  }

 private:
  using State = typename T::State;
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  /// One sentence for each claim; what comes after the first is mostly its consequence.
  void problem(const std::string& claim, const std::string& sentence) {
    if (seen_.insert(claim).second) report_.problems.push_back(sentence);
  }
  [[nodiscard]] bool same(double a, double b) const { return a == b || std::abs(a - b) <= options_.tolerance; }
  [[nodiscard]] static std::string name(Move move) { return fmt::format("x[{}] := {}", move.variable, move.value); }

  bool check_shape() {
    std::uint64_t moves = 0;
    for (Index i = 0; i < target_.num_variables(); ++i) {
      const Index levels = target_.cardinality(i);
      if (levels == 0) problem("levels", fmt::format("variable {} has no level, expected at least one", i));
      moves += levels - 1;
    }
    if (moves != target_.num_moves()) {
      problem("moves", fmt::format("num_moves() is {}, expected {}: one for each level but the present one, of every "
                                   "variable",
                                   target_.num_moves(), moves));
    }
    return report_.ok();
  }

  /// Everything that is claimed of one state; leaves its moves and exact ratios behind.
  void check_state(const State& state) {
    now_ = levels_of(target_, state);
    const State fresh = target_.make_state(now_);
    if (levels_of(target_, fresh) != now_) problem("levels", "make_state(x) has other levels than x");
    const double log_prob = target_.log_prob(fresh);
    if (!same(target_.log_prob(state), log_prob)) {
      problem("log_prob", fmt::format("step {}: log_prob of the state that apply made is {}, and {} from scratch",
                                      step_, target_.log_prob(state), log_prob));
    }
    ratios_.assign(target_.num_moves(), 0.0);
    target_.log_ratios(state, ratios_);
    exact_.clear();
    moves_.clear();
    Index m = 0;
    for (Index i = 0; i < target_.num_variables(); ++i) {
      if (target_.cardinality(i) == 1) continue;  // it has no moves, whatever its level is called
      for (Index level = 0; level < target_.cardinality(i); ++level) {
        if (level == now_[i]) continue;
        check_ratio(state, m++, {i, static_cast<Value>(level)}, log_prob);
      }
    }
  }

  void check_ratio(const State& state, Index m, Move expected, double log_prob) {
    const Move move = target_.move_at(state, m);
    if (move.variable != expected.variable || move.value != expected.value) {
      problem("move_at", fmt::format("step {}: move {} is {}, expected {}: variables in order, levels in order", step_,
                                     m, name(move), name(expected)));
    }
    std::vector<Value> after = now_;
    after[expected.variable] = expected.value;
    const double exact = target_.log_prob(target_.make_state(after)) - log_prob;
    moves_.push_back(expected);
    exact_.push_back(exact);
    if (std::isnan(exact)) problem("nan", fmt::format("log p is not a number after {}", name(expected)));
    if (!same(target_.log_ratio(state, expected), exact)) {
      problem("log_ratio", fmt::format("step {}: log_ratio of {} is {}, and {} from scratch", step_, name(expected),
                                       target_.log_ratio(state, expected), exact));
    }
    if (!same(ratios_[m], exact)) {
      problem("log_ratios", fmt::format("step {}: log_ratios gives {} for move {} ({}), and it is {} from scratch",
                                        step_, ratios_[m], m, name(expected), exact));
    }
  }

  /// A move to a state of positive probability, uniform among them; num_moves() where there is none.
  Index choose(Rng& rng) const {
    std::vector<Index> possible;
    for (Index m = 0; m < target_.num_moves(); ++m) {
      if (exact_[m] > -kInfinity) possible.push_back(m);
    }
    if (possible.empty()) return target_.num_moves();
    return possible[static_cast<std::size_t>(rng.uniform() * static_cast<double>(possible.size()))];
  }

  /// Makes the move; where the target says what it affects, that is checked as well.
  void check_move(State& state, Index chosen) {
    std::vector<double> predicted = ratios_;
    if constexpr (SparseTarget<T>) predict(state, chosen, predicted);
    target_.apply(state, moves_[chosen]);
    if (target_.level(state, moves_[chosen].variable) != moves_[chosen].value) {
      problem("apply", fmt::format("step {}: apply left x[{}] at {}, expected {}", step_, moves_[chosen].variable,
                                   target_.level(state, moves_[chosen].variable), moves_[chosen].value));
      return;
    }
    if constexpr (SparseTarget<T>) {
      target_.log_ratios(state, ratios_);
      for (Index m = 0; m < target_.num_moves(); ++m) {
        if (same(ratios_[m], predicted[m])) continue;
        problem("affected", fmt::format("step {}: after {} the log ratio of move {} is {}; for_each_affected led to {}",
                                        step_, name(moves_[chosen]), m, ratios_[m], predicted[m]));
      }
    }
  }

  void predict(const State& state, Index chosen, std::vector<double>& predicted) {
    std::vector<int> times(target_.num_moves(), 0);
    std::size_t count = 0;
    target_.for_each_affected(state, chosen, [&](const AffectedLanes& lanes) {
      count += lanes.count;
      for (unsigned k = 0; k < 8; ++k) {
        const double log_ratio = lanes.log_ratios[k];
        if (k >= lanes.count) {
          if (log_ratio != -kInfinity) problem("lanes", "for_each_affected left a lane beyond count that is not -inf");
        } else if (lanes.moves[k] >= target_.num_moves()) {
          problem("number", fmt::format("for_each_affected gave move {} of {}", lanes.moves[k], target_.num_moves()));
        } else {
          predicted[lanes.moves[k]] = log_ratio;
          if (++times[lanes.moves[k]] == 2) {
            problem("twice",
                    fmt::format("for_each_affected gave move {} twice for {}", lanes.moves[k], name(moves_[chosen])));
          }
        }
      }
    });
    if (count > target_.max_affected()) {
      problem("max_affected",
              fmt::format("for_each_affected gave {} moves, and max_affected() is {}", count, target_.max_affected()));
    }
  }

  const T& target_;
  const ConformanceOptions& options_;
  CheckReport report_;
  std::set<std::string> seen_;
  int step_ = 0;
  std::vector<Value> now_;
  std::vector<Move> moves_;
  std::vector<double> ratios_;
  std::vector<double> exact_;
};

template <Target T>
CheckReport check_target(const T& target, const ConformanceOptions& options = {}) {
  return ConformanceCheck<T>(target, options).run();
}

}  // namespace poise
