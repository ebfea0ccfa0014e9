/// What kernels of chains as bits work on, as they lie in the memory of the device, and how they are started.
///
/// States are words by position, [position][word]; bit c of word w is chain 32 w + c.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace poise::cuda {

inline constexpr unsigned kThreads = 256;                          ///< of a block
inline constexpr unsigned kWordChains = 32;                        ///< chains that a thread has
inline constexpr unsigned kRandomDigits = 4;                       ///< that a random word has of each chain
inline constexpr unsigned kDigitGroups = 16;                       ///< random words of an update: 64 digits
inline constexpr unsigned kPlanes = 8;                             ///< of counts
inline constexpr std::uint32_t kMostStates = (1U << kPlanes) - 1;  ///< until planes are full

/// A digit of P(up | configuration) for all configurations of a blanket.
template <unsigned size>
struct DigitOf;
template <>
struct DigitOf<4> {
  using type = std::uint16_t;
};
template <>
struct DigitOf<5> {
  using type = std::uint32_t;
};
template <>
struct DigitOf<6> {
  using type = std::uint64_t;
};

/// As many digits as a random word has.
template <unsigned size>
struct alignas(size == 4 ? 8 : 16) Digits {
  typename DigitOf<size>::type digit[kRandomDigits];
};

/// Keys of the two times sixteen chains of a word.
struct alignas(16) WordKeys {
  std::uint64_t first[2];
  std::uint64_t second[2];
};

/// Variables of one colour with blankets of one size.
struct RunView {
  const std::uint32_t* variable;
  const std::uint32_t* blanket;  ///< [neighbour][variable]: positions
  const std::uint32_t* table;    ///< number of each variable's table
  const void* digits;            ///< [group of digits][table]
  std::uint32_t tables;
  std::uint32_t count;
  std::uint32_t first;  ///< position
  std::uint32_t size;   ///< of the blankets
};

/// How far chains have come: launches that are put together for later know how many sweeps they are ahead of it.
struct BitProgress {
  std::uint64_t sweeps;
  std::uint32_t states;  ///< that were counted in planes
};
void launch_progress(BitProgress* progress, const BitProgress& now, cudaStream_t stream);
/// So many sweeps more, counted or not.
void launch_progress(BitProgress* progress, std::uint32_t sweeps, std::uint32_t states, cudaStream_t stream);

/// Planes count 2^level each; what is pending at a level waits there until there are two of it.
struct PlanesView {
  std::uint32_t* planes;   ///< [level][word]; null where nothing is counted
  std::uint32_t* pending;  ///< the same
  std::size_t size;        ///< of a level, in words
  std::uint32_t states;    ///< that were counted
};

struct SweepView {
  std::uint32_t* state;
  const std::uint32_t* before;  ///< where variables are that have not had their turn; may be the same
  const WordKeys* keys;
  const std::uint32_t* chains;  ///< bits of each word that are chains
  std::uint32_t words;
  std::uint32_t variables;
  const BitProgress* progress;
  std::uint32_t ahead;  ///< sweeps
  PlanesView counts;    ///< the new state is counted there
};
void launch_sweep(const RunView& run, const SweepView& view, cudaStream_t stream);

struct TermsView {
  const std::uint32_t* state;
  std::uint32_t words;
  std::uint32_t positions;
  std::uint32_t edges;
  const std::uint32_t* fields;   ///< with the reference, as rows_of_sums (sum_digits.hpp)
  const std::uint32_t* ends;     ///< two positions for each edge
  const std::uint32_t* weights;  ///< the same way; null where all are 1
  std::uint32_t reference_bits;  ///< that are set
};
/// Sums of one draw by slices, [slice][4][lane]: variables that are up, their fields, weights of edges whose ends
/// differ, differences from the reference.
struct SumsView {
  TermsView terms;
  std::uint32_t slices;
  std::int64_t* out;
  std::size_t between_states = 0;  ///< of draws one after the other, in words
  std::size_t between_sums = 0;
};
/// Into how many slices a draw is best divided, where so many are summed by one launch.
[[nodiscard]] std::uint32_t slices_of_sums(const TermsView& terms, std::size_t draws);
void launch_sums(const SumsView& sums, std::uint32_t draws, cudaStream_t stream);
/// The slices of several draws added up, [draw][4][lane]; those of the draws follow each other.
void launch_whole_sums(const SumsView& first, std::uint32_t draws, std::int64_t* out, cudaStream_t stream);

/// Counts one state more, so many ahead.
void launch_count(const PlanesView& view, const std::uint32_t* state, const BitProgress* progress, std::uint32_t ahead,
                  cudaStream_t stream);
/// Adds what was counted to [word][bit].
void launch_spill(const PlanesView& view, std::uint32_t* spilled);
/// Counts of some bits.
struct GatherView {
  std::size_t first, step, count;
  const std::uint32_t* spilled;  ///< may be null
};
void launch_gather(const PlanesView& view, const GatherView& which, std::uint64_t* out);

/// States lane by lane, as the host has them: bits of 32 positions in a word.
struct PackView {
  std::uint32_t* state;
  std::uint32_t words;
  std::uint32_t positions;
  std::uint32_t first;  ///< lane
  std::uint32_t lanes;
  std::uint32_t stride;   ///< words of a lane
  std::uint32_t* packed;  ///< [lane][word]
};
void launch_pack(const PackView& view);
void launch_unpack(const PackView& view);

/// Levels of `count` lanes from `first` on, lane after lane, by variable.
struct LevelsView {
  const std::uint32_t* state;
  std::uint32_t words;
  const std::uint32_t* position;
  std::uint32_t variables;
  std::uint32_t first;
  std::uint32_t count;
};
void launch_levels(const LevelsView& view, std::uint8_t* out);

}  // namespace poise::cuda
