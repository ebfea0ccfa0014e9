/// Rows of the CPU, and what is read from the table of engines.
#include "engines/rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include <poise/extend/engines/samplers.hpp>
#include "base/plugin.hpp"
#include "engines/cpu/bits/ising_bits.hpp"
#include "engines/cpu/chains/bonds.hpp"
#include "engines/cpu/chains/engines.hpp"
#include "engines/cpu/lanes/lane_layout.hpp"
#include "engines/cpu/tempering/temper.hpp"
#include "engines/cpu/tempering/tempered_lanes.hpp"
#include "models/rbm/rbm.hpp"

namespace poise {

// Your own C++ target brings its engines.
TunableEngine make_engine(const std::shared_ptr<const OwnDescription>& target, const Sampler& sampler,
                          const EngineOptions& options) {
  return target->make_engine(sampler, options);
}

bool is_ising(const Model& model) {
  return std::holds_alternative<std::shared_ptr<const LatticeIsing>>(model.description) ||
         std::holds_alternative<std::shared_ptr<const GraphIsing>>(model.description);
}

bool is_rbm(const Model& model) { return std::holds_alternative<std::shared_ptr<const Rbm>>(model.description); }

bool has_bits(const Model& model) {
  if (std::holds_alternative<std::shared_ptr<const LatticeIsing>>(model.description)) return true;
  const auto* graph = std::get_if<std::shared_ptr<const GraphIsing>>(&model.description);
  return graph != nullptr && BitTables::fits(bit_model(*graph));
}

bool has_lanes(const Model& model) {
  if (std::holds_alternative<std::shared_ptr<const LatticeIsing>>(model.description)) return true;
  if (const auto* graph = std::get_if<std::shared_ptr<const GraphIsing>>(&model.description)) {
    return LaneModel::fits(lane_source(*graph));
  }
  const auto* network = std::get_if<NetworkDescription>(&model.description);
  return network != nullptr && LaneModel::fits(lane_source(network->target));
}

bool flips_one(const Sampler& sampler) {
  return is_balanced(sampler) && !sampler.settings.many && !sampler.settings.first_order && sampler.settings.block == 1;
}

namespace {

/// Meant for samplers that both devices have: no others are ever compared.
double seconds_on_cpu(const Model& model, const Sampler& sampler, const Load& load) {
  const double chains = load.chains / load.threads;
  if (const auto* rbm = std::get_if<std::shared_ptr<const Rbm>>(&model.description)) {
    return chains * static_cast<double>((*rbm)->weights().weights.size()) / kRbmWeightsOfACore;
  }
  if (flips_one(sampler)) return chains / kFlipsOfACore;
  const double rate = has_bits(model) ? kBitUpdatesOfACore : kLaneUpdatesOfACore;
  return chains * static_cast<double>(model.layout.variables) / rate;
}

double seconds_of_ladders_on_cpu(const Model& model, const Sampler& sampler, const Load& load) {
  if (is_rbm(model)) return kReplicas * kRbmSweepsOfAStep * seconds_on_cpu(model, sampler, load);
  return kReplicas * load.chains / load.threads * static_cast<double>(model.layout.variables) / kLaneUpdatesOfACore;
}

bool is_any(const Model&) { return true; }
bool is_selection(const Model& model) {
  return std::holds_alternative<std::shared_ptr<const SelectionTarget>>(model.description);
}
bool has_heat(const Model& model) {
  return !std::holds_alternative<std::shared_ptr<const OwnDescription>>(model.description);
}

template <class Row>
bool is_of(const Model&, const Sampler& sampler) {
  return is_row<Row>(sampler);
}
bool takes_all_models(const Model&, const Sampler& sampler) {
  return !is_row<TemperRow>(sampler) && !is_row<RbmGibbsRow>(sampler) && !is_row<ExactRow>(sampler) &&
         !is_row<ClusterRow>(sampler) && !is_row<WeightedGibbsRow>(sampler);
}

std::string why_no_clusters(const Model& model, const Sampler&) {
  if (const auto* lattice = std::get_if<std::shared_ptr<const LatticeIsing>>(&model.description)) {
    return lacks_clusters(**lattice);
  }
  if (const auto* graph = std::get_if<std::shared_ptr<const GraphIsing>>(&model.description)) {
    return lacks_clusters(**graph);
  }
  const auto* network = std::get_if<NetworkDescription>(&model.description);
  return network != nullptr ? lacks_clusters(*network->network) : "it is neither an Ising nor a Potts model";
}

std::string why_no_tree(const Model& model, const Sampler&) { return lacks_junction_tree(model); }

/// Why differences of log p are worth nothing, as a clause; empty where they are. log p of a state is a double, whose
/// last digit is worth up to 2^-52 of all terms together: terms that are not well above it are lost in sums with the
/// others.
template <SpinGraph T>
std::string loses_terms(const T& target) {
  constexpr double kHarmless = 1e-4;   // of log p: probabilities are then right to as much
  constexpr double kWellAbove = 50.0;  // half a digit is then a hundredth of the term
  double sum = 0.0;
  double least = std::numeric_limits<double>::infinity();
  const auto add = [&](double term) {
    sum += std::abs(term);
    if (term != 0.0) least = std::min(least, std::abs(term));
  };
  for (Index i = 0; i < target.num_variables(); ++i) add(target.field(i));
  for_each_edge(target, [&](Index, Index, double coupling, std::int64_t) { add(coupling); });
  const double digit = sum * 0x1p-52;
  if (digit <= kHarmless || digit * kWellAbove <= least) return {};
  return fmt::format(
      "it takes differences of log p, whose last digit is worth {:.2g} where fields and couplings add up to {:.2g}, "
      "too coarse for the smallest of {:.2g}",
      digit, sum, least);
}

/// The same for samplers that accept by log p of two states; others take ratios, which sum the terms around a variable
/// alone.
std::string lacks_precision(const Model& model, const Sampler& sampler) {
  if (!is_row<TemperRow>(sampler) && !sampler.settings.many) return {};
  if (const auto* lattice = std::get_if<std::shared_ptr<const LatticeIsing>>(&model.description)) {
    return loses_terms(**lattice);
  }
  const auto* graph = std::get_if<std::shared_ptr<const GraphIsing>>(&model.description);
  return graph != nullptr ? loses_terms(**graph) : "";
}

/// The same for all other samplers, some of which take a gradient.
std::string why_not_others(const Model& model, const Sampler& sampler) {
  if (is_selection(model) && sampler.settings.first_order) return "it takes a gradient, and selection models have none";
  return lacks_precision(model, sampler);
}

/// Refuses a sampler that does not take the model with the sampler's own sentence.
TunableEngine make_on_cpu(const Model& model, const Sampler& sampler, const EngineOptions& options) {
  return std::visit([&](const auto& description) { return make_engine(description, sampler, options); },
                    model.description);
}

TunableEngine make_ladders_on_cpu(const Model& model, const Sampler& sampler, const EngineOptions& options) {
  return make_tempered_engine(model, sampler, options,
                              {make_tempered_lanes<MarkovNetwork>, make_tempered_lanes<GraphIsing>});
}

void add_cpu(EngineTable& table) {
  constexpr const char* kReproducible = "reproducible: the same for any number of threads and any SIMD width";
  const EngineRow rows[] = {
      {Device::cpu, "`temper`", "Ising models, networks, RBMs, variable selection, targets of your own in Python",
       kReproducible, has_heat, is_of<TemperRow>, lacks_precision, seconds_of_ladders_on_cpu, make_ladders_on_cpu},
      {Device::cpu, "`exact`", "networks and Ising models of small width, other models of at most 4096 states",
       kReproducible, has_heat, is_of<ExactRow>, why_no_tree, seconds_on_cpu, make_exact_engine},
      {Device::cpu, "`rbm-gibbs`", "RBMs", kReproducible, is_rbm, is_of<RbmGibbsRow>, nullptr, seconds_on_cpu,
       make_on_cpu},
      {Device::cpu, "`wtgs`", "variable selection", kReproducible, is_selection, is_of<WeightedGibbsRow>, nullptr,
       seconds_on_cpu, make_on_cpu},
      {Device::cpu, "`sw`, `wolff`", "Ising and Potts models without field whose couplings are not negative",
       kReproducible, is_any, is_of<ClusterRow>, why_no_clusters, seconds_on_cpu, make_on_cpu},
      {Device::cpu, "all others", "all models; gradient samplers take targets of your own that have a gradient",
       kReproducible, is_any, takes_all_models, why_not_others, seconds_on_cpu, make_on_cpu},
  };
  table.rows.insert(table.rows.end(), std::begin(rows), std::end(rows));
}

/// The back end is looked for where Poise is; it finds itself in the same way, since it has this code too.
void add_cuda(EngineTable& table) {
  const std::string path = find_plugin(kCudaLibrary);
  if (path.empty()) {
    table.why_no_gpu = fmt::format(
        "this poise has no GPU back end ({}): install the package poise-cuda, or build poise with "
        "-DPOISE_CUDA=ON where nvcc (12 or newer) is installed",
        kCudaLibrary);
    return;
  }
  std::string why;
  void* const library = load_plugin(path, PluginNames::own, why);
  auto* const add = library == nullptr ? nullptr : reinterpret_cast<AddCuda*>(function_of_plugin(library, kAddCuda));
  if (library != nullptr) why = add == nullptr ? "it is another library" : "";
  if (add != nullptr) {
    if (const char* problem = add(POISE_VERSION, table)) why = problem;
  }
  if (!why.empty()) table.why_no_gpu = fmt::format("the GPU back end {} cannot be used: {}", path, why);
}

const EngineRow* find_row(Device device, const Model& model, const Sampler& sampler) {
  const std::vector<EngineRow>& rows = engine_table().rows;
  const auto found = std::find_if(
      rows.begin(), rows.end(), [&](const EngineRow& row) { return row.device == device && row.runs(model, sampler); });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

const EngineTable& engine_table() {
  static const EngineTable table = [] {
    EngineTable made;
    add_cpu(made);
    add_cuda(made);
    return made;
  }();
  return table;
}

bool EngineRow::runs(const Model& model, const Sampler& sampler) const {
  return takes_model(model) && takes_sampler(model, sampler) && (why_not == nullptr || why_not(model, sampler).empty());
}

std::string why_not(Device device, const Model& model, const Sampler& sampler) {
  // What came closest says most: a limit of the right row, else the samplers that such models have there.
  std::string limit, others;
  for (const EngineRow& row : engine_table().rows) {
    if (row.device != device || !row.takes_model(model)) continue;
    if (row.takes_sampler(model, sampler)) {
      limit = row.why_not != nullptr ? row.why_not(model, sampler) : "";
      if (limit.empty()) return {};
    } else if (others.find(row.samplers) == std::string::npos) {
      others += (others.empty() ? "" : ", ") + std::string(row.samplers);
    }
  }
  if (!limit.empty()) return limit;
  std::replace(others.begin(), others.end(), '`', '\'');
  return others.empty() ? "no sampler of such models does" : "the samplers that do on such models are " + others;
}

namespace {

InputError refusal(const Model& model, const Sampler& sampler) {
  return InputError(fmt::format("{} of {} does not run on a GPU: {}; leave --device out (device, in Python)",
                                sampler.name, model.name, why_not(Device::cuda, model, sampler)));
}

}  // namespace

TunableEngine make_engine(const Model& model, const Sampler& sampler, const EngineOptions& options) {
  if (options.device == Device::cuda) require_cuda();
  if (const std::string why = lacks_precision(model, sampler); !why.empty()) {
    throw InputError(fmt::format("{} does not sample {}: {}; gibbs takes it", sampler.name, model.name, why));
  }
  const Device device = options.device == Device::cuda ? Device::cuda : Device::cpu;
  const EngineRow* const row = find_row(device, model, sampler);
  if (row != nullptr) return row->make(model, sampler, options);
  if (device == Device::cuda) throw refusal(model, sampler);
  return make_on_cpu(model, sampler, options);
}

Device faster_device(const Model& model, const Sampler& sampler, std::size_t chains, unsigned threads) {
  const EngineRow* const there = find_row(Device::cuda, model, sampler);
  std::string why;
  if (there == nullptr || cuda_devices(why).empty()) return Device::cpu;
  const Load load{static_cast<double>(chains),
                  static_cast<double>(threads > 0 ? threads : std::max(1U, std::thread::hardware_concurrency()))};
  const EngineRow* const here = find_row(Device::cpu, model, sampler);
  if (here == nullptr) return Device::cuda;
  return there->seconds(model, sampler, load) < here->seconds(model, sampler, load) ? Device::cuda : Device::cpu;
}

void require_cuda(const Model& model, const Sampler& sampler) {
  require_cuda();
  if (find_row(Device::cuda, model, sampler) == nullptr) throw refusal(model, sampler);
}

std::string describe(const std::vector<EngineRow>& rows) {
  std::string out = "| device | sampler | models | draws |\n| --- | --- | --- | --- |\n";
  for (const EngineRow& row : rows) {
    out += fmt::format("| {} | {} | {} | {} |\n", row.device == Device::cpu ? "cpu" : "cuda", row.samplers, row.models,
                       row.draws);
  }
  return out;
}

std::vector<CudaDevice> cuda_devices(std::string& why) {
  if (engine_table().gpu) return engine_table().gpu->devices(why);
  why = engine_table().why_no_gpu;
  return {};
}

void require_cuda() {
  std::string why;
  if (cuda_devices(why).empty()) throw InputError(why);
}

}  // namespace poise
