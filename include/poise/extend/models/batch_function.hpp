/// User code that computes log p of many states at once, for `callback_model` (poise/model.hpp).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <poise/extend/models/device_function.hpp>
#include <poise/types.hpp>

namespace poise {

/// The code that computes. Rows are states, `variables` levels each, one after another. What it throws ends the run.
class BatchFunction {
 public:
  virtual ~BatchFunction() = default;
  /// One number per row: -inf is legal, NaN and +inf are for the function to refuse.
  virtual void log_prob(std::span<const Value> rows, std::span<double> out) = 0;

  [[nodiscard]] virtual bool has_gradient() const { return false; }
  /// log p, and its derivatives by what stands for the levels: a number per variable, or with `one_hot` one for every
  /// level of every variable.
  virtual void gradient(std::span<const Value> /*rows*/, std::span<double> /*log_prob*/, std::span<double> /*out*/) {}
  [[nodiscard]] virtual bool one_hot() const { return false; }

  [[nodiscard]] virtual bool has_log_ratios() const { return false; }
  /// log p(x')/p(x) of all moves of every row, in the order of concepts.hpp.
  virtual void log_ratios(std::span<const Value> /*rows*/, std::span<double> /*out*/) {}

  /// The same code on the GPU where it lies; null where it does not, and then `why` says so in a clause.
  [[nodiscard]] virtual std::shared_ptr<DeviceFunction> device_function(std::string& why) const {
    why = "its code works on the CPU";
    return nullptr;
  }
};

/// What is to be sampled: variables, and the numbers that stand for their levels where derivatives are concerned.
struct BatchShape {
  std::vector<Index> cardinalities;
  std::vector<double> labels;  ///< of the levels; empty: 0, 1, 2, ...

  [[nodiscard]] double label(Value level) const { return labels.empty() ? level : labels[level]; }
};

}  // namespace poise
