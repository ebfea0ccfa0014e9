/// Chains that are moved on together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace poise {

/// A range of chains that one thread moves on together.
struct ChainGroup {
  std::size_t first;
  std::size_t count;
};

/// What all chains of a block have in common.
struct BlockProgress {
  std::uint64_t sweeps = 0;
  std::uint64_t counts = 0;    ///< 1 while levels are counted
  std::uint64_t averages = 0;  ///< 1 while conditional probabilities are summed
};

/// Shares chains out in groups of at most `most`, as equal as can be, a multiple of the threads in number if possible.
std::vector<ChainGroup> group_chains(std::size_t chains, unsigned threads, std::size_t most = 4);

/// Chains that share words of memory, and so go in groups of whole words where there are enough for all threads.
struct WordShape {
  std::size_t chains;      ///< of a word
  std::size_t most_words;  ///< of a group
};
std::vector<ChainGroup> group_words(std::size_t chains, std::uint64_t first_chain, unsigned threads, WordShape shape);

}  // namespace poise
