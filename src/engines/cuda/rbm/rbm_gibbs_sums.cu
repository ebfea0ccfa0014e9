/// Sums over states of block Gibbs: counts of units that are on, log p, and the gains, swaps and cold states of
/// ladders.
#include <cstddef>
#include <cstdint>

#include "engines/cuda/common/kernel.cuh"
#include "engines/cuda/rbm/rbm_gibbs_kernels.hpp"
#include "engines/cuda/tempering/ladder_kernels.hpp"
#include "engines/cuda/tempering/ladder_swap.cuh"
#include "engines/cuda/tempering/ladder_swap.hpp"

namespace poise::cuda {

// Activations of hidden units of some chains in double precision, which share the weights that are read.

/// Hidden units of a thread.
inline constexpr unsigned kSummedUnits = 4;

/// Sums activations of units `first` and on, a multiple of four; `words` are [chain][word]. Each chain adds up its
/// weights in one order, whatever its company is. Weights of eight inputs are on their way together.
template <unsigned kChains>
__device__ void sum_activations(const GibbsView& view, const std::uint32_t* words, unsigned first,
                                double (&activations)[kChains][kSummedUnits]) {
  constexpr unsigned kWordUnits = 32, kTogether = 8;
  const GibbsLayerView& visible = view.visible;
#pragma unroll
  for (unsigned k = 0; k < kSummedUnits; ++k) {
    const double bias = first + k < view.hidden.units ? view.hidden.biases[first + k] : 0.0F;
#pragma unroll
    for (unsigned c = 0; c < kChains; ++c) activations[c][k] = bias;
  }
  for (unsigned w = 0; w < visible.words; ++w) {
    std::uint32_t any = 0, own[kChains];
#pragma unroll
    for (unsigned c = 0; c < kChains; ++c) any |= own[c] = words[c * visible.words + w];
    for (unsigned bit = 0; bit < kWordUnits; bit += kTogether) {
      if ((any >> bit & 255U) == 0) continue;
      float4 weights[kTogether];
#pragma unroll
      for (unsigned k = 0; k < kTogether; ++k) {
        // Bits that fill the last word are never set.
        const unsigned unit = min(w * kWordUnits + bit + k, visible.units - 1);
        const std::size_t row = static_cast<std::size_t>(unit) * kWordUnits * visible.input_words;
        weights[k] = __ldg(reinterpret_cast<const float4*>(visible.weights + row + first));
      }
#pragma unroll
      for (unsigned k = 0; k < kTogether; ++k) {
        const double four[kSummedUnits] = {weights[k].x, weights[k].y, weights[k].z, weights[k].w};
#pragma unroll
        for (unsigned c = 0; c < kChains; ++c) {
          if ((own[c] >> (bit + k) & 1U) == 0) continue;
#pragma unroll
          for (unsigned unit = 0; unit < kSummedUnits; ++unit) activations[c][unit] += four[unit];
        }
      }
    }
  }
}

namespace {

constexpr unsigned kWarp = 32;

constexpr unsigned kCountThreads = 256;

/// A warp for each word of each chain.
__global__ void __launch_bounds__(kCountThreads)
    count_kernel(GibbsChainsView all, GibbsLayerView visible, std::uint64_t* steps, std::uint32_t sweeps) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *steps += sweeps;
  const std::size_t word = static_cast<std::size_t>(blockIdx.x) * (kCountThreads / kWarp) + threadIdx.x / kWarp;
  if (all.planes == nullptr || word >= static_cast<std::size_t>(all.chains) * visible.words) return;
  const unsigned lane = threadIdx.x % kWarp;
  const uint4 planes = all.planes[word];
  __syncwarp();
  if (lane == 0) all.planes[word] = make_uint4(0, 0, 0, 0);
  const std::size_t chain = word / visible.words, unit = word % visible.words * kWarp + lane;
  if (unit >= visible.units) return;
  const auto bit = [lane](std::uint32_t plane) { return plane >> lane & 1U; };
  all.counts[chain * visible.units + unit] += bit(planes.x) + 2 * bit(planes.y) + 4 * bit(planes.z) + 8 * bit(planes.w);
}

constexpr unsigned kSumThreads = 128;

/// Chains of a block share the weights that it reads.
template <unsigned kChains>
__global__ void __launch_bounds__(kSumThreads) sums_kernel(GibbsView view, GibbsSums sums) {
  __shared__ BlockSum<kSumThreads> sum_of_block;
  const GibbsLayerView& visible = view.visible;
  const std::size_t first = static_cast<std::size_t>(blockIdx.x) * kChains;
  // Rows come in larger numbers than there are chains in a block, so all of these can be read.
  const std::uint32_t* const words = view.chains.visible + first * visible.words;  // [chain][word]
  double soft[kChains] = {};
  for (unsigned j = kSummedUnits * threadIdx.x; j < view.hidden.units; j += kSummedUnits * kSumThreads) {
    double activations[kChains][kSummedUnits];
    sum_activations(view, words, j, activations);
#pragma unroll
    for (unsigned c = 0; c < kChains; ++c) {
#pragma unroll
      for (unsigned k = 0; k < kSummedUnits; ++k) {
        const double a = activations[c][k];
        if (j + k < view.hidden.units) soft[c] += fmax(a, 0.0) + log1p(exp(-fabs(a)));
      }
    }
  }
#pragma unroll
  for (unsigned c = 0; c < kChains; ++c) {
    double linear = 0.0, on = 0.0, different = 0.0;
    for (unsigned i = threadIdx.x; i < visible.units; i += kSumThreads) {
      const std::uint32_t bit = words[c * visible.words + i / kWarp] >> i % kWarp & 1U;
      linear += bit != 0 ? visible.biases[i] : 0.0;
      on += bit;
      different += bit ^ (sums.reference[i / kWarp] >> i % kWarp & 1U);
    }
    const double log_prob = sum_of_block(soft[c] + linear);
    on = sum_of_block(on);
    different = sum_of_block(different);
    if (threadIdx.x != 0 || first + c >= view.chains.chains) continue;
    sums.log_prob[first + c] = log_prob;
    sums.on[first + c] = on;
    sums.different[first + c] = different;
  }
}

template <unsigned kChains>
void launch_sums(const GibbsView& view, const GibbsSums& sums, cudaStream_t stream) {
  static_assert(kGibbsRows % kChains == 0);
  sums_kernel<kChains><<<(view.chains.chains + kChains - 1) / kChains, kSumThreads, 0, stream>>>(view, sums);
}

}  // namespace

