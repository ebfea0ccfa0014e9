/// Chains of an RBM: what kernels work on, and how they are started.
///
/// A step is two launches for all chains: one decides about the proposal before and makes the next one; the
/// other is the matrix product that gives the slopes d log p / d x at all proposed states. Slopes are
/// coarse, in half precision: a proposal may be any function of the state, as long as the way back uses the same one.
/// Activations are integers in a tiny unit, as on the CPU, so they are a function of the state; what is decided by
/// is summed in integers.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

namespace poise::cuda {

/// What proposals are: one unit changes, with a probability proportional to g; or every unit by itself, by relaxation
/// or as DMALA has it (kernel/factorised_law.hpp).
enum class RbmForm : std::uint32_t { single, relaxation, langevin };
/// In the order of BalancingFunction::Kind.
enum class RbmFunction : std::uint32_t { sqrt, barker, min, max, table };

struct RbmLaw {
  RbmForm form;
  RbmFunction function;
  float log_length;  ///< the level of the function
  float length;      ///< its exponential
  const float* phi;  ///< log g(e^u) - u/2 at |u| = k * step, kPhiPoints of them; of a table only
  float phi_step;
  float tail_slope;
};
inline constexpr unsigned kPhiPoints = 257;

struct RbmView {
  std::uint32_t visible;  ///< units
  std::uint32_t visible_stride;
  std::uint32_t hidden_stride;  ///< hidden units; those that fill it up are never on
  double unit;                  ///< of activations, biases, and log p
  float float_unit;
  float units_in_one;
  const std::int64_t* weights;  ///< [visible][hidden_stride], in units, as are the next two
  const std::int64_t* hidden_bias;
  const std::int64_t* visible_bias;
  const float* slopes;  ///< the visible biases
};

struct RbmChainsView {
  std::uint32_t chains;
  std::uint32_t words;  ///< of 32 visible units, in a row
  std::uint64_t first_chain;
  std::uint64_t seed;

  std::uint32_t* state;  ///< [chain][word]
  std::uint32_t* flips;  ///< [chain][word]: where the proposal differs
  std::uint8_t* half;    ///< of each chain: which half of the next three is the state's; the other is the proposal's
  std::int64_t* activations;  ///< [half][chain][hidden_stride]
  std::int64_t* linear;       ///< [half][chain]: of visible biases of units that are on, in units
  std::int64_t* log_prob;     ///< [half][chain], in units
  std::uint64_t* level;       ///< random, what the acceptance of the proposal is compared with
  float* largest;             ///< log g of a single change of the state
  std::uint64_t* whole;       ///< sum of their weights
  double* forth;              ///< probability of the proposal, given the state; its log where many units change
  __half* slopes;             ///< [chain][visible_stride], of the state, without the biases
  const __half* proposed_slopes;
  __half* on;            ///< [chain][hidden_stride]: P(hidden unit on | proposal)
  std::uint64_t* steps;  ///< that each chain has made
  double* accepted;
  std::int64_t* up;  ///< [chain][unit]: steps at which it went down less those at which it went up; or null
  std::uint64_t counted_from;
};

/// What a launch is to do, in this order.
struct RbmPhases {
  bool decide;   ///< about the proposal
  bool propose;  ///< the next one
};
void launch_rbm_step(const RbmView& rbm, const RbmChainsView& chains, const RbmLaw& law, RbmPhases phases,
                     cudaStream_t stream);

/// Activations and log p of all states anew, as if they were proposed: their slopes are still to be found.
void launch_rbm_prepare(const RbmView& rbm, const RbmChainsView& chains, cudaStream_t stream);

/// log p in double precision, the number of units that are on, and of those that are not as in the reference.
struct RbmSums {
  double* log_prob;
  std::int64_t* on;
  std::int64_t* different;
  const std::uint32_t* reference;  ///< [word]
};
void launch_rbm_sums(const RbmView& rbm, const RbmChainsView& chains, const RbmSums& sums, cudaStream_t stream);

/// What proposals are drawn from, [chain][visible]: weights of single changes, or probabilities in units of 2^-32.
void launch_rbm_law(const RbmView& rbm, const RbmChainsView& chains, const RbmLaw& law, std::uint64_t* out,
                    cudaStream_t stream);

}  // namespace poise::cuda
