/// Biases of independent units, and a pilot that finds how bright they make what lies between them and the RBM.
#include "engines/common/tempering/hot_end.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/rbm_gibbs.hpp"
#include <poise/extend/base/rng.hpp>

namespace poise {

namespace {

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double bias_of(double rate, double rarest) {
  const double kept = std::clamp(rate, rarest, 1.0 - rarest);
  return std::log(kept / (1.0 - kept));
}

std::vector<double> visible_base(const RbmWeights& weights) {
  constexpr double kRarestGuess = 0.05;
  std::vector<double> base(weights.visible);
  for (Index i = 0; i < weights.visible; ++i) {
    base[i] = weights.visible_rates.empty() ? bias_of(sigmoid(weights.visible_bias[i]), kRarestGuess)
                                            : bias_of(weights.visible_rates[i], RbmWeights::kRarest);
  }
  return base;
}

/// Activations of the hidden units at the hot end.
struct Activations {
  std::vector<double> means;
  std::vector<double> variances;

  Activations(const RbmWeights& weights, const std::vector<double>& visible)
      : means(weights.hidden_bias.begin(), weights.hidden_bias.end()), variances(weights.hidden, 0.0) {
    for (Index i = 0; i < weights.visible; ++i) {
      const double rate = sigmoid(visible[i]);
      for (Index j = 0; j < weights.hidden; ++j) {
        const double weight = weights.weights[std::size_t{j} * weights.visible + i];
        means[j] += rate * weight;
        variances[j] += rate * (1.0 - rate) * weight * weight;
      }
    }
  }

  [[nodiscard]] std::vector<double> biases(double k) const {
    std::vector<double> out(means.size());
    for (std::size_t j = 0; j < out.size(); ++j) out[j] = means[j] / std::sqrt(1.0 + k * variances[j]);
    return out;
  }
};

/// Visible units that are on, on average, at a temperature where chains still mix in dozens of sweeps. A property of
/// the RBM, so its random numbers are always the same.
double brightness_on_the_way(const Rbm& target, const Rbm::Base& base) {
  constexpr double kBeta = 0.8;
  constexpr std::uint64_t kSeed = 1;
  constexpr std::size_t kChains = RbmGibbs::kChainsTogether;
  constexpr int kSweeps = 40;  // each to forget the start, and to count
  const Rbm heated = target.heated(kBeta, base);
  const RbmGibbs kernel(heated);
  std::vector<Rbm::State> states;
  std::vector<RbmGibbs::Scratch> scratches(kChains, RbmGibbs::Scratch(heated));
  std::vector<Rng> rngs;
  for (std::size_t c = 0; c < kChains; ++c) {
    Rng rng = make_rng(kSeed, Stream::start, c);
    std::vector<Value> x(target.num_variables());
    for (Index i = 0; i < x.size(); ++i) x[i] = rng.uniform() < sigmoid(base.visible[i]) ? 1 : 0;
    states.push_back(heated.make_state(x));
    rngs.push_back(make_rng(kSeed, Stream::chain, c));
  }
  std::vector<RbmGibbs::Member> members;
  for (std::size_t c = 0; c < kChains; ++c) members.push_back({&states[c], &scratches[c], &rngs[c]});
  kernel.advance(heated, members, kSweeps);
  kernel.advance(heated, members, kSweeps);
  double on = 0.0;
  for (const RbmGibbs::Scratch& scratch : scratches) {
    on += std::accumulate(scratch.counts.begin(), scratch.counts.begin() + target.num_variables(), 0.0);
  }
  return on / kSweeps / kChains;
}

}  // namespace

Rbm::Base hot_end(const Rbm& target) {
  std::vector<double> visible = visible_base(target.weights());
  const Activations activations(target.weights(), visible);
  if (target.weights().visible_rates.empty()) return {std::move(visible), activations.biases(std::numbers::pi / 8.0)};
  const double wanted =
      std::accumulate(visible.begin(), visible.end(), 0.0, [](double sum, double bias) { return sum + sigmoid(bias); });
  double low = 1e-2;
  double high = 1e3;
  constexpr int kHalvings = 12;  // finer than what the pilot can tell
  for (int round = 0; round < kHalvings; ++round) {
    const double k = std::sqrt(low * high);
    (brightness_on_the_way(target, {visible, activations.biases(k)}) > wanted ? low : high) = k;
  }
  return {visible, activations.biases(std::sqrt(low * high))};
}

}  // namespace poise
