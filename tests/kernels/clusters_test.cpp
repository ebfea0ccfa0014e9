/// Cluster moves: bonds against log p, transition matrices over all bonds, and steps against these.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include <poise/diagnose.hpp>
#include <poise/extend/check/exactness.hpp>
#include <poise/run.hpp>
#include "engines/cpu/chains/bonds.hpp"
#include "kernels/cluster_kernels.hpp"
#include "models/network/markov_network.hpp"
#include "support/input.hpp"
#include "support/small_targets.hpp"
#include "support/steps.hpp"

namespace poise::clusters_test {

using namespace poise::testing;

struct Pair {
  Index first;
  Index second;
  double probability;
};

std::vector<Pair> pairs_of(const BondGraph& graph) {
  std::vector<Pair> pairs;
  for (Index i = 0; i < graph.num_variables(); ++i) {
    for (const BondGraph::Bond& bond : graph.bonds(i)) {
      if (bond.variable > i) pairs.push_back({i, bond.variable, bond.probability});
    }
  }
  return pairs;
}

/// The cluster number of every variable, for one set of bonds.
std::vector<Index> clusters_of(Index variables, const std::vector<Pair>& pairs, unsigned joined) {
  std::vector<Index> cluster(variables);
  for (Index i = 0; i < variables; ++i) cluster[i] = i;
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    if ((joined >> p & 1U) == 0) continue;
    const Index from = cluster[pairs[p].second], to = cluster[pairs[p].first];
    for (Index& c : cluster) c = c == from ? to : c;
  }
  return cluster;
}

/// Calls use(clusters, probability) for all sets of bonds that a state allows.
template <class Use>
void for_each_bonds(const BondGraph& graph, const std::vector<Value>& x, Use&& use) {
  std::vector<Pair> alike;
  for (const Pair& pair : pairs_of(graph)) {
    if (x[pair.first] == x[pair.second]) alike.push_back(pair);
  }
  for (unsigned joined = 0; joined < 1U << alike.size(); ++joined) {
    double probability = 1.0;
    for (std::size_t p = 0; p < alike.size(); ++p) {
      probability *= (joined >> p & 1U) != 0 ? alike[p].probability : 1.0 - alike[p].probability;
    }
    if (probability > 0.0) use(clusters_of(graph.num_variables(), alike, joined), probability);
  }
}

TransitionMatrix swendsen_wang_matrix(const BondGraph& graph, const StateSpace& space) {
  TransitionMatrix matrix(space.size(), std::vector<double>(space.size(), 0.0));
  for (std::size_t s = 0; s < space.size(); ++s) {
    for_each_bonds(graph, space.states[s], [&](const std::vector<Index>& cluster, double probability) {
      double ways = 1.0;
      for (Index i = 0; i < cluster.size(); ++i) {
        if (std::find(cluster.begin(), cluster.begin() + i, cluster[i]) == cluster.begin() + i) ways *= graph.levels();
      }
      for (std::size_t end = 0; end < space.size(); ++end) {
        bool allowed = true;
        for (Index i = 0; i < cluster.size(); ++i) {
          for (Index j = 0; j < i; ++j) {
            allowed = allowed && (cluster[i] != cluster[j] || space.states[end][i] == space.states[end][j]);
          }
        }
        if (allowed) matrix[s][end] += probability / ways;
      }
    });
  }
  return matrix;
}

/// One cluster: that of every variable in turn, to every other level.
TransitionMatrix wolff_matrix(const BondGraph& graph, const StateSpace& space) {
  TransitionMatrix matrix(space.size(), std::vector<double>(space.size(), 0.0));
  const double ways = graph.num_variables() * (graph.levels() - 1.0);
  for (std::size_t s = 0; s < space.size(); ++s) {
    for_each_bonds(graph, space.states[s], [&](const std::vector<Index>& cluster, double probability) {
      for (Index from = 0; from < cluster.size(); ++from) {
        for (Index k = 0; k < graph.levels(); ++k) {
          const auto level = static_cast<Value>(k);
          std::vector<Value> end = space.states[s];
          if (level == end[from]) continue;
          for (Index i = 0; i < cluster.size(); ++i) end[i] = cluster[i] == cluster[from] ? level : end[i];
          matrix[s][space.number(end)] += probability / ways;
        }
      }
    });
  }
  return matrix;
}

