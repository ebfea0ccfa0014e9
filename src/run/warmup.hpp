/// Warm-up, round by round: an initial phase that reaches the bulk of the distribution with sqrt, then adaptation,
/// which learns the balancing function there, then the rest of the steps with what was learned.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <poise/extend/engines/tuner.hpp>
#include <poise/extend/learning/learner.hpp>
#include <poise/run.hpp>
#include <poise/sampler.hpp>
#include "run/chains.hpp"

namespace poise {

/// Sweeps of a warm-up whose length is not given.
inline constexpr std::uint64_t kWarmupSweeps = 1000;

/// Says when log p has stopped rising in all chains, from their values at the ends of equal rounds.
class RiseDetector {
 public:
  explicit RiseDetector(std::size_t chains) : series_(chains) {}
  void add(std::size_t chain, double log_prob) { series_[chain].push_back(log_prob); }
  /// Compares the last quarter of every chain with the quarter before it.
  [[nodiscard]] bool still_rising() const;

  template <class A>
  void archive(A& archive) {
    archive(series_);
  }

 private:
  std::vector<std::vector<double>> series_;
};

/// Finds the step length at which proposals of many changes, those that would change something, have a given rate of
/// acceptance (Robbins and Monro): the first one to make steps with, and all there is to find where nothing else is
/// asked for.
class StepLength {
 public:
  StepLength(double level, double most) : level_(level), most_(most) {}

  void add(double acceptance_rate, double wanted);
  [[nodiscard]] double level() const { return level_; }
  /// The mean since the last but one power of two of updates.
  [[nodiscard]] double average() const;

  template <class A>
  void archive(A& archive) {
    archive(level_, updates_, sums_, counts_);
  }

 private:
  double level_;
  double most_;
  std::uint64_t updates_ = 0;
  std::array<double, 2> sums_ = {};  // up to the last power of two, and since then
  std::array<std::uint64_t, 2> counts_ = {};
};

/// All of it is explicit state, so that a warm-up can be saved between any two rounds and resumed elsewhere.
class Warmup {
 public:
  /// `tunable` is whose chains these are; it and they outlive the warm-up.
  Warmup(Chains& chains, const Sampler& sampler, TunableEngine& tunable, const WarmupPlan& plan);

  /// Before `start`, where a warm-up has been made already: continues from its outcome.
  void begin_from(const BalancingFunction& function) {
    outcome_.function = function;
    step_length_ = StepLength(function.level(), sampler_.settings.most_level);
  }
  /// Before the first round, unless a warm-up is loaded.
  void start();

  [[nodiscard]] bool done() const { return stage_ == Stage::done; }
  [[nodiscard]] Phase phase() const {
    if (stage_ == Stage::adaptation) return Phase::adaptation;
    return (stage_ == Stage::rest || stage_ == Stage::done) && sampler_.learns() ? Phase::settled : Phase::initial;
  }
  [[nodiscard]] std::uint64_t steps() const { return outcome_.steps; }
  /// Steps there will be in all, as far as is known.
  [[nodiscard]] std::uint64_t total() const { return plan_.steps; }

  /// Moves all chains on by at most `most` steps, and learns where it is time to. Gives the steps made.
  std::uint64_t round(std::uint64_t most);

  /// Ends the warm-up here: what was learned so far is frozen.
  void finish();
  /// Has it last so many steps at least, unless it is still learning.
  void extend(std::uint64_t steps);

  [[nodiscard]] WarmupOutcome& outcome() { return outcome_; }

  void save(Saver& out) const;
  void load(Loader& in);
  /// What a chain has for itself.
  void save_chain(std::size_t chain, Saver& out) const;
  void load_chain(std::size_t chain, Loader& in);

 private:
  enum class Stage { plain, initial, adaptation, rest, done };

  void begin();       // of a stretch between two decisions
  void end();         // of it
  void next_stage();  // when the present one is over
  void start_adaptation();
  void learn();
  /// Has all ranks know what was observed, or its gradients, of all chains.
  void share_observed();
  void share_gradients();
  void freeze();
  void record();
  void escape_trap(double acceptance_rate);
  void tune_level(double acceptance_rate);
  void set_function(const BalancingFunction& function, std::uint64_t steps);
  [[nodiscard]] BalancingFunction given_function() const;
  [[nodiscard]] std::uint64_t initial_end() const { return plan_.follow ? plan_.steps : plan_.steps / 2; }
  [[nodiscard]] std::uint64_t decision_length() const;

  Chains& chains_;
  const Sampler& sampler_;
  Tuner* tuner_;             // empty where nothing is learned
  SelfTuning* self_tuning_;  // empty where the kernel has nothing to find out
  LadderTuner* ladder_;      // empty where nothing is tempered
  WarmupPlan plan_;
  WarmupOutcome outcome_;
  Stage stage_ = Stage::plain;
  std::uint64_t pending_ = 0;                // steps of the present stretch that are still to be made
  ProposalCounts before_;                    // at the beginning of the stretch
  std::optional<ProposalCounts> proposals_;  // at the end of the stretch before, where they were observed
  std::uint64_t stretch_length_ = 0;         // its steps
  bool escaped_ = false;
  StepLength step_length_;  // where steps change many variables
  RiseDetector rise_;

  std::optional<Learner> learner_;
  SettleDetector settled_;
  std::uint64_t adaptation_start_ = 0;  // step
  std::uint64_t available_ = 0;         // steps for adaptation
  std::uint64_t planned_ = 0;           // updates of the function that share these steps
  std::uint64_t rounds_ = 0;            // updates after which it is frozen: fewer where it has settled
  std::uint64_t round_ = 0;             // those made
  std::vector<TransitionGradient> observed_;
  std::vector<std::vector<double>> gradients_;
  std::vector<std::byte> told_;  // by ranks, of what they have observed
};

}  // namespace poise
