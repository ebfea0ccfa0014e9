/// Targets that are computed elsewhere: turns, requests gathered into calls, exactness of every kernel on them.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include <poise/diagnose.hpp>
#include <poise/marginals.hpp>
#include <poise/run.hpp>
#include "base/fiber_scheduler.hpp"
#include "models/user/batch_target.hpp"
#include "support/dense_exactness.hpp"
#include "support/input.hpp"
#include "support/many_exactness.hpp"
#include "support/table_target.hpp"

namespace poise::batch_target_test {

using namespace poise::testing;

static_assert(GradientTarget<BatchTarget>);
static_assert(BlockTarget<BatchTarget>);
static_assert(MemoisingTarget<BatchTarget>);
static_assert(SingleThreadTarget<BatchTarget>);

enum class Offers { log_prob, gradient, one_hot, log_ratios };

/// A table behind the interface of user code, which counts how it is called.
class TableFunction : public BatchFunction {
 public:
  TableFunction(TableTarget table, Offers offers) : table_(std::move(table)), offers_(offers) {}

  void log_prob(std::span<const Value> rows, std::span<double> out) override {
    ++calls;
    for (std::size_t r = 0; r < out.size(); ++r) out[r] = table_.log_prob(row(rows, r));
    evaluated += out.size();
    if (fail_after != 0 && calls >= fail_after) throw std::domain_error("the user's own error");
    if (stop_after != 0 && calls >= stop_after) throw RunStopped{};
  }
  [[nodiscard]] bool has_gradient() const override { return offers_ == Offers::gradient || one_hot(); }
  [[nodiscard]] bool one_hot() const override { return offers_ == Offers::one_hot; }
  /// Any function of the state will do: acceptance makes up for it.
  void gradient(std::span<const Value> rows, std::span<double> log_prob, std::span<double> out) override {
    this->log_prob(rows, log_prob);
    const std::size_t width = out.size() / log_prob.size();
    for (std::size_t r = 0; r < log_prob.size(); ++r) {
      double hash = 1.0;
      for (const Value level : row(rows, r).x) hash = 3.0 * hash + level;
      for (std::size_t k = 0; k < width; ++k) out[r * width + k] = std::sin(hash + static_cast<double>(k));
    }
  }
  [[nodiscard]] bool has_log_ratios() const override { return offers_ == Offers::log_ratios; }
  void log_ratios(std::span<const Value> rows, std::span<double> out) override {
    ++calls;
    const std::size_t moves = table_.num_moves();
    for (std::size_t r = 0; r * moves < out.size(); ++r) table_.log_ratios(row(rows, r), out.subspan(r * moves, moves));
  }

  std::size_t calls = 0;
  std::size_t evaluated = 0;
  std::size_t fail_after = 0;
  std::size_t stop_after = 0;

