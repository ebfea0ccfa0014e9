/// What there is to say of a run: its cost, its diagnostics and its warnings, as JSON and as a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <poise/diagnose.hpp>
#include <poise/run.hpp>

namespace poise {

struct StoredRun;

/// What physicists want to know of a spin model: a mean over draws, or a function of such means.
struct Observable {
  std::string name;
  double value;
  double error;  ///< one standard error, by the infinitesimal jackknife; it counts autocorrelation
  double tau;    ///< integrated autocorrelation time in draws; 1 where draws are independent
};

/// Made from a run that has just ended or from its file; both give the same numbers. Of a run that was killed some
/// things are not known: such numbers are NaN, such counts empty.
struct Report {
  std::string version;
  std::string model;
  std::string sampler;
  std::optional<Choice> choice;  ///< why that sampler, where `auto` was asked for
  std::uint64_t seed = 0;
  std::size_t chains = 0;
  std::size_t warmup = 0;
  std::size_t draws = 0;  ///< per chain, as many as there are
  std::uint64_t thin = 0;
  double seconds = 0.0;  ///< that the run was given; 0: its length was given in draws
  std::size_t num_variables = 0;

  double warmup_seconds = 0.0;
  double sampling_seconds = 0.0;
  std::uint64_t steps = 0;  ///< sampling steps, all chains together
  /// Changes of a single variable that these steps could make: one a step, or one per variable where a step is a sweep.
  std::optional<std::uint64_t> updates;
  std::optional<std::uint64_t> initial_steps;  ///< of one chain
  std::optional<std::uint64_t> warmup_steps;   ///< of one chain
  std::optional<Evals> evals;                  ///< of sampling
  std::optional<Evals> warmup_evals;
  double acceptance_rate = 0.0;

  std::vector<NamedSummary> monitors;                 ///< log_prob first
  std::optional<SpinScale> spins;                     ///< of spin models
  std::vector<Observable> observables;                ///< of spin models
  std::optional<VariablesSummary> variables;          ///< empty when the draws were not kept
  std::vector<std::string> variable_names;            ///< empty: x[0], x[1], ...
  std::vector<std::vector<std::string>> level_names;  ///< of each variable; empty: the labels
  Index lattice_rows = 0;                             ///< of sites, where the variables are those of a lattice
  Index lattice_columns = 0;
  std::size_t observed = 0;   ///< variables that evidence holds fixed; they have no rows
  std::vector<Index> frozen;  ///< see RunResult::frozen
  ModelChecks checks;
  std::optional<BestDraw> best;  ///< empty where it is not known
  std::string certain;           ///< variables that never changed, and rightly so: a sentence

  std::vector<double> knots;  ///< of the balancing function used for sampling; empty where there is none
  std::vector<double> log_phi;
  double objective = 0.0;  ///< of learning, at its end; NaN without

  std::optional<TemperingReport> tempering;  ///< where chains are ladders

