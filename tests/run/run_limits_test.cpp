/// Limits of a run: where chains can start, what fits memory, how long warm-up is, what the clock allows.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <limits>
#include <memory>
#include <string>

#include <poise/marginals.hpp>
#include <poise/run.hpp>
#include "models/user/batch_target.hpp"
#include "support/input.hpp"
#include "support/small_networks.hpp"

namespace poise::run_limits_test {

using namespace poise::testing;

/// Other work on the machine takes nothing from these.
double processor_seconds_since(std::clock_t started) {
  return static_cast<double>(std::clock() - started) / CLOCKS_PER_SEC;
}

/// log p of states for which `inside` is true is the number of ones; the others have no probability.
class Somewhere final : public BatchFunction {
 public:
  explicit Somewhere(std::function<bool(std::span<const Value>)> inside) : inside_(std::move(inside)) {}
  void log_prob(std::span<const Value> rows, std::span<double> out) override {
    const std::size_t n = rows.size() / out.size();
    for (std::size_t r = 0; r < out.size(); ++r) {
      const auto row = rows.subspan(r * n, n);
      double ones = 0.0;
      for (const Value x : row) ones += x;
      out[r] = inside_(row) ? ones : -std::numeric_limits<double>::infinity();
    }
  }

 private:
  std::function<bool(std::span<const Value>)> inside_;
};

Model somewhere(Index variables, std::function<bool(std::span<const Value>)> inside) {
  return callback_model("somewhere", {std::vector<Index>(variables, 2), {}},
                        std::make_shared<Somewhere>(std::move(inside)), {});
}

double ones(std::span<const Value> x) {
  double sum = 0.0;
  for (const Value one : x) sum += one;
  return sum;
}

RunOptions few_draws() {
  RunOptions options;
  options.chains = 4;
  options.warmup = 5;
  options.draws = 20;
  return options;
}

TEST(Start, OtherStatesAreTriedWhereTheFirstHasNoProbability) {
  // Almost no random state is inside; the lowest levels are.
  const RunResult low = run(somewhere(30, [](auto x) { return ones(x) < 3; }), parse_sampler("gibbs"), few_draws());
  EXPECT_EQ(low.trace.draws, 20U);
  const RunResult high = run(somewhere(30, [](auto x) { return ones(x) > 27; }), parse_sampler("gibbs"), few_draws());
  EXPECT_EQ(high.trace.draws, 20U);
  // Neither extreme is inside, and one random state in eight.
  const auto odd = [](std::span<const Value> x) { return x[0] == 1 && x[1] == 0 && x[2] == 1; };
  EXPECT_EQ(run(somewhere(12, odd), parse_sampler("lb:g=sqrt"), few_draws()).trace.draws, 20U);
}

TEST(Start, ARefusalSaysWhatWasTried) {
  const std::string sentence =
      refusal([&] { run(somewhere(40, [](auto x) { return ones(x) == 7; }), parse_sampler("gibbs"), few_draws()); });
  EXPECT_TRUE(holds(sentence, "lowest and the highest level of every variable, and 110 random states were tried"))
      << sentence;
  RunOptions options = few_draws();
  options.start = Start::given;
  options.given.assign(30, 1);
  EXPECT_TRUE(
      holds(refusal([&] { run(somewhere(30, [](auto x) { return ones(x) < 3; }), parse_sampler("gibbs"), options); }),
            "the initial state has probability zero"));
}

TEST(Memory, EverythingThatADrawHoldsIsCounted) {
  const Model model = make_model("ising:size=2x4,lambda=0.1");
  RunOptions options;
  options.chains = 4;
  const auto accepted = [&](std::size_t draws, Keep keep, bool to_file) {
    options.draws = draws;
    options.keep = keep;
    return refusal([&] { options.check(model, to_file); }) == "(accepted)";
  };
  const double third = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE)) / 3.0;
  // Eight variables of two values are one byte; three monitors, acceptance and steps are forty more.
  const auto fits = static_cast<std::size_t>(third / 4.0 / 41.0);
  EXPECT_TRUE(accepted(fits - 2, Keep::draws, false));
  EXPECT_FALSE(accepted(fits + 2, Keep::draws, false));
  // Monitors are held as far as they fit, and what goes to a file need not be held.
  EXPECT_TRUE(accepted(100 * fits, Keep::monitors, false));
  EXPECT_TRUE(accepted(100 * fits, Keep::draws, true));
  options.memory = 4.0 * 41.0 * 100.0;
  EXPECT_TRUE(accepted(100, Keep::draws, false));
  EXPECT_FALSE(accepted(101, Keep::draws, false));
  EXPECT_TRUE(accepted(101, Keep::draws, true));
  options.memory = -1.0;
  EXPECT_FALSE(accepted(1, Keep::draws, false));
}

