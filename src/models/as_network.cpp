/// Tables of spins, of pairs of spins, and of all states of a small model.
#include "models/as_network.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "models/ising/graph_ising.hpp"
#include "models/ising/lattice_ising.hpp"
#include "models/ising/spin_graph.hpp"
#include "models/rbm/rbm.hpp"
#include "models/selection/selection_target.hpp"
#include "models/user/batch_target.hpp"

namespace poise {

namespace {

/// Products of a few tables of e^300 stay within doubles.
constexpr double kStrongest = 300.0;

double checked(double value) {
  if (std::abs(value) <= kStrongest) return value;
  throw InputError(fmt::format("a field or coupling of {} is too strong for exact inference, which takes up to {}",
                               value, kStrongest));
}

template <SpinGraph T>
void add_tables(const T& target, Network& network) {
  for (Index i = 0; i < target.num_variables(); ++i) {
    const double field = checked(target.field(i));
    if (field != 0.0) network.add_factor(std::array{i}, std::array{std::exp(-field), std::exp(field)});
  }
  for_each_edge(target, [&](Index i, Index j, double coupling, std::int64_t) {
    const double alike = std::exp(checked(coupling));
    network.add_factor(std::array{i, j}, std::array{alike, 1.0 / alike, 1.0 / alike, alike});
  });
}

template <class T>
std::vector<double> log_probs(const T& target, std::span<const Value> rows) {
  const std::size_t n = target.num_variables();
  std::vector<double> out;
  for (std::size_t first = 0; first < rows.size(); first += n) {
    out.push_back(target.log_prob(target.make_state(rows.subspan(first, n))));
  }
  return out;
}

std::vector<double> log_probs(const BatchTarget& target, std::span<const Value> rows) { return target.log_probs(rows); }

/// Adds one table of all states; false where there are too many, or none has any probability.
bool add_table(const Model& model, Network& network) {
  std::optional<std::vector<double>> table = tabled_log_probs(model);
  if (!table) return false;
  const double most = *std::max_element(table->begin(), table->end());
  if (!std::isfinite(most)) return false;
  for (double& entry : *table) entry = std::exp(entry - most);
  std::vector<Index> scope(model.layout.variables);
  std::iota(scope.begin(), scope.end(), Index{0});
  network.add_factor(scope, *table);
  return true;
}

}  // namespace

double number_of_states(const Model& model) {
  double states = 1.0;
  for (Index i = 0; i < model.layout.variables; ++i) states *= model.layout.levels(i);
  return states;
}

std::vector<Value> all_states(const VariableLayout& layout, std::size_t count) {
  std::vector<Value> rows(count * layout.variables, 0);
  for (std::size_t r = 1; r < count; ++r) {
    Value* const row = &rows[r * layout.variables];
    std::copy_n(row - layout.variables, layout.variables, row);
    for (Index i = layout.variables; i-- > 0 && ++row[i] == layout.levels(i);) row[i] = 0;
  }
  return rows;
}

std::optional<std::vector<double>> tabled_log_probs(const Model& model) {
  const double states = number_of_states(model);
  if (states > kMostTabledStates) return std::nullopt;
  const auto rows = [&] { return all_states(model.layout, static_cast<std::size_t>(states)); };
  if (const auto* rbm = std::get_if<std::shared_ptr<const Rbm>>(&model.description)) return log_probs(**rbm, rows());
  if (const auto* selection = std::get_if<std::shared_ptr<const SelectionTarget>>(&model.description)) {
    return log_probs(**selection, rows());
  }
  if (const auto* callback = std::get_if<CallbackDescription>(&model.description)) {
    return log_probs(*callback->target, rows());
  }
  return std::nullopt;
}

std::shared_ptr<const Network> as_network(const Model& model) {
  if (const auto* own = std::get_if<NetworkDescription>(&model.description)) return own->network;
  auto network = std::make_shared<Network>();
  network->name = model.name;
  for (Index i = 0; i < model.layout.variables; ++i) network->cardinalities.push_back(model.layout.levels(i));
  bool made = true;
  if (const auto* lattice = std::get_if<std::shared_ptr<const LatticeIsing>>(&model.description)) {
    add_tables(**lattice, *network);
  } else if (const auto* graph = std::get_if<std::shared_ptr<const GraphIsing>>(&model.description)) {
    add_tables(**graph, *network);
  } else {
    made = add_table(model, *network);
  }
  return made ? network : nullptr;
}

}  // namespace poise
