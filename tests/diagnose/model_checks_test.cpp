/// Checks of draws against their model: levels never visited, variables that never changed, gains by local moves.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <poise/extend/engines/own_kernel.hpp>
#include <poise/extend/models/batch_function.hpp>
#include <poise/model.hpp>
#include <poise/report.hpp>
#include <poise/run.hpp>
#include <poise/sampler.hpp>
#include "diagnose/model_checks.hpp"
#include "exact/block_laws.hpp"
#include "exact/exact_inference.hpp"
#include "models/ising/ising_model.hpp"
#include "models/user/batch_target.hpp"
#include "run/kept_states.hpp"
#include "support/small_networks.hpp"

namespace poise::model_checks_test {

using testing::mixed_network;

std::shared_ptr<const Network> shared(Network network) { return std::make_shared<const Network>(std::move(network)); }

/// x[0] = 3 goes with x[1] = 0 alone, which goes with nothing else: 0.2 of the probability.
Network island() {
  Network network;
  network.name = "island";
  network.cardinalities = {4, 3};
  network.add_factor(std::vector<Index>{0, 1}, std::vector<double>{0, 2, 3, 0, 1, 2, 0, 3, 1, 3, 0, 0});
  return network;
}

/// The same beside a lattice too wide for a cheap tree, to which x[0] is tied.
Network island_in_lattice() {
  constexpr Index side = 26;
  Network network = island();
  const auto site = [](Index row, Index column) { return 2 + row * side + column; };
  const std::vector<double> alike = {1.2, 0.8, 0.8, 1.2};
  network.cardinalities.resize(2 + side * side, 2);
  for (Index row = 0; row < side; ++row) {
    for (Index column = 0; column < side; ++column) {
      if (row + 1 < side) network.add_factor(std::vector<Index>{site(row, column), site(row + 1, column)}, alike);
      if (column + 1 < side) network.add_factor(std::vector<Index>{site(row, column), site(row, column + 1)}, alike);
    }
  }
  network.add_factor(std::vector<Index>{0, site(0, 0)}, std::vector<double>{1, 2, 2, 1, 1, 1, 1, 1});
  return network;
}

/// The report of chains that all start at one state.
Report report_from(const Network& network, const std::string& sampler, std::vector<Value> start) {
  RunOptions options;
  options.draws = 400;
  options.start = Start::given;
  options.given = std::move(start);
  return make_report(run(network_model(shared(network)), parse_sampler(sampler), options));
}

std::string text_of(const Report& report, const std::string& code) {
  std::string out;
  for (const Warning& warning : report.warnings) out += warning.code == code ? warning.sentence() + "\n" : "";
  return out;
}

TEST(Unvisited, AnIslandIsNamedByEverySampler) {
  for (const char* sampler : {"gibbs", "lb", "lsb", "gwg", "dlmc", "dlsb", "dmala", "pas"}) {
    const Report report = report_from(island(), sampler, {1, 1});
    EXPECT_NE(text_of(report, "unvisited").find("x[0] = 3 (probability 0.2)"), std::string::npos) << sampler;
    EXPECT_NE(text_of(report, "unvisited").find("--sampler exact"), std::string::npos) << sampler;
  }
}

TEST(Unvisited, WhereNoTreeIsCheapSmallPartsShowIt) {
  const Network network = island_in_lattice();
  std::vector<Value> start(network.num_variables(), 1);
  const Report report = report_from(network, "gibbs", start);
  EXPECT_FALSE(report.checks.exact);
  EXPECT_NE(text_of(report, "unvisited").find("x[0] = 3 (probability about"), std::string::npos);
  EXPECT_NE(text_of(report, "unvisited").find("--sampler temper"), std::string::npos);
}

TEST(Unvisited, WhatIsRareOrImpossibleIsNot) {
  Network network = island();
  network.cardinalities.push_back(3);
  network.add_factor(std::vector<Index>{2}, std::vector<double>{1.0, 1e-5, 0.0});
  const Report report = report_from(network, "gibbs:block=2", {1, 1, 0});
  EXPECT_EQ(text_of(report, "unvisited"), "");
  EXPECT_EQ(text_of(report, "stuck"), "");
}

TEST(Unvisited, IsInTheJsonReport) {
  const Report report = report_from(island(), "dlmc", {1, 1});
  const nlohmann::json json = report_json(report);
  ASSERT_EQ(json["checks"]["unvisited"].size(), 3U * report.checks.unvisited.size());
  EXPECT_EQ(json["checks"]["unvisited"][0], report.checks.unvisited[0].variable);
  EXPECT_EQ(json["checks"]["unvisited"][1], report.checks.unvisited[0].level);
  EXPECT_EQ(json["checks"]["unvisited"][2], report.checks.unvisited[0].probability);
}

TEST(Constant, StuckChainsAreToldFromCertainOnes) {
  // Chains on the island itself: both variables never change, and should.
  const Report stuck = report_from(island(), "gibbs", {3, 0});
  EXPECT_NE(text_of(stuck, "stuck").find("x[0] and x[1] never changed although"), std::string::npos);
  EXPECT_EQ(stuck.certain, "");

  // Evidence leaves x[0] and x[1] no choice; x[2] moves.
  Network network = island();
  network.cardinalities.push_back(2);
  network.add_factor(std::vector<Index>{0, 2}, std::vector<double>{1, 1, 1, 1, 1, 1, 1, 1});
  network.add_factor(std::vector<Index>{0}, std::vector<double>{0, 0, 0, 1});
  const Report certain = report_from(network, "gibbs", {3, 0, 0});
  EXPECT_EQ(text_of(certain, "stuck"), "");
  EXPECT_NE(certain.certain.find("x[0] and x[1]"), std::string::npos) << certain.certain;
}

// Chains that are all in one of two modes agree with each other, and no single change leads out.
TEST(Constant, OneModeOfTwoIsStuck) {
  IsingModel ising;
  ising.name = "clique";
  ising.variables = 6;
  ising.field.assign(6, 0.01);
  for (Index j = 1; j < 6; ++j) ising.edges.push_back({j - 1, j, 7.0});
  RunOptions options;
  options.draws = 400;
  options.start = Start::zeros;
  const Report report = make_report(run(ising_model(ising), parse_sampler("gibbs"), options));
  ASSERT_EQ(report.warnings.size(), 1U);
  EXPECT_EQ(report.warnings[0].code, "stuck");
  EXPECT_NE(report.warnings[0].text.find("a probability of up to 0.53"), std::string::npos) << report.warnings[0].text;
  EXPECT_EQ(report.warnings[0].next, "--sampler exact");
}

TEST(Constant, WhatEvidenceDeterminesIsNotStuck) {
  Network network = island();
  network.add_factor(std::vector<Index>{0}, std::vector<double>{0, 0, 0, 1});
  const Report report = report_from(network, "gibbs", {3, 0});
  EXPECT_TRUE(report.warnings.empty()) << report.warnings[0].text;
  EXPECT_NE(report.certain.find("x[0] and x[1] never changed and certain"), std::string::npos) << report.certain;
}

// A variable that only zeros of several tables together determine is no trouble of independent draws.
TEST(Constant, IndependentDrawsAreNeverStuck) {
  Network network;
  network.name = "chain";
  network.cardinalities = {2, 2, 2};
  network.add_factor(std::vector<Index>{0, 1}, std::vector<double>{1, 0, 0, 1});
  network.add_factor(std::vector<Index>{1, 2}, std::vector<double>{1, 1, 0, 0});
  RunOptions options;
  options.draws = 400;
  const Report report = make_report(run(network_model(shared(network)), parse_sampler("exact"), options));
  EXPECT_TRUE(report.warnings.empty());
}

TEST(Constant, BoundsWithoutATreeAreThoseOfConditionalLaws) {
  const Model model = make_model("bernoulli:size=3,mu=0,sigma=0");
  ModelChecks checks;
  const CheckedStates states{std::vector<Value>(3 * 8, 0), 4, 2, 3};
  add_level_checks(model, std::vector<std::uint8_t>{1, 0, 1, 1, 1, 1}, states, 1000, checks);
  ASSERT_EQ(checks.constant.size(), 1U);
  EXPECT_EQ(checks.constant[0].variable, 0U);
  EXPECT_NEAR(checks.constant[0].least, 0.5, 1e-12);
  EXPECT_NEAR(checks.constant[0].most, 0.5, 1e-12);
}

// Conditional laws of blocks, averaged over the distribution, are the marginals.
/// Chains that all begin at level 0 of a model whose levels can be exchanged.
std::vector<std::string> codes_of(const Model& model, const std::string& sampler) {
  RunOptions options;
  options.draws = 500;
  options.warmup = 20;
  options.start = Start::zeros;
  std::vector<std::string> codes;
  const RunResult result = run(model, parse_sampler(sampler), options);
  for (const Warning& warning : make_report(result).warnings) codes.push_back(warning.code);
  return codes;
}

TEST(Symmetry, ChainsThatAllAreInOneModeAreFound) {
  const std::vector<std::string> modes = {"modes"};
  EXPECT_EQ(codes_of(make_model("ising:size=24,lambda=0.55"), "gibbs"), modes);
  EXPECT_EQ(codes_of(make_model("potts:size=24,levels=3,coupling=1.2"), "gibbs"), modes);
  EXPECT_TRUE(codes_of(make_model("ising:size=24,lambda=0.55"), "wolff").empty());
  EXPECT_TRUE(codes_of(make_model("potts:size=24,levels=3,coupling=1.2"), "wolff").empty());
  EXPECT_TRUE(codes_of(make_model("ising:size=24,lambda=0.25"), "gibbs").empty());
  EXPECT_TRUE(codes_of(make_model("potts:size=24,levels=3,coupling=0.5"), "gibbs").empty());
  // Fields break the symmetry.
  EXPECT_TRUE(codes_of(make_model("ising:size=24,lambda=0.2,mu=1,image=disc"), "gibbs").empty());
}

TEST(Symmetry, AdviceIsClustersWhereThereAreAny) {
  RunOptions options;
  options.draws = 500;
  options.warmup = 20;
  options.start = Start::zeros;
  const auto advice = [&](const Model& model, const std::string& sampler) {
    const Report report = make_report(run(model, parse_sampler(sampler), options));
    return report.warnings.empty() ? std::string() : report.warnings.front().next;
  };
  EXPECT_EQ(advice(make_model("ising:size=24,lambda=0.55"), "gibbs"), "--sampler wolff");
  // An antiferromagnet has two modes and no clusters.
  IsingModel ising;
  ising.name = "antiferromagnet";
  ising.variables = 100;
  ising.field.assign(100, 0.0);
  for (Index i = 0; i < 100; ++i) {
    ising.edges.push_back({i, i / 10 * 10 + (i + 1) % 10, -0.6});
    ising.edges.push_back({i, (i + 10) % 100, -0.6});
  }
  EXPECT_EQ(advice(ising_model(ising), "gibbs"), "--sampler temper");
}

// Chains that are stuck at different levels disagree, which is one cause and one warning.
TEST(Constant, StuckChainsAreNamedOnce) {
  IsingModel ising;
  ising.name = "clique";
  ising.variables = 6;
  ising.field.assign(6, 0.01);
  for (Index j = 1; j < 6; ++j) ising.edges.push_back({j - 1, j, 7.0});
  RunOptions options;
  options.draws = 400;
  options.start = Start::dispersed;
  const Report report = make_report(run(ising_model(ising), parse_sampler("gibbs"), options));
  ASSERT_EQ(report.warnings.size(), 1U);
  EXPECT_EQ(report.warnings[0].code, "stuck");
}

TEST(BlockLaws, AverageToMarginals) {
  const Network network = mixed_network(0.2, 3);
  const auto marginals = cheap_marginals(network, 1e9);
  ASSERT_TRUE(marginals.has_value());
  EXPECT_FALSE(cheap_marginals(network, 1.0).has_value());
  const BlockLaws blocks(network);
  const std::vector<Index> block = {4, 1};
  std::vector<double> mean(7, 0.0);
  double total = 0.0;
  std::vector<Value> x(5, 0);
  for (std::size_t k = 0; k < 2 * 3 * 2 * 4; ++k) {
    x = {static_cast<Value>(k % 2), static_cast<Value>(k / 2 % 3), 0, static_cast<Value>(k / 6 % 2),
         static_cast<Value>(k / 12)};
    const double p = testing::product_at(network, x);
    if (p == 0.0) continue;
    total += p;
    const auto laws = blocks.laws(block, x, 1e9);
    ASSERT_TRUE(laws.has_value());
    for (std::size_t e = 0; e < mean.size(); ++e) mean[e] += p * laws->values[e];
  }
  for (Index level = 0; level < 4; ++level) EXPECT_NEAR(mean[level] / total, marginals->of(4)[level], 1e-12);
  for (Index level = 0; level < 3; ++level) EXPECT_NEAR(mean[4 + level] / total, marginals->of(1)[level], 1e-12);
}

TEST(BlockLaws, FollowZerosAndWhatIsTied) {
  const Network network = island_in_lattice();
  const BlockLaws blocks(network);
  std::vector<std::uint8_t> tied(network.num_variables(), 0);
  EXPECT_EQ(blocks.around(0, tied, 24), (std::vector<Index>{0, 1}));
  EXPECT_EQ(blocks.around(5, tied, 24), (std::vector<Index>{5}));
  tied[5] = tied[6] = 1;
  EXPECT_EQ(blocks.around(5, tied, 24), (std::vector<Index>{5, 6}));
}

/// States of one chain after another, `count` each, by repeating those given.
CheckedStates repeated(const std::vector<std::vector<Value>>& states, std::size_t count) {
  CheckedStates out{{}, 4, count, static_cast<Index>(states[0].size())};
  for (std::size_t k = 0; k < 4 * count; ++k) {
    const std::vector<Value>& x = states[k % states.size()];
    out.levels.insert(out.levels.end(), x.begin(), x.end());
  }
  return out;
}

/// Two spins with a coupling of 6, and one alone.
Network dimer() {
  Network network;
  network.name = "dimer";
  network.cardinalities = {2, 2, 2};
  const double alike = std::exp(6.0);
  network.add_factor(std::vector<Index>{0, 1}, std::vector<double>{alike, 1.0 / alike, 1.0 / alike, alike});
  network.add_factor(std::vector<Index>{2}, std::vector<double>{1.0, 4.0});
  return network;
}

TEST(LocalGain, AKernelThatOnlyFlipsBothIsFound) {
  const Model model = network_model(shared(dimer()));
  ModelChecks checks;
  add_local_gains(model, repeated({{0, 1, 1}, {1, 0, 1}, {0, 1, 1}, {1, 0, 0}, {0, 1, 1}}, 16), 1, checks);
  ASSERT_EQ(checks.gains.size(), 2U);
  EXPECT_LT(checks.gains[0].variable, 2U);
  EXPECT_NEAR(checks.gains[0].gain, 12.0, 0.01);
  const std::vector<Warning> found = local_gain_warnings(checks, {{}, VariablesSummary(), {}, RunFacts()});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].code, "local_gain");
  EXPECT_NE(found[0].text.find("x[0] (and of 1 more) would raise log p by 12"), std::string::npos) << found[0].text;
  EXPECT_EQ(found[0].next, "--sampler gibbs");
}

