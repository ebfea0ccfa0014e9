/// Ensembles of the built-in targets, each compiled in a file of its own: every kernel there is on one target takes
/// long.
#pragma once

#include <memory>

#include <poise/run/ensemble.hpp>
#include <poise/run/sampler.hpp>
#include <poise/target/graph_ising.hpp>
#include <poise/target/lattice_ising.hpp>
#include <poise/target/markov_network.hpp>
#include <poise/target/rbm.hpp>

namespace poise {

std::unique_ptr<Ensemble> lattice_ensemble(const std::shared_ptr<const LatticeIsing>& target, const Sampler& sampler,
                                           const EnsembleOptions& options);
std::unique_ptr<Ensemble> graph_ensemble(const std::shared_ptr<const GraphIsing>& target, const Sampler& sampler,
                                         const EnsembleOptions& options);
/// `network` is what the target was made from, for the sampler `exact`.
std::unique_ptr<Ensemble> network_ensemble(const Network& network, const std::shared_ptr<const MarkovNetwork>& target,
                                           const Sampler& sampler, const EnsembleOptions& options);
std::unique_ptr<Ensemble> rbm_ensemble(const std::shared_ptr<const Rbm>& target, const Sampler& sampler,
                                       const EnsembleOptions& options);

}  // namespace poise
