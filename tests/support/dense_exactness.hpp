/// Exactness of kernels on dense targets: balanced proposals with any ratios, and random blocks.
#pragma once

#include <bit>

#include <poise/extend/kernels/block_balanced.hpp>
#include <poise/extend/kernels/block_gibbs.hpp>
#include <poise/extend/kernels/informed_proposal.hpp>
#include "support/exactness.hpp"

namespace poise::testing {

template <class T>
void expect_dense_balance(const T& target, Ratios ratios) {
  const StateSpace space = enumerate_states(target);
  for (const auto& [name, balance] : all_balances()) {
    expect_reversible(InformedProposal<T>(balance, ratios), target, space, name);
  }
}

/// pi K = pi for a kernel that picks a block at random, over all blocks of its size.
template <class Scratch, class T, class Add>
void expect_block_invariant(const T& target, Index size, Add&& add_row) {
  const StateSpace space = enumerate_states(target);
  const std::vector<Levels>& states = space.states;
  const std::vector<double>& p = space.probabilities;
  Scratch scratch(target);
  const std::vector<Index> free = scratch.free;
  for (unsigned set = 0; set < 1U << free.size(); ++set) {
    if (static_cast<Index>(std::popcount(set)) != size) continue;
    scratch.block.clear();
    for (std::size_t k = 0; k < free.size(); ++k) {
      if ((set >> k & 1U) != 0) scratch.block.push_back(free[k]);
    }
    std::vector<double> after(states.size(), 0.0);
    for (std::size_t s = 0; s < states.size(); ++s) {
      if (p[s] == 0.0) continue;
      const auto state = target.make_state(states[s]);
      add_row(state, scratch, [&](double prob) {
        Levels to = states[s];
        for (std::size_t k = 0; k < size; ++k) to[scratch.block[k]] = scratch.now[k];
        after[space.number(to)] += p[s] * prob;
      });
    }
    for (std::size_t s = 0; s < states.size(); ++s) ASSERT_NEAR(after[s], p[s], 1e-12) << "block " << set;
  }
}

template <class T>
void expect_block_gibbs_invariant(const T& target, Index size) {
  const BlockGibbs<T> kernel(size);
  std::size_t expected = 0;
  expect_block_invariant<BlockScratch<T>>(target, size, [&](const auto& state, auto& scratch, auto&& add) {
    kernel.conditional(target, state, scratch);
    expected = 1;
    for (const Index i : scratch.block) expected *= target.cardinality(i);
    ASSERT_EQ(scratch.weights.size(), expected);
    for (std::size_t number = 0; number < expected; ++number) {
      kernel.configuration(scratch, number);
      add(scratch.weights[number]);
    }
  });
}

template <class T>
void expect_block_balanced_invariant(const T& target, Index size) {
  for (const auto& [name, balance] : all_balances()) {
    SCOPED_TRACE(name);
    const BlockBalanced<T> kernel(balance, size);
    expect_block_invariant<typename BlockBalanced<T>::Scratch>(
        target, size, [&](const auto& state, auto& scratch, auto&& add) {
          kernel.look(target, state, scratch);
          ASSERT_EQ(scratch.failure, nullptr);
          const std::size_t present = scratch.here.from;
          double moved = 0.0;
          for (std::size_t number = 0; number < scratch.weights.size(); ++number) {
            if (number == present) continue;
            const auto proposal = kernel.evaluate(scratch, number);
            gray_code(scratch.cardinalities, number, scratch.now);
            add(proposal.prob * proposal.accept_prob);
            moved += proposal.prob * proposal.accept_prob;
          }
          gray_code(scratch.cardinalities, present, scratch.now);
          add(1.0 - moved);
        });
  }
}

template <class T>
void expect_ball_invariant(const T& target, Index size, unsigned radius) {
  const HammingBall<T> kernel(size, radius);
  expect_block_invariant<BlockScratch<T>>(target, size, [&](const auto& state, auto& scratch, auto&& add) {
    const std::size_t count = kernel.num_centers(target, state, scratch);
    for (std::size_t u = 0; u < count; ++u) {
      look_at_block(target, state, scratch);
      kernel.set_center(scratch, u);
      kernel.conditional(target, state, scratch);
      ASSERT_EQ(scratch.weights.size(), count);
      for (std::size_t k = 0; k < count; ++k) {
        kernel.configuration(scratch, k);
        add(scratch.weights[k] / static_cast<double>(count));
      }
    }
  });
}

}  // namespace poise::testing
