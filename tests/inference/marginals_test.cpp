/// Marginals by every means against enumeration, and what is said when sampling cannot give them.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include <poise/diagnose.hpp>
#include <poise/extend/kernels/step.hpp>
#include <poise/marginals.hpp>
#include "exact/exact_inference.hpp"
#include "models/network/markov_network.hpp"
#include "support/enumerate.hpp"
#include "support/small_networks.hpp"

namespace poise::marginals_test {

using namespace poise::testing;

Marginals enumerate_marginals(const Network& network) {
  Marginals out(network.cardinalities);
  const MarkovNetwork target(network);
  const auto states = all_states(target);
  const auto p = probabilities(target, states);
  for (std::size_t s = 0; s < states.size(); ++s) {
    for (Index i = 0; i < network.num_variables(); ++i) {
      out.of(i)[network.is_observed(i) ? network.observed[i] : states[s][i]] += p[s];
    }
  }
  return out;
}

std::shared_ptr<const Network> shared(Network network) { return std::make_shared<const Network>(std::move(network)); }

/// x[0] = x[1] = x[2], and each end of the scale is as likely: no single change leads from one to the other.
Network two_islands() {
  Network network;
  network.name = "islands";
  network.cardinalities = {2, 2, 2};
  network.add_factor(std::vector<Index>{0, 1}, std::vector<double>{1.0, 0.0, 0.0, 1.0});
  network.add_factor(std::vector<Index>{1, 2}, std::vector<double>{1.0, 0.0, 0.0, 1.0});
  return network;
}

TEST(Marginals, ExactOnesAreThoseOfEnumeration) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    for (const Network& network : {mixed_network(0.2, seed), mixed_network_with_evidence(0.1, seed)}) {
      const MarginalsAnswer answer = find_marginals(shared(network), {});
      ASSERT_EQ(answer.method, Method::exact);
      const Marginals truth = enumerate_marginals(network);
      for (std::size_t k = 0; k < truth.values.size(); ++k) {
        EXPECT_NEAR(answer.marginals.values[k], truth.values[k], 1e-12);
      }
    }
  }
}

// Counted and averaged marginals of every sampler, each within six of its own standard errors.
TEST(Marginals, EverySamplerFindsThem) {
  const Network network = mixed_network_with_evidence(0.1, 3);
  const Marginals truth = enumerate_marginals(network);
  const Model model = network_model(shared(network));
  for (const char* sampler : {"gibbs", "lb:g=sqrt", "lb:g=barker", "lb:g=min", "lb:g=max", "lsb", "lsb1", "lsb2",
                              "lsb2:net=monotone,blocks=4,units=4", "exact"}) {
    SCOPED_TRACE(sampler);
    RunOptions options;
    options.draws = 4000;
    options.warmup = 500;
    options.thin = std::string(sampler) == "gibbs" || std::string(sampler) == "exact" ? 1 : 8;
    options.rao_blackwell = true;
    const RunResult result = run(model, parse_sampler(sampler), options);
    std::size_t entry = 0;
    for (Index i = 0; i < network.num_variables(); ++i) {
      if (network.is_observed(i)) continue;
      for (Index level = 1; level < network.cardinalities[i]; ++level, ++entry) {
        const double error = result.rao_blackwell_mcse[entry];
        ASSERT_TRUE(error > 0.0 || truth.of(i)[level] == 0.0);
        EXPECT_LT(error, 0.02);
        EXPECT_NEAR(result.rao_blackwell[entry], truth.of(i)[level], 6.0 * error + 1e-12);
        EXPECT_NEAR(result.empirical_marginals[entry], truth.of(i)[level], 0.03);
      }
    }
    EXPECT_EQ(entry, result.rao_blackwell.size());
  }
}

TEST(Marginals, AveragedConditionalsAreTheSameFromRatiosAndFromGibbs) {
  RaoBlackwell averaged;
  averaged.sums.assign(3, 0.0);
  averaged.add(0, std::vector<double>{std::log(2.0), -INFINITY, std::log(3.0)}, 1);  // levels 0, 2 and 3, now at 1
  EXPECT_NEAR(averaged.sums[0], 1.0 / 6.0, 1e-15);
  EXPECT_EQ(averaged.sums[1], 0.0);
  EXPECT_NEAR(averaged.sums[2], 0.5, 1e-15);
}

