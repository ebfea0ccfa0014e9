/// Block Gibbs as kernels of a GPU do it, thread by thread, on the host.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include "engines/cuda/rbm/rbm_gibbs_layer.hpp"
#include "models/rbm/rbm_layer.hpp"

namespace poise::testing {

/// Sixteen chains of an RBM.
class HostRbmGibbs {
 public:
  static constexpr unsigned kChains = 16;
  using Bits = std::vector<std::uint32_t>;  // of one chain

  HostRbmGibbs(const Rbm& target, double doubt, std::uint64_t seed)
      : target_(target),
        doubt_(doubt),
        hidden_(target, RbmLayer::Side::hidden, doubt),
        visible_(target, RbmLayer::Side::visible, doubt),
        seed_(seed),
        visible_bits_(kChains, Bits(cuda::RbmGibbsLayer::words(target.num_variables()), 0)),
        hidden_bits_(kChains, Bits(cuda::RbmGibbsLayer::words(target.num_hidden()), 0)) {
    for (unsigned chain = 0; chain < kChains; ++chain) rows_[chain] = {chain, 0};
  }

  /// Where a chain is: its random stream, and its rung.
  struct Row {
    std::uint64_t stream;
    std::uint32_t rung;
  };
  /// Makes the chains replicas, each at one of these inverse temperatures; `set_row` says at which.
  void heat(std::span<const double> betas, const Rbm::Base& base) {
    betas_.assign(betas.begin(), betas.end());
    hidden_.heat(betas, base.hidden, doubt_);
    visible_.heat(betas, base.visible, doubt_);
  }
  void set_row(unsigned chain, const Row& row) { rows_[chain] = row; }

  void sweep() {
    draw(hidden_, 0, target_.weights().hidden_bias, visible_bits_, hidden_bits_);
    const auto first_slice = static_cast<unsigned>(RbmLayer::padded(target_.num_hidden()) / cuda::kGibbsSlice);
    draw(visible_, first_slice, target_.weights().visible_bias, hidden_bits_, visible_bits_);
    ++steps_;
  }

  void set_levels(unsigned chain, std::span<const Value> x) {
    std::fill(visible_bits_[chain].begin(), visible_bits_[chain].end(), 0U);
    for (Index i = 0; i < x.size(); ++i) visible_bits_[chain][i / 32] |= std::uint32_t{x[i]} << i % 32;
  }

  [[nodiscard]] std::vector<Value> levels(unsigned chain) const {
    std::vector<Value> x(target_.num_variables());
    for (Index i = 0; i < x.size(); ++i) x[i] = static_cast<Value>(visible_bits_[chain][i / 32] >> i % 32 & 1U);
    return x;
  }
  [[nodiscard]] std::uint64_t settled() const { return settled_; }

 private:
  /// A layer at all temperatures.
  struct Layer {
    Layer(const Rbm& target, RbmLayer::Side side, double doubt)
        : layer(target.weights(), side, doubt), bounds{layer.bounds()}, offsets{std::vector<double>(layer.units())} {}

    void heat(std::span<const double> betas, std::span<const double> base, double doubt) {
      bounds.clear();
      offsets.clear();
      for (const double beta : betas) {
        offsets.emplace_back(base.begin(), base.begin() + layer.units());
        for (double& offset : offsets.back()) offset *= 1.0 - beta;
        bounds.push_back(layer.heated(beta, offsets.back(), doubt));
      }
    }

    cuda::RbmGibbsLayer layer;
    std::vector<std::vector<cuda::GibbsUnit>> bounds;  // [rung]
    std::vector<std::vector<double>> offsets;
  };

