/// Chains whose proposals are made from gradients of log p: what their kernels work on, whatever the gradients come
/// from.
#pragma once

#include <cstdint>

namespace poise::cuda {

/// What proposals are: one variable changes, with a probability proportional to g; or every variable by itself, by
/// relaxation or as DMALA has it (kernel/factorised_law.hpp).
enum class GradientForm : std::uint32_t { single, relaxation, langevin };
/// In the order of BalancingFunction::Kind.
enum class GradientFunction : std::uint32_t { sqrt, barker, min, max, table };

struct GradientLaw {
  GradientForm form;
  GradientFunction function;
  float log_length;  ///< the level of the function
  float length;      ///< its exponential
  const float* phi;  ///< log g(e^u) - u/2 at |u| = k * step, kPhiPoints of them; of a table only
  float phi_step;
  float tail_gradient;
};
inline constexpr unsigned kPhiPoints = 257;

struct GradientChainsView {
  std::uint32_t chains;
  std::uint32_t variables;
  std::uint32_t words;  ///< of 32 variables, in a row
  std::uint64_t first_chain;
  std::uint64_t seed;

  std::uint32_t* state;  ///< [chain][word]
  std::uint32_t* flips;  ///< [chain][word]: where the proposal differs
  std::uint64_t* level;  ///< random, what the acceptance of the proposal is compared with
  float* largest;        ///< log g of a single change of the state
  std::uint64_t* whole;  ///< sum of their weights
  double* forth;         ///< probability of the proposal, given the state; its log where many variables change
  std::uint64_t* steps;  ///< that each chain has made
  double* accepted;
  std::int64_t* up;  ///< [chain][variable]: steps at which it went down less those at which it went up; or null
  std::uint64_t counted_from;
};

/// What a launch is to do, in this order.
struct GradientPhases {
  bool decide;   ///< about the proposal
  bool propose;  ///< the next one
};

}  // namespace poise::cuda
