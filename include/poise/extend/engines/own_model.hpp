/// A model from a C++ target of your own, for the samplers that take any target (all but `exact`, `temper` and those of
/// one kind of model).
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <poise/extend/engines/samplers.hpp>
#include <poise/extend/models/describe_model.hpp>
#include <poise/model.hpp>

namespace poise {

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
