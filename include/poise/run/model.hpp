/// A model as the runner and the program see it: a name, a layout, and a way to make chains.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <poise/kernel/gibbs.hpp>
#include <poise/kernel/locally_balanced.hpp>
#include <poise/run/ensemble_of.hpp>
#include <poise/run/sampler.hpp>
#include <poise/target/ising_model.hpp>
#include <poise/trace/trace.hpp>

namespace poise {

struct Model {
  std::string name;
  VariableLayout layout;
  std::vector<std::string> statistics;  ///< names of the model's own statistics
  std::function<std::unique_ptr<Ensemble>(const Sampler&, const EnsembleOptions&)> make_ensemble;

  std::vector<double> observed;    ///< the image behind a segmentation model; may be empty
  std::vector<std::int8_t> truth;  ///< the true image where it is known; may be empty

  [[nodiscard]] Index cardinality(Index i) const { return layout.cardinalities.empty() ? 2 : layout.cardinalities[i]; }
};

/// The one factory from sampler names to kernel types, for any sparse target.
template <SparseTarget T>
std::unique_ptr<Ensemble> make_ensemble(std::shared_ptr<const T> target, const Sampler& sampler,
                                        const EnsembleOptions& options) {
  if (sampler.kind == Sampler::Kind::gibbs) {
    return std::make_unique<EnsembleOf<T, Gibbs<T>>>(std::move(target), Gibbs<T>(), options);
  }
  return std::make_unique<EnsembleOf<T, LocallyBalanced<T>>>(std::move(target),
                                                             LocallyBalanced<T>(Balance(sampler.rule)), options);
}

/// A model from a target of your own. The target is shared by all chains and never changed.
template <SparseTarget T>
Model make_model(std::string name, std::shared_ptr<const T> target, VariableLayout layout = {}) {
  Model model;
  model.name = std::move(name);
  model.layout = std::move(layout);
  model.layout.variables = target->num_variables();
  if constexpr (requires { T::statistic_names(); }) model.statistics = T::statistic_names();
  if (model.layout.cardinalities.empty()) {
    bool binary = true;
    std::vector<Index> cardinalities(target->num_variables());
    for (Index i = 0; i < target->num_variables(); ++i) {
      cardinalities[i] = target->cardinality(i);
      binary = binary && cardinalities[i] == 2;
    }
    if (!binary) model.layout.cardinalities = std::move(cardinalities);
  }
  model.make_ensemble = [target](const Sampler& sampler, const EnsembleOptions& options) {
    return make_ensemble<T>(target, sampler, options);
  };
  return model;
}

/// The model that numbers of an Ising model stand for.
Model make_model(IsingModel ising);

/// A model by its name on the command line, e.g. "ising:size=64,lambda=0.4". Throws InputError.
Model make_model(const std::string& spec, const std::string& field_path = {});

/// The models there are, a line of help each.
const std::vector<SamplerHelp>& model_help();

}  // namespace poise
