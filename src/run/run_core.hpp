/// What a run is made of: model, chains, recorder, warm-up and the clock, and its rounds.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <poise/extend/engines/engine.hpp>
#include <poise/extend/engines/tuner.hpp>
#include <poise/run.hpp>
#include <poise/sampler.hpp>
#include "diagnose/model_checks.hpp"
#include "run/chains.hpp"
#include "run/elsewhere.hpp"
#include "run/kept_states.hpp"
#include "run/recommend.hpp"
#include "run/recorder.hpp"
#include "run/warmup.hpp"

namespace poise {

/// The balancing function on its grid.
void add_function(const Sampler& sampler, const BalancingFunction& function, RunResult& result);

/// Empirical and Rao-Blackwellised marginals and frozen variables. Gives for each level of each variable whether any
/// chain was at it.
std::vector<std::uint8_t> add_marginals(const Model& model, const Engine& engine, RunResult& result);
/// What the model says of the draws.
void add_checks(const Model& model, const Sampler& sampler, std::span<const std::uint8_t> visited,
                const CheckedStates& states, const CheckedStates& all_states, RunResult& result);

struct Run::Core {
  Core(Model the_model, Sampler the_sampler, const RunOptions& the_options, RunHooks the_hooks);
  /// Makes the chains of this rank.
  void make_chains();
  void take(TunableEngine chains_made);
  void make_recorder();
  /// Threads, or fibers on this one.
  void share_out();
  [[nodiscard]] WarmupPlan plan_of_options() const;
  /// Steps of a warm-up whose length is not given.
  /// Steps of a draw where none are given.
  [[nodiscard]] std::uint64_t usual_thin() const;
  [[nodiscard]] std::uint64_t usual_warmup() const;
  [[nodiscard]] bool stopped() const {
    return broken || (hooks.collective != nullptr ? agreed.stop : is_told_to_stop());
  }
  [[nodiscard]] bool is_told_to_stop() const {
    return hooks.stop != nullptr && hooks.stop->load(std::memory_order_relaxed);
  }
  [[nodiscard]] double elapsed() const { return elapsed_before + seconds_since(started); }
  /// Has all ranks go by the same clock until the next time: the root's. Gives the longest of their `seconds`.
  double agree(double seconds);
  /// Seconds left of a fraction of the limit.
  [[nodiscard]] double seconds_left(double fraction) const {
    if (options.seconds <= 0.0) return std::numeric_limits<double>::infinity();
    return fraction * options.seconds - (hooks.collective != nullptr ? agreed.elapsed : elapsed());
  }
  /// Seconds of a limit that follow the last draw: those of chains from elsewhere, and those that diagnosing the draws
  /// so far will take, where there are many: by count.
  [[nodiscard]] double reserve() const {
    constexpr double kSecondsPerValue = 1.7e-9;  // of one thread
    constexpr double kMost = 0.5;
    if (options.seconds <= 0.0) return 0.0;
    const bool looks = !made.engine->traits().independent && looks_elsewhere(model, sampler, choice.has_value(), false);
    const double elsewhere = looks ? kElsewhereOfSeconds * options.seconds : 0.0;
    // Ranks may not differ, and their threads do.
    if (options.keep != Keep::draws || hooks.collective != nullptr) return elsewhere;
    const double values = static_cast<double>(recorder->draws()) * static_cast<double>(options.chains) *
                          static_cast<double>(model.layout.variables);
    if (values < static_cast<double>(values_at_every_lag)) return elsewhere;
    return std::min(kMost * options.seconds, elsewhere + values * kSecondsPerValue / std::max(1U, options.threads));
  }
  [[nodiscard]] bool ended() const { return stopped() || seconds_left(1.0) <= 0.0; }
  /// What user code throws to end the run leaves chains at different steps: such a run can be looked at, not saved.
  /// `work` gives the steps it has made with every chain.
  template <class Work>
  void round(Work&& work) {
    const auto begun = Clock::now();
    try {
      const std::uint64_t made_steps = work();
      steps += made_steps;
      length->took(made_steps, agree(seconds_since(begun)));
    } catch (const RunStopped&) {
      broken = true;
    }
  }
  /// Where nothing is recorded there is nothing to keep, so a stop by the target is thrown to the caller.
  void hand_on_stop();
  void start_warmup(const WarmupPlan& plan);
  /// The warm-up of the options, unless it is under way; false where the target stops it.
  bool have_warmup();
  void make_warmup(const WarmupPlan& plan);
  /// Whether it was made; not where the watch says that another sampler should make the run.
  bool run_warmup(double fraction, const Run& run);
  /// Watches the warm-up where something may follow from that.
  void watch(Advice advice);
  /// After a round of warm-up: whether the sampler is to be replaced.
  bool look();
  void tell_warmup();
  /// Drops all tuners: from here on nothing about the chains can change.
  void begin_sampling();
  void begin_sink();
  /// Whole draws where some fit into a round, or else the next steps of one.
  void sampling_round(std::size_t draws);
  void record(ChainGroup group, std::size_t draw);
  /// Keeps the states of a group after draw number `draw`, if it is their turn.
  void keep_states(ChainGroup group, std::size_t draw);
  [[nodiscard]] std::size_t states_of_chain() const {
    return std::max<std::size_t>(1, states_to_check(model.layout.variables) / options.chains);
  }
  /// The kept states, or those that chains have now: all, or those that a check may look at which takes as many
  /// evaluations a state as there are `levels`.
  [[nodiscard]] CheckedStates checked_states(const RunResult& result, std::size_t levels,
                                             const std::vector<Value>& last) const;
  /// What happens between two rounds of sampling: draws are remembered and go to the sink, the caller may look in.
  void between_rounds(std::size_t wanted, const Run& run);
  /// The best draw; nothing before the first.
  [[nodiscard]] std::optional<BestDraw> best_draw() const;
  /// Says what of the draws is not there.
  void note_what_is_held(RunResult& result) const;
  void tell_sampling(std::size_t wanted);
  /// What `work` saves of each chain, at the root of those of all ranks.
  [[nodiscard]] std::vector<std::string> save_chains(const std::function<void(std::size_t, Saver&)>& work) const;
  /// Has all ranks know the batches and kept states of all chains.
  void share_batches();
  /// What is known of a run before its first draw.
  void fill_head(RunResult& result) const;
  /// What a saved state must have in common with the run that loads it.
  [[nodiscard]] std::string fingerprint() const;

