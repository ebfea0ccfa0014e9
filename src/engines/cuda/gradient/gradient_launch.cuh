/// How kernels over chains with gradients are shaped: a warp or a block for each chain, a function that the compiler
/// knows.
#pragma once

#include <cstddef>
#include <type_traits>

#include "engines/cuda/gradient/gradient_walk.cuh"

namespace poise::cuda {

inline constexpr unsigned kGradientThreads = 128;  // of a block

/// Threads of a block in which each chain has so many: warps do not wait for each other, larger groups do.
template <unsigned kOfChain>
inline constexpr unsigned kGradientBlock = kOfChain == 32 ? kGradientThreads : kOfChain;

/// Words of shared memory that a chain has beside its own.
template <unsigned kOfChain>
struct GradientShared {
  typename Meeting<kOfChain>::Rooms rooms;
  GradientChosen chosen;
};

/// The fewer threads a chain has, the less is done in all, and the longer it takes.
inline bool has_warp_for_each(const GradientChainsView& chains) {
  return chains.chains > 2048 && chains.variables <= 4096;
}

/// Calls use(function), with a function that the compiler knows.
template <class Use>
void with_function(GradientFunction function, Use&& use) {
  switch (function) {
    case GradientFunction::sqrt: use(std::integral_constant<GradientFunction, GradientFunction::sqrt>()); break;
    case GradientFunction::barker: use(std::integral_constant<GradientFunction, GradientFunction::barker>()); break;
    case GradientFunction::min: use(std::integral_constant<GradientFunction, GradientFunction::min>()); break;
    case GradientFunction::max: use(std::integral_constant<GradientFunction, GradientFunction::max>()); break;
    case GradientFunction::table: use(std::integral_constant<GradientFunction, GradientFunction::table>()); break;
  }
}

/// Bytes of words of chains in a block: their states and flips.
inline std::size_t shared_words(const GradientChainsView& chains, unsigned of_block) {
  return 2 * sizeof(std::uint32_t) * chains.words * of_block;
}

}  // namespace poise::cuda