RunMarginals sampled(const Network& network, RunOptions options) {
  options.rao_blackwell = true;
  const RunResult result = run(network_model(shared(network)), parse_sampler("gibbs"), options);
  return marginals_of(result, make_report(result));
}

/// x[0] is at level 0 where x[1] is, and at any of the nine others where x[1] is at 1, in all but one of 100 cases.
Network nine_together() {
  Network network;
  network.name = "nine";
  network.cardinalities = {10, 2};
  std::vector<double> table(20, 0.01 / 9.0);
  table[0] = 1.0;
  table[1] = 0.01;
  for (std::size_t k = 1; k < 10; ++k) table[2 * k + 1] = 1.0 / 9.0;
  network.add_factor(std::vector<Index>{0, 1}, table);
  return network;
}

// The nine levels rise and fall together, so the error of level 0 is nine times theirs and not three times.
TEST(Marginals, LevelZeroHasAnErrorOfItsOwn) {
  const Network network = nine_together();
  const Marginals truth = enumerate_marginals(network);
  int far = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    RunOptions options{.chains = 4, .warmup = 200, .draws = 8000, .seed = seed};
    options.rao_blackwell = true;
    const RunResult result = run(network_model(shared(network)), parse_sampler("gibbs"), options);
    const double error = result.rao_blackwell_mcse_of_zero[0];
    EXPECT_NEAR(error, 9.0 * result.rao_blackwell_mcse[4], 1e-2 * error);
    const double found = 1.0 - std::accumulate(result.rao_blackwell.begin(), result.rao_blackwell.begin() + 9, 0.0);
    far += std::abs(found - truth.of(0)[0]) > 3.0 * error ? 1 : 0;
  }
  EXPECT_LE(far, 5);  // 0.27 % of a normal: even of one with a third of its error missing more than five are rare
}

// The third level of x[0] goes with the second of x[1], and chains do not come there: a probability of 4e-4 is missed.
TEST(Marginals, LevelsThatWereNeverReachedHaveAnHonestError) {
  Network network;
  network.name = "rare";
  network.cardinalities = {3, 2};
  network.add_factor(std::vector<Index>{0, 1}, std::vector<double>{0.5, 1e-9, 0.4996, 1e-9, 1e-9, 4e-4});
  const Marginals truth = enumerate_marginals(network);
  RunOptions options{.chains = 4, .warmup = 100, .draws = 1000};
  options.start = Start::zeros;
  const RunMarginals found = sampled(network, options);
  ASSERT_EQ(found.counted.of(0)[2], 0.0);
  for (Index i = 0; i < 2; ++i) {
    for (std::size_t k = 0; k < truth.of(i).size(); ++k) {
      EXPECT_NEAR(found.marginals.of(i)[k], truth.of(i)[k], 3.0 * found.mcse.of(i)[k]) << i << ' ' << k;
    }
  }
  EXPECT_NEAR(found.mcse.of(0)[2], 1.0 / 4000.0, 1e-4);
  EXPECT_LT(found.mcse.of(0)[2], 0.01);
}

TEST(Marginals, LevelsThatZerosRuleOutHaveNoError) {
  Network network = two_islands();
  network.cardinalities.push_back(3);
  network.add_factor(std::vector<Index>{3}, std::vector<double>{1.0, 0.0, 2.0});
  const RunMarginals found = sampled(condition(network, {{0, 1}}), {.chains = 4, .warmup = 10, .draws = 500});
  EXPECT_NEAR(found.marginals.of(2)[1], 1.0, 1e-6);
  EXPECT_EQ(found.mcse.of(2)[0], 0.0);
  EXPECT_EQ(found.mcse.of(2)[1], 0.0);
  EXPECT_EQ(found.mcse.of(3)[1], 0.0);
  EXPECT_NEAR(found.marginals.of(3)[2], 2.0 / 3.0, 3.0 * found.mcse.of(3)[2]);
}

