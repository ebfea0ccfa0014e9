/// The learned functions that are simple enough for closed-form gradients: the mixture and the spline.
#include <poise/extend/learning/learned_function.hpp>

#include <numeric>

namespace poise {

std::span<const double> balance_grid() {
  static const std::vector<double> points = [] {
    std::vector<double> grid(BalanceTable::kPoints);
    for (int k = 0; k < BalanceTable::kPoints; ++k) grid[k] = BalanceTable::grid(k);
    return grid;
  }();
  return points;
}

std::shared_ptr<const BalanceTable> LearnedFunction::freeze() const {
  std::vector<double> values(BalanceTable::kPoints);
  phi(balance_grid(), values);
  return std::make_shared<const BalanceTable>(values);
}

namespace {

std::array<double, 4> fixed_phi(double size) {
  const double half = 0.5 * size;
  return {0.0, -half - std::log1p(std::exp(-size)), -half, half};
}

std::array<double, 4> softmax(std::span<const double> theta) {
  std::array<double, 4> weights{};
  const double largest = *std::max_element(theta.begin(), theta.end());
  for (int i = 0; i < 4; ++i) weights[i] = std::exp(theta[i] - largest);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
  return weights;
}

/// Share of each of the four functions in g at |u| = size, and log g - u/2 through `log_sum`.
std::array<double, 4> shares(const std::array<double, 4>& weights, double size, double& log_sum) {
  std::array<double, 4> parts = fixed_phi(size);
  const double largest = *std::max_element(parts.begin(), parts.end());
  double sum = 0.0;
  for (int i = 0; i < 4; ++i) {
    parts[i] = weights[i] * std::exp(parts[i] - largest);
    sum += parts[i];
  }
  for (double& part : parts) part /= sum;
  log_sum = largest + std::log(sum);
  return parts;
}

}  // namespace

void MixtureFunction::phi(std::span<const double> points, std::span<double> out) const {
  const std::array<double, 4> weights = softmax(parameters_);
  for (std::size_t k = 0; k < points.size(); ++k) shares(weights, points[k], out[k]);
}

void MixtureFunction::backward(std::span<const double> points, std::span<const double> weights,
                               std::span<double> out) const {
  // d log sum_i w_i g_i / d theta_j = share_j - w_j.
  const std::array<double, 4> mixture = softmax(parameters_);
  for (std::size_t k = 0; k < points.size(); ++k) {
    double log_sum = 0.0;
    const std::array<double, 4> part = shares(mixture, points[k], log_sum);
    for (int j = 0; j < 4; ++j) out[j] += weights[k] * (part[j] - mixture[j]);
  }
}

namespace {

/// Weights of the knot slopes in phi(size) = integral of the slope from 0 to size; the slope is linear between knots.
std::array<double, SplineFunction::kKnots.size()> slope_weights(double size) {
  constexpr const auto& knots = SplineFunction::kKnots;
  std::array<double, knots.size()> weights{};
  for (std::size_t k = 0; k + 1 < knots.size() && knots[k] < size; ++k) {
    const double width = knots[k + 1] - knots[k];
    const double inside = std::min(size - knots[k], width);
    const double right = 0.5 * inside * inside / width;
    weights[k] += inside - right;
    weights[k + 1] += right;
  }
  if (size > knots.back()) weights.back() += size - knots.back();
  return weights;
}

double slope(double theta) { return 0.5 * std::tanh(theta); }

}  // namespace

void SplineFunction::phi(std::span<const double> points, std::span<double> out) const {
  for (std::size_t k = 0; k < points.size(); ++k) {
    const auto weights = slope_weights(points[k]);
    out[k] = 0.0;
    for (std::size_t j = 0; j < weights.size(); ++j) out[k] += weights[j] * slope(parameters_[j]);
  }
}

void SplineFunction::backward(std::span<const double> points, std::span<const double> weights,
                              std::span<double> out) const {
  std::array<double, kKnots.size()> slopes{};
  for (std::size_t k = 0; k < points.size(); ++k) {
    const auto by_slope = slope_weights(points[k]);
    for (std::size_t j = 0; j < by_slope.size(); ++j) slopes[j] += weights[k] * by_slope[j];
  }
  for (std::size_t j = 0; j < slopes.size(); ++j) {
    const double s = slope(parameters_[j]);
    out[j] += slopes[j] * (0.5 - 2.0 * s * s);
  }
}

LevelledFunction::LevelledFunction(std::unique_ptr<LearnedFunction> family)
    : LearnedFunction(family->parameters().size() + 1), family_(std::move(family)) {
  std::copy(family_->parameters().begin(), family_->parameters().end(), parameters_.begin());
}

LearnedFunction& LevelledFunction::family() const {
  std::copy(parameters_.begin(), parameters_.end() - 1, family_->parameters().begin());
  return *family_;
}

void LevelledFunction::phi(std::span<const double> points, std::span<double> out) const {
  if (family_) {
    family().phi(points, out);
  } else {
    for (std::size_t k = 0; k < points.size(); ++k) out[k] = fixed_phi(points[k])[static_cast<std::size_t>(kind_)];
  }
  // Whatever constant a family has, phi at 0 is the level.
  double origin = 0.0;
  if (family_) family_->phi(std::span<const double>(&origin, 1), std::span<double>(&origin, 1));
  if (!family_) origin = fixed_phi(0.0)[static_cast<std::size_t>(kind_)];
  for (double& value : out) value += parameters_.back() - origin;
}

void LevelledFunction::backward(std::span<const double> points, std::span<const double> weights,
                                std::span<double> out) const {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  out[parameters_.size() - 1] += sum;
  if (!family_) return;
  LearnedFunction& inner = family();
  const std::span<double> own = out.first(parameters_.size() - 1);
  inner.backward(points, weights, own);
  const double origin = 0.0, minus = -sum;
  inner.backward(std::span<const double>(&origin, 1), std::span<const double>(&minus, 1), own);
}

BalancingFunction LevelledFunction::function() const {
  if (!family_) return BalancingFunction(kind_, parameters_.back());
  return LearnedFunction::function();
}

}  // namespace poise
