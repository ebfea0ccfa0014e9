/// From couplings to bonds.
#include <poise/run/bonds.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace poise {

namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw InputError(
      fmt::format("the sampler 'sw' takes Ising and Potts models without field whose couplings are not negative; "
                  "here {}",
                  what));
}

/// `for_each_pair(use)` calls use(i, j, weight) for every pair once.
template <class ForEachPair>
std::shared_ptr<const BondGraph> make_graph(Index variables, Index levels, ForEachPair&& for_each_pair) {
  auto graph = std::make_shared<BondGraph>();
  graph->levels = levels;
  graph->start.assign(variables + std::size_t{1}, 0);
  for_each_pair([&](Index i, Index j, double) {
    ++graph->start[i + 1];
    ++graph->start[j + 1];
  });
  for (Index i = 0; i < variables; ++i) graph->start[i + 1] += graph->start[i];
  graph->bonds.resize(graph->start.back());
  std::vector<std::size_t> next(graph->start.begin(), graph->start.end() - 1);
  for_each_pair([&](Index i, Index j, double weight) {
    const double probability = -std::expm1(-weight);
    graph->bonds[next[i]++] = {j, probability};
    graph->bonds[next[j]++] = {i, probability};
  });
  return graph;
}

/// log f(alike) - log f(different) of a factor of two variables with the same number of levels.
double weight_of(const Network& network, std::size_t factor) {
  const Index levels = network.cardinalities[network.scope(factor)[0]];
  const std::span<const double> table = network.table(factor);
  const double alike = table[0];
  const double different = levels > 1 ? table[1] : table[0];
  for (std::size_t k = 0; k < table.size(); ++k) {
    if (table[k] == (k % (levels + std::size_t{1}) == 0 ? alike : different)) continue;
    refuse(fmt::format("{} is no Potts coupling", network.factor_name(factor)));
  }
  if (!(alike >= different)) refuse(fmt::format("{} makes its variables differ", network.factor_name(factor)));
  return std::log(alike) - std::log(different);
}

}  // namespace

std::shared_ptr<const BondGraph> bond_graph(const LatticeIsing& target) {
  const Index n = target.num_variables();
  for (Index i = 0; i < n; ++i) {
    if (target.field(i) != 0.0) refuse(fmt::format("site {} has a field of {:g}", i, target.field(i)));
  }
  if (target.coupling() < 0.0) refuse(fmt::format("the coupling is {:g}", target.coupling()));
  return make_graph(n, 2, [&](auto&& use) {
    for (Index i = 0; i < n; ++i) {
      for (const Index j : target.neighbours(i)) {
        if (j > i) use(i, j, 2.0 * target.coupling());
      }
    }
  });
}

std::shared_ptr<const BondGraph> bond_graph(const GraphIsing& target) {
  const Index n = target.num_variables();
  for (Index i = 0; i < n; ++i) {
    if (target.field(i) != 0.0) refuse(fmt::format("variable {} has a field of {:g}", i, target.field(i)));
    for (const GraphIsing::Neighbour& neighbour : target.neighbours(i)) {
      if (neighbour.coupling >= 0.0) continue;
      refuse(fmt::format("the coupling of {} and {} is {:g}", i, neighbour.variable, neighbour.coupling));
    }
  }
  return make_graph(n, 2, [&](auto&& use) {
    for (Index i = 0; i < n; ++i) {
      for (const GraphIsing::Neighbour& neighbour : target.neighbours(i)) {
        if (neighbour.variable > i) use(i, neighbour.variable, 2.0 * neighbour.coupling);
      }
    }
  });
}

std::shared_ptr<const BondGraph> bond_graph(const Network& network) {
  const Index n = network.num_variables();
  const Index levels = n > 0 ? network.cardinalities[0] : 1;
  for (Index i = 0; i < n; ++i) {
    if (network.is_observed(i)) refuse(fmt::format("{} is observed", network.variable_name(i)));
    if (network.cardinalities[i] != levels) refuse("the numbers of levels differ");
  }
  std::vector<std::size_t> pairs;
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    const std::size_t size = network.scope(f).size();
    const std::span<const double> table = network.table(f);
    if (size > 2) refuse(fmt::format("{} has more than two variables", network.factor_name(f)));
    if (size == 2) {
      pairs.push_back(f);
    } else if (std::any_of(table.begin(), table.end(), [&](double value) { return value != table[0]; })) {
      refuse(fmt::format("{} prefers some levels", network.factor_name(f)));
    }
  }
  return make_graph(n, levels, [&](auto&& use) {
    for (const std::size_t f : pairs) use(network.scope(f)[0], network.scope(f)[1], weight_of(network, f));
  });
}

}  // namespace poise
