/// Ising lattices as graphs: the same log p of all states, and tempered runs with the same draws.
#include <gtest/gtest.h>

#include <vector>

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

}  // namespace poise::lattice_graph_test
