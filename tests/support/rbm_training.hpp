/// What trainings of small RBMs should come to: gradients and likelihoods by enumeration.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include "support/small_rbms.hpp"

namespace poise::testing {

inline double sigmoid(double a) { return 1.0 / (1.0 + std::exp(-a)); }

/// An RBM so small that everything about it is known.
struct Enumerated {
  explicit Enumerated(const RbmWeights& weights)
      : rbm(weights), states(std::size_t{1} << rbm.visible), patterns(std::size_t{1} << rbm.hidden) {}

  static double bit(std::size_t pattern, std::size_t i) { return pattern >> i & 1 ? 1.0 : 0.0; }
  [[nodiscard]] double hidden_on(std::size_t v, std::size_t j) const {
    double a = rbm.hidden_bias[j];
    for (std::size_t i = 0; i < rbm.visible; ++i) a += rbm.weights[j * rbm.visible + i] * bit(v, i);
    return sigmoid(a);
  }
  [[nodiscard]] double visible_on(std::size_t h, std::size_t i) const {
    double a = rbm.visible_bias[i];
    for (std::size_t j = 0; j < rbm.hidden; ++j) a += rbm.weights[j * rbm.visible + i] * bit(h, j);
    return sigmoid(a);
  }

  /// p(v), from the sum over hidden units in closed form.
  [[nodiscard]] std::vector<double> law() const {
    std::vector<double> p(states);
    double sum = 0.0;
    for (std::size_t v = 0; v < states; ++v) {
      std::vector<Value> x;
      for (std::size_t i = 0; i < rbm.visible; ++i) x.push_back(static_cast<Value>(v >> i & 1));
      sum += p[v] = std::exp(plain_log_prob(rbm, x));
    }
    for (double& value : p) value /= sum;
    return p;
  }

  /// The law after one step of block Gibbs.
  [[nodiscard]] std::vector<double> after_step(const std::vector<double>& law_before) const {
    std::vector<double> hidden(patterns, 0.0);
    for (std::size_t v = 0; v < states; ++v) {
      for (std::size_t h = 0; h < patterns; ++h) {
        double p = law_before[v];
        for (std::size_t j = 0; j < rbm.hidden; ++j) p *= bit(h, j) > 0 ? hidden_on(v, j) : 1 - hidden_on(v, j);
        hidden[h] += p;
      }
    }
    std::vector<double> after(states, 0.0);
    for (std::size_t h = 0; h < patterns; ++h) {
      for (std::size_t v = 0; v < states; ++v) {
        double p = hidden[h];
        for (std::size_t i = 0; i < rbm.visible; ++i) p *= bit(v, i) > 0 ? visible_on(h, i) : 1 - visible_on(h, i);
        after[v] += p;
      }
    }
    return after;
  }

  /// What the gradient is a difference of: P(h_j = 1 | v) v_i, then v_i, then P(h_j = 1 | v), as one list.
  [[nodiscard]] std::vector<double> statistics(std::size_t v) const {
    std::vector<double> out;
    for (std::size_t j = 0; j < rbm.hidden; ++j) {
      for (std::size_t i = 0; i < rbm.visible; ++i) out.push_back(hidden_on(v, j) * bit(v, i));
    }
    for (std::size_t i = 0; i < rbm.visible; ++i) out.push_back(bit(v, i));
    for (std::size_t j = 0; j < rbm.hidden; ++j) out.push_back(hidden_on(v, j));
    return out;
  }
  [[nodiscard]] std::vector<double> mean(const std::vector<double>& p, bool squared = false) const {
    std::vector<double> out(statistics(0).size(), 0.0);
    for (std::size_t v = 0; v < states; ++v) {
      const std::vector<double> one = statistics(v);
      for (std::size_t k = 0; k < out.size(); ++k) out[k] += p[v] * (squared ? one[k] * one[k] : one[k]);
    }
    return out;
  }

