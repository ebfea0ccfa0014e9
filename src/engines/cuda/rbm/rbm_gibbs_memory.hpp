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

/// Uploads a state as bits.
inline void upload_bits(std::span<const Value> levels, Array<std::uint32_t>& to) {
  std::vector<std::uint32_t> bits(to.size());
  put_bits(levels, bits);
  to.upload(bits);
}

/// Where launch_gibbs_sums writes three sums of each chain: [sum][chain].
inline GibbsSums sums_at(double* to, std::size_t chains, const std::uint32_t* reference) {
  return {to, to + chains, to + 2 * chains, reference};
}

/// Steps of chains at which units are on, in planes of bits first.
struct GibbsCountsOnDevice {
  /// Counts from here on. Says whether there was no memory for that before.
  bool start(std::size_t chains, std::size_t words, std::size_t units) {
    const bool is_new = counts.empty();
    if (is_new) {
      Array<uint4> both(chains * words);
      counts = Array<std::uint64_t>(chains * units);
      planes = std::move(both);  // once there is room for both
    }
    planes.clear();
    counts.clear();
    return is_new;
  }
  [[nodiscard]] std::vector<std::uint64_t> get(std::size_t chain, std::size_t units) const {
    std::vector<std::uint64_t> out(units);
    check(cudaMemcpy(out.data(), counts.data() + chain * units, units * sizeof(std::uint64_t), cudaMemcpyDeviceToHost),
          "data were copied from it");
    return out;
  }

  Array<uint4> planes;
  Array<std::uint64_t> counts;
};

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