TEST(Warmup, ItsDefaultLengthDoesNotDependOnThinning) {
  const Model model = make_model("ising:size=6,lambda=0.4");
  for (const char* sampler : {"lsb", "gibbs", "hb:block=4,radius=1"}) {
    RunOptions options;
    options.draws = 3;
    const RunResult by_sweep = run(model, parse_sampler(sampler), options);
    options.thin = 1;
    const RunResult by_step = run(model, parse_sampler(sampler), options);
    EXPECT_EQ(by_sweep.warmup_steps, by_step.warmup_steps) << sampler;
    EXPECT_EQ(by_sweep.log_phi, by_step.log_phi) << sampler;
  }
}

TEST(Warmup, ALengthThatWrapsIsRefused) {
  RunOptions options;
  options.thin = std::uint64_t{1} << 62;
  options.warmup = 8;
  options.draws = 1;
  const std::string sentence =
      refusal([&] { run(make_model("ising:size=4,lambda=0.1"), parse_sampler("gibbs"), options); });
  EXPECT_TRUE(holds(sentence, "too many to count")) << sentence;
}

TEST(Warmup, AdaptationEndsWhenTheFunctionHasSettled) {
  // Many chains have a gradient with little noise: the function stands still long before all rounds are made.
  RunOptions options;
  options.chains = 64;
  options.draws = 1;
  options.keep = Keep::monitors;
  const RunResult result = run(make_model("ising:case=3,size=16"), parse_sampler("lsb"), options);
  EXPECT_LT(result.warmup_steps, 1000U * 256U);
  EXPECT_GE(result.warmup_steps, 500U * 256U);
  // Asked for in full, it is made in full.
  options.warmup = 700;
  EXPECT_EQ(run(make_model("ising:case=3,size=16"), parse_sampler("lsb"), options).warmup_steps, 700U * 256U);
}

TEST(Clock, TheLimitIsThatOfTheWholeRun) {
  RunOptions options;
  options.chains = 4;
  options.seconds = 0.6;
  options.keep = Keep::monitors;
  options.threads = 1;
  const auto started = std::chrono::steady_clock::now();
  const std::clock_t worked = std::clock();
  const RunResult result = run(make_model("ising:size=100,lambda=0.4"), parse_sampler("lsb"), options);
  EXPECT_GT(result.trace.draws, 0U);
  EXPECT_GT(std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count(), 0.5);
  EXPECT_LT(processor_seconds_since(worked), 0.6 + 0.5);
}

TEST(Marginals, AnInterruptionBeforeTheFirstPilotIsAnAnswer) {
  const std::atomic<bool> stop = true;
  MarginalsOptions options;
  options.method = Method::sample;
  const MarginalsAnswer answer =
      find_marginals(std::make_shared<const Network>(mixed_network(0.0, 1)), options, {.stop = &stop});
  EXPECT_TRUE(answer.interrupted);
  EXPECT_TRUE(answer.pilots.empty());
  EXPECT_FALSE(answer.report.has_value());
}

TEST(Marginals, SecondsAreABudgetForEverything) {
  // Tables over variables of many levels, every pair of them: a sweep of single changes is dear, learning dearer.
  RandomNetwork recipe{std::vector<Index>(24, 16), {}, 1.0, 0.0, 3, {}};
  for (Index i = 0; i < 24; ++i) {
    for (Index j = 0; j < i; ++j) recipe.scopes.push_back({j, i});
  }
  const auto network = std::make_shared<const Network>(recipe.make());
  MarginalsOptions options;
  options.method = Method::sample;
  options.seconds = 1.5;
  options.threads = 1;
  const std::clock_t started = std::clock();
  const MarginalsAnswer answer = find_marginals(network, options);
  EXPECT_EQ(answer.pilots.size(), pilot_samplers(network_model(network)).size());
  EXPECT_LT(processor_seconds_since(started), 2.0 * *options.seconds);
}

/// Where everything is summed out, steps of the warm-up cost nothing and draws do: what was learned from the one says
/// nothing of the other, and one long round would overrun every limit.
TEST(Limits, RoundsOfSamplingBeginShort) {
  RunOptions options;
  options.chains = 2;
  options.warmup = 1 << 20;
  std::vector<std::size_t> rounds;
  std::size_t before = 0;
  RunHooks hooks;
  hooks.after_round = [&](const poise::Run& now) {
    if (now.draws() > before) rounds.push_back(now.draws() - before);
    before = now.draws();
  };
  const auto network = std::make_shared<const Network>(mixed_network(0.0, 1));
  poise::Run run(network_model(network), parse_sampler("temper"), options, hooks);
  run.warm_up();
  ASSERT_EQ(run.draws(), 0U);
  run.sample(1000);
  for (std::size_t k = 0; k < rounds.size(); ++k) EXPECT_LE(rounds[k], std::size_t{1} << k) << k;
}

}  // namespace poise::run_limits_test
