/// Connected components of a network.
#include "exact/exact_inference.hpp"

#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "exact/elimination_order.hpp"
#include "models/network/tables.hpp"

namespace poise {

namespace {

constexpr Index kNone = Network::kFree;

/// The table of a factor at the levels that its variables of one level have: place of the first entry, and for every
/// free variable of the scope its stride.
struct Reduced {
  std::size_t place = 0;
  std::vector<Index> scope;
  std::vector<std::size_t> strides;

  Reduced(const Network& network, std::size_t factor) : place(network.table_start[factor]) {
    std::size_t stride = 1;
    const std::span<const Index> all = network.scope(factor);
    for (std::size_t k = all.size(); k-- > 0;) {
      const Index i = all[k];
      if (network.levels(i) > 1) {
        scope.insert(scope.begin(), i);
        strides.insert(strides.begin(), stride);
      } else if (network.is_observed(i)) {
        place += stride * network.observed[i];
      }
      stride *= network.cardinalities[i];
    }
  }

  [[nodiscard]] std::vector<double> table(const Network& network) const {
    std::vector<double> out;
    TableWalk walk;
    for (std::size_t k = scope.size(); k-- > 0;) walk.add(strides[k], network.cardinalities[scope[k]]);
    do {
      out.push_back(network.values[place + walk.offset()]);
    } while (walk.next());
    return out;
  }
};

}  // namespace

std::vector<std::vector<Index>> connected_components(const Network& network) {
  const exact::Graph graph = exact::graph_of(network);
  std::vector<std::vector<Index>> components = exact::components_of(graph);
  for (std::vector<Index>& component : components) {
    for (Index& vertex : component) vertex = graph.variables[vertex];
  }
  return components;
}

Network component_network(const Network& network, std::span<const Index> variables) {
  Network component;
  component.name = network.name;
  std::vector<Index> number(network.num_variables(), kNone);
  for (const Index i : variables) {
    if (i >= network.num_variables() || number[i] != kNone) {
      throw InputError(fmt::format("a part of a network: variable {} {}", i,
                                   i < network.num_variables() ? "is named twice" : "does not exist"));
    }
    number[i] = component.num_variables();
    component.cardinalities.push_back(network.cardinalities[i]);
    if (!network.names.empty()) component.names.push_back(network.names[i]);
    if (!network.level_names.empty()) component.level_names.push_back(network.level_names[i]);
    if (!network.observed.empty()) component.observed.push_back(network.observed[i]);
  }
  std::map<std::pair<std::size_t, std::vector<std::size_t>>, std::size_t> tables;  // factors may share one
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    bool inside = false;
    for (const Index i : network.scope(f)) inside = inside || (number[i] != kNone && network.levels(i) > 1);
    if (!inside) continue;
    const Reduced reduced(network, f);
    std::vector<std::size_t> shape = reduced.strides;
    for (const Index i : reduced.scope) {
      if (number[i] == kNone) {
        throw InputError(fmt::format("a part of a network: {} joins it to {}, which is outside", network.factor_name(f),
                                     network.variable_name(i)));
      }
      shape.push_back(network.cardinalities[i]);
      component.scopes.push_back(number[i]);
    }
    component.scope_start.push_back(component.scopes.size());
    const auto [entry, fresh] = tables.try_emplace({reduced.place, std::move(shape)}, component.values.size());
    component.table_start.push_back(entry->second);
    if (!fresh) continue;
    const std::vector<double> table = reduced.table(network);
    component.values.insert(component.values.end(), table.begin(), table.end());
  }
  return component;
}

double log_constant_of(const Network& network) {
  double sum = 0.0;
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    const Reduced reduced(network, f);
    if (reduced.scope.empty()) sum += std::log(network.values[reduced.place]);
  }
  return sum;
}

}  // namespace poise
