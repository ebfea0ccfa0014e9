/// First-order optimisers over a flat parameter vector.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

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
    const double first_correction = 1.0 - std::pow(kFirstDecay, static_cast<double>(steps_));
    const double second_correction = 1.0 - std::pow(kSecondDecay, static_cast<double>(steps_));
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      first_[i] += (1.0 - kFirstDecay) * (gradient[i] - first_[i]);
      second_[i] += (1.0 - kSecondDecay) * (gradient[i] * gradient[i] - second_[i]);
      const double size = std::sqrt(second_[i] / second_correction) + 1e-8;
      parameters[i] -= fraction * rate_ * (first_[i] / first_correction) / size;
    }
  }

  template <class A>
  void archive(A& archive) {
    archive(steps_, first_, second_);
  }

 private:
  static constexpr double kMomentum = 0.9;
  static constexpr double kFirstDecay = 0.9;
  static constexpr double kSecondDecay = 0.999;

  OptimizerKind kind_;
  double rate_;
  std::size_t steps_ = 0;
  std::vector<double> first_;
  std::vector<double> second_;
};

}  // namespace poise
