/// Tempered chains of a model: across lanes where single-site Gibbs goes across lanes, rung by rung elsewhere.
#pragma once

#include <poise/extend/engines/tuner.hpp>
#include <poise/model.hpp>
#include <poise/sampler.hpp>
#include "engines/cpu/lanes/lane_model.hpp"
#include "models/ising/graph_ising.hpp"
#include "models/network/markov_network.hpp"

namespace poise {

/// What moves the replicas of `temper`: what it is told, or the usual sampler of the model.
[[nodiscard]] Sampler tempered_sampler(const Model& model, const Sampler& sampler);

/// Makes ladders across lanes on one device.
struct LadderMaker {
  TunableEngine (*of_network)(const std::shared_ptr<const MarkovNetwork>& target, LaneSource source,
                              const EngineOptions& options);
  TunableEngine (*of_graph)(const std::shared_ptr<const GraphIsing>& target, LaneSource source,
                            const EngineOptions& options);

  [[nodiscard]] TunableEngine make(const std::shared_ptr<const MarkovNetwork>& target, LaneSource source,
                                   const EngineOptions& options) const {
    return of_network(target, std::move(source), options);
  }
  [[nodiscard]] TunableEngine make(const std::shared_ptr<const GraphIsing>& target, LaneSource source,
                                   const EngineOptions& options) const {
    return of_graph(target, std::move(source), options);
  }
};

/// Throws InputError where the model cannot be heated or the sampler does not fit it.
[[nodiscard]] TunableEngine make_tempered_engine(const Model& model, const Sampler& sampler,
                                                 const EngineOptions& options, const LadderMaker& maker);

/// The same with an engine for every rung, made by any sampler from the model heated to the rung's temperature.
[[nodiscard]] TunableEngine make_rung_engines(const Model& model, const Sampler& inner, const EngineOptions& options);

}  // namespace poise
