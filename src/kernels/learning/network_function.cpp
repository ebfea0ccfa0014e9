/// LSB 2: balancing functions made from a network h, g(t) = (h(t) + t h(1/t)) / 2; and fitting a learned function to a
/// fixed one.
#include <poise/extend/learning/learned_function.hpp>

#include <cmath>
#include <numbers>
#include <vector>

#include <poise/extend/base/math.hpp>
#include <poise/extend/base/rng.hpp>
#include <poise/extend/learning/optimizer.hpp>

namespace poise {

namespace {

/// Initial weights come from a fixed stream: a learned function starts the same in every run.
constexpr std::uint64_t kInitialSeed = 20220717;

double log_add(double a, double b) {
  const double largest = std::max(a, b);
  return largest + std::log1p(std::exp(-std::abs(a - b)));
}

/// log softplus(x), accurate where softplus underflows.
double log_softplus(double x) { return x < -30.0 ? x : std::log(softplus(x)); }

double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }

}  // namespace

void NetworkFunction::phi(std::span<const double> points, std::span<double> out) const {
  // log g = u/2 + phi with phi = log(e^-u/2 h(e^u) + e^u/2 h(e^-u)) - log 2, even in u.
  for (std::size_t k = 0; k < points.size(); ++k) {
    const double u = points[k];
    out[k] = log_add(-0.5 * u + log_h(u), 0.5 * u + log_h(-u)) - std::numbers::ln2;
  }
}

void NetworkFunction::backward(std::span<const double> points, std::span<const double> weights,
                               std::span<double> out) const {
  for (std::size_t k = 0; k < points.size(); ++k) {
    if (weights[k] == 0.0) continue;
    const double u = points[k];
    const double share = logistic(-u + log_h(u) - log_h(-u));  // of the term h(t)
    add_gradient(u, weights[k] * share, out);
    add_gradient(-u, weights[k] * (1.0 - share), out);
  }
}

// Parameters of the MLP: input weights, input biases, output weights (hidden_ each), output bias.
MlpFunction::MlpFunction(int hidden) : NetworkFunction(static_cast<std::size_t>(3 * hidden + 1)), hidden_(hidden) {
  Rng rng = make_rng(kInitialSeed, Stream::learned_function, 0);
  for (int j = 0; j < hidden_; ++j) {
    // Kinks spread over the input range [-1/2, 1/2].
    const double sign = j % 2 == 0 ? 1.0 : -1.0;
    const double kink = (j + rng.uniform()) / hidden_ - 0.5;
    parameters_[j] = sign * (1.0 + rng.uniform());
    parameters_[hidden_ + j] = -parameters_[j] * kink;
    parameters_[2 * hidden_ + j] = sign * rng.uniform();
  }
}

double MlpFunction::log_h(double u) const {
  const double input = 0.5 * std::tanh(0.5 * u);  // t/(1+t) - 1/2
  double output = parameters_[3 * hidden_];
  for (int j = 0; j < hidden_; ++j) {
    output += parameters_[2 * hidden_ + j] * std::max(0.0, parameters_[j] * input + parameters_[hidden_ + j]);
  }
  return log_softplus(output);
}

void MlpFunction::add_gradient(double u, double weight, std::span<double> out) const {
  const double input = 0.5 * std::tanh(0.5 * u);
  double output = parameters_[3 * hidden_];
  for (int j = 0; j < hidden_; ++j) {
    output += parameters_[2 * hidden_ + j] * std::max(0.0, parameters_[j] * input + parameters_[hidden_ + j]);
  }
  const double by_output = weight * (output < -30.0 ? 1.0 : logistic(output) / softplus(output));
  for (int j = 0; j < hidden_; ++j) {
    const double unit = parameters_[j] * input + parameters_[hidden_ + j];
    if (unit <= 0.0) continue;
    const double by_unit = by_output * parameters_[2 * hidden_ + j];
    out[j] += by_unit * input;
    out[hidden_ + j] += by_unit;
    out[2 * hidden_ + j] += by_output * unit;
  }
  out[3 * hidden_] += by_output;
}

// Parameters of the monotone network: log slope and intercept of every unit, block by block.
MonotoneFunction::MonotoneFunction(int blocks, int units)
    : NetworkFunction(static_cast<std::size_t>(2 * blocks * units)), blocks_(blocks), units_(units) {
  Rng rng = make_rng(kInitialSeed, Stream::learned_function, 1);
  for (int j = 0; j < blocks_ * units_; ++j) {
    parameters_[2 * j] = std::log(0.5) + 0.2 * rng.normal();
    parameters_[2 * j + 1] = 0.1 * rng.normal();
  }
}

int MonotoneFunction::active_unit(double u) const {
  int lowest = 0;
  double lowest_value = std::numeric_limits<double>::infinity();
  for (int block = 0; block < blocks_; ++block) {
    int highest = 0;
    double highest_value = -std::numeric_limits<double>::infinity();
    for (int j = block * units_; j < (block + 1) * units_; ++j) {
      const double value = std::exp(parameters_[2 * j]) * u + parameters_[2 * j + 1];
      if (value > highest_value) {
        highest = j;
        highest_value = value;
      }
    }
    if (highest_value < lowest_value) {
      lowest = highest;
      lowest_value = highest_value;
    }
  }
  return lowest;
}

double MonotoneFunction::log_h(double u) const {
  const int j = active_unit(u);
  return std::exp(parameters_[2 * j]) * u + parameters_[2 * j + 1];
}

void MonotoneFunction::add_gradient(double u, double weight, std::span<double> out) const {
  const int j = active_unit(u);
  out[2 * j] += weight * std::exp(parameters_[2 * j]) * u;
  out[2 * j + 1] += weight;
}

double fit(LearnedFunction& function, BalancingFunction::Kind target, int steps) {
  // Where the weight of a Markov chain lies: |u| up to 12, denser near 0.
  std::vector<double> points;
  for (double size = 0.0; size <= 12.0; size += size < 4.0 ? 0.25 : 1.0) points.push_back(size);
  const std::size_t n = points.size();
  std::vector<double> wanted(n), values(n), weights(n);
  for (std::size_t k = 0; k < n; ++k) wanted[k] = BalancingFunction(target).log_g(points[k]) - 0.5 * points[k];

  Optimizer optimizer(OptimizerKind::adam, 0.01, function.parameters().size());
  std::vector<double> gradient(function.parameters().size());
  double mean_square = 0.0;
  for (int step = 0; step <= steps; ++step) {
    function.phi(points, values);
    double shift = 0.0;  // g is determined up to a factor
    for (std::size_t k = 0; k < n; ++k) shift += (values[k] - wanted[k]) / static_cast<double>(n);
    mean_square = 0.0;
    for (std::size_t k = 0; k < n; ++k) {
      const double error = values[k] - wanted[k] - shift;
      mean_square += error * error / static_cast<double>(n);
      weights[k] = 2.0 * error / static_cast<double>(n);
    }
    if (step == steps) break;
    std::fill(gradient.begin(), gradient.end(), 0.0);
    function.backward(points, weights, gradient);
    optimizer.step(function.parameters(), gradient, 1.0 - static_cast<double>(step) / steps);
  }
  return std::sqrt(mean_square);
}

}  // namespace poise