template <class T>
void expect_exact(const std::shared_ptr<const T>& target, const std::shared_ptr<const BondGraph>& graph) {
  const StateSpace space = enumerate_states(*target);
  const TransitionMatrix matrix = swendsen_wang_matrix(*graph, space);
  EXPECT_LE(row_error(matrix, space), 1e-12);
  EXPECT_LE(detailed_balance_error(matrix, space), 1e-12);
  expect_steps(*target, SwendsenWang<T>(graph), space, matrix);

  const TransitionMatrix one = wolff_matrix(*graph, space);
  EXPECT_LE(row_error(one, space), 1e-12);
  EXPECT_LE(detailed_balance_error(one, space), 1e-12);
  const TransitionMatrix rested = with_rests(one, graph->num_variables());
  expect_steps(*target, Wolff<T>(graph, 1), space, rested);
  const TransitionMatrix three = product(rested, product(rested, rested));
  EXPECT_LE(invariance_error(three, space), 1e-12);
  expect_steps(*target, Wolff<T>(graph, 3), space, three);
}

TEST(Clusters, AreExactOnLattices) {
  const auto lattice = std::make_shared<const LatticeIsing>(2, 4, Boundary::open, 0.4, std::vector<double>(8, 0.0));
  expect_exact(lattice, bond_graph(*lattice));
  const LatticeIsing torus(3, 3, Boundary::torus, 0.4, std::vector<double>(9, 0.0));
  EXPECT_EQ(pairs_of(*bond_graph(torus)).size(), 18U);
}

TEST(Clusters, AreExactOnGraphs) {
  const std::vector<Edge> edges = {{0, 1, 0.3}, {1, 2, 0.9}, {0, 2, 0.0}, {3, 4, 0.5}, {2, 3, 0.2}};
  const auto graph = std::make_shared<const GraphIsing>(std::vector<double>(6, 0.0), edges);
  expect_exact(graph, bond_graph(*graph));
}

TEST(Clusters, AreExactOnPottsModels) {
  const Network network = make_network("potts:size=2,levels=3,coupling=0.7,boundary=open");
  expect_exact(std::make_shared<const MarkovNetwork>(network), bond_graph(network));
}

/// Words that are given.
struct GivenWords {
  std::vector<std::uint64_t> words;
  std::size_t position = 0;
  std::uint64_t next() { return words.at(position++); }
};

TEST(Clusters, DigitsBeyondTheFirstSixteenDecideWhereThoseAreEqual) {
  const double weight = 0.3;
  const std::vector<BondGraph::Pair> pairs = {{0, 1, weight}, {0, 2, 2.0 * weight}};
  const BondGraph graph(3, 2, pairs);
  const auto digits = static_cast<std::uint64_t>(std::ldexp(-std::expm1(-weight), 64));
  for (const int above : {-1, 0, 1}) {
    // The first bond's sixteen digits are equal, the second's are too large, and so are those of the last word's bonds.
    const std::uint64_t rest = (digits << 16) + static_cast<std::uint64_t>(above) * 65536;
    GivenWords words{{digits >> 48 | 0xffffffffffff0000U, rest, ~std::uint64_t{0}}};
    std::vector<Value> levels = {1, 0, 0};
    std::vector<Index> members(4, 0);
    const Index size = graph.grow(levels.data(), 0, 1, members.data(), words);
    EXPECT_EQ(size, above < 0 ? 2U : 1U);
    EXPECT_EQ(levels, (std::vector<Value>{1, static_cast<Value>(above < 0 ? 1 : 0), 0}));
  }
}

TEST(Clusters, BondsHoldAsTheirWeightsSay) {
  const std::vector<BondGraph::Pair> pairs = {{0, 1, 0.0},  {1, 2, 1e-9}, {0, 2, 0.7},
                                              {0, 3, 50.0}, {0, 4, 1.0},  {0, 5, 2.0}};
  const BondGraph graph(6, 3, pairs);
  ASSERT_EQ(pairs_of(graph).size(), pairs.size());
  for (const Pair& pair : pairs_of(graph)) {
    const auto same = [&](const BondGraph::Pair& other) {
      return other.first == pair.first && other.second == pair.second;
    };
    const double weight = std::find_if(pairs.begin(), pairs.end(), same)->weight;
    EXPECT_NEAR(pair.probability, -std::expm1(-weight), 1e-16);
  }
}

