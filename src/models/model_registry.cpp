/// Models by name: the registry, and the way from a text on the command line to a model.
#include <poise/model.hpp>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <poise/network.hpp>
#include "models/ising/ising_model.hpp"
#include "models/ising/spin_labels.hpp"
#include "models/network/independent_set.hpp"
#include "models/network/potts.hpp"
#include "models/rbm/rbm.hpp"
#include "models/selection/read_selection.hpp"

namespace poise {

namespace {

/// A way to a model by its name, or by the ending of a file.
struct ModelRow {
  const char* name;
  std::string_view endings;  ///< of files that are such models, each with a blank behind it
  const char* help;          ///< empty for models that are files only
  Model (*make)(const Spec& spec, const ModelFiles& files);
  /// The same as a network; null where it is none.
  Network (*network)(const Spec& spec, const ModelFiles& files);
};

/// The key that names the file of a row, where a file stands for a spec.
constexpr const char* kFile = "file";

Model make_rbm(const Spec& spec, const ModelFiles&) {
  SpecReader reader(spec, "model");
  const std::string file = reader.text("weights", "");
  if (file.empty()) reader.problem("no key 'weights' in model 'rbm', expected rbm:weights=FILE");
  reader.finish({"weights"});
  return rbm_model(spec.text(), std::make_shared<const Rbm>(read_rbm(file)));
}

Network read_network_file(const Spec& spec, const ModelFiles&) {
  const std::string& path = spec.settings.front().second;
  Network network = read_network(path);
  network.name = path;
  return network;
}

/// A network of sets of vertices, to be as large as possible.
Model sized_model(Network network) {
  Model model = network_model(std::make_shared<const Network>(std::move(network)));
  model.objective = "size";
  return model;
}

/// The energy counts edges where there are no fields; otherwise it is -log p. Sites with fields of their own have none.
Model make_potts_model(const Spec& spec) {
  auto network = std::make_shared<const Network>(make_potts(spec));
  Model model = network_model(network);
  SpecReader reader(spec, "model");
  if (network->num_factors() == 0 || reader.real("sigma", 0.0) > 0.0) return model;
  const std::span<const double> edge = network->table(0);
  const double coupling = std::abs(std::log(edge[0] / edge[1]));
  const bool is_free = network->scope(network->num_factors() - 1).size() == 2 && coupling > 0.0;
  model.spins = {static_cast<double>(model.layout.variables), is_free ? coupling : 1.0, "order", 1.0};
  return model;
}

constexpr std::array<ModelRow, 11> kRows = {{
    {"ising", "",
     "spins on a lattice or a graph: ising:size=30,coupling=1,mu=3,sigma=3,seed=1, ising:case=4, ising:graph=FILE",
     [](const Spec& spec, const ModelFiles& files) { return ising_model(make_ising(spec, {files.field})); },
     [](const Spec& spec, const ModelFiles& files) { return labelled_network(make_ising(spec, {files.field})); }},
    {"potts", "", "levels that like to agree on a lattice: potts:size=30,levels=3,coupling=1",
     [](const Spec& spec, const ModelFiles&) { return make_potts_model(spec); },
     [](const Spec& spec, const ModelFiles&) { return make_potts(spec); }},
    {"bernoulli", "", "independent variables with random log odds: bernoulli:size=10000,mu=0,sigma=0.5,seed=1",
     [](const Spec& spec, const ModelFiles&) { return ising_model(make_bernoulli(spec)); },
     [](const Spec& spec, const ModelFiles&) { return labelled_network(make_bernoulli(spec)); }},
    {"fhmm", "", "hidden Markov chains seen as one noisy sum, a factorial model: fhmm:length=200,chains=50,seed=1",
     [](const Spec& spec, const ModelFiles&) { return ising_model(make_fhmm(spec)); },
     [](const Spec& spec, const ModelFiles&) { return labelled_network(make_fhmm(spec)); }},
    {"maxcut", ".mc ", "cuts of a graph, exp(beta * cut): maxcut:file=FILE,beta=1, or a file that ends in .mc",
     [](const Spec& spec, const ModelFiles&) { return ising_model(make_maxcut(spec)); },
     [](const Spec& spec, const ModelFiles&) { return labelled_network(make_maxcut(spec)); }},
    {"qubo", ".qubo .coo ",
     "quadratic functions of zeros and ones: qubo:file=FILE,beta=1, or a file that ends in .qubo or .coo",
     [](const Spec& spec, const ModelFiles&) { return ising_model(make_qubo(spec)); },
     [](const Spec& spec, const ModelFiles&) { return labelled_network(make_qubo(spec)); }},
    {"mis", "",
     "independent sets of a graph, exp(beta * size): the hard-core model; poise optimize finds the largest: "
     "mis:file=FILE,beta=1 (edge list or DIMACS)",
     [](const Spec& spec, const ModelFiles&) { return sized_model(make_independent_set(spec)); },
     [](const Spec& spec, const ModelFiles&) { return make_independent_set(spec); }},
    {"clique", "", "cliques of a graph, exp(beta * size): clique:file=FILE,beta=1 (edge list or DIMACS)",
     [](const Spec& spec, const ModelFiles&) { return sized_model(make_clique(spec)); },
     [](const Spec& spec, const ModelFiles&) { return make_clique(spec); }},
    {"rbm", "", "a restricted Boltzmann machine, hidden units summed out: rbm:weights=FILE (.safetensors, .npz)",
     make_rbm, nullptr},
    {"selection", "",
     "which variables belong in a regression: selection:data=FILE.csv,response=y, or selection:z=FILE,ld=FILE,n=N",
     [](const Spec& spec, const ModelFiles&) { return read_selection_model(spec); }, nullptr},
    {"", ".uai .bif ", "", nullptr, read_network_file},
}};

const ModelRow* find_row(std::string_view name) {
  const auto found = std::find_if(kRows.begin(), kRows.end(), [&](const ModelRow& row) { return row.name == name; });
  return found != kRows.end() && !name.empty() ? &*found : nullptr;
}

/// The row of files with the ending of `text`.
const ModelRow* find_file_row(std::string_view text) {
  const std::size_t dot = text.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return nullptr;
  const std::string ending = std::string(text.substr(dot)) + ' ';
  const auto found = std::find_if(kRows.begin(), kRows.end(), [&](const ModelRow& row) {
    return row.endings.find(ending) != std::string_view::npos;
  });
  return found != kRows.end() ? &*found : nullptr;
}

struct Named {
  const ModelRow* row;  ///< null where nothing has this name
  Spec spec;
};

/// What a text names: a spec whose name is known, or else a file by its ending.
Named resolve(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || find_row(text.substr(0, colon)) == nullptr) {
    if (const ModelRow* row = find_file_row(text)) return {row, Spec{row->name, {{kFile, text}}}};
  }
  Spec spec = parse_spec(text);
  const ModelRow* row = find_row(spec.name);
  return {row, std::move(spec)};
}

[[noreturn]] void refuse_name(const std::string& name) {
  std::vector<std::string> names;
  for (const NameHelp& row : model_help()) names.push_back(row.name);
  throw InputError(
      fmt::format("unknown model '{}'{}; models are {}, and files that end in .uai, .bif, .mc, .qubo or .coo", name,
                  did_you_mean(name, names), fmt::join(names, ", ")));
}

/// The network of a row, with the evidence taken in.
Network network_of(const Named& named, const ModelFiles& files) {
  Network network = named.row->network(named.spec, files);
  if (files.evidence.empty()) return network;
  const std::string name = network.name;
  const Evidence evidence = find_evidence(files.evidence, network);
  try {
    network = condition(std::move(network), evidence);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", files.evidence, error.what()));
  }
  network.name = name + " given " + files.evidence;
  return network;
}

void check_field(const Named& named, const ModelFiles& files) {
  if (!files.field.empty() && named.spec.name != "ising") {
    throw InputError("--field: only ising takes a field from a file");
  }
}

/// A model that is a network anyway, or becomes one by its evidence, is made as a network.
Model make_named(const Named& named, const ModelFiles& files) {
  if (named.row == nullptr) refuse_name(named.spec.name);
  check_field(named, files);
  if (!files.evidence.empty() && named.row->network == nullptr) {
    throw InputError("--evidence: only networks take evidence, which all models but rbm and selection are");
  }
  if (named.row->make != nullptr && files.evidence.empty()) return named.row->make(named.spec, files);
  Model model = network_model(std::make_shared<const Network>(network_of(named, files)));
  // Draws are labelled as without evidence.
  if (named.row->make != nullptr) model.layout.labels = named.row->make(named.spec, {files.field, ""}).layout.labels;
  return model;
}

}  // namespace

