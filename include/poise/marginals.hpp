/// Marginals of a network by the best means at hand: exact where a junction tree fits, by sampling elsewhere.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <poise/diagnose.hpp>
#include <poise/network.hpp>
#include <poise/report.hpp>
#include <poise/run.hpp>

namespace poise {

class OptionVisitor;
struct ExactPlan;

/// How an answer is found: `automatic` is exact where that fits memory and time, else by sampling.
enum class Method { automatic, exact, sample };

/// How marginals are found: limits of memory (bytes) and time (seconds), and how to sample where they are exceeded.
struct MarginalsOptions {
  Method method = Method::automatic;
  double memory_limit = 4.0 * (std::uint64_t{1} << 30);  ///< bytes that the tables of exact inference may take
  /// For everything: planning, pilots, warm-up and sampling. Without it ten seconds of sampling where the answer is
  /// sampled; where it is exact, as long as it takes, up to ten minutes, or an hour where that was asked for.
  std::optional<double> seconds = {};
  double elapsed = 0.0;  ///< of them, before the call: reading the network
  /// For sampling. With `auto` pilots compare local samplers with `temper`: the one with the smallest error per second
  /// is taken, by the clock, so another run may choose another; a local one only if it agrees with `temper`.
  std::string sampler = "auto";
  /// 0: as many as suit the sampler, 32 where it moves many at once across lanes (up to 1024 on a GPU) and 4 elsewhere.
  std::size_t chains = 0;
  /// Where chains of `gibbs` run; those of other samplers, and exact inference, run on the CPU. With `auto` as the
  /// sampler the pilot of `gibbs` runs there, and all of the run if it is the best. Some thousand chains by default.
  Device device = Device::cpu;
  std::uint64_t seed = 1;
  unsigned threads = 0;
  /// Variables whose joint distribution is wanted, as `parse_variables` reads them; empty: none.
  std::string query = {};

  void describe(OptionVisitor& visit);  ///< as RunOptions do
};

/// Marginals from a run with `rao_blackwell`, level by level.
struct RunMarginals {
  Marginals marginals;  ///< means of conditional probabilities
  Marginals counted;    ///< fraction of all steps spent at each level
  /// Standard errors of `marginals`: those of RunResult. Draws that have hardly seen a level, or hardly anything else,
  /// cannot vouch for its probability, however little it varied among them: a level that was visited v < 10 times in n
  /// effective draws has an error of at least sqrt(v + 1) / n, so that three of them are the rule of three where v = 0.
  /// Where a level was never visited, all errors are at least 1 / n. Levels that zeros rule out have none.
  Marginals mcse;
};

/// `report` is that of the same run: n is the smaller of the effective sample sizes of log_prob and of the variable.
[[nodiscard]] RunMarginals marginals_of(const RunResult& result, const Report& report);

/// The probability of every combination of levels of a few variables, the level of the last one changing fastest.
struct Joint {
  std::vector<Index> variables;
  std::vector<double> probabilities;
  std::vector<double> mcse;  ///< standard errors; empty when exact
};

/// A short run of one sampler.
struct Pilot {
  std::string sampler;
  double error = 0.0;             ///< root mean square standard error of the marginals, as it would be after one second
  double steps_per_second = 0.0;  ///< of one chain
  std::uint64_t steps_per_sweep = 1;
  std::string verdict;  ///< where it was not taken although its error is the smallest: why
};

/// Marginals of all variables with their errors, how they were found, and why.
struct MarginalsAnswer {
  std::string model;
  Method method = Method::exact;              ///< what was used
  std::string reason;                         ///< why, in one sentence
  Marginals marginals;                        ///< exact, or means of conditional probabilities
  Marginals counted;                          ///< part of all steps spent at each level; empty when exact
  Marginals mcse;                             ///< standard error of `marginals` (see RunMarginals); empty when exact
  std::optional<Joint> joint;                 ///< of the variables of the query
  std::optional<double> log_partition;        ///< natural logarithm: exact, or from tempering
  std::optional<double> log_partition_error;  ///< its standard error, when from tempering
  Index width = 0;                            ///< induced width of the plan that was found, and its cost in bytes
  double bytes = 0.0;
  std::vector<Index> exact_variables;  ///< of a sampled answer: those in parts of the network that are exact
  std::vector<Pilot> pilots;           ///< best first
  /// Chains of pilot runs that had settled where the answer has not been: a sentence each.
  std::vector<Warning> elsewhere;
  std::optional<Report> report;  ///< of the sampling run
  double seconds = 0.0;          ///< in all
  bool interrupted = false;

