/// Activations of hidden units of some chains in double precision, which share the weights that are read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/cuda/rbm/rbm_gibbs_kernels.hpp"

namespace poise::cuda {

/// Hidden units of a thread.
inline constexpr unsigned kSummedUnits = 4;

/// Of units `first` and on, a multiple of four; `words` are [chain][word]. Each chain adds up its weights in one order,
/// whatever its company is. Weights of eight inputs are on their way together.
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
    for (unsigned place = 0; place < kWordUnits; place += kTogether) {
      if ((any >> place & 255U) == 0) continue;
      float4 weights[kTogether];
#pragma unroll
      for (unsigned k = 0; k < kTogether; ++k) {
        // Bits that fill the last word are never set.
        const unsigned unit = min(w * kWordUnits + place + k, visible.units - 1);
        const std::size_t row = static_cast<std::size_t>(unit) * kWordUnits * visible.input_words;
        weights[k] = __ldg(reinterpret_cast<const float4*>(visible.weights + row + first));
      }
#pragma unroll
      for (unsigned k = 0; k < kTogether; ++k) {
        const double four[kSummedUnits] = {weights[k].x, weights[k].y, weights[k].z, weights[k].w};
#pragma unroll
        for (unsigned c = 0; c < kChains; ++c) {
          if ((own[c] >> (place + k) & 1U) == 0) continue;
#pragma unroll
          for (unsigned unit = 0; unit < kSummedUnits; ++unit) activations[c][unit] += four[unit];
        }
      }
    }
  }
}

}  // namespace poise::cuda
