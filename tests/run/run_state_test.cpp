/// A run is an object: saved between any two rounds and loaded into a fresh one, it goes on bit by bit.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/run_cases.hpp"

namespace poise::run_state_test {

using namespace poise::testing;

RunOptions short_run() { return short_run_of(3); }

TEST(RunState, ARunThatIsSavedAndLoadedGoesOnBitByBit) {
  Rng choice(7, 7);
  for (const RunCase& which : run_cases()) {
    for (const std::string& name : which.samplers) {
      const Sampler sampler = parse_sampler(name);
      std::vector<std::string> saved;
      RunHooks hooks;
      hooks.after_round = [&](const poise::Run& run) { saved.push_back(run.save()); };
      poise::Run run(which.model, sampler, short_run(), hooks);
      saved.push_back(run.save());
      const RunResult whole = complete(run);
      ASSERT_GT(saved.size(), 2U) << which.name << " " << name;
      for (int k = 0; k < 5; ++k) {
        const auto round = k == 0 ? 0 : static_cast<std::size_t>(choice.uniform() * static_cast<double>(saved.size()));
        RunOptions options = short_run();
        options.threads = k % 2 == 0 ? 1 : 3;
        poise::Run other(which.model, sampler, options);
        other.load(saved[round]);
        expect_same(
            whole, complete(other),
            which.name + " " + name + ", round " + std::to_string(round) + " of " + std::to_string(saved.size()));
      }
    }
  }
}

TEST(RunState, DrawsDoNotDependOnHowTheyAreAskedFor) {
  const Model model = make_model("ising:size=6,lambda=0.5,mu=1,sigma=2,seed=3");
  poise::Run run(model, parse_sampler("lsb"), short_run());
  run.warm_up();
  for (const std::size_t draws : {1U, 7U, 0U, 32U}) run.sample(draws);
  expect_same(poise::run(model, parse_sampler("lsb"), short_run()), run.finish(), "in four goes");
}

TEST(RunState, AnotherRunsStateIsRefused) {
  const Model model = make_model("ising:size=6,lambda=0.5");
  poise::Run lsb(model, parse_sampler("lsb"), short_run());
  const std::string saved = lsb.save();
  poise::Run gibbs(model, parse_sampler("gibbs"), short_run());
  EXPECT_THROW(gibbs.load(saved), std::runtime_error);
  EXPECT_THROW(lsb.load(saved.substr(0, saved.size() / 2)), std::runtime_error);
  EXPECT_THROW(lsb.load(""), std::runtime_error);
}

TEST(RunState, NothingCanBeTunedOnceSamplingHasBegun) {
  poise::Run run(make_model("ising:size=6,lambda=0.5"), parse_sampler("lsb"), short_run());
  run.warm_up();
  run.sample(2);
  EXPECT_THROW(run.warm_up({.steps = 10}), std::logic_error);
}

}  // namespace poise::run_state_test
