/// Sharing chains out among threads.
#include <poise/extend/engines/chain_group.hpp>

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

std::vector<ChainGroup> group_words(std::size_t chains, std::uint64_t first_chain, unsigned threads, WordShape shape) {
  const std::uint64_t first_word = first_chain / shape.chains;
  const std::uint64_t words = (first_chain + chains - 1) / shape.chains - first_word + 1;
  if (words < threads) return group_chains(chains, threads, shape.chains);
  std::vector<ChainGroup> groups;
  for (const ChainGroup& some : group_chains(static_cast<std::size_t>(words), threads, shape.most_words)) {
    const std::uint64_t begin = std::max<std::uint64_t>(first_chain, (first_word + some.first) * shape.chains);
    const std::uint64_t end =
        std::min<std::uint64_t>(first_chain + chains, (first_word + some.first + some.count) * shape.chains);
    groups.push_back({static_cast<std::size_t>(begin - first_chain), static_cast<std::size_t>(end - begin)});
  }
  return groups;
}

}  // namespace poise
