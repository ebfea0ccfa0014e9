/// Balancing functions with parameters: each gives phi on the grid of BalanceTable and takes gradients back from there.
///
/// Working on the grid makes learning cost the same for every function: a state deposits its gradient on grid points,
/// and only the pooled result goes through the function.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include <poise/extend/learning/balancing_function.hpp>

namespace poise {

class LearnedFunction {
 public:
  virtual ~LearnedFunction() = default;

  [[nodiscard]] std::span<double> parameters() { return parameters_; }
  [[nodiscard]] std::span<const double> parameters() const { return parameters_; }

  /// phi at |u| = points[k], up to a constant.
  virtual void phi(std::span<const double> points, std::span<double> out) const = 0;

  /// Adds sum_k weights[k] * d phi(points[k]) / d theta to `out`.
  virtual void backward(std::span<const double> points, std::span<const double> weights,
                        std::span<double> out) const = 0;

  /// The function as it is now, frozen: exactly balanced and as cheap to evaluate as a fixed one.
  [[nodiscard]] std::shared_ptr<const BalanceTable> freeze() const;
  /// The same as kernels take it: a table, or a closed form where there is one.
  [[nodiscard]] virtual BalancingFunction function() const { return BalancingFunction(freeze()); }
  /// After parameters were changed.
  virtual void keep_in_bounds() {}

 protected:
  explicit LearnedFunction(std::size_t parameters) : parameters_(parameters, 0.0) {}
  std::vector<double> parameters_;
};

/// The grid of BalanceTable as a list of points.
std::span<const double> balance_grid();

/// LSB 1: g = sum_i w_i g_i over sqrt, barker, min and max; weights are the softmax of the parameters.
class MixtureFunction final : public LearnedFunction {
 public:
  MixtureFunction() : LearnedFunction(4) {}
  void phi(std::span<const double> points, std::span<double> out) const override;
  void backward(std::span<const double> points, std::span<const double> weights, std::span<double> out) const override;
};

/// The default: phi is a quadratic spline in |u| with slope tanh(theta_k)/2 at knot k, so g is monotone by construction
/// (slope -1/2 is min{1,t}, +1/2 is max{1,t}).
class SplineFunction final : public LearnedFunction {
 public:
  static constexpr std::array<double, 6> kKnots = {0.0, 1.0, 2.0, 4.0, 8.0, 16.0};

  SplineFunction() : LearnedFunction(kKnots.size()) {}
  void phi(std::span<const double> points, std::span<double> out) const override;
  void backward(std::span<const double> points, std::span<const double> weights, std::span<double> out) const override;
};

/// A function together with its level, the log of the step length of proposals that change many variables. The level is
/// the last parameter; without a family the function is a fixed one, and the level all that is learned.
class LevelledFunction final : public LearnedFunction {
 public:
  explicit LevelledFunction(BalancingFunction::Kind kind) : LearnedFunction(1), kind_(kind) {}
  explicit LevelledFunction(std::unique_ptr<LearnedFunction> family);

  [[nodiscard]] double& level() { return parameters_.back(); }
  void set_most_level(double most) { most_level_ = most; }
  void keep_in_bounds() override { level() = std::min(level(), most_level_); }
  void phi(std::span<const double> points, std::span<double> out) const override;
  void backward(std::span<const double> points, std::span<const double> weights, std::span<double> out) const override;
  [[nodiscard]] BalancingFunction function() const override;

 private:
  /// The family at the present parameters.
  [[nodiscard]] LearnedFunction& family() const;

  double most_level_ = std::numeric_limits<double>::infinity();
  BalancingFunction::Kind kind_ = BalancingFunction::Kind::sqrt;
  std::unique_ptr<LearnedFunction> family_;
};

/// LSB 2: g(t) = (h(t) + t h(1/t)) / 2 with h > 0 a network; subclasses say what log h is.
class NetworkFunction : public LearnedFunction {
 public:
  void phi(std::span<const double> points, std::span<double> out) const override;
  void backward(std::span<const double> points, std::span<const double> weights, std::span<double> out) const override;

 protected:
  using LearnedFunction::LearnedFunction;
  /// log h(e^u).
  [[nodiscard]] virtual double log_h(double u) const = 0;
  /// Adds weight * d log h(e^u) / d theta.
  virtual void add_gradient(double u, double weight, std::span<double> out) const = 0;
};

/// One hidden layer of rectified units on t/(1+t) - 1/2, softplus output.
class MlpFunction final : public NetworkFunction {
 public:
  explicit MlpFunction(int hidden = 10);

 protected:
  [[nodiscard]] double log_h(double u) const override;
  void add_gradient(double u, double weight, std::span<double> out) const override;

 private:
  int hidden_;
};

/// A monotone network (Sill 1998): log h is the minimum over blocks of the maximum over units of increasing lines in u.
class MonotoneFunction final : public NetworkFunction {
 public:
  explicit MonotoneFunction(int blocks = 20, int units = 20);

 protected:
  [[nodiscard]] double log_h(double u) const override;
  void add_gradient(double u, double weight, std::span<double> out) const override;

 private:
  [[nodiscard]] int active_unit(double u) const;
  int blocks_;
  int units_;
};

/// Fits a function to a fixed one by least squares on log g (Adam); returns the root mean square error of log g.
double fit(LearnedFunction& function, BalancingFunction::Kind target, int steps);

}  // namespace poise
