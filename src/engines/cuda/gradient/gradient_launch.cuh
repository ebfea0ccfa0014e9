/// How kernels over chains with slopes are shaped: a warp or a block for each chain, a function that the compiler
/// knows.
#pragma once

#include <cstddef>
#include <type_traits>

#include "engines/cuda/gradient/gradient_walk.cuh"

namespace poise::cuda {

inline constexpr unsigned kSlopeThreads = 128;  // of a block

/// Threads of a block in which each chain has so many: warps do not wait for each other, larger groups do.
template <unsigned kOfChain>
inline constexpr unsigned kSlopeBlock = kOfChain == 32 ? kSlopeThreads : kOfChain;

/// Words of shared memory that a chain has beside its own.
template <unsigned kOfChain>
struct SlopeShared {
  typename Meeting<kOfChain>::Rooms rooms;
  SlopeChosen chosen;
};

/// The fewer threads a chain has, the less is done in all, and the longer it takes.
inline bool has_warp_for_each(const SlopeChainsView& chains) {
  return chains.chains > 2048 && chains.variables <= 4096;
}

/// Calls use(function), with a function that the compiler knows.
template <class Use>
void with_function(SlopeFunction function, Use&& use) {
  switch (function) {
    case SlopeFunction::sqrt: use(std::integral_constant<SlopeFunction, SlopeFunction::sqrt>()); break;
    case SlopeFunction::barker: use(std::integral_constant<SlopeFunction, SlopeFunction::barker>()); break;
    case SlopeFunction::min: use(std::integral_constant<SlopeFunction, SlopeFunction::min>()); break;
    case SlopeFunction::max: use(std::integral_constant<SlopeFunction, SlopeFunction::max>()); break;
    case SlopeFunction::table: use(std::integral_constant<SlopeFunction, SlopeFunction::table>()); break;
  }
}

/// Bytes of words of chains in a block: their states and flips.
inline std::size_t shared_words(const SlopeChainsView& chains, unsigned of_block) {
  return 2 * sizeof(std::uint32_t) * chains.words * of_block;
}

}  // namespace poise::cuda
