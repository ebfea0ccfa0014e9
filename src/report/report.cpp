/// Reports of a run and of a stored run: head, monitors, variables and warnings.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <thread>

#include <fmt/format.h>

#include <poise/report.hpp>
#include "base/thread_pool.hpp"
#include "diagnose/model_checks.hpp"
#include "report/draws_report.hpp"
#include "report/tempering.hpp"
#include "store/run_file.hpp"

namespace poise {

namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

/// Beyond this many sites, whose names would take more memory than is polite, x[i] has to do.
constexpr Index kMostNames = Index{1} << 20;

/// Sites of a lattice are called by row and column, as ArviZ calls them.
std::vector<std::string> names_of(const VariableLayout& layout) {
  if (!layout.names.empty() || !layout.is_lattice() || layout.variables > kMostNames) return layout.names;
  std::vector<std::string> names;
  names.reserve(layout.variables);
  for (Index row = 0; row < layout.rows; ++row) {
    for (Index column = 0; column < layout.columns; ++column) names.push_back(fmt::format("x[{}, {}]", row, column));
  }
  return names;
}

/// Observed variables are constant because they should be.
void leave_out_observed(const VariableLayout& layout, VariablesSummary& summary) {
  std::size_t observed = 0;
  for (Index i = 0; i < layout.variables; ++i) observed += layout.is_observed(i) ? 1 : 0;
  if (observed == 0) return;
  std::erase_if(summary.rows, [&](const VariableRow& row) { return layout.is_observed(row.variable); });
  summary.variables -= observed;
  summary.constant -= observed;
  summary.exact = std::min(summary.exact, summary.variables);
}

}  // namespace

void add_layout(Report& report, const VariableLayout& layout) {
  report.num_variables = layout.variables;
  report.lattice_rows = layout.rows;
  report.lattice_columns = layout.columns;
  report.variable_names = names_of(layout);
  report.level_names = layout.level_names;
  for (Index i = 0; i < layout.variables; ++i) report.observed += layout.is_observed(i) ? 1 : 0;
}

void add_monitors(Report& report, const Trace& trace, unsigned threads) {
  const unsigned most = threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : threads;
  const SeriesSummary unknown{kUndefined, kUndefined, kUndefined, kUndefined,
                              kUndefined, kUndefined, 0,          SeriesStatus::too_short};
  for (const std::string& name : trace.monitor_names) report.monitors.push_back({name, unknown});
  const std::size_t count = trace.monitor_names.size();
  ThreadPool pool(std::clamp(static_cast<unsigned>(count), 1U, most));
  pool.for_each(count, [&](std::size_t k) {
    const ChainsView series{trace.monitors[k].data(), trace.chains, trace.draws};
    if (series.size() > 0) report.monitors[k].summary = summarize(series);
  });
  add_observables(report, trace, most);
}

void add_variables(Report& report, ColumnSource& draws, const VariableLayout& layout, unsigned threads) {
  report.variables = summarize_variables(draws, {.threads = threads, .worst = 10});
  leave_out_observed(layout, *report.variables);
}

void add_variables(Report& report, const Trace& trace, const VariableLayout& layout, unsigned threads) {
  if (trace.x.empty()) return;
  report.variables =
      summarize_variables(draws_view(trace.x, trace.chains, trace.draws), {.threads = threads, .worst = 10});
  leave_out_observed(layout, *report.variables);
}

void DrawSums::add(const Trace& part) {
  accepted_.resize(part.chains, 0.0);
  for (std::size_t c = 0; c < part.chains; ++c) {
    for (std::size_t draw = 0; draw < part.draws; ++draw) {
      accepted_[c] += part.acceptance_rate[c * part.draws + draw];
      steps_ += static_cast<std::uint64_t>(part.n_steps[c * part.draws + draw]);
    }
  }
  draws_ += part.draws;
}

