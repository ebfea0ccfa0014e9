/// Distances kept up to date by the variables that changed.
#include "studies/distances.hpp"

#include <poise/diagnose.hpp>

namespace poise::reproduction {

DistanceRecorder::DistanceRecorder(const GroundTruth& truth, std::size_t chains, std::uint64_t steps)
    : share_(truth.count / chains), states_(chains), now_(chains), distances_(chains) {
  draws_ = share_ * chains;
  const std::size_t variables = truth.draws.size() / truth.count;
  by_variable_.resize(variables * draws_);
  for (std::size_t d = 0; d < draws_; ++d) {
    for (std::size_t i = 0; i < variables; ++i) by_variable_[i * draws_ + d] = truth.draws[d * variables + i];
  }
  for (auto& series : distances_) series.reserve(share_ * steps);
}

void DistanceRecorder::begin(std::size_t chain, std::span<const Value> x) {
  states_[chain].assign(x.begin(), x.end());
  now_[chain].assign(share_, 0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::int8_t* reference = column(i) + chain * share_;
    for (std::size_t k = 0; k < share_; ++k) {
      if (reference[k] != static_cast<std::int8_t>(x[i])) ++now_[chain][k];
    }
  }
}

void DistanceRecorder::add(std::size_t chain, std::span<const Value> x) {
  std::vector<Value>& state = states_[chain];
  std::vector<std::uint16_t>& now = now_[chain];
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == state[i]) continue;
    const std::int8_t* reference = column(i) + chain * share_;
    const auto value = static_cast<std::int8_t>(x[i]);
    for (std::size_t k = 0; k < share_; ++k) {
      now[k] = static_cast<std::uint16_t>(now[k] + (reference[k] == value ? -1 : 1));
    }
    state[i] = x[i];
  }
  distances_[chain].insert(distances_[chain].end(), now.begin(), now.end());
}

std::vector<double> DistanceRecorder::effective_sizes(std::size_t chain, const std::function<void()>& pause) const {
  const std::vector<std::uint16_t>& all = distances_[chain];
  std::vector<double> series(all.size() / share_);
  std::vector<double> out;
  for (std::size_t k = 0; k < share_; ++k) {
    pause();
    for (std::size_t t = 0; t < series.size(); ++t) series[t] = all[t * share_ + k];
    out.push_back(ess_tfp(series));
  }
  return out;
}

}  // namespace poise::reproduction