  RbmWeights rbm;
  std::size_t states;
  std::size_t patterns;
};

inline std::vector<double> flat(const RbmWeights& rbm) {
  std::vector<double> out(rbm.weights.begin(), rbm.weights.end());
  out.insert(out.end(), rbm.visible_bias.begin(), rbm.visible_bias.end());
  out.insert(out.end(), rbm.hidden_bias.begin(), rbm.hidden_bias.end());
  return out;
}

inline std::vector<Value> repeated(const std::vector<std::size_t>& patterns, Index visible, std::size_t times) {
  std::vector<Value> data;
  for (std::size_t t = 0; t < times; ++t) {
    for (const std::size_t pattern : patterns) {
      for (Index i = 0; i < visible; ++i) data.push_back(static_cast<Value>(pattern >> i & 1));
    }
  }
  return data;
}

inline std::vector<double> law_of(const std::vector<std::size_t>& patterns, std::size_t states) {
  std::vector<double> p(states, 0.0);
  for (const std::size_t pattern : patterns) p[pattern] += 1.0 / static_cast<double>(patterns.size());
  return p;
}

/// So small that an update in 32 bits leaves every weight as it is.
inline constexpr double kFrozen = 1e-30;
inline const std::vector<std::size_t> kPatterns = {0b0011, 0b0111, 0b1000, 0b1111, 0b0000};

/// The estimate is the mean over independent chains, whose law is enumerated: its error follows from the variance of
/// one chain. The rest, 1e-6, is for the rounding of numbers in 32 bits.
inline void expect_gradient(const RbmWeights& estimate, const Enumerated& enumerated,
                            const std::vector<double>& chain_law, std::size_t chains) {
  const std::vector<double> seen = enumerated.mean(law_of(kPatterns, enumerated.states));
  const std::vector<double> drawn = enumerated.mean(chain_law);
  const std::vector<double> squared = enumerated.mean(chain_law, true);
  const std::vector<double> found = flat(estimate);
  for (std::size_t k = 0; k < found.size(); ++k) {
    const double error = std::sqrt((squared[k] - drawn[k] * drawn[k]) / static_cast<double>(chains));
    EXPECT_LT(std::abs(found[k] - (seen[k] - drawn[k])), 6 * error + 1e-6) << k;
    EXPECT_GT(error, 0.0) << k;
  }
}

/// Three rows of three pixels: a row is on or off as a whole, then each pixel is wrong with probability 0.1. Each row
/// is a mixture of two products, so that three hidden units can have exactly this law.
inline std::vector<double> noisy_rows() {
  std::vector<double> law(512, 1.0);
  for (std::size_t v = 0; v < 512; ++v) {
    for (std::size_t row = 0; row < 3; ++row) {
      const int on = std::popcount(v >> (3 * row) & 7);
      law[v] *= 0.5 * (std::pow(0.9, on) * std::pow(0.1, 3 - on) + std::pow(0.1, on) * std::pow(0.9, 3 - on));
    }
  }
  return law;
}

/// Falls by what the expected log-likelihood rises.
inline double divergence(const std::vector<double>& truth, const RbmWeights& rbm) {
  const std::vector<double> law = Enumerated(rbm).law();
  double sum = 0.0;
  for (std::size_t v = 0; v < truth.size(); ++v) sum += truth[v] * std::log(truth[v] / law[v]);
  return sum;
}

inline std::vector<Value> random_data(std::size_t count, double share) {
  Rng rng(11, 0);
  std::vector<Value> data(count);
  for (Value& value : data) value = rng.uniform() < share ? 1 : 0;
  return data;
}

/// Draws from that law.
inline std::vector<Value> draw_noisy_rows(const std::vector<double>& truth, int rows) {
  std::vector<std::size_t> drawn;
  Rng rng(4, 0);
  for (int row = 0; row < rows; ++row) {
    std::size_t v = 0;
    for (double u = rng.uniform(); v + 1 < truth.size() && u >= truth[v]; ++v) u -= truth[v];
    drawn.push_back(v);
  }
  return repeated(drawn, 9, 1);
}

}  // namespace poise::testing
