/// Kernels of ladders of an RBM, and how they are started; sweeps are those of rbm_gibbs_kernels.hpp.
#pragma once

#include <cstdint>

#include "engines/cuda/tempering/ladder_swap.hpp"
#include "engines/cuda/rbm/rbm_gibbs_kernels.hpp"

namespace poise::cuda {

/// What gains follow from besides weights.
struct RbmHotEnd {
  const double* betas;    ///< of each rung
  const double* hidden;   ///< biases of hidden units at beta = 0
  const double* visible;  ///< biases of visible units at beta = 1, less those at beta = 0
};

/// Of all replicas, at the rungs where they are.
void launch_rbm_gains(const GibbsView& view, const RbmHotEnd& hot_end, ReplicaGain* gains, cudaStream_t stream);

/// Swaps of step `step` of all ladders.
void launch_rbm_swaps(const LadderView& view, const ReplicaGain* gains, std::uint64_t step, cudaStream_t stream);

/// Copies the visible units of cold replicas, [ladder][word].
void launch_rbm_cold(const GibbsView& view, const LadderView& ladders, std::uint32_t* cold, cudaStream_t stream);

}  // namespace poise::cuda
