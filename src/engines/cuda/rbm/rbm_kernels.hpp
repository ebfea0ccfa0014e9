/// Chains of an RBM: what kernels work on, and how they are started.
///
/// A step is two launches for all chains: one decides about the proposal before and makes the next one; the
/// other is the matrix product that gives the gradients d log p / d x at all proposed states. Gradients are
/// coarse, in half precision: a proposal may be any function of the state, as long as the way back uses the same one.
/// Activations are integers in a tiny unit, as on the CPU, so they are a function of the state; what is decided by
/// is summed in integers. Where proposals are of many changes, every 32nd step is local (step_guards.hpp), a launch of
/// its own.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "engines/cuda/gradient/gradient_view.hpp"

namespace poise::cuda {

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
  const float* gradients;  ///< the visible biases
};

struct RbmChainsView : GradientChainsView {
  std::uint8_t* half;  ///< of each chain: which half of the next three is the state's; the other is the proposal's
  std::int64_t* activations;   ///< [half][chain][hidden_stride]
  std::int64_t* linear;        ///< [half][chain]: of visible biases of units that are on, in units
  std::int64_t* log_prob;      ///< [half][chain], in units
  const __half* gradients;     ///< [chain][visible_stride], of the state, without the biases
  __half* proposed_gradients;  ///< and of the proposal; those of the state too, once it is decided about
  __half* on;                  ///< [chain][hidden_stride]: P(hidden unit on | proposal)
};

/// Some of the chains.
struct RbmRange {
  std::uint32_t first;
  std::uint32_t count;
};
void launch_rbm_step(const RbmView& rbm, const RbmChainsView& chains, RbmRange range, const GradientLaw& law,
                     GradientPhases phases, cudaStream_t stream);

/// A local step, where no decision about a proposal is due: single changes of any units, one after another. What is
/// known of the states is as after `launch_rbm_prepare`.
void launch_rbm_local(const RbmView& rbm, const RbmChainsView& chains, RbmRange range, cudaStream_t stream);

/// Activations and log p of all states anew, as if they were proposed: their gradients are still to be found.
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
void launch_rbm_law(const RbmView& rbm, const RbmChainsView& chains, const GradientLaw& law, std::uint64_t* out,
                    cudaStream_t stream);

// A matrix product in half precision with sums in single precision, on tensor cores (half_matrix_product.cu). Every
// entry is summed in the same order, sixteen products at a time, whatever the shape of the tiles and the offset of
// its row: what a row gets does not depend on how many others there are.

/// Rows and inner dimension are multiples of this in memory, columns of this or the next.
inline constexpr std::size_t kProductTile = 128;
inline constexpr std::size_t kNarrowTile = 112;

constexpr std::size_t padded_to(std::size_t count, std::size_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}
constexpr std::size_t padded_columns(std::size_t count) {
  const std::size_t wide = padded_to(count, kProductTile), narrow = padded_to(count, kNarrowTile);
  return narrow < wide ? narrow : wide;
}

struct HalfProduct {
  const __half* left;   ///< [row][inner]
  const __half* right;  ///< [column][inner]
  __half* out;          ///< [row][column], rounded; at most 60000 in size
  std::uint32_t rows;   ///< that are wanted
  std::uint32_t columns;
  std::uint32_t inner;
};
void launch_product(const HalfProduct& product, cudaStream_t stream);

}  // namespace poise::cuda
