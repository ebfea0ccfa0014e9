/// Gathers what is to be reported, from a run in memory or from its file.
#include <poise/report.hpp>
#include "report/tempering.hpp"

#include <cmath>
#include <limits>

#include "report/draws_report.hpp"
#include "store/netcdf.hpp"

namespace poise {

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
  report.interrupted = result.interrupted;
  report.notes = result.notes;
  report.frozen = result.frozen;
  report.chains = result.trace.chains;
  report.draws = result.trace.all_draws();
  add_layout(report, result.layout);
  return report;
}

Report make_report(const RunResult& result) {
  Report report = report_of_head(result);
  add_monitors(report, result.trace);
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
  report.seed = settings.count("seed").value_or(0);
  report.warmup = settings.count("warmup").value_or(0);
  report.thin = settings.count("thin").value_or(0);
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
  report.interrupted = results.flag("interrupted");
  report.notes = results.texts("notes");
  for (const double variable : results.numbers("frozen")) {
    if (variable >= 0.0 && variable < stored.layout.variables) report.frozen.push_back(static_cast<Index>(variable));
  }
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
  add_monitors(report, stored.trace);
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
