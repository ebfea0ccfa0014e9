/// Chains whose proposals are made from gradients of log p: what their kernels work on, whatever the gradients come
/// from.
#pragma once

#include <cstdint>

#include "engines/common/gradient_law.hpp"

namespace poise::cuda {

struct GradientChainsView {
  std::uint32_t chains;
  std::uint32_t variables;
  std::uint32_t words;  ///< of 32 variables, in a row
  std::uint64_t first_chain;
  std::uint64_t seed;

  std::uint32_t* state;    ///< [chain][word]
  std::uint32_t* flips;    ///< [chain][word]: where the proposal differs
  std::uint64_t* level;    ///< random, what the acceptance of the proposal is compared with
  double stretch;          ///< of levels (step_guards.hpp): over 1 where one variable changes
  float* largest;          ///< log g of a single change of the state
  std::uint64_t* whole;    ///< sum of their weights
  double* forth;           ///< probability of the proposal, given the state; its log where many variables change
  std::uint64_t* steps;    ///< that each chain has made
  double* accepted;        ///< acceptance probabilities of what would change something, summed
  double* unchanged;       ///< proposals that would change nothing
  double* local_accepted;  ///< what local steps have in `accepted`
  std::int64_t* up;        ///< [chain][variable]: steps at which it went down less those at which it went up; or null
  std::uint64_t counted_from;
};

/// What a launch is to do, in this order.
struct GradientPhases {
  bool decide;   ///< about the proposal
  bool propose;  ///< the next one
};

}  // namespace poise::cuda
