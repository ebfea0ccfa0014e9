/// What block Gibbs has in the memory of the device: layers, and states as bits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <poise/types.hpp>

#include "engines/cuda/common/call.hpp"
#include "engines/cuda/rbm/rbm_gibbs_kernels.hpp"
#include "engines/cuda/rbm/rbm_gibbs_layer.hpp"

namespace poise::cuda {

/// Rows of states for so many chains.
inline std::size_t padded_rows(std::size_t chains) { return (chains + kGibbsRows - 1) / kGibbsRows * kGibbsRows; }

inline void put_bits(std::span<const Value> levels, std::span<std::uint32_t> words) {
  std::fill(words.begin(), words.end(), 0U);
  for (Index i = 0; i < levels.size(); ++i) words[i / 32] |= std::uint32_t{levels[i]} << i % 32;
}
inline void get_bits(std::span<const std::uint32_t> words, std::span<Value> levels) {
  for (Index i = 0; i < levels.size(); ++i) levels[i] = static_cast<Value>(words[i / 32] >> i % 32 & 1U);
}

/// A layer, at beta = 1 until it is heated.
class GibbsLayerOnDevice {
 public:
  GibbsLayerOnDevice(const RbmGibbsLayer& layer, const std::vector<float>& biases, std::uint32_t first_slice)
      : units_(layer.units()),
        input_words_(layer.input_words()),
        slice_(first_slice),
        fragments_(layer.fragments()),
        bounds_(layer.bounds()),
        weights_(layer.weights()),
        biases_(biases) {}

  /// For replicas: bounds and offsets of all rungs, one after the other.
  void heat(const std::vector<GibbsUnit>& bounds, const std::vector<double>& offsets) {
    bounds_ = Array<GibbsUnit>(bounds);
    offsets_ = Array<double>(offsets);
  }

  [[nodiscard]] GibbsLayerView view() const {
    return {units_,
            static_cast<std::uint32_t>(RbmGibbsLayer::words(units_)),
            static_cast<std::uint32_t>(input_words_),
            slice_,
            fragments_.data(),
            bounds_.data(),
            weights_.data(),
            biases_.data(),
            offsets_.data()};
  }

 private:
  Index units_;
  std::size_t input_words_;
  std::uint32_t slice_;
  Array<GibbsFragment> fragments_;
  Array<GibbsUnit> bounds_;
  Array<float> weights_, biases_;
  Array<double> offsets_;
};

}  // namespace poise::cuda
