/// Log Z of an RBM: annealed importance sampling, the choice between it and enumeration, and the estimate from weights.
///
/// Annealing moves sixteen chains in a matrix product. A group of sixteen has a random stream of its own and is always
/// drawn in full, so what a chain does depends on the seed and its number alone. Products are in single precision,
/// weights and probabilities in double.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include <poise/extend/base/lanes16.hpp>
#include <poise/extend/base/math.hpp>
#include <poise/extend/base/rng.hpp>
#include <poise/log_partition.hpp>
#include "base/student.hpp"
#include "base/thread_pool.hpp"
#include "inference/log_partition_parts.hpp"
#include "models/rbm/packed_matrix.hpp"
#include "models/rbm/rbm.hpp"

namespace poise::log_partition_parts {

namespace {

constexpr std::size_t kLanes = PackedMatrix::kColumns;  // chains of a group

/// Units that are 1 where the mask is set.
POISE_INLINE void store_units(float* to, const Ints8& mask) {
  const Doubles8 units = select8(mask, broadcast8(1.0), Doubles8{});
  store_floats8(to, units);
}

/// Draws units that are on with probability sigmoid(x) = 1 / (1 + e) or e / (1 + e), e = e^-|x|.
POISE_INLINE Ints8 draw8(const Doubles8& x, const Doubles8& e, Rng& rng) {
  const Doubles8 on = select8(less8(x, Doubles8{}), e, broadcast8(1.0));
  return less8(rng.uniform8() * (1.0 + e), on);
}

/// Units of one side and what they are drawn from; sums and units are [unit][lane].
struct Side {
  const float* sums;  // products of weights and the units of the other side
  const float* bias;
  std::size_t count;
  float* units;
};

void draw_visible(const Side& side, double beta, Rng& rng) {
  hot([=, &side, &rng] {
    for (std::size_t i = 0; i < side.count; ++i) {
      for (std::size_t lane = 0; lane < kLanes; lane += 8) {
        const Doubles8 x = static_cast<double>(side.bias[i]) + beta * load_floats8(side.sums + i * kLanes + lane);
        store_units(side.units + i * kLanes + lane, draw8(x, exp8(-1.0 * abs8(x)), rng));
      }
    }
  });
}

/// From one beta to the next.
struct Rise {
  double from;
  double to;
};

/// Draws the hidden units at the new beta, and adds sum_j softplus(to a_j) - softplus(from a_j) to the log weights.
/// softplus(x) = max(x, 0) + log(1 + e^-|x|), and hundreds of factors from 1 to 2 can be multiplied before a logarithm.
void draw_hidden(const Side& side, Rise beta, Rng& rng, double* log_weights) {
  hot([=, &side, &rng] {
    constexpr std::size_t run = 512;
    for (std::size_t first = 0; first < side.count; first += run) {
      Doubles8 positive[2] = {};
      Doubles8 before[2] = {broadcast8(1.0), broadcast8(1.0)};
      Doubles8 after[2] = {broadcast8(1.0), broadcast8(1.0)};
      for (std::size_t j = first; j < std::min(side.count, first + run); ++j) {
        for (std::size_t half = 0; half < 2; ++half) {
          const std::size_t place = j * kLanes + 8 * half;
          const Doubles8 a = static_cast<double>(side.bias[j]) + load_floats8(side.sums + place);
          const Doubles8 size = abs8(a);
          const Doubles8 e = exp8(-beta.to * size);
          positive[half] += max8(a, Doubles8{});
          before[half] = before[half] * (1.0 + exp8(-beta.from * size));
          after[half] = after[half] * (1.0 + e);
          store_units(side.units + place, draw8(a, e, rng));
        }
      }
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        const unsigned half = lane / 8;
        log_weights[lane] +=
            (beta.to - beta.from) * positive[half][lane % 8] + std::log(after[half][lane % 8] / before[half][lane % 8]);
      }
    }
  });
}

/// What all groups share: the weights, once for each direction of the product.
class Annealing {
 public:
  Annealing(const RbmWeights& rbm, const LogPartitionOptions& options)
      : rbm_(rbm), temperatures_(options.temperatures), seed_(options.seed) {
    const std::size_t visible = rbm.visible;
    const std::size_t hidden = rbm.hidden;
    to_hidden_ = PackedMatrix(hidden, visible);
    to_visible_ = PackedMatrix(visible, hidden);
    for (std::size_t j = 0; j < hidden; ++j) {
      for (std::size_t i = 0; i < visible; ++i) {
        const float weight = rbm.weights[j * visible + i];
        to_hidden_.set(j, i, weight);
        to_visible_.set(i, j, weight);
      }
    }
    base_ = static_cast<double>(hidden) * std::numbers::ln2;
    for (const double bias : rbm.visible_bias) base_ += std::max(bias, 0.0) + std::log1p(std::exp(-std::abs(bias)));
  }

