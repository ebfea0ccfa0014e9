/// Parallel tempering with an engine for every rung.
///
/// All ladders have their replicas of a rung in the engine of that rung, which is made from the model heated to the
/// rung's temperature by any sampler there is. A swap exchanges two states between neighbouring engines.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/fiber_scheduler.hpp"
#include "engines/common/tempering/heat.hpp"
#include <poise/extend/engines/tempered_engine.hpp>
#include <poise/extend/engines/tuner.hpp>
#include <poise/sampler.hpp>
#include "engines/common/tempering/rung_numbers.hpp"

namespace poise {

/// What rung engines are made from.
struct RungSource {
  std::string name;  ///< of the model
  std::shared_ptr<const Heat> heat;
  Sampler inner;
  std::shared_ptr<FiberScheduler> fibers;  ///< where one call of user code serves all chains
};

class RungEngines final : public TemperedEngine {
 public:
  RungEngines(RungSource source, const EngineOptions& options, TunableEngine cold);

  [[nodiscard]] std::optional<TemperingReport> tempering() const override;
  std::vector<ChainGroup> share_out(unsigned threads) override;
  void advance(ChainGroup group, std::uint64_t steps) override;
  void observe(ChainGroup group, const Observables& out) const override;
  void restart(std::size_t chain, std::span<const Value> levels) override;
  void start_marginals(ChainGroup group, bool rao_blackwell) override;
  void visit_marginals(ChainGroup group) override { cold().visit_marginals(group); }
  [[nodiscard]] RaoBlackwell rao_blackwell(std::size_t chain) const override { return cold().rao_blackwell(chain); }
  void save_common(Saver& out) const override;
  void load_common(Loader& in) override;
  void save_chain(std::size_t chain, Saver& out) const override;
  void load_chain(std::size_t chain, Loader& in) override;

  // For the tuner.

  [[nodiscard]] std::size_t num_rungs() const { return engines_.size(); }
  [[nodiscard]] Tuner& tuner(std::size_t rung) { return *engines_[rung].tuner; }
  /// For all rungs, and those to come.
  void set_function(const BalancingFunction& function, std::uint64_t steps);

 private:
  /// A balancing function that was learned, or is being learned.
  struct Learned {
    BalancingFunction function;
    std::uint64_t steps = 0;
  };

  [[nodiscard]] std::size_t round_rungs(std::size_t wanted) const override;
  void remake_replicas(const std::vector<double>& before) override;

  static EngineTraits traits_of(const Engine& cold);
  [[nodiscard]] Engine& cold() { return *engines_.back().engine; }
  [[nodiscard]] const Engine& cold() const { return *engines_.back().engine; }
  /// Engines for all rungs, with chains at these states: [rung][chain].
  void make_engines(const std::vector<std::vector<std::vector<Value>>>& starts);
  /// Those of all rungs, at first.
  [[nodiscard]] std::vector<std::vector<std::vector<Value>>> first_starts() const;
  /// Calls work(0) .. work(count - 1), as fibers where there are any.
  void for_each(std::size_t count, const std::function<void(std::size_t)>& work) const;
  void swap(ChainGroup group);
  void observe_sums(ChainGroup group, const Observables& out) const;

  RungSource source_;
  EngineOptions options_;
  std::uint64_t inner_steps_ = 1;  // between two swaps
  std::vector<TunableEngine> engines_;
  std::vector<RungPast> past_;
  std::uint64_t generation_ = 0;  // how many times engines were made anew
  unsigned threads_ = 0;          // that chains were shared out to; 0: they were not
  std::optional<Learned> learned_;
};

/// Learns one function for all rungs.
class RungTuner final : public Tuner {
 public:
  explicit RungTuner(RungEngines& engine) : engine_(engine), looks_(engine.traits().chains, 0) {}

  void set_function(const BalancingFunction& function, std::uint64_t steps) override {
    engine_.set_function(function, steps);
  }
  void reweigh(std::size_t chain) override;
  void observe(std::size_t chain, const TransitionGradientOptions& options, TransitionGradient& out) override;
  void backward(std::size_t chain, const TransitionGradient& observed, std::span<const double> coefficients,
                std::span<double> out) override;
  void save_chain(std::size_t chain, Saver& out) const override;
  void load_chain(std::size_t chain, Loader& in) override;

 private:
  /// Chains look at one rung after another, from the cold one down.
  [[nodiscard]] Tuner& present(std::size_t chain) {
    return engine_.tuner(engine_.num_rungs() - 1 - looks_[chain] % engine_.num_rungs());
  }

  RungEngines& engine_;
  std::vector<std::uint64_t> looks_;
};

}  // namespace poise
