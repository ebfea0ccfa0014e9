/// Max-cut and quadratic functions of binary variables as Ising models.
#include <cmath>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/file.hpp"
#include "models/ising/ising_model.hpp"
#include "models/ising/ising_limits.hpp"

namespace poise {
namespace {

struct ObjectiveSettings {
  std::string file;
  double beta = 1;
};

ObjectiveSettings read_settings(SpecReader& reader, std::string_view model) {
  ObjectiveSettings settings;
  settings.file = reader.text("file", "");
  if (settings.file.empty()) {
    reader.problem(fmt::format("no key 'file' in model '{}', expected {}:file=FILE", model, model));
  }
  settings.beta = reader.real("beta", 1, 1 / kLargest, kLargest);
  return settings;
}

/// Numbers of a file times beta must stay in the range of all fields and couplings.
void check_range(const IsingModel& model, const ObjectiveSettings& settings) {
  const auto check = [&](double value) {
    if (std::abs(value) <= kLargest) return;
    throw InputError(
        fmt::format("{}: found a field or coupling of {} from its numbers and beta={}, expected at most {} in size",
                    settings.file, value, settings.beta, kLargest));
  };
  for (const double value : model.field) check(value);
  for (const Edge& edge : model.edges) check(edge.coupling);
}

}  // namespace

/// An edge adds w (1 - x_i x_j) / 2 to the cut, so that beta cut(x) = beta W / 2 - sum of beta w / 2 x_i x_j, where W
/// is the sum of all weights.
IsingModel make_maxcut(const Spec& spec) {
  SpecReader reader(spec, "model");
  const ObjectiveSettings settings = read_settings(reader, "maxcut");
  reader.finish({"file", "beta"});
  EdgeList graph = parse_maxcut(read_file(settings.file), settings.file);
  IsingModel model;
  model.variables = graph.variables;
  model.coupling = -settings.beta / 2;
  model.edges = std::move(graph.edges);
  for (Edge& edge : model.edges) {
    model.objective_constant += edge.coupling / 2;
    edge.coupling *= -settings.beta / 2;
  }
  model.field.assign(model.variables, 0.0);
  model.observed = model.field;
  model.objective = "cut";
  model.objective_scale = 1 / settings.beta;
  model.name = Spec{"maxcut", {{"file", settings.file}, {"beta", fmt::format("{}", settings.beta)}}}.text();
  check_range(model, settings);
  return model;
}

/// With x = (1 + s) / 2, a linear term q x is q/2 + q/2 s, and a product q x_i x_j is q/4 (1 + s_i + s_j + s_i s_j).
IsingModel make_qubo(const Spec& spec) {
  SpecReader reader(spec, "model");
  const ObjectiveSettings settings = read_settings(reader, "qubo");
  const std::string sense = reader.choice("sense", "min", {"min", "max"});
  reader.finish({"file", "beta", "sense"});
  Qubo qubo = parse_qubo(read_file(settings.file), settings.file);
  IsingModel model;
  model.variables = static_cast<Index>(qubo.linear.size());
  model.field = std::move(qubo.linear);
  model.edges = std::move(qubo.quadratic);
  if (!qubo.spins) {
    for (double& value : model.field) {
      value /= 2;
      model.objective_constant += value;
    }
    for (Edge& edge : model.edges) {
      edge.coupling /= 4;
      model.field[edge.i] += edge.coupling;
      model.field[edge.j] += edge.coupling;
      model.objective_constant += edge.coupling;
    }
  }
  const double sign = sense == "max" ? settings.beta : -settings.beta;
  for (double& value : model.field) value *= sign;
  for (Edge& edge : model.edges) edge.coupling *= sign;
  model.observed = model.field;
  model.objective = "energy";
  model.objective_scale = 1 / sign;
  model.name =
      Spec{"qubo", {{"file", settings.file}, {"beta", fmt::format("{}", settings.beta)}, {"sense", sense}}}.text();
  check_range(model, settings);
  return model;
}

}  // namespace poise
