/// The sampler `auto` on user targets: what their calls cost, where short runs of others begin, and what stops them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <poise/extend/models/batch_function.hpp>
#include <poise/model.hpp>
#include <poise/report.hpp>
#include <poise/run.hpp>
#include <poise/sampler.hpp>
#include "engines/rows.hpp"
#include "models/user/batch_target.hpp"
#include "run/quench.hpp"
#include "run/recommend.hpp"
#include "run/start.hpp"

namespace poise::auto_user_test {

/// Spins in a chain by user code, with all log ratios in one call.
class CheapRatios : public BatchFunction {
 public:
  void log_prob(std::span<const Value> rows, std::span<double> out) override {
    const std::size_t n = rows.size() / out.size();
    for (std::size_t r = 0; r < out.size(); ++r) {
      if (++evaluated > stop_after) throw RunStopped{};
      out[r] = 0.0;
      for (std::size_t i = 0; i + 1 < n; ++i) out[r] += rows[r * n + i] == rows[r * n + i + 1] ? 0.7 : 0.0;
    }
  }
  [[nodiscard]] bool has_log_ratios() const override { return true; }
  void log_ratios(std::span<const Value> rows, std::span<double> out) override {
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const std::size_t i = k % variables;
      const auto change = [&](std::size_t other) { return rows[k] == rows[other] ? -0.7 : 0.7; };
      out[k] = (i > 0 ? change(k - 1) : 0.0) + (i + 1 < variables ? change(k + 1) : 0.0);
    }
  }
  std::size_t variables = 20;
  std::uint64_t evaluated = 0;
  std::uint64_t stop_after = std::numeric_limits<std::uint64_t>::max();
};

/// Log ratios by as many calls of a costly log p as there are variables.
class CostlyRatios final : public CheapRatios {
 public:
  void log_prob(std::span<const Value> rows, std::span<double> out) override {
    for (std::size_t k = 0; k < 1000 * out.size(); ++k) work_ = work_ + 1.0;
    CheapRatios::log_prob(rows, out);
  }
  void log_ratios(std::span<const Value> rows, std::span<double> out) override {
    const std::size_t count = rows.size() / variables;
    std::vector<double> here(count), there(count);
    log_prob(rows, here);
    for (std::size_t i = 0; i < variables; ++i) {
      std::vector<Value> changed(rows.begin(), rows.end());
      for (std::size_t r = 0; r < count; ++r) changed[r * variables + i] ^= 1;
      log_prob(changed, there);
      for (std::size_t r = 0; r < count; ++r) out[r * variables + i] = there[r] - here[r];
    }
  }

 private:
  volatile double work_ = 0.0;
};

Model user_model(const std::shared_ptr<CheapRatios>& function, Index variables = 20) {
  function->variables = variables;
  return callback_model("spins", {std::vector<Index>(variables, 2), {}}, function, {});
}

RunOptions options_of(std::size_t chains, std::size_t draws) {
  RunOptions options;
  options.chains = chains;
  options.draws = draws;
  options.threads = 1;
  options.seed = 3;
  return options;
}

RunResult run_auto(const Model& model, const RunOptions& options) { return run(model, parse_sampler("auto"), options); }

TEST(AutoUser, RatiosThatCostAsMuchAsASweepAreNotWorthIt) {
  const Model model = user_model(std::make_shared<CostlyRatios>(), 30);
  RunOptions options = options_of(4, 100);
  EXPECT_NE(run_auto(model, options).sampler, "gibbs");  // the clock decides nothing without a limit
  options.seconds = 1000.0;
  const auto gibbs_wins = [&](const Model& which) {
    const Advice advice = recommend(which, options, true);
    Watcher watcher(advice, which, options, 30, 6000);
    const TunableEngine made = make_engine(which, advice.sampler, engine_options(which, options));
    for (std::uint64_t step = 0;;) {
      const std::uint64_t steps = watcher.steps_left(step);
      for (const ChainGroup& group : made.engine->share_out(1)) made.engine->advance(group, steps);
      const Watcher::Verdict verdict = watcher.look(*made.engine, step += steps, 0.01);
      if (verdict == Watcher::Verdict::undecided) continue;
      return verdict == Watcher::Verdict::replace && watcher.replacement().sampler.name == "gibbs";
    }
  };
  EXPECT_TRUE(gibbs_wins(model));
  EXPECT_FALSE(gibbs_wins(user_model(std::make_shared<CheapRatios>(), 30)));
}

