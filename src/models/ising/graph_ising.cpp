/// Ising models on graphs: neighbours from a list of edges, and what is refused in it.
#include "models/ising/graph_ising.hpp"

#include <fmt/format.h>

namespace poise {

GraphIsing::GraphIsing(std::vector<double> field, std::span<const Edge> edges, IsingObjective objective)
    : objective_(std::move(objective)), field_(std::move(field)), units_(field_.size()) {
  const std::size_t n = field_.size();
  double sum = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!std::isfinite(field_[i])) {
      throw InputError(fmt::format("found {} as the field of variable {}, expected a finite number", field_[i], i));
    }
    sum += std::abs(field_[i]);
  }
  for (const Edge& edge : edges) {
    if (edge.i >= n || edge.j >= n || edge.i == edge.j) {
      throw InputError(fmt::format("found an edge from variable {} to variable {}, expected two different ones of {}",
                                   edge.i, edge.j, n));
    }
    if (!std::isfinite(edge.coupling)) {
      throw InputError(fmt::format("found {} as the coupling of variables {} and {}, expected a finite number",
                                   edge.coupling, edge.i, edge.j));
    }
    sum += std::abs(edge.coupling);
  }
  if (!std::isfinite(sum)) {
    throw InputError("found fields and couplings whose sum is beyond the range of doubles, expected smaller ones");
  }
  unit_ = std::max(sum * 0x1p-61, std::numeric_limits<double>::min());
  for (std::size_t i = 0; i < n; ++i) units_[i] = std::llround(field_[i] / unit_);
  start_.assign(n + 1, 0);
  for (const Edge& edge : edges) {
    ++start_[edge.i + 1];
    ++start_[edge.j + 1];
  }
  for (std::size_t i = 0; i < n; ++i) {
    max_degree_ = std::max(max_degree_, start_[i + 1]);
    start_[i + 1] += start_[i];
  }
  neighbours_.resize(start_[n]);
  std::vector<std::size_t> next(start_.begin(), start_.end() - 1);
  for (const Edge& edge : edges) {
    const std::int64_t units = std::llround(edge.coupling / unit_);
    neighbours_[next[edge.i]++] = {edge.j, edge.coupling, units};
    neighbours_[next[edge.j]++] = {edge.i, edge.coupling, units};
  }
  for (std::size_t i = 0; i < n; ++i) {
    const auto first = neighbours_.begin() + static_cast<std::ptrdiff_t>(start_[i]);
    const auto last = neighbours_.begin() + static_cast<std::ptrdiff_t>(start_[i + 1]);
    std::sort(first, last, [](const Neighbour& a, const Neighbour& b) { return a.variable < b.variable; });
    // A step writes the ratios of all neighbours at once, each from its own edge: with two edges one would be lost.
    const auto twice = std::adjacent_find(
        first, last, [](const Neighbour& a, const Neighbour& b) { return a.variable == b.variable; });
    if (twice != last) {
      throw InputError(
          fmt::format("found two edges between variables {} and {}, expected one with the sum of their couplings", i,
                      twice->variable));
    }
  }
}

}  // namespace poise