/// Flips the first two variables at every step and updates the third: dimers whose spins differ stay so.
class FlipBoth {
 public:
  struct Scratch {
    explicit Scratch(const AnyTarget& target) : first_move(first_moves(target)) {}
    std::vector<Index> first_move;
    std::vector<Change> changed;
    const char* failure = nullptr;
    Evals evals;

    template <class A>
    void archive(A& archive) {
      archive(evals);
    }
  };

  static Index steps_per_sweep(const AnyTarget& /*target*/) { return 1; }
  void prepare(const AnyTarget& target, const AnyTarget::State& state, Scratch& /*scratch*/) const {
    check_log_prob(target, state);
  }
  StepInfo step(const AnyTarget& target, AnyTarget::State& state, Scratch& scratch, Rng& rng) const {
    scratch.changed.clear();
    const auto flip = [&](Index i) {
      const Value here = target.level(state, i);
      scratch.changed.push_back({i, scratch.first_move[i], here});
      target.apply(state, {i, static_cast<Value>(1 - here)});
    };
    flip(0);
    flip(1);
    const double u = target.log_ratio(state, {2, static_cast<Value>(1 - target.level(state, 2))});
    scratch.evals.ratio += 4;
    if (rng.uniform() < 1.0 / (1.0 + std::exp(-u))) flip(2);
    return {1.0, true, 2};
  }
};

