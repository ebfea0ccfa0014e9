/// Ladders of an RBM as a GPU has them, on the host: sixteen replicas each.
#pragma once

#include <memory>
#include <vector>

#include "engines/cuda/tempering/ladder_swap.hpp"
#include "support/cuda/host_rbm_gibbs.hpp"
#include "support/cuda/one_thread.hpp"

namespace poise::testing {

/// Gains of a state at a rung, as a thread adds them up.
inline cuda::ReplicaGain gain_of(const RbmWeights& weights, const Rbm::Base& base, const std::vector<Value>& x,
                                 const cuda::NeighbourBetas& betas) {
  cuda::HiddenGain hidden;
  for (Index j = 0; j < weights.hidden; ++j) {
    double a = weights.hidden_bias[j];
    for (Index i = 0; i < weights.visible; ++i) {
      if (x[i] != 0) a += weights.weights[std::size_t{j} * weights.visible + i];
    }
    hidden.add(betas, a, base.hidden[j]);
  }
  double linear = 0.0;
  for (Index i = 0; i < weights.visible; ++i) {
    if (x[i] != 0) linear += static_cast<double>(weights.visible_bias[i]) - base.visible[i];
  }
  const cuda::ReplicaGain of_units = hidden.gain(), of_biases = cuda::visible_gain(betas, linear);
  return {of_units.above + of_biases.above, of_units.below + of_biases.below};
}

class HostRbmLadders {
 public:
  static constexpr std::size_t kRungs = HostRbmGibbs::kChains;
  struct Numbers {
    std::size_t ladders;
    std::uint64_t seed;
    std::uint64_t first_chain;
    unsigned sweeps;  ///< in a step
  };

  HostRbmLadders(const Rbm& target, const Rbm::Base& base, const std::vector<double>& betas, const Numbers& numbers)
      : target_(target), base_(base), betas_(betas), numbers_(numbers), gains_(numbers.ladders * kRungs) {
    for (std::size_t c = 0; c < numbers.ladders; ++c) {
      chains_.push_back(std::make_unique<HostRbmGibbs>(target, 0.0, numbers.seed));
      chains_.back()->heat(betas, base);
    }
    for (std::size_t l = 0; l < gains_.size(); ++l) replica_at_.push_back(static_cast<std::uint8_t>(l % kRungs));
    rung_of_ = replica_at_;
    came_from_cold_.assign(gains_.size(), 0);
    accepted_.assign(gains_.size(), 0.0);
    below_ = above_ = accepted_;
    tried_.assign(gains_.size(), 0);
    bridged_.assign(numbers.ladders, 0);
    round_trips_ = taken_ = bridged_;
    guesses_.assign(kRungs - 1, 0.0);
  }

  void set_levels(std::size_t ladder, std::span<const Value> x) {
    for (unsigned r = 0; r < kRungs; ++r) chains_[ladder]->set_levels(r, x);
  }
  [[nodiscard]] std::vector<Value> cold_levels(std::size_t ladder) const {
    return chains_[ladder]->levels(replica_at_[ladder * kRungs + kRungs - 1]);
  }
  [[nodiscard]] double accepted(std::size_t ladder, std::size_t pair) const {
    return accepted_[ladder * kRungs + pair];
  }
  [[nodiscard]] std::uint64_t round_trips() const {
    std::uint64_t all = 0;
    for (const std::uint64_t some : round_trips_) all += some;
    return all;
  }

  void step() {
    for (std::uint32_t c = 0; c < numbers_.ladders; ++c) {
      for (unsigned r = 0; r < kRungs; ++r) {
        const std::uint32_t rung = rung_of_[c * kRungs + r];
        const std::uint64_t first = static_cast<std::uint64_t>(Stream::chain) + numbers_.first_chain;
        chains_[c]->set_row(r, {cuda::replica_stream(first, c, kRungs - 1 - rung), rung});
      }
      for (unsigned k = 0; k < numbers_.sweeps; ++k) chains_[c]->sweep();
      for (unsigned r = 0; r < kRungs; ++r) {
        const std::size_t replica = c * kRungs + r;
        gains_[replica] = gain_of(target_.weights(), base_, chains_[c]->levels(r),
                                  cuda::neighbour_betas(betas_.data(), kRungs, rung_of_[replica]));
      }
      cuda::swap_ladder(view(), cuda::ReplicaGains{gains_.data()}, c, step_, OneThread());
    }
    ++step_;
  }

 private:
  [[nodiscard]] cuda::LadderView view() {
    return {static_cast<std::uint32_t>(numbers_.ladders),
            kRungs,
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

  const Rbm& target_;
  Rbm::Base base_;
  std::vector<double> betas_;
  Numbers numbers_;
  std::uint64_t step_ = 0;
  std::vector<std::unique_ptr<HostRbmGibbs>> chains_;  // of each ladder
  std::vector<cuda::ReplicaGain> gains_;
  std::vector<std::uint8_t> replica_at_, rung_of_, came_from_cold_;
  std::vector<double> accepted_, below_, above_, guesses_;
  std::vector<std::uint64_t> tried_, bridged_, round_trips_, taken_;
};

}  // namespace poise::testing
