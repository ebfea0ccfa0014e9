/// Models of what is there already: numbers of an Ising model, networks, RBMs, user code.
#include <poise/model.hpp>

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <poise/extend/base/rng.hpp>
#include <poise/extend/models/describe_model.hpp>
#include "base/fiber_scheduler.hpp"
#include "models/ising/graph_ising.hpp"
#include "models/ising/ising_model.hpp"
#include "models/ising/lattice_ising.hpp"
#include "models/network/markov_network.hpp"
#include "models/network/support.hpp"
#include "models/rbm/rbm.hpp"
#include "models/user/batch_target.hpp"

namespace poise {

namespace {

VariableLayout spins(const IsingModel& ising) {
  VariableLayout layout;
  layout.variables = ising.variables;
  layout.rows = ising.rows;
  layout.columns = ising.columns;
  layout.sides = ising.sides;
  if (!ising.zero_one) layout.labels = {-1, 1};
  return layout;
}

VariableLayout layout_of(const Network& network) {
  VariableLayout layout;
  layout.rows = network.rows;
  layout.columns = network.columns;
  layout.sides = network.sides;
  layout.names = network.names;
  layout.level_names = network.level_names;
  if (std::any_of(network.cardinalities.begin(), network.cardinalities.end(), [](Index k) { return k != 2; })) {
    layout.cardinalities = network.cardinalities;
  }
  if (!network.observed.empty()) {
    layout.observed.assign(network.num_variables(), -1);
    for (Index i = 0; i < network.num_variables(); ++i) {
      if (network.is_observed(i)) layout.observed[i] = static_cast<std::int16_t>(network.observed[i]);
    }
  }
  return layout;
}

/// The model of a built-in target.
template <Target T>
Model built_in(std::string name, const T& target, VariableLayout layout, Description description) {
  Model model = describe_model(std::move(name), target, std::move(layout));
  model.linear = model.sparse;  // log p of Ising models and networks is linear in the indicator of every level
  model.description = std::move(description);
  return model;
}

}  // namespace

std::shared_ptr<FiberScheduler> Model::fibers() const {
  const auto* callback = std::get_if<CallbackDescription>(&description);
  return callback != nullptr ? callback->fibers : nullptr;
}

namespace {

/// Where all sites have the same field. The energy counts edges where there is none and all couplings are equal;
/// otherwise it is -log p.
std::optional<SpinScale> spin_scale(const IsingModel& ising) {
  const bool couples = ising.is_lattice() ? ising.coupling != 0.0 : !ising.edges.empty();
  if (!couples || ising.is_posterior || ising.zero_one || !ising.objective.empty()) return {};
  const double field = ising.field.empty() ? 0.0 : ising.field.front();
  if (std::any_of(ising.field.begin(), ising.field.end(), [&](double other) { return other != field; })) return {};
  const double first = ising.is_lattice() ? ising.coupling : ising.edges.front().coupling;
  const bool is_uniform = ising.is_lattice() || std::all_of(ising.edges.begin(), ising.edges.end(),
                                                            [&](const Edge& edge) { return edge.coupling == first; });
  const auto sites = static_cast<double>(ising.variables);
  return SpinScale{sites, field == 0.0 && is_uniform && first != 0.0 ? std::abs(first) : 1.0, "magnetization", sites};
}

}  // namespace

Model ising_model(IsingModel ising) {
  const std::optional<SpinScale> scale = spin_scale(ising);
  const bool small_torus = ising.torus && (ising.rows < 3 || ising.columns < 3);
  Model model;
  if (ising.is_lattice() && !small_torus) {
    auto target = std::make_shared<const LatticeIsing>(
        ising.rows, ising.columns, ising.torus ? Boundary::torus : Boundary::open, ising.coupling, ising.field);
    std::vector<double>().swap(ising.field);  // the target has its own
    model = built_in(ising.name, *target, spins(ising), target);
  } else {
    IsingObjective objective{ising.objective, ising.objective_scale, ising.objective_constant};
    list_lattice_edges(ising);
    auto target = std::make_shared<const GraphIsing>(ising.field, ising.edges, std::move(objective));
    model = built_in(ising.name, *target, spins(ising), target);
    model.objective = ising.objective;
    model.maximise = ising.objective_scale > 0.0;
    model.log_constant = ising.log_constant();
  }
  model.observed = std::move(ising.observed);
  model.spins = scale;
  return model;
}

Network ising_network(IsingModel ising) {
  static constexpr double strongest = 300.0;
  Network network;
  network.name = ising.name;
  network.cardinalities.assign(ising.variables, 2);
  list_lattice_edges(ising);
  const auto fields = std::count_if(ising.field.begin(), ising.field.end(), [](double value) { return value != 0.0; });
  const double factors = static_cast<double>(fields) + static_cast<double>(ising.edges.size());
  // Every table has its share of the constant, which is no larger than the fields and couplings are on average.
  const double share = factors > 0.0 ? ising.log_constant() / factors : 0.0;
  const auto weights = [&](double value) {
    if (!(std::abs(value) <= strongest)) {
      throw TooStrong(fmt::format("a field or coupling of {} is too strong for exact inference, which takes up to {}",
                                  value, strongest));
    }
    return std::array{std::exp(share - value), std::exp(share + value)};
  };
  for (Index i = 0; i < ising.field.size(); ++i) {
    if (ising.field[i] != 0.0) network.add_factor(std::array{i}, weights(ising.field[i]));
  }
  for (const Edge& edge : ising.edges) {
    const double alike = weights(edge.coupling)[1];
    const double unlike = std::exp(2.0 * share) / alike;
    network.add_factor(std::array{edge.i, edge.j}, std::array{alike, unlike, unlike, alike});
  }
  return network;
}

Model network_model(const std::shared_ptr<const Network>& network) {
  auto target = std::make_shared<const MarkovNetwork>(*network);
  Model model = built_in(network->name, *target, layout_of(*network), NetworkDescription{network, target});
  if (!network->has_zeros()) return model;
  const auto domains = std::make_shared<const Domains>(propagate_zeros(*network));
  model.possible_levels = domains->count;
  model.into_support = [network, domains](std::vector<Value> x, Rng rng) {
    return repair(*network, *domains, std::move(x), rng);
  };
  return model;
}

Model rbm_model(std::string name, const std::shared_ptr<const Rbm>& rbm) {
  const RbmWeights& weights = rbm->weights();
  VariableLayout layout;
  layout.rows = weights.rows;
  layout.columns = weights.columns;
  if (layout.rows == 0) {  // a square picture, where it could be one
    const auto side = static_cast<Index>(std::lround(std::sqrt(weights.visible)));
    if (side * side == weights.visible) layout.rows = layout.columns = side;
  }
  return built_in(std::move(name), *rbm, std::move(layout), rbm);
}

Model callback_model(std::string name, BatchShape shape, std::shared_ptr<BatchFunction> function,
                     VariableLayout layout) {
  auto target = std::make_shared<BatchTarget>(std::move(shape), std::move(function));
  auto fibers = std::make_shared<FiberScheduler>([requests = target.get()] { requests->serve(); },
                                                 [requests = target.get()] { requests->forget(); });
  // The target outlives what waits for it: the description holds both.
  target->set_wait([fibers = fibers.get()] { fibers->wait(); });
  return built_in(std::move(name), *target, std::move(layout), CallbackDescription{target, fibers});
}

}  // namespace poise
