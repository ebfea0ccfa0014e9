/// The model of a target, as far as the target itself can tell it: variables, levels and statistics.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <poise/extend/base/concepts.hpp>
#include <poise/model.hpp>

namespace poise {

/// What a target says of its model, all but the description.
template <Target T>
Model describe_model(std::string name, const T& target, VariableLayout layout = {}) {
  Model model;
  model.name = std::move(name);
  model.layout = std::move(layout);
  model.layout.variables = target.num_variables();
  model.sparse = SparseTarget<T>;
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

}  // namespace poise
