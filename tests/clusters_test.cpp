/// Cluster moves: bonds against log p, transition matrices over all bonds, and steps against these.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include <poise/check/exactness.hpp>
#include <poise/diagnose/diagnose.hpp>
#include <poise/run/bonds.hpp>
#include <poise/run/run.hpp>
#include <poise/target/markov_network.hpp>
#include "support/small_targets.hpp"

namespace poise {
namespace {

using namespace poise::testing;

struct Pair {
  Index first;
  Index second;
  double probability;
};

std::vector<Pair> pairs_of(const BondGraph& graph) {
  std::vector<Pair> pairs;
  for (Index i = 0; i < graph.num_variables(); ++i) {
    for (const BondGraph::Bond* bond = graph.begin(i); bond != graph.end(i); ++bond) {
      if (bond->variable > i) pairs.push_back({i, bond->variable, bond->probability});
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
        if (std::find(cluster.begin(), cluster.begin() + i, cluster[i]) == cluster.begin() + i) ways *= graph.levels;
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

/// Steps from one state, counted, against its row of the matrix.
template <class T, class K>
void expect_steps(const T& target, const K& kernel, const StateSpace& space, const TransitionMatrix& matrix) {
  constexpr int kSteps = 20000;
  typename K::Scratch scratch(target);
  Rng rng(5, 1);
  for (std::size_t s = 0; s < space.size(); s += 7) {
    std::vector<double> seen(space.size(), 0.0);
    for (int step = 0; step < kSteps; ++step) {
      auto state = target.make_state(space.states[s]);
      kernel.step(target, state, scratch, rng);
      std::vector<Value> after(target.num_variables());
      for (Index i = 0; i < after.size(); ++i) after[i] = target.level(state, i);
      seen[space.number(after)] += 1.0;
      std::vector<Value> before = after;
      for (const Change& change : scratch.changed) before[change.variable] = change.old;
      ASSERT_EQ(before, space.states[s]);
      ASSERT_EQ(target.log_prob(state), target.log_prob(target.make_state(after)));
    }
    double chi2 = 0.0, cells = 0.0, rare_seen = 0.0, rare_expected = 0.0;
    const auto add = [&](double found, double expected) {
      chi2 += (found - expected) * (found - expected) / expected;
      cells += 1.0;
    };
    for (std::size_t end = 0; end < space.size(); ++end) {
      const double expected = kSteps * matrix[s][end];
      if (expected == 0.0) {
        ASSERT_EQ(seen[end], 0.0);
      } else if (expected < 10.0) {  // too rare for a normal distribution: counted together
        rare_seen += seen[end];
        rare_expected += expected;
      } else {
        add(seen[end], expected);
      }
    }
    if (rare_expected >= 10.0) add(rare_seen, rare_expected);
    EXPECT_LT(std::abs(chi2 - (cells - 1.0)), 6.0 * std::sqrt(2.0 * cells)) << "from state " << s;
  }
}

template <class T>
void expect_exact(const std::shared_ptr<const T>& target, const std::shared_ptr<const BondGraph>& graph) {
  const StateSpace space = enumerate_states(*target);
  const TransitionMatrix matrix = swendsen_wang_matrix(*graph, space);
  EXPECT_LE(row_error(matrix, space), 1e-12);
  EXPECT_LE(detailed_balance_error(matrix, space), 1e-12);
  expect_steps(*target, SwendsenWang<T>(graph), space, matrix);
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

TEST(Clusters, RefuseWhatHasNone) {
  RunOptions options;
  options.draws = 1;
  for (const char* model : {"ising:case=1", "ising:size=4,lambda=-0.1", "potts:size=4,levels=3,coupling=-1"}) {
    try {
      run(make_model(model), parse_sampler("sw"), options);
      ADD_FAILURE() << model;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("not negative; here"), std::string::npos) << error.what();
    }
  }
}

/// Away from the critical coupling, where Gibbs can do it too.
TEST(Clusters, AgreeWithGibbs) {
  RunOptions options;
  options.draws = 2000;
  options.chains = 16;
  options.keep = Keep::monitors;
  for (const char* model : {"ising:size=12,lambda=0.35", "potts:size=10,levels=3,coupling=0.8"}) {
    std::vector<double> means, errors;
    for (const char* sampler : {"sw", "gibbs"}) {
      const RunResult result = run(make_model(model), parse_sampler(sampler), options);
      const std::vector<double>& log_prob = result.trace.monitors[0];
      const ChainsView view{log_prob.data(), result.trace.chains, result.trace.draws};
      means.push_back(std::accumulate(log_prob.begin(), log_prob.end(), 0.0) / static_cast<double>(log_prob.size()));
      double square = 0.0;
      for (const double value : log_prob) square += (value - means.back()) * (value - means.back());
      errors.push_back(square / static_cast<double>(log_prob.size()) / ess_mean(view));
    }
    EXPECT_LT(std::abs(means[0] - means[1]), 6.0 * std::sqrt(errors[0] + errors[1])) << model;
  }
}

}  // namespace
}  // namespace poise
