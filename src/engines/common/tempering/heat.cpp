/// Ising models, networks, RBMs, selection models and callback targets at every temperature.
#include "engines/common/tempering/heat.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include <poise/extend/engines/chain.hpp>
#include "kernels/rbm_gibbs.hpp"
#include "models/ising/graph_ising.hpp"
#include "models/ising/lattice_ising.hpp"
#include "models/network/markov_network.hpp"
#include "models/rbm/rbm.hpp"
#include "models/selection/selection_target.hpp"
#include "models/user/batch_target.hpp"

namespace poise {

namespace {

LatticeIsing heated(const LatticeIsing& target, double beta) {
  std::vector<double> field(target.num_variables());
  for (Index i = 0; i < field.size(); ++i) field[i] = beta * target.field(i);
  return {target.rows(), target.columns(), target.is_torus() ? Boundary::torus : Boundary::open,
          beta * target.coupling(), field};
}

GraphIsing heated(const GraphIsing& target, double beta) { return graph_at(target, beta); }

/// log p_beta is beta log p.
template <class T>
class IsingHeat final : public Heat {
 public:
  explicit IsingHeat(std::shared_ptr<const T> target) : target_(std::move(target)) {}

  [[nodiscard]] Description at(double beta) const override {
    return beta == 1.0 ? target_ : std::make_shared<const T>(heated(*target_, beta));
  }
  [[nodiscard]] double log_hot() const override { return target_->num_variables() * std::numbers::ln2; }

  void gains(const HeatedChains& chains, BetaRise rise, std::span<double> out) const override {
    if (chains.beta > 0.0) {
      chains.engine.observe(chains.group, {.log_prob = out});
      for (double& log_prob : out) log_prob *= (rise.to - rise.from) / chains.beta;
      return;
    }
    const std::size_t n = target_->num_variables();
    std::vector<Value> levels(chains.group.count * n);
    chains.engine.observe(chains.group, {.levels = levels});
    for (std::size_t k = 0; k < chains.group.count; ++k) {
      out[k] = (rise.to - rise.from) * target_->log_prob(target_->make_state({levels.data() + k * n, n}));
    }
  }

 private:
  std::shared_ptr<const T> target_;
};

/// How fast zeros harden towards beta = 1.
constexpr double kHardening = 5.0;
/// What a zero counts as is a double even where 1 - beta is the smallest there is.
constexpr double kLowestFloor = -500.0;

/// Zeros are softened where it is hot: log p_beta(x) = beta E(x) + 5 log(1 - beta) N(x), where N is the number of
/// factors that are zero at x, and E the sum of the others' logarithms and of the smallest positive ones of those.
class NetworkHeat final : public Heat {
 public:
  explicit NetworkHeat(NetworkDescription model) : model_(std::move(model)), logs_(network().values.size(), 0.0) {
    if (network().has_zeros()) zeros_.assign(logs_.size(), 0.0);
    std::vector<char> done(logs_.size(), 0);  // by the start of a table: some are shared
    for (std::size_t f = 0; f < network().num_factors(); ++f) {
      const std::size_t start = network().table_start[f];
      if (std::exchange(done[start], 1) != 0) continue;
      const std::span<const double> table = network().table(f);
      double smallest = std::numeric_limits<double>::infinity();
      for (const double value : table) smallest = value > 0.0 ? std::min(smallest, value) : smallest;
      const double floor = std::max(std::log(smallest), kLowestFloor);
      for (std::size_t e = 0; e < table.size(); ++e) {
        logs_[start + e] = table[e] > 0.0 ? std::log(table[e]) : floor;
        if (table[e] == 0.0) zeros_[start + e] = 1.0;
      }
    }
  }

  [[nodiscard]] Description at(double beta) const override {
    if (beta == 1.0) return model_;
    auto heated = std::make_shared<Network>(network());
    const double hardening = beta < 1.0 ? kHardening * std::log1p(-beta) : -std::numeric_limits<double>::infinity();
    for (std::size_t e = 0; e < logs_.size(); ++e) {
      heated->values[e] = std::exp(beta * logs_[e] + (zeros_.empty() || zeros_[e] == 0.0 ? 0.0 : hardening));
    }
    return NetworkDescription{heated, std::make_shared<const MarkovNetwork>(*heated)};
  }

  [[nodiscard]] double log_hot() const override {
    double sum = 0.0;
    for (Index i = 0; i < network().num_variables(); ++i) sum += std::log(network().levels(i));
    return sum;
  }

  void gains(const HeatedChains& chains, BetaRise rise, std::span<double> out) const override {
    const std::size_t n = network().num_variables();
    std::vector<Value> levels(chains.group.count * n);
    chains.engine.observe(chains.group, {.levels = levels});
    for (std::size_t k = 0; k < chains.group.count; ++k) out[k] = gain(levels.data() + k * n, rise);
  }

 private:
  [[nodiscard]] const Network& network() const { return *model_.network; }

  [[nodiscard]] double gain(const Value* x, BetaRise rise) const {
    double energy = 0.0;
    double zeros = 0.0;
    for (std::size_t f = 0; f < network().num_factors(); ++f) {
      std::size_t index = 0;
      for (const Index i : network().scope(f)) index = index * network().cardinalities[i] + x[i];
      index += network().table_start[f];
      energy += logs_[index];
      if (!zeros_.empty()) zeros += zeros_[index];
    }
    if (zeros == 0.0) return (rise.to - rise.from) * energy;
    return (rise.to - rise.from) * energy + kHardening * zeros * (std::log1p(-rise.to) - std::log1p(-rise.from));
  }