/// Spins that are possible only where the first two agree.
class Agreeing final : public CheapRatios {
 public:
  void log_prob(std::span<const Value> rows, std::span<double> out) override {
    CheapRatios::log_prob(rows, out);
    for (std::size_t r = 0; r < out.size(); ++r) {
      if (rows[r * variables] != rows[r * variables + 1]) out[r] = -std::numeric_limits<double>::infinity();
    }
  }
  void log_ratios(std::span<const Value> rows, std::span<double> out) override {
    CheapRatios::log_ratios(rows, out);
    for (std::size_t first = 0; first < rows.size(); first += variables) {
      out[first] = out[first + 1] = -std::numeric_limits<double>::infinity();
    }
  }
};

TEST(AutoUser, RivalsBeginWhereTheChainsAre) {
  RunOptions options = options_of(4, 100);
  options.start = Start::given;
  options.given.assign(30, 1);
  const RunResult result = run_auto(user_model(std::make_shared<Agreeing>(), 30), options);
  EXPECT_EQ(result.trace.draws, 100U);
}

TEST(AutoUser, UserCodeMayStopAShortRunOfARival) {
  for (const std::uint64_t last : {1100U, 2000U, 3000U}) {
    const auto function = std::make_shared<CostlyRatios>();
    function->stop_after = last;
    RunOptions options = options_of(4, 500);
    options.seconds = 1000.0;
    const RunResult result = run_auto(user_model(function), options);
    EXPECT_TRUE(result.interrupted);
  }
}

/// Two modes as far apart as can be, each a product of twenty coins that fall on their side nearly always, and what
/// user code may give besides log p.
enum class Gives { nothing, gradient, log_ratios };
class TwoModes final : public BatchFunction {
 public:
  static constexpr std::size_t kVariables = 20;
  explicit TwoModes(Gives gives) : gives_(gives) {}
  [[nodiscard]] bool has_gradient() const override { return gives_ == Gives::gradient; }
  [[nodiscard]] bool has_log_ratios() const override { return gives_ == Gives::log_ratios; }
  void log_prob(std::span<const Value> rows, std::span<double> out) override {
    for (std::size_t r = 0; r < out.size(); ++r) out[r] = of(balance(rows.subspan(r * kVariables, kVariables)));
  }
  void log_ratios(std::span<const Value> rows, std::span<double> out) override {
    for (int k = 0; k < work; ++k) worked_ = worked_ + 1.0;
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const double here = balance(rows.subspan(k - k % kVariables, kVariables));
      out[k] = of(here - 2.0 * side(rows[k], k)) - of(here);
    }
  }
  void gradient(std::span<const Value> rows, std::span<double> log_p, std::span<double> out) override {
    log_prob(rows, log_p);
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const double here = balance(rows.subspan(k - k % kVariables, kVariables));
      out[k] = 2.0 * kField * std::tanh(kField * here) * (k % 2 == 0 ? 1.0 : -1.0);
    }
  }
  int work = 0;  ///< of a call for all ratios

 private:
  static constexpr double kField = 1.5;
  static double side(Value level, std::size_t k) { return (level == 1) == (k % 2 == 0) ? 1.0 : -1.0; }
  static double balance(std::span<const Value> row) {
    double sum = 0.0;
    for (std::size_t i = 0; i < row.size(); ++i) sum += side(row[i], i);
    return sum;
  }
  static double of(double balance) { return std::log(std::cosh(kField * balance)); }
  Gives gives_;
  volatile double worked_ = 0.0;
};