void launch_gibbs_count(const GibbsView& view, std::uint64_t* steps, std::uint32_t sweeps, cudaStream_t stream) {
  const std::size_t words = static_cast<std::size_t>(view.chains.chains) * view.visible.words;
  const std::size_t blocks = view.chains.planes == nullptr ? 1 : (words + 7) / (kCountThreads / kWarp);
  count_kernel<<<static_cast<unsigned>(blocks), kCountThreads, 0, stream>>>(view.chains, view.visible, steps, sweeps);
}

void launch_gibbs_sums(const GibbsView& view, const GibbsSums& sums, cudaStream_t stream) {
  // A chain's sums have one order, however many share a block.
  if (view.chains.chains > 2048) {
    launch_sums<16>(view, sums, stream);
  } else {
    launch_sums<8>(view, sums, stream);
  }
}

namespace {

constexpr unsigned kGainThreads = 128;
constexpr unsigned kCopyThreads = 256;

/// Replicas of a block share the weights that it reads.
template <unsigned kReplicas>
__global__ void __launch_bounds__(kGainThreads) gains_kernel(GibbsView view, RbmHotEnd hot_end, ReplicaGain* gains) {
  constexpr unsigned kWordUnits = 32;
  __shared__ BlockSum<kGainThreads> sum_of_block;
  const GibbsLayerView& visible = view.visible;
  const std::size_t first = static_cast<std::size_t>(blockIdx.x) * kReplicas;
  // Rows come in larger numbers than there are replicas in a block, so all of these can be read.
  const std::uint32_t* const words = view.chains.visible + first * visible.words;  // [replica][word]
  NeighbourBetas betas[kReplicas];
  HiddenGain hidden[kReplicas];
#pragma unroll
  for (unsigned r = 0; r < kReplicas; ++r) {
    const std::uint32_t rung = first + r < view.chains.chains ? view.rungs.rung_of[first + r] : 0;
    betas[r] = neighbour_betas(hot_end.betas, view.rungs.rungs, rung);
  }
  for (unsigned j = kSummedUnits * threadIdx.x; j < view.hidden.units; j += kSummedUnits * kGainThreads) {
    double activations[kReplicas][kSummedUnits];
    sum_activations(view, words, j, activations);
#pragma unroll
    for (unsigned k = 0; k < kSummedUnits; ++k) {
      if (j + k >= view.hidden.units) continue;
      const double base = hot_end.hidden[j + k];
#pragma unroll
      for (unsigned r = 0; r < kReplicas; ++r) hidden[r].add(betas[r], activations[r][k], base);
    }
  }
#pragma unroll
  for (unsigned r = 0; r < kReplicas; ++r) {
    double linear = 0.0;
    for (unsigned i = threadIdx.x; i < visible.units; i += kGainThreads) {
      const std::uint32_t word = words[r * visible.words + i / kWordUnits];
      if ((word >> i % kWordUnits & 1U) != 0) linear += hot_end.visible[i];
    }
    const ReplicaGain of_units = hidden[r].gain(), of_biases = visible_gain(betas[r], linear);
    const double above = sum_of_block(of_units.above + of_biases.above);
    const double below = sum_of_block(of_units.below + of_biases.below);
    if (threadIdx.x == 0 && first + r < view.chains.chains) gains[first + r] = {above, below};
  }
}

template <unsigned kReplicas>
void launch_gains(const GibbsView& view, const RbmHotEnd& hot_end, ReplicaGain* gains, cudaStream_t stream) {
  static_assert(kGibbsRows % kReplicas == 0);
  gains_kernel<kReplicas>
      <<<(view.chains.chains + kReplicas - 1) / kReplicas, kGainThreads, 0, stream>>>(view, hot_end, gains);
}

__global__ void gather_cold_kernel(GibbsView view, LadderView ladders, std::uint32_t* cold) {
  const std::size_t number = static_cast<std::size_t>(blockIdx.x) * kCopyThreads + threadIdx.x;
  const std::size_t ladder = number / view.visible.words;
  if (ladder >= ladders.ladders) return;
  const std::size_t first = ladder * ladders.rungs;
  const std::size_t replica = first + ladders.replica_at[first + ladders.rungs - 1];
  cold[number] = view.chains.visible[replica * view.visible.words + number % view.visible.words];
}

}  // namespace

void launch_rbm_gains(const GibbsView& view, const RbmHotEnd& hot_end, ReplicaGain* gains, cudaStream_t stream) {
  // A replica's gains have one order, however many share a block.
  if (view.chains.chains > 4096) {
    launch_gains<8>(view, hot_end, gains, stream);
  } else {
    launch_gains<4>(view, hot_end, gains, stream);
  }
}

void launch_rbm_swaps(const LadderView& view, const ReplicaGain* gains, std::uint64_t step, cudaStream_t stream) {
  launch_swaps_of(view, ReplicaGains{gains}, step, stream);
}

void launch_rbm_cold(const GibbsView& view, const LadderView& ladders, std::uint32_t* cold, cudaStream_t stream) {
  const std::size_t words = std::size_t{ladders.ladders} * view.visible.words;
  const auto blocks = static_cast<unsigned>((words + kCopyThreads - 1) / kCopyThreads);
  gather_cold_kernel<<<blocks, kCopyThreads, 0, stream>>>(view, ladders, cold);
}

}  // namespace poise::cuda
