/// One layer of an RBM as kernels of block Gibbs read it: weights of sixteen bits in the order of tensor cores, what
/// their sums are off by, and the weights themselves.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

#include <poise/target/rbm_layer.hpp>
#include <poise/target/rbm_weights.hpp>

#include "rbm_gibbs_draw.hpp"

namespace poise::cuda {

class RbmGibbsLayer {
 public:
  /// Rows of units are padded to this many: two words of bits.
  static constexpr std::size_t kTile = 64;
  static constexpr std::size_t kLanes = 32;       // threads that share a fragment
  static constexpr std::size_t kFragment = 8;     // units of it
  static constexpr std::size_t kStepInputs = 32;  // inputs of it: a word of bits

  [[nodiscard]] static std::size_t words(Index units) { return (units + kTile - 1) / kTile * (kTile / kGibbsSlice); }

  /// `doubt` leaves more open than need be: activations may be off by this much.
  RbmGibbsLayer(const RbmWeights& rbm, RbmLayer::Side side, double doubt)
      : units_(side == RbmLayer::Side::hidden ? rbm.hidden : rbm.visible),
        inputs_(side == RbmLayer::Side::hidden ? rbm.visible : rbm.hidden),
        fragments_(words(units_) * kGibbsSlice / kFragment * words(inputs_) * kLanes, GibbsFragment{}),
        bounds_(words(units_) * kGibbsSlice, GibbsUnit{0, 0.0F, 1.0F, 1.0F}),
        weights_(std::size_t{units_} * stride(), 0.0F) {
    const bool hidden = side == RbmLayer::Side::hidden;
    for (Index unit = 0; unit < units_; ++unit) {
      float* const row = weights_.data() + unit * stride();
      for (Index input = 0; input < inputs_; ++input) {
        row[input] = rbm.weights[hidden ? std::size_t{unit} * inputs_ + input : std::size_t{input} * units_ + unit];
      }
      set_unit(unit, (hidden ? rbm.hidden_bias : rbm.visible_bias)[unit], doubt);
    }
  }

  [[nodiscard]] Index units() const { return units_; }
  [[nodiscard]] std::size_t input_words() const { return words(inputs_); }
  /// [unit / 8][word of inputs][thread]
  [[nodiscard]] const std::vector<GibbsFragment>& fragments() const { return fragments_; }
  [[nodiscard]] const std::vector<GibbsUnit>& bounds() const { return bounds_; }
  /// [unit][stride]
  [[nodiscard]] const std::vector<float>& weights() const { return weights_; }
  [[nodiscard]] std::size_t stride() const { return words(inputs_) * kStepInputs; }

 private:
  /// A number of sixteen bits whose bytes have signs: at most 127 * 256 + 127.
  static constexpr double kMost = 32639.0;

  /// The sum over some of the weights is too small by the sum of some of the errors: at most by that of the positive
  /// ones, and too large at most by that of the negative ones. The whole sum has 30 bits.
  void set_unit(Index unit, double bias, double doubt) {
    const float* const row = weights_.data() + unit * stride();
    double largest = std::numeric_limits<float>::min();
    double total = std::abs(bias);
    for (Index input = 0; input < inputs_; ++input) {
      largest = std::max(largest, std::abs(static_cast<double>(row[input])));
      total += std::abs(static_cast<double>(row[input]));
    }
    const double step = std::max(largest / kMost, std::ldexp(total, -30));
    double low = 0.0, high = 0.0;
    const auto round = [&](double value) {
      const double rounded = std::nearbyint(value / step);
      const double error = value - step * rounded;
      (error < 0.0 ? low : high) += std::abs(error);
      return static_cast<std::int32_t>(rounded);
    };
    GibbsUnit& to = bounds_[unit];
    to.start = round(bias);
    for (Index input = 0; input < inputs_; ++input) set_weight(unit, input, round(row[input]));
    to.scale = static_cast<float>(-step * std::numbers::log2e);
    to.above = static_cast<float>(std::min(std::exp(low + doubt) * (1.0 + kGibbsEstimate), 1e30));
    to.below = static_cast<float>(std::exp(-high - doubt) * (1.0 - kGibbsEstimate));
  }

  void set_weight(Index unit, Index input, std::int32_t weight) {
    const std::int32_t low = ((weight + 128) & 255) - 128;
    const std::int32_t high = (weight - low) / 256;
    // The thread, half and byte whose input this is.
    const unsigned place = input % kStepInputs;
    const unsigned byte = place / 8, t = place % 8 / 2, half = place % 2;
    const std::size_t lane = unit % kFragment * 4 + t;
    const std::size_t step = input / kStepInputs;
    GibbsFragment& to = fragments_[(unit / kFragment * words(inputs_) + step) * kLanes + lane];
    to.high[half] |= static_cast<std::uint32_t>(static_cast<std::uint8_t>(high)) << 8 * byte;
    to.low[half] |= static_cast<std::uint32_t>(static_cast<std::uint8_t>(low)) << 8 * byte;
  }

  Index units_;
  Index inputs_;
  std::vector<GibbsFragment> fragments_;
  std::vector<GibbsUnit> bounds_;
  std::vector<float> weights_;
};

}  // namespace poise::cuda
