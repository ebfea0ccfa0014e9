/// From couplings to bonds.
#include "engines/cpu/chains/bonds.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include <fmt/format.h>

namespace poise {

namespace {

template <class Model>
void require_clusters(const Model& model) {
  const std::string obstacle = lacks_clusters(model);
  if (obstacle.empty()) return;
  throw InputError(
      fmt::format("the samplers 'sw' and 'wolff' take Ising and Potts models without field whose couplings are not "
                  "negative; here {}",
                  obstacle));
}

/// The two values of a factor of two variables with the same number of levels, if it has no others.
struct PottsTable {
  PottsTable(const Network& network, std::size_t factor) {
    const Index levels = network.cardinalities[network.scope(factor)[0]];
    const std::span<const double> table = network.table(factor);
    alike = table[0];
    different = table[1];
    for (std::size_t k = 0; k < table.size(); ++k) {
      fits = fits && table[k] == (k % (levels + std::size_t{1}) == 0 ? alike : different);
    }
  }
  double alike;
  double different;
  bool fits = true;
};

std::string has_field(const SpinGraph auto& target, const char* noun) {
  for (Index i = 0; i < target.num_variables(); ++i) {
    if (target.field(i) != 0.0) return fmt::format("{} {} has a field of {:g}", noun, i, target.field(i));
  }
  return "";
}

}  // namespace

std::string lacks_clusters(const LatticeIsing& target) {
  if (target.coupling() < 0.0) return fmt::format("the coupling is {:g}", target.coupling());
  return has_field(target, "site");
}

std::string lacks_clusters(const GraphIsing& target) {
  std::string obstacle = has_field(target, "variable");
  for_each_edge(target, [&](Index i, Index j, double coupling, std::int64_t) {
    if (coupling < 0.0 && obstacle.empty()) obstacle = fmt::format("the coupling of {} and {} is {:g}", i, j, coupling);
  });
  return obstacle;
}

std::string lacks_clusters(const Network& network) {
  const Index n = network.num_variables();
  for (Index i = 0; i < n; ++i) {
    if (network.is_observed(i)) return fmt::format("{} is observed", network.variable_name(i));
    if (network.cardinalities[i] != network.cardinalities[0]) return "the numbers of levels differ";
  }
  if (n == 0 || network.cardinalities[0] < 2) return "no variable has more than one level";
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    const std::span<const double> table = network.table(f);
    const std::size_t size = network.scope(f).size();
    if (size > 2) return fmt::format("{} has more than two variables", network.factor_name(f));
    if (size == 2) {
      const PottsTable values(network, f);
      if (!values.fits) return fmt::format("{} is no Potts coupling", network.factor_name(f));
      if (!(values.alike >= values.different)) {
        return fmt::format("{} makes its variables differ", network.factor_name(f));
      }
    } else if (std::any_of(table.begin(), table.end(), [&](double value) { return value != table[0]; })) {
      return fmt::format("{} prefers some levels", network.factor_name(f));
    }
  }
  return "";
}

template <SpinGraph T>
std::shared_ptr<const BondGraph> bond_graph(const T& target) {
  require_clusters(target);
  std::vector<BondGraph::Pair> pairs;
  for_each_edge(target, [&](Index i, Index j, double coupling, std::int64_t) {
    pairs.push_back({i, j, 2.0 * coupling});
  });
  return std::make_shared<const BondGraph>(target.num_variables(), 2, pairs);
}

template std::shared_ptr<const BondGraph> bond_graph(const LatticeIsing&);
template std::shared_ptr<const BondGraph> bond_graph(const GraphIsing&);

std::shared_ptr<const BondGraph> bond_graph(const Network& network) {
  require_clusters(network);
  std::vector<BondGraph::Pair> pairs;
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    if (network.scope(f).size() != 2) continue;
    const PottsTable values(network, f);
    pairs.push_back({network.scope(f)[0], network.scope(f)[1], std::log(values.alike) - std::log(values.different)});
  }
  return std::make_shared<const BondGraph>(network.num_variables(), network.cardinalities[0], pairs);
}

}  // namespace poise
