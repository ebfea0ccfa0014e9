/// Ladders whose replicas are moved on, swapped and mixed as on a GPU, on the host.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "engines/common/components.hpp"
#include "engines/common/exact_tables.hpp"
#include "engines/common/keyed_words.hpp"
#include "engines/cpu/lanes/lane_model.hpp"
#include "engines/cuda/lanes/lane_update.hpp"
#include "engines/cuda/tempering/ladder_swap.hpp"
#include "support/cuda/one_thread.hpp"

namespace poise::testing {

/// What a device does with ladders of one model, all of them at the first ladder of temperatures that a run has.
class HostLadders {
 public:
  struct Numbers {
    std::size_t ladders;
    std::uint64_t seed;
    std::uint64_t first_chain;
  };

  template <class T>
  HostLadders(const T& target, const LaneModel& model, std::span<const double> betas, Numbers numbers)
      : model_(model),
        image_(model),
        exact_(exact_tables(target, model)),
        components_(model),
        ladders_(numbers.ladders),
        rungs_(betas.size()),
        numbers_(numbers) {
    std::vector<LaneHeat> heats;
    for (const double beta : betas) {
      LaneHeat heat;
      heat.beta = beta;
      if (beta < 1.0) heat.log_zero = static_cast<float>(std::max(5.0 * std::log1p(-beta), -60.0));
      heats.push_back(heat);
      heats_.push_back({static_cast<float>(beta), std::max(static_cast<float>(heat.log_zero), cuda::kHardZero)});
    }
    for (std::size_t k = 0; k + 1 < rungs_; ++k) {
      steps_.push_back({heats[k + 1].beta - heats[k].beta, std::max(heats[k + 1].log_zero, -1e30) - heats[k].log_zero});
    }
    guesses_.assign(rungs_ - 1, 0.0);
    const std::size_t lanes = ladders_ * rungs_;
    for (std::size_t p = 0; p < lanes / 2; ++p) {
      const std::uint64_t ladder = p / (rungs_ / 2);
      const std::uint64_t first = (std::uint64_t{1} << 40) + (numbers.first_chain + ladder) * 64;
      const WordKey key = word_key(numbers.seed, Stream::lanes, first / 2 + p % (rungs_ / 2));
      keys_.push_back({key.first, key.second});
    }
    levels_.assign(model.num_variables() * lanes / 2, 0);
    for (std::size_t l = 0; l < lanes; ++l) replica_at_.push_back(static_cast<std::uint8_t>(l % rungs_));
    rung_of_ = replica_at_;
    came_from_cold_.assign(lanes, 0);
    accepted_ = below_ = above_ = std::vector<double>(lanes, 0.0);
    tried_.assign(lanes, 0);
    bridged_ = round_trips_ = taken_ = std::vector<std::uint64_t>(ladders_, 0);
    energies_.resize(lanes);
    const std::size_t twos = ladders_ / 2;
    start_.assign(components_.start().begin(), components_.start().end());
    labels_.resize(twos * (start_.size() - 1));
    chosen_.resize(labels_.size());
    found_.assign(twos * rungs_, 0);
    exchanged_ = found_;
    is_off_.assign(twos * rungs_, 0);
    exchange_taken_.assign(twos, 0);
  }

  /// Floats are believed in nothing, or only where a random number is that far away from a probability.
  void distrust(float margin) {
    for (ImageVariable& variable : image_.variables) variable.margin = margin;
  }
  void set_levels(std::size_t ladder, std::span<const Value> levels) {
    for (std::size_t r = 0; r < rungs_; ++r) {
      for (Index i = 0; i < levels.size(); ++i) byte(model_.position(i), ladder * rungs_ + r) = levels[i];
    }
  }
  [[nodiscard]] std::vector<Value> cold_levels(std::size_t ladder) {
    std::vector<Value> levels(model_.num_variables());
    const std::size_t lane = ladder * rungs_ + replica_at_[(ladder + 1) * rungs_ - 1];
    for (Index i = 0; i < levels.size(); ++i) levels[i] = byte(model_.position(i), lane);
    return levels;
  }
  void reset_sums() { sums_.assign(model_.num_entries() * ladders_, 0.0F); }
  /// Of an entry in the order of updates.
  [[nodiscard]] double sum(std::size_t entry, std::size_t ladder) const { return sums_[entry * ladders_ + ladder]; }
  [[nodiscard]] double accepted(std::size_t ladder, std::size_t pair) const {
    return accepted_[ladder * rungs_ + pair];
  }
  [[nodiscard]] std::uint64_t components() const {
    std::uint64_t all = 0;
    for (const std::uint64_t some : found_) all += some;
    return all;
  }
  [[nodiscard]] std::span<const cuda::ReplicaEnergy> energies() const { return energies_; }

  void step() {
    sweep();
    sum_energies();
    for (std::uint32_t c = 0; c < ladders_; ++c) {
      cuda::swap_ladder(view(), cuda::EnergyGains{energies_.data(), steps_.data()}, c, step_, OneThread());
    }
    ++step_;
    for (std::uint32_t k = 0; k < ladders_ / 2; ++k) {
      cuda::exchange_components(components_view(), view(), k, static_cast<std::uint32_t>(step_ % rungs_), OneThread());
    }
  }