  /// Takes a group through all temperatures; false when stopped.
  bool run(std::size_t group, double* log_weights, Meter& meter) const {
    const std::size_t visible = rbm_.visible;
    const std::size_t hidden = rbm_.hidden;
    std::vector<float> v(visible * kLanes);
    std::vector<float> h(hidden * kLanes);
    std::vector<float> sums(std::max(to_visible_.padded_rows(), to_hidden_.padded_rows()) * kLanes, 0.0F);
    const Side visible_side = {sums.data(), rbm_.visible_bias.data(), visible, v.data()};
    const Side hidden_side = {sums.data(), rbm_.hidden_bias.data(), hidden, h.data()};
    Rng rng = make_rng(seed_, Stream::annealing, group);
    std::fill_n(log_weights, kLanes, base_);
    draw_visible(visible_side, 0.0, rng);
    for (std::size_t k = 1; k <= temperatures_; ++k) {
      if (meter.stopped()) return false;
      const Rise beta = {inverse_temperature(k - 1, temperatures_), inverse_temperature(k, temperatures_)};
      to_hidden_.multiply(v.data(), sums.data());
      draw_hidden(hidden_side, beta, rng, log_weights);
      to_visible_.multiply(h.data(), sums.data());
      draw_visible(visible_side, beta.to, rng);
      meter.add(1);
    }
    return true;
  }

 private:
  const RbmWeights& rbm_;
  std::size_t temperatures_;
  std::uint64_t seed_;
  double base_ = 0.0;        // log Z at beta = 0
  PackedMatrix to_hidden_;   // a row for each hidden unit
  PackedMatrix to_visible_;  // a row for each visible unit
};

}  // namespace

std::vector<double> anneal(const RbmWeights& rbm, const LogPartitionOptions& options, ThreadPool& pool,
                           const LogPartitionHooks& hooks) {
  const Annealing annealing(rbm, options);
  const std::size_t groups = (options.chains + kLanes - 1) / kLanes;
  Meter meter("annealing", static_cast<double>(groups) * static_cast<double>(options.temperatures), hooks);
  std::vector<double> all(groups * kLanes);
  std::vector<std::uint8_t> through(groups, 0);
  pool.for_each(groups, [&](std::size_t group) {
    through[group] = annealing.run(group, all.data() + group * kLanes, meter) ? 1 : 0;
  });
  std::vector<double> log_weights;
  for (std::size_t chain = 0; chain < options.chains; ++chain) {
    if (through[chain / kLanes] != 0) log_weights.push_back(all[chain]);
  }
  return log_weights;
}

}  // namespace poise::log_partition_parts

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
  out.error = student_widening(count - 1.0) * std::sqrt(deviations / (count - 1.0) / count) / (sum / count);
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

std::vector<Warning> LogPartition::warnings() const {
  std::vector<Warning> out;
  if (!annealed) return out;
  const auto chains = static_cast<double>(annealed->chains);
  const bool dominated = annealed->chains > 2 && annealed->largest_share > kLargestShare;
  const std::string next = fmt::format("--temperatures {}", 4 * annealed->temperatures);
  if (annealed->effective_chains < kFewestEffective * chains || dominated) {
    out.push_back(
        {"weights",
         fmt::format("The {} chains are worth {:.1f}, and the largest weight is {:.0f} % of all: the estimate "
                     "cannot be trusted",
                     annealed->chains, annealed->effective_chains, 100.0 * annealed->largest_share),
         next});
  }
  const std::optional<double> difference = difference_in_errors();
  if (difference && std::abs(*difference) > kFar) {
    out.push_back({"disagreement",
                   fmt::format("The estimate is {:.1f} standard errors from the exact value: the chains missed a part "
                               "of the distribution",
                               std::abs(*difference)),
                   next});
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