  /// mma.m16n8k32 of bytes, by where the PTX ISA says that threads have rows and columns.
  static void multiply(std::array<std::array<std::int32_t, 4>, 32>& sums,
                       const std::array<std::array<std::uint32_t, 4>, 32>& inputs,
                       const std::array<std::array<std::uint32_t, 2>, 32>& weights) {
    std::int32_t a[16][32], b[32][8];
    const auto byte = [](std::uint32_t word, unsigned k) {
      return std::int32_t{static_cast<std::int8_t>(word >> 8 * k)};
    };
    for (unsigned lane = 0; lane < 32; ++lane) {
      const unsigned g = lane / 4, t = lane % 4;
      for (unsigned k = 0; k < 4; ++k) {
        for (unsigned r = 0; r < 4; ++r) a[g + r % 2 * 8][r / 2 * 16 + 4 * t + k] = byte(inputs[lane][r], k);
        for (unsigned r = 0; r < 2; ++r) b[r * 16 + 4 * t + k][g] = byte(weights[lane][r], k);
      }
    }
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned r = 0; r < 4; ++r) {
        const unsigned row = lane / 4 + r / 2 * 8, column = lane % 4 * 2 + r % 2;
        for (unsigned k = 0; k < 32; ++k) sums[lane][r] += a[row][k] * b[k][column];
      }
    }
  }

  void draw(const Layer& heated, unsigned first_slice, const std::vector<float>& biases, const std::vector<Bits>& given,
            std::vector<Bits>& drawn) {
    const std::uint64_t first_block =
        steps_ * (RbmLayers::random_words(target_.num_variables(), target_.num_hidden()) / 2);
    const cuda::RbmGibbsLayer& layer = heated.layer;
    const std::size_t words = layer.input_words();
    for (unsigned slice = 0; slice * cuda::kGibbsSlice < layer.units(); ++slice) {
      for (Bits& bits : drawn) bits[slice] = 0;
      std::array<std::array<std::int32_t, 4>, 32> high[4] = {}, low[4] = {};
      for (std::size_t step = 0; step < words; ++step) {
        std::array<std::array<std::uint32_t, 4>, 32> inputs;
        for (unsigned lane = 0; lane < 32; ++lane) {
          for (unsigned k = 0; k < 4; ++k) {
            inputs[lane][k] = cuda::gibbs_inputs(given[lane / 4 + k % 2 * 8][step], lane % 4, k / 2);
          }
        }
        for (unsigned j = 0; j < 4; ++j) {
          std::array<std::array<std::uint32_t, 2>, 32> first, second;
          for (unsigned lane = 0; lane < 32; ++lane) {
            const auto& from = layer.fragments()[((4 * slice + j) * words + step) * 32 + lane];
            first[lane] = {from.high[0], from.high[1]};
            second[lane] = {from.low[0], from.low[1]};
          }
          multiply(high[j], inputs, first);
          multiply(low[j], inputs, second);
        }
      }
      const cuda::GibbsOffset offset = cuda::gibbs_offset(first_block, first_slice + slice);
      for (unsigned lane = 0; lane < 32; ++lane) {
        const unsigned t = lane % 4;
        for (unsigned down = 0; down < 2; ++down) {
          const unsigned chain = lane / 4 + 8 * down;
          const auto& [stream, rung] = rows_[chain];
          cuda::GibbsUnit units[8];
          for (unsigned k = 0; k < 8; ++k) units[k] = heated.bounds[rung][slice * 32 + k / 2 * 8 + 2 * t + k % 2];
          const cuda::Philox blocks[2] = {cuda::philox(offset.block + t, stream, seed_),
                                          cuda::philox(offset.block + 4 + t, stream, seed_)};
          std::int32_t sums[8];
          for (unsigned k = 0; k < 8; ++k) {
            sums[k] = 256 * high[k / 2][lane][2 * down + k % 2] + low[k / 2][lane][2 * down + k % 2];
          }
          const cuda::GibbsDrawn own = cuda::draw_units(units, sums, t, blocks, offset.word);
          const Index left = layer.units() - slice * 32;
          const std::uint32_t valid = left < 32 ? (1U << left) - 1 : ~0U;
          drawn[chain][slice] |= own.on & valid;
          for (std::uint32_t rest = own.open & valid; rest != 0; rest &= rest - 1) {
            const auto inside = static_cast<unsigned>(__builtin_ctz(rest));
            const Index unit = slice * 32 + inside;
            const cuda::Philox block = cuda::philox(offset.block + cuda::gibbs_block(inside), stream, seed_);
            const std::uint64_t at = 8 * first_block + (first_slice + slice) * 32 + 2 * (inside % 16) + inside / 16;
            const cuda::GibbsOpen open{at, stream + static_cast<std::uint64_t>(Stream::further_digits),
                                       cuda::gibbs_bits(block, offset.word, inside)};
            const double in_one = 1.0 / target_.activation_unit();
            std::int64_t sum = cuda::whole_units(biases[unit], in_one);
            for (std::size_t input = 0; input < layer.stride(); ++input) {
              if ((given[chain][input / 32] >> input % 32 & 1U) == 0) continue;
              sum += cuda::whole_units(layer.weights()[unit * layer.stride() + input], in_one);
            }
            const double activation =
                cuda::heated_activation(betas_[rung] * target_.activation_unit(), sum, heated.offsets[rung][unit]);
            if (cuda::is_on(open, seed_, activation)) {
              drawn[chain][slice] |= 1U << inside;
            }
            ++settled_;
          }
        }
      }
    }
  }

  const Rbm& target_;
  double doubt_;
  Layer hidden_;
  Layer visible_;
  std::vector<double> betas_ = {1.0};
  std::array<Row, kChains> rows_;
  std::uint64_t seed_;
  std::uint64_t steps_ = 0;
  std::uint64_t settled_ = 0;
  std::vector<Bits> visible_bits_;
  std::vector<Bits> hidden_bits_;
};

}  // namespace poise::testing