 private:
  TableTarget::State row(std::span<const Value> rows, std::size_t r) {
    return table_.make_state(rows.subspan(r * table_.num_variables(), table_.num_variables()));
  }
  TableTarget table_;
  Offers offers_;
};

struct Case {
  std::vector<Index> cardinalities;
  Index zero_every;
};

BatchShape shape_of(const std::vector<Index>& cardinalities) { return {cardinalities, {}}; }

BatchTarget small(const Case& which, Offers offers) {
  auto function =
      std::make_shared<TableFunction>(TableTarget::random(which.cardinalities, 2.5, 5, which.zero_every), offers);
  return {shape_of(which.cardinalities), function};
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {{{2, 2, 2, 2, 2}, 0}, {{3, 2, 1, 4, 2}, 0}, {{2, 3, 2, 3}, 7}};
  return all;
}

TEST(BatchTarget, EveryKernelIsExact) {
  for (const Case& which : cases()) {
    expect_dense_balance(small(which, Offers::log_prob), Ratios::exact);
    expect_dense_balance(small(which, Offers::log_ratios), Ratios::exact);
    expect_dense_balance(small(which, Offers::gradient), Ratios::first_order);
    expect_dense_balance(small(which, Offers::one_hot), Ratios::first_order);
    expect_invariant(small(which, Offers::log_prob));
    expect_factorised_balance(small(which, Offers::gradient), Ratios::first_order);
    expect_factorised_balance(small(which, Offers::one_hot), Ratios::first_order);
    expect_factorised_balance(small(which, Offers::log_ratios), Ratios::exact);
    expect_path_balance(small(which, Offers::one_hot), Ratios::first_order);
    for (const Index size : {1U, 2U, 3U}) {
      expect_block_gibbs_invariant(small(which, Offers::log_prob), size);
      expect_ball_invariant(small(which, Offers::log_prob), size, 1);
      expect_ball_invariant(small(which, Offers::log_prob), size, 2);
    }
  }
}

TEST(BatchTarget, RatiosAreThoseOfTheTable) {
  for (const Case& which : cases()) {
    const TableTarget table = TableTarget::random(which.cardinalities, 2.5, 5, which.zero_every);
    const BatchTarget target = small(which, Offers::log_prob);
    for (const Levels& x : all_states(table)) {
      auto state = target.make_state(x);
      const auto expected = table.make_state(x);
      if (!std::isfinite(table.log_prob(expected))) continue;
      for (Index m = 0; m < target.num_moves(); ++m) {
        const Move move = target.move_at(state, m);
        ASSERT_EQ(move.variable, table.move_at(expected, m).variable);
        ASSERT_EQ(move.value, table.move_at(expected, m).value);
        ASSERT_EQ(target.log_ratio(state, move), table.log_ratio(expected, move));
      }
      ASSERT_EQ(target.log_prob(state), table.log_prob(expected));
      const Move move = target.move_at(state, target.num_moves() - 1);
      target.apply(state, move);
      auto after = expected;
      table.apply(after, move);
      ASSERT_EQ(target.log_prob(state), table.log_prob(after));
    }
  }
}

TEST(BatchTarget, FirstOrderRatiosUseTheLabels) {
  class Slopes : public BatchFunction {
    void log_prob(std::span<const Value>, std::span<double> out) override { std::fill(out.begin(), out.end(), 0.0); }
    [[nodiscard]] bool has_gradient() const override { return true; }
    void gradient(std::span<const Value>, std::span<double> log_prob, std::span<double> out) override {
      std::fill(log_prob.begin(), log_prob.end(), 0.0);
      for (std::size_t k = 0; k < out.size(); ++k) out[k] = 1.0 + static_cast<double>(k);
    }
  };
  const BatchTarget target({{2, 3}, {-1.0, 1.0, 5.0}}, std::make_shared<Slopes>());
  const auto state = target.make_state(Levels{1, 0});
  std::vector<double> out(3);
  const BatchTarget::State* states[] = {&state};
  double* outs[] = {out.data()};
  target.first_order_log_ratios(states, outs);
  EXPECT_EQ(out, (std::vector<double>{-2.0, 4.0, 12.0}));
}

/// A model of user code, and a way to look at how it was called.
struct UserModel {
  std::shared_ptr<TableFunction> function;
  Model model;
};

UserModel user_model(const Case& which, Offers offers) {
  auto function =
      std::make_shared<TableFunction>(TableTarget::random(which.cardinalities, 1.5, 5, which.zero_every), offers);
  Model model = callback_model("mine", shape_of(which.cardinalities), function, {});
  return {std::move(function), std::move(model)};
}

const std::vector<std::string>& samplers() {
  static const std::vector<std::string> all = {"lb:g=sqrt",           "gwg",          "gibbs",       "gibbs:block=2",
                                               "hb:block=3,radius=1", "dlmc:tau=0.5", "pas:radius=1"};
  return all;
}

TEST(BatchRun, ChainsTogetherAreTheChainsAlone) {
  for (const Case& which : {cases()[0], cases()[1]}) {
    for (const std::string& name : samplers()) {
      RunOptions options{.chains = 5, .warmup = 3, .draws = 20, .seed = 7};
      const RunResult together = run(user_model(which, Offers::gradient).model, parse_sampler(name), options);
      ASSERT_EQ(together.trace.draws, 20U);
      options.chains = 1;
      const std::size_t values = 20 * which.cardinalities.size();
      for (std::size_t c = 0; c < 5; ++c) {
        options.first_chain = c;
        const RunResult alone = run(user_model(which, Offers::gradient).model, parse_sampler(name), options);
        EXPECT_TRUE(std::equal(alone.trace.x.begin(), alone.trace.x.end(),
                               together.trace.x.begin() + static_cast<std::ptrdiff_t>(c * values)))
            << name << " chain " << c;
      }
    }
  }
}

TEST(BatchRun, AStepIsOneCallForAllChains) {
  for (const auto& [name, rows] : std::vector<std::pair<std::string, std::size_t>>{
           {"gwg", 1}, {"dlmc:tau=0.5", 1}, {"lb:g=sqrt", 6}, {"hb:block=3,radius=1", 4}, {"gibbs:block=2", 4}}) {
    const UserModel user = user_model(cases()[0], Offers::gradient);
    const RunResult result = run(user.model, parse_sampler(name), {.chains = 8, .warmup = 0, .draws = 1, .thin = 60});
    // Besides the steps: the first look at each chain by itself, and log p of the draw where the kernel needs none.
    EXPECT_LE(user.function->calls, 60U + 2 * 8 + 1) << name;
    EXPECT_LE(user.function->evaluated, 8 * (rows * 60 + 2 * 6 + 2)) << name;
    EXPECT_EQ(result.steps, 8U * 60);
  }
  // A sweep of Gibbs asks once per variable.
  const UserModel user = user_model(cases()[1], Offers::log_prob);
  run(user.model, parse_sampler("gibbs"), {.chains = 8, .warmup = 0, .draws = 10});
  EXPECT_LE(user.function->calls, 10U * 4 + 8 + 1);
  EXPECT_LE(user.function->evaluated, 8U * 10 * (2 + 1 + 3 + 1) + 8 * 2);
}

TEST(BatchRun, LearnedSamplersLearn) {
  for (const std::string name : {"lsb", "lsb1", "lsb2", "flsb", "flsb1", "flsb:schedule=paper", "dlsb", "dlmc"}) {
    const UserModel user = user_model(cases()[1], Offers::one_hot);
    const RunResult result = run(user.model, parse_sampler(name), {.chains = 4, .warmup = 50, .draws = 50});
    EXPECT_EQ(result.trace.draws, 50U) << name;
    EXPECT_TRUE(std::isfinite(result.objective)) << name;
  }
}

TEST(BatchRun, MeansAreThoseOfTheTable) {
  const Case& which = cases()[1];
  const TableTarget table = TableTarget::random(which.cardinalities, 1.5, 5);
  const auto states = all_states(table);
  const auto p = probabilities(table, states);
  double expected = 0.0;
  for (std::size_t s = 0; s < states.size(); ++s) expected += p[s] * states[s][3];
  for (const std::string& name : samplers()) {
    const RunResult result = run(user_model(which, Offers::gradient).model, parse_sampler(name),
                                 {.chains = 16, .warmup = 20, .draws = 2000});
    std::vector<double> values;
    for (std::size_t k = 3; k < result.trace.x.size(); k += 5) values.push_back(result.trace.x[k]);
    const ChainsView view{values.data(), 16, 2000};
    double mean = 0.0;
    for (const double value : values) mean += value / static_cast<double>(values.size());
    EXPECT_LT(std::abs(mean - expected) / mcse_mean(view), 6.0) << name;
  }
}

// Conditional probabilities come from log_ratios where the target has them, and from log p of all neighbours elsewhere.
TEST(BatchRun, AveragesConditionalsAsNetworksDo) {
  for (const Case& which : cases()) {
    const TableTarget table = TableTarget::random(which.cardinalities, 1.5, 5, which.zero_every);
    const StateSpace exact = enumerate_states(table);
    for (const Offers offers : {Offers::log_ratios, Offers::log_prob}) {
      for (const std::string name : {"gibbs", "lb:g=sqrt", "temper"}) {
        const UserModel user = user_model(which, offers);
        RunOptions options{.chains = 8, .warmup = 100, .draws = 1000};
        options.rao_blackwell = true;
        const RunResult result = run(user.model, parse_sampler(name), options);
        const RunMarginals found = marginals_of(result, make_report(result));
        for (Index i = 0; i < which.cardinalities.size(); ++i) {
          for (Index k = 0; k < which.cardinalities[i]; ++k) {
            double truth = 0.0;
            for (std::size_t s = 0; s < exact.states.size(); ++s) {
              truth += exact.states[s][i] == k ? exact.probabilities[s] : 0.0;
            }
            EXPECT_NEAR(found.marginals.of(i)[k], truth, 6.0 * found.mcse.of(i)[k] + 1e-12) << name << ' ' << i;
            EXPECT_LT(found.mcse.of(i)[k], 0.03);
          }
        }
      }
    }
  }
}

TEST(BatchRun, AnErrorOfTheUserEndsTheRunAndComesOut) {
  for (const std::string name : {"gwg", "gibbs", "lsb"}) {
    const UserModel user = user_model(cases()[0], Offers::gradient);
    user.function->fail_after = 50;
    EXPECT_THROW(run(user.model, parse_sampler(name), {.chains = 4}), std::domain_error) << name;
    // Nothing is left hanging: the same model runs again.
    user.function->fail_after = 0;
    EXPECT_EQ(run(user.model, parse_sampler(name), {.chains = 4, .warmup = 5, .draws = 5}).trace.draws, 5U);
  }
}

TEST(BatchRun, AnInterruptionKeepsWhatWasDrawn) {
  const UserModel user = user_model(cases()[0], Offers::gradient);
  user.function->stop_after = 2000;
  const RunResult result = run(user.model, parse_sampler("gwg"), {.chains = 3, .warmup = 10, .draws = 1000});
  EXPECT_TRUE(result.interrupted);
  EXPECT_GT(result.trace.draws, 300U);
  EXPECT_LT(result.trace.draws, 400U);
  EXPECT_EQ(result.trace.x.size(), 3 * result.trace.draws * 5);

  user.function->calls = 0;
  user.function->stop_after = 20;
  const RunResult early = run(user.model, parse_sampler("lsb"), {.chains = 3, .warmup = 100, .draws = 1000});
  EXPECT_TRUE(early.interrupted);
  EXPECT_EQ(early.trace.draws, 0U);
}

TEST(BatchRun, SaysWhatASamplerLacks) {
  const UserModel user = user_model(cases()[0], Offers::log_prob);
  EXPECT_EQ(refusal([&] { run(user.model, parse_sampler("gwg"), {}); }),
            "the sampler 'gwg' needs the gradient of log p, and this target has none");
  EXPECT_NE(refusal([&] { run(user.model, parse_sampler("wolff"), {}); }).find("take Ising and Potts models only"),
            std::string::npos);
}

TEST(BatchRun, ChainsMayBeginAtStatesOfTheirOwn) {
  const UserModel user = user_model(cases()[0], Offers::log_prob);
  RunOptions options{.chains = 2, .warmup = 0, .draws = 1, .thin = 1};
  options.start = Start::given;
  options.given = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1};
  const RunResult result = run(user.model, parse_sampler("lb:g=min"), options);
  int ones[2] = {0, 0};
  for (int c = 0; c < 2; ++c) {
    for (int i = 0; i < 5; ++i) ones[c] += result.trace.x[static_cast<std::size_t>(5 * c + i)];
  }
  EXPECT_LE(ones[0], 1);
  EXPECT_GE(ones[1], 4);
  options.given.pop_back();
  EXPECT_NE(refusal([&] { run(user.model, parse_sampler("gibbs"), options); }).find("has 9 values"), std::string::npos);
}

