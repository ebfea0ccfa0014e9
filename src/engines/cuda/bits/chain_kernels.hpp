/// Few chains of Gibbs on two-valued variables: what kernels work on, and how they are started.
///
/// A word has 32 variables of one colour and one chain, side by side, where other kernels (bit_kernels.hpp) have 32
/// chains of one variable: the words of neighbours are then found by shifting, where these stand side by side too.
#pragma once

#include <cstdint>

#include "engines/cuda/bits/bit_kernels.hpp"

namespace poise::cuda {

inline constexpr std::uint32_t kApart = ~0U;

/// Variables of one colour with blankets of one size. Places are bits of a chain's words; every run begins with a word.
struct ChainRunView {
  std::uint32_t count;            ///< of variables
  std::uint32_t words;            ///< that they take
  std::uint32_t first;            ///< word
  std::uint32_t size;             ///< of the blankets
  std::uint32_t stride;           ///< between numbers of variables side by side, in words whose variables are alike
  std::uint32_t tables;           ///< number of them
  const std::uint32_t* variable;  ///< numbers
  const std::uint32_t* blanket;   ///< [neighbour][variable]: offsets
  const std::uint32_t* together;  ///< [neighbour][word]: the first offset, where those of a word are side by side
  const std::uint32_t* table;     ///< of each variable; null where each has its own
  const std::uint32_t* alike;     ///< of each word: the table, where all variables have one and the stride; or kApart
  const std::uint32_t* nibbles;   ///< [group of digits][table][configuration]: four digits of P(up | configuration)
  const void* digits;             ///< the same by digit, as Digits<size>, where tables are shared
};

/// Random words of the sixteen chains that one is among, and which it is.
struct ChainKey {
  std::uint64_t first;
  std::uint64_t second;
  std::uint32_t chain;
};

struct ChainSweepView {
  std::uint32_t* state;  ///< [chain][word]; two words more than there are variables for, which are 0
  std::uint32_t words;
  std::uint32_t chains;
  const ChainKey* keys;
  std::uint64_t variables;
  const BitProgress* progress;
  std::uint32_t ahead;  ///< sweeps
};
void launch_chain_sweep(const ChainRunView& run, const ChainSweepView& view, cudaStream_t stream);

struct ChainTermsView {
  const std::uint32_t* state;
  std::uint32_t words;
  std::uint32_t chains;
  std::uint32_t edges;
  const std::int64_t* fields;      ///< by offset; null where all are 0
  const std::uint32_t* ends;       ///< two offsets for each edge
  const std::int64_t* weights;     ///< null where all are 1
  const std::uint32_t* reference;  ///< words
};
/// Adds to [sum][chain]: variables that are up, their fields, weights of edges whose ends differ, differences from the
/// reference.
void launch_chain_sums(const ChainTermsView& terms, std::int64_t* out);

}  // namespace poise::cuda
