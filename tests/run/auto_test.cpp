/// The sampler that picks itself: a choice that depends on the seed alone, and a run that goes on as if it were named.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <poise/extend/engines/candidates.hpp>
#include <poise/network.hpp>
#include <poise/report.hpp>
#include <poise/run.hpp>
#include <poise/stepper.hpp>
#include "models/rbm/rbm.hpp"
#include "models/user/batch_target.hpp"
#include "support/input.hpp"
#include "support/small_networks.hpp"
#include "support/small_rbms.hpp"
#include "support/small_targets.hpp"
#include "support/table_model.hpp"

namespace poise {
namespace {

using namespace poise::testing;

RunOptions options_of(std::size_t chains, std::size_t draws, unsigned threads = 1) {
  RunOptions options;
  options.chains = chains;
  options.draws = draws;
  options.threads = threads;
  options.seed = 3;
  return options;
}

RunResult run_auto(const Model& model, const RunOptions& options) { return run(model, parse_sampler("auto"), options); }

void expect_same_draws(const RunResult& a, const RunResult& b, const std::string& what) {
  EXPECT_EQ(a.sampler, b.sampler) << what;
  EXPECT_EQ(a.trace.x, b.trace.x) << what;
  EXPECT_EQ(a.trace.monitors, b.trace.monitors) << what;
  EXPECT_EQ(a.warmup_steps, b.warmup_steps) << what;
}

/// Spins in a chain by user code, with or without a gradient; counts what is evaluated.
class SpinChain final : public BatchFunction {
 public:
  explicit SpinChain(bool gradient) : gradient_(gradient) {}
  void log_prob(std::span<const Value> rows, std::span<double> out) override {
    const std::size_t n = rows.size() / out.size();
    for (std::size_t r = 0; r < out.size(); ++r) {
      if (++evaluated > stop_after) throw RunStopped{};
      out[r] = 0.0;
      for (std::size_t i = 0; i + 1 < n; ++i) out[r] += rows[r * n + i] == rows[r * n + i + 1] ? 0.7 : 0.0;
    }
  }
  [[nodiscard]] bool has_gradient() const override { return gradient_; }
  void gradient(std::span<const Value> rows, std::span<double> log_p, std::span<double> out) override {
    log_prob(rows, log_p);
    const std::size_t n = rows.size() / log_p.size();
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const std::size_t i = k % n;
      const double left = i > 0 ? 0.7 * (2.0 * rows[k - 1] - 1.0) : 0.0;
      const double right = i + 1 < n ? 0.7 * (2.0 * rows[k + 1] - 1.0) : 0.0;
      out[k] = left + right;
    }
  }
  std::uint64_t evaluated = 0;
  std::uint64_t stop_after = std::numeric_limits<std::uint64_t>::max();

 private:
  bool gradient_;
};

Model user_model(const std::shared_ptr<SpinChain>& function, Index variables = 12) {
  return callback_model("spins", {std::vector<Index>(variables, 2), {}}, function, {});
}

struct Case {
  std::string name;
  Model model;
};

std::vector<Case> cases() {
  std::vector<Case> out;
  out.push_back({"lattice", make_model("ising:size=12,lambda=0.3,mu=1,sigma=2,seed=3")});
  out.push_back({"potts", make_model("potts:size=12,levels=3,coupling=1.1")});
  out.push_back({"zeros", network_model(std::make_shared<const Network>(mixed_network(0.2, 4)))});
  out.push_back({"rbm", rbm_model("rbm", std::make_shared<const Rbm>(random_rbm(20, 6, 0.6, 4)))});
  out.push_back({"own", table_model(small_categorical())});
  out.push_back({"callback", user_model(std::make_shared<SpinChain>(true))});
  return out;
}

TEST(Auto, GoesOnAsIfTheChosenSamplerHadBeenNamed) {
  for (const Case& which : cases()) {
    const RunResult chosen = run_auto(which.model, options_of(4, 200));
    ASSERT_TRUE(chosen.choice) << which.name;
    EXPECT_EQ(chosen.choice->sampler, chosen.sampler);
    const RunResult named = run(which.model, parse_sampler(chosen.sampler), options_of(4, 200));
    EXPECT_FALSE(named.choice);
    expect_same_draws(chosen, named, which.name);
  }
}

TEST(Auto, ChoosesAndDrawsTheSameOnAnyNumberOfThreads) {
  for (const Case& which : cases()) {
    const RunResult one = run_auto(which.model, options_of(5, 100, 1));
    for (const unsigned threads : {2U, 3U}) {
      const RunResult other = run_auto(which.model, options_of(5, 100, threads));
      expect_same_draws(one, other, which.name);
      EXPECT_EQ(choice_json(*one.choice), choice_json(*other.choice)) << which.name;
    }
  }
}

// By its name it is run with every instruction set, as the other pinned draws are.
TEST(Auto, PinnedDrawsAndChoices) {
  // The sampler, the work of every candidate's pilot, a hash of the draws.
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"lattice", "gibbs 26611 0 0 0 80dcdb1890f5f9a1"}, {"potts", "gibbs 231898 0 0 0 0 0 0 58bb82cb825d87a3"},
      {"zeros", "exact 0 18788 0 0 0 d6a10a7602e8912"},  {"rbm", "rbm-gibbs 18805 0 0 0 0 0 0 d8bd7a26d6f5b117"},
      {"own", "gibbs 41580 0 0 29172eb26c050461"},       {"callback", "dlsb 669 0 0 0 0 0 0 f7a03e88ba8223ba"}};
  std::size_t k = 0;
  for (const Case& which : cases()) {
    const RunResult result = run_auto(which.model, options_of(4, 100));
    std::uint64_t hash = 14695981039346656037ULL;
    for (const std::int8_t label : result.trace.x) hash = (hash ^ static_cast<std::uint8_t>(label)) * 1099511628211ULL;
    std::string found = result.sampler;
    for (const CandidateScore& one : result.choice->candidates) found += fmt::format(" {:.0f}", one.pilot_work);
    EXPECT_EQ(expected[k].first, which.name);
    EXPECT_EQ(expected[k++].second, fmt::format("{} {:x}", found, hash)) << which.name;
  }
}

