/// The maximum mean discrepancy against its definition, the law of its p-value, and `poise mmd`.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <poise/diagnose.hpp>
#include <poise/extend/base/rng.hpp>
#include <poise/mmd.hpp>

#include "support/program.hpp"

namespace poise::mmd_test {

using Labels = std::vector<std::int8_t>;

double kernel(const std::int8_t* x, const std::int8_t* y, std::size_t variables) {
  std::size_t differ = 0;
  for (std::size_t i = 0; i < variables; ++i) differ += x[i] != y[i] ? 1 : 0;
  return std::exp(-static_cast<double>(differ) / static_cast<double>(variables));
}

/// Mean of the kernel over all pairs, or over pairs of different draws of one sample.
double mean_kernel(const Labels& a, const Labels& b, std::size_t variables, bool skip_diagonal) {
  double sum = 0;
  std::size_t pairs = 0;
  for (std::size_t i = 0; i < a.size(); i += variables) {
    for (std::size_t j = 0; j < b.size(); j += variables) {
      if (skip_diagonal && i == j) continue;
      sum += kernel(a.data() + i, b.data() + j, variables);
      ++pairs;
    }
  }
  return sum / static_cast<double>(pairs);
}

double plain_mmd2(const Labels& a, const Labels& b, std::size_t variables, bool skip_diagonal) {
  return mean_kernel(a, a, variables, skip_diagonal) + mean_kernel(b, b, variables, skip_diagonal) -
         2 * mean_kernel(a, b, variables, false);
}

Labels random_labels(std::size_t count, int levels, Rng& rng, int lowest = 0) {
  Labels labels(count);
  for (std::int8_t& label : labels) label = static_cast<std::int8_t>(lowest + static_cast<int>(rng.uniform() * levels));
  return labels;
}

constexpr MmdOptions kNoTest{.permutations = 0, .seed = 1, .threads = 1};

TEST(Mmd, OfTwoPoints) {
  // One draw each, at distance h: V = 2 - 2 exp(-h/d).
  const Labels x{0, 1, 2, 3, 4, 5, 6};
  const Labels y{0, 1, 2, 9, 4, 9, 6};
  const MmdResult result = mmd(x, y, 7, {.permutations = 10, .seed = 1, .threads = 1});
  EXPECT_NEAR(result.v_statistic, 2 - 2 * std::exp(-2.0 / 7), 1e-15);
  EXPECT_NEAR(result.mmd(), std::sqrt(result.v_statistic), 1e-15);
  EXPECT_NEAR(result.log10_mmd(), std::log10(result.mmd()), 1e-15);
  EXPECT_TRUE(std::isnan(result.u_statistic)) << "one draw has no pairs";
  EXPECT_EQ(result.p_value, 1.0) << "both splits are equally far apart";
}

TEST(Mmd, KeepsItsDigitsWhereDistancesAreSmall) {
  const std::size_t d = 100'000;
  const Labels x(d, 0);
  Labels y = x;
  y[d - 1] = 1;
  const double expected = -2 * std::expm1(-1.0 / static_cast<double>(d));
  EXPECT_NEAR(mmd(x, y, d, kNoTest).v_statistic, expected, 1e-15 * expected);
}

TEST(Mmd, OfTheSameDrawsIsZero) {
  Rng rng(7, 0);
  const std::size_t d = 37;
  for (const int levels : {2, 9}) {
    const Labels x = random_labels(50 * d, levels, rng);
    Labels reversed;
    for (std::size_t first = x.size(); first > 0; first -= d) {
      reversed.insert(reversed.end(), x.begin() + static_cast<std::ptrdiff_t>(first - d),
                      x.begin() + static_cast<std::ptrdiff_t>(first));
    }
    Labels thrice = x;
    for (int copy = 0; copy < 2; ++copy) thrice.insert(thrice.end(), x.begin(), x.end());
    for (const Labels& y : {x, reversed, thrice}) {
      const MmdResult result = mmd(x, y, d);
      EXPECT_EQ(result.v_statistic, 0.0);
      EXPECT_EQ(result.mmd(), 0.0);
      EXPECT_EQ(result.p_value, 1.0);
      EXPECT_TRUE(std::isinf(result.log10_mmd()));
    }
  }
}

TEST(Mmd, AgreesWithItsDefinition) {
  Rng rng(8, 0);
  for (const std::size_t d : {1U, 2U, 63U, 64U, 65U, 129U, 200U}) {
    for (const int levels : {1, 2, 3, 4, 5, 100, 256}) {
      const Labels a = random_labels(7 * d, levels, rng, -128);
      const Labels b = random_labels(12 * d, (levels + 1) / 2, rng, -128);
      const MmdResult result = mmd(a, b, d, kNoTest);
      EXPECT_NEAR(result.v_statistic, plain_mmd2(a, b, d, false), 1e-12) << d << " variables, " << levels << " levels";
      EXPECT_NEAR(result.u_statistic, plain_mmd2(a, b, d, true), 1e-12) << d << " variables, " << levels << " levels";
      EXPECT_EQ(result.draws_a, 7U);
      EXPECT_EQ(result.draws_b, 12U);
      EXPECT_TRUE(std::isnan(result.p_value));
    }
  }
}

TEST(Mmd, UIsUnbiasedAndTheBiasOfVIsKnown) {
  // All samples of two draws from p and three from q, on the six states of a binary and a ternary variable.
  const std::vector<Labels> states{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}};
  const std::vector<double> p{0.3, 0.05, 0.15, 0.2, 0.1, 0.2};
  const std::vector<double> q{0.1, 0.25, 0.15, 0.05, 0.4, 0.05};
  const auto expected_kernel = [&](const std::vector<double>& f, const std::vector<double>& g) {
    double sum = 0;
    for (std::size_t i = 0; i < 6; ++i) {
      for (std::size_t j = 0; j < 6; ++j) sum += f[i] * g[j] * kernel(states[i].data(), states[j].data(), 2);
    }
    return sum;
  };
  double u = 0;
  double v = 0;
  for (std::size_t code = 0; code < 6 * 6 * 6 * 6 * 6; ++code) {
    Labels samples[2];
    double probability = 1;
    std::size_t rest = code;
    for (int draw = 0; draw < 5; ++draw, rest /= 6) {
      const Labels& state = states[rest % 6];
      Labels& sample = samples[draw < 2 ? 0 : 1];
      sample.insert(sample.end(), state.begin(), state.end());
      probability *= draw < 2 ? p[rest % 6] : q[rest % 6];
    }
    const MmdResult result = mmd(samples[0], samples[1], 2, kNoTest);
    u += probability * result.u_statistic;
    v += probability * result.v_statistic;
  }
  const double truth = expected_kernel(p, p) + expected_kernel(q, q) - 2 * expected_kernel(p, q);
  EXPECT_NEAR(u, truth, 1e-12);
  EXPECT_NEAR(v, truth + (1 - expected_kernel(p, p)) / 2 + (1 - expected_kernel(q, q)) / 3, 1e-12);
}