TEST(FiberScheduler, OneServiceAnswersAll) {
  std::vector<std::size_t> asked;
  std::vector<std::size_t> services;
  FiberScheduler turns(
      [&] {
        services.push_back(asked.size());
        asked.clear();
      },
      [] {});
  std::vector<int> rounds(3, 0);
  turns.for_each(3, [&](std::size_t index) {
    for (std::size_t round = 0; round <= index; ++round) {
      asked.push_back(index);
      turns.wait();
      ++rounds[index];
    }
  });
  EXPECT_EQ(services, (std::vector<std::size_t>{3, 2, 1}));
  EXPECT_EQ(rounds, (std::vector<int>{1, 2, 3}));
  turns.wait();  // outside, it is served at once
  EXPECT_EQ(services.size(), 4U);
  turns.for_each(0, [](std::size_t) {});
}

TEST(FiberScheduler, AFailureEndsAllTurns) {
  bool fail = false;
  int forgotten = 0;
  FiberScheduler turns(
      [&] {
        if (fail) throw std::domain_error("service");
      },
      [&] { ++forgotten; });
  struct Witness {
    int& count;
    ~Witness() { ++count; }
  };
  int unwound = 0;
  const auto work = [&](std::size_t index) {
    const Witness witness{unwound};
    turns.wait();
    if (index == 1) throw std::out_of_range("turn");
    turns.wait();
  };
  EXPECT_THROW(turns.for_each(4, work), std::out_of_range);
  EXPECT_EQ(unwound, 4);
  fail = true;
  EXPECT_THROW(turns.for_each(4, work), std::domain_error);
  EXPECT_EQ(unwound, 8);
  EXPECT_EQ(forgotten, 2);
  // Fibers of fibers too.
  EXPECT_THROW(turns.for_each(2, [&](std::size_t) { turns.for_each(2, work); }), std::domain_error);
  EXPECT_EQ(unwound, 12);
  EXPECT_EQ(forgotten, 3);
}

