/// Networks: putting factors together, clamping variables, names for messages.
#include <poise/network.hpp>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include <fmt/format.h>

#include "models/network/tables.hpp"

namespace poise {

namespace {

/// The level each variable is clamped to, old and new observations together.
std::vector<Index> clamped_levels(const Network& network, const Evidence& evidence) {
  std::vector<Index> levels = network.observed;
  levels.resize(network.num_variables(), Network::kFree);
  for (const auto [variable, level] : evidence) {
    if (variable >= network.num_variables()) {
      throw InputError(
          fmt::format("the evidence names variable {}, but the model has only {} variables, numbered from 0", variable,
                      network.num_variables()));
    }
    if (level >= network.cardinalities[variable]) {
      throw InputError(fmt::format("the evidence has {} at level {}, but it has only {} levels, numbered from 0",
                                   network.variable_name(variable), level, network.cardinalities[variable]));
    }
    if (levels[variable] != Network::kFree && levels[variable] != level) {
      throw InputError(fmt::format("the evidence contradicts itself: it has {} at level {} and at level {}",
                                   network.variable_name(variable), network.level_name(variable, levels[variable]),
                                   network.level_name(variable, level)));
    }
    levels[variable] = level;
  }
  return levels;
}

/// Appends the entries of a table at which the clamped variables have their levels.
void append_slice(const Network& network, std::size_t factor, const std::vector<Index>& levels,
                  std::vector<double>& out) {
  const std::span<const Index> scope = network.scope(factor);
  const std::span<const double> table = network.table(factor);
  TableWalk free;
  std::size_t first = 0;
  std::size_t stride = 1;
  for (std::size_t k = scope.size(); k-- > 0;) {
    const Index i = scope[k];
    if (levels[i] == Network::kFree) {
      free.add(stride, network.cardinalities[i]);
    } else {
      first += stride * levels[i];
    }
    stride *= network.cardinalities[i];
  }
  do {
    out.push_back(table[first + free.offset()]);
  } while (free.next());
}

}  // namespace

void Network::add_factor(std::span<const Index> scope, std::span<const double> table) {
  table_start.push_back(values.size());
  scopes.insert(scopes.end(), scope.begin(), scope.end());
  scope_start.push_back(scopes.size());
  values.insert(values.end(), table.begin(), table.end());
}

bool Network::has_zeros() const { return std::find(values.begin(), values.end(), 0.0) != values.end(); }

std::string Network::variable_name(Index i) const { return i < names.size() ? names[i] : fmt::format("x[{}]", i); }

std::string Network::level_name(Index i, Index level) const {
  return i < level_names.size() && level < level_names[i].size() ? level_names[i][level] : fmt::format("{}", level);
}

std::string Network::factor_name(std::size_t factor) const {
  constexpr std::size_t most = 6;
  std::string text = fmt::format("factor {} (", factor);
  const std::span<const Index> variables = scope(factor);
  for (std::size_t k = 0; k < std::min(most, variables.size()); ++k) {
    text += (k > 0 ? ", " : "") + variable_name(variables[k]);
  }
  if (variables.empty()) text += "a constant";
  return text + (variables.size() > most ? ", ...)" : ")");
}

void check_levels(const Network& network) {
  constexpr Index most = 128;  // draws are stored as signed bytes
  for (Index i = 0; i < network.num_variables(); ++i) {
    if (network.cardinalities[i] <= most) continue;
    throw InputError(fmt::format("{} has {} levels, but sampling takes at most {}", network.variable_name(i),
                                 network.cardinalities[i], most));
  }
}

Network condition(Network network, const Evidence& evidence) {
  const std::vector<Index> levels = clamped_levels(network, evidence);
  const auto zero_everywhere = [](std::span<const double> table) {
    return std::all_of(table.begin(), table.end(), [](double value) { return value == 0.0; });
  };
  std::vector<Index> scopes;
  std::vector<std::size_t> scope_start = {0};
  std::vector<double> values;
  std::vector<std::size_t> table_start;
  std::unordered_map<std::size_t, std::size_t> moved;  // tables that stay whole, by their old place: some are shared
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    const std::span<const Index> scope = network.scope(f);
    const bool whole = std::all_of(scope.begin(), scope.end(), [&](Index i) { return levels[i] == Network::kFree; });
    std::size_t start = values.size();
    if (whole) {
      const auto [place, first] = moved.try_emplace(network.table_start[f], start);
      start = place->second;
      if (first) {
        const std::span<const double> table = network.table(f);
        values.insert(values.end(), table.begin(), table.end());
      }
    } else {
      append_slice(network, f, levels, values);
    }
    const std::size_t size = whole ? network.table_size(f) : values.size() - start;
    if (zero_everywhere({values.data() + start, size})) {
      throw InputError(fmt::format("no state has positive probability{}: {} is zero everywhere{}",
                                   whole ? "" : " given the evidence", network.factor_name(f),
                                   whole ? "" : " where the evidence holds"));
    }
    table_start.push_back(start);
    for (const Index i : scope) {
      if (levels[i] == Network::kFree) scopes.push_back(i);
    }
    scope_start.push_back(scopes.size());
  }
  network.scopes = std::move(scopes);
  network.scope_start = std::move(scope_start);
  network.values = std::move(values);
  network.table_start = std::move(table_start);
  network.observed = levels;
  return network;
}

Marginals::Marginals(std::span<const Index> cardinalities) : start(cardinalities.size() + 1, 0) {
  for (std::size_t i = 0; i < cardinalities.size(); ++i) start[i + 1] = start[i] + cardinalities[i];
  values.assign(start.back(), 0.0);
}

double mean_absolute_error(const Marginals& a, const Marginals& b) {
  double sum = 0.0;
  for (std::size_t k = 0; k < a.values.size(); ++k) sum += std::abs(a.values[k] - b.values[k]);
  return a.values.empty() ? 0.0 : sum / static_cast<double>(a.values.size());
}

}  // namespace poise