/// The dimer as user code.
class DimerCode final : public BatchFunction {
 public:
  void log_prob(std::span<const Value> rows, std::span<double> out) override {
    for (std::size_t r = 0; r < out.size(); ++r) {
      const Value* x = rows.data() + 3 * r;
      out[r] = (x[0] == x[1] ? 6.0 : -6.0) + (x[2] == 1 ? std::log(4.0) : 0.0);
    }
    evaluated += out.size();
  }
  std::size_t evaluated = 0;
};

// Also where no states are kept with the draws, and on user code, which is asked for little more than by the run.
TEST(LocalGain, ATrapIsFoundWhateverIsKept) {
  const auto code = std::make_shared<DimerCode>();
  const Sampler trap = own_kernel("flip-both", FlipBoth());
  for (const Model& model : {network_model(shared(dimer())), callback_model("user", {{2, 2, 2}, {}}, code, {})}) {
    for (const Keep keep : {Keep::draws, Keep::monitors}) {
      RunOptions options;
      options.keep = keep;
      options.start = Start::given;
      options.given = {0, 1, 1};
      options.warmup = 10;
      code->evaluated = 0;
      const RunResult result = run(model, trap, options);
      EXPECT_EQ(result.checks.gains.size(), 2U) << result.model << (keep == Keep::draws);
      EXPECT_LT(code->evaluated, 1.1 * 4 * (10 + 1000) * 6);
    }
  }
}

