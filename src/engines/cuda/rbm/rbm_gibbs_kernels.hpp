/// Block Gibbs of chains of an RBM: what kernels work on, and how they are started.
///
/// A sweep is two launches for all chains, hidden units given visible ones and the other way round. Each is a matrix
/// product of bits and weights on tensor cores whose sums are drawn from as soon as they are there: states stay bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "engines/cuda/rbm/rbm_gibbs_draw.hpp"

namespace poise::cuda {

/// Rows of states that kernels read come in such numbers.
inline constexpr std::size_t kGibbsRows = 128;
/// Sweeps that counts of four bits hold.
inline constexpr std::uint32_t kGibbsCounted = 15;

/// A layer given the other; see rbm_gibbs_layer.hpp.
struct GibbsLayerView {
  std::uint32_t units;
  std::uint32_t words;  ///< of 32 units, in a row of states; even, as are those of inputs
  std::uint32_t input_words;
  std::uint32_t first_slice;        ///< where its random bits begin
  const GibbsFragment* fragments;   ///< [unit / 8][word of inputs][thread]
  const GibbsUnit* bounds;          ///< [unit], of replicas [rung][32 * words]
  const float* weights;             ///< [unit][32 * input_words]
  const float* biases;              ///< [unit]
  const double* offsets = nullptr;  ///< [rung][unit], of replicas
};

/// Random numbers: those of the CPU (kernel/rbm_gibbs.hpp).
struct GibbsStream {
  std::uint64_t seed;
  std::uint64_t first_chain;   ///< number of the first stream
  std::uint64_t further;       ///< further digits have streams that are further by this
  std::uint32_t words;         ///< of 64 bits that a step takes
  const std::uint64_t* steps;  ///< that were made before the present launches
};

/// Where chains are the replicas of ladders, [ladder][replica].
struct GibbsRungs {
  const std::uint8_t* rung_of = nullptr;  ///< of each replica; null where chains are no replicas, but all at beta = 1
  std::uint32_t rungs = 1;
  const double* units = nullptr;  ///< of each rung: beta times that of exact sums
};

struct GibbsChainsView {
  std::uint32_t chains;
  std::uint32_t* visible;  ///< [chain][word], as are the next; rows up to a multiple of kGibbsRows
  std::uint32_t* hidden;
  /// Bits of counts of up to kGibbsCounted sweeps at which visible units were on; or null. Of ladders, those of their
  /// cold replicas.
  uint4* planes;
  std::uint64_t* counts;  ///< [chain][visible unit]
};

struct GibbsView {
  GibbsLayerView hidden;
  GibbsLayerView visible;
  GibbsStream stream;
  double unit;    ///< of exact sums, a power of two
  double in_one;  ///< how many of them are 1
  GibbsChainsView chains;
  GibbsRungs rungs = {};
};

/// A sweep, the one after `ahead` others since `steps` was counted on.
void launch_gibbs_sweep(const GibbsView& view, std::uint32_t ahead, cudaStream_t stream);

/// Counts on by so many sweeps, at most kGibbsCounted since the last time.
void launch_gibbs_count(const GibbsView& view, std::uint64_t* steps, std::uint32_t sweeps, cudaStream_t stream);

/// log p in double precision, the number of units that are on, and of those that are not as in the reference. All are
/// doubles, so that one copy fetches them.
struct GibbsSums {
  double* log_prob;
  double* on;
  double* different;
  const std::uint32_t* reference;  ///< [word]
};
void launch_gibbs_sums(const GibbsView& view, const GibbsSums& sums, cudaStream_t stream);

}  // namespace poise::cuda