// Independent variables have the same conditionals at every sweep: all there is of an error is the rounding of floats.
TEST(Marginals, RoundingOfFloatsIsInTheError) {
  Network network;
  network.name = "independent";
  Rng rng(5, 1);
  for (Index i = 0; i < 200; ++i) {
    const Index levels = i % 2 == 0 ? 2 : 5;
    network.cardinalities.push_back(levels);
    std::vector<double> table(levels);
    for (double& value : table) value = std::exp(rng.normal());
    network.add_factor(std::vector<Index>{i}, table);
  }
  const RunMarginals found = sampled(network, {.chains = 16, .warmup = 10, .draws = 2000});
  for (Index i = 0; i < 200; ++i) {
    const std::span<const double> table = network.table(i);
    double total = 0.0;
    for (const double value : table) total += value;
    for (std::size_t k = 0; k < table.size(); ++k) {
      EXPECT_NEAR(found.marginals.of(i)[k], table[k] / total, found.mcse.of(i)[k]) << i << ' ' << k;
      if (found.counted.of(i)[k] > 0.01) EXPECT_LT(found.mcse.of(i)[k], 1e-5);
    }
  }
}

TEST(Marginals, SamplingSaysWhatItDidAndWhy) {
  const Network network = mixed_network_with_evidence(0.0, 2);
  MarginalsOptions options;
  options.method = Method::sample;
  options.seconds = 1.0;
  const MarginalsAnswer answer = find_marginals(shared(network), options);
  EXPECT_EQ(answer.method, Method::sample);
  EXPECT_EQ(answer.pilots.size(), pilot_samplers(network_model(shared(network))).size());
  EXPECT_TRUE(std::is_sorted(answer.pilots.begin(), answer.pilots.end(),
                             [](const Pilot& a, const Pilot& b) { return a.error < b.error; }));
  EXPECT_EQ(answer.report->sampler, answer.pilots.front().sampler);
  EXPECT_TRUE(answer.warnings().empty()) << answer.warnings().front().text;
  EXPECT_LT(mean_absolute_error(answer.marginals, enumerate_marginals(network)), 0.01);
  const auto json = marginals_json(answer, network);
  EXPECT_EQ(json.at("method"), "sample");
  EXPECT_EQ(json.at("variables").size(), 5U);
  EXPECT_TRUE(json.at("variables")[1].at("observed"));
  EXPECT_NE(marginals_text(answer, network, 100, 10).find("pilot"), std::string::npos);
}

/// A complete graph that takes longer than there is time for, beside a chain and a pair that do not.
TEST(Marginals, PartsThatFitAreExact) {
  RandomNetwork recipe{std::vector<Index>(38, 2), {{6, 7}}, 0.3, 0.0, 5, {}};
  for (Index i = 0; i < 5; ++i) recipe.scopes.push_back({i, i + 1});
  const Network easy = condition(recipe.make(), {{3, 1}});  // tables are drawn one after another
  for (Index i = 8; i < 38; ++i) {
    for (Index j = 8; j < i; ++j) recipe.scopes.push_back({j, i});
  }
  const auto network = shared(condition(recipe.make(), {{3, 1}}));
  MarginalsOptions options;
  options.memory_limit = 4e6;
  options.seconds = 0.6;
  const MarginalsAnswer answer = find_marginals(network, options);
  EXPECT_EQ(answer.method, Method::sample);
  EXPECT_EQ(answer.exact_variables, (std::vector<Index>{0, 1, 2, 4, 5, 6, 7}));
  const JunctionTree tree(easy, plan_elimination(easy));
  for (Index i = 0; i < 38; ++i) {
    if (i < 8) {
      EXPECT_NEAR(answer.marginals.of(i)[1], tree.marginals().of(i)[1], 1e-12) << i;
      EXPECT_EQ(answer.mcse.of(i)[1], 0.0);
    } else {
      EXPECT_GT(answer.mcse.of(i)[1], 0.0);
    }
  }
  EXPECT_TRUE(answer.log_partition);
  EXPECT_NE(answer.reason.find("7 variables in parts that hang together with no other are exact"), std::string::npos);
  const auto json = marginals_json(answer, *network);
  EXPECT_TRUE(json.at("variables")[0].at("exact"));
  EXPECT_FALSE(json.at("variables")[8].at("exact"));
  EXPECT_NE(marginals_text(answer, *network, 100, 38).find("exact"), std::string::npos);
}

TEST(Marginals, TooLittleMemoryMeansSampling) {
  MarginalsOptions options;
  options.memory_limit = 100.0;
  options.seconds = 0.05;
  const auto network = shared(mixed_network(0.0, 2));
  EXPECT_EQ(find_marginals(network, options).method, Method::sample);
  options.method = Method::exact;
  EXPECT_THROW((void)find_marginals(network, options), InputError);
}

