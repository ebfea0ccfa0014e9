/// Models and networks: from specs, from files, from arrays.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <poise/network.hpp>
#include "models/rbm/rbm.hpp"
#include "models/rbm/rbm_weights.hpp"

#include "models/ising/ising_model.hpp"
#include "models/ising/spin_labels.hpp"

#include "bindings.hpp"

namespace poise::python {

namespace {

using Reals = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Floats = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Array>
auto vector_of(const Array& array) {
  return std::vector<std::remove_const_t<typename Array::Scalar>>(array.data(), array.data() + array.size());
}

struct LatticeShape {
  Index rows;
  Index columns;
  bool torus;
};

IsingModel lattice(const LatticeShape& shape, double coupling, const Reals& field, std::string name) {
  IsingModel ising;
  ising.rows = shape.rows;
  ising.columns = shape.columns;
  ising.torus = shape.torus;
  ising.coupling = coupling;
  ising.field = vector_of(field);
  ising.observed = ising.field;
  ising.variables = shape.rows * shape.columns;
  ising.name = std::move(name);
  return ising;
}

std::vector<Edge> edges_of(const Indices& from, const Indices& to, const Reals& values) {
  std::vector<Edge> edges;
  for (std::size_t k = 0; k < from.size(); ++k) edges.push_back({from.data()[k], to.data()[k], values.data()[k]});
  return edges;
}

IsingModel graph(const Indices& from, const Indices& to, const Reals& couplings, const Reals& field, std::string name) {
  IsingModel ising;
  ising.variables = static_cast<Index>(field.size());
  ising.field = vector_of(field);
  ising.name = std::move(name);
  ising.edges = edges_of(from, to, couplings);
  return ising;
}

IsingModel grid(std::vector<Index> sides, bool torus, double coupling, const Reals& field, std::string name) {
  IsingModel ising;
  ising.coupling = coupling;
  set_grid({std::move(sides), torus}, ising);
  ising.field = vector_of(field);
  ising.observed = ising.field;
  ising.name = std::move(name);
  return ising;
}

/// Names of the variables, where they have any.
Model named_model(const IsingModel& ising, std::vector<std::string> names) {
  Model model = ising_model(ising);
  model.layout.names = std::move(names);
  return model;
}

std::shared_ptr<Network> named_network(const IsingModel& ising, std::vector<std::string> names) {
  auto network = std::make_shared<Network>(labelled_network(ising));
  network->names = std::move(names);
  return network;
}

Model rbm(const nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>& weights,
          const Floats& visible_bias, const Floats& hidden_bias, const std::pair<Index, Index>& image,
          std::string name) {
  RbmWeights rbm;
  rbm.hidden = static_cast<Index>(weights.shape(0));
  rbm.visible = static_cast<Index>(weights.shape(1));
  rbm.weights.assign(weights.data(), weights.data() + weights.size());
  rbm.visible_bias = vector_of(visible_bias);
  rbm.hidden_bias = vector_of(hidden_bias);
  rbm.rows = image.first;
  rbm.columns = image.second;
  return rbm_model(std::move(name), std::make_shared<const Rbm>(std::move(rbm)));
}

std::shared_ptr<Network> observe(const Network& network, const std::vector<std::pair<Index, Index>>& observations,
                                 const std::string& name) {
  Evidence evidence;
  for (const auto& [variable, level] : observations) evidence.push_back({variable, level});
  auto out = std::make_shared<Network>(condition(network, evidence));
  out->name = name;
  return out;
}

}  // namespace

void bind_models(nb::module_& module) {
  nb::class_<Model>(module, "Model")
      .def_ro("name", &Model::name)
      .def_ro("statistics", &Model::statistics)
      .def_prop_ro("variables", [](const Model& model) { return model.layout.variables; })
      .def_prop_ro("rows", [](const Model& model) { return model.layout.rows; })
      .def_prop_ro("columns", [](const Model& model) { return model.layout.columns; })
      .def_prop_ro("sides", [](const Model& model) { return model.layout.sides; })
      .def_prop_ro("names", [](const Model& model) { return model.layout.names; })
      .def_prop_ro("level_names", [](const Model& model) { return model.layout.level_names; })
      .def_prop_ro(
          "labels",
          [](const Model& model) { return std::vector<int>(model.layout.labels.begin(), model.layout.labels.end()); })
      .def_prop_ro("cardinalities", [](const Model& model) {
        std::vector<Index> out;
        for (Index i = 0; i < model.layout.variables; ++i) out.push_back(model.layout.cardinality(i));
        return out;
      });
  nb::class_<Network>(module, "Network")
      .def_ro("name", &Network::name)
      .def_ro("names", &Network::names)
      .def_ro("level_names", &Network::level_names)
      .def_ro("cardinalities", &Network::cardinalities)
      .def_prop_ro("factors", &Network::num_factors)
      .def("variable_name", &Network::variable_name)
      .def("level_name", &Network::level_name)
      .def("is_observed", &Network::is_observed);

  module.def(
      "model_from_text",
      [](const std::string& text, const std::string& field, const std::string& evidence) {
        return make_model(text, {field, evidence});
      },
      nb::arg("text"), nb::arg("field") = "", nb::arg("evidence") = "");
  module.def(
      "network_from_text",
      [](const std::string& text, const std::string& field, const std::string& evidence) {
        return std::make_shared<Network>(make_network(text, {field, evidence}));
      },
      nb::arg("text"), nb::arg("field") = "", nb::arg("evidence") = "");
  module.def(
      "model_from_parts",
      [](const std::string& name, const std::vector<std::pair<std::string, std::string>>& settings,
         const std::string& field) {
        Spec spec;
        spec.name = name;
        spec.settings = settings;
        return make_model(spec, {field, ""});
      },
      nb::arg("name"), nb::arg("settings"), nb::arg("field") = "");
  module.def("has_network", &has_network, nb::arg("text"));
  module.def("observe", &observe, nb::arg("network"), nb::arg("observations"), nb::arg("name"));
  module.def("model_from_network", [](const std::shared_ptr<Network>& network) {
    return network_model(std::shared_ptr<const Network>(network));
  });
  nb::class_<IsingModel>(module, "Ising")
      .def("model", &named_model, nb::arg("names") = std::vector<std::string>())
      .def("network", &named_network, nb::arg("names") = std::vector<std::string>());
  module.def("ising_grid", &grid, nb::arg("sides"), nb::arg("torus"), nb::arg("coupling"), nb::arg("field"),
             nb::arg("name"));
  module.def(
      "cut_of_edges",
      [](const Indices& from, const Indices& to, const Reals& weights, Index vertices, double beta, std::string name) {
        return ising_of_cut({vertices, edges_of(from, to, weights)}, beta, std::move(name));
      },
      nb::arg("first"), nb::arg("second"), nb::arg("weights"), nb::arg("vertices"), nb::arg("beta"), nb::arg("name"));
  module.def(
      "qubo_of_terms",
      [](const Reals& linear, const Indices& from, const Indices& to, const Reals& values,
         std::pair<double, double> beta_and_offset, std::pair<bool, bool> maximise_and_spins, std::string name) {
        return ising_of_qubo(
            {maximise_and_spins.second, vector_of(linear), edges_of(from, to, values)},
            {beta_and_offset.first, maximise_and_spins.first, beta_and_offset.second, std::move(name)});
      },
      nb::arg("linear"), nb::arg("first"), nb::arg("second"), nb::arg("values"), nb::arg("beta_and_offset"),
      nb::arg("maximise_and_spins"), nb::arg("name"));
  module.def(
      "ising_lattice",
      [](Index rows, Index columns, bool torus, double coupling, const Reals& field, std::string name) {
        return lattice({rows, columns, torus}, coupling, field, std::move(name));
      },
      nb::arg("rows"), nb::arg("columns"), nb::arg("torus"), nb::arg("coupling"), nb::arg("field"), nb::arg("name"));
  module.def("ising_graph", &graph, nb::arg("first"), nb::arg("second"), nb::arg("couplings"), nb::arg("field"),
             nb::arg("name"));
  module.def("model_from_rbm", &rbm, nb::arg("weights"), nb::arg("visible_bias"), nb::arg("hidden_bias"),
             nb::arg("image"), nb::arg("name"));
  const auto rows_of = [](const std::vector<NameHelp>& help) {
    std::vector<std::pair<std::string, std::string>> out;
    for (const NameHelp& row : help) out.emplace_back(row.name, row.help);
    return out;
  };
  module.def("sampler_help", [rows_of] { return rows_of(sampler_help()); });
  module.def("check_sampler", [](const std::string& text) { return parse_sampler(text).name; });
}

}  // namespace poise::python
