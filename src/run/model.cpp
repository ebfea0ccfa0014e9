/// The built-in models.
#include <poise/run/model.hpp>

#include <fmt/format.h>

#include <poise/kernel/lattice_gibbs.hpp>
#include <poise/target/graph_ising.hpp>
#include <poise/target/lattice_ising.hpp>

namespace poise {

namespace {

/// The edges of a torus as a list, for those with a side of one site (no edge along it) or two (a double edge).
std::vector<Edge> torus_edges(const IsingModel& ising) {
  std::vector<Edge> edges;
  const auto join = [&](Index side, Index position, Index i, Index j) {
    if (side == 1 || (side == 2 && position == 1)) return;
    edges.push_back({i, j, side == 2 ? 2.0 * ising.coupling : ising.coupling});
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
  Model model = make_model(ising.name, target, spins(ising.variables, ising.rows, ising.columns));
  if (!LatticeGibbs::fits(*target)) return model;
  model.make_ensemble = [target](const Sampler& sampler, const EnsembleOptions& options) -> std::unique_ptr<Ensemble> {
    if (sampler.kind != Sampler::Kind::gibbs) return make_ensemble<LatticeIsing>(target, sampler, options);
    return std::make_unique<EnsembleOf<LatticeIsing, LatticeGibbs>>(target, LatticeGibbs(), options);
  };
  return model;
}

}  // namespace

Model make_model(IsingModel ising) {
  const bool small_torus = ising.is_lattice() && ising.torus && (ising.rows < 3 || ising.columns < 3);
  Model model;
  if (ising.is_lattice() && !small_torus) {
    model = lattice_model(ising);
  } else {
    const std::vector<Edge> edges = ising.is_lattice() ? torus_edges(ising) : std::move(ising.edges);
    model = make_model(ising.name, std::make_shared<const GraphIsing>(ising.field, edges),
                       spins(ising.variables, ising.rows, ising.columns));
  }
  model.observed = std::move(ising.observed);
  model.truth = std::move(ising.truth);
  return model;
}

const std::vector<SamplerHelp>& model_help() {
  static const std::vector<SamplerHelp> help = {
      {"ising",
       "spins on a lattice or a graph: ising:size=30,lambda=1,mu=3,sigma=3,seed=1, ising:case=4, "
       "ising:graph=FILE"},
  };
  return help;
}

Model make_model(const std::string& text, const std::string& field_path) {
  const Spec spec = parse_spec(text);
  std::vector<std::string> names;
  for (const SamplerHelp& row : model_help()) names.push_back(row.name);
  if (spec.name != "ising") {
    const std::string nearest = nearest_name(spec.name, names);
    throw InputError(fmt::format("unknown model '{}'{}; models are {}", spec.name,
                                 nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest),
                                 fmt::join(names, ", ")));
  }
  return make_model(make_ising(spec, {field_path}));
}

}  // namespace poise
