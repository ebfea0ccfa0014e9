/// Ising problems from models: Ising models as they are, hard-core models with conflicts at a price.
#include "inference/optimize/spin_goal.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include <poise/network.hpp>
#include "inference/fixed_levels.hpp"
#include "models/ising/graph_ising.hpp"
#include "models/ising/lattice_ising.hpp"
#include "models/network/markov_network.hpp"

namespace poise {

namespace {

/// What sums of doubles leave of a whole number.
double without_rounding(double value) {
  constexpr double rounding = 1e-12;
  const double whole = std::round(value);
  return std::abs(value - whole) <= rounding * std::max(1.0, std::abs(value)) ? whole : value;
}

std::vector<Value> levels_of_spins(std::span<const Spin> spins) {
  std::vector<Value> state(spins.size());
  for (std::size_t i = 0; i < spins.size(); ++i) state[i] = spins[i] > 0 ? 1 : 0;
  return state;
}

/// Sums of doubles, which are exact where fields and couplings are whole numbers, halves or quarters.
double objective_of_graph(const GraphIsing& graph, std::span<const Value> levels) {
  const auto spin = [&](Index i) { return levels[i] != 0 ? 1.0 : -1.0; };
  double sum = 0.0;
  for (Index i = 0; i < graph.num_variables(); ++i) {
    sum += graph.field(i) * spin(i);
    for (const GraphIsing::Neighbour& neighbour : graph.neighbours(i)) {
      if (neighbour.variable > i) sum += neighbour.coupling * spin(i) * spin(neighbour.variable);
    }
  }
  return graph.objective().scale * sum + graph.objective().constant;
}

template <class T>
SpinGoal goal_of(const Model& model, const std::shared_ptr<const T>& target,
                 const std::vector<std::optional<Value>>& fixed) {
  SpinGoal goal;
  goal.problem = spin_problem(*target);
  for (const std::optional<Value> level : fixed) goal.fixed.push_back(!level ? 0 : *level != 0 ? 1 : -1);
  goal.state_of = levels_of_spins;
  goal.objective = model.objective.empty() ? "log_prob" : model.objective;
  goal.maximise = model.objective.empty() || model.maximise;
  goal.objective_of = [target, is_log_prob = model.objective.empty(),
                       constant = model.log_constant](std::span<const Value> levels) {
    if constexpr (std::is_same_v<T, GraphIsing>) {
      if (!is_log_prob) return without_rounding(objective_of_graph(*target, levels));
    }
    return target->log_prob(target->make_state(levels)) + constant;
  };
  return goal;
}

/// A network of hard constraints: no two neighbours at level 1, and a weight for every variable at level 1.
struct HardCore {
  std::vector<double> gain;  // log weight of level 1 over that of level 0
  std::vector<std::pair<Index, Index>> edges;
  std::vector<std::vector<Index>> neighbours;
  std::vector<Spin> fixed;  // by evidence, and what follows from it
};

/// A neighbour of what is fixed at level 1 is fixed at level 0.
void fix_neighbours(const Network& network, HardCore& core) {
  for (Index i = 0; i < core.fixed.size(); ++i) {
    if (core.fixed[i] <= 0) continue;
    for (const Index j : core.neighbours[i]) {
      if (core.fixed[j] > 0) {
        throw InputError(
            fmt::format("no state has positive probability: neighbours {} and {} are both fixed at level 1",
                        network.variable_name(std::min(i, j)), network.variable_name(std::max(i, j))));
      }
      core.fixed[j] = -1;
    }
  }
}

std::optional<HardCore> hard_core(const Network& network) {
  HardCore out{std::vector<double>(network.num_variables(), 0.0), {}, {}, {}};
  for (Index i = 0; i < network.num_variables(); ++i) {
    if (network.cardinalities[i] != 2) return std::nullopt;
    out.fixed.push_back(!network.is_observed(i) ? 0 : network.observed[i] != 0 ? 1 : -1);
  }
  for (std::size_t factor = 0; factor < network.num_factors(); ++factor) {
    const std::span<const Index> scope = network.scope(factor);
    const std::span<const double> table = network.table(factor);
    if (scope.size() == 1 && table[0] > 0.0 && table[1] > 0.0) {
      out.gain[scope[0]] += std::log(table[1] / table[0]);
    } else if (scope.size() == 2 && table[3] == 0.0 && table[0] > 0.0 && table[0] == table[1] && table[0] == table[2]) {
      out.edges.emplace_back(std::minmax(scope[0], scope[1]));
    } else if (!scope.empty()) {
      return std::nullopt;
    }
  }
  std::sort(out.edges.begin(), out.edges.end());
  out.edges.erase(std::unique(out.edges.begin(), out.edges.end()), out.edges.end());
  out.neighbours.resize(out.gain.size());
  for (const auto& [i, j] : out.edges) {
    out.neighbours[i].push_back(j);
    out.neighbours[j].push_back(i);
  }
  fix_neighbours(network, out);
  return out;
}

/// Drops the lighter end of every conflict, then adds what fits.
std::vector<Value> repaired(const HardCore& core, std::span<const Spin> spins) {
  std::vector<Value> state = levels_of_spins(spins);
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (core.fixed[i] != 0) {
      state[i] = core.fixed[i] > 0 ? 1 : 0;
    } else if (core.gain[i] < 0.0) {
      state[i] = 0;
    }
  }
  for (const auto& [i, j] : core.edges) {
    if (state[i] != 0 && state[j] != 0) state[core.gain[i] < core.gain[j] ? i : j] = 0;
  }
  for (std::size_t i = 0; i < state.size(); ++i) {
    const auto is_on = [&](Index j) { return state[j] != 0; };
    if (core.fixed[i] != 0 || core.gain[i] <= 0.0) continue;
    if (std::none_of(core.neighbours[i].begin(), core.neighbours[i].end(), is_on)) state[i] = 1;
  }
  return state;
}

/// sum gain_i x_i - sum price_ij x_i x_j with x = (1 + s) / 2. With the smaller gain of both ends as the price,
/// dropping the lighter end of a conflict loses nothing, so the best state without conflicts is among the best ones.
/// A search then moves along conflicts freely. In a list they would take the place of states without, so there the
/// price is twice as high.
SpinGoal goal_of(const Model& model, HardCore core, Wanted wanted) {
  const bool counts = model.objective == "size";
  if (counts) std::fill(core.gain.begin(), core.gain.end(), 1.0);  // whatever beta is
  std::vector<double> field(core.gain.size());
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < field.size(); ++i) field[i] = core.gain[i] / 2;
  for (const auto& [i, j] : core.edges) {
    const double factor = wanted == Wanted::list ? 2.0 : 1.0;
    const double price = factor * std::max(0.0, std::min(core.gain[i], core.gain[j]));
    if (price == 0.0) continue;
    edges.push_back({i, j, -price / 4});
    field[i] -= price / 4;
    field[j] -= price / 4;
  }
  SpinGoal goal;
  goal.problem = spin_problem(field, edges);
  goal.fixed = core.fixed;
  goal.repairs = true;
  goal.objective = counts ? "size" : "log_prob";
  const auto& target = std::get<NetworkDescription>(model.description).target;
  goal.objective_of = [counts, target, constant = model.log_constant](std::span<const Value> levels) {
    if (counts) return static_cast<double>(std::count(levels.begin(), levels.end(), Value{1}));
    return target->log_prob(target->make_state(levels)) + constant;
  };
  goal.state_of = [core = std::move(core)](std::span<const Spin> spins) { return repaired(core, spins); };
  return goal;
}

}  // namespace

std::optional<SpinGoal> spin_goal(const Model& model, Wanted wanted, const std::vector<std::optional<Value>>& fixed) {
  if (const auto* lattice = std::get_if<std::shared_ptr<const LatticeIsing>>(&model.description)) {
    return goal_of(model, *lattice, fixed);
  }
  if (const auto* graph = std::get_if<std::shared_ptr<const GraphIsing>>(&model.description)) {
    return goal_of(model, *graph, fixed);
  }
  const auto* network = std::get_if<NetworkDescription>(&model.description);
  // Only maximal sets are listed, which is a list of sets, but not of the most probable states.
  if (network == nullptr || (wanted == Wanted::list && model.objective != "size")) return std::nullopt;
  std::optional<HardCore> core = hard_core(with_fixed_levels(*network->network, fixed));
  if (!core) return std::nullopt;
  return goal_of(model, std::move(*core), wanted);
}

}  // namespace poise
