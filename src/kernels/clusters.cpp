/// From pairs of variables to lists of bonds.
#include "kernels/clusters.hpp"

#include <cmath>
#include <limits>

namespace poise {

BondGraph::BondGraph(Index variables, Index levels, std::span<const Pair> pairs) : levels_(levels) {
  start_.assign(variables + std::size_t{1}, 0);
  for (const Pair& pair : pairs) {
    ++start_[pair.first + std::size_t{1}];
    ++start_[pair.second + std::size_t{1}];
  }
  bool same_length = true;
  for (Index i = 0; i < variables; ++i) {
    const std::size_t length = (start_[i + 1] + kTogether - 1) / kTogether * kTogether;
    if (i == 0) length_ = length;
    same_length = same_length && length == length_;
    start_[i + 1] = start_[i] + length;
  }
  if (!same_length) length_ = 0;
  neighbours_.resize(start_.back());
  for (Index i = 0; i < variables; ++i) {
    for (std::size_t bond = start_[i]; bond < start_[i + 1]; ++bond) neighbours_[bond] = i;
  }
  high_.assign(start_.back(), 0);
  low_.assign(start_.back(), 0);
  bool same_weight = !pairs.empty();
  std::vector<std::size_t> next(start_.begin(), start_.end() - 1);
  for (const Pair& pair : pairs) {
    same_weight = same_weight && pair.weight == pairs[0].weight;
    const double probability = -std::expm1(-pair.weight);
    const std::uint64_t digits = probability < 1.0 ? static_cast<std::uint64_t>(std::ldexp(probability, 64))
                                                   : std::numeric_limits<std::uint64_t>::max();
    for (const auto& [from, to] : {std::pair{pair.first, pair.second}, std::pair{pair.second, pair.first}}) {
      const std::size_t bond = next[from]++;
      neighbours_[bond] = to;
      high_[bond] = static_cast<std::uint16_t>(digits >> (64 - kDigits));
      low_[bond] = digits << kDigits >> kDigits;
    }
  }
  if (!same_weight) return;
  // One of all will do; it also stands for those that only fill a list up, which join nothing whatever it is.
  const std::size_t any = start_[pairs[0].first];
  high_ = {high_[any]};
  low_ = {low_[any]};
}

std::vector<BondGraph::Bond> BondGraph::bonds(Index i) const {
  std::vector<Bond> out;
  for (std::size_t bond = start_[i]; bond < start_[i + 1]; ++bond) {
    if (neighbours_[bond] == i) continue;
    const std::size_t k = is_uniform() ? 0 : bond;
    out.push_back({neighbours_[bond], std::ldexp(static_cast<double>(high_[k]), -static_cast<int>(kDigits)) +
                                          std::ldexp(static_cast<double>(low_[k]), -64)});
  }
  return out;
}

}  // namespace poise