TEST(Stuck, ChainsOnSeparateIslandsAreNoticed) {
  RunOptions options;
  options.draws = 200;
  for (const char* sampler : {"gibbs", "lsb", "lb:g=sqrt"}) {
    const Report report = make_report(run(network_model(shared(two_islands())), parse_sampler(sampler), options));
    ASSERT_FALSE(report.warnings.empty());
    EXPECT_EQ(report.warnings.front().code, "stuck");
    EXPECT_NE(report.warnings.front().text.find("separate modes"), std::string::npos) << report.warnings.front().text;
    EXPECT_EQ(report.warnings.front().next, "--sampler exact");
  }
}

TEST(Stuck, ChainsOnTheSameIslandAreNoticed) {
  RunOptions options;
  options.draws = 200;
  options.start = Start::zeros;
  const Report report = make_report(run(network_model(shared(two_islands())), parse_sampler("gibbs"), options));
  EXPECT_EQ(report.frozen.size(), 3U);
  ASSERT_FALSE(report.warnings.empty());
  EXPECT_NE(report.warnings.front().text.find("x[0], x[1] and x[2] never changed although"), std::string::npos);
}

// Evidence leaves x[2] one level; zeros say so, and nothing is wrong with that.
TEST(Stuck, WhatZerosDetermineIsNotLocked) {
  Network network = two_islands();
  network.cardinalities.push_back(2);
  network.add_factor(std::vector<Index>{3}, std::vector<double>{1.0, 2.0});
  const Model model = network_model(shared(condition(network, {{0, 1}})));
  RunOptions options;
  options.draws = 500;
  const RunResult result = run(model, parse_sampler("gibbs"), options);
  EXPECT_TRUE(result.frozen.empty());
  EXPECT_EQ(result.trace.x[2], 1);
}

TEST(Stuck, AStartWithoutProbabilityIsRefused) {
  RunOptions options;
  options.start = Start::given;
  options.given = {0, 1, 0};
  EXPECT_THROW(run(network_model(shared(two_islands())), parse_sampler("gibbs"), options), InputError);
}

TEST(Stuck, DispersedChainsFindBothIslands) {
  RunOptions options;
  options.draws = 20;
  options.start = Start::dispersed;
  const RunResult result = run(network_model(shared(two_islands())), parse_sampler("gibbs"), options);
  const auto at = [&](std::size_t chain) { return result.trace.x[chain * 20 * 3]; };
  EXPECT_EQ(at(1), 0);  // all at their lowest level
  EXPECT_EQ(at(2), 1);  // all at their highest
  for (std::size_t k = 0; k < result.trace.x.size(); k += 3) {
    EXPECT_EQ(result.trace.x[k], result.trace.x[k + 1]);
    EXPECT_EQ(result.trace.x[k], result.trace.x[k + 2]);
  }
}

TEST(OtherModes, AreSeenWhereASettledChainDiffers) {
  const std::vector<double> answer = {0.88, 0.5, 0.1};
  const std::vector<double> errors = {0.001, 0.001, 0.001};
  const SettledChain same{"gibbs", 0, {{0.881, 0.01}, {0.52, 0.01}, {0.1, 0.0}}};
  const SettledChain on_its_way{"lsb", 1, {{0.3, 0.1}, {0.9, 0.05}, {0.1, 0.0}}};
  const SettledChain close{"lsb", 2, {{0.88, 0.0}, {0.59, 0.001}, {0.1, 0.0}}};
  const SettledChain elsewhere{"lsb", 3, {{0.02, 0.001}, {0.5, 0.0}, {0.95, 0.0}}};
  EXPECT_FALSE(find_other_mode(std::vector{same, on_its_way, close}, answer, errors));
  const auto found = find_other_mode(std::vector{same, on_its_way, close, elsewhere}, answer, errors);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->chain, 3U);
  EXPECT_EQ(found->count, 2U);
  EXPECT_EQ(found->worst, 0U);
  const std::vector<double> unknown(3, NAN);
  EXPECT_FALSE(find_other_mode(std::vector{elsewhere}, answer, unknown));
}

