/// Locally balanced single flips on Ising lattices, on a GPU, as an engine.
///
/// Chains are moved on and observed on the GPU. A function is learned from their states by the tuner of chains on the
/// CPU, which are put at these states when it looks at them.
#pragma once

#include <poise/model.hpp>
#include "models/ising/lattice_ising.hpp"
#include <poise/extend/engines/tuner.hpp>
#include <poise/sampler.hpp>

namespace poise {

[[nodiscard]] TunableEngine make_cuda_flips(const std::shared_ptr<const LatticeIsing>& target, const Sampler& sampler,
                                            const EngineOptions& options);

}  // namespace poise
