/// The built-in models.
#include <poise/run/model.hpp>

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <poise/network/potts.hpp>
#include <poise/network/read.hpp>
#include <poise/network/support.hpp>
#include <poise/target/graph_ising.hpp>
#include <poise/target/lattice_ising.hpp>
#include <poise/target/markov_network.hpp>
#include "ensembles.hpp"

namespace poise {

namespace {

/// The edges of a lattice as a list. A torus has no edge along a side of one site and a double one along a side of two.
std::vector<Edge> lattice_edges(const IsingModel& ising) {
  std::vector<Edge> edges;
  const auto join = [&](Index side, Index position, Index i, Index j) {
    if (side == 1 || (position + 1 == side && (!ising.torus || side == 2))) return;
    edges.push_back({i, j, ising.torus && side == 2 ? 2.0 * ising.coupling : ising.coupling});
  };
  for (Index row = 0; row < ising.rows; ++row) {
    for (Index column = 0; column < ising.columns; ++column) {
      const Index i = row * ising.columns + column;
      join(ising.columns, column, i, row * ising.columns + (column + 1) % ising.columns);
      join(ising.rows, row, i, (row + 1) % ising.rows * ising.columns + column);
    }
  }
  return edges;
}

VariableLayout spins(Index variables, Index rows, Index columns) {
  VariableLayout layout;
  layout.variables = variables;
  layout.rows = rows;
  layout.columns = columns;
  layout.labels = {-1, 1};
  return layout;
}

Model lattice_model(IsingModel& ising) {
  const auto target = std::make_shared<const LatticeIsing>(
      ising.rows, ising.columns, ising.torus ? Boundary::torus : Boundary::open, ising.coupling, ising.field);
  std::vector<double>().swap(ising.field);  // the target has its own
  Model model = describe_model(ising.name, target, spins(ising.variables, ising.rows, ising.columns));
  model.make_ensemble = [target](const Sampler& sampler, const EnsembleOptions& options) {
    return lattice_ensemble(target, sampler, options);
  };
  return model;
}

/// An Ising model as a network of tables over single sites and pairs.
Network ising_network(const IsingModel& ising) {
  static constexpr double strongest = 300.0;
  Network network;
  network.name = ising.name;
  network.cardinalities.assign(ising.variables, 2);
  const auto check = [](double value) {
    if (std::abs(value) <= strongest) return;
    throw InputError(fmt::format("a field or coupling of {} is too strong for exact inference, which takes up to {}",
                                 value, strongest));
  };
  for (Index i = 0; i < ising.field.size(); ++i) {
    check(ising.field[i]);
    if (ising.field[i] != 0.0) {
      network.add_factor(std::array{i}, std::array{std::exp(-ising.field[i]), std::exp(ising.field[i])});
    }
  }
  for (const Edge& edge : ising.is_lattice() ? lattice_edges(ising) : ising.edges) {
    check(edge.coupling);
    const double alike = std::exp(edge.coupling);
    network.add_factor(std::array{edge.i, edge.j}, std::array{alike, 1.0 / alike, 1.0 / alike, alike});
  }
  return network;
}

/// Whether the text is the name of a file with this ending, rather than a spec in which such a name comes last.
bool is_file(const std::string& text, std::string_view ending) {
  const std::string word = text.substr(0, text.find(':'));
  const auto& models = model_help();
  const bool is_spec = word.size() < text.size() &&
                       std::any_of(models.begin(), models.end(), [&](const NameHelp& row) { return row.name == word; });
  return !is_spec && text.size() > ending.size() && text.ends_with(ending);
}

bool is_network_file(const std::string& text) { return is_file(text, ".uai") || is_file(text, ".bif"); }

Network read_with_evidence(const std::string& path, const std::string& evidence) {
  Network network = read_network(path);
  network.name = path;
  if (!evidence.empty()) {
    const Evidence found = read_evidence(evidence, network);
    try {
      network = condition(std::move(network), found);
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}: {}", evidence, error.what()));
    }
    network.name += " given " + evidence;
  }
  return network;
}

[[noreturn]] void refuse_name(const std::string& name) {
  std::vector<std::string> names;
  for (const NameHelp& row : model_help()) names.push_back(row.name);
  const std::string nearest = nearest_name(name, names);
  throw InputError(
      fmt::format("unknown model '{}'{}; models are {}, and files that end in .uai, .bif, .mc, .qubo or .coo", name,
                  nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest), fmt::join(names, ", ")));
}

}  // namespace

Model make_model(IsingModel ising) {
  const bool small_torus = ising.is_lattice() && ising.torus && (ising.rows < 3 || ising.columns < 3);
  Model model;
  if (ising.is_lattice() && !small_torus) {
    model = lattice_model(ising);
  } else {
    const std::vector<Edge> edges = ising.is_lattice() ? lattice_edges(ising) : std::move(ising.edges);
    IsingObjective objective{ising.objective, ising.objective_scale, ising.objective_constant};
    const auto target = std::make_shared<const GraphIsing>(ising.field, edges, std::move(objective));
    model = describe_model(ising.name, target, spins(ising.variables, ising.rows, ising.columns));
    model.make_ensemble = [target](const Sampler& sampler, const EnsembleOptions& options) {
      return graph_ensemble(target, sampler, options);
    };
    model.objective = ising.objective;
    model.maximise = ising.objective_scale > 0.0;
  }
  model.observed = std::move(ising.observed);
  return model;
}