TEST(Auto, PilotsTakeAtMostATenthOfTheRun) {
  for (const Case& which : cases()) {
    const RunResult result = run_auto(which.model, options_of(4, 1000));
    const Choice& choice = *result.choice;
    ASSERT_FALSE(choice.candidates.empty());
    EXPECT_EQ(choice.candidates.front().sampler, choice.sampler);
    double spent = 0.0;
    for (const CandidateScore& one : choice.candidates) spent += one.pilot_work;
    EXPECT_DOUBLE_EQ(spent, choice.pilot_work);
    EXPECT_LE(choice.pilot_work, 0.1 * choice.candidates.front().run_work * (1.0 + 1e-12)) << which.name;
  }
}

TEST(Auto, FindsExactDrawsOnASmallNetworkWhereChainsAreStuck) {
  // Two values that all variables must agree on, nearly: single changes all but never lead from one to the other. One
  // is more likely than the other, so there are no clusters to change as a whole.
  Network network;
  network.name = "agreement";
  network.cardinalities.assign(10, 2);
  for (Index i = 0; i + 1 < 10; ++i) {
    network.add_factor(std::vector<Index>{i, static_cast<Index>(i + 1)}, std::vector<double>{1.0, 1e-6, 1e-6, 0.9});
  }
  const Model model = network_model(std::make_shared<const Network>(network));
  const RunResult result = run_auto(model, options_of(4, 1000));
  EXPECT_EQ(result.sampler, "exact");
  EXPECT_EQ(result.warmup_steps, 0U);
}

TEST(Auto, TakesClustersWhereSingleChangesDoNotMix) {
  for (const char* model : {"ising:size=32,lambda=0.4407", "ising:size=24,lambda=0.6"}) {
    EXPECT_EQ(run_auto(make_model(model), options_of(4, 1000)).sampler, "wolff") << model;
  }
  for (const char* model : {"ising:size=32,lambda=0.2", "potts:size=12,levels=3,coupling=0.3"}) {
    EXPECT_EQ(run_auto(make_model(model), options_of(4, 1000)).sampler, "gibbs") << model;
  }
}

TEST(Auto, ChainsThatDisagreeAreDisqualified) {
  // Blocks of two can turn both copies of a coin at once, single changes cannot.
  Network network;
  network.name = "copies";
  network.cardinalities.assign(2, 2);
  network.add_factor(std::vector<Index>{0, 1}, std::vector<double>{1.0, 1e-12, 1e-12, 1.0});
  for (Index i = 2; i < 60; ++i) {
    network.cardinalities.push_back(2);
    network.add_factor(std::vector<Index>{static_cast<Index>(i - 1), i}, std::vector<double>{1.0, 0.9, 0.9, 1.0});
    network.add_factor(std::vector<Index>{static_cast<Index>(i / 2), i}, std::vector<double>{1.0, 0.9, 0.9, 1.0});
  }
  const RunResult result = run_auto(network_model(std::make_shared<const Network>(network)), options_of(4, 2000));
  const CandidateScore* gibbs = nullptr;
  for (const CandidateScore& one : result.choice->candidates) {
    if (one.sampler == "gibbs") gibbs = &one;
  }
  ASSERT_NE(gibbs, nullptr);
  EXPECT_NE(result.sampler, "gibbs") << choice_json(*result.choice).dump(1);
}

