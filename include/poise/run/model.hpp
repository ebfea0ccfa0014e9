/// A model as the runner and the program see it: a name, a layout, and a way to make chains.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <poise/kernel/block_gibbs.hpp>
#include <poise/kernel/gibbs.hpp>
#include <poise/kernel/hamming_ball.hpp>
#include <poise/kernel/informed_proposal.hpp>
#include <poise/kernel/locally_balanced.hpp>
#include <poise/network/network.hpp>
#include <poise/run/ensemble_of.hpp>
#include <poise/run/fiber_scheduler.hpp>
#include <poise/run/sampler.hpp>
#include <poise/target/batch_target.hpp>
#include <poise/target/ising_model.hpp>
#include <poise/target/rbm.hpp>
#include <poise/trace/trace.hpp>

namespace poise {

struct Model {
  std::string name;
  VariableLayout layout;
  std::vector<std::string> statistics;  ///< names of the model's own statistics
  /// The statistic that one would optimise, where the model comes from such a problem, and in which direction.
  std::string objective;
  bool maximise = true;
  std::function<std::unique_ptr<Ensemble>(const Sampler&, const EnsembleOptions&)> make_ensemble;

  /// Set where chains take turns on one thread, because log p of all of them is computed in one call.
  std::shared_ptr<FiberScheduler> fibers;

  std::vector<double> observed;  ///< the image behind a segmentation model; may be empty

  /// Whether log p is linear in every variable, the others given: first-order ratios are then the exact ones.
  bool linear = false;
  /// Makes a state one of positive probability, near the given one; throws InputError where it cannot. Empty where
  /// every state has positive probability.
  std::function<std::vector<Value>(std::vector<Value>, Rng)> into_support;
  /// Levels of each variable that zeros in the tables do not function out by themselves; empty where nothing is ruled
  /// out. A variable that could take several but is frozen at one has chains that do not see the whole distribution.
  std::vector<Index> possible_levels;

  [[nodiscard]] Index possible(Index i) const {
    return possible_levels.empty() ? layout.levels(i) : possible_levels[i];
  }
};

/// The one factory from sampler names to kernel types, for any target.
template <Target T>
std::unique_ptr<Ensemble> make_ensemble(std::shared_ptr<const T> target, const Sampler& sampler,
                                        const EnsembleOptions& options) {
  if (sampler.kind == Sampler::Kind::exact) {
    throw InputError(
        "the sampler 'exact' takes networks only (.uai and .bif files, and potts), and this model is none");
  }
  if (sampler.kind == Sampler::Kind::rbm_gibbs) {
    throw InputError("the sampler 'rbm-gibbs' takes restricted Boltzmann machines only, and this model is none");
  }
  if (target->num_moves() == 0) throw InputError("there is nothing to sample: no variable has more than one level");
  switch (sampler.kind) {
    case Sampler::Kind::gibbs: return std::make_unique<EnsembleOf<T, Gibbs<T>>>(std::move(target), Gibbs<T>(), options);
    case Sampler::Kind::block_gibbs:
      return std::make_unique<EnsembleOf<T, BlockGibbs<T>>>(std::move(target), BlockGibbs<T>(sampler.block), options);
    case Sampler::Kind::hamming_ball:
      return std::make_unique<EnsembleOf<T, HammingBall<T>>>(std::move(target),
                                                             HammingBall<T>(sampler.block, sampler.radius), options);
    default: break;
  }
  if constexpr (SparseTarget<T>) {
    // On the sparse targets there are, log p is linear in every variable: first-order ratios are the exact ones.
    return std::make_unique<EnsembleOf<T, LocallyBalanced<T>>>(
        std::move(target), LocallyBalanced<T>(BalancingFunction(sampler.function)), options);
  } else {
    const Ratios ratios = sampler.first_order ? Ratios::first_order : Ratios::exact;
    return std::make_unique<EnsembleOf<T, InformedProposal<T>>>(
        std::move(target), InformedProposal<T>(BalancingFunction(sampler.function), ratios), options);
  }
}

/// What a target says of its model, all but the way to make chains.
template <Target T>
Model describe_model(std::string name, std::shared_ptr<const T> target, VariableLayout layout = {}) {
  Model model;
  model.name = std::move(name);
  model.layout = std::move(layout);
  model.layout.variables = target->num_variables();
  model.linear = SparseTarget<T>;
  if constexpr (requires { target->statistic_names(); }) model.statistics = target->statistic_names();
  if (model.layout.cardinalities.empty() && model.layout.observed.empty()) {
    bool binary = true;
    std::vector<Index> cardinalities(target->num_variables());
    for (Index i = 0; i < target->num_variables(); ++i) {
      cardinalities[i] = target->cardinality(i);
      binary = binary && cardinalities[i] == 2;
    }
    if (!binary) model.layout.cardinalities = std::move(cardinalities);
  }
  return model;
}

/// A model from a target of your own. The target is shared by all chains and never changed.
template <Target T>
Model make_model(std::string name, std::shared_ptr<const T> target, VariableLayout layout = {}) {
  Model model = describe_model(std::move(name), target, std::move(layout));
  model.make_ensemble = [target](const Sampler& sampler, const EnsembleOptions& options) {
    return make_ensemble<T>(target, sampler, options);
  };
  return model;
}

/// The model that numbers of an Ising model stand for.
Model make_model(IsingModel ising);

/// The model of a network. Where its tables hold zeros, chains start from states that were repaired.
Model make_model(const std::shared_ptr<const Network>& network);

/// The model of a target that is computed elsewhere, for all chains in one call. `layout` has the names and labels.
Model make_model(std::string name, BatchShape shape, std::shared_ptr<BatchFunction> function, VariableLayout layout);

/// The model of a restricted Boltzmann machine.
Model make_model(std::string name, const std::shared_ptr<const Rbm>& machine);

/// Files that go with a model and have options of their own.
struct ModelFiles {
  std::string field;     ///< of an Ising model: an image or numbers
  std::string evidence;  ///< of a network
};

/// A model by its name on the command line: a spec such as "ising:size=64,lambda=0.4", or a file by its ending. Throws
/// InputError.
Model make_model(const std::string& text, const ModelFiles& files = {});

/// The same from a spec that is no text any more: values may hold any character. Not for `potts`, which is a network.
Model make_model(const Spec& spec, const ModelFiles& files = {});

/// Whether `text` names a model that `make_network` gives as a network.
[[nodiscard]] bool has_network(const std::string& text);

/// The same model as a network with its evidence, for exact inference: a `.uai` or `.bif` file, `potts` or `ising`.
[[nodiscard]] Network make_network(const std::string& text, const ModelFiles& files = {});

/// The models there are, a line of help each.
const std::vector<NameHelp>& model_help();

}  // namespace poise