TEST(BatchMeans, ASettledChainHasASmallErrorOfItsOwn) {
  BatchMeans still;
  BatchMeans moving;
  for (std::uint64_t draw = 1; draw <= 1024; ++draw) {
    still.add(draw, std::vector<double>{0.25 * static_cast<double>(draw)}, draw);
    const double x = static_cast<double>(draw);
    moving.add(draw, std::vector<double>{x * x / 2048.0}, draw);
  }
  EXPECT_NEAR(settled_mean(still, 0).mean, 0.25, 1e-12);
  EXPECT_NEAR(settled_mean(still, 0).error, 0.0, 1e-12);
  EXPECT_GT(settled_mean(moving, 0).mean, 0.7);
  EXPECT_GT(settled_mean(moving, 0).error, 0.03);
  EXPECT_TRUE(std::isnan(settled_mean(BatchMeans(), 0).mean));
}

TEST(BatchMeans, JoinNeighboursAndKeepTheirMeans) {
  BatchMeans batches;
  std::vector<double> sums = {0.0};
  for (std::uint64_t draw = 1; draw <= 1000; ++draw) {
    sums[0] += static_cast<double>(draw);
    batches.add(draw, sums, draw);
  }
  EXPECT_GE(batches.size(), BatchMeans::kMost / 2);
  EXPECT_LT(batches.size(), BatchMeans::kMost);
  for (std::size_t b = 0; b < batches.size(); ++b) {
    EXPECT_NEAR(batches.mean(b, 0), 32.0 * static_cast<double>(b) + 16.5, 1e-9);
  }
}

TEST(BatchMeans, ErrorOfIndependentDrawsIsTheUsualOne) {
  std::vector<BatchMeans> chains(4);
  for (std::size_t c = 0; c < 4; ++c) {
    Rng rng(3, c);
    std::vector<double> sums = {0.0};
    for (std::uint64_t draw = 1; draw <= 20000; ++draw) {
      sums[0] += rng.normal();
      chains[c].add(draw, sums, draw);
    }
  }
  EXPECT_NEAR(standard_error(chains, 0), std::sqrt(1.0 / 80000.0), 0.0015);
}

// Series worth 60 draws in four chains of 1000: batches of 32 draws are correlated.
TEST(BatchMeans, ErrorOfSlowChainsIsHonest) {
  constexpr double kMemory = 0.97;
  constexpr int kRuns = 400;
  double squares = 0.0;
  int beyond = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<BatchMeans> chains(4);
    double mean = 0.0;
    for (std::size_t c = 0; c < 4; ++c) {
      Rng rng(5, static_cast<std::uint64_t>(4 * run) + c);
      double x = rng.normal();
      std::vector<double> sums = {0.0};
      for (std::uint64_t draw = 1; draw <= 1000; ++draw) {
        x = kMemory * x + std::sqrt(1.0 - kMemory * kMemory) * rng.normal();
        sums[0] += x;
        chains[c].add(draw, sums, draw);
      }
      mean += sums[0] / 4000.0;
    }
    const double z = mean / standard_error(chains, 0);
    squares += z * z / kRuns;
    beyond += std::abs(z) > 3.0 ? 1 : 0;
  }
  EXPECT_LT(squares, 1.4);
  EXPECT_GT(squares, 0.7);
  EXPECT_LE(beyond, kRuns / 50);
}

TEST(BatchMeans, ErrorOfASumKnowsHowItsTermsGoTogether) {
  std::vector<BatchMeans> chains(2);
  for (std::size_t c = 0; c < 2; ++c) {
    Rng rng(4, c);
    std::vector<double> sums = {0.0, 0.0, 0.0};
    for (std::uint64_t draw = 1; draw <= 640; ++draw) {
      const double x = rng.normal();
      sums[0] += x;
      sums[1] += x;
      sums[2] -= 2.0 * x;
      chains[c].add(draw, sums, draw);
    }
  }
  EXPECT_NEAR(standard_error(chains, 0, 2), 2.0 * standard_error(chains, 0), 1e-12);
  EXPECT_NEAR(standard_error(chains, 0, 3), 0.0, 1e-12);
}

TEST(BatchMeans, ChainsThatDisagreeAreWorthOneBatchEach) {
  std::vector<BatchMeans> chains(4);
  for (std::size_t c = 0; c < 4; ++c) {
    for (std::uint64_t draw = 1; draw <= 100; ++draw) {
      chains[c].add(draw, std::vector<double>{static_cast<double>(draw * (c % 2))}, draw);
    }
  }
  EXPECT_NEAR(standard_error(chains, 0), std::sqrt(1.0 / 3.0) / 2.0, 1e-12);
}

}  // namespace poise::marginals_test
