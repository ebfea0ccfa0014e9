/// The table of engines: what runs where, how fast, and how it is made.
///
/// Rows of the CPU and of the GPU lie in one list, which is assembled when it is first asked for. The GPU back end is a
/// library of its own, which adds its rows and functions by one call where it is installed. Dispatch, `--device auto`,
/// refusals, `poise devices` and the table in docs/gpu.md read this list.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <poise/devices.hpp>
#include <poise/extend/engines/engine.hpp>
#include <poise/extend/engines/tuner.hpp>
#include <poise/model.hpp>
#include <poise/sampler.hpp>
#include "engines/common/rbm_updates.hpp"

namespace poise {

/// How many chains run, and with how many threads on the CPU.
struct Load {
  double chains = 1.0;
  double threads = 1.0;
};

/// One way to run chains on a device.
struct EngineRow {
  Device device = Device::cpu;
  /// What users read: names of samplers, models, and how draws compare with those of the CPU.
  const char* samplers = "";
  const char* models = "";
  const char* draws = "";

  bool (*takes_model)(const Model& model) = nullptr;
  bool (*takes_sampler)(const Model& model, const Sampler& sampler) = nullptr;
  /// Why this model is beyond the row's limits although both model and sampler are of its kind, as a clause; empty
  /// where it is not. Null: the row has no limits.
  std::string (*why_not)(const Model& model, const Sampler& sampler) = nullptr;
  /// About how long a sweep, or a step of samplers that have no sweeps, of all chains takes. Rows of two devices are
  /// compared by it; a GPU takes the time of its launches however few chains there are.
  double (*seconds)(const Model& model, const Sampler& sampler, const Load& load) = nullptr;
  TunableEngine (*make)(const Model& model, const Sampler& sampler, const EngineOptions& options) = nullptr;

  [[nodiscard]] bool runs(const Model& model, const Sampler& sampler) const;
};

/// What a GPU back end has besides engines.
struct GpuBackend {
  /// The GPUs that can be used; where there are none, `why` says so in a sentence.
  std::vector<CudaDevice> (*devices)(std::string& why) = nullptr;
  /// Memory on the GPU. Throws an InputError where it has too little.
  std::shared_ptr<void> (*allocate)(std::size_t bytes) = nullptr;
  std::unique_ptr<RbmUpdates> (*make_rbm_updates)(Index visible, Index hidden,
                                                  const RbmUpdates::Options& options) = nullptr;
};

struct EngineTable {
  std::vector<EngineRow> rows;  ///< the first of a device that runs a sampler on a model makes its chains
  std::optional<GpuBackend> gpu;
  std::string why_no_gpu;  ///< where there is none, as a sentence
};

inline constexpr const char* kCudaLibrary = "libpoise_cuda.so";
inline constexpr const char* kAddCuda = "poise_add_cuda";

/// Adds the rows of the CUDA back end; gives the reason, as the end of a sentence, where it is of another version.
/// Both sides must have been compiled from the same sources: the table and all that engines hold cross the border.
using AddCuda = const char*(const char* version, EngineTable& table);

[[nodiscard]] const EngineTable& engine_table();

/// Chains of a sampler on a model, on the device of the options. Throws an InputError where they do not run there.
[[nodiscard]] TunableEngine make_engine(const Model& model, const Sampler& sampler, const EngineOptions& options);

/// Where so many chains run faster, with so many threads on the CPU; 0 threads are all cores.
[[nodiscard]] Device faster_device(const Model& model, const Sampler& sampler, std::size_t chains, unsigned threads);

/// Why a sampler of a model does not run on a device, as a clause; empty where it does. Does not look for a GPU.
[[nodiscard]] std::string why_not(Device device, const Model& model, const Sampler& sampler);

/// Throws an InputError where no GPU can be used, or where this sampler of this model does not run on one.
void require_cuda(const Model& model, const Sampler& sampler);

/// The table for users, in Markdown.
[[nodiscard]] std::string describe(const std::vector<EngineRow>& rows);

// What rows of several devices ask of models and samplers.

[[nodiscard]] bool is_ising(const Model& model);
[[nodiscard]] bool is_rbm(const Model& model);
/// Whether Gibbs has its chains as bits.
[[nodiscard]] bool has_bits(const Model& model);
/// Whether Gibbs can have its chains, or replicas of ladders, across lanes.
[[nodiscard]] bool has_lanes(const Model& model);
/// Whether a step is a locally balanced flip of one variable.
[[nodiscard]] bool flips_one(const Sampler& sampler);

// Measured (docs/gpu.md): updates a core makes in a second. A flip takes it some 140 nanoseconds, whatever the model.
inline constexpr double kBitUpdatesOfACore = 2e9;
inline constexpr double kLaneUpdatesOfACore = 6000.0 / 11e-6;
inline constexpr double kFlipsOfACore = 7e6;
inline constexpr double kRbmWeightsOfACore = 5e10;
/// A ladder has so many replicas or more, and those of an RBM make four sweeps a step.
inline constexpr double kReplicas = 16.0;
inline constexpr double kRbmSweepsOfAStep = 4.0;

}  // namespace poise