  Model model;
  Sampler sampler;
  std::optional<Choice> choice;    // by `auto`
  std::optional<Watcher> watcher;  // while the sampler may still be replaced
  std::uint64_t enough = 0;        // steps of warm-up, where the watch has shown how many are; 0: unknown
  RunOptions asked;                // options as they were given
  RunOptions options;
  RunHooks hooks;
  std::shared_ptr<const Division> division;  // where there are several ranks
  /// What all ranks go by.
  struct Agreed {
    bool has_sink = false;
    bool listens = false;  // progress is reported
    bool is_due = false;   // a report is due
    bool stop = false;
    double elapsed = 0.0;
    double memory = 0.0;  // for draws
    unsigned cores = 1;   // of this rank
  };
  Agreed agreed;
  Clock::time_point started = Clock::now();
  TunableEngine made;
  std::optional<Chains> chains;
  std::optional<RoundLength> length;
  std::optional<Recorder> recorder;
  ProgressReporter reporter;
  std::vector<std::string> notes;

  std::optional<Warmup> warmup;  // while it lasts
  WarmupOutcome warmed;          // what came of it
  Evals warmup_evals;
  std::uint64_t steps = 0;  // of each chain, in all
  bool sampling = false;
  bool in_sample = false;  // inside of a call that adds its time when it ends
  bool sink_begun = false;
  std::uint64_t steps_in_draw = 0;
  std::size_t written = 0;  // draws that the sink has
  std::vector<BatchMeans> batches;
  std::vector<KeptStates> kept;  // none where there are so many chains that their last states will do
  bool broken = false;           // by the target, inside a round

  Clock::time_point phase_began = started;
  Clock::time_point ess_time = started;
  double ess_cost = 0.0;  // seconds to estimate it
  double ess = std::numeric_limits<double>::quiet_NaN();
  Progress shown;               // of the warm-up, when it was last looked at
  double elapsed_before = 0.0;  // by the run that was saved
  double warmup_seconds = 0.0;
  double sampling_seconds = 0.0;
};

}  // namespace poise