TEST(AutoUser, ChainsMayAllHaveEndedInOneOfTwoModes) {
  // Two chains are in the same one with probability 1/2, and agree.
  for (const Gives gives : {Gives::nothing, Gives::gradient, Gives::log_ratios}) {
    const Model model = callback_model("two modes", {std::vector<Index>(TwoModes::kVariables, 2), {}},
                                       std::make_shared<TwoModes>(gives), {});
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      RunOptions options = options_of(2, 20);
      options.seed = seed;
      EXPECT_EQ(run_auto(model, options).sampler, "temper") << seed;
    }
  }
}

TEST(AutoUser, WhatCostsLessIsWatchedToo) {
  // Ratios cost more than a sweep of calls, so Gibbs replaces `lb` at once. Both chains end in the same mode.
  const auto function = std::make_shared<TwoModes>(Gives::log_ratios);
  function->work = 300000;
  const Model model = callback_model("two modes", {std::vector<Index>(TwoModes::kVariables, 2), {}}, function, {});
  RunOptions options = options_of(2, 20);
  options.seed = 2;
  options.warmup = 100;
  options.seconds = 1000.0;
  const auto finished = [](poise::Run& run) {
    run.warm_up();
    run.sample(5);
    return run.finish();
  };
  std::vector<std::string> saved;
  RunHooks hooks;
  hooks.after_round = [&](const poise::Run& run) { saved.push_back(run.save()); };
  poise::Run whole(model, parse_sampler("auto"), options, hooks);
  const RunResult result = finished(whole);
  EXPECT_EQ(result.sampler, "temper");
  ASSERT_GT(saved.size(), 60U);
  poise::Run resumed(model, parse_sampler("auto"), options);
  resumed.load(saved[40]);  // Gibbs is watched
  const RunResult again = finished(resumed);
  EXPECT_EQ(again.sampler, "temper");
  EXPECT_EQ(again.trace.x, result.trace.x);
}

/// log p as a function of one row.
class OfRows final : public BatchFunction {
 public:
  using Row = std::function<double(std::span<const Value>)>;
  explicit OfRows(Row row) : row_(std::move(row)) {}
  void log_prob(std::span<const Value> rows, std::span<double> out) override {
    const std::size_t n = rows.size() / out.size();
    for (std::size_t r = 0; r < out.size(); ++r) out[r] = row_(rows.subspan(r * n, n));
  }

 private:
  Row row_;
};

Model of_rows(Index variables, OfRows::Row row) {
  return callback_model("rows", {std::vector<Index>(variables, 2), {}}, std::make_shared<OfRows>(std::move(row)), {});
}

double ones(std::span<const Value> x) { return static_cast<double>(std::count(x.begin(), x.end(), 1)); }

TEST(AutoUser, ColdChainsFindThePhaseThatRandomStatesDoNotLeadTo) {
  // m^3 of 150 spins at its first-order transition: from random states m stays near 0.
  constexpr Index kVariables = 150;
  const Model model = of_rows(kVariables, [](std::span<const Value> x) {
    const double m = 2.0 * ones(x) - kVariables;
    return 0.68 * m * m * m / (kVariables * kVariables);
  });
  const std::vector<Value> states = quenched_states(model, {.chains = 4, .seed = 1});
  ASSERT_EQ(states.size(), 4U * kVariables);
  EXPECT_GT(ones(states), 0.7 * 4.0 * kVariables);
  EXPECT_EQ(quenched_states(model, {.chains = 4, .seed = 1}), states);
  RunOptions options = options_of(4, 50);
  options.seed = 1;
  EXPECT_EQ(run_auto(model, options).sampler, "temper");
}

TEST(AutoUser, ChainsBeginInDifferentPartsOfTheSupport) {
  const Model model = of_rows(30, [](std::span<const Value> x) {
    return ones(x) <= 3.0 || ones(x) >= 27.0 ? 0.0 : -std::numeric_limits<double>::infinity();
  });
  const poise::Run run(model, parse_sampler("gibbs"), options_of(4, 10));
  const std::vector<Value> states = run.states();
  EXPECT_NE(std::vector<Value>(states.begin(), states.begin() + 30),
            std::vector<Value>(states.begin() + 30, states.begin() + 60));
}