Model make_model(const std::string& text, const ModelFiles& files) { return make_named(resolve(text), files); }

Model make_model(const Spec& spec, const ModelFiles& files) { return make_named({find_row(spec.name), spec}, files); }

bool has_network(const std::string& text) {
  const Named named = resolve(text);
  return named.row != nullptr && named.row->network != nullptr;
}

Network make_network(const std::string& text, const ModelFiles& files) {
  const Named named = resolve(text);
  if (named.row == nullptr) refuse_name(named.spec.name);
  if (named.row->network == nullptr) {
    throw InputError(
        fmt::format("the model '{}' is no network; all others are, and 'poise logz' takes it too", named.spec.name));
  }
  check_field(named, files);
  return network_of(named, files);
}

std::optional<Network> find_network(const std::string& text, const ModelFiles& files) try {
  return has_network(text) ? std::optional(make_network(text, files)) : std::nullopt;
} catch (const TooStrong&) {
  return std::nullopt;
}

const std::vector<NameHelp>& model_help() {
  static const std::vector<NameHelp> help = [] {
    std::vector<NameHelp> rows;
    for (const ModelRow& row : kRows) {
      if (*row.help != '\0') rows.push_back({row.name, row.help});
    }
    return rows;
  }();
  return help;
}

}  // namespace poise
