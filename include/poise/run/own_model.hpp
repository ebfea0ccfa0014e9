/// A model from a C++ target of your own: every sampler there is runs on it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <poise/run/model.hpp>
#include <poise/run/samplers.hpp>

namespace poise {

/// What a target says of its model, all but the description.
template <Target T>
Model describe_model(std::string name, const T& target, VariableLayout layout = {}) {
  Model model;
  model.name = std::move(name);
  model.layout = std::move(layout);
  model.layout.variables = target.num_variables();
  model.linear = SparseTarget<T>;
  if constexpr (requires { target.statistic_names(); }) model.statistics = target.statistic_names();
  if (model.layout.cardinalities.empty() && model.layout.observed.empty()) {
    bool binary = true;
    std::vector<Index> cardinalities(target.num_variables());
    for (Index i = 0; i < target.num_variables(); ++i) {
      cardinalities[i] = target.cardinality(i);
      binary = binary && cardinalities[i] == 2;
    }
    if (!binary) model.layout.cardinalities = std::move(cardinalities);
  }
  return model;
}

template <Target T>
class OwnDescriptionOf final : public OwnDescription {
 public:
  explicit OwnDescriptionOf(std::shared_ptr<const T> target) : target_(std::move(target)) {}
  [[nodiscard]] TunableEngine make_engine(const Sampler& sampler, const EngineOptions& options) const override {
    return poise::make_engine<T>(target_, sampler, options);
  }

 private:
  std::shared_ptr<const T> target_;
};

/// The target is shared by all chains and never changed.
template <Target T>
Model own_model(std::string name, std::shared_ptr<const T> target, VariableLayout layout = {}) {
  static_assert(!SingleThreadTarget<T>, "a target for one thread only is made a model by callback_model");
  Model model = describe_model(std::move(name), *target, std::move(layout));
  model.description = std::make_shared<const OwnDescriptionOf<T>>(std::move(target));
  return model;
}

}  // namespace poise
