/// What the sampler `auto` stands for: a sampler by the kind of model, and what replaces it where the first part of the
/// warm-up shows that its chains do not mix.
///
/// Trust goes before speed. Where zeros in the tables may keep single changes from parts of the distribution, chains
/// that agree prove nothing: draws are exact if a junction tree fits, tempered if not. Elsewhere, and where single
/// changes are known to lead to all states in spite of zeros, a local sampler begins, and is watched. Exact draws and
/// clusters cost little more than it, so they replace it as soon as it is seen to be slow, and exact marginals of small
/// parts must not contradict it. Tempering costs many times as much: it replaces chains that still disagree after half
/// of the warm-up and, where time is limited, some of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <poise/run.hpp>
#include "run/watch.hpp"

namespace poise {

struct Advice {
  Sampler sampler;     ///< that a run begins with
  std::string reason;  ///< in one sentence
  struct Replacement {
    Sampler sampler;
    std::string reason;
  };
  /// What replaces it where its chains do not mix; empty: nothing does.
  std::optional<Replacement> next = {};
  /// Whether `next` costs little more. It then replaces a sampler that has not settled at the first look, or that gives
  /// fewer effective samples a sweep than `least_ess`.
  bool is_cheap = false;
  double least_ess = 0.0;
  /// What costs as much a step, and replaces it where it has more effective samples a step.
  std::optional<Replacement> rival = {};
  /// What may cost less a step, and replaces it where it has more effective samples a second. Only runs of limited time
  /// depend on the clock, so only they look at it.
  std::optional<Replacement> cheaper = {};
  std::uint64_t thin = 0;                           ///< steps per draw; 0: as usual
  bool finds_thin = false;                          ///< steps per draw are chosen by what is seen
  std::shared_ptr<const Network> tables = nullptr;  ///< of the model, where exact marginals of parts may be had
};

/// For the device, the number of chains and the length of the options. `is_watched`: the warm-up is long enough.
[[nodiscard]] Advice recommend(const Model& model, const RunOptions& options, bool is_watched);

/// Where time is limited and a sweep of calls of user code would take much of it, which is found by the clock: no
/// sweeps. Chains then change two variables at a time, and draws are as many as the time allows.
void fit_to_limit(const Model& model, const RunOptions& options, Advice& advice);

/// The local samplers that marginals are found with, beside tempering.
[[nodiscard]] std::vector<std::string> local_samplers(const Model& model);

/// The watch over a run of `auto`, from its first step to the verdict.
class Watcher {
 public:
  enum class Verdict { undecided, keep, replace };

  /// `sweep`: steps of one; `warmup`: steps of the whole.
  Watcher(Advice advice, const Model& model, const RunOptions& options, std::uint64_t sweep, std::uint64_t warmup);

  /// What goes with the verdict `replace`.
  [[nodiscard]] const Advice::Replacement& replacement() const { return *replacement_; }
  /// What remains to be watched for after a replacement by `sampler`: another local sampler may be stuck as well.
  [[nodiscard]] std::optional<Advice> advice_for(const Sampler& sampler) const;
  [[nodiscard]] bool finds_thin() const { return advice_.finds_thin; }
  /// Whether chains had settled at the verdict.
  [[nodiscard]] bool settled() const { return settled_; }
  /// Steps that may be made before the next point.
  [[nodiscard]] std::uint64_t steps_left(std::uint64_t step) const { return watch_.next() - step; }
  /// After so many steps and, where time is limited, such a fraction of it.
  [[nodiscard]] Verdict look(const Engine& engine, std::uint64_t step, std::optional<double> spent);
  /// Steps per draw at which about half of the draws are effective; no more than a sweep.
  [[nodiscard]] std::uint64_t thin() const;

  template <class A>
  void archive(A& archive) {
    archive(watch_);
  }

 private:
  [[nodiscard]] bool is_last(std::uint64_t step, std::optional<double> spent) const;
  /// Whether sixteen chains from other random states, moved as far as those of the run, disagree, and still do after
  /// four times as many steps, if there is time; or sixteen times, where time is limited and they disagree less and
  /// less. Few chains may all have ended in the same one of several modes.
  [[nodiscard]] bool scouts_disagree(const Engine& engine, std::uint64_t step, std::optional<double> spent) const;
  /// Scouts that begin where cooled chains were: every fourth one, or every second one of user code.
  [[nodiscard]] std::vector<std::size_t> scouts_to_quench() const;
  /// Null where there are no other states to begin with. `seconds`: the most that they may take; 0: no limit.
  [[nodiscard]] std::unique_ptr<Run> make_scouts(std::uint64_t step, double seconds) const;
  /// A run of another sampler from where the chains of the engine are.
  /// `seconds`: the most that it may take; 0: no limit.
  [[nodiscard]] std::unique_ptr<Run> short_run(const Sampler& sampler, const Engine& engine, std::size_t warmup,
                                               double seconds = 0.0) const;
  /// Whether a run, moved on, has more effective samples for the same cost than was seen; `cost` of its steps beside
  /// those of the chains that were.
  [[nodiscard]] bool outruns(Run& run, std::uint64_t spacing, const Watch::Look& seen, double cost) const;
  [[nodiscard]] bool rival_wins(const Watch::Look& seen, const Engine& engine) const;
  /// Whether a short run of parallel tempering has more effective samples a second, where time is limited.
  [[nodiscard]] bool ladder_wins(const Watch::Look& seen, const Engine& engine) const;
  /// The cost of a step beside one of the run, by the clock.
  [[nodiscard]] double cost_beside(Run& run, const Engine& engine) const;
  /// After so many steps: by cost alone at first, when nothing is seen (null), then by what was seen too.
  [[nodiscard]] bool cheaper_wins(const Engine& engine, std::uint64_t step, const Watch::Look* seen);
  [[nodiscard]] Verdict replace_by(const Advice::Replacement& replacement) {
    replacement_ = replacement;
    return Verdict::replace;
  }

  Advice advice_;
  std::optional<Advice::Replacement> replacement_;
  Model model_;
  std::size_t chains_;
  std::uint64_t seed_;
  double seconds_;  // the limit; 0: none
  unsigned threads_;
  std::optional<double> cost_;  // of a step beside one of what may be cheaper
  Watch watch_;
  bool settled_ = false;
  std::uint64_t sweep_;
  std::uint64_t last_step_;
};

}  // namespace poise