double DrawSums::mean_acceptance() const {
  const double sum = std::accumulate(accepted_.begin(), accepted_.end(), 0.0);
  return draws_ > 0 ? sum / static_cast<double>(draws_ * accepted_.size()) : 0.0;
}

void add_warnings(Report& report, bool ended) {
  const RunFacts facts{.chains = report.chains,
                       .draws = report.draws,
                       .warmup = report.warmup,
                       .sampler = report.sampler,
                       .seconds = report.seconds,
                       .independent = report.independent,
                       .names = {report.variable_names, report.level_names},
                       .crossing = crossing_sampler(report.checks, report.sampler)};
  // One for each cause: what the model says comes first, and speaks for what the draws show of the same.
  const auto add = [&](const std::vector<Warning>& found) {
    for (const Warning& one : found) {
      // Chains that are stuck disagree for that reason, and have few effective draws.
      const bool follows = one.code == "rhat" || one.code == "ess";
      // And where they are or what they miss says why marginals are wrong.
      const bool is_known = std::any_of(report.warnings.begin(), report.warnings.end(), [&](const Warning& other) {
        const bool explains = other.code == "stuck" || other.code == "unvisited" || other.code == "modes";
        return other.code == one.code || (follows && other.code == "stuck") || (one.code == "disagreement" && explains);
      });
      if (!is_known) report.warnings.push_back(one);
    }
  };
  if (report.draws == 0) {
    add({{"no_draws",
          report.interrupted ? "The run was interrupted before its first draw" : "There was no time for a single draw",
          report.seconds > 0.0 ? facts.longer(10) : ""}});
    return;
  }
  if (report.interrupted) {
    add({{"interrupted", fmt::format("The run was interrupted after {} draws per chain", report.draws)}});
  }
  if (!ended) {
    add({{"interrupted", fmt::format("The run has not ended or was killed; {} draws per chain are complete, and its "
                                     "time and cost are not known",
                                     report.draws)}});
  }
  if (report.tempering) add(tempering_warnings(*report.tempering, facts));
  const VariablesSummary none;
  const VariablesSummary& variables = report.variables ? *report.variables : none;
  const CheckedRun checked{report.monitors, variables, report.frozen, facts};
  if (!report.independent) {
    add(stuck_warnings(report.checks, checked));
    add(unvisited_warnings(report.checks, checked));
    add(symmetry_warnings(report.checks, checked));
    add(other_mode_warnings(report.checks, checked));
    add(exact_warnings(report.checks, checked));
    add(local_gain_warnings(report.checks, checked));
  }
  if (!is_determined(report.checks, checked)) add(warnings(report.monitors, variables, facts));
  report.certain = certain_variables(report.checks, checked);
}

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// Reads a JSON object that may lack anything, or hold anything: a file can come from anywhere.
class Fields {
 public:
  explicit Fields(const nlohmann::json& json) : json_(json.is_object() ? json : empty()) {}

  [[nodiscard]] Fields at(const char* key) const { return Fields(value(key)); }
  [[nodiscard]] std::string text(const char* key) const {
    return value(key).is_string() ? value(key).get<std::string>() : std::string("unknown");
  }
  [[nodiscard]] double number(const char* key) const {
    return value(key).is_number() ? value(key).get<double>() : kUnknown;
  }
  [[nodiscard]] std::optional<std::uint64_t> count(const char* key) const {
    if (!value(key).is_number_unsigned()) return std::nullopt;
    return value(key).get<std::uint64_t>();
  }
  [[nodiscard]] bool flag(const char* key) const { return value(key).is_boolean() && value(key).get<bool>(); }
  [[nodiscard]] std::vector<double> numbers(const char* key) const {
    std::vector<double> out;
    if (!value(key).is_array()) return out;
    for (const auto& entry : value(key)) out.push_back(entry.is_number() ? entry.get<double>() : kUnknown);
    return out;
  }
  [[nodiscard]] std::vector<std::string> texts(const char* key) const {
    std::vector<std::string> out;
    if (!value(key).is_array()) return out;
    for (const auto& entry : value(key)) {
      if (entry.is_string()) out.push_back(entry.get<std::string>());
    }
    return out;
  }
  [[nodiscard]] std::optional<Evals> evals(const char* key) const {
    const Fields fields = at(key);
    const auto target = fields.count("target"), ratio = fields.count("ratio"), gradient = fields.count("gradient"),
               balance = fields.count("balance");
    if (!target || !ratio || !gradient || !balance) return std::nullopt;
    return Evals{*target, *ratio, *gradient, *balance, fields.count("changes").value_or(0)};
  }

