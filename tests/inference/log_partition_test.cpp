/// Partition functions of RBMs: enumeration against brute force, annealing against enumeration, and the program.
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>

#include <nlohmann/json.hpp>

#include <poise/log_partition.hpp>
#include "support/program.hpp"
#include "support/small_rbms.hpp"

namespace poise::log_partition_test {

using namespace poise::testing;

/// The sum over all visible states, by the definition.
double brute_force(const RbmWeights& weights) {
  std::vector<double> logs;
  for (std::uint32_t state = 0; state < 1U << weights.visible; ++state) {
    std::vector<Value> x(weights.visible);
    for (Index i = 0; i < weights.visible; ++i) x[i] = state >> i & 1U;
    logs.push_back(plain_log_prob(weights, x));
  }
  const double largest = *std::max_element(logs.begin(), logs.end());
  double sum = 0.0;
  for (const double log : logs) sum += std::exp(log - largest);
  return largest + std::log(sum);
}

double exact(const RbmWeights& weights, unsigned threads = 1) {
  return find_log_partition(Rbm(weights), {.method = LogPartitionMethod::exact, .threads = threads}).exact->value;
}

LogPartition annealed(const RbmWeights& weights, LogPartitionOptions options) {
  options.method = LogPartitionMethod::ais;
  return find_log_partition(Rbm(weights), options);
}

/// Activations of the hidden units are about 5 in size, so that most of them are as good as decided.
RbmWeights middling_rbm() { return random_rbm(40, 15, 1.0, 5); }

TEST(LogPartition, EnumerationOfEitherSideIsTheSumOverAllStates) {
  const std::pair<Index, Index> sizes[] = {{1, 1}, {4, 3}, {3, 5}, {8, 8}, {13, 12}, {12, 13}, {2, 300}, {13, 1}};
  for (const auto& [visible, hidden] : sizes) {
    for (const double scale : {0.0, 1.0, 8.0, 30.0}) {
      RbmWeights weights = random_rbm(visible, hidden, scale, 3);
      for (float& weight : weights.weights) weight = std::clamp(weight, -75.0F, 75.0F);
      const double truth = brute_force(weights);
      EXPECT_NEAR(exact(weights), truth, 1e-11 * (1.0 + std::abs(truth)))
          << visible << " x " << hidden << ", " << scale;
    }
  }
}

TEST(LogPartition, EnumerationStandsTheStrongestWeights) {
  RbmWeights weights = random_rbm(12, 12, 1.0, 4);
  for (std::size_t k = 0; k < weights.weights.size(); ++k) weights.weights[k] = k % 3 == 0 ? -75.0F : 75.0F;
  for (float& bias : weights.visible_bias) bias *= 300.0F;
  for (float& bias : weights.hidden_bias) bias *= 300.0F;
  const double truth = brute_force(weights);
  EXPECT_NEAR(exact(weights), truth, 1e-12 * truth);
}

TEST(LogPartition, AnnealingAgreesWithEnumeration) {
  for (const auto& weights : {middling_rbm(), random_rbm(40, 15, 0.3, 6), random_rbm(9, 600, 0.2, 7)}) {
    const LogPartition answer = find_log_partition(Rbm(weights), {.chains = 128, .temperatures = 500});
    ASSERT_TRUE(answer.annealed && answer.exact);
    EXPECT_LT(std::abs(*answer.difference_in_errors()), 4.0);
    EXPECT_GT(answer.annealed->error, 0.0);
    EXPECT_LT(answer.annealed->error, 0.1);
    EXPECT_GT(answer.annealed->effective_chains, 64.0);
    EXPECT_TRUE(answer.warnings().empty());
    EXPECT_FALSE(answer.interrupted);
  }
}

/// Of 20 estimates, the spread is known to a sixth: a factor of 2 is far outside.
TEST(LogPartition, ReportedErrorsAreThoseOfRepetitions) {
  const RbmWeights weights = middling_rbm();
  const double truth = exact(weights);
  constexpr int repetitions = 20;
  double squares = 0.0;
  double reported = 0.0;
  for (int r = 0; r < repetitions; ++r) {
    const auto answer = annealed(weights, {.chains = 64, .temperatures = 300, .seed = 100U + r});
    squares += std::pow(answer.annealed->value - truth, 2);
    reported += std::pow(answer.annealed->error, 2);
  }
  const double ratio = std::sqrt(squares / reported);
  EXPECT_GT(ratio, 0.5);
  EXPECT_LT(ratio, 2.0);
}

/// Without couplings every chain has the weight prod_j (1 + e^(c_j)) / 2, whatever the temperatures.
TEST(LogPartition, EqualWeightsWhereNothingIsCoupled) {
  const RbmWeights weights = random_rbm(30, 20, 0.0, 8);
  const LogPartition answer = find_log_partition(Rbm(weights), {.chains = 20, .temperatures = 1});
  double truth = 0.0;
  for (const auto* biases : {&weights.visible_bias, &weights.hidden_bias}) {
    for (const double bias : *biases) truth += std::log1p(std::exp(bias));
  }
  EXPECT_NEAR(answer.annealed->value, truth, 1e-10);
  EXPECT_NEAR(answer.exact->value, truth, 1e-10);
  EXPECT_NEAR(answer.annealed->error, 0.0, 1e-10);
  EXPECT_NEAR(answer.annealed->effective_chains, 20.0, 1e-9);
  EXPECT_LT(std::abs(*answer.difference_in_errors()), 1.0);
  EXPECT_TRUE(answer.warnings().empty());
}

TEST(LogPartition, ThreadsChangeNothing) {
  const RbmWeights weights = middling_rbm();
  const auto one = annealed(weights, {.chains = 40, .temperatures = 100, .threads = 1});
  const auto two = annealed(weights, {.chains = 40, .temperatures = 100, .threads = 2});
  EXPECT_EQ(one.annealed->value, two.annealed->value);
  EXPECT_EQ(one.annealed->error, two.annealed->error);
  EXPECT_EQ(exact(weights, 1), exact(weights, 2));
  const auto other = annealed(weights, {.chains = 40, .temperatures = 100, .seed = 2});
  EXPECT_NE(one.annealed->value, other.annealed->value);
}

TEST(LogPartition, TooFewTemperaturesAreNoticed) {
  const RbmWeights weights = random_rbm(40, 30, 3.0, 9);
  const auto answer = annealed(weights, {.chains = 128, .temperatures = 2});
  ASSERT_EQ(answer.warnings().size(), 1U);
  EXPECT_EQ(answer.warnings()[0].code, "weights");
  EXPECT_NE(answer.warnings()[0].sentence().find("cannot be trusted; try --temperatures 8"), std::string::npos);
  EXPECT_LT(answer.annealed->effective_chains, 12.8);
}

TEST(LogPartition, AnErrorThatIsTooSmallIsNoticedWhereTheTruthIsKnown) {
  LogPartition answer;
  answer.annealed = AnnealedLogPartition{.value = 10.0, .error = 0.1, .effective_chains = 90.0, .chains = 100};
  answer.exact = ExactLogPartition{.value = 10.3};
  EXPECT_NEAR(*answer.difference_in_errors(), -3.0, 1e-6);
  EXPECT_TRUE(answer.warnings().empty());
  answer.exact->value = 11.0;
  ASSERT_EQ(answer.warnings().size(), 1U);
  EXPECT_NE(answer.warnings()[0].text.find("10.0 standard errors from the exact value"), std::string::npos);
}

TEST(LogPartition, AStopGivesTheChainsThatAreThrough) {
  std::atomic<bool> stop{true};
  const Rbm rbm(middling_rbm());
  const LogPartition nothing = find_log_partition(rbm, {}, {.progress = {}, .stop = &stop});
  EXPECT_TRUE(nothing.interrupted);
  EXPECT_FALSE(nothing.annealed || nothing.exact);

  stop = false;
  LogPartitionOptions options{.method = LogPartitionMethod::ais, .chains = 64, .temperatures = 100'000, .threads = 1};
  const auto progress = [&](const char* what, double part) {
    EXPECT_STREQ(what, "annealing");
    if (part > 0.26) stop = true;
  };
  const LogPartition part = find_log_partition(rbm, options, {.progress = progress, .stop = &stop});
  EXPECT_TRUE(part.interrupted);
  ASSERT_TRUE(part.annealed);
  EXPECT_LT(part.annealed->chains, 64U);
  EXPECT_EQ(part.annealed->chains % 16, 0U);
  EXPECT_NEAR(part.annealed->value, exact(middling_rbm()), 0.1);
}

TEST(LogPartition, RefusesWhatItCannotDo) {
  const Rbm large(random_rbm(26, 30, 0.1, 1));
  EXPECT_THROW(static_cast<void>(find_log_partition(large, {.method = LogPartitionMethod::exact})), InputError);
  EXPECT_THROW(static_cast<void>(find_log_partition(large, {.method = LogPartitionMethod::both})), InputError);
  EXPECT_THROW(static_cast<void>(find_log_partition(large, {.chains = 1})), InputError);
  EXPECT_THROW(static_cast<void>(find_log_partition(large, {.temperatures = 0})), InputError);
  EXPECT_FALSE(find_log_partition(large, {.chains = 2, .temperatures = 1}).exact);
}

}  // namespace poise::log_partition_test

namespace poise::testing_program {
namespace log_partition_test {

using nlohmann::json;

class LogzProgram : public ProgramTest {
 protected:
  LogzProgram() {
    write_rbm(in_work("small.npz"), poise::testing::random_rbm(40, 15, 1.0, 5));
    write_rbm(in_work("large.npz"), poise::testing::random_rbm(80, 60, 3.0, 5));
  }
};

TEST_F(LogzProgram, ShowsBothMethodsSideBySide) {
  const Outcome outcome = run({"logz", "rbm:weights=small.npz", "--chains", "64", "--temperatures", "500", "--json",
                               "z.json", "--strict", "--quiet"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  for (const char* word : {"ais", "exact", "standard errors", "2^15 states of the hidden units"}) {
    EXPECT_NE(outcome.out.find(word), std::string::npos) << word << " is not in: " << outcome.out;
  }
  const json answer = json::parse(read_text(work() / "z.json"));
  EXPECT_EQ(answer.at("model"), "rbm:weights=small.npz");
  EXPECT_EQ(answer.at("ais").at("chains"), 64);
  EXPECT_EQ(answer.at("ais").at("temperatures"), 500);
  EXPECT_EQ(answer.at("exact").at("side"), "hidden");
  EXPECT_EQ(answer.at("warnings").size(), 0U);
  EXPECT_NEAR(answer.at("ais").at("log_partition").get<double>(), answer.at("exact").at("log_partition").get<double>(),
              4.0 * answer.at("ais").at("mcse").get<double>());
  const Outcome alone = run({"logz", "rbm:weights=small.npz", "--method", "exact", "--json", "-", "--quiet"});
  ASSERT_EQ(alone.code, 0) << alone.err;
  EXPECT_EQ(json::parse(alone.out).at("exact").at("log_partition"), answer.at("exact").at("log_partition"));
  EXPECT_TRUE(json::parse(alone.out).at("ais").is_null());
}

TEST_F(LogzProgram, WarnsInWords) {
  const Outcome outcome = run({"logz", "rbm:weights=large.npz", "--temperatures", "2", "--strict", "--quiet"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.out.find("warning: "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("temperatures"), std::string::npos) << outcome.out;
}

TEST_F(LogzProgram, InterruptedTooEarlyItSaysSo) {
  start({"logz", "rbm:weights=large.npz", "--temperatures", "100000000", "--json", "z.json"});
  for (int attempt = 0; attempt < 3000 && read_text(root_ / "err").find("annealing") == std::string::npos; ++attempt) {
    std::this_thread::sleep_for(10ms);
  }
  ::kill(child_, SIGINT);
  const Outcome outcome = wait();
  EXPECT_EQ(outcome.code, 130);
  EXPECT_NE(outcome.err.find("interrupted before the first chains were through"), std::string::npos) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(work() / "z.json"));
}

TEST_F(LogzProgram, BadInputGetsASentence) {
  const auto refused = [&](Arguments arguments, const std::string& part) {
    arguments.insert(arguments.begin(), "logz");
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << "'" << part << "' is not in: " << outcome.err;
  };
  refused({}, "model is missing");
  refused({"maxcut:file=graph.txt"}, "graph.txt: cannot be opened");
  refused({"rbm:weights=small.npz", "--memory", "1", "--evidence", "e"}, "; --evidence: it is of no use for an RBM");
  refused({"rbm"}, "no key 'weights'");
  refused({"rbm:weigths=small.npz"}, "did you mean 'weights'?");
  refused({"rbm:weights=nowhere.npz"}, "nowhere.npz");
  refused({"rbm:weights=small.npz", "--method", "guess"}, "--method: found 'guess'");
  refused({"rbm:weights=small.npz", "--chains", "1", "--temperatures", "0"}, "; --temperatures: found '0'");
  refused({"rbm:weights=large.npz", "--method", "exact"}, "at most 25 units");
  refused({"rbm:weights=small.npz", "--json", "nowhere/z.json"}, "--json: cannot write");
}

}  // namespace log_partition_test
}  // namespace poise::testing_program
