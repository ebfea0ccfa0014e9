/// The rows of the CUDA back end: which samplers of which models run on a GPU, and how fast.
#include <algorithm>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include <poise/extend/engines/samplers.hpp>
#include "engines/cpu/lanes/lane_layout.hpp"
#include "engines/cpu/tempering/temper.hpp"
#include "engines/cuda/engines.hpp"
#include "engines/cuda/flips/flip_kernels.hpp"
#include "engines/cuda/gradient/gradient_chains.hpp"
#include "engines/cuda/rbm/rbm_gibbs_chains.hpp"
#include "models/ising/lattice_ising.hpp"
#include "models/user/batch_target.hpp"

namespace poise {

namespace {

bool is_network(const Model& model) { return std::holds_alternative<NetworkDescription>(model.description); }
bool is_callback(const Model& model) { return std::holds_alternative<CallbackDescription>(model.description); }
bool is_lattice(const Model& model) {
  return std::holds_alternative<std::shared_ptr<const LatticeIsing>>(model.description);
}
bool has_heat(const Model& model) { return is_ising(model) || is_network(model); }

bool is_gibbs(const Model&, const Sampler& sampler) { return is_single_site_gibbs(sampler); }
bool is_flip(const Model&, const Sampler& sampler) { return flips_one(sampler); }
bool is_rbm_gibbs(const Model&, const Sampler& sampler) { return is_row<RbmGibbsRow>(sampler); }
bool is_informed(const Model&, const Sampler& sampler) { return cuda_gradient_form(sampler).has_value(); }

/// Whether a sampler tempers one that `takes_inner` takes.
template <bool (*takes_inner)(const Model&, const Sampler&)>
bool tempers(const Model& model, const Sampler& sampler) {
  return is_row<TemperRow>(sampler) && takes_inner(model, tempered_sampler(model, sampler));
}
bool is_any(const Model&, const Sampler&) { return true; }

std::string why_no_bits(const Model& model, const Sampler&) {
  return has_bits(model) ? "" : "chains as bits take graphs in which no variable has more than six neighbours";
}

std::string why_no_lanes(const Model& model, const Sampler&) {
  if (has_lanes(model)) return {};
  return fmt::format(
      "a variable may have at most {:.0f} factors on average there, and tables at most {:.0f} entries in all",
      LaneModel::kMostTerms, LaneModel::kMostEntries);
}

std::string why_no_small_lattice(const Model& model, const Sampler&) {
  const auto& lattice = *std::get<std::shared_ptr<const LatticeIsing>>(model.description);
  return std::max(lattice.rows(), lattice.columns()) <= cuda::kMostSide ? ""
                                                                        : "the lattice has too many rows or columns";
}

std::string units_beyond(Index units, Index most) {
  return units <= most ? "" : fmt::format("a layer of the RBM has {} units, and there it may have {}", units, most);
}

std::string why_no_rbm_gibbs(const Model& model, const Sampler&) {
  const Rbm& rbm = *std::get<std::shared_ptr<const Rbm>>(model.description);
  return units_beyond(std::max(rbm.num_variables(), rbm.num_hidden()), CudaRbmGibbsChains::kMostUnits);
}

std::string why_no_informed_rbm(const Model& model, const Sampler&) {
  const Rbm& rbm = *std::get<std::shared_ptr<const Rbm>>(model.description);
  return units_beyond(rbm.num_variables(), CudaGradientChains::kMostVariables);
}

std::string why_no_user_target(const Model& model, const Sampler&) {
  const BatchTarget& target = *std::get<CallbackDescription>(model.description).target;
  const std::vector<Index>& levels = target.shape().cardinalities;
  const auto other = std::find_if(levels.begin(), levels.end(), [](Index count) { return count != 2; });
  if (other != levels.end()) {
    return fmt::format("variable {} has {} {}, and there all must have two", other - levels.begin(), *other,
                       *other == 1 ? "level" : "levels");
  }
  if (levels.size() > CudaGradientChains::kMostVariables) {
    return fmt::format("the target has {} variables, and there it may have {}", levels.size(),
                       CudaGradientChains::kMostVariables);
  }
  if (!target.function().has_gradient()) return "the target has no gradient of log p, which this sampler needs";
  std::string why;
  static_cast<void>(target.function().device_function(why));
  return why;
}

std::string why_no_rungs(const Model& model, const Sampler& sampler) {
  return why_not(Device::cuda, model, tempered_sampler(model, sampler));
}

/// Measured (docs/gpu.md): what launches take however few chains there are.
template <int microseconds>
double takes(const Model&, const Sampler&, const Load&) {
  return 1e-6 * microseconds;
}
/// User code is where it is: what it would have to copy to the host and back costs more than it could save.
double takes_nothing(const Model&, const Sampler&, const Load&) { return 0.0; }
/// A step is some hundred launches, and the host decides about swaps in between.
double takes_forever(const Model&, const Sampler&, const Load&) { return std::numeric_limits<double>::infinity(); }

constexpr const char* kSame = "bitwise identical to the CPU";
constexpr const char* kNearlySame = "those of the CPU, except about one update in 10^16";
constexpr const char* kSameSwaps = "those of the CPU, except about one swap in 10^12";
constexpr const char* kSameLaw = "the law of the CPU; draws depend on the seed and the chain's number alone";
constexpr const char* kSameLawSingle = "the same law; log p is in single precision where proposals are decided on";
constexpr const char* kSameLawUser = "the same law; log p is as your code gives it";
constexpr const char* kGibbs = "`gibbs` of single variables";
constexpr const char* kFlips = "`lb`, `lsb`, `lsb1`, `lsb2` of single variables";
constexpr const char* kInformed = "`gwg`, `flsb`, `flsb1`, `flsb2`, `dlmc`, `dlsb`, `dmala`";

void add_rows(EngineTable& table) {
  table.gpu = GpuBackend{find_cuda_devices, allocate_on_cuda, make_cuda_rbm_updates};
  const EngineRow rows[] = {
      {Device::cuda, kGibbs, "Ising lattices of any size, and graphs in which no variable has more than six neighbours",
       kSame, is_ising, is_gibbs, why_no_bits, takes<8>, make_cuda_bits},
      {Device::cuda, kGibbs,
       "networks (any number of levels, zeros, evidence, Potts models) and Ising models on graphs, with up to 32 terms "
       "an "
       "update on average",
       kNearlySame, has_heat, is_gibbs, why_no_lanes, takes<11>, make_cuda_lanes},
      {Device::cuda, kFlips, "Ising lattices of at most 64 rows and columns", kSameLaw, is_lattice, is_flip,
       why_no_small_lattice, takes<1>, make_cuda_flips},
      {Device::cuda, kFlips, "Ising models on larger lattices, and on graphs of any size and degree", kSameLaw,
       is_ising, is_flip, nullptr, takes<1>, make_cuda_graph_flips},
      {Device::cuda, "`temper` of `gibbs`", "networks and Ising models, as for `gibbs`", kNearlySame, has_heat,
       tempers<is_gibbs>, why_no_lanes, takes<22>, make_cuda_tempered},
      {Device::cuda, "`temper` of `lb` and kin", "Ising lattices and graphs", "the law of the CPU", is_ising,
       tempers<is_any>, why_no_rungs, takes_forever, make_cuda_tempered},
      {Device::cuda, "`rbm-gibbs`", "RBMs of at most 65536 units in either layer", kSame, is_rbm, is_rbm_gibbs,
       why_no_rbm_gibbs, takes<8>, make_cuda_rbm_gibbs},
      {Device::cuda, "`temper` of `rbm-gibbs`", "the same RBMs", kSameSwaps, is_rbm, tempers<is_rbm_gibbs>,
       why_no_rbm_gibbs, takes<64>, make_cuda_tempered_rbm},
      {Device::cuda, kInformed, "RBMs of at most 65536 visible units", kSameLawSingle, is_rbm, is_informed,
       why_no_informed_rbm, takes<8>, make_cuda_rbm},
      {Device::cuda, kInformed,
       "targets of your own in Python whose code is on the GPU (PyTorch, JAX), of at most 65536 variables of two "
       "values "
       "each",
       kSameLawUser, is_callback, is_informed, why_no_user_target, takes_nothing, make_cuda_user},
  };
  table.rows.insert(table.rows.end(), std::begin(rows), std::end(rows));
}

}  // namespace

}  // namespace poise

extern "C" __attribute__((visibility("default"))) const char* poise_add_cuda(const char* version,
                                                                             poise::EngineTable& table) {
  if (std::strcmp(version, POISE_VERSION) != 0) return "it is of another version of poise";
  poise::add_rows(table);
  return nullptr;
}
