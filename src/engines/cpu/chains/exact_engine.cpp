/// Independent draws by a junction tree, on every kind of model that has one.
#include <fmt/format.h>

#include <poise/extend/engines/engine_of.hpp>
#include <poise/extend/engines/samplers.hpp>
#include "engines/cpu/chains/engines.hpp"
#include "exact/junction_tree.hpp"
#include "kernels/exact_draws.hpp"
#include "models/as_network.hpp"
#include "models/ising/graph_ising.hpp"
#include "models/ising/lattice_ising.hpp"
#include "models/network/markov_network.hpp"
#include "models/rbm/rbm.hpp"
#include "models/selection/selection_target.hpp"
#include "models/user/batch_target.hpp"

namespace poise {

namespace {

template <class T>
const std::shared_ptr<const T>& target_of(const std::shared_ptr<const T>& target) {
  return target;
}
std::shared_ptr<const MarkovNetwork> target_of(const NetworkDescription& network) { return network.target; }
std::shared_ptr<const BatchTarget> target_of(const CallbackDescription& callback) { return callback.target; }

}  // namespace

std::string lacks_junction_tree(const Model& model) {
  if (std::holds_alternative<std::shared_ptr<const OwnDescription>>(model.description)) return ExactRow::refusal;
  const bool has_tables = std::holds_alternative<NetworkDescription>(model.description) ||
                          std::holds_alternative<std::shared_ptr<const LatticeIsing>>(model.description) ||
                          std::holds_alternative<std::shared_ptr<const GraphIsing>>(model.description);
  return has_tables || number_of_states(model) <= kMostTabledStates ? "" : ExactRow::refusal;
}

TunableEngine make_exact_engine(const Model& model, const Sampler& sampler, const EngineOptions& options) {
  const std::shared_ptr<const Network> network = as_network(model);
  if (network == nullptr) throw InputError(ExactRow::refusal);
  constexpr double gibibyte = 1024.0 * 1024.0 * 1024.0;
  const double limit = sampler.settings.memory * gibibyte;
  const auto tree =
      std::make_shared<const JunctionTree>(*network, plan_elimination(*network, {.memory_limit = limit}),
                                           ExactOptions{.memory_limit = limit, .marginals = false, .progress = {}});
  return std::visit(
      [&]<class D>(const D& description) -> TunableEngine {
        if constexpr (std::is_same_v<D, std::shared_ptr<const OwnDescription>>) {
          throw InputError(ExactRow::refusal);
        } else {
          const auto target = target_of(description);
          using T = std::remove_const_t<typename std::decay_t<decltype(target)>::element_type>;
          return make_engine_of<T>(target, ExactDraws<T>(tree), options);
        }
      },
      model.description);
}

}  // namespace poise
