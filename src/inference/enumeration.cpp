/// The partition function of an RBM as a sum over all states of its smaller side.
///
/// With the n units of the smaller side given, the others are independent: a state s adds e^(b . s) prod_i (1 +
/// e^(A_i)), A_i = c_i + sum_k W_ki s_k. The upper bits of s number blocks; within a block the lower bits change in
/// Gray-code order, one at a time. With sigmoids of the activations at the first state of the block, (1 + e^(A_i +
/// change)) / (1 + e^(A_i)) = off_i + on_i e^change, and turning unit k on or off multiplies on_i e^change by
/// e^(+-W_ki). So a state costs two products and a sum per unit of the larger side; rounding has a block's length to
/// add up, no more.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>

#include <poise/extend/base/math.hpp>

#include "inference/log_partition_parts.hpp"

namespace poise::log_partition_parts {

namespace {

constexpr Index kLongestBlock = 10;      // lower bits, at most
constexpr double kLogRange = 600.0;      // products stay within e^+-600
constexpr std::size_t kMostParts = 256;  // of the work; fixed, so that sums do not depend on threads

/// Multiplies q by `change`, and gives the log of the product of off + q. Every `run` chunks of eight the exponents of
/// the products are taken out of them.
double turn(double* q, const double* change, const double* off, std::size_t count, std::size_t run) {
  return hot([=] {
    constexpr std::uint64_t fraction = 0x000fffffffffffff;
    constexpr std::uint64_t one = 0x3ff0000000000000;
    Words8 exponents = {};
    Doubles8 mantissas = broadcast8(1.0);
    for (std::size_t first = 0; first < count; first += 8 * run) {
      const std::size_t last = std::min(count, first + 8 * run);
      Doubles8 product = mantissas;
      for (std::size_t i = first; i < last; i += 8) {
        const Doubles8 next = load8(q + i) * load8(change + i);
        store8(q + i, next);
        product = product * (load8(off + i) + next);
      }
      const Words8 bits = bits8<std::uint64_t>(product);
      exponents += bits >> 52;
      mantissas = bits8<double>((bits & fraction) | one);
    }
    double product = 1.0;
    std::int64_t exponent = 0;
    for (unsigned lane = 0; lane < 8; ++lane) {
      product *= mantissas[lane];
      exponent += static_cast<std::int64_t>(exponents[lane]);
    }
    const std::size_t chunks = (count + 8 * run - 1) / (8 * run);
    exponent -= 1023 * 8 * static_cast<std::int64_t>(chunks);
    return std::numbers::ln2 * static_cast<double>(exponent) + std::log(product);
  });
}

/// Sums of exponentials, relative to the largest so far.
struct LogSum {
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0.0;

  void add(double log, double times) {
    if (log > largest) {
      sum *= std::exp(largest - log);
      largest = log;
    }
    sum += times * std::exp(log - largest);
  }
  [[nodiscard]] double log() const { return largest + std::log(sum); }
};

/// sum e^(logs - largest), eight at a time; their number is a multiple of eight.
double sum_relative(const double* logs, std::size_t count, double largest) {
  return hot([=] {
    Doubles8 sum = {};
    for (std::size_t k = 0; k < count; k += 8) sum += exp8(load8(logs + k) - largest);
    return sum8(sum);
  });
}

class Enumeration {
 public:
  explicit Enumeration(const RbmWeights& rbm) {
    const bool by_hidden = rbm.hidden <= rbm.visible;
    units_ = by_hidden ? rbm.hidden : rbm.visible;
    others_ = by_hidden ? rbm.visible : rbm.hidden;
    const std::vector<float>& bias = by_hidden ? rbm.hidden_bias : rbm.visible_bias;
    const std::vector<float>& other_bias = by_hidden ? rbm.visible_bias : rbm.hidden_bias;
    bias_.assign(bias.begin(), bias.end());
    other_bias_.assign(other_bias.begin(), other_bias.end());
    stride_ = (std::size_t{others_} + 7) / 8 * 8;
    weights_.assign(units_ * stride_, 0.0);
    for (std::size_t k = 0; k < units_; ++k) {
      for (std::size_t i = 0; i < others_; ++i) {
        weights_[k * stride_ + i] = rbm.weights[by_hidden ? k * rbm.visible + i : i * rbm.visible + k];
      }
    }
    choose_block();
    for (const double weight : std::span(weights_).first(low_ * stride_)) {
      up_.push_back(std::exp(weight));
      down_.push_back(std::exp(-weight));
    }
  }

  [[nodiscard]] std::size_t blocks() const { return std::size_t{1} << (units_ - low_); }

