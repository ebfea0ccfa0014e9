/// Ising lattices as graphs: the same log p of all states, and tempered runs with the same draws.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include <poise/network.hpp>
#include <poise/run.hpp>
#include "models/ising/graph_ising.hpp"
#include "models/ising/ising_model.hpp"
#include "models/ising/lattice_ising.hpp"

namespace poise::lattice_graph_test {

const LatticeIsing& lattice_of(const Model& model) {
  return *std::get<std::shared_ptr<const LatticeIsing>>(model.description);
}

TEST(LatticeGraph, StatesHaveTheSameProbabilities) {
  for (const char* spec :
       {"ising:size=3x4,lambda=0.7,mu=1,sigma=2", "ising:size=3x3,lambda=0.4",
        "ising:size=2x5,lambda=0.7,sigma=1,boundary=open", "ising:size=6x1,lambda=1,boundary=open"}) {
    const Model model = make_model(spec);
    const LatticeIsing& lattice = lattice_of(model);
    const auto graph = std::make_shared<const GraphIsing>(graph_at(lattice, 1.0));
    const Index n = lattice.num_variables();
    ASSERT_EQ(graph->num_variables(), n);
    std::vector<Value> x(n);
    for (std::size_t number = 0; number < std::size_t{1} << n; ++number) {
      for (Index i = 0; i < n; ++i) x[i] = static_cast<Value>(number >> i & 1);
      const LatticeIsing::State here = lattice.make_state(x);
      const GraphIsing::State there = graph->make_state(x);
      EXPECT_NEAR(lattice.log_prob(here), graph->log_prob(there), 1e-12);
      EXPECT_EQ(here.magnetization, there.magnetization);
    }
  }
}

TEST(LatticeGraph, LaddersAreTheSame) {
  const Model lattice = make_model("ising:size=7x9,lambda=0.4,mu=1,sigma=2");
  Model graph = lattice;
  graph.description = std::make_shared<const GraphIsing>(graph_at(lattice_of(lattice), 1.0));
  RunOptions options;
  options.chains = 5;
  options.warmup = 60;
  options.draws = 20;
  const RunResult here = run(lattice, parse_sampler("temper"), options);
  const RunResult there = run(graph, parse_sampler("temper"), options);
  EXPECT_EQ(here.trace.x, there.trace.x);
  EXPECT_EQ(here.trace.monitors, there.trace.monitors);
  EXPECT_EQ(here.empirical_marginals, there.empirical_marginals);
  ASSERT_TRUE(here.tempering && there.tempering);
  EXPECT_EQ(here.tempering->betas, there.tempering->betas);
  EXPECT_EQ(here.tempering->log_partition, there.tempering->log_partition);
}

/// log p by its definition, at all states of a lattice of any number of sides.
double by_definition(const std::vector<Index>& sides, bool torus, double coupling, std::span<const Value> x) {
  double sum = 0.0;
  Index stride = 1;
  for (std::size_t d = sides.size(); d-- > 0; stride *= sides[d]) {
    for (Index i = 0; i < x.size(); ++i) {
      const Index at = i / stride % sides[d];
      if (sides[d] < 2 || (!torus && at + 1 == sides[d])) continue;
      const Index j = i - at * stride + (at + 1) % sides[d] * stride;
      sum += x[i] == x[j] ? coupling : -coupling;
    }
  }
  return sum;
}

TEST(LatticeGraph, ThreeDimensionsAndMore) {
  const std::vector<std::pair<std::string, std::vector<Index>>> lattices = {
      {"2x2x3", {2, 2, 3}}, {"1x3x4", {1, 3, 4}}, {"2x1x2x3", {2, 1, 2, 3}}};
  for (const auto& [size, sides] : lattices) {
    for (const bool torus : {true, false}) {
      const std::string more = "size=" + size + (torus ? "" : ",boundary=open");
      const Model ising = make_model("ising:coupling=0.3," + more);
      EXPECT_EQ(ising.layout.sides, sides);
      const GraphIsing& graph = *std::get<std::shared_ptr<const GraphIsing>>(ising.description);
      const Network potts = make_network("potts:levels=2,coupling=0.6," + more);
      const Index n = graph.num_variables();
      ASSERT_EQ(potts.num_variables(), n);
      std::vector<Value> x(n);
      for (std::size_t number = 0; number < std::size_t{1} << n; ++number) {
        for (Index i = 0; i < n; ++i) x[i] = static_cast<Value>(number >> i & 1);
        const double expected = by_definition(sides, torus, 0.3, x);
        EXPECT_NEAR(graph.log_prob(graph.make_state(x)), expected, 1e-12);
        double log_p = 0.0;  // of Potts: a coupling of 2 J for equal neighbours, none for others
        for (std::size_t f = 0; f < potts.num_factors(); ++f) {
          const auto scope = potts.scope(f);
          log_p += std::log(potts.table(f)[std::size_t{x[scope[0]]} * 2 + x[scope[1]]]) - 0.3;
        }
        EXPECT_NEAR(log_p, expected, 1e-12);
      }
    }
  }
}

TEST(LatticeGraph, SamplersOfThreeDimensionsDrawFromTheLaw) {
  const Model model = make_model("ising:size=2x2x3,coupling=0.2,sigma=0.5,boundary=open");
  RunOptions options;
  options.chains = 64;
  options.draws = 2000;
  options.rao_blackwell = true;
  const RunResult exact = run(model, parse_sampler("exact"), options);
  for (const char* name : {"gibbs", "lsb", "temper"}) {
    const RunResult drawn = run(model, parse_sampler(name), options);
    for (std::size_t k = 0; k < drawn.rao_blackwell.size(); ++k) {
      EXPECT_NEAR(drawn.rao_blackwell[k], exact.rao_blackwell[k],
                  6.0 * std::hypot(drawn.rao_blackwell_mcse[k], exact.rao_blackwell_mcse[k]))
          << name;
    }
  }
}

TEST(LatticeGraph, BetaMultipliesCouplingAndField) {
  for (const std::string base :
       {"ising:size=3x3,sigma=1", "ising:size=2x2x2,sigma=1", "potts:size=2,levels=3,field=0.3,sigma=0.2"}) {
    const Network cold = make_network(base + ",coupling=0.8,beta=0.5");
    const Network same = make_network(base + ",coupling=0.8,T=2");
    const Network plain = make_network(base + ",coupling=0.8");
    EXPECT_EQ(cold.values, same.values);
    ASSERT_EQ(cold.num_factors(), plain.num_factors());
    for (std::size_t f = 0; f < plain.num_factors(); ++f) {
      for (std::size_t k = 0; k < plain.table_size(f); ++k) {
        EXPECT_NEAR(std::log(cold.table(f)[k]), 0.5 * std::log(plain.table(f)[k]), 1e-12);
      }
    }
  }
  EXPECT_EQ(make_model("ising:lambda=0.4").name, make_model("ising:coupling=0.4").name);
  for (const char* wrong : {"ising:beta=1,T=1", "ising:T=0", "ising:T=-1", "ising:beta=-1", "ising:lambda=1,coupling=1",
                            "ising:size=2x2x2,image=disc", "ising:size=2x2x2x2x2x2x2x2x2", "ising:size=999x999x999",
                            "potts:size=2x0x2", "potts:coupling=300,beta=2"}) {
    EXPECT_THROW((void)make_model(wrong), InputError) << wrong;
  }
}

}  // namespace poise::lattice_graph_test