Model make_model(const std::shared_ptr<const Network>& network) {
  VariableLayout layout;
  const Index n = network->num_variables();
  layout.rows = network->rows;
  layout.columns = network->columns;
  layout.names = network->names;
  layout.level_names = network->level_names;
  if (std::any_of(network->cardinalities.begin(), network->cardinalities.end(), [](Index k) { return k != 2; })) {
    layout.cardinalities = network->cardinalities;
  }
  if (!network->observed.empty()) {
    layout.observed.assign(n, -1);
    for (Index i = 0; i < n; ++i) {
      if (network->is_observed(i)) layout.observed[i] = static_cast<std::int16_t>(network->observed[i]);
    }
  }
  const auto target = std::make_shared<const MarkovNetwork>(*network);
  Model model = describe_model(network->name, target, std::move(layout));
  model.make_ensemble = [network, target](const Sampler& sampler, const EnsembleOptions& options) {
    return network_ensemble(*network, target, sampler, options);
  };
  if (!network->has_zeros()) return model;
  const auto domains = std::make_shared<const Domains>(propagate_zeros(*network));
  model.possible_levels = domains->count;
  model.into_support = [network, domains](std::vector<Value> x, Rng rng) {
    return repair(*network, *domains, std::move(x), rng);
  };
  return model;
}

Model make_model(std::string name, const std::shared_ptr<const Rbm>& machine) {
  const RbmWeights& weights = machine->weights();
  VariableLayout layout;
  layout.rows = weights.rows;
  layout.columns = weights.columns;
  if (layout.rows == 0) {  // a square picture, where it could be one
    const auto side = static_cast<Index>(std::lround(std::sqrt(weights.visible)));
    if (side * side == weights.visible) layout.rows = layout.columns = side;
  }
  Model model = describe_model(std::move(name), machine, std::move(layout));
  model.make_ensemble = [machine](const Sampler& sampler, const EnsembleOptions& options) {
    return rbm_ensemble(machine, sampler, options);
  };
  return model;
}

const std::vector<NameHelp>& model_help() {
  static const std::vector<NameHelp> help = {
      {"ising",
       "spins on a lattice or a graph: ising:size=30,lambda=1,mu=3,sigma=3,seed=1, ising:case=4, "
       "ising:graph=FILE"},
      {"potts", "levels that like to agree on a lattice: potts:size=30,levels=3,coupling=1"},
      {"maxcut", "cuts of a graph, exp(beta * cut): maxcut:file=FILE,beta=1, or a file that ends in .mc"},
      {"qubo", "quadratic functions of zeros and ones: qubo:file=FILE,beta=1, or a file that ends in .qubo or .coo"},
      {"rbm", "a restricted Boltzmann machine, hidden units summed out: rbm:weights=FILE (.safetensors, .npz)"},
  };
  return help;
}

Model make_model(const std::string& text, const ModelFiles& files) {
  if (has_network(text) && (!text.starts_with("ising") || !files.evidence.empty())) {
    return make_model(std::make_shared<const Network>(make_network(text, files)));
  }
  if (!files.evidence.empty()) {
    throw InputError(
        "--evidence: only networks take evidence (.uai and .bif files, potts, ising), and this model is none");
  }
  if (is_file(text, ".mc")) return make_model(make_maxcut({"maxcut", {{"file", text}}}));
  if (is_file(text, ".qubo") || is_file(text, ".coo")) return make_model(make_qubo({"qubo", {{"file", text}}}));
  return make_model(parse_spec(text), files);
}

Model make_model(const Spec& spec, const ModelFiles& files) {
  if (!files.field.empty() && spec.name != "ising") {
    throw InputError("--field: only ising takes a field from a file");
  }
  if (spec.name == "ising") return make_model(make_ising(spec, {files.field}));
  if (spec.name == "maxcut") return make_model(make_maxcut(spec));
  if (spec.name == "qubo") return make_model(make_qubo(spec));
  if (spec.name == "rbm") {
    SpecReader reader(spec, "model");
    const std::string file = reader.text("weights", "");
    if (file.empty()) reader.problem("no key 'weights' in model 'rbm', expected rbm:weights=FILE");
    reader.finish({"weights"});
    return make_model(spec.text(), std::make_shared<const Rbm>(read_rbm(file)));
  }
  refuse_name(spec.name);
}

bool has_network(const std::string& text) {
  if (is_network_file(text)) return true;
  const std::string name = text.substr(0, text.find(':'));
  return name == "potts" || name == "ising";
}

Network make_network(const std::string& text, const ModelFiles& files) {
  if (is_network_file(text)) {
    if (!files.field.empty()) throw InputError("--field: only ising takes a field from a file");
    return read_with_evidence(text, files.evidence);
  }
  const Spec spec = parse_spec(text);
  if (spec.name != "ising" && spec.name != "potts") refuse_name(spec.name);
  if (spec.name == "potts" && !files.field.empty()) throw InputError("--field: only ising takes a field from a file");
  Network network = spec.name == "ising" ? ising_network(make_ising(spec, {files.field})) : make_potts(spec);
  if (files.evidence.empty()) return network;
  const std::string name = network.name;
  const Evidence evidence = read_evidence(files.evidence, network);
  network = condition(std::move(network), evidence);
  network.name = name + " given " + files.evidence;
  return network;
}

}  // namespace poise
