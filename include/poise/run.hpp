/// A run: chains that warm up, then sample with everything frozen, and the result they leave.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <poise/collective.hpp>
#include <poise/devices.hpp>
#include <poise/diagnose.hpp>
#include <poise/extend/base/archive.hpp>
#include <poise/extend/engines/engine.hpp>
#include <poise/extend/learning/balancing_function.hpp>
#include <poise/model.hpp>
#include <poise/sampler.hpp>
#include <poise/trace.hpp>

namespace poise {

class Engine;
class OptionVisitor;
class Run;

/// What is stored: states and monitors, or monitors alone.
enum class Keep { draws, monitors };
/// Where chains begin: `uniform` at random; `zeros` at level 0; `dispersed` far from each other: of every four chains
/// one at random, one with all variables at their lowest level, one with all at their highest, and one that mirrors the
/// first. Modes that random states never lead to are found so, and R-hat notices them.
enum class Start { uniform, zeros, dispersed, given };

/// What a run does: numbers of chains and draws, limits of time (seconds) and memory (bytes), and where it runs.
/// Time grows with chains * (warmup + draws * thin) steps; results depend on all options but `threads` and `memory`.
struct RunOptions {
  std::size_t chains = 4;  ///< four is enough for R-hat; more chains give a learned sampler better gradients
  /// Draws' worth of steps before the first recorded draw. Without it 1000 sweeps whatever `thin` is, of which the
  /// later half is left out where nothing is learned in it any more.
  std::optional<std::size_t> warmup;
  std::size_t draws = 1000;  ///< recorded draws per chain
  std::uint64_t thin = 0;    ///< steps per draw; 0 is one sweep: as many as there are variables
  std::uint64_t seed = 1;
  unsigned threads = 0;     ///< 0 is one per core; results do not depend on it
  double seconds = 0.0;     ///< if positive, this long in all, warm-up included, instead of `draws`
  Keep keep = Keep::draws;  ///< `monitors` stores no states: for models too large to keep a thousand of them
  /// Bytes that draws may take in memory; 0 is a third of the machine's. What goes beyond it is with the sink only. Of
  /// the monitors every second draw, or fewer, stay in memory; without a sink states that do not fit are not kept.
  double memory = 0.0;
  Start start = Start::uniform;  ///< where chains begin
  std::vector<Value> given;      ///< the state to begin in, with Start::given, or one per chain
  Device device = Device::cpu;   ///< where chains are moved on
  bool rao_blackwell = false;    ///< average P(variable at level | all others): better marginals than counting gives
  /// Number of the first chain. Chain c of a run is chain 0 of one with first_chain = c, unless the sampler learns from
  /// all chains of a run.
  std::uint64_t first_chain = 0;

  /// The options that users give, one by one (base/options.hpp): flags, Python keywords, the settings in files, the
  /// fingerprint and checkpoints follow from it.
  void describe(OptionVisitor& visit);

  /// Throws an InputError that names every setting that makes no sense for this model. `has_sink`: draws go to a file
  /// and need not be held in memory.
  void check(const Model& model, bool has_sink = false) const;
};

/// When the state of a run is saved beside the file of its draws.
struct CheckpointOptions {
  bool enabled = true;
  bool always = false;                                             ///< also where the run is shorter than `first`
  std::chrono::duration<double> first = std::chrono::seconds(60);  ///< until the first checkpoint
  std::chrono::duration<double> interval = std::chrono::seconds(30);

