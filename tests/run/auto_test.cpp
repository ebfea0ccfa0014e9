/// The sampler `auto`: what it stands for on each kind of model, what replaces it, and that resuming changes nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <poise/network.hpp>
#include <poise/report.hpp>
#include <poise/run.hpp>
#include <poise/stepper.hpp>
#include "engines/rows.hpp"
#include "models/as_network.hpp"
#include "models/rbm/rbm.hpp"
#include "models/user/batch_target.hpp"
#include "run/recommend.hpp"
#include "run/start.hpp"
#include "support/input.hpp"
#include "support/small_networks.hpp"
#include "support/small_rbms.hpp"
#include "support/small_targets.hpp"
#include "support/table_model.hpp"

namespace poise::auto_test {

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

/// What user code can give besides log p.
enum class Gives { nothing, gradient, log_ratios };

/// Spins in a chain by user code; counts what is evaluated.
class SpinChain final : public BatchFunction {
 public:
  explicit SpinChain(Gives gives) : gives_(gives) {}
  void log_prob(std::span<const Value> rows, std::span<double> out) override {
    const std::size_t n = rows.size() / out.size();
    for (std::size_t r = 0; r < out.size(); ++r) {
      if (++evaluated > stop_after) throw RunStopped{};
      out[r] = 0.0;
      for (std::size_t i = 0; i + 1 < n; ++i) out[r] += rows[r * n + i] == rows[r * n + i + 1] ? 0.7 : 0.0;
    }
  }
  [[nodiscard]] bool has_gradient() const override { return gives_ == Gives::gradient; }
  [[nodiscard]] bool has_log_ratios() const override { return gives_ == Gives::log_ratios; }
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

