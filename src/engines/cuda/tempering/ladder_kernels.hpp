/// Kernels of ladders, whose replicas are lanes or chains of an RBM, and how they are started.
#pragma once

#include <cstdint>

#include "engines/cuda/lanes/lane_kernels.hpp"
#include "engines/cuda/rbm/rbm_gibbs_kernels.hpp"
#include "engines/cuda/tempering/ladder_swap.hpp"

namespace poise::cuda {

/// Energies of all lanes, factors added up one after the other as the CPU does.
void launch_energies(const FactorsView& view, ReplicaEnergy* out);
/// The same in integers, for which the order does not matter, of models without zeros.
void launch_exact_energies(const FactorsView& view, ReplicaEnergy* out);

/// Swaps of step `step` of all ladders.
void launch_swaps(const LadderView& view, const EnergyGains& gains, std::uint64_t step);

/// Exchange of components between each two ladders, at one rung.
void launch_exchange(const ComponentsView& view, const LadderView& ladders, std::uint32_t rung);

/// The replicas that are cold.
struct ColdView {
  const std::uint8_t* levels;  ///< [position][lane]
  std::uint32_t lanes;
  const std::uint8_t* replica_at;  ///< [ladder][rung]
  std::uint32_t ladders;
  std::uint32_t rungs;
};
/// Adds their levels to counts of one byte, [entry][ladder], whose rows are `stride` long.
void launch_count_cold(const ColdView& view, const PackedImage& image, std::uint32_t positions, std::uint8_t* counts,
                       std::uint32_t stride);
/// Copies their states to [position][ladder], so many positions.
void launch_keep_cold(const ColdView& view, std::uint32_t positions, std::uint8_t* out);
/// [ladder][row], `row_of` says where each row is.
void launch_gather_cold(const ColdView& view, const std::uint32_t* row_of, std::uint32_t rows, std::uint8_t* out);

// Kernels of ladders of an RBM, whose sweeps are those of rbm_gibbs_kernels.hpp.

/// What gains follow from besides weights.
struct RbmHotEnd {
  const double* betas;    ///< of each rung
  const double* hidden;   ///< biases of hidden units at beta = 0
  const double* visible;  ///< biases of visible units at beta = 1, less those at beta = 0
};

/// Gains of all replicas, at the rungs where they are.
void launch_rbm_gains(const GibbsView& view, const RbmHotEnd& hot_end, ReplicaGain* gains, cudaStream_t stream);

/// Swaps of step `step` of all ladders.
void launch_rbm_swaps(const LadderView& view, const ReplicaGain* gains, std::uint64_t step, cudaStream_t stream);

/// Copies the visible units of cold replicas, [ladder][word].
void launch_rbm_cold(const GibbsView& view, const LadderView& ladders, std::uint32_t* cold, cudaStream_t stream);

}  // namespace poise::cuda