TEST(Mmd, PermutationsAreAllSplitsAlike) {
  // The share of the splits, all enumerated, that are as far apart, against that of many random ones: |z| < 6.
  Rng rng(9, 0);
  const std::size_t d = 11;
  for (const auto& [in_a, in_b] : {std::pair<std::size_t, std::size_t>{3, 6}, {6, 3}, {4, 4}, {1, 7}}) {
    const Labels a = random_labels(in_a * d, 3, rng);
    const Labels b = random_labels(in_b * d, 2, rng);
    const double found = plain_mmd2(a, b, d, false);
    Labels pooled = a;
    pooled.insert(pooled.end(), b.begin(), b.end());
    double splits = 0;
    double as_far = 0;
    std::vector<bool> second(in_a + in_b, false);
    std::fill(second.begin() + static_cast<std::ptrdiff_t>(in_a), second.end(), true);
    do {
      Labels sides[2];
      for (std::size_t i = 0; i < second.size(); ++i) {
        const auto x = pooled.begin() + static_cast<std::ptrdiff_t>(i * d);
        Labels& side = sides[second[i] ? 1 : 0];
        side.insert(side.end(), x, x + static_cast<std::ptrdiff_t>(d));
      }
      splits += 1;
      as_far += plain_mmd2(sides[0], sides[1], d, false) >= found - 1e-12 ? 1 : 0;
    } while (std::next_permutation(second.begin(), second.end()));
    const MmdResult result = mmd(a, b, d, {.permutations = 40'000, .seed = 3, .threads = 1});
    const double share = as_far / splits;
    const double error = std::sqrt(share * (1 - share) / 40'000) + 1e-12;
    EXPECT_LT(std::abs(static_cast<double>(result.as_far) / 40'000 - share) / error, 6) << in_a << " and " << in_b;
    EXPECT_EQ(result.p_value, static_cast<double>(result.as_far + 1) / 40'001);
  }
}

TEST(Mmd, PValueIsUniformForOneLaw) {
  // By Dvoretzky, Kiefer, Wolfowitz and Massart P(sup |F_n - F| > e) <= 2 exp(-2 n e^2): one in a billion at this e.
  // F(u) itself is u up to the distance of two p-values, ties being all but impossible here.
  constexpr std::size_t repetitions = 2000;
  constexpr std::size_t permutations = 99;
  const double gate = std::sqrt(std::log(2e9) / (2 * repetitions)) + 1.0 / (permutations + 1);
  Rng rng(10, 0);
  std::vector<double> values;
  for (std::size_t r = 0; r < repetitions; ++r) {
    const std::size_t d = 45;
    const Labels a = random_labels(12 * d, 3, rng);
    const Labels b = random_labels(17 * d, 3, rng);
    values.push_back(mmd(a, b, d, {.permutations = permutations, .seed = r, .threads = 1}).p_value);
  }
  std::sort(values.begin(), values.end());
  for (std::size_t r = 0; r < repetitions; ++r) {
    EXPECT_LT(std::abs(static_cast<double>(r + 1) / repetitions - values[r]), gate);
    EXPECT_LT(std::abs(static_cast<double>(r) / repetitions - values[r]), gate);
  }
}

TEST(Mmd, PValueIsSmallForTwoLaws) {
  Rng rng(11, 0);
  const std::size_t d = 30;
  const Labels a = random_labels(200 * d, 3, rng);
  Labels b = random_labels(150 * d, 3, rng);
  for (std::int8_t& label : b) label = rng.uniform() < 0.3 ? std::int8_t{0} : label;
  const MmdResult result = mmd(a, b, d);
  EXPECT_EQ(result.as_far, 0U);
  EXPECT_EQ(result.p_value, 1.0 / 1001);
  // Few of many variables differ, and by little: what is left of the kernel after rounding must still tell.
  const std::size_t many = 50'000;
  Labels c(60 * many, 1);
  Labels e(60 * many, 1);
  for (std::size_t draw = 0; draw < 60; ++draw) {
    for (std::size_t i = 0; i < 3; ++i) {
      c[draw * many + i] = rng.uniform() < 0.2 ? 1 : 0;
      e[draw * many + i] = rng.uniform() < 0.8 ? 1 : 0;
    }
  }
  EXPECT_EQ(mmd(c, e, many).as_far, 0U);
}

TEST(Mmd, DoesNotDependOnThreads) {
  Rng rng(12, 0);
  const std::size_t d = 70;
  const Labels a = random_labels(101 * d, 4, rng);
  const Labels b = random_labels(83 * d, 4, rng);
  const MmdResult one = mmd(a, b, d, {.permutations = 333, .seed = 5, .threads = 1});
  for (const unsigned threads : {0U, 2U, 7U}) {
    const MmdResult other = mmd(a, b, d, {.permutations = 333, .seed = 5, .threads = threads});
    EXPECT_EQ(one.v_statistic, other.v_statistic);
    EXPECT_EQ(one.u_statistic, other.u_statistic);
    EXPECT_EQ(one.as_far, other.as_far);
  }
  EXPECT_NE(one.as_far, mmd(a, b, d, {.permutations = 333, .seed = 6, .threads = 1}).as_far);
}

TEST(Mmd, RefusesWhatIsNoSample) {
  const Labels x(12, 0);
  EXPECT_THROW(static_cast<void>(mmd(x, Labels{}, 4)), InputError);
  EXPECT_THROW(static_cast<void>(mmd(Labels{}, x, 4)), InputError);
  EXPECT_THROW(static_cast<void>(mmd(x, x, 0)), InputError);
  EXPECT_THROW(static_cast<void>(mmd(x, x, 5)), InputError);
  EXPECT_THROW(static_cast<void>(mmd(Labels(70'000, 0), x, 1)), InputError);
}

/// Independent bits of which one, chosen at random, is drawn anew per step: all correlate by (1 - 1/d)^t.
Labels slow_bits(std::size_t chains, std::size_t draws, std::size_t d, Rng& rng) {
  Labels out;
  for (std::size_t chain = 0; chain < chains; ++chain) {
    Labels x = random_labels(d, 2, rng);
    for (std::size_t draw = 0; draw < draws; ++draw) {
      const auto i = static_cast<std::size_t>(rng.uniform() * static_cast<double>(d));
      x[i] = rng.uniform() < 0.5 ? 0 : 1;
      out.insert(out.end(), x.begin(), x.end());
    }
  }
  return out;
}

TEST(Thinning, TakesDrawsAtEqualDistances) {
  const Labels x{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  EXPECT_EQ(evenly_spaced({x.data(), 2, 6, 1}, 3), (Labels{2, 6, 10}));
  EXPECT_EQ(evenly_spaced({x.data(), 2, 3, 2}, 2), (Labels{2, 3, 8, 9}));
  EXPECT_EQ(evenly_spaced({x.data(), 2, 6, 1}, 50), x);
}

TEST(Thinning, DistanceIsTwoAutocorrelationTimes) {
  // tau = 2 d - 1 for all linear functions of the bits. The estimate is the least of sixteen, each good to some 15 %.
  Rng rng(13, 0);
  const std::size_t d = 16;
  const Labels x = slow_bits(4, 10'000, d, rng);
  const Thinning found = find_thinning({x.data(), 4, 10'000, d}, {});
  const double effective = 40'000.0 / (2 * d - 1);
  EXPECT_GT(found.effective, 0.5 * effective);
  EXPECT_LT(found.effective, 1.2 * effective);
  EXPECT_NEAR(static_cast<double>(found.draws), found.effective / 2, 0.01 * found.effective);

  const Labels independent = random_labels(4000 * d, 2, rng);
  const Thinning most = find_thinning({independent.data(), 4, 1000, d}, {});
  EXPECT_GT(most.draws, 2400U);
  EXPECT_LE(most.draws, 4000U);
}

TEST(Thinning, SeesModesThatMonitorsDoNot) {
  // All bits alike, up to noise, and turned over once in a hundred draws; the monitor is independent noise.
  Rng rng(14, 0);
  const std::size_t d = 20;
  Labels x;
  std::vector<double> monitor;
  bool up = false;
  for (std::size_t draw = 0; draw < 4000; ++draw) {
    if (rng.uniform() < 0.01) up = !up;
    for (std::size_t i = 0; i < d; ++i) x.push_back((rng.uniform() < 0.1) != up ? 1 : 0);
    monitor.push_back(rng.uniform());
  }
  const ChainsView series{monitor.data(), 4, 1000};
  const Thinning found = find_thinning({x.data(), 4, 1000, d}, {&series, 1});
  EXPECT_LT(found.effective, 4000.0 / 50);
  for (double& value : monitor) value = std::floor(value * 2);
  std::sort(monitor.begin(), monitor.end());  // now the monitor is the slowest: each chain stays where it is
  EXPECT_LT(find_thinning({x.data(), 4, 1000, d}, {&series, 1}).effective, 20);
}

TEST(Thinning, CountsChainsWhereNothingElseIsKnown) {
  const Labels still(4 * 100 * 3, 1);
  EXPECT_EQ(find_thinning({still.data(), 4, 100, 3}, {}).effective, 4);
  Rng rng(15, 0);
  const Labels few = random_labels(4 * 5 * 30, 2, rng);
  EXPECT_EQ(find_thinning({few.data(), 4, 5, 30}, {}).effective, 4);
  EXPECT_GE(find_thinning({few.data(), 1, 1, 30}, {}).draws, 1U);
  EXPECT_EQ(find_thinning({nullptr, 0, 0, 3}, {}).draws, 0U);
}

TEST(Thinning, MakesTheTestHoldForChains) {
  // The correlation left, e^-4, multiplies variances by (1 + e^-4) / (1 - e^-4) = 1.04, and so V. The kernel has
  // eigenvalues r^s, r = tanh(1/(2 d)), for the C(d, s) products of s bits, so V is spread like a mean of
  // (sum r^s)^2 / (sum r^2s) = 26 squares of normals: by sqrt(2/26) = 0.28 of itself. 0.04 is a seventh of that, which
  // makes 5 % at most 7 %; then 6 standard deviations of the count. Without thinning nearly all are rejected.
  constexpr std::size_t repetitions = 200;
  Rng rng(16, 0);
  std::size_t rejected = 0;
  std::size_t rejected_as_they_are = 0;
  for (std::size_t r = 0; r < repetitions; ++r) {
    const std::size_t d = 16;
    Labels all[2];
    Labels thinned[2];
    for (int side = 0; side < 2; ++side) {
      const Labels x = slow_bits(4, 600, d, rng);
      const DrawsView draws{x.data(), 4, 600, d};
      all[side] = evenly_spaced(draws, 300);
      thinned[side] = evenly_spaced(draws, find_thinning(draws, {}).draws);
    }
    const MmdOptions options{.permutations = 99, .seed = r, .threads = 1};
    rejected += mmd(thinned[0], thinned[1], d, options).p_value <= 0.05 ? 1 : 0;
    rejected_as_they_are += mmd(all[0], all[1], d, options).p_value <= 0.05 ? 1 : 0;
  }
  const double expected = 0.07 * repetitions;
  EXPECT_LT(static_cast<double>(rejected), expected + 6 * std::sqrt(expected));
  EXPECT_GT(rejected_as_they_are, repetitions / 2);
}

}  // namespace poise::mmd_test

namespace poise::testing_program {
namespace mmd_test {

using nlohmann::json;

class MmdProgram : public ProgramTest {
 protected:
  void sample(const std::string& model, const std::string& seed, const std::string& out, const Arguments& more = {}) {
    Arguments arguments{"sample", model,    "--sampler", "gibbs", "--warmup", "200",    "--draws",
                        "500",    "--seed", seed,        "--out", out,        "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run(arguments);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }

  void expect_refused(const Arguments& arguments, const std::string& part) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_TRUE(outcome.err.starts_with("poise: ")) << outcome.err;
    EXPECT_TRUE(outcome.err.ends_with(".\n") && !outcome.err.ends_with("..\n")) << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << "'" << part << "' is not in: " << outcome.err;
  }
};

TEST_F(MmdProgram, TellsRunsOfTwoModelsApartAndNotThoseOfOne) {
  sample("ising:size=6,lambda=0.1,mu=0.3", "1", "a.zarr");
  sample("ising:size=6,lambda=0.1,mu=0.3", "2", "b.zarr");
  sample("ising:size=6,lambda=0.2,mu=0.3", "3", "c.zarr");
  const Outcome same = run({"mmd", "a.zarr", "b.zarr", "--json", "same.json"});
  ASSERT_EQ(same.code, 0) << same.err;
  EXPECT_EQ(same.err, "");
  EXPECT_NE(same.out.find("of 1000 random splits"), std::string::npos) << same.out;
  const json answer = json::parse(read_text(work() / "same.json"));
  EXPECT_GT(answer.at("p_value").get<double>(), 0.001);
  EXPECT_EQ(answer.at("variables"), 36);
  EXPECT_EQ(answer.at("permutations"), 1000);
  EXPECT_EQ(answer.at("version"), POISE_VERSION);
  EXPECT_GT(answer.at("mmd2_v").get<double>(), answer.at("mmd2_u").get<double>());
  EXPECT_NEAR(answer.at("mmd").get<double>(), std::sqrt(answer.at("mmd2_v").get<double>()), 1e-12);
  EXPECT_NEAR(answer.at("log10_mmd").get<double>(), std::log10(answer.at("mmd").get<double>()), 1e-12);
  ASSERT_EQ(answer.at("samples").size(), 2U);
  for (const json& part : answer.at("samples")) {
    EXPECT_EQ(part.at("draws"), 2000);
    EXPECT_EQ(part.at("chains"), 4);
    EXPECT_LE(part.at("used"), part.at("independent"));
    EXPECT_LE(part.at("independent").get<double>(), part.at("ess").get<double>() + 1);
  }
  EXPECT_TRUE(answer.at("warnings").empty()) << answer.at("warnings");

  const Outcome different = run({"mmd", "a.zarr", "c.zarr", "--permutations", "200", "--json", "-", "--threads", "1"});
  ASSERT_EQ(different.code, 0) << different.err;
  EXPECT_LE(json::parse(different.out).at("p_value").get<double>(), 1.0 / 201);
  EXPECT_EQ(run({"mmd", "a.zarr", "c.zarr", "--permutations", "200", "--json", "-", "--threads", "2"}).out,
            different.out);
  EXPECT_NE(run({"mmd", "a.zarr", "b.zarr", "--seed", "2"}).out, same.out);
}

TEST_F(MmdProgram, WarnsWhereThereIsNothingToTellFrom) {
  sample("ising:size=4,lambda=0.2", "1", "a.zarr");
  sample("ising:size=4,lambda=0.2", "2", "b.zarr");
  const Outcome few = run({"mmd", "a.zarr", "b.zarr", "--draws", "20"});
  EXPECT_EQ(few.code, 0) << few.err;
  EXPECT_NE(few.out.find("too few to tell"), std::string::npos) << few.out;
  const Outcome same = run({"mmd", "a.zarr", "a.zarr"});
  EXPECT_NE(same.out.find("hold the same draws"), std::string::npos) << same.out;
  const Outcome all = run({"mmd", "a.zarr", "b.zarr", "--correlated", "--json", "-"});
  EXPECT_EQ(json::parse(all.out).at("samples")[1].at("used"), 1000);
  EXPECT_NE(all.out.find("the p-value is too small"), std::string::npos) << all.out;
  const Outcome none = run({"mmd", "a.zarr", "b.zarr", "--permutations", "0", "--json", "-"});
  EXPECT_TRUE(json::parse(none.out).at("p_value").is_null());
}

TEST_F(MmdProgram, BadInputGetsASentence) {
  sample("ising:size=3,lambda=0.2", "1", "spins.zarr");
  sample("ising:size=4,lambda=0.2", "1", "more.zarr");
  sample("ising:size=3,lambda=0.2", "1", "monitors.zarr", {"--keep", "monitors"});
  sample("potts:size=3,levels=2", "1", "two.zarr");
  sample("potts:size=3,levels=3", "1", "three.zarr");
  sample("potts:size=1x9,levels=3", "1", "row.zarr");
  write_text(work() / "text.zarr", "no run");
  expect_refused({"mmd"}, "found 0 runs, expected two");
  expect_refused({"mmd", "spins.zarr"}, "found 1 run, expected two");
  expect_refused({"mmd", "spins.zarr", "two.zarr", "three.zarr"}, "found 3 runs, expected two");
  expect_refused({"mmd", "spins.zarr", "none.zarr"}, "Cannot read none.zarr");
  expect_refused({"mmd", "spins.zarr", "text.zarr"}, "text.zarr is a file, and a run is stored as a folder");
  expect_refused({"mmd", "spins.zarr", "monitors.zarr"}, "monitors.zarr holds monitors only");
  expect_refused({"mmd", "spins.zarr", "more.zarr"}, "spins.zarr has 9 variables, but more.zarr has 16");
  expect_refused({"mmd", "spins.zarr", "two.zarr"}, "spins.zarr has the labels -1, 1, but two.zarr has 0, 1");
  expect_refused({"mmd", "two.zarr", "three.zarr"}, "2 levels for variable 0");
  expect_refused({"mmd", "three.zarr", "row.zarr"}, "a lattice of 3 x 3, but row.zarr has 1 x 9");
  expect_refused({"mmd", "spins.zarr", "spins.zarr", "--draws", "0", "--permutations", "x"},
                 "; --permutations: found 'x'");
  expect_refused({"mmd", "spins.zarr", "spins.zarr", "--json", "no/such/place"}, "no/such/place");
}

}  // namespace mmd_test
}  // namespace poise::testing_program
