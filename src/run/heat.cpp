/// Ising models, networks, RBMs and callback targets at every temperature.
#include <poise/run/heat.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

#include <poise/run/fiber_scheduler.hpp>
#include <poise/run/states.hpp>
#include <poise/target/batch_target.hpp>
#include <poise/target/graph_ising.hpp>
#include <poise/target/lattice_ising.hpp>
#include <poise/target/rbm.hpp>
#include "heated_network.hpp"

namespace poise {

namespace {

LatticeIsing heated(const LatticeIsing& target, double beta) {
  std::vector<double> field(target.num_variables());
  for (Index i = 0; i < field.size(); ++i) field[i] = beta * target.field(i);
  return {target.rows(), target.columns(), target.is_torus() ? Boundary::torus : Boundary::open,
          beta * target.coupling(), field};
}

GraphIsing heated(const GraphIsing& target, double beta) {
  std::vector<double> field(target.num_variables());
  std::vector<Edge> edges;
  for (Index i = 0; i < field.size(); ++i) {
    field[i] = beta * target.field(i);
    for (const GraphIsing::Neighbour& neighbour : target.neighbours(i)) {
      if (neighbour.variable > i) edges.push_back({i, neighbour.variable, beta * neighbour.coupling});
    }
  }
  return {std::move(field), edges};
}

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

class NetworkHeat final : public Heat {
 public:
  explicit NetworkHeat(NetworkDescription model) : model_(std::move(model)), softened_(model_.network) {}

  [[nodiscard]] Description at(double beta) const override {
    if (beta == 1.0) return model_;
    auto network = std::make_shared<const Network>(softened_.at(beta));
    return NetworkDescription{network, std::make_shared<const MarkovNetwork>(*network)};
  }

  [[nodiscard]] double log_hot() const override {
    double sum = 0.0;
    for (Index i = 0; i < model_.network->num_variables(); ++i) sum += std::log(model_.network->levels(i));
    return sum;
  }

  void gains(const HeatedChains& chains, BetaRise rise, std::span<double> out) const override {
    const std::size_t n = model_.network->num_variables();
    std::vector<Value> levels(chains.group.count * n);
    chains.engine.observe(chains.group, {.levels = levels});
    for (std::size_t k = 0; k < chains.group.count; ++k) {
      out[k] = softened_.change(std::span<const Value>(levels).subspan(k * n, n), rise.from, rise.to);
    }
  }

 private:
  NetworkDescription model_;
  SoftenedNetwork softened_;
};

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double bias_of(double rate, double rarest) {
  const double kept = std::clamp(rate, rarest, 1.0 - rarest);
  return std::log(kept / (1.0 - kept));
}

/// Biases of hidden units at the hot end, from those of the visible ones.
///
/// Biases of 0 would do, but on the way states would be darker than at both ends: what is bright at the cold end would
/// be rare on the way, and the other way round with mean activations. Between them, biases are m / sqrt(1 + k v), m and
/// v the mean and variance of an activation at the hot end (k = pi / 8 gives the mean of sigmoid(a) over a normal
/// distribution). k is such that the number of visible units that are on does not begin to change with beta: at beta =
/// 0 its derivative is the sum over visible units of v_i (b_i + sum_j W_ji sigmoid(d_j) - base_i), v_i = rate (1 -
/// rate).
std::vector<double> hidden_base(const RbmWeights& weights, std::span<const double> visible) {
  std::vector<double> means(weights.hidden_bias.begin(), weights.hidden_bias.end());
  std::vector<double> variances(weights.hidden, 0.0);
  std::vector<double> slopes(weights.hidden, 0.0);  // of the derivative by hidden units
  double rest = 0.0;
  for (Index i = 0; i < weights.visible; ++i) {
    const double rate = sigmoid(visible[i]);
    const double variance = rate * (1.0 - rate);
    rest += variance * (weights.visible_bias[i] - visible[i]);
    for (Index j = 0; j < weights.hidden; ++j) {
      const double weight = weights.weights[std::size_t{j} * weights.visible + i];
      means[j] += rate * weight;
      variances[j] += variance * weight * weight;
      slopes[j] += variance * weight;
    }
  }
  std::vector<double> base(weights.hidden);
  const auto derivative = [&](double k) {
    double sum = rest;
    for (Index j = 0; j < weights.hidden; ++j) {
      base[j] = means[j] / std::sqrt(1.0 + k * variances[j]);
      sum += slopes[j] * sigmoid(base[j]);
    }
    return sum;
  };
  double low = 1e-4;
  double high = 1e4;
  if (derivative(low) * derivative(high) < 0.0) {
    const bool falls = derivative(low) > 0.0;
    for (int round = 0; round < 40; ++round) {
      const double middle = std::sqrt(low * high);
      ((derivative(middle) > 0.0) == falls ? low : high) = middle;
    }
  } else {
    derivative(std::numbers::pi / 8.0);
  }
  return base;
}

/// Biases of independent units at the hot end: of visible units those of their rates in the data, where the weights
/// have them. Of other RBMs the biases are all that is known of single units; within bounds, because a unit that the
/// hot end never turns on carries no news to the cold one.
Rbm::Base base_of(const RbmWeights& weights) {
  constexpr double kRarestGuess = 0.05;
  std::vector<double> visible(weights.visible);
  for (Index i = 0; i < weights.visible; ++i) {
    visible[i] = weights.visible_rates.empty() ? bias_of(sigmoid(weights.visible_bias[i]), kRarestGuess)
                                               : bias_of(weights.visible_rates[i], RbmWeights::kRarest);
  }
  std::vector<double> hidden = hidden_base(weights, visible);
  return {std::move(visible), std::move(hidden)};
}

class RbmHeat final : public Heat {
 public:
  explicit RbmHeat(std::shared_ptr<const Rbm> target)
      : target_(std::move(target)), base_(base_of(target_->weights())) {}

  /// Gains and exchanges cost as much as two sweeps.
  [[nodiscard]] std::uint64_t sweeps_per_swap() const override { return 2; }
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

  /// States remember what the function gave, so this calls nobody.
  void gains(const HeatedChains& chains, BetaRise rise, std::span<double> out) const override {
    const auto& states = dynamic_cast<const StatesOf<BatchTarget>&>(chains.engine);
    for (std::size_t k = 0; k < chains.group.count; ++k) {
      out[k] = (rise.to - rise.from) * model_.target->log_prob(states.state(chains.group.first + k));
    }
  }

 private:
  CallbackDescription model_;
};

template <class T>
std::shared_ptr<const Heat> heat_of(const std::shared_ptr<const T>& target) {
  return std::make_shared<const IsingHeat<T>>(target);
}
std::shared_ptr<const Heat> heat_of(const NetworkDescription& model) { return std::make_shared<NetworkHeat>(model); }
std::shared_ptr<const Heat> heat_of(const std::shared_ptr<const Rbm>& target) {
  return std::make_shared<RbmHeat>(target);
}
std::shared_ptr<const Heat> heat_of(const CallbackDescription& model) { return std::make_shared<CallbackHeat>(model); }
std::shared_ptr<const Heat> heat_of(const std::shared_ptr<const OwnDescription>&) {
  throw InputError(
      "the sampler 'temper' takes Ising models, networks, RBMs and callback targets, and cannot heat a C++ target of "
      "one's own");
}

}  // namespace

std::shared_ptr<const Heat> make_heat(const Model& model) {
  return std::visit([](const auto& description) { return heat_of(description); }, model.description);
}

}  // namespace poise
