/// Chains in the hands of the caller: a few steps, a look at the states, a few steps more. What a training loop needs.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <poise/extend/engines/engine.hpp>
#include <poise/run.hpp>

namespace poise {

/// Steps that a run would make: after n * thin of them the states are those of draw n of a run without warm-up.
class Stepper {
 public:
  /// Reads these options: chains, seed, threads, where to start and the number of the first chain.
  Stepper(Model model, const Sampler& sampler, const RunOptions& options);

  /// Moves all chains on. Where the target has changed since the last call, and the sampler finds the length of its
  /// steps by itself, this follows the target by acceptance: no draws, but what training needs. `keep_going` is asked
  /// several times a second; a step it stops early leaves the chains where they are.
  void step(std::uint64_t steps, const std::function<bool()>& keep_going = {});

  /// Learns the balancing function, as the warm-up of a run does, or just makes the steps where there is nothing to
  /// learn.
  void warm_up(std::uint64_t steps, const std::function<bool()>& keep_going = {});

  /// Has everything computed anew at the next step, because the target is no longer what it was.
  void target_changed() { stale_ = true; }

  /// What is sampled.
  [[nodiscard]] const Model& model() const { return run_.model(); }
  /// How many chains there are.
  [[nodiscard]] std::size_t num_chains() const { return run_.options().chains; }
  /// Steps after which every variable had a chance to change.
  [[nodiscard]] std::uint64_t steps_per_sweep() const { return run_.engine().traits().steps_per_sweep; }
  /// Levels of all variables, chain by chain.
  [[nodiscard]] std::vector<Value> states() const { return run_.states(); }
  /// Throws InputError where there are not as many as `states` gives, or where a level does not exist.
  void set_states(std::span<const Value> levels);
  /// log p of every chain.
  [[nodiscard]] std::vector<double> log_prob();
  /// Mean acceptance probability of all steps so far; NaN before the first.
  [[nodiscard]] double acceptance_rate() const;
  /// Evaluations of the target so far, all chains together.
  [[nodiscard]] Evals evals() const { return total_evals(run_.engine()); }

 private:
  void refresh();

  std::atomic<bool> stop_{false};
  const std::function<bool()>* keep_going_ = nullptr;  // of the call under way
  bool stale_ = false;
  bool follows_;  // whether the length of steps is tuned
  Run run_;
};

}  // namespace poise
