/// First-order optimisers over a flat parameter vector.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <poise/extend/learning/adam.hpp>

namespace poise {

enum class OptimizerKind { adam, sgd };

/// Adam (Kingma and Ba 2015), or gradient descent with momentum 0.9.
class Optimizer {
 public:
  Optimizer(OptimizerKind kind, double rate, std::size_t size)
      : kind_(kind), rate_(rate), first_(size, 0.0), second_(size, 0.0) {}

  /// One step down the gradient, at `fraction` of the full rate.
  void step(std::span<double> parameters, std::span<const double> gradient, double fraction = 1.0) {
    ++steps_;
    if (kind_ == OptimizerKind::sgd) {
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        first_[i] = kMomentum * first_[i] + gradient[i];
        parameters[i] -= fraction * rate_ * first_[i];
      }
      return;
    }
    AdamStep<double>(-fraction * rate_, steps_)
        .apply(parameters.data(), first_.data(), second_.data(), gradient.data(), parameters.size());
  }

  template <class A>
  void archive(A& archive) {
    archive(steps_, first_, second_);
  }

 private:
  static constexpr double kMomentum = 0.9;

  OptimizerKind kind_;
  double rate_;
  std::size_t steps_ = 0;
  std::vector<double> first_;
  std::vector<double> second_;
};

}  // namespace poise
