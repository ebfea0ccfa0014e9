/// What can be changed of chains while they warm up: the balancing function, with what is needed to learn it, and what
/// a kernel finds out by itself.
#pragma once

#include <memory>
#include <span>

#include <poise/extend/base/archive.hpp>
#include <poise/extend/engines/engine.hpp>
#include <poise/extend/engines/tempered_engine.hpp>
#include <poise/extend/learning/balancing_function.hpp>
#include <poise/extend/learning/transition_gradient.hpp>

namespace poise {

/// Belongs to one engine, which outlives it. Without a tuner the way in which chains move is final.
class Tuner {
 public:
  virtual ~Tuner() = default;

  /// `steps` is about how many steps all chains will make with it: whether tables are worth their making.
  virtual void set_function(const BalancingFunction& function, std::uint64_t steps) = 0;

  // Different chains may be handled by different threads at the same time.

  /// Brings the weights of a chain up to date after `set_function`.
  virtual void reweigh(std::size_t chain) = 0;
  /// Transition probabilities of the chain's present state.
  virtual void observe(std::size_t chain, const TransitionGradientOptions& options, TransitionGradient& out) = 0;
  /// Adds the gradient in phi of what was observed last, times `coefficients`, to `out`.
  virtual void backward(std::size_t chain, const TransitionGradient& observed, std::span<const double> coefficients,
                        std::span<double> out) = 0;

  /// What a chain's next observation depends on; the function is the engine's.
  virtual void save_chain(std::size_t chain, Saver& out) const = 0;
  virtual void load_chain(std::size_t chain, Loader& in) = 0;
};

/// What a kernel finds out by itself from the steps of its chains, such as how many clusters make a sweep. Belongs to
/// one engine, which outlives it and saves what there is to save. Chains whose kernel was never started, or is frozen,
/// move by one transition for good.
class SelfTuning {
 public:
  virtual ~SelfTuning() = default;

  /// From here on the kernel watches its chains and may move them as it likes: no draw may be taken.
  virtual void start() = 0;
  /// Settles for what was found. Does nothing where nothing was started.
  virtual void freeze() = 0;
};

/// An engine with its adaptation interfaces; a null member means the engine has no such adaptation.
struct TunableEngine {
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Tuner> tuner = nullptr;
  std::unique_ptr<SelfTuning> self_tuning = nullptr;
  std::unique_ptr<LadderTuner> ladder = nullptr;
};

}  // namespace poise
