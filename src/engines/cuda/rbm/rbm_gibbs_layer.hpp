/// One layer of an RBM as kernels of block Gibbs read it: weights of sixteen bits in the order of tensor cores, what
/// their sums are off by, and the weights themselves.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "models/rbm/rbm_layer.hpp"
#include "models/rbm/rbm_weights.hpp"

#include "engines/cuda/rbm/rbm_gibbs_draw.hpp"

namespace poise::cuda {

class RbmGibbsLayer {
 public:
  /// Rows of units are padded to this many: two words of bits.
  static constexpr std::size_t kTile = 64;
  static constexpr std::size_t kLanes = 32;       // threads that share a fragment
  static constexpr std::size_t kFragment = 8;     // units of it
  static constexpr std::size_t kStepInputs = 32;  // inputs of it: a word of bits

  [[nodiscard]] static std::size_t words(Index units) { return (units + kTile - 1) / kTile * (kTile / kGibbsSlice); }

  /// At beta = 1. `doubt` leaves more open than need be: activations may be off by this much.
  RbmGibbsLayer(const RbmWeights& rbm, RbmLayer::Side side, double doubt)
      : units_(side == RbmLayer::Side::hidden ? rbm.hidden : rbm.visible),
        inputs_(side == RbmLayer::Side::hidden ? rbm.visible : rbm.hidden),
        fragments_(words(units_) * kGibbsSlice / kFragment * words(inputs_) * kLanes, GibbsFragment{}),
        weights_(std::size_t{units_} * stride(), 0.0F) {
    const bool hidden = side == RbmLayer::Side::hidden;
    for (Index unit = 0; unit < units_; ++unit) {
      float* const row = weights_.data() + unit * stride();
      for (Index input = 0; input < inputs_; ++input) {
        row[input] = rbm.weights[hidden ? std::size_t{unit} * inputs_ + input : std::size_t{input} * units_ + unit];
      }
      set_unit(unit, (hidden ? rbm.hidden_bias : rbm.visible_bias)[unit]);
    }
    bounds_ = heated(1.0, std::vector<double>(units_, 0.0), doubt);
  }

  [[nodiscard]] Index units() const { return units_; }
  [[nodiscard]] std::size_t input_words() const { return words(inputs_); }
  /// [unit / 8][word of inputs][thread]
  [[nodiscard]] const std::vector<GibbsFragment>& fragments() const { return fragments_; }
  [[nodiscard]] const std::vector<GibbsUnit>& bounds() const { return bounds_; }
  /// The bounds at an inverse temperature, with an offset for each unit.
  [[nodiscard]] std::vector<GibbsUnit> heated(double beta, std::span<const double> offsets, double doubt) const {
    std::vector<GibbsUnit> out(words(units_) * kGibbsSlice, GibbsUnit{0, 0.0F, 1.0F, 1.0F});
    for (Index unit = 0; unit < units_; ++unit) out[unit] = make_unit(rounded_[unit], {beta, offsets[unit]}, doubt);
    return out;
  }
  /// [unit][stride]
  [[nodiscard]] const std::vector<float>& weights() const { return weights_; }
  [[nodiscard]] std::size_t stride() const { return words(inputs_) * kStepInputs; }

 private:
  void set_unit(Index unit, double bias) {
    const float* const row = weights_.data() + unit * stride();
    double largest = 0.0;
    double total = std::abs(bias);
    for (Index input = 0; input < inputs_; ++input) {
      largest = std::max(largest, std::abs(static_cast<double>(row[input])));
      total += std::abs(static_cast<double>(row[input]));
    }
    const double step = gibbs_step(largest, total);
    GibbsErrors errors;
    const std::int32_t start = round_weight(bias, step, errors);
    for (Index input = 0; input < inputs_; ++input) {
      // The thread, half and byte whose input this is.
      const unsigned within = input % kStepInputs;
      const std::size_t lane = unit % kFragment * 4 + within % 8 / 2;
      const std::size_t word = unit / kFragment * words(inputs_) + input / kStepInputs;
      put_weight(fragments_[word * kLanes + lane], within % 2, within / 8, round_weight(row[input], step, errors));
    }
    rounded_.push_back({start, step, errors});
  }

  Index units_;
  Index inputs_;
  std::vector<GibbsFragment> fragments_;
  std::vector<GibbsRounded> rounded_;
  std::vector<GibbsUnit> bounds_;
  std::vector<float> weights_;
};

}  // namespace poise::cuda