 private:
  static const nlohmann::json& empty() {
    static const nlohmann::json object = nlohmann::json::object();
    return object;
  }
  [[nodiscard]] const nlohmann::json& value(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() ? empty() : *found;
  }
  const nlohmann::json& json_;
};

std::optional<SpinScale> read_spins(const Fields& fields) {
  const SpinScale scale{fields.number("sites"), fields.number("coupling"), fields.text("order"),
                        fields.number("order_size")};
  const bool is_whole = scale.sites >= 1.0 && scale.coupling > 0.0 && scale.order_size > 0.0;
  return is_whole ? std::optional(scale) : std::nullopt;
}

/// As `report_json` writes them; what is damaged is left out.
ModelChecks read_checks(const Fields& fields, Index variables) {
  ModelChecks checks;
  const auto each = [&](const char* key, std::size_t width, const auto& use) {
    const std::vector<double> numbers = fields.numbers(key);
    for (std::size_t k = 0; k + width <= numbers.size(); k += width) {
      if (numbers[k] >= 0.0 && numbers[k] < variables) use(static_cast<Index>(numbers[k]), numbers.data() + k + 1);
    }
  };
  each("unvisited", 3, [&](Index i, const double* rest) {
    if (std::abs(rest[0]) < 128.0) checks.unvisited.push_back({i, static_cast<std::int8_t>(rest[0]), rest[1]});
  });
  each("constant", 3, [&](Index i, const double* rest) { checks.constant.push_back({i, rest[0], rest[1]}); });
  each("gains", 2, [&](Index i, const double* rest) { checks.gains.push_back({i, rest[0]}); });
  each("elsewhere", 2, [&](Index i, const double* rest) { checks.elsewhere.push_back({i, rest[0]}); });
  each("other", 7, [&](Index i, const double* rest) {
    const bool is_sound = std::abs(rest[0]) < 128.0 && rest[1] >= 1.0 && rest[1] <= rest[2] && rest[2] < 1e6;
    if (!is_sound) return;
    checks.other = {static_cast<std::size_t>(rest[1]),
                    static_cast<std::size_t>(rest[2]),
                    rest[3],
                    i,
                    static_cast<std::int8_t>(rest[0]),
                    rest[4],
                    rest[5]};
  });
  each("off", 4, [&](Index i, const double* rest) {
    if (std::abs(rest[0]) < 128.0) checks.off.push_back({i, static_cast<std::int8_t>(rest[0]), rest[1], rest[2]});
  });
  checks.interchangeable = static_cast<Index>(std::min<std::size_t>(fields.count("interchangeable").value_or(0), 256));
  if (const std::vector<double> labels = fields.numbers("labels"); labels.size() == 2 && labels[0] < labels[1]) {
    checks.low = labels[0];
    checks.high = labels[1];
  } else {
    checks.interchangeable = 0;
  }
  checks.clusters = fields.flag("clusters");
  checks.exact = fields.flag("exact");
  checks.solved = fields.flag("solved");
  checks.tested_levels = fields.count("tested_levels").value_or(0);
  checks.tested_gains = fields.count("tested_gains").value_or(0);
  return checks;
}

}  // namespace

