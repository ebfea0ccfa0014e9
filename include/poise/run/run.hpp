/// Runs chains: warm-up (approach, then adapt), then sampling with everything frozen.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <poise/run/batch_means.hpp>
#include <poise/run/model.hpp>
#include <poise/run/sampler.hpp>
#include <poise/trace/trace.hpp>

namespace poise {

enum class Keep { draws, monitors };
/// Where chains begin: `uniform` at random; `zeros` at level 0; `dispersed` far from each other: of every four chains
/// one at random, one with all variables at their lowest level, one with all at their highest, and one that mirrors the
/// first. Modes that random states never lead to are found so, and R-hat notices them.
enum class Start { uniform, zeros, dispersed, given };

struct RunOptions {
  std::size_t chains = 4;     ///< four is enough for R-hat; more chains give a learned sampler better gradients
  std::size_t warmup = 1000;  ///< draws' worth of steps before the first recorded draw
  std::size_t draws = 1000;   ///< recorded draws per chain
  std::uint64_t thin = 0;     ///< steps per draw; 0 is one sweep: as many as there are variables
  std::uint64_t seed = 1;
  unsigned threads = 0;          ///< 0 is one per core; results do not depend on it
  double seconds = 0.0;          ///< if positive, sample for this long instead of `draws`
  Keep keep = Keep::draws;       ///< `monitors` stores no states: for models too large to keep a thousand of them
  Start start = Start::uniform;  ///< where chains begin
  std::vector<Value> given;      ///< the state to begin in, with Start::given, or one per chain
  bool rao_blackwell = false;    ///< average P(variable at level | all others): better marginals than counting gives
  /// Number of the first chain. Chain c of a run is chain 0 of one with first_chain = c, unless the sampler learns:
  /// then the chains of a run have a part in each other.
  std::uint64_t first_chain = 0;

  /// Throws an InputError that names every setting that makes no sense for this model.
  void check(const Model& model) const;
};

enum class Phase { initial, adaptation, sample };

struct Progress {
  Phase phase = Phase::initial;
  std::uint64_t done = 0;         ///< steps of one chain in warm-up, draws in sampling
  std::uint64_t total = 0;        ///< 0 when the clock decides
  double seconds = 0.0;           ///< since the phase began (approach and adapt count as one)
  double seconds_left = 0.0;      ///< estimate
  double steps_per_second = 0.0;  ///< over all chains
  double acceptance_rate = 0.0;
  double log_prob = 0.0;      ///< mean over chains, now
  double ess_log_prob = 0.0;  ///< so far; NaN until it can be said
};

/// How a run talks to the outside. Nothing in the library prints.
struct RunHooks {
  std::function<void(const Progress&)> progress;  ///< called a few times a second at most
  Sink* sink = nullptr;                           ///< where draws go besides memory
  const std::atomic<bool>* stop = nullptr;        ///< set to true to end early; what was drawn is kept
};

/// Thrown by a target to end a run early, as RunHooks::stop does: what was drawn is kept.
struct RunStopped {};

struct RunResult {
  std::string model;
  std::string sampler;
  RunOptions options;  ///< as used: thin, threads and draws filled in
  VariableLayout layout;
  Trace trace;
  std::vector<double> empirical_marginals;  ///< part of all steps spent at each (variable, level > 0), mean over chains
  std::vector<double> rao_blackwell;  ///< mean of P(variable at level | all others) at each; empty unless asked for
  std::vector<double> rao_blackwell_mcse;  ///< its standard error, from batch means
  std::vector<BatchMeans> batches;         ///< of the same, one per chain
  /// Variables that never changed and could not when the run ended, in any chain, though more than one of their levels
  /// may be possible.
  std::vector<Index> frozen;

  double warmup_seconds = 0.0;
  double sampling_seconds = 0.0;
  std::uint64_t steps = 0;  ///< sampling steps, all chains together
  std::uint64_t updates =
      0;  ///< changes of a single variable that these steps could make: one a step, or a sweep of them
  std::uint64_t initial_steps = 0;  ///< of one chain, before learning began
  std::uint64_t warmup_steps = 0;   ///< of one chain
  double acceptance_rate = 0.0;
  Evals evals;  ///< of sampling
  Evals warmup_evals;

  struct WarmupPoint {
    std::uint64_t step;
    double log_prob;  ///< mean over chains
  };
  std::vector<WarmupPoint> warmup_trace;

  bool balanced = false;      ///< whether the sampler has a balancing function
  std::vector<double> knots;  ///< |u| and log of e^phi of the balancing function used for sampling
  std::vector<double> log_phi;
  double objective = 0.0;  ///< value of the criterion at the end of learning; NaN without
  bool interrupted = false;
  std::vector<std::string> notes;  ///< what was changed on the user's behalf
};

/// What was run, as it is stored with the draws.
[[nodiscard]] nlohmann::json settings_json(const RunResult& result);

/// Runs it all. A sink is begun and written to here; its `finish` is left to the caller, who knows the final report.
RunResult run(const Model& model, const Sampler& sampler, const RunOptions& options, const RunHooks& hooks = {});

}  // namespace poise
