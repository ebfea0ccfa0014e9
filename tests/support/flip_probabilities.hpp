/// Probabilities of single flips from all states of a small graph: against those of the CPU's kernel, and for detailed
/// balance.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include <poise/extend/kernels/locally_balanced.hpp>
#include "support/cuda/host_graph_flips.hpp"
#include "support/cuda/on_gpu.hpp"
#include "support/enumerate.hpp"

namespace poise::testing {

inline std::vector<Value> random_levels(Index n, std::uint64_t seed) {
  Rng rng(seed, 3);
  std::vector<Value> levels(n);
  for (Value& level : levels) level = rng.uniform() < 0.5 ? 0 : 1;
  return levels;
}

/// What a step from each state has: [state][variable].
struct StepProbabilities {
  std::vector<double> proposal;
  std::vector<double> acceptance;
};

inline StepProbabilities on_host(const GraphIsing& target, const BalancingFunction& function) {
  const Index n = target.num_variables();
  StepProbabilities out;
  for (std::size_t s = 0; s < std::size_t{1} << n; ++s) {
    HostGraphChain chain(target, function, state_of_number(s, n));
    for (Index i = 0; i < n; ++i) {
      out.proposal.push_back(chain.leaves()[i] / chain.total());
      out.acceptance.push_back(chain.acceptance(i));
    }
  }
  return out;
}

inline void expect_those_of_the_cpu(const GraphIsing& target, const BalancingFunction& function,
                                    const StepProbabilities& found) {
  const Index n = target.num_variables();
  const LocallyBalanced<GraphIsing> kernel(function);
  LocallyBalanced<GraphIsing>::Scratch scratch(target);
  for (std::size_t s = 0; s < std::size_t{1} << n; ++s) {
    const auto state = target.make_state(state_of_number(s, n));
    kernel.prepare(target, state, scratch);
    for (Index i = 0; i < n; ++i) {
      const auto proposal = kernel.evaluate(target, state, scratch, i);
      ASSERT_NEAR(found.proposal[s * n + i], proposal.prob, 1e-12) << s << ' ' << i;
      ASSERT_NEAR(found.acceptance[s * n + i], proposal.accept_prob, 1e-12) << s << ' ' << i;
    }
  }
}

inline void expect_balance(const GraphIsing& target, const StepProbabilities& found) {
  const Index n = target.num_variables();
  const StateSpace space = enumerate_states(target);
  for (std::size_t s = 0; s < space.size(); ++s) {
    for (Index i = 0; i < n; ++i) {
      const std::size_t other = s ^ std::size_t{1} << i;
      const double there = space.probabilities[s] * found.proposal[s * n + i] * found.acceptance[s * n + i];
      const double back = space.probabilities[other] * found.proposal[other * n + i] * found.acceptance[other * n + i];
      ASSERT_NEAR(there, back, 1e-12) << s << ' ' << i;
    }
  }
}

}  // namespace poise::testing
