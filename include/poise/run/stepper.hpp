/// Chains in the hands of the caller: a few steps, a look at the states, a few steps more. What a training loop needs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <poise/run/ensemble.hpp>
#include <poise/run/model.hpp>
#include <poise/run/run.hpp>
#include <poise/run/sampler.hpp>
#include <poise/run/thread_pool.hpp>

namespace poise {

/// Steps that a run would make: after n * thin of them the states are those of draw n of a run without warm-up.
class Stepper {
 public:
  /// Of the options it takes chains, seed, threads, where to start and the number of the first chain.
  Stepper(Model model, const Sampler& sampler, const RunOptions& options);

  /// Moves all chains on. `go_on` is asked every few milliseconds; a step it stops early leaves the chains where they
  /// are.
  void step(std::uint64_t steps, const std::function<bool()>& go_on = {});

  /// Learns the balancing function, as the warm-up of a run does, or just makes the steps where there is nothing to
  /// learn.
  void warm_up(std::uint64_t steps, const std::function<bool()>& go_on = {});

  /// Has everything computed anew at the next step, because the target is no longer what it was.
  void target_changed() { stale_ = true; }

  [[nodiscard]] const Model& model() const { return model_; }
  [[nodiscard]] std::size_t num_chains() const { return ensemble_->num_chains(); }
  [[nodiscard]] std::uint64_t steps_per_sweep() const { return ensemble_->steps_per_sweep(); }
  /// Levels of all variables, chain by chain.
  [[nodiscard]] std::vector<Value> states() const;
  /// Throws InputError where there are not as many as `states` gives, or where a level does not exist.
  void set_states(std::span<const Value> levels);
  [[nodiscard]] std::vector<double> log_prob();
  /// Mean acceptance probability of all steps so far; NaN before the first.
  [[nodiscard]] double acceptance_rate() const;
  [[nodiscard]] Evals evals() const;

 private:
  void refresh();

  Model model_;
  Sampler sampler_;
  std::unique_ptr<Ensemble> ensemble_;
  std::unique_ptr<ThreadPool> pool_;
  std::uint64_t steps_ = 0;
  bool stale_ = false;
};

}  // namespace poise
