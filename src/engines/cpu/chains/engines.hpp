/// Engines of the built-in targets, each compiled in a file of its own: every kernel there is on one target takes long.
#pragma once

#include <poise/extend/engines/tuner.hpp>
#include <poise/model.hpp>
#include <poise/sampler.hpp>

namespace poise {

TunableEngine make_engine(const std::shared_ptr<const LatticeIsing>& target, const Sampler& sampler,
                          const EngineOptions& options);
TunableEngine make_engine(const std::shared_ptr<const GraphIsing>& target, const Sampler& sampler,
                          const EngineOptions& options);
TunableEngine make_engine(const NetworkDescription& network, const Sampler& sampler, const EngineOptions& options);
TunableEngine make_engine(const std::shared_ptr<const Rbm>& target, const Sampler& sampler,
                          const EngineOptions& options);
TunableEngine make_engine(const std::shared_ptr<const SelectionTarget>& target, const Sampler& sampler,
                          const EngineOptions& options);
TunableEngine make_engine(const CallbackDescription& target, const Sampler& sampler, const EngineOptions& options);
TunableEngine make_engine(const std::shared_ptr<const OwnDescription>& target, const Sampler& sampler,
                          const EngineOptions& options);

/// Independent draws by a junction tree. Throws InputError where the model has none, or it takes too much memory.
TunableEngine make_exact_engine(const Model& model, const Sampler& sampler, const EngineOptions& options);
/// Why there is none, as far as can be said without planning it; nothing where there is.
std::string lacks_junction_tree(const Model& model);

}  // namespace poise
