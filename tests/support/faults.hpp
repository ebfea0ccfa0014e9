/// Whether a kernel notices that a target gives numbers which are none.
#pragma once

#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "support/table_target.hpp"

namespace poise::testing {

/// Log p of 0 everywhere but in one state.
inline TableTarget flat_but_for(std::vector<Index> cardinalities, std::size_t where, double log_p) {
  std::size_t states = 1;
  for (const Index k : cardinalities) states *= k;
  std::vector<double> table(states, 0.0);
  table[where] = log_p;
  return {std::move(cardinalities), std::move(table)};
}

/// From the state of zeros: by throwing in `prepare`, or by a note in the scratch within some steps.
template <class T, class K>
bool finds_fault(const T& target, const K& kernel) {
  auto state = target.make_state(std::vector<Value>(target.num_variables(), 0));
  typename K::Scratch scratch(target);
  Rng rng(1, 1);
  try {
    kernel.prepare(target, state, scratch);
  } catch (const std::runtime_error&) {
    return true;
  }
  for (int step = 0; step < 500 && scratch.failure == nullptr; ++step) kernel.step(target, state, scratch, rng);
  return scratch.failure != nullptr;
}

template <class T, class K>
void expect_stays(const T& target, const K& kernel) {
  const std::vector<Value> start(target.num_variables(), 0);
  auto state = target.make_state(start);
  typename K::Scratch scratch(target);
  Rng rng(1, 1);
  kernel.prepare(target, state, scratch);
  for (int step = 0; step < 20; ++step) {
    const StepInfo info = kernel.step(target, state, scratch, rng);
    ASSERT_FALSE(info.accepted);
    ASSERT_EQ(scratch.failure, nullptr);
  }
  for (Index i = 0; i < start.size(); ++i) ASSERT_EQ(target.level(state, i), start[i]);
}

}  // namespace poise::testing
