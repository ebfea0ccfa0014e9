/// An Ising model on a graph as single flips on a device want it: what each flip affects, and a balancing function as
/// plain numbers. Made on the host.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <fmt/format.h>

#include <poise/extend/learning/balancing_function.hpp>
#include <poise/types.hpp>
#include "models/ising/graph_ising.hpp"

#include "engines/cuda/flips/flip_weigher.hpp"

namespace poise::cuda {

struct FlipGraph {
  explicit FlipGraph(const GraphIsing& target) : tree(make_flip_tree(target.num_variables())) {
    const Index n = target.num_variables();
    std::size_t ends = n;
    for (Index i = 0; i < n; ++i) ends += target.neighbours(i).size();
    require_few(ends);
    first.reserve(n + std::size_t{1});
    affected.reserve(ends);
    couplings.reserve(ends);
    first_node.reserve(std::size_t{n} * (tree.levels - 1) + 1);
    for (Index i = 0; i < n; ++i) {
      first.push_back(static_cast<std::uint32_t>(affected.size()));
      add_affected(target, i);
      add_nodes();
    }
    first.push_back(static_cast<std::uint32_t>(affected.size()));
    first_node.push_back(static_cast<std::uint32_t>(touched.size()));
  }

  FlipTree tree;
  std::vector<std::uint32_t> first;       ///< of what each variable's flip affects; one more for the end
  std::vector<std::uint32_t> affected;    ///< variables in ascending order, the flipped one among them
  std::vector<std::int64_t> couplings;    ///< with these; 0 for the flipped one
  std::vector<std::uint32_t> first_node;  ///< [variable][level - 1]: of the nodes that change, and one for the end
  std::vector<std::uint32_t> touched;     ///< nodes, each by its number in its level

 private:
  static void require_few(std::size_t count) {
    constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max() / kMostTreeLevels;
    if (count <= kMost) return;
    throw InputError(fmt::format(
        "the model has {} variables and ends of couplings, and flips on a GPU have room for {}: leave --device out",
        count, kMost));
  }

  void add_affected(const GraphIsing& target, Index i) {
    const auto add = [&](Index variable, std::int64_t coupling) {
      affected.push_back(variable);
      couplings.push_back(coupling);
    };
    bool is_in = false;
    for (const GraphIsing::Neighbour& neighbour : target.neighbours(i)) {
      if (!is_in && neighbour.variable > i) {
        add(i, 0);
        is_in = true;
      }
      add(neighbour.variable, neighbour.units);
    }
    if (!is_in) add(i, 0);
  }

  /// What the last variable affects is in ascending order, and so are the nodes above it.
  void add_nodes() {
    std::size_t below = first.back();  // of `affected`, then of `touched`
    for (std::uint32_t level = 1; level < tree.levels; ++level) {
      const std::size_t begin = touched.size();
      first_node.push_back(static_cast<std::uint32_t>(begin));
      const std::size_t end = level == 1 ? affected.size() : begin;
      for (; below < end; ++below) {
        const std::uint32_t node = (level == 1 ? affected[below] : touched[below]) / kChildren;
        if (touched.size() == begin || touched.back() != node) touched.push_back(node);
      }
      below = begin;
    }
  }
};

/// A balancing function with the numbers that its weights need besides `cells`, which are `flip_cells` where they are.
inline FlipWeigher make_flip_weigher(const BalancingFunction& function, double unit) {
  constexpr double kSpread = 680.0;  // of log g
  FlipWeigher weigher{};
  weigher.function = static_cast<FlipFunction>(function.kind());
  weigher.twice_unit = 2.0 * unit;
  double least = function.log_g(0.0), most = least;
  // How far log g goes up to a log ratio, either way; on the grid and, as it continues in a straight line, behind it.
  const auto widens_to = [&](double u) {
    const double low = std::min({least, function.log_g(u), function.log_g(-u)});
    const double high = std::max({most, function.log_g(u), function.log_g(-u)});
    if (!(high - low <= kSpread)) return false;
    least = low;
    most = high;
    weigher.limit = u;
    return true;
  };
  bool goes_on = true;
  for (int k = 1; k < BalanceTable::kPoints && goes_on; ++k) goes_on = widens_to(BalanceTable::grid(k));
  // log g(e^u) - log g(e^-u) = u, so a spread is never less than u.
  double beyond = kSpread;
  for (int k = 0; k < 40 && goes_on; ++k) {
    const double middle = 0.5 * (weigher.limit + beyond);
    if (!widens_to(middle)) beyond = middle;
  }
  weigher.offset = 0.5 * (least + most);
  if (const BalanceTable* table = function.table()) {
    const std::span<const double> phi = table->phi();
    weigher.tail_slope = (phi[BalanceTable::kCells] - phi[BalanceTable::kCells - 1]) / BalanceTable::kStep;
  }
  return weigher;
}

static_assert(kFlipCells == BalanceTable::kCells && kFlipCellsInOne * BalanceTable::kStep == 1.0);

/// The cells of a table, as BalanceTable has them.
inline std::vector<FlipCell> flip_cells(const BalanceTable& table) {
  std::vector<FlipCell> cells(BalanceTable::kCells);
  for (int k = 0; k < BalanceTable::kCells; ++k) {
    const double value = std::exp(table.phi()[k]);
    const double slope = (std::exp(table.phi()[k + 1]) - value) / BalanceTable::kStep;
    cells[static_cast<std::size_t>(k)] = {value - slope * BalanceTable::grid(k), slope};
  }
  return cells;
}

}  // namespace poise::cuda
