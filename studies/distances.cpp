/// Series of Hamming distances, and MMD with the error from leaving each chain out.
#include "studies/distances.hpp"

#include <cmath>

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

namespace {

template <class A, class B>
double kernel(const A* a, const B* b, std::size_t variables) {
  unsigned different = 0;
  for (std::size_t i = 0; i < variables; ++i)
    different += static_cast<std::int8_t>(a[i]) != static_cast<std::int8_t>(b[i]) ? 1U : 0U;
  return std::exp(-static_cast<double>(different) / static_cast<double>(variables));
}

}  // namespace

Estimate jackknife(const DiscrepancyLook& look) {
  const std::size_t n = look.without.size();
  // The spread of means with one left out is that of single chains divided by n - 1.
  Estimate out = estimate(look.without);
  out.mean = look.value;
  out.sd *= static_cast<double>(n - 1);
  return out;
}

DiscrepancyLook mean_of(std::span<const DiscrepancyLook> looks) {
  DiscrepancyLook out;
  out.without.assign(looks.front().without.size(), 0.0);
  const auto count = static_cast<double>(looks.size());
  for (const DiscrepancyLook& look : looks) {
    out.value += look.value / count;
    for (std::size_t c = 0; c < out.without.size(); ++c) out.without[c] += look.without[c] / count;
  }
  return out;
}

Discrepancy::Discrepancy(const GroundTruth& truth) : truth_(truth), variables_(truth.draws.size() / truth.count) {
  for (std::size_t d = 0; d < truth.count; ++d) {
    for (std::size_t e = 0; e < d; ++e) {
      of_truth_ += 2.0 * kernel(&truth.draws[d * variables_], &truth.draws[e * variables_], variables_);
    }
  }
  const auto count = static_cast<double>(truth.count);
  of_truth_ = (of_truth_ + count) / (count * count);
}

DiscrepancyLook Discrepancy::look(std::span<const Value> states) const {
  const std::size_t n = states.size() / variables_;
  std::vector<double> among(n, 0.0);   // sum of the kernel with the chains, itself included
  std::vector<double> across(n, 0.0);  // mean of the kernel with the reference draws
  double all_among = 0.0;
  double all_across = 0.0;
  for (std::size_t c = 0; c < n; ++c) {
    const Value* x = &states[c * variables_];
    for (std::size_t e = 0; e < n; ++e) among[c] += kernel(x, &states[e * variables_], variables_);
    for (std::size_t d = 0; d < truth_.count; ++d) {
      across[c] += kernel(x, &truth_.draws[d * variables_], variables_) / static_cast<double>(truth_.count);
    }
    all_among += among[c];
    all_across += across[c];
  }
  const auto statistic = [&](double sum_among, double sum_across, double chains) {
    return sum_among / (chains * chains) + of_truth_ - 2.0 * sum_across / chains;
  };
  const auto chains = static_cast<double>(n);
  DiscrepancyLook out{statistic(all_among, all_across, chains), {}};
  for (std::size_t c = 0; c < n; ++c) {
    out.without.push_back(statistic(all_among - 2.0 * among[c] + 1.0, all_across - across[c], chains - 1.0));
  }
  return out;
}

}  // namespace poise::reproduction
