/// What is told about chains of block Gibbs: counts of units that are on, log p and other sums of states.
#include "engines/cuda/common/block_sum.cuh"
#include "engines/cuda/rbm/rbm_activations.cuh"
#include "engines/cuda/rbm/rbm_gibbs_kernels.hpp"

namespace poise::cuda {

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
  all.counts[chain * visible.units + unit] +=
      bit(planes.x) + 2 * bit(planes.y) + 4 * bit(planes.z) + 8 * bit(planes.w);
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

}  // namespace poise::cuda