 private:
  std::uint8_t& byte(std::size_t row, std::size_t lane) {
    return reinterpret_cast<std::uint8_t*>(levels_.data())[row * ladders_ * rungs_ + lane];
  }

  [[nodiscard]] cuda::HeatedChains<std::uint32_t> pair(std::size_t p) {
    cuda::HeatedChains<std::uint32_t> two{};
    two.levels = levels_.data() + p;
    two.stride = static_cast<std::uint32_t>(ladders_ * rungs_);
    two.sums = sums_.empty() ? nullptr : sums_.data() + 2 * p / rungs_;
    two.sums_stride = ladders_;
    two.key = keys_[p];
    two.scattered = step_ * model_.num_variables() * 2 * kWordStep;
    two.chains = 3;
    for (unsigned c = 0; c < 2; ++c) {
      two.heat[c] = heats_[rung_of_[2 * p + c]];
      if (rung_of_[2 * p + c] + 1U == rungs_) two.cold |= 1U << c;
    }
    return two;
  }

  void sweep() {
    const cuda::ImageView image{image_.variables.data(),  image_.pairs.data(),
                                image_.terms.data(),      image_.others.data(),
                                image_.tables.data(),     image_.zeros.empty() ? nullptr : image_.zeros.data(),
                                image_.zero_tables.data()};
    const cuda::ExactView exact{exact_.values.data(),     exact_.factors.data(), exact_.sites.data(),
                                exact_.first_link.data(), exact_.links.data(),   exact_.unit,
                                exact_.lowest.data()};
    for (std::size_t colour = 0; colour + 1 < image_.colours.size(); ++colour) {
      for (std::size_t p = keys_.size(); p-- > 0;) {
        const cuda::HeatedChains<std::uint32_t> two = pair(p);
        for (std::uint32_t k = image_.colours[colour + 1]; k-- > image_.colours[colour];) {
          const bool unsure = two.sums != nullptr ? cuda::update_both<true, true>(image, k, two)
                                                  : cuda::update_both<true, false>(image, k, two);
          if (unsure) cuda::settle_both<true>(image, exact, k, two);
        }
      }
    }
  }

  void sum_energies() {
    for (std::size_t l = 0; l < energies_.size(); ++l) {
      double sum = 0.0, zeros = 0.0;
      for (std::size_t f = 0; f < exact_.factors.size(); ++f) {
        std::size_t entry = exact_.factors[f].first_entry;
        for (std::uint32_t s = exact_.factors[f].first_site; s < exact_.factors[f].end_site; ++s) {
          entry += std::size_t{exact_.sites[s].stride} * byte(exact_.sites[s].position, l);
        }
        const bool is_zero = exact_.values[entry] == ExactTables::kZero;
        sum += static_cast<double>(is_zero ? exact_.lowest[f] : exact_.values[entry]);
        zeros += is_zero ? 1.0 : 0.0;
      }
      energies_[l] = {exact_.unit * sum, zeros};
    }
  }

  [[nodiscard]] cuda::LadderView view() {
    return {static_cast<std::uint32_t>(ladders_),
            static_cast<std::uint32_t>(rungs_),
            replica_at_.data(),
            rung_of_.data(),
            came_from_cold_.data(),
            accepted_.data(),
            tried_.data(),
            below_.data(),
            above_.data(),
            bridged_.data(),
            round_trips_.data(),
            taken_.data(),
            guesses_.data(),
            numbers_.seed,
            static_cast<std::uint64_t>(Stream::swaps) + numbers_.first_chain};
  }

  [[nodiscard]] cuda::ComponentsView components_view() {
    return {start_.data(),
            components_.neighbours().data(),
            static_cast<std::uint32_t>(start_.size() - 1),
            reinterpret_cast<std::uint8_t*>(levels_.data()),
            static_cast<std::uint32_t>(ladders_ * rungs_),
            labels_.data(),
            chosen_.data(),
            found_.data(),
            exchanged_.data(),
            is_off_.data(),
            exchange_taken_.data(),
            numbers_.seed,
            static_cast<std::uint64_t>(Stream::components) + numbers_.first_chain};
  }

  const LaneModel& model_;
  LaneImage image_;
  ExactTables exact_;
  ComponentExchange components_;
  std::size_t ladders_;
  std::size_t rungs_;
  Numbers numbers_;
  std::uint64_t step_ = 0;
  std::vector<cuda::RungHeat> heats_;
  std::vector<cuda::RungStep> steps_;
  std::vector<double> guesses_;
  std::vector<cuda::PairKey> keys_;
  std::vector<std::uint16_t> levels_;
  std::vector<float> sums_;
  std::vector<std::uint8_t> replica_at_, rung_of_, came_from_cold_;
  std::vector<double> accepted_, below_, above_;
  std::vector<std::uint64_t> tried_, bridged_, round_trips_, taken_;
  std::vector<cuda::ReplicaEnergy> energies_;
  std::vector<std::uint32_t> start_, labels_;
  std::vector<std::uint8_t> chosen_, is_off_;
  std::vector<std::uint64_t> found_, exchanged_, exchange_taken_;
};

}  // namespace poise::testing
