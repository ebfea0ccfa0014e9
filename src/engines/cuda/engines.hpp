/// All engines on a GPU, and what else the back end has there: what its rows (engines/cuda/rows.cpp) are made of.
///
/// Those that say so have the draws of the CPU.
#pragma once

#include "engines/rows.hpp"

namespace poise {

/// Gibbs on Ising models with chains as bits, with the draws of the CPU.
TunableEngine make_cuda_bits(const Model& model, const Sampler& sampler, const EngineOptions& options);
/// Gibbs with chains across lanes, on models whose layout fits (`LaneModel::fits`), with the draws of the CPU.
TunableEngine make_cuda_lanes(const Model& model, const Sampler& sampler, const EngineOptions& options);
/// Single flips on small lattices, and on graphs and lattices of any size.
TunableEngine make_cuda_flips(const Model& model, const Sampler& sampler, const EngineOptions& options);
TunableEngine make_cuda_graph_flips(const Model& model, const Sampler& sampler, const EngineOptions& options);
/// Block Gibbs on RBMs, with the draws of the CPU.
TunableEngine make_cuda_rbm_gibbs(const Model& model, const Sampler& sampler, const EngineOptions& options);
/// Gradient-informed proposals on RBMs and on user targets.
TunableEngine make_cuda_rbm(const Model& model, const Sampler& sampler, const EngineOptions& options);
TunableEngine make_cuda_user(const Model& model, const Sampler& sampler, const EngineOptions& options);
/// Ladders across lanes or, with other samplers than Gibbs, rung by rung, with the draws of the CPU where the sampler
/// inside has them.
TunableEngine make_cuda_tempered(const Model& model, const Sampler& sampler, const EngineOptions& options);
/// Ladders of RBMs with `rbm-gibbs` at every rung, with the draws of the CPU.
TunableEngine make_cuda_tempered_rbm(const Model& model, const Sampler& sampler, const EngineOptions& options);

std::unique_ptr<RbmUpdates> make_cuda_rbm_updates(Index visible, Index hidden, const RbmUpdates::Options& options);

std::vector<CudaDevice> find_cuda_devices(std::string& why);
std::shared_ptr<void> allocate_on_cuda(std::size_t bytes);

}  // namespace poise
