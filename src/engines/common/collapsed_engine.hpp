/// Chains on what is left of a network after variables were summed out, seen as chains on the whole network.
///
/// Nothing that moves chains knows of it. An observed chain has a state of all variables: those that were
/// summed out are drawn from their conditionals, the same ones however often one looks, for their random numbers
/// follow from the chain and its step.
#pragma once

#include <functional>
#include <memory>

#include <poise/extend/engines/tuner.hpp>
#include <poise/model.hpp>
#include "exact/collapse.hpp"

namespace poise {

/// `make` makes the chains on the core, whose starts are those of `options` there. Where nothing is left of the network
/// every step is an independent draw, and `make` is not called.
[[nodiscard]] TunableEngine make_collapsed_engine(
    const std::shared_ptr<const Collapse>& collapse, const NetworkDescription& whole, const EngineOptions& options,
    const std::function<TunableEngine(const NetworkDescription& core, const EngineOptions& options)>& make);

}  // namespace poise
