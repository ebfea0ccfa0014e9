/// Every kernel on targets that are computed elsewhere.
#include <poise/run/model.hpp>

#include <fmt/format.h>

namespace poise {

Model make_model(std::string name, BatchShape shape, std::shared_ptr<BatchFunction> function, VariableLayout layout) {
  const auto target = std::make_shared<BatchTarget>(std::move(shape), std::move(function));
  Model model = describe_model<BatchTarget>(std::move(name), target, std::move(layout));
  model.fibers = std::make_shared<FiberScheduler>([requests = target.get()] { requests->serve(); },
                                                  [requests = target.get()] { requests->forget(); });
  // The target outlives what waits for it: the model's function below holds both.
  target->set_wait([turns = model.fibers.get()] { turns->wait(); });
  model.make_ensemble = [target, turns = model.fibers](const Sampler& sampler, const EnsembleOptions& options) {
    if (sampler.first_order && !target->function().has_gradient()) {
      throw InputError(
          fmt::format("the sampler '{}' needs the gradient of log p, and this target has none", sampler.name));
    }
    return make_ensemble<BatchTarget>(target, sampler, options);
  };
  return model;
}

}  // namespace poise