  NetworkDescription model_;
  std::vector<double> logs_;   // of all entries; of zeros, what counts in their place
  std::vector<double> zeros_;  // 1 where an entry is zero; empty where none is
};

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

/// The hot end of an RBM: independent units that are as bright as the data.
///
/// Visible units have their rates in the data, where the weights have them. Of other RBMs the biases are all that is
/// known of single units; within bounds, because a unit that the hot end never turns on carries no news to the cold
/// one.
///
/// Hidden units have biases m / sqrt(1 + k v), m and v the mean and variance of their activations at the hot end; k =
/// pi / 8 gives the mean of sigmoid(a) over a normal distribution. With large k states on the way to beta = 1 are
/// darker than at the ends, with small k brighter, and what is bright or dark at the cold end is rare on the way:
/// chains would meet a phase transition. So where the data are known, k makes states on the way as bright as these.
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

class RbmHeat final : public Heat {
 public:
  explicit RbmHeat(std::shared_ptr<const Rbm> target) : target_(std::move(target)), base_(hot_end(*target_)) {}

  [[nodiscard]] Description at(double beta) const override {
    return beta == 1.0 ? target_ : std::make_shared<const Rbm>(target_->heated(beta, base_));
  }

  [[nodiscard]] double log_hot() const override {
    double sum = 0.0;
    for (const std::vector<double>* layer : {&base_.visible, &base_.hidden}) {
      for (const double bias : *layer) sum += std::max(bias, 0.0) + std::log1p(std::exp(-std::abs(bias)));
    }
    return sum;
  }

  void gains(const HeatedChains& chains, BetaRise rise, std::span<double> out) const override {
    const auto& states = dynamic_cast<const StatesOf<Rbm>&>(chains.engine);
    for (std::size_t k = 0; k < chains.group.count; ++k) {
      out[k] = target_->log_prob_change(states.state(chains.group.first + k), rise.from, rise.to, base_);
    }
  }

 private:
  std::shared_ptr<const Rbm> target_;
  Rbm::Base base_;
};

/// log p_beta is beta log p, and of states without probability minus infinity at every beta.
class CallbackHeat final : public Heat {
 public:
  explicit CallbackHeat(CallbackDescription model) : model_(std::move(model)) {}

  [[nodiscard]] Description at(double beta) const override {
    if (beta == 1.0) return model_;
    return CallbackDescription{std::make_shared<BatchTarget>(model_.target->heated(beta)), model_.fibers};
  }

  /// A share of impossible states that no chain of the hot end has met is too small to matter.
  [[nodiscard]] double log_hot() const override {
    if (model_.target->met_zero()) return std::numeric_limits<double>::quiet_NaN();
    double sum = 0.0;
    for (Index i = 0; i < model_.target->num_variables(); ++i) sum += std::log(model_.target->cardinality(i));
    return sum;
  }

  /// States remember what the function gave, so this makes no call.
  void gains(const HeatedChains& chains, BetaRise rise, std::span<double> out) const override {
    const auto& states = dynamic_cast<const StatesOf<BatchTarget>&>(chains.engine);
    for (std::size_t k = 0; k < chains.group.count; ++k) {
      out[k] = (rise.to - rise.from) * model_.target->log_prob(states.state(chains.group.first + k));
    }
  }

 private:
  CallbackDescription model_;
};

/// The likelihood to the power of beta: the hot end is the prior, of which log p has all constants, so log Z is that of
/// the marginal likelihood over the one of the empty model.
class SelectionHeat final : public Heat {
 public:
  explicit SelectionHeat(std::shared_ptr<const SelectionTarget> target) : target_(std::move(target)) {}

  [[nodiscard]] Description at(double beta) const override {
    return beta == 1.0 ? target_ : std::make_shared<const SelectionTarget>(target_->heated(beta));
  }
  [[nodiscard]] double log_hot() const override { return 0.0; }

  void gains(const HeatedChains& chains, BetaRise rise, std::span<double> out) const override {
    const auto& states = dynamic_cast<const StatesOf<SelectionTarget>&>(chains.engine);
    for (std::size_t k = 0; k < chains.group.count; ++k) {
      out[k] = (rise.to - rise.from) * target_->log_likelihood(states.state(chains.group.first + k));
    }
  }

 private:
  std::shared_ptr<const SelectionTarget> target_;
};

template <class T>
std::shared_ptr<const Heat> heat_of(const std::shared_ptr<const T>& target) {
  return std::make_shared<const IsingHeat<T>>(target);
}
std::shared_ptr<const Heat> heat_of(const NetworkDescription& model) { return std::make_shared<NetworkHeat>(model); }
std::shared_ptr<const Heat> heat_of(const std::shared_ptr<const Rbm>& target) {
  return std::make_shared<RbmHeat>(target);
}
std::shared_ptr<const Heat> heat_of(const std::shared_ptr<const SelectionTarget>& target) {
  return std::make_shared<SelectionHeat>(target);
}
std::shared_ptr<const Heat> heat_of(const CallbackDescription& model) { return std::make_shared<CallbackHeat>(model); }
std::shared_ptr<const Heat> heat_of(const std::shared_ptr<const OwnDescription>&) {
  throw InputError(
      "the sampler 'temper' takes Ising models, networks, RBMs, selection models and callback targets, and cannot heat "
      "your own C++ target");
}

}  // namespace

std::shared_ptr<const Heat> make_heat(const Model& model) {
  return std::visit([](const auto& description) { return heat_of(description); }, model.description);
}

}  // namespace poise
