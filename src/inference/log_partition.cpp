/// Decides between annealing and enumeration, and makes an estimate of the weights.
#include <poise/log_partition.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "base/thread_pool.hpp"
#include "inference/log_partition_parts.hpp"
#include "models/rbm/rbm.hpp"

namespace poise {

namespace {

/// Below this part of the chains, and above this part of all weight on one of them, the error says nothing.
constexpr double kFewestEffective = 0.1;
constexpr double kLargestShare = 0.5;
/// Standard errors between estimate and truth that no luck explains.
constexpr double kFar = 5.0;

AnnealedLogPartition estimate(const std::vector<double>& log_weights) {
  const double largest = *std::max_element(log_weights.begin(), log_weights.end());
  const auto count = static_cast<double>(log_weights.size());
  double sum = 0.0;
  double squares = 0.0;
  for (const double log_weight : log_weights) {
    const double weight = std::exp(log_weight - largest);
    sum += weight;
    squares += weight * weight;
  }
  double deviations = 0.0;
  for (const double log_weight : log_weights) {
    const double deviation = std::exp(log_weight - largest) - sum / count;
    deviations += deviation * deviation;
  }
  AnnealedLogPartition out;
  out.value = largest + std::log(sum / count);
  out.error = std::sqrt(deviations / (count - 1.0) / count) / (sum / count);
  out.effective_chains = sum * sum / squares;
  out.largest_share = 1.0 / sum;
  out.chains = log_weights.size();
  return out;
}

}  // namespace

double inverse_temperature(std::size_t k, std::size_t count) {
  return static_cast<double>(k) / static_cast<double>(count);
}

std::optional<double> LogPartition::difference_in_errors() const {
  if (!annealed || !exact) return std::nullopt;
  return (annealed->value - exact->value) / std::hypot(annealed->error, 1e-7 * (1.0 + std::abs(exact->value)));
}

std::vector<std::string> LogPartition::warnings() const {
  std::vector<std::string> out;
  if (!annealed) return out;
  const auto chains = static_cast<double>(annealed->chains);
  const bool dominated = annealed->chains > 2 && annealed->largest_share > kLargestShare;
  if (annealed->effective_chains < kFewestEffective * chains || dominated) {
    out.push_back(
        fmt::format("the {} chains are worth {:.1f}, and the largest weight is {:.0f} % of all: the estimate cannot be "
                    "trusted; use more temperatures",
                    annealed->chains, annealed->effective_chains, 100.0 * annealed->largest_share));
  }
  const std::optional<double> difference = difference_in_errors();
  if (difference && std::abs(*difference) > kFar) {
    out.push_back(
        fmt::format("the estimate is {:.1f} standard errors from the exact value: its error is too small, for the "
                    "chains missed a part of the distribution; use more temperatures",
                    std::abs(*difference)));
  }
  return out;
}

LogPartition find_log_partition(const Rbm& rbm, const LogPartitionOptions& options, const LogPartitionHooks& hooks) {
  const RbmWeights& weights = rbm.weights();
  const Index smaller = std::min(weights.visible, weights.hidden);
  const bool enumerable = smaller <= kMostEnumerated;
  const bool exact =
      options.method == LogPartitionMethod::automatic ? enumerable : options.method != LogPartitionMethod::ais;
  const bool annealed = options.method != LogPartitionMethod::exact;
  std::vector<std::string> problems;
  if (exact && !enumerable) {
    problems.push_back(
        fmt::format("enumeration takes a side of at most {} units, but the RBM has {} visible and "
                    "{} hidden units",
                    kMostEnumerated, weights.visible, weights.hidden));
  }
  if (annealed && options.chains < 2) {
    problems.push_back(fmt::format("found {} chains, expected at least 2", options.chains));
  }
  if (annealed && options.temperatures < 1) problems.emplace_back("found 0 temperatures, expected at least 1");
  if (!problems.empty()) throw InputError(fmt::format("{}", fmt::join(problems, "; ")));

  LogPartition answer;
  answer.visible = weights.visible;
  answer.hidden = weights.hidden;
  answer.seed = options.seed;
  const auto stopped = [&] { return hooks.stop != nullptr && hooks.stop->load(); };
  ThreadPool pool(options.threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : options.threads);
  if (exact) {
    const auto start = Clock::now();
    const std::optional<double> value = log_partition_parts::enumerate(weights, pool, hooks);
    if (value) {
      answer.exact = ExactLogPartition{*value, smaller, weights.hidden <= weights.visible, seconds_since(start)};
    }
  }
  if (annealed && !stopped()) {
    const auto start = Clock::now();
    const std::vector<double> log_weights = log_partition_parts::anneal(weights, options, pool, hooks);
    if (log_weights.size() > 1) {
      answer.annealed = estimate(log_weights);
      answer.annealed->temperatures = options.temperatures;
      answer.annealed->seconds = seconds_since(start);
    }
  }
  answer.interrupted =
      (exact && !answer.exact) || (annealed && (!answer.annealed || answer.annealed->chains < options.chains));
  return answer;
}

}  // namespace poise
