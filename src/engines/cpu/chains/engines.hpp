/// Engines of the built-in targets, each compiled in a file of its own: every kernel there is on one target takes long.
#pragma once

#include <poise/model.hpp>
#include <poise/extend/engines/tuner.hpp>
#include <poise/sampler.hpp>

namespace poise {

TunableEngine make_engine(const std::shared_ptr<const LatticeIsing>& target, const Sampler& sampler,
                          const EngineOptions& options);
TunableEngine make_engine(const std::shared_ptr<const GraphIsing>& target, const Sampler& sampler,
                          const EngineOptions& options);
TunableEngine make_engine(const NetworkDescription& network, const Sampler& sampler, const EngineOptions& options);
TunableEngine make_engine(const std::shared_ptr<const Rbm>& target, const Sampler& sampler,
                          const EngineOptions& options);
TunableEngine make_engine(const CallbackDescription& target, const Sampler& sampler, const EngineOptions& options);
TunableEngine make_engine(const std::shared_ptr<const OwnDescription>& target, const Sampler& sampler,
                          const EngineOptions& options);

}  // namespace poise