  bool independent = false;  ///< draws do not depend on each other, so that there is no mixing to judge
  bool interrupted = false;
  std::vector<std::int8_t> present;  ///< as in RunResult
  std::vector<Warning> warnings;
  std::vector<std::string> notes;
};

/// Diagnoses a run whose draws are in memory; time grows with variables * draws.
[[nodiscard]] Report make_report(const RunResult& result);
/// The same of a run that was read back whole.
[[nodiscard]] Report make_report(const StoredRun& stored);

/// Names of observables, with what they are.
[[nodiscard]] const std::vector<NameHelp>& observable_help();
/// Keeps the observables of a list such as "energy,binder"; "none" keeps none, "all" all. Throws InputError where a
/// name is none of theirs.
void keep_observables(Report& report, const std::string& list);

/// {"code": ..., "message": ...}
void to_json(nlohmann::json& json, const Warning& warning);

/// How draws are diagnosed that are in a file and need not fit into memory.
struct FileReportOptions {
  /// Bytes that it may take. Monitors that do not fit are looked at one draw in so many, and a note says so.
  double memory = 1024.0 * 1024.0 * 1024.0;
  unsigned threads = 0;  ///< the result does not depend on it; 0: as many as the machine has
};

/// The report of a file that may be larger than memory, which is read again and again, some variables at a time: the
/// same numbers as from a file that is read as a whole.
[[nodiscard]] Report make_report(const std::string& path, const FileReportOptions& options);

/// That of a run whose draws are in the file at PATH, which no run is writing any more. Read from there is only what is
/// not in memory.
[[nodiscard]] Report make_report(const RunResult& result, const std::string& path, const FileReportOptions& options);

/// The same, and the monitors that were read for it: in `trace`, which has no states.
[[nodiscard]] Report make_report(const std::string& path, const FileReportOptions& options, Trace& trace);

/// The keys of JSON reports are stable: version, model, sampler, seed, chains, warmup, draws, thin, seconds{warmup,
/// sampling}, steps, updates, initial_steps, warmup_steps, evals{target, ratio, gradient, balance; changes of
/// steps that make many}, evals_warmup{...},
/// acceptance_rate, monitors{NAME{mean, sd, mcse, ess, ess_tail, ess_per_second, ess_per_eval, ess_per_step, r_hat,
/// transitions, status}}, observed, frozen[], checks{exact, tested_levels, tested_gains, unvisited[], constant[],
/// gains[]} (ModelChecks, with the numbers of each entry one after another), interrupted, warnings[{code, message}],
/// notes[]; best{objective and name, or log_prob; chain, draw, state[]}, balance{knots, log_phi} where the sampler has
/// a balancing function, objective where it learned one, observables{NAME{value, error, tau}} of spin models,
/// choice{...} where `auto` chose the sampler (see sampler.hpp), tempering{betas[], acceptance[], barrier, round_trips,
/// steps, ladders, log_partition, log_partition_error, log_partition_by_ladder[], components, paths{stride, rungs[][]}}
/// where chains are ladders, independent (true) where draws are, and variables{count, constant, frozen, rare,
/// high_r_hat, low_ess, ess{min, q05, median, q95, max}, r_hat{...}} where the draws were kept.
///
/// JSON has no NaN and no infinity: what is unknown, undefined or infinite is null, and `status` says why (the R-hat of
/// a `frozen` monitor is infinite, that of a `constant` one undefined).
[[nodiscard]] nlohmann::json report_json(const Report& report);
/// The same of a result whose report is made first.
[[nodiscard]] nlohmann::json report_json(const RunResult& result);

/// Draws as CSV: chain, draw, log_prob, then every variable by name, at its label or the name of its level.
[[nodiscard]] std::string draws_csv(const Trace& trace, const VariableLayout& layout);

/// The state of the best draw: of variables with names lines `name = level`, as evidence is read; of a lattice its rows
/// of labels, of others one line of them; in the UAI format where `path` ends in .MPE or .MAP.
[[nodiscard]] std::string best_state_text(const BestDraw& best, const VariableLayout& layout, const std::string& path);

/// Text of a JSON value on several lines; bytes that are not UTF-8 (file names may hold any) are replaced.
[[nodiscard]] std::string json_text(const nlohmann::json& json);

/// The table: what was run, a row per monitor, the variables (all of them, or the worst ten when there are many) and
/// the warnings, in lines of at most `width` columns as far as words allow.
[[nodiscard]] std::string report_text(const Report& report, std::size_t width = 100);

/// One page of HTML that needs no other file: what was run, warnings, tables that sort, and the pictures of `run_plot`.
/// `trace` has the monitors of the run.
[[nodiscard]] std::string report_html(const Report& report, const Trace& trace);

/// Traces, rank histograms and autocorrelations of log p and of the model's statistics as one SVG document, and the
/// learned balancing function or the ladder of temperatures where there is one.
[[nodiscard]] std::string run_plot(const Report& report, const Trace& trace);

/// The effective sample sizes of log_prob and of the model's own statistics as one number, their geometric mean: a
/// sampler may be good at one and poor at the other. NaN when one of them is undefined.
[[nodiscard]] double combined_ess(const Report& report);

/// Runs of several samplers with the same budget, side by side; the best of a column is marked.
[[nodiscard]] std::string comparison_text(std::span<const Report> reports, std::size_t width = 100);

/// Effective samples a second of each sampler as bars; those with warnings are marked.
[[nodiscard]] std::string comparison_plot(std::span<const Report> reports);

/// `model`, `version` and `results`, a list of reports. Each has one key more: combined{ess, ess_per_second,
/// ess_per_eval, ess_per_step, ess_per_update}, of `combined_ess`.
[[nodiscard]] nlohmann::json comparison_json(std::span<const Report> reports);

}  // namespace poise