  void describe(OptionVisitor& visit);
};

/// `settled` is what follows adaptation in warm-up, with everything frozen.
enum class Phase { initial, adaptation, settled, sample };

/// How far a run is, for whoever shows it.
struct Progress {
  Phase phase = Phase::initial;
  std::uint64_t done = 0;         ///< steps of one chain in warm-up, draws in sampling
  std::uint64_t total = 0;        ///< 0 when the clock decides
  double seconds = 0.0;           ///< since the phase began (both phases of warm-up count as one)
  double seconds_left = 0.0;      ///< estimate
  double steps_per_second = 0.0;  ///< over all chains
  double acceptance_rate = 0.0;
  double log_prob = 0.0;      ///< mean over chains, now
  double ess_log_prob = 0.0;  ///< so far; NaN until it can be said
};

/// A function of states whose values are a monitor of the run.
struct Observer {
  std::string name;
  /// Gives a number for each of `count` states, whose labels follow each other. Called between two rounds, by the
  /// thread that made the run, on each rank for the chains of that rank.
  std::function<void(std::span<const std::int8_t> states, std::size_t count, std::span<double> out)> values;
};

/// How a run talks to the outside. Nothing in the library prints.
struct RunHooks {
  std::function<void(const Progress&)> progress = {};  ///< called a few times a second at most
  Sink* sink = nullptr;                                ///< where draws go besides memory
  std::vector<Observer> observers = {};                ///< states need not be kept for them
  const std::atomic<bool>* stop = nullptr;             ///< set to true to end early; what was drawn is kept
  std::function<void(const Run&)> after_round = {};    ///< called between any two rounds; may save the run
  /// The ranks that make the run together, all with the same model, sampler and options: chains are divided among them,
  /// and draws are those of one process. Progress is the root's, and so is the sink; others may have one as well, which
  /// is begun and written to as the root's is. `after_round` is called on all. Every function of the run that is not
  /// const is called by all ranks, and so are those that look at chains.
  Collective* collective = nullptr;
  /// Where the states of all draws go, unless sinks take those of their own rank and no memory holds them; monitors are
  /// known everywhere.
  Collective::To draws_to = Collective::To::root;
};

/// Thrown by a target to end a run early, as RunHooks::stop does: what was drawn is kept.
struct RunStopped {};

/// How a warm-up goes, where the options of a run do not say it.
struct WarmupPlan {
  std::uint64_t steps = 0;
  std::uint64_t learning = ~std::uint64_t{0};  ///< steps after which the paper's schedule ends; the rest is plain
  bool average = true;                         ///< freezes the mean of the parameters' later half, not the last ones
  bool may_end_early = false;                  ///< after half of the steps, once the function has settled
  /// Nothing but the length of steps that change many variables is tuned, by their acceptance and from the present
  /// function on: for targets that keep changing.
  bool follow = false;
};

/// One point of the way of log p through warm-up.
struct WarmupPoint {
  std::uint64_t step;
  double log_prob;  ///< mean over chains
};

/// What warm-up has learned, and how long it took in steps of one chain.
struct WarmupOutcome {
  BalancingFunction function;  ///< that chains sample with from then on
  std::uint64_t initial_steps = 0;
  std::uint64_t steps = 0;
  double objective = 0.0;  ///< value of the learning objective at the end; NaN without
  std::vector<WarmupPoint> trace;

  template <class A>
  void archive(A& archive) {
    archive(function, initial_steps, steps, objective, trace);
  }
};

/// The recorded draw of the best objective, or of the highest log p where the model has no objective.
struct BestDraw {
  std::string objective;  ///< its name; empty: log_prob
  double value = 0.0;
  std::size_t chain = 0;
  std::size_t draw = 0;
  std::vector<std::int8_t> state;  ///< labels of all variables

  bool operator==(const BestDraw&) const = default;
};

/// What a run leaves: draws, statistics of each draw, and what it cost. `make_report` diagnoses it.
struct RunResult {
  std::string model;
  std::string sampler;
  std::optional<Choice> choice;  ///< why that sampler, where `auto` was asked for
  RunOptions options;            ///< as used: warmup, thin, threads and draws filled in
  VariableLayout layout;
  std::optional<SpinScale> spins;  ///< of spin models
  Trace trace;
  std::vector<double> empirical_marginals;  ///< fraction of steps at each (variable, level > 0), mean over chains
  std::vector<double> rao_blackwell;  ///< mean of P(variable at level | all others) at each; empty unless asked for
  std::vector<double> rao_blackwell_mcse;  ///< its standard error, from batch means, and what rounding may add
  /// The same of level 0 of each variable, whose probability is one less the others': these are not independent.
  std::vector<double> rao_blackwell_mcse_of_zero;
  std::vector<BatchMeans> batches;  ///< of the same, one per chain
  /// Levels of each variable that zeros in the tables leave; empty where none is ruled out (see
  /// Model::possible_levels).
  std::vector<Index> possible_levels;
  /// Variables that never changed and could not when the run ended, in any chain, though more than one of their levels
  /// may be possible.
  std::vector<Index> frozen;
  ModelChecks checks;
  std::optional<BestDraw> best;  ///< empty without draws
  /// Labels of all chains, one behind the other, where the run was stopped before its first draw.
  std::vector<std::int8_t> present;

  double warmup_seconds = 0.0;
  double sampling_seconds = 0.0;
  std::uint64_t steps = 0;  ///< sampling steps, all chains together
  /// Changes of a single variable that these steps could make: one a step, or a sweep of them.
  std::uint64_t updates = 0;
  std::uint64_t initial_steps = 0;  ///< of one chain, before learning began
  std::uint64_t warmup_steps = 0;   ///< of one chain
  double acceptance_rate = 0.0;
  Evals evals;  ///< of sampling
  Evals warmup_evals;
  std::vector<WarmupPoint> warmup_trace;