 private:
  Gives gives_;
};

Model user_model(const std::shared_ptr<SpinChain>& function, Index variables = 20) {
  function->variables = variables;
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
  out.push_back({"frozen", make_model("ising:size=24x30,lambda=2,mu=0,sigma=0.5,seed=5")});
  out.push_back({"own", table_model(small_categorical())});
  out.push_back({"callback", user_model(std::make_shared<SpinChain>(Gives::gradient))});
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

TEST(Auto, FindsExactDrawsWhereChainsAreStuck) {
  // Two values that all variables must agree on, nearly: single changes all but never lead from one to the other. One
  // is more likely than the other, so there are no clusters to change as a whole.
  Network network;
  network.name = "agreement";
  network.cardinalities.assign(40, 2);
  for (Index i = 0; i + 1 < 40; ++i) {
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
  for (const char* model :
       {"ising:size=32,lambda=0.2", "ising:size=100,lambda=0.2", "potts:size=12,levels=3,coupling=0.3"}) {
    EXPECT_EQ(run_auto(make_model(model), options_of(4, 1000)).sampler, "gibbs") << model;
  }
}

TEST(Auto, ExactDrawsAreWorthWhatTheyCost) {
  // Variables of a time step all depend on each other, by chains that move slowly, and by chains that hardly do where a
  // draw takes many sweeps.
  EXPECT_EQ(run_auto(make_model("fhmm:length=50,chains=8"), options_of(4, 100)).sampler, "exact");
  EXPECT_EQ(run_auto(make_model("fhmm:length=40,chains=11,stay=0.5,sigma=8"), options_of(4, 100)).sampler, "gibbs");
}

TEST(Auto, ATreeThatTakesAWhileReplacesStuckChains) {
  const Model model = make_model("ising:size=18,boundary=open,lambda=1.5,mu=0,sigma=0.5,seed=5");
  EXPECT_EQ(run_auto(model, options_of(4, 100)).sampler, "exact");
}

/// The first verdict on chains that a limit of time would watch, where `spent` of it has gone by, and after how many
/// sweeps of `most` it came.
std::pair<Watcher::Verdict, std::uint64_t> first_verdict(const Model& model, const RunOptions& options, double spent,
                                                         std::uint64_t most) {
  const Advice advice = recommend(model, options, true);
  const TunableEngine made = make_engine(model, advice.sampler, engine_options(model, options));
  const std::uint64_t sweep = made.engine->traits().steps_per_sweep;
  Watcher watcher(advice, model, options, sweep, 200 * sweep);
  for (std::uint64_t step = 0; step < most * sweep;) {
    const std::uint64_t steps = watcher.steps_left(step);
    for (const ChainGroup& group : made.engine->share_out(1)) made.engine->advance(group, steps);
    const Watcher::Verdict verdict = watcher.look(*made.engine, step += steps, spent);
    if (verdict != Watcher::Verdict::undecided) return {verdict, step / sweep};
  }
  return {Watcher::Verdict::undecided, most};
}

TEST(Auto, AWatchLastsForSomeOfTheTime) {
  const Model model = make_model("ising:size=24x30,lambda=2,mu=0,sigma=0.5,seed=5");
  RunOptions options = options_of(4, 100);
  options.seconds = 1000.0;
  const Advice advice = recommend(model, options, true);
  ASSERT_TRUE(advice.next);
  EXPECT_EQ(advice.next->sampler.name, "temper");
  EXPECT_EQ(first_verdict(model, options, 0.001, 1000).first, Watcher::Verdict::undecided);
  EXPECT_EQ(first_verdict(model, options, 0.1, 1000), std::pair(Watcher::Verdict::replace, std::uint64_t{100}));
  // Nothing is known after a step, and there is no time for more.
  EXPECT_EQ(first_verdict(model, options, 0.3, 1000), std::pair(Watcher::Verdict::keep, std::uint64_t{1}));
}

TEST(Auto, SlowChainsAreNotStuck) {
  // Domains of a random state take hundreds of sweeps to vanish, in one of sixteen scouts more than in four chains.
  const Model model = make_model("ising:size=60,lambda=0.4,mu=0,sigma=0.3,seed=12");
  for (const std::uint64_t seed : {1, 2, 3}) {
    RunOptions options = options_of(4, 100);
    options.seconds = 1000.0;
    options.seed = seed;
    EXPECT_EQ(first_verdict(model, options, 0.01, 10000).first, Watcher::Verdict::keep) << seed;
  }
}

/// Pairs of levels that no single change leads into or out of, beside a square lattice of spins that is too wide for a
/// junction tree where it is large.
Network with_lattice(const std::vector<Index>& cardinalities, const std::vector<double>& table, Index side) {
  Network network;
  network.name = "pair";
  network.cardinalities = cardinalities;
  network.add_factor(std::vector<Index>{0, 1}, table);
  const auto site = [&](Index row, Index column) { return 2 + row * side + column; };
  for (Index i = 0; i < side * side; ++i) network.cardinalities.push_back(2);
  const std::vector<double> alike = {1.3, 1.0, 1.0, 1.3};
  for (Index row = 0; row < side; ++row) {
    for (Index column = 0; column < side; ++column) {
      if (row + 1 < side) network.add_factor(std::vector<Index>{site(row, column), site(row + 1, column)}, alike);
      if (column + 1 < side) network.add_factor(std::vector<Index>{site(row, column), site(row, column + 1)}, alike);
    }
  }
  return network;
}

TEST(Auto, ZerosCallForExactDrawsOrTempering) {
  const auto island = [](Index side) {
    return network_model(
        std::make_shared<const Network>(with_lattice({4, 3}, {0, 2, 3, 0, 1, 2, 0, 3, 1, 3, 0, 0}, side)));
  };
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    RunOptions options = options_of(4, 1000);
    options.seed = seed;
    const RunResult small = run_auto(island(0), options);
    EXPECT_EQ(small.sampler, "exact");
    EXPECT_NEAR(small.empirical_marginals[2], 0.2, 0.05) << seed;
  }
  const RunResult wide = run_auto(island(40), options_of(4, 1000));
  EXPECT_EQ(wide.sampler, "temper");
  EXPECT_NEAR(wide.empirical_marginals[2], 0.2, 0.08);
}

TEST(Auto, ZerosThatBlockNothingCallForNothing) {
  // No two neighbours are both in a set: from each set single changes lead to the empty one.
  const auto hard_core = [](double fugacity) {
    Network network;
    const Index side = 30;
    network.name = "hard core";
    network.cardinalities.assign(side * side, 2);
    for (Index i = 0; i < side * side; ++i) {
      network.add_factor(std::vector<Index>{i}, std::vector<double>{1.0, fugacity});
      const std::vector<double> apart = {1, 1, 1, 0};
      if ((i + 1) % side != 0) network.add_factor(std::vector<Index>{i, i + 1}, apart);
      if (i + side < side * side) network.add_factor(std::vector<Index>{i, i + side}, apart);
    }
    return network_model(std::make_shared<const Network>(network));
  };
  EXPECT_EQ(run_auto(hard_core(1.0), options_of(4, 500)).sampler, "gibbs");
  // All sets that single changes lead through are much less probable than those at both ends.
  EXPECT_EQ(run_auto(hard_core(1000.0), options_of(4, 100)).sampler, "temper");
}

TEST(Auto, ExactMarginalsOfAPartContradictChainsThatAgree) {
  // Two coins that agree: all chains have them on the same side, and R-hat is 1. Heads are more likely, so there are no
  // clusters.
  const Network network = with_lattice({2, 2}, {1.0, 1e-9, 1e-9, 0.9}, 40);
  RunOptions options = options_of(4, 1000);
  options.start = Start::zeros;
  const RunResult result = run_auto(network_model(std::make_shared<const Network>(network)), options);
  EXPECT_EQ(result.sampler, "temper");
  EXPECT_NEAR(result.empirical_marginals[0], 0.5, 0.2);
}

TEST(Auto, FrozenSpinsAreTempered) {
  EXPECT_EQ(run_auto(make_model("ising:size=24x30,lambda=2,mu=0,sigma=0.5,seed=5"), options_of(4, 100)).sampler,
            "temper");
  EXPECT_EQ(run_auto(make_model("ising:size=30,lambda=1,mu=3,sigma=3"), options_of(4, 100)).sampler, "gibbs");
}

TEST(Auto, SmallModelsOfEveryKindAreExact) {
  EXPECT_EQ(run_auto(make_model("ising:size=3,lambda=2"), options_of(4, 50)).sampler, "exact");
  const Model rbm = rbm_model("rbm", std::make_shared<const Rbm>(random_rbm(8, 6, 2.0, 4)));
  EXPECT_EQ(run_auto(rbm, options_of(4, 50)).sampler, "exact");
  for (const Gives gives : {Gives::nothing, Gives::gradient, Gives::log_ratios}) {
    const RunResult result = run_auto(user_model(std::make_shared<SpinChain>(gives), 8), options_of(4, 2000));
    EXPECT_EQ(result.sampler, "exact");
    for (const double marginal : result.empirical_marginals) EXPECT_NEAR(marginal, 0.5, 0.04);
  }
}

TEST(Auto, TablesOfModelsAreTheirDistribution) {
  for (const Model& model : {make_model("ising:size=3x4,lambda=0.4,mu=1,sigma=1"),
                             make_model("ising:size=2x4,lambda=0.7,boundary=open,mu=1,sigma=1"),
                             rbm_model("rbm", std::make_shared<const Rbm>(random_rbm(7, 5, 1.0, 4))),
                             user_model(std::make_shared<SpinChain>(Gives::nothing), 6)}) {
    const Model tables = network_model(as_network(model));
    EngineOptions options;
    Rng rng(1, 0);
    for (int k = 0; k < 20; ++k) {
      std::vector<Value> x(model.layout.variables);
      for (Value& level : x) level = static_cast<Value>(rng.uniform() * 2.0);
      options.starts.push_back(std::move(x));
    }
    options.reference.resize(model.layout.variables);
    std::vector<double> here(20);
    std::vector<double> there(20);
    make_engine(model, parse_sampler("gibbs"), options).engine->observe({0, 20}, {.log_prob = here});
    make_engine(tables, parse_sampler("gibbs"), options).engine->observe({0, 20}, {.log_prob = there});
    for (int k = 1; k < 20; ++k) EXPECT_NEAR(here[k] - here[0], there[k] - there[0], 1e-9) << model.name;
  }
}

/// A few variables on, as in variable selection, with all log ratios in one call.
class FewOn final : public BatchFunction {
 public:
  void log_prob(std::span<const Value> rows, std::span<double> out) override {
    for (std::size_t r = 0; r < out.size(); ++r) out[r] = of(count(rows.subspan(r * kVariables, kVariables)));
  }
  [[nodiscard]] bool has_log_ratios() const override { return true; }
  void log_ratios(std::span<const Value> rows, std::span<double> out) override {
    for (std::size_t first = 0; first < rows.size(); first += kVariables) {
      const double on = count(rows.subspan(first, kVariables));
      for (std::size_t i = 0; i < kVariables; ++i) {
        out[first + i] = of(on + 1.0 - 2.0 * rows[first + i]) - of(on);
      }
    }
  }
  static constexpr std::size_t kVariables = 40;

 private:
  static double count(std::span<const Value> row) { return std::accumulate(row.begin(), row.end(), 0.0); }
  static double of(double on) { return -2.0 * (on - 3.0) * (on - 3.0); }
};

TEST(Auto, InformedProposalsHaveStepsPerDrawOfTheirOwn) {
  const Model model =
      callback_model("few on", {std::vector<Index>(FewOn::kVariables, 2), {}}, std::make_shared<FewOn>(), {});
  const RunResult result = run_auto(model, options_of(4, 200));
  EXPECT_EQ(result.sampler, "lb");
  EXPECT_EQ(result.options.thin, result.choice->thin);
  EXPECT_GT(result.choice->thin, 1U);
  EXPECT_LT(result.choice->thin, 40U);
  EXPECT_LE(result.warmup_steps, 1000U * result.choice->thin + 1000U);
  RunOptions given = options_of(4, 50);
  given.thin = 7;
  EXPECT_EQ(run_auto(model, given).options.thin, 7U);
  // Weakly coupled spins gain from many changes a step.
  const Model spins = user_model(std::make_shared<SpinChain>(Gives::log_ratios), 40);
  EXPECT_EQ(run_auto(spins, options_of(4, 50)).sampler, "dlsb");
}

TEST(Auto, ShortRunsAreNotWatched) {
  RunOptions options = options_of(2, 1);
  options.warmup = 0;
  for (const Case& which : cases()) {
    const RunResult result = run_auto(which.model, options);
    EXPECT_EQ(result.trace.draws, 1U) << which.name;
    expect_same_draws(result, run(which.model, parse_sampler(result.sampler), options), which.name);
  }
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
    // Many of them are of the watch, whose rounds are short.
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
TEST(Auto, AWatchMayBeStoppedManyTimes) {
  for (const char* spec : {"potts:size=12,levels=3,coupling=1.1", "ising:size=24x30,lambda=2,mu=0,sigma=0.5,seed=5"}) {
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
    EXPECT_GT(stops, 2) << spec;
    poise::Run resumed(model, parse_sampler("auto"), options_of(4, 200, 2));
    resumed.load(saved);
    resumed.warm_up();
    resumed.sample(200);
    expect_same_draws(run_auto(model, options_of(4, 200)), resumed.finish(), spec);
  }
}

TEST(Auto, UserCodeMayStopTheWatch) {
  const auto function = std::make_shared<SpinChain>(Gives::gradient);
  function->stop_after = 200;
  const RunResult result = run_auto(user_model(function), options_of(4, 500));
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.trace.draws, 0U);
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
       {"null", "3", "[]", "{}", R"({"sampler": 4})", R"({"sampler": "a", "reason": 3, "thin": -1})"}) {
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

}  // namespace poise::auto_test