/// A step that ends when enough has changed would be wrong, one that is too short useless.
TEST(Clusters, WarmUpFindsHowManyMakeASweep) {
  const LatticeIsing target(32, 32, Boundary::torus, 0.4, std::vector<double>(1024, 0.0));
  using Kernel = Wolff<LatticeIsing>;
  Kernel kernel(bond_graph(target), 0);
  EXPECT_EQ(kernel.clusters(), 1U);
  Kernel::Scratch scratch(target);
  auto state = target.make_state(std::vector<Value>(1024, 0));
  kernel.prepare(target, state, scratch);
  Rng rng(3, 0);
  kernel.freeze({5, 100});
  EXPECT_EQ(kernel.clusters(), 1U) << "nothing was started";
  kernel.start_tuning();
  for (int step = 0; step < 300; ++step) kernel.step(target, state, scratch, rng);
  Kernel::Found sizes;
  Kernel::add_found(scratch, sizes);
  kernel.freeze(sizes);
  const std::uint64_t found = kernel.clusters();
  EXPECT_GT(found, 1U);
  constexpr int kSteps = 2000;
  const std::uint64_t before = scratch.evals.ratio;
  for (int step = 0; step < kSteps; ++step) kernel.step(target, state, scratch, rng);
  const double visited = static_cast<double>(scratch.evals.ratio - before) / kSteps / 1024.0;
  EXPECT_NEAR(visited, 1.0, 0.25);
  EXPECT_EQ(kernel.clusters(), found);

  Kernel by_hand(bond_graph(target), 7);
  by_hand.start_tuning();
  by_hand.step(target, state, scratch, rng);
  by_hand.freeze(sizes);
  EXPECT_EQ(by_hand.clusters(), 7U);
}

TEST(Clusters, DrawTheSameOnAnyNumberOfThreads) {
  for (const char* sampler : {"sw", "wolff"}) {
    RunOptions options;
    options.chains = 5;
    options.draws = 50;
    options.threads = 1;
    const Model model = make_model("ising:size=16,lambda=0.44");
    const RunResult one = run(model, parse_sampler(sampler), options);
    options.threads = 3;
    const RunResult three = run(model, parse_sampler(sampler), options);
    EXPECT_EQ(one.trace.x, three.trace.x) << sampler;
    EXPECT_EQ(one.trace.monitors, three.trace.monitors) << sampler;
  }
}

TEST(Clusters, RefuseWhatHasNone) {
  RunOptions options;
  options.draws = 1;
  for (const char* model : {"ising:case=1", "ising:size=4,lambda=-0.1", "potts:size=4,levels=3,coupling=-1"}) {
    for (const char* sampler : {"sw", "wolff"}) {
      const std::string found = refusal([&] { run(make_model(model), parse_sampler(sampler), options); });
      EXPECT_NE(found.find("not negative; here"), std::string::npos) << model << ": " << found;
    }
  }
}

TEST(Clusters, RefuseSettingsThatMakeNoSense) {
  EXPECT_NE(refusal([] { parse_sampler("wolff:clusters=0"); }).find("clusters"), std::string::npos);
  EXPECT_NE(refusal([] { parse_sampler("sw:clusters=2"); }).find("clusters"), std::string::npos);
}

/// Away from the critical coupling, where Gibbs can do it too.
TEST(Clusters, AgreeWithGibbs) {
  RunOptions options;
  options.draws = 2000;
  options.chains = 16;
  options.keep = Keep::monitors;
  for (const char* model : {"ising:size=12,lambda=0.35", "potts:size=10,levels=3,coupling=0.8"}) {
    std::vector<double> means, errors;
    for (const char* sampler : {"sw", "wolff", "gibbs"}) {
      const RunResult result = run(make_model(model), parse_sampler(sampler), options);
      const std::vector<double>& log_prob = result.trace.monitors[0];
      const ChainsView view{log_prob.data(), result.trace.chains, result.trace.draws};
      means.push_back(std::accumulate(log_prob.begin(), log_prob.end(), 0.0) / static_cast<double>(log_prob.size()));
      double square = 0.0;
      for (const double value : log_prob) square += (value - means.back()) * (value - means.back());
      errors.push_back(square / static_cast<double>(log_prob.size()) / ess_mean(view));
    }
    for (const std::size_t k : {0U, 1U}) {
      EXPECT_LT(std::abs(means[k] - means[2]), 6.0 * std::sqrt(errors[k] + errors[2])) << model << " " << k;
    }
  }
}

}  // namespace poise::clusters_test