// What is checked does not depend on how a run came about.
TEST(LocalGain, ALongerRunIsCheckedAsOneOfThatLength) {
  RunOptions options;
  options.draws = 300;
  options.keep = Keep::monitors;
  const Model model = make_model("ising:size=6,lambda=0.3");
  poise::Run shorter(model, parse_sampler("dlmc"), options);
  shorter.warm_up();
  shorter.sample(123);
  poise::Run longer(model, parse_sampler("dlmc"), options);
  longer.load(shorter.save());
  longer.sample(300 - 123);
  poise::Run whole(model, parse_sampler("dlmc"), options);
  whole.warm_up();
  whole.sample(300);
  const auto gains = [](poise::Run& one) { return report_json(make_report(one.finish()))["checks"]; };
  EXPECT_EQ(gains(longer), gains(whole));
}

TEST(KeptStates, AreEvenlySpacedInBothPhases) {
  KeptStates kept;
  std::size_t odd = 0;
  for (std::uint64_t draw = 1; draw <= 5000; ++draw) {
    EXPECT_EQ(kept.until_next(draw - 1) == 1, kept.wants(draw));
    if (kept.wants(draw)) kept.add(std::vector<Value>{static_cast<Value>(draw / 63)}, 16);
  }
  ASSERT_GE(kept.states().size(), 16U);
  ASSERT_LT(kept.states().size(), 48U);
  for (std::size_t k = 0; k < kept.states().size(); ++k) {
    EXPECT_EQ(kept.states()[k][0], 3 * (k + 1));  // every 189th draw
    odd += 189 * (k + 1) % 2;
  }
  EXPECT_NEAR(static_cast<double>(odd), 0.5 * static_cast<double>(kept.states().size()), 1.0);
}

