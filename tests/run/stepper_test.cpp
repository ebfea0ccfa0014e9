/// Chains in the hands of the caller make the steps of a run.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include <poise/stepper.hpp>
#include "models/user/batch_target.hpp"
#include "support/input.hpp"

namespace poise::stepper_test {

using namespace poise::testing;

TEST(Stepper, MakesTheStepsOfARun) {
  for (const std::string sampler : {"lb:g=sqrt", "gibbs", "hb:block=4,radius=1", "dlmc:tau=0.2"}) {
    const Model model = make_model("ising:size=6,lambda=0.4");
    const RunOptions options{.chains = 3, .warmup = 0, .draws = 5, .thin = 7, .seed = 3};
    const RunResult result = run(model, parse_sampler(sampler), options);
    Stepper stepper(model, parse_sampler(sampler), options);
    for (std::size_t draw = 0; draw < 5; ++draw) {
      stepper.step(7);
      const std::vector<Value> states = stepper.states();
      const std::vector<double> log_prob = stepper.log_prob();
      for (std::size_t c = 0; c < 3; ++c) {
        EXPECT_EQ(log_prob[c], result.trace.monitors[0][c * 5 + draw]) << sampler;
        for (std::size_t i = 0; i < 36; ++i) {
          ASSERT_EQ(model.layout.label(states[c * 36 + i]), result.trace.x[(c * 5 + draw) * 36 + i]) << sampler;
        }
      }
    }
    EXPECT_GT(stepper.acceptance_rate(), 0.0);
    EXPECT_LE(stepper.acceptance_rate(), 1.0);
    EXPECT_GT(stepper.evals().ratio, 0U);
  }
}

/// Two variables that prefer what `preferred` says.
class Moody : public BatchFunction {
 public:
  void log_prob(std::span<const Value> rows, std::span<double> out) override {
    for (std::size_t r = 0; r < out.size(); ++r) {
      out[r] = 0.0;
      for (std::size_t i = 0; i < 2; ++i) out[r] += rows[2 * r + i] == preferred ? 20.0 : 0.0;
    }
  }
  Value preferred = 1;
};

TEST(Stepper, NoticesAChangedTarget) {
  const auto moody = std::make_shared<Moody>();
  Stepper stepper(callback_model("moody", {{2, 2}, {}}, moody, {}), parse_sampler("lb:g=sqrt"), {.chains = 4});
  stepper.step(20);
  EXPECT_EQ(stepper.states(), std::vector<Value>(8, 1));
  moody->preferred = 0;
  stepper.target_changed();
  EXPECT_EQ(stepper.log_prob(), std::vector<double>(4, 0.0));
  stepper.step(20);
  EXPECT_EQ(stepper.states(), std::vector<Value>(8, 0));
}

/// Spins of a ring that like to be alike, more and more.
class Training : public BatchFunction {
 public:
  static constexpr std::size_t kSpins = 64;
  void log_prob(std::span<const Value> rows, std::span<double> out) override {
    for (std::size_t r = 0; r < out.size(); ++r) {
      out[r] = 0.0;
      for (std::size_t i = 0; i < kSpins; ++i) {
        out[r] += rows[r * kSpins + i] == rows[r * kSpins + (i + 1) % kSpins] ? coupling : 0.0;
      }
    }
  }
  [[nodiscard]] bool has_gradient() const override { return true; }
  void gradient(std::span<const Value> rows, std::span<double> log_p, std::span<double> out) override {
    log_prob(rows, log_p);
    for (std::size_t r = 0; r < log_p.size(); ++r) {
      const auto x = rows.subspan(r * kSpins, kSpins);
      for (std::size_t i = 0; i < kSpins; ++i) {
        out[r * kSpins + i] = coupling * (2.0 * (x[(i + 1) % kSpins] + x[(i + kSpins - 1) % kSpins]) - 2.0);
      }
    }
  }
  double coupling = 0.0;
};

TEST(Stepper, StepsOfManyChangesFollowATargetInTraining) {
  for (const std::string name : {"dlsb", "dlmc", "dmala"}) {
    const auto training = std::make_shared<Training>();
    Stepper stepper(callback_model("ring", {std::vector<Index>(Training::kSpins, 2), {}}, training, {}),
                    parse_sampler(name), {.chains = 8});
    for (int update = 0; update < 60; ++update) {
      training->coupling = 0.05 * update;
      stepper.target_changed();
      stepper.step(10);
    }
    // Near 3, two spins in hundreds differ from their neighbours, and a length for a flat target accepts nothing.
    const double before = stepper.acceptance_rate();
    const std::uint64_t steps = stepper.evals().gradient;
    EXPECT_GT(before, 0.3) << name;
    stepper.target_changed();
    stepper.step(200);
    const double now = (stepper.acceptance_rate() * 800.0 - before * 600.0) / 200.0;
    EXPECT_GT(now, 0.3) << name;  // steps that change nothing count as accepted
    EXPECT_GT(stepper.evals().gradient, steps);
  }
}

TEST(Stepper, TakesStatesAndRefusesWrongOnes) {
  Stepper stepper(make_model("ising:size=2,lambda=0.1"), parse_sampler("gibbs"), {.chains = 2});
  stepper.set_states(std::vector<Value>{0, 1, 0, 1, 1, 1, 1, 1});
  EXPECT_EQ(stepper.states(), (std::vector<Value>{0, 1, 0, 1, 1, 1, 1, 1}));
  EXPECT_EQ(refusal([&] { stepper.set_states(std::vector<Value>(7)); }),
            "the states are 7 values, expected 8: 2 chains of 4 variables");
  EXPECT_EQ(refusal([&] {
              stepper.set_states(std::vector<Value>{0, 1, 0, 1, 1, 2, 1, 1});
            }),
            "variable 1 of chain 1 is set to level 2, but it has only 2 levels");
}

TEST(Stepper, LearnsAndStops) {
  Stepper stepper(make_model("ising:size=8,lambda=0.3"), parse_sampler("lsb"), {.chains = 2});
  stepper.warm_up(64 * 20);
  int asked = 0;
  stepper.step(std::uint64_t{1} << 40, [&] { return ++asked < 3; });
  EXPECT_EQ(asked, 3);
  EXPECT_TRUE(std::isfinite(stepper.acceptance_rate()));
}

}  // namespace poise::stepper_test
