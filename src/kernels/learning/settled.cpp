/// Windows of phi, compared where chains are.
#include "kernels/learning/settled.hpp"

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

}  // namespace poise
