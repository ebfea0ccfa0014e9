/// A block of chains that are updated as on a GPU, on the host.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include <poise/extend/engines/engine.hpp>
#include "engines/common/exact_tables.hpp"
#include "engines/common/keyed_words.hpp"
#include "engines/cpu/lanes/lane_model.hpp"
#include "engines/cuda/lanes/lane_update.hpp"

namespace poise::testing {

/// What a device does, on the host: pairs of chains, the variables of a colour in no order.
class HostBlock {
 public:
  template <class T>
  HostBlock(const T& target, const LaneModel& model, ChainGroup group, std::uint64_t first_chain)
      : model_(model), image_(model), exact_(exact_tables(target, model)), group_(group) {
    first_lane_ = (first_chain + group.first) % 2;
    pairs_ = (first_lane_ + group.count + 1) / 2;
    for (std::size_t p = 0; p < pairs_; ++p) {
      const WordKey key = word_key(kSeed, Stream::lanes, (first_chain + group.first) / 2 + p);
      keys_.push_back({key.first, key.second});
    }
    levels_.assign(model.num_variables() * pairs_, 0);
  }

  /// Floats are believed in nothing, or only where a random number is that far away from a probability.
  void distrust(float margin) {
    for (ImageVariable& variable : image_.variables) variable.margin = margin;
  }
  [[nodiscard]] const ExactTables& exact() const { return exact_; }
  [[nodiscard]] ChainGroup group() const { return group_; }
  [[nodiscard]] std::uint64_t sweeps() const { return sweeps_; }

  void sweep(std::uint64_t sweeps) {
    const cuda::ImageView image{image_.variables.data(), image_.pairs.data(), image_.terms.data(), image_.others.data(),
                                image_.tables.data()};
    const cuda::ExactView exact{exact_.values.data(), exact_.factors.data(),
                                exact_.sites.data(),  exact_.links.empty() ? nullptr : exact_.first_link.data(),
                                exact_.links.data(),  exact_.unit};
    for (; sweeps > 0; --sweeps, ++sweeps_) {
      for (std::size_t colour = 0; colour + 1 < image_.colours.size(); ++colour) {
        for (std::size_t p = pairs_; p-- > 0;) {
          for (std::uint32_t k = image_.colours[colour + 1]; k-- > image_.colours[colour];) {
            if (update(image, k, pair(p))) cuda::settle_both<true>(image, exact, k, pair(p));
          }
        }
      }
      if ((sweeps_ + 1) % LaneModel::kMostSummed == 0) spill();
    }
  }
  void reset_counts() { counts_.assign(model_.num_entries() * pairs_, 0), earlier_.assign(2 * counts_.size(), 0); }
  void reset_sums() { sums_.assign(model_.num_entries() * 2 * pairs_, 0.0F), earlier_sums_.assign(sums_.size(), 0.0); }

  void set_levels(std::size_t chain, std::span<const Value> levels) {
    for (Index i = 0; i < levels.size(); ++i) byte(levels_, model_.position(i), chain) = levels[i];
  }
  void get_levels(std::size_t chain, std::span<Value> levels) {
    for (Index i = 0; i < levels.size(); ++i) levels[i] = byte(levels_, model_.position(i), chain);
  }
  void get_counts(std::size_t chain, std::span<std::uint64_t> counts) {
    for_each_entry([&](std::size_t outside, std::size_t inside) {
      counts[outside] = earlier_[inside * 2 * pairs_ + lane(chain)] + byte(counts_, inside, chain);
    });
  }
  void get_sums(std::size_t chain, std::span<double> sums) {
    for_each_entry([&](std::size_t outside, std::size_t inside) {
      const std::size_t at = inside * 2 * pairs_ + lane(chain);
      sums[outside] = earlier_sums_[at] + static_cast<double>(sums_[at]);
    });
  }

  static constexpr std::uint64_t kSeed = 5;

 private:
  [[nodiscard]] std::size_t lane(std::size_t chain) const { return first_lane_ + chain - group_.first; }
  std::uint8_t& byte(std::vector<std::uint16_t>& words, std::size_t row, std::size_t chain) {
    return reinterpret_cast<std::uint8_t*>(words.data())[row * 2 * pairs_ + lane(chain)];
  }
  [[nodiscard]] cuda::TwoChains<std::uint32_t> pair(std::size_t p) {
    cuda::TwoChains<std::uint32_t> two{};
    two.levels = levels_.data() + p;
    two.counts = counts_.empty() ? nullptr : counts_.data() + p;
    two.stride = static_cast<std::uint32_t>(2 * pairs_);
    two.sums = sums_.empty() ? nullptr : sums_.data() + 2 * p;
    two.sums_stride = 2 * pairs_;
    two.key = keys_[p];
    two.scattered = sweeps_ * model_.num_variables() * 2 * kWordStep;
    for (unsigned c = 0; c < 2; ++c) {
      const std::size_t number = 2 * p + c;
      if (number >= first_lane_ && number < first_lane_ + group_.count) two.chains |= 1U << c;
    }
    return two;
  }
  [[nodiscard]] bool update(const cuda::ImageView& image, std::uint32_t k, const cuda::TwoChains<std::uint32_t>& two) {
    const bool two_levels = std::all_of(image_.variables.begin(), image_.variables.end(),
                                        [](const ImageVariable& variable) { return variable.levels == 2; });
    if (two_levels) {
      return two.sums != nullptr ? cuda::update_both<false, true>(image, k, two)
                                 : cuda::update_both<false, false>(image, k, two);
    }
    return two.sums != nullptr ? cuda::update_both<true, true>(image, k, two)
                               : cuda::update_both<true, false>(image, k, two);
  }
  void spill() {
    for (std::size_t k = 0; k < earlier_.size(); ++k) earlier_[k] += reinterpret_cast<std::uint8_t*>(counts_.data())[k];
    for (std::size_t k = 0; k < sums_.size(); ++k) earlier_sums_[k] += static_cast<double>(sums_[k]);
    std::fill(counts_.begin(), counts_.end(), std::uint16_t{0});
    std::fill(sums_.begin(), sums_.end(), 0.0F);
  }
  template <class Use>
  void for_each_entry(Use&& use) const {
    for (const ImageVariable& variable : image_.variables) {
      const Index first = model_.entries()[variable.variable];
      for (Index v = 1; v < variable.levels; ++v) use(first + v - 1, variable.entry + v - 1);
    }
  }

  const LaneModel& model_;
  LaneImage image_;
  ExactTables exact_;
  ChainGroup group_;
  std::size_t first_lane_ = 0;
  std::size_t pairs_ = 0;
  std::uint64_t sweeps_ = 0;
  std::vector<cuda::PairKey> keys_;
  std::vector<std::uint16_t> levels_;
  std::vector<std::uint16_t> counts_;
  std::vector<float> sums_;
  std::vector<std::uint64_t> earlier_;
  std::vector<double> earlier_sums_;
};

}  // namespace poise::testing
