/// Partition functions of networks: against enumeration, and what `poise logz` makes of them.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numbers>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <poise/log_partition.hpp>
#include <poise/network.hpp>

#include "base/student.hpp"
#include "exact/exact_inference.hpp"
#include "support/input.hpp"
#include "support/program.hpp"
#include "support/small_networks.hpp"

namespace poise::network_log_partition_test {

using testing::hub_network;
using testing::mixed_network;
using testing::mixed_network_with_evidence;
using testing::product_at;

double enumerated(const Network& network) {
  std::vector<Value> x(network.num_variables(), 0);
  for (Index i = 0; i < x.size(); ++i) {
    if (network.is_observed(i)) x[i] = static_cast<Value>(network.observed[i]);
  }
  double sum = 0.0;
  for (bool more = true; more;) {
    sum += product_at(network, x);
    more = false;
    for (Index i = 0; i < x.size() && !more; ++i) {
      if (network.is_observed(i)) continue;
      more = ++x[i] < network.cardinalities[i];
      if (!more) x[i] = 0;
    }
  }
  return std::log(sum);
}

Network complete_graph(Index variables) {
  testing::RandomNetwork recipe;
  recipe.cardinalities.assign(variables, 2);
  for (Index i = 0; i < variables; ++i) {
    for (Index j = 0; j < i; ++j) recipe.scopes.push_back({i, j});
  }
  return recipe.make();
}

TEST(NetworkLogPartition, IsTheSumOverAllStates) {
  for (const double zeros : {0.0, 0.3}) {
    for (const Network& network :
         {mixed_network(zeros, 1), mixed_network_with_evidence(zeros, 2), hub_network(zeros, 3), complete_graph(9)}) {
      for (const Method method : {Method::automatic, Method::exact}) {
        const NetworkLogPartition answer = find_log_partition(network, {.method = method});
        EXPECT_NEAR(answer.value, enumerated(network), 1e-12);
        EXPECT_NEAR(answer.log10(), enumerated(network) / std::log(10.0), 1e-12);
        EXPECT_EQ(answer.method, Method::exact);
        EXPECT_FALSE(answer.error);
        EXPECT_EQ(answer.variables, network.num_variables());
      }
    }
  }
}

/// More levels than can be sampled.
TEST(NetworkLogPartition, TakesAnyNumberOfLevels) {
  Network network;
  network.cardinalities = {300, 2};
  std::vector<double> table(600);
  double sum = 0.0;
  for (std::size_t k = 0; k < table.size(); ++k) sum += table[k] = 1.0 + static_cast<double>(k % 7);
  network.add_factor(std::vector<Index>{0, 1}, table);
  EXPECT_NEAR(find_log_partition(network, {}).value, std::log(sum), 1e-12);
}

TEST(NetworkLogPartition, RefusesWithWhatItWouldTake) {
  const auto message_of = [](const Network& network, const NetworkLogPartitionOptions& options) {
    try {
      static_cast<void>(find_log_partition(network, options));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string large = message_of(complete_graph(64), {.method = Method::exact});
  EXPECT_TRUE(large.starts_with("exact inference would take a table of over ")) << large;
  EXPECT_NE(large.find(", over the limit of 4.00 GiB; observe more variables, or allow more memory, or let it be "),
            std::string::npos)
      << large;
  Network impossible = complete_graph(3);
  for (const auto& scope : {std::vector<Index>{0, 1}, std::vector<Index>{1, 2}, std::vector<Index>{0, 2}}) {
    impossible.add_factor(scope, std::vector{0.0, 1.0, 1.0, 0.0});
  }
  EXPECT_TRUE(message_of(impossible, {}).starts_with("no state has positive probability"));
}

/// Where exact inference does not fit, ladders tell, and how far they may be off.
TEST(NetworkLogPartition, ComesFromTemperingElsewhere) {
  const Network network = complete_graph(14);
  const NetworkLogPartition exact = find_log_partition(network, {});
  const NetworkLogPartition sampled = find_log_partition(network, {.method = Method::sample, .seconds = 1.0});
  EXPECT_EQ(sampled.method, Method::sample);
  EXPECT_NEAR(sampled.value, exact.value, 8.0 * *sampled.error + 1e-9);
  EXPECT_TRUE(log_partition_json(sampled).at("report").contains("tempering"));
  const NetworkLogPartition graph =
      find_log_partition(make_model("ising:size=2x4,lambda=0.3,sigma=1"), {.seconds = 0.5});
  EXPECT_NEAR(graph.value, find_log_partition(make_network("ising:size=2x4,lambda=0.3,sigma=1"), {}).value,
              8.0 * *graph.error);
}

/// log of the sum of exp(weight) over all states of n bits.
double log_sum(unsigned n, const std::function<double(unsigned)>& weight) {
  double sum = 0.0;
  for (unsigned state = 0; state < 1U << n; ++state) sum += std::exp(weight(state));
  return std::log(sum);
}

// Constants count: Z of max-cut is the sum of exp(beta cut), of a quadratic function that of exp(-+beta energy).
TEST(NetworkLogPartition, OfObjectivesIsThatOfTheObjectiveAsTheUserCountsIt) {
  const auto bit = [](unsigned state, unsigned i) { return static_cast<double>(state >> i & 1U); };
  const testing::TemporaryFile edge("2 1\n1 2 1\n");
  const testing::TemporaryFile graph("4 5 0\n1 2 1\n2 3 -2.5\n1 3\n3 4 0.75\n2 4 3\n");
  const testing::TemporaryFile binary("0 0 -1\n0 1 2\n1 1 -0.5\n2 1 0.75\n2 2 3\n");
  const testing::TemporaryFile spins("# vartype=SPIN\n0 0 -1\n0 1 2\n1 1 -0.5\n");
  const auto cut = [&](unsigned x) {
    return std::abs(bit(x, 0) - bit(x, 1)) - 2.5 * std::abs(bit(x, 1) - bit(x, 2)) + std::abs(bit(x, 0) - bit(x, 2)) +
           0.75 * std::abs(bit(x, 2) - bit(x, 3)) + 3.0 * std::abs(bit(x, 1) - bit(x, 3));
  };
  const auto energy = [&](unsigned x) {
    return -bit(x, 0) + 2.0 * bit(x, 0) * bit(x, 1) - 0.5 * bit(x, 1) + 0.75 * bit(x, 2) * bit(x, 1) + 3.0 * bit(x, 2);
  };
  const auto of_spins = [&](unsigned x) {
    const double s = 2.0 * bit(x, 0) - 1.0, t = 2.0 * bit(x, 1) - 1.0;
    return -s + 2.0 * s * t - 0.5 * t;
  };
  const std::vector<std::pair<std::string, double>> cases = {
      {"maxcut:file=" + edge.path(), std::log(2.0 + 2.0 * std::exp(1.0))},
      {"maxcut:beta=0.5,file=" + graph.path(), log_sum(4, [&](unsigned x) { return 0.5 * cut(x); })},
      {"qubo:beta=2,file=" + binary.path(), log_sum(3, [&](unsigned x) { return -2.0 * energy(x); })},
      {"qubo:beta=2,sense=max,file=" + binary.path(), log_sum(3, [&](unsigned x) { return 2.0 * energy(x); })},
      {"qubo:file=" + spins.path(), log_sum(2, [&](unsigned x) { return -of_spins(x); })},
  };
  for (const auto& [text, truth] : cases) {
    SCOPED_TRACE(text);
    EXPECT_NEAR(find_log_partition(make_network(text), {}).value, truth, 1e-12);
    EXPECT_NEAR(*find_marginals(std::make_shared<const Network>(make_network(text)), {}).log_partition, truth, 1e-12);
    // A run says the same of log p and of log Z.
    const Model model = make_model(text);
    const RunResult result = run(model, parse_sampler("temper"), {.chains = 4, .warmup = 500, .draws = 2000});
    EXPECT_NEAR(result.tempering->log_partition, truth, 4.0 * result.tempering->log_partition_error);
    const double scale =
        text.find("maxcut") != std::string::npos || text.find("max,") != std::string::npos ? 1.0 : -1.0;
    const double beta = text.find("=0.5") != std::string::npos ? 0.5 : text.find("=2") != std::string::npos ? 2.0 : 1.0;
    for (std::size_t k = 0; k < 10; ++k) {
      EXPECT_NEAR(result.trace.monitors[0][k], scale * beta * result.trace.monitors[1][k], 1e-12);
    }
  }
}

TEST(NetworkLogPartition, FewLaddersHaveAWiderError) {
  EXPECT_NEAR(student_widening(1), 6.98387, 1e-4);
  EXPECT_NEAR(student_widening(2), 2.26327, 1e-4);
  EXPECT_NEAR(student_widening(3), 1.65341, 3e-3);
  EXPECT_NEAR(student_widening(10), 1.14184, 1e-5);
  EXPECT_TRUE(std::isnan(student_widening(0)));
  const Model model = make_model("ising:size=4,lambda=0.3,mu=1,sigma=1");
  for (const std::size_t chains : {std::size_t{2}, std::size_t{4}}) {
    const RunResult result = run(model, parse_sampler("temper"), {.chains = chains, .warmup = 200, .draws = 500});
    const std::vector<double>& of = result.tempering->log_partition_by_ladder;
    double mean = 0.0;
    for (const double value : of) mean += value / static_cast<double>(chains);
    double squares = 0.0;
    for (const double value : of) squares += (value - mean) * (value - mean);
    const auto degrees = static_cast<double>(chains - 1);
    EXPECT_NEAR(result.tempering->log_partition_error,
                student_widening(degrees) * std::sqrt(squares / degrees / static_cast<double>(chains)), 1e-12);
  }
}

TEST(NetworkLogPartition, CanBeStopped) {
  const std::atomic<bool> stop{true};
  EXPECT_THROW(static_cast<void>(find_log_partition(complete_graph(16), {}, {.progress = {}, .stop = &stop})),
               ExactStopped);
}

TEST(NetworkLogPartition, InTheUaiFormat) {
  EXPECT_EQ(pr_text(0.0), "PR\n0\n");
  EXPECT_EQ(pr_text(-3.0 * std::numbers::ln10), "PR\n-3\n");
  EXPECT_EQ(pr_text(169.408360916 * std::numbers::ln10), "PR\n169.408360916\n");
}

}  // namespace poise::network_log_partition_test

namespace poise::testing_program {
namespace network_log_partition_test {

using nlohmann::json;

/// Three pairs in a ring, and one variable by itself.
class NetworkLogz : public ProgramTest {
 protected:
  NetworkLogz() {
    write_text(work() / "ring.uai", "MARKOV\n4\n2 2 2 3\n3\n2 0 1\n2 1 2\n2 0 2\n4\n1 2 3 4\n4\n2 1 1 2\n4\n1 1 1 5\n");
    write_text(work() / "seen.evid", "1 1 1\n");
  }
  /// By hand: x[3] has three levels and no factor.
  static double sum(int first, int last) {
    const double a[2][2] = {{1, 2}, {3, 4}};
    const double b[2][2] = {{2, 1}, {1, 2}};
    const double c[2][2] = {{1, 1}, {1, 5}};
    double total = 0.0;
    for (int x = 0; x < 2; ++x) {
      for (int y = first; y <= last; ++y) {
        for (int z = 0; z < 2; ++z) total += 3.0 * a[x][y] * b[y][z] * c[x][z];
      }
    }
    return total;
  }
};

TEST_F(NetworkLogz, GivesBothLogarithmsAndThePrFile) {
  const Outcome outcome = run({"logz", "ring.uai", "--out", "ring.PR", "--json", "ring.json", "--quiet"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_NE(outcome.out.find("log10 Z"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find(fmt::format("{:.8f}", std::log(sum(0, 1)))), std::string::npos) << outcome.out;
  const json answer = json::parse(read_text(work() / "ring.json"));
  EXPECT_NEAR(answer.at("log_partition").get<double>(), std::log(sum(0, 1)), 1e-12);
  EXPECT_NEAR(answer.at("log10_partition").get<double>(), std::log10(sum(0, 1)), 1e-12);
  EXPECT_EQ(answer.at("method"), "exact");
  EXPECT_EQ(answer.at("model"), "ring.uai");
  EXPECT_TRUE(answer.at("mcse").is_null());
  const std::string text = read_text(work() / "ring.PR");
  ASSERT_TRUE(text.starts_with("PR\n"));
  EXPECT_NEAR(std::stod(text.substr(3)), std::log10(sum(0, 1)), 1e-12);
}

TEST_F(NetworkLogz, TakesEvidence) {
  const Outcome outcome = run({"logz", "ring.uai", "--evidence", "seen.evid", "--out", "-", "--quiet"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  ASSERT_TRUE(outcome.out.starts_with("PR\n")) << outcome.out;
  EXPECT_NEAR(std::stod(outcome.out.substr(3)), std::log10(sum(1, 1)), 1e-12);
}

TEST_F(NetworkLogz, IsingAndPottsAreNetworks) {
  const auto log_z = [&](const std::string& model) {
    const Outcome outcome = run({"logz", model, "--json", "-", "--quiet"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out).at("log_partition").get<double>();
  };
  // A ring of five: traces of the fifth power of the transfer matrix.
  EXPECT_NEAR(log_z("ising:size=1x5,lambda=0.7"),
              std::log(std::pow(2.0 * std::cosh(0.7), 5) + std::pow(2.0 * std::sinh(0.7), 5)), 1e-12);
  EXPECT_NEAR(log_z("potts:size=1x5,levels=3,coupling=0.7"),
              std::log(std::pow(std::exp(0.7) + 2.0, 5) + 2.0 * std::pow(std::exp(0.7) - 1.0, 5)), 1e-12);
}

TEST_F(NetworkLogz, BadInputGetsASentence) {
  const auto refused = [&](Arguments arguments, const std::string& part) {
    arguments.insert(arguments.begin(), "logz");
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << "'" << part << "' is not in: " << outcome.err;
  };
  refused({"ring.uai", "--method", "ais"}, "--method: found 'ais', expected auto, exact or sample");
  refused({"ring.uai", "--seconds", "0", "--temperatures", "5"}, "; --temperatures: only RBMs are annealed");
  refused({"ring.uai", "--memory", "-1"}, "--memory");
  refused({"ring.uai", "--evidence", "nowhere.evid"}, "nowhere.evid");
  refused({"nowhere.uai"}, "nowhere.uai");
  refused({"ising:size=60", "--method", "exact", "--memory", "1"},
          "over the limit of 1.00 GiB; observe more variables");
  refused({"ring.uai", "--out", "nowhere/ring.PR"}, "--out: cannot write");
}

}  // namespace network_log_partition_test
}  // namespace poise::testing_program