TEST(FiberScheduler, FibersThatAFiberAddsAreServedWithTheOthers) {
  int asked = 0;
  std::vector<int> served;
  FiberScheduler turns(
      [&] {
        if (asked > 0) served.push_back(std::exchange(asked, 0));
      },
      [] {});
  std::vector<int> done(3, 0);
  turns.for_each(3, [&](std::size_t outer) {
    for (int round = 0; round < 2; ++round) {
      turns.for_each(5, [&](std::size_t) {
        ++asked;
        turns.wait();
        ++done[outer];
      });
      EXPECT_EQ(done[outer], 5 * (round + 1));
    }
  });
  EXPECT_EQ(served, (std::vector<int>{15, 15}));
}

TEST(FiberScheduler, MoreFibersThanTheSystemHasStacksFor) {
  FiberScheduler turns([] {}, [] {});
  std::size_t done = 0;
  turns.for_each(2500, [&](std::size_t) {
    turns.for_each(16, [&](std::size_t) {
      turns.wait();
      ++done;
    });
  });
  EXPECT_EQ(done, 40000U);
}

/// Whoever is asked cannot ask the same chains again.
TEST(FiberScheduler, RefusesToBeginAnewInsideOfItsService) {
  FiberScheduler* again = nullptr;
  FiberScheduler turns([&] { again->for_each(1, [](std::size_t) {}); }, [] {});
  again = &turns;
  EXPECT_THROW(turns.for_each(1, [&](std::size_t) { turns.wait(); }), std::runtime_error);
}

}  // namespace poise::batch_target_test
