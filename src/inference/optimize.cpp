/// The best state of a model: what finds it, by the kind of the model.
#include <poise/optimize.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <poise/network.hpp>
#include "inference/optimize_network.hpp"

#include "inference/optimize/best_draw.hpp"
#include "inference/optimize/spin_goal.hpp"

namespace poise {

namespace {

constexpr double kSeconds = 10.0;  // where there is no limit

/// Throws an InputError with everything that is wrong.
void check(const Model& model, const OptimizeOptions& options, const OptimizeStart& start) {
  std::vector<std::string> problems;
  if (options.device == Device::cuda)
    problems.emplace_back("--device: found cuda, but the search runs on the CPU only");
  if (options.seconds && !(*options.seconds > 0.0)) {
    problems.push_back(fmt::format("--seconds: found {}, expected a positive number", *options.seconds));
  }
  if (options.sweeps && *options.sweeps == 0) problems.emplace_back("--sweeps: found 0, expected at least 1");
  if (options.solutions == 0) problems.emplace_back("--solutions: found 0, expected at least 1");
  if (options.target && std::isnan(*options.target)) problems.emplace_back("--target: found nan, expected a number");
  const Index n = model.layout.variables;
  for (const std::vector<Value>& state : start.states) {
    if (state.size() != n) {
      problems.push_back(fmt::format("--init: found a state of {} variables, expected {}", state.size(), n));
      break;
    }
    const auto wrong = [&](Index i) { return state[i] >= model.layout.cardinality(i); };
    for (Index i = 0; i < n; ++i) {
      if (!wrong(i)) continue;
      problems.push_back(fmt::format("--init: found level {} of variable {}, expected one below {}", state[i], i,
                                     model.layout.cardinality(i)));
      break;
    }
  }
  if (!start.fixed.empty() && start.fixed.size() != n) {
    problems.push_back(fmt::format("--fix: found {} variables, expected {}", start.fixed.size(), n));
  }
  for (Index i = 0; i < n && start.fixed.size() == n; ++i) {
    if (!start.fixed[i] || *start.fixed[i] < model.layout.cardinality(i)) continue;
    problems.push_back(fmt::format("--fix: found level {} of variable {}, expected one below {}", *start.fixed[i], i,
                                   model.layout.cardinality(i)));
  }
  if (!problems.empty()) throw InputError(fmt::format("{}", fmt::join(problems, "; ")));
}

}  // namespace

OptimizeAnswer find_best(const Model& model, const OptimizeOptions& options, const OptimizeStart& start,
                         const OptimizeHooks& hooks) {
  check(model, options, start);
  OptimizeOptions limited = options;
  if (!limited.seconds && !limited.sweeps) limited.seconds = kSeconds;
  const auto find = [&] {
    const Wanted wanted = limited.solutions > 1 ? Wanted::list : Wanted::one;
    if (const std::optional<SpinGoal> goal = spin_goal(model, wanted, start.fixed))
      return find_best_spins(*goal, limited, start, hooks);
    if (const auto* network = std::get_if<NetworkDescription>(&model.description)) {
      return find_best_of_network(model, *network->network, limited, start, hooks);
    }
    return find_best_draw(model, limited, start, hooks);
  };
  OptimizeAnswer answer = find();
  answer.model = model.name;
  return answer;
}

}  // namespace poise
