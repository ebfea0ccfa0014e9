/// Sharing chains out among threads.
#include <poise/lanes/chain_group.hpp>

#include <algorithm>

namespace poise {

std::vector<ChainGroup> group_chains(std::size_t chains, unsigned threads, std::size_t most) {
  const std::size_t rounds = std::max<std::size_t>(1, (chains + most * threads - 1) / (most * threads));
  const std::size_t number = std::min(chains, rounds * threads);
  std::vector<ChainGroup> groups;
  for (std::size_t g = 0; g < number; ++g) {
    const std::size_t first = chains * g / number;
    groups.push_back({first, chains * (g + 1) / number - first});
  }
  return groups;
}

}  // namespace poise