TEST(AutoUser, VariablesThatOnlyChangeTogetherAreStuck) {
  // Pairs that agree, and sums of four that are even: what two changes lead to, and what only more do.
  const auto possible = [](bool is) { return is ? 0.0 : -std::numeric_limits<double>::infinity(); };
  const OfRows::Row pairs = [=](std::span<const Value> x) {
    bool all = true;
    for (std::size_t i = 0; i < x.size(); i += 2) all = all && x[i] == x[i + 1];
    return possible(all);
  };
  const OfRows::Row halves = [=](std::span<const Value> x) { return possible(ones(x) == 0.0 || ones(x) == 16.0); };
  for (const OfRows::Row& row : {pairs, halves}) {
    RunOptions options = options_of(4, 100);
    options.start = Start::zeros;
    const Report report = make_report(run(of_rows(16, row), parse_sampler("gibbs"), options));
    ASSERT_FALSE(report.warnings.empty());
    EXPECT_EQ(report.warnings.front().code, "stuck");
  }
}

TEST(AutoUser, VariablesThatCodeFixesAreCertain) {
  // Four variables have one possible level each; the others are free, and their states are too many to be enumerated.
  const Model model = of_rows(30, [](std::span<const Value> x) {
    const bool possible = x[0] == 0 && x[7] == 1 && x[8] == 1 && x[29] == 0;
    return possible ? 0.0 : -std::numeric_limits<double>::infinity();
  });
  const Report report = make_report(run(model, parse_sampler("gibbs"), options_of(4, 400)));
  EXPECT_TRUE(report.warnings.empty());
  EXPECT_NE(report.certain.find("x[0], x[7], x[8] and 1 more never changed"), std::string::npos) << report.certain;
}

TEST(AutoUser, VariablesThatChangeInLargerGroupsOnlyAreStuck) {
  // Four variables that agree, among others that are free.
  const Model model = of_rows(30, [](std::span<const Value> x) {
    const bool possible = x[0] == x[7] && x[7] == x[8] && x[8] == x[29];
    return possible ? 0.0 : -std::numeric_limits<double>::infinity();
  });
  RunOptions options = options_of(4, 400);
  options.start = Start::zeros;
  const Report report = make_report(run(model, parse_sampler("gibbs"), options));
  ASSERT_FALSE(report.warnings.empty());
  EXPECT_EQ(report.warnings.front().code, "stuck");
  EXPECT_NE(report.warnings.front().sentence().find("have a probability of about 0.5"), std::string::npos);
}

TEST(AutoUser, LaddersInOnePartOfASmallSupportAreFound) {
  // Few ones or many; no ladder crosses what is between them. 2^10 states, and 4 x 1000 sweeps of ten variables.
  const Model model = of_rows(10, [](std::span<const Value> x) {
    return ones(x) <= 2.0 || ones(x) >= 8.0 ? 0.3 * x[0] : -std::numeric_limits<double>::infinity();
  });
  RunOptions options = options_of(4, 1000);
  options.start = Start::zeros;
  const Report report = make_report(run(model, parse_sampler("temper"), options));
  ASSERT_FALSE(report.warnings.empty());
  EXPECT_EQ(report.warnings.front().code, "disagreement");
}

TEST(AutoUser, SmallTargetsAreComparedWithAllTheirStates) {
  // Two modes; both chains begin in the one with a twentieth of the probability and stay.
  const Model model = of_rows(8, [](std::span<const Value> x) {
    const double count = ones(x);
    return std::log(std::exp(-20.0 * count) + 19.0 * std::exp(-20.0 * (8.0 - count)));
  });
  RunOptions options = options_of(2, 1000);
  options.start = Start::zeros;
  const Report report = make_report(run(model, parse_sampler("gibbs"), options));
  ASSERT_FALSE(report.warnings.empty());
  EXPECT_EQ(report.warnings.front().code, "stuck");
}

}  // namespace poise::auto_user_test
