/// Swaps counted, ladders spaced, round trips seen.
#include <poise/extend/engines/ladder.hpp>

#include <numeric>
#include <utility>

namespace poise {

namespace {

/// Twenty binary digits: floats have them all, and a last digit of an exponential hardly ever changes one.
double round_beta(double beta) { return std::nearbyint(beta * 0x1p20) * 0x1p-20; }

}  // namespace

void SwapCounts::add(const SwapCounts& more) {
  for (std::size_t k = 0; k < accepted.size(); ++k) {
    accepted[k] += more.accepted[k];
    tried[k] += more.tried[k];
  }
}

std::vector<double> SwapCounts::rejections() const {
  std::vector<double> out(accepted.size(), 1.0);
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (tried[k] > 0) out[k] = std::max(0.0, 1.0 - accepted[k] / static_cast<double>(tried[k]));
  }
  return out;
}

BridgeSums::BridgeSums(std::vector<double> guesses)
    : guesses_(std::move(guesses)), below_(guesses_.size()), above_(guesses_.size()) {}

void BridgeSums::add(const BridgeSums& more) {
  for (std::size_t k = 0; k < guesses_.size(); ++k) {
    below_[k].sum += more.below_[k].sum;
    below_[k].count += more.below_[k].count;
    above_[k].sum += more.above_[k].sum;
    above_[k].count += more.above_[k].count;
  }
}

std::vector<double> BridgeSums::log_ratios() const {
  std::vector<double> out = guesses_;
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (below_[k].count == 0.0 || above_[k].count == 0.0) continue;
    out[k] += std::log(below_[k].sum / below_[k].count) - std::log(above_[k].sum / above_[k].count);
  }
  return out;
}

BridgeNumbers BridgeSums::numbers() const {
  BridgeNumbers out;
  for (std::size_t k = 0; k < guesses_.size(); ++k) {
    out.below.push_back(below_[k].sum);
    out.above.push_back(above_[k].sum);
    out.count = below_[k].count;
  }
  return out;
}

void BridgeSums::set_numbers(const BridgeNumbers& numbers) {
  for (std::size_t k = 0; k < guesses_.size(); ++k) {
    below_[k] = {numbers.below[k], numbers.count};
    above_[k] = {numbers.above[k], numbers.count};
  }
}

void ReplicaPaths::add(std::uint64_t step, std::span<const std::uint32_t> rung_of) {
  if (step % stride_ != 0) return;
  for (std::size_t r = 0; r < kReplicas; ++r) rungs_.push_back(rung_of[r * rung_of.size() / kReplicas]);
  if (size() < kMost) return;
  for (std::size_t point = 0; point < kMost / 2; ++point) {
    for (std::size_t r = 0; r < kReplicas; ++r) rungs_[point * kReplicas + r] = rungs_[2 * point * kReplicas + r];
  }
  rungs_.resize(kMost / 2 * kReplicas);
  stride_ *= 2;
}

Ladder::Ladder(std::size_t rungs)
    : replica_at_(rungs),
      rung_of_(rungs),
      came_from_cold_(rungs, 0),
      counts_(rungs),
      bridges_(std::vector<double>(rungs - 1, 0.0)) {
  std::iota(replica_at_.begin(), replica_at_.end(), 0U);
  std::iota(rung_of_.begin(), rung_of_.end(), 0U);
}

void Ladder::exchange(std::size_t pair) {
  std::swap(replica_at_[pair], replica_at_[pair + 1]);
  rung_of_[replica_at_[pair]] = static_cast<std::uint32_t>(pair);
  rung_of_[replica_at_[pair + 1]] = static_cast<std::uint32_t>(pair + 1);
}

void Ladder::finish_step(std::uint64_t step) {
  std::uint8_t& hot = came_from_cold_[replica_at_.front()];
  if (hot == 1) hot = 2;
  std::uint8_t& cold = came_from_cold_[replica_at_.back()];
  if (cold == 2) ++round_trips_;
  cold = 1;
  paths_.add(step, rung_of_);
}

LadderNumbers Ladder::numbers() const {
  return {replica_at_, came_from_cold_, counts_, bridges_.numbers(), round_trips_};
}

void Ladder::set_numbers(const LadderNumbers& numbers) {
  replica_at_ = numbers.replica_at;
  for (std::uint32_t rung = 0; rung < rungs(); ++rung) rung_of_[replica_at_[rung]] = rung;
  came_from_cold_ = numbers.came_from_cold;
  counts_ = numbers.counts;
  bridges_.set_numbers(numbers.bridges);
  round_trips_ = numbers.round_trips;
}

void Ladder::restart_counts(const std::vector<double>& guesses) {
  counts_ = SwapCounts(rungs());
  bridges_ = BridgeSums(guesses);
  paths_.clear();
  std::fill(came_from_cold_.begin(), came_from_cold_.end(), std::uint8_t{0});
  round_trips_ = 0;
}

std::vector<double> first_betas(std::size_t rungs) {
  std::vector<double> betas(rungs);
  for (std::size_t k = 0; k < rungs; ++k) {
    const double t = static_cast<double>(k) / static_cast<double>(rungs - 1);
    betas[k] = round_beta(t * t * (3.0 - 2.0 * t));
  }
  betas.back() = 1.0;
  return betas;
}

double barrier_of(std::span<const double> rejections) {
  return std::accumulate(rejections.begin(), rejections.end(), 0.0);
}

std::vector<double> equal_rejection(std::span<const double> betas, std::span<const double> rejections,
                                    std::size_t rungs) {
  // A pair that never rejects still gets a little, so that the sum rises strictly and can be inverted.
  const double barrier = barrier_of(rejections);
  const double least = std::max(1e-3 * barrier, 1e-6) / static_cast<double>(rejections.size());
  std::vector<double> sums = {0.0};
  for (const double rejection : rejections) sums.push_back(sums.back() + rejection + least);
  std::vector<double> out(rungs, 0.0);
  std::size_t pair = 0;
  for (std::size_t k = 1; k + 1 < rungs; ++k) {
    const double wanted = sums.back() * static_cast<double>(k) / static_cast<double>(rungs - 1);
    while (sums[pair + 1] < wanted) ++pair;
    const double part = (wanted - sums[pair]) / (sums[pair + 1] - sums[pair]);
    out[k] = round_beta(betas[pair] + part * (betas[pair + 1] - betas[pair]));
  }
  out.back() = 1.0;
  return out;
}

std::size_t rungs_for(double barrier) { return static_cast<std::size_t>(std::ceil(2.0 * barrier + 2.0)); }

}  // namespace poise