  /// Those of the run and of the pilots.
  [[nodiscard]] std::vector<Warning> warnings() const {
    std::vector<Warning> all = elsewhere;
    if (report) all.insert(all.end(), report->warnings.begin(), report->warnings.end());
    return all;
  }
};

/// How the work is seen from outside. `progress` is told of the pilot runs and the run itself by name.
struct MarginalsHooks {
  std::function<void(const std::string& title, const Progress&)> progress;
  std::function<void(const std::string& title, bool interrupted)> end;  ///< of what `progress` told of
  std::function<void(double part_done)> exact_progress;
  const std::atomic<bool>* stop = nullptr;
  /// Ranks that sample together, with the same network and options. What is exact is the work of the root alone, and so
  /// is the answer: that of other ranks is of no use.
  Collective* collective = nullptr;
};

/// Throws InputError where exact inference is asked for but does not fit, and where no state has positive probability;
/// ExactStopped where exact inference was stopped. Sampling that is stopped gives what it has.
[[nodiscard]] MarginalsAnswer find_marginals(const std::shared_ptr<const Network>& network,
                                             const MarginalsOptions& options, const MarginalsHooks& hooks = {});

/// Whether exact inference is the answer: its tables fit the memory, if need be in slices, and one core would be done
/// in time, or in ten minutes where no time is given.
[[nodiscard]] bool fits(const ExactPlan& plan, double memory_limit, std::optional<double> seconds = {});

/// "712 MiB of tables (induced width 22)", with slices and time where there are several.
[[nodiscard]] std::string exact_cost(const ExactPlan& plan);

/// What a network is made of and what an answer would cost. Keys: version, model, variables, observed, one_level,
/// determined (by zeros), cardinality{min, max}, factors, largest_scope, entries, zeros, width, slices, conditioned,
/// method (exact or sample), complete, fits_memory, cost (a sentence), exact_bytes, largest_clique, samplers[] (where
/// it would be sampled).
[[nodiscard]] nlohmann::json network_info(const Network& network, double memory_limit);

/// The samplers that pilots compare: the candidates of `auto` whose draws are those of chains, and tempering.
[[nodiscard]] std::vector<std::string> pilot_samplers(const Model& model);

/// Keys: version, model, method (exact or sample), reason, width, exact_bytes, log10_partition (and its
/// log10_partition_error when it comes from tempering), sampler, pilots[{sampler, error_after_a_second,
/// steps_per_second, verdict (where it was not taken although its error is small)}], evidence_probability and its
/// _error (of Bayesian networks with evidence), joint{variables[], levels[][], probabilities[], mcse[]}, seconds,
/// interrupted, warnings[{code, message}], variables[{name, levels[], probabilities[], counted[], mcse[], observed}],
/// report{} (when sampled).
[[nodiscard]] nlohmann::json marginals_json(const MarginalsAnswer& answer, const Network& network);

/// As CSV: variable, level, probability, mcse (empty where exact); of a query a column for each variable instead.
[[nodiscard]] std::string marginals_csv(const MarginalsAnswer& answer, const Network& network);

/// A table with a row per variable (the first `most` of them), or per combination of levels of a query, and what was
/// done and why.
[[nodiscard]] std::string marginals_text(const MarginalsAnswer& answer, const Network& network, std::size_t width,
                                         std::size_t most);

/// Probabilities as bars with their standard errors, about `most` of them: all levels of variables that are not
/// observed, of two-valued ones the second.
[[nodiscard]] std::string marginals_plot(const MarginalsAnswer& answer, const Network& network, std::size_t most);

/// What a chain settled to: the mean of each conditional probability over its later half, and its own error.
struct SettledChain {
  std::string sampler;
  std::size_t chain = 0;
  std::vector<SettledMean> entries;
};

/// Where a pilot run settled that the answer has not been.
struct OtherMode {
  std::size_t chain = 0;  ///< place among the chains
  std::size_t count = 0;  ///< probabilities that differ
  std::size_t worst = 0;  ///< entry that differs most
};

/// Chains may agree with each other and all have missed a mode. A chain of another run that stayed there differs from
/// their answer by more than 0.1 in some probability and by more than ten standard errors, its own and the answer's.
/// One that is still on its way has a large error of its own, and is no sign of anything. Gives the first such chain.
[[nodiscard]] std::optional<OtherMode> find_other_mode(std::span<const SettledChain> chains,
                                                       std::span<const double> answer, std::span<const double> errors);

}  // namespace poise