TEST(LocalGain, OneChainOfFourIsEnough) {
  const Model model = network_model(shared(dimer()));
  CheckedStates states = repeated({{1, 1, 1}, {0, 0, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}}, 16);
  ModelChecks checks;
  add_local_gains(model, states, 1, checks);
  EXPECT_TRUE(checks.gains.empty());
  for (std::size_t s = 0; s < 16; ++s) states.levels[(2 * 16 + s) * 3] ^= 1;
  add_local_gains(model, states, 1, checks);
  EXPECT_EQ(checks.gains.size(), 2U);
}

// Repeated states are one state: a chain that never moved may be anywhere.
TEST(LocalGain, OneStateIsNotEnough) {
  ModelChecks checks;
  add_local_gains(network_model(shared(dimer())), repeated({{0, 1, 1}}, 64), 1, checks);
  EXPECT_TRUE(checks.gains.empty());
}

// The identity behind the check, and that its numbers are in the interval that is assumed.
TEST(LocalGain, IsZeroOnAverage) {
  const Model model = network_model(shared(mixed_network(0.0, 5)));
  const std::vector<Index> variables = {0, 1, 3, 4};
  std::vector<double> mean(5, 0.0), gain(5, 0.0);
  for (std::size_t k = 0; k < 2 * 3 * 2 * 4; ++k) {
    const std::vector<Value> x = {static_cast<Value>(k % 2), static_cast<Value>(k / 2 % 3), 0,
                                  static_cast<Value>(k / 6 % 2), static_cast<Value>(k / 12)};
    const double p = testing::product_at(*std::get<NetworkDescription>(model.description).network, x);
    for (const std::vector<Index>& some : {variables, std::vector<Index>{3}}) {  // all at once, and one by one
      LawReader(model, some).read(x, [&](const ConditionalLaw& law) {
        const Index i = some[law.position];
        for (std::size_t l = 0; l < law.probabilities.size(); ++l) {
          mean[i] += p * law.probabilities[l] * std::clamp(law.log_ratios[l], -1.0, 1.0);
          gain[i] += p * law.probabilities[l] * law.log_ratios[l];
        }
      });
    }
  }
  for (const Index i : variables) {
    EXPECT_NEAR(mean[i], 0.0, 1e-11);
    EXPECT_NEAR(gain[i], 0.0, 1e-11);
  }
}

TEST(LocalGain, RightRunsAreQuiet) {
  RunOptions options;
  options.draws = 400;
  for (const char* sampler : {"lb", "gwg", "pas", "hb:block=2", "temper:of=lb"}) {
    const RunResult result = run(make_model("ising:size=6,lambda=0.3"), parse_sampler(sampler), options);
    EXPECT_GT(result.checks.tested_gains, 0U);
    EXPECT_TRUE(result.checks.gains.empty()) << sampler;
  }
  EXPECT_EQ(run(make_model("ising:size=6,lambda=0.3"), parse_sampler("gibbs"), options).checks.tested_gains, 0U);
}

}  // namespace poise::model_checks_test
