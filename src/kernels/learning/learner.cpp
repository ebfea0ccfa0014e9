/// The learning loop's serial part: pool the gradients, step, freeze; and when to stop.
#include <poise/extend/learning/learner.hpp>

#include <algorithm>
#include <cmath>

namespace poise {

SettleDetector::SettleDetector() : now_(BalanceTable::kPoints, 0.0), frequency_(BalanceTable::kPoints, 0.0) {}

void SettleDetector::add(const BalanceTable& table, std::span<const TransitionGradient> chains) {
  const std::span<const double> phi = table.phi();
  many_ = chains[0].many;
  for (std::size_t k = 0; k < now_.size(); ++k) now_[k] += phi[k] + (many_ ? table.level() : 0.0);
  for (const TransitionGradient& chain : chains) {
    const auto& entries = chain.entries.empty() ? chain.sampled : chain.entries;
    for (const TransitionGradient::Entry& entry : entries) {
      const double cell = std::min(std::abs(entry.log_ratio) / BalanceTable::kStep + 0.5, BalanceTable::kCells + 0.0);
      frequency_[static_cast<std::size_t>(cell)] += entry.transition;
    }
  }
  if (++rounds_ < kWindow) return;
  for (double& value : now_) value /= static_cast<double>(kWindow);
  settled_ = !before_.empty() && change() < kTolerance;
  before_ = now_;
  std::fill(now_.begin(), now_.end(), 0.0);
  std::fill(frequency_.begin(), frequency_.end(), 0.0);
  rounds_ = 0;
}

double SettleDetector::change() const {
  double total = 0.0;
  double mean = 0.0;
  for (std::size_t k = 0; k < now_.size(); ++k) {
    total += frequency_[k];
    mean += frequency_[k] * (now_[k] - before_[k]);
  }
  if (!(total > 0.0)) return HUGE_VAL;
  mean = many_ ? 0.0 : mean / total;
  double square = 0.0;
  for (std::size_t k = 0; k < now_.size(); ++k) {
    const double difference = now_[k] - before_[k] - mean;
    square += frequency_[k] / total * difference * difference;
  }
  return std::sqrt(square);
}

double slope_penalty(std::span<const double> phi, double ridge, std::span<double> out) {
  constexpr std::array<int, 7> kKnots = {0, 8, 16, 32, 64, 128, 256};  // grid points: |u| = 0, 1, 2, 4, 8, 16, 32
  constexpr std::size_t kSegments = kKnots.size() - 1;
  constexpr double kWall = 1.0;
  std::array<double, kSegments> slope{}, by_slope{};
  double penalty = 0.0;
  for (std::size_t k = 0; k < kSegments; ++k) {
    slope[k] = (phi[kKnots[k + 1]] - phi[kKnots[k]]) / ((kKnots[k + 1] - kKnots[k]) * BalanceTable::kStep);
    const double beyond = std::max(std::abs(slope[k]) - 0.5, 0.0);
    penalty += ridge * slope[k] * slope[k] + kWall * beyond * beyond;
    by_slope[k] += 2.0 * ridge * slope[k] + 2.0 * kWall * std::copysign(beyond, slope[k]);
    if (k == 0) continue;
    const double difference = slope[k] - slope[k - 1];
    penalty += ridge * difference * difference;
    by_slope[k] += 2.0 * ridge * difference;
    by_slope[k - 1] -= 2.0 * ridge * difference;
  }
  for (std::size_t k = 0; k < kSegments; ++k) {
    const double by_value = by_slope[k] / ((kKnots[k + 1] - kKnots[k]) * BalanceTable::kStep);
    out[kKnots[k + 1]] += by_value;
    out[kKnots[k]] -= by_value;
  }
  return penalty;
}

// One more parameter than the function has: the raw eta of mi-bound.
Learner::Learner(std::unique_ptr<LearnedFunction> function, const LearnOptions& options)
    : function_(std::move(function)),
      objective_(options.objective),
      optimizer_(options.optimizer, options.rate, function_->parameters().size() + 1),
      ridge_(options.ridge),
      average_(function_->parameters().size(), 0.0),
      table_(function_->freeze()) {}

void Learner::update(std::span<const TransitionGradient> chains, std::span<const std::vector<double>> gradients,
                     double progress) {
  std::vector<double> by_phi(BalanceTable::kPoints, 0.0);
  for (const std::vector<double>& gradient : gradients) {
    for (std::size_t k = 0; k < by_phi.size(); ++k) by_phi[k] += gradient[k];
  }
  // Steps that cost more are worth less: the logarithm of their work counts as that of a variance does.
  for (const TransitionGradient& chain : chains) by_phi[0] += chain.work_slope / static_cast<double>(chains.size());
  const std::span<double> parameters = function_->parameters();
  std::vector<double> gradient(parameters.size() + 1, 0.0);
  slope_penalty(table_->phi(), ridge_, by_phi);
  function_->backward(balance_grid(), by_phi, std::span(gradient).first(parameters.size()));
  gradient.back() = objective_.raw_eta_gradient(chains);
  // A state of zero weight under the criterion can give 0 * inf; a round without a usable gradient is left out.
  if (!std::all_of(gradient.begin(), gradient.end(), [](double g) { return std::isfinite(g); })) return;

  std::vector<double> all(parameters.begin(), parameters.end());
  all.push_back(objective_.raw_eta());
  const double fraction = progress < 0.5 ? 1.0 : 1.0 - 0.9 * (2.0 * progress - 1.0);
  optimizer_.step(all, gradient, fraction);
  const std::vector<double> before(parameters.begin(), parameters.end());
  std::copy(all.begin(), all.end() - 1, parameters.begin());
  function_->keep_in_bounds();
  std::shared_ptr<const BalanceTable> table = function_->freeze();
  // e^phi must be a number; a step that leads beyond is not taken.
  const auto tame = [](double phi) { return std::abs(phi) < 300.0; };
  if (!std::all_of(table->phi().begin(), table->phi().end(), tame)) {
    std::copy(before.begin(), before.end(), parameters.begin());
    return;
  }
  table_ = std::move(table);
  objective_.raw_eta() = all.back();
  if (progress >= 0.5) {
    ++averaged_;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      average_[i] += (parameters[i] - average_[i]) / static_cast<double>(averaged_);
    }
  }
}

BalancingFunction Learner::freeze() {
  if (averaged_ > 0) std::copy(average_.begin(), average_.end(), function_->parameters().begin());
  table_ = function_->freeze();
  return balancing_function();
}

}  // namespace poise