  bool balanced = false;      ///< whether the sampler has a balancing function
  std::vector<double> knots;  ///< |u| and log of e^phi of the balancing function used for sampling
  std::vector<double> log_phi;
  double objective = 0.0;                    ///< value of the learning objective at the end of learning; NaN without
  std::optional<TemperingReport> tempering;  ///< empty unless the sampler tempers
  bool independent = false;                  ///< every draw is one from the distribution, whatever the one before
  bool interrupted = false;
  std::vector<std::string> notes;  ///< what was changed on the user's behalf
};

/// What was run, as it is stored with the draws.
[[nodiscard]] nlohmann::json settings_json(const RunResult& result);

/// Where the chains of a run will be: as its options say, or where they are faster.
[[nodiscard]] Device device_of_run(const Model& model, const Sampler& sampler, const RunOptions& options);

/// Chains from their starting states to their last draw. Work is done in rounds of about a tenth of a second; between
/// two rounds, and nowhere else, the run checks whether it should stop, hands draws to the sink and reports. How a run
/// is cut into rounds, and by how many threads it is done, changes none of its draws.
///
/// The sampler `auto` is one that suits the model. The first part of its warm-up is watched, and where its chains do
/// not mix, another sampler makes the run, exactly as if it had been named.
class Run {
 public:
  /// Makes the chains. Throws InputError where the options make no sense.
  Run(Model model, Sampler sampler, const RunOptions& options, RunHooks hooks = {});
  /// Chains that were made by the caller, on the states given to them then.
  Run(Model model, Sampler sampler, const RunOptions& options, TunableEngine chains, RunHooks hooks = {});
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// The rest of the warm-up that the options ask for. Returns early when stopped.
  void warm_up();
  /// Your own warm-up, and what came of it; may be repeated until the first draw. Steps are counted on.
  const WarmupOutcome& warm_up(const WarmupPlan& plan);

  /// Moves all chains on and records nothing. Returns early when stopped; a RunStopped of the target comes through.
  void advance(std::uint64_t steps);

  /// That many more draws of every chain, or what the time allows. From here on nothing about the chains can be tuned.
  void sample(std::size_t draws);

  /// Whether the run was told to stop, or its time is up.
  [[nodiscard]] bool ended() const;
  /// Whether it was told to.
  [[nodiscard]] bool stopped() const;
  /// Whether its target has stopped it inside a round, so that it cannot be saved.
  [[nodiscard]] bool is_broken() const;

  /// What is sampled.
  [[nodiscard]] const Model& model() const;
  /// The chains.
  [[nodiscard]] const Engine& engine() const;
  /// As used, with what was left open filled in.
  [[nodiscard]] const RunOptions& options() const;
  [[nodiscard]] Collective* collective() const;  ///< the ranks, where there are several
  /// Recorded draws of each chain so far.
  [[nodiscard]] std::size_t draws() const;
  [[nodiscard]] std::uint64_t steps() const;  ///< of each chain, warm-up included
  /// Levels of all variables, chain by chain.
  [[nodiscard]] std::vector<Value> states() const;
  /// Puts every chain at a state and computes everything anew, as after the target has changed.
  void restart(std::span<const Value> states);
  /// log p of every chain, computed for all of them together.
  [[nodiscard]] std::vector<double> log_prob();

  /// What is known now. The draws are handed over: afterwards the run has none.
  [[nodiscard]] RunResult finish();

  /// Everything that the run depends on from here, its draws included. A run with the same model, sampler and options
  /// that loads it continues as this one would have, bitwise. Throws std::runtime_error where the bytes are not of
  /// such a run, or where the run was broken off inside a round. Among ranks it is the root that gets the bytes, unless
  /// draws go to all; all of them load the same, and may be more or fewer than those that saved it.
  [[nodiscard]] std::string save() const;
  /// Takes over the state that `save` gave.
  void load(std::string_view bytes);

  /// The same without the draws that the sink has, which are read back from there: `load_rest` is followed by
  /// `take_draws` of as many. Draws that do not fit into memory stay with the sink. Throws InputError where the model
  /// gives the states of the chains another log p than they had: it is not the one that the run was made with.
  [[nodiscard]] std::string save_rest() const;
  /// Takes over the state that `save_rest` gave.
  void load_rest(std::string_view bytes);
  /// Among ranks the block is the root's; gives the number of its draws.
  std::size_t take_draws(const DrawBatch& block);

 private:
  struct Core;
  explicit Run(std::unique_ptr<Core> core);
  static std::unique_ptr<Core> make_core(Model model, Sampler sampler, const RunOptions& options, RunHooks hooks);
  /// Begins the run anew with the sampler that the watch calls for.
  void replace_sampler();
  /// Takes over the choice that a saved run had made; `watched`: it could still be replaced.
  void take_choice(const Choice& choice, bool watched);
  void check_fingerprint(Loader& in) const;
  void check_same_model(const std::vector<std::string>& positions_of_chains);
  /// The state of a chain and its log p.
  void save_position(std::size_t chain, Saver& out) const;
  enum class Draws { included, elsewhere };
  [[nodiscard]] std::string save(Draws draws) const;
  void load(std::string_view bytes, Draws draws);

  std::unique_ptr<Core> core_;
};

/// Runs it all. A sink is begun and written to here; its `finish` is left to the caller, who knows the final report.
RunResult run(const Model& model, const Sampler& sampler, const RunOptions& options, const RunHooks& hooks = {});

}  // namespace poise
