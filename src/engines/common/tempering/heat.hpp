/// A model at every temperature: the same kind of model with other parameters, so that every sampler works on it.
///
/// p_beta goes from something simple at beta = 0 to the model itself at beta = 1. Ising models and callback targets
/// have p^beta. So have networks, but for zeros, which hot chains may cross: in p_beta a zero of a table counts as beta
/// log(its smallest positive entry) + 5 log(1 - beta). An RBM has its weights and hidden biases times beta, and goes
/// from independent visible units at base rates.
#pragma once

#include <memory>
#include <span>

#include <poise/extend/engines/engine.hpp>
#include <poise/model.hpp>

namespace poise {

/// From one inverse temperature to another.
struct BetaRise {
  double from;
  double to;
};

/// Chains of an engine for a model at an inverse temperature.
struct HeatedChains {
  const Engine& engine;
  double beta;
  ChainGroup group;
};

class Heat {
 public:
  virtual ~Heat() = default;

  /// The model at an inverse temperature from 0 to 1; at 1 the model itself. Ising models, networks and callback
  /// targets can be colder too; zeros of tables remain zeros there.
  [[nodiscard]] virtual Description at(double beta) const = 0;
  /// log Z at beta = 0, or not a number where it is not known.
  [[nodiscard]] virtual double log_hot() const = 0;
  /// log p_to(x) - log p_from(x) of the present state of each chain: what swaps of the two temperatures are decided by.
  virtual void gains(const HeatedChains& chains, BetaRise rise, std::span<double> out) const = 0;
};

/// Throws InputError where a model cannot be heated.
[[nodiscard]] std::shared_ptr<const Heat> make_heat(const Model& model);

}  // namespace poise
