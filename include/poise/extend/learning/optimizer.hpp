/// First-order optimisers over a flat parameter vector.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <poise/extend/base/hot.hpp>
#include <poise/sampler.hpp>

namespace poise {

/// One step of Adam (Kingma and Ba 2015), for learned balancing functions and for training alike.
///
/// The corrections of the moments are the same for all parameters of a step.
template <class Real>
class AdamStep {
 public:
  /// Step number `updates`, counted from 1; up the gradient, or down where the rate is negative.
  AdamStep(double rate, std::uint64_t updates)
      : scale_(static_cast<Real>(rate / (1.0 - std::pow(kFirstDecay, static_cast<double>(updates))))),
        second_correction_(static_cast<Real>(1.0 / (1.0 - std::pow(kSecondDecay, static_cast<double>(updates))))) {}

  void apply(Real* __restrict parameters, Real* __restrict first, Real* __restrict second,
             const Real* __restrict gradient, std::size_t count) const {
    hot([=, scale = scale_, correction = second_correction_] {
      constexpr auto fresh_first = static_cast<Real>(1.0 - kFirstDecay);
      constexpr auto fresh_second = static_cast<Real>(1.0 - kSecondDecay);
      for (std::size_t i = 0; i < count; ++i) {
        const Real g = gradient[i];
        const Real m = first[i] + fresh_first * (g - first[i]);
        const Real s = second[i] + fresh_second * (g * g - second[i]);
        first[i] = std::abs(m) < kTiny ? Real{0} : m;
        second[i] = s < kTiny ? Real{0} : s;
        parameters[i] += scale * m / (std::sqrt(s * correction) + kEpsilon);
      }
    });
  }

  [[nodiscard]] Real scale() const { return scale_; }
  [[nodiscard]] Real second_correction() const { return second_correction_; }

  static constexpr double kFirstDecay = 0.9;
  static constexpr double kSecondDecay = 0.999;
  static constexpr Real kEpsilon = static_cast<Real>(1e-8);
  /// Moments of a parameter that never changes shrink step by step. They end at zero before they become denormal, which
  /// processors are slow at.
  static constexpr Real kTiny = static_cast<Real>(1e-30);

 private:
  Real scale_;              // rate / correction of the first moment
  Real second_correction_;  // 1 / correction of the second
};

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