  /// What a thread needs for itself.
  struct Scratch {
    explicit Scratch(const Enumeration& all)
        : activations(all.others_), q(all.stride_, 0.0), off(all.stride_, 1.0), logs(all.padded_states(), -INFINITY) {}
    std::vector<double> activations;
    std::vector<double> q;     // on_i e^change; 0 in the padding
    std::vector<double> off;   // 1 in the padding
    std::vector<double> logs;  // of the states of a block
  };

  void add_block(std::size_t block, Scratch& scratch, LogSum& sum) const {
    const double log = start_block(block, scratch);
    scratch.logs[0] = log;
    const std::size_t states = std::size_t{1} << low_;
    double bias = 0.0;
    for (std::size_t t = 1; t < states; ++t) {
      const auto k = static_cast<std::size_t>(std::countr_zero(t));
      const bool on = ((t ^ t >> 1) >> k & 1U) != 0;
      bias += on ? bias_[k] : -bias_[k];
      const double* change = (on ? up_ : down_).data() + k * stride_;
      scratch.logs[t] = log + bias + turn(scratch.q.data(), change, scratch.off.data(), stride_, run_);
    }
    const double largest = *std::max_element(scratch.logs.begin(), scratch.logs.end());
    sum.add(largest, sum_relative(scratch.logs.data(), scratch.logs.size(), largest));
  }

 private:
  [[nodiscard]] std::size_t padded_states() const { return std::max<std::size_t>(8, std::size_t{1} << low_); }

  /// As many lower bits as keep the factors e^change in range. What underflows meanwhile is smaller than e^-100 beside
  /// what it is added to.
  void choose_block() {
    std::vector<double> range(stride_, 0.0);
    double widest = 0.0;
    for (low_ = 0; low_ < std::min(units_, kLongestBlock); ++low_) {
      for (std::size_t i = 0; i < stride_; ++i) range[i] += std::abs(weights_[low_ * stride_ + i]);
      const double next = *std::max_element(range.begin(), range.end());
      if (next > kLogRange) break;
      widest = next;
    }
    run_ = static_cast<std::size_t>(std::clamp(kLogRange / std::max(widest, 1e-3), 1.0, 1e5));
  }

  /// Sigmoids of the activations where the lower bits are 0; gives the log of the term of that state.
  double start_block(std::size_t block, Scratch& scratch) const {
    double log = 0.0;
    std::copy(other_bias_.begin(), other_bias_.end(), scratch.activations.begin());
    for (std::size_t k = low_; k < units_; ++k) {
      if ((block >> (k - low_) & 1U) == 0) continue;
      log += bias_[k];
      const double* row = weights_.data() + k * stride_;
      for (std::size_t i = 0; i < others_; ++i) scratch.activations[i] += row[i];
    }
    for (std::size_t i = 0; i < others_; ++i) {
      const double a = scratch.activations[i];
      const double e = std::exp(-std::abs(a));
      log += std::max(a, 0.0) + std::log1p(e);
      scratch.q[i] = (a < 0.0 ? e : 1.0) / (1.0 + e);
      scratch.off[i] = (a < 0.0 ? 1.0 : e) / (1.0 + e);
    }
    return log;
  }

  Index units_ = 0;
  Index others_ = 0;
  Index low_ = 0;           // lower bits of a state, those that change within a block
  std::size_t run_ = 1;     // chunks that are multiplied before exponents are taken out
  std::size_t stride_ = 0;  // units of the larger side, rounded up to a multiple of eight
  std::vector<double> bias_;
  std::vector<double> other_bias_;
  std::vector<double> weights_;  // [unit][stride]
  std::vector<double> up_;       // e^W of the lower units
  std::vector<double> down_;     // e^-W
};

}  // namespace

std::optional<double> enumerate(const RbmWeights& rbm, ThreadPool& pool, const LogPartitionHooks& hooks) {
  const Enumeration all(rbm);
  const std::size_t blocks = all.blocks();
  const std::size_t parts = std::min(blocks, kMostParts);
  Meter meter("enumeration", static_cast<double>(blocks), hooks);
  std::vector<LogSum> sums(parts);
  pool.for_each(parts, [&](std::size_t part) {
    Enumeration::Scratch scratch(all);
    for (std::size_t block = blocks * part / parts; block < blocks * (part + 1) / parts && !meter.stopped(); ++block) {
      all.add_block(block, scratch, sums[part]);
      meter.add(1);
    }
  });
  if (meter.stopped()) return std::nullopt;
  LogSum total;
  for (const LogSum& sum : sums) total.add(sum.largest, sum.sum);
  return total.log();
}

}  // namespace poise::log_partition_parts