TEST(Auto, AModelWithOneCandidateHasNoPilot) {
  const Model model = user_model(std::make_shared<SpinChain>(false), 1);
  const RunResult result = run_auto(model, options_of(2, 50));
  ASSERT_TRUE(result.choice);
  EXPECT_LE(result.choice->candidates.size(), 2U);
}

TEST(Auto, TinyBudgetsGetTheCheapestCandidateWithoutAPilot) {
  RunOptions options = options_of(2, 1);
  options.warmup = 0;
  for (const Case& which : cases()) {
    const RunResult result = run_auto(which.model, options);
    EXPECT_EQ(result.trace.draws, 1U) << which.name;
    EXPECT_EQ(result.choice->pilot_work, 0.0) << which.name;
    expect_same_draws(result, run(which.model, parse_sampler(result.sampler), options), which.name);
  }
}

TEST(Auto, APilotWithoutWarmupLeavesTheFirstDrawWhereItWas) {
  RunOptions options = options_of(4, 2000);
  options.warmup = 0;
  const Model model = make_model("ising:size=12,lambda=0.3,mu=1,sigma=2,seed=3");
  const RunResult result = run_auto(model, options);
  EXPECT_GT(result.choice->pilot_work, 0.0);
  expect_same_draws(result, run(model, parse_sampler(result.sampler), options), "no warm-up");
}

TEST(Auto, ALimitOfSecondsIsKept) {
  RunOptions options = options_of(4, 1000);
  options.seconds = 0.3;
  const RunResult result = run_auto(make_model("potts:size=20,levels=3,coupling=1"), options);
  EXPECT_GT(result.trace.draws, 0U);
  EXPECT_LT(result.warmup_seconds + result.sampling_seconds, 1.0);
  EXPECT_TRUE(result.choice);
}

TEST(Auto, ASavedRunGoesOnBitByBit) {
  for (const Case& which : cases()) {
    const Sampler sampler = parse_sampler("auto");
    std::vector<std::string> saved;
    RunHooks hooks;
    hooks.after_round = [&](const poise::Run& run) { saved.push_back(run.save()); };
    poise::Run whole(which.model, sampler, options_of(3, 60), hooks);
    saved.push_back(whole.save());
    whole.warm_up();
    whole.sample(60);
    const RunResult result = whole.finish();
    ASSERT_GT(saved.size(), 1U);
    // Most of them are of the pilot, whose rounds are short.
    for (std::size_t k = 0; k < saved.size(); k += std::max<std::size_t>(1, saved.size() / 9)) {
      poise::Run other(which.model, sampler, options_of(3, 60, 2));
      other.load(saved[k]);
      other.warm_up();
      other.sample(60 - other.draws());
      const RunResult again = other.finish();
      expect_same_draws(result, again, which.name);
      EXPECT_EQ(choice_json(*result.choice), choice_json(*again.choice)) << which.name;
    }
    poise::Run named(which.model, parse_sampler(result.sampler), options_of(3, 60));
    EXPECT_THROW(named.load(saved.back()), std::runtime_error);
    EXPECT_THROW(named.load(saved[saved.size() / 4]), std::runtime_error);
  }
}

/// Again and again, after every few rounds.
TEST(Auto, APilotMayBeStoppedManyTimes) {
  for (const char* spec : {"potts:size=12,levels=3,coupling=1.1", "ising:size=12,lambda=0.2"}) {
    const Model model = make_model(spec);
    std::string saved;
    int stops = 0;
    for (bool over = false; !over;) {
      std::atomic<bool> stop{false};
      RunHooks hooks;
      hooks.stop = &stop;
      int rounds = 0;
      hooks.after_round = [&](const poise::Run& run) {
        EXPECT_EQ(run.draws(), 0U);
        stop = ++rounds == 40;
      };
      poise::Run run(model, parse_sampler("auto"), options_of(4, 200), hooks);
      if (!saved.empty()) run.load(saved);
      run.warm_up();
      saved = run.save();
      over = !run.stopped();
      stops += over ? 0 : 1;
      ASSERT_LT(stops, 1000);
    }
    EXPECT_GT(stops, 3) << spec;
    poise::Run goes_on(model, parse_sampler("auto"), options_of(4, 200, 2));
    goes_on.load(saved);
    goes_on.warm_up();
    goes_on.sample(200);
    expect_same_draws(run_auto(model, options_of(4, 200)), goes_on.finish(), spec);
  }
}