Report report_of_head(const RunResult& result) {
  Report report;
  report.version = POISE_VERSION;
  report.model = result.model;
  report.sampler = result.sampler;
  report.choice = result.choice;
  report.seed = result.options.seed;
  report.warmup = result.options.warmup.value_or(0);
  report.thin = result.options.thin;
  report.seconds = result.options.seconds;
  report.warmup_seconds = result.warmup_seconds;
  report.sampling_seconds = result.sampling_seconds;
  report.steps = result.steps;
  report.updates = result.updates;
  report.initial_steps = result.initial_steps;
  report.warmup_steps = result.warmup_steps;
  report.evals = result.evals;
  report.warmup_evals = result.warmup_evals;
  report.acceptance_rate = result.acceptance_rate;
  report.knots = result.knots;
  report.log_phi = result.log_phi;
  report.objective = result.objective;
  report.tempering = result.tempering;
  report.independent = result.independent;
  report.interrupted = result.interrupted;
  report.present = result.present;
  report.notes = result.notes;
  report.frozen = result.frozen;
  report.spins = result.spins;
  report.checks = result.checks;
  report.best = result.best;
  report.chains = result.trace.chains;
  report.draws = result.trace.all_draws();
  add_layout(report, result.layout);
  return report;
}

Report make_report(const RunResult& result) {
  Report report = report_of_head(result);
  add_monitors(report, result.trace, result.options.threads);
  add_variables(report, result.trace, result.layout, result.options.threads);
  add_warnings(report, true);
  return report;
}

Report report_of_head(const StoredRun& stored) {
  const Fields settings(stored.settings);
  const Fields results(stored.results);
  Report report;
  report.version = settings.text("version");
  report.model = settings.text("model");
  report.sampler = settings.text("sampler");
  if (stored.settings.is_object() && stored.settings.contains("choice")) {
    report.choice = read_choice(stored.settings["choice"]);
  }
  report.spins = read_spins(settings.at("spins"));
  report.seed = settings.count("seed").value_or(0);
  report.warmup = settings.count("warmup").value_or(0);
  report.thin = settings.count("thin").value_or(0);
  report.seconds = std::fmax(0.0, settings.number("seconds"));
  report.warmup_seconds = results.at("seconds").number("warmup");
  report.sampling_seconds = results.at("seconds").number("sampling");
  report.updates = results.count("updates");
  report.initial_steps = results.count("initial_steps");
  report.warmup_steps = results.count("warmup_steps");
  report.evals = results.evals("evals");
  report.warmup_evals = results.evals("evals_warmup");
  report.knots = results.at("balance").numbers("knots");
  report.log_phi = results.at("balance").numbers("log_phi");
  report.objective = results.number("objective");
  if (stored.results.is_object() && stored.results.contains("tempering")) {
    report.tempering = read_tempering(stored.results["tempering"]);
  }
  report.independent = results.flag("independent");
  report.interrupted = results.flag("interrupted");
  report.notes = results.texts("notes");
  for (const double variable : results.numbers("frozen")) {
    if (variable >= 0.0 && variable < stored.layout.variables) report.frozen.push_back(static_cast<Index>(variable));
  }
  report.checks = read_checks(results.at("checks"), stored.layout.variables);
  report.best = read_best(stored.results, stored.layout.variables);
  report.chains = stored.trace.chains;
  report.draws = stored.trace.all_draws();
  add_layout(report, stored.layout);
  return report;
}

Report make_report(const StoredRun& stored) {
  Report report = report_of_head(stored);
  DrawSums sums;
  sums.add(stored.trace);
  report.steps = sums.steps();
  report.acceptance_rate = sums.mean_acceptance();
  add_monitors(report, stored.trace, 0);
  add_variables(report, stored.trace, stored.layout, 0);
  add_warnings(report, stored.results.is_object());
  return report;
}

double combined_ess(const Report& report) {
  double sum = 0.0;
  int count = 0;
  for (const auto& [name, summary] : report.monitors) {
    if (name == "hamming") continue;  // a distance from a random state: a check of mixing, not something one wants
    sum += std::log(summary.ess);
    ++count;
  }
  return count == 0 ? kUnknown : std::exp(sum / count);
}

}  // namespace poise
