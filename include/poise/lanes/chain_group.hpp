/// Chains that are moved on together.
#pragma once

#include <cstddef>
#include <vector>

namespace poise {

/// A range of chains that one thread moves on together.
struct ChainGroup {
  std::size_t first;
  std::size_t count;
};

/// Shares chains out in groups of at most `most`, as equal as can be, a multiple of the threads in number if possible.
std::vector<ChainGroup> group_chains(std::size_t chains, unsigned threads, std::size_t most = 4);

}  // namespace poise