TEST(Auto, AStopInThePilotEndsTheRunAndCanGoOn) {
  std::atomic<bool> stop{false};
  RunHooks hooks;
  hooks.stop = &stop;
  hooks.progress = [&](const Progress& progress) { stop = stop || progress.phase == Phase::pilot; };
  const Model model = make_model("potts:size=12,levels=3,coupling=1.1");
  poise::Run stopped(model, parse_sampler("auto"), options_of(4, 200), hooks);
  stopped.warm_up();
  stopped.sample(200);
  EXPECT_EQ(stopped.draws(), 0U);
  const std::string saved = stopped.save();
  const RunResult none = stopped.finish();
  EXPECT_TRUE(none.interrupted);
  EXPECT_EQ(none.sampler, "auto");
  EXPECT_FALSE(none.choice);
  poise::Run goes_on(model, parse_sampler("auto"), options_of(4, 200));
  goes_on.load(saved);
  goes_on.warm_up();
  goes_on.sample(200);
  expect_same_draws(run_auto(model, options_of(4, 200)), goes_on.finish(), "after a stop");
}

TEST(Auto, UserCodeMayStopThePilot) {
  const auto function = std::make_shared<SpinChain>(true);
  function->stop_after = 200;
  const RunResult result = run_auto(user_model(function), options_of(4, 500));
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.trace.draws, 0U);
}

TEST(Auto, CountsRowsOfUserCode) {
  const auto function = std::make_shared<SpinChain>(true);
  const RunResult result = run_auto(user_model(function), options_of(4, 300));
  EXPECT_EQ(result.choice->unit, "rows");
  std::vector<std::string> names;
  for (const CandidateScore& one : result.choice->candidates) names.push_back(one.sampler);
  for (const char* expected : {"gibbs", "gwg", "flsb", "gibbs:block=2"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), expected), names.end()) << expected;
  }
  EXPECT_EQ(run_auto(make_model("ising:size=6"), options_of(2, 20)).choice->unit, "ns");
}

TEST(Auto, TheChoiceIsInTheReportAndComesBackFromIt) {
  const RunResult result = run_auto(make_model("potts:size=8,levels=3,coupling=0.5"), options_of(4, 100));
  const nlohmann::json json = report_json(result);
  ASSERT_TRUE(json.contains("choice"));
  EXPECT_EQ(json["choice"]["sampler"], result.sampler);
  EXPECT_EQ(settings_json(result)["choice"], json["choice"]);
  const std::optional<Choice> read = read_choice(json["choice"]);
  ASSERT_TRUE(read);
  EXPECT_EQ(choice_json(*read), json["choice"]);
  EXPECT_NE(report_text(make_report(result)).find("chosen by auto"), std::string::npos);
  EXPECT_FALSE(
      report_json(run(make_model("ising:size=6"), parse_sampler("gibbs"), options_of(2, 20))).contains("choice"));
  for (const char* damaged :
       {"null", "3", "[]", "{}", R"({"sampler": 4})", R"({"sampler": "a", "candidates": [1, {}]})"}) {
    EXPECT_NO_THROW(static_cast<void>(read_choice(nlohmann::json::parse(damaged)))) << damaged;
  }
}

TEST(Auto, BadInputIsRefused) {
  EXPECT_NE(refusal([] { parse_sampler("auto:block=2"); }).find("block"), std::string::npos);
  EXPECT_NE(refusal([] { Stepper(make_model("ising:size=6"), parse_sampler("auto"), {}); }).find("name a sampler"),
            std::string::npos);
  RunOptions none = options_of(0, 10);
  EXPECT_NE(refusal([&] { run_auto(make_model("ising:size=6"), none); }).find("chains"), std::string::npos);
}

TEST(Auto, EveryCandidateRunsAndItsCostIsKnown) {
  for (const Case& which : cases()) {
    const ModelFacts facts = model_facts(which.model, 4);
    for (const Candidate& candidate : find_candidates(facts)) {
      const SamplerCost& cost = candidate.cost;
      EXPECT_GT(cost.of(cost.step), 0.0) << which.name << " " << candidate.sampler.name;
      RunOptions options = options_of(2, 50);
      options.warmup = 50;
      const RunResult result = run(which.model, candidate.sampler, options);
      EXPECT_EQ(result.options.thin, cost.steps_per_sweep) << which.name << " " << candidate.sampler.name;
      // What a step is expected to evaluate is what it does, but for what depends on the state.
      if (candidate.sampler.learns()) continue;
      const double expected = cost.of(cost.step) * static_cast<double>(result.steps);
      EXPECT_NEAR(cost.of(result.evals) / expected, 1.0, 0.35) << which.name << " " << candidate.sampler.name;
    }
  }
}

}  // namespace
}  // namespace poise
