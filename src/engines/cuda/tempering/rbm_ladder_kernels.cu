/// Kernels of ladders of an RBM: gains of all replicas, swaps, and the states of cold replicas.
#include "engines/cuda/tempering/rbm_ladder_kernels.hpp"

#include "engines/cuda/common/block_sum.cuh"
#include "engines/cuda/tempering/ladder_swap.cuh"
#include "engines/cuda/rbm/rbm_activations.cuh"
#include "engines/cuda/rbm/rbm_gain.hpp"

namespace poise::cuda {

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
