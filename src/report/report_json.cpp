/// The report of a run as JSON.
#include <cmath>

#include <poise/report.hpp>
#include "report/draws_report.hpp"
#include "report/tempering.hpp"

namespace poise {

namespace {

using nlohmann::json;

json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

json count(const std::optional<std::uint64_t>& value) { return value ? json(*value) : json(nullptr); }

json numbers(const std::vector<double>& values) {
  json out = json::array();
  for (const double value : values) out.push_back(number(value));
  return out;
}

json evals_json(const std::optional<Evals>& evals) {
  if (!evals) return nullptr;
  json out = {
      {"target", evals->target}, {"ratio", evals->ratio}, {"gradient", evals->gradient}, {"balance", evals->balance}};
  if (evals->changes > 0) out["changes"] = evals->changes;
  return out;
}

json quantiles_json(const Quantiles& quantiles) {
  return {{"min", number(quantiles.min)},
          {"q05", number(quantiles.q05)},
          {"median", number(quantiles.median)},
          {"q95", number(quantiles.q95)},
          {"max", number(quantiles.max)}};
}

/// ESS for what it cost. Division by a cost of zero or an unknown one gives what JSON shows as null.
json efficiency_json(double ess, const Report& report) {
  const double evals = report.evals ? static_cast<double>(report.evals->of_target()) : std::nan("");
  return {{"ess", number(ess)},
          {"ess_per_second", number(ess / report.sampling_seconds)},
          {"ess_per_eval", number(ess / evals)},
          {"ess_per_step", number(ess / static_cast<double>(report.steps))}};
}

json monitor_json(const SeriesSummary& summary, const Report& report) {
  json out = efficiency_json(summary.ess, report);
  out["mean"] = number(summary.mean);
  out["sd"] = number(summary.sd);
  out["mcse"] = number(summary.mcse);
  out["ess_tail"] = number(summary.ess_tail);
  out["r_hat"] = number(summary.r_hat);
  out["transitions"] = summary.transitions;
  out["status"] = to_string(summary.status);
  return out;
}

json best_json(const BestDraw& best) {
  json out = {{"chain", best.chain}, {"draw", best.draw}, {"state", json::array()}};
  out[best.objective.empty() ? "log_prob" : "objective"] = number(best.value);
  if (!best.objective.empty()) out["name"] = best.objective;
  for (const std::int8_t label : best.state) out["state"].push_back(label);
  return out;
}

json variables_json(const VariablesSummary& variables) {
  return {{"count", variables.variables},
          {"constant", variables.constant},
          {"frozen", variables.frozen},
          {"rare", variables.rare},
          {"high_r_hat", variables.high_r_hat},
          {"low_ess", variables.low_ess},
          {"exact_ess", variables.exact},
          {"ess", quantiles_json(variables.ess)},
          {"r_hat", quantiles_json(variables.r_hat)}};
}

/// Flat lists of numbers: a file may hold a thousand of each.
json checks_json(const ModelChecks& checks) {
  std::vector<double> unvisited, constant, gains, elsewhere, other, off;
  for (const auto& one : checks.unvisited) {
    unvisited.insert(unvisited.end(),
                     {static_cast<double>(one.variable), static_cast<double>(one.level), one.probability});
  }
  for (const auto& one : checks.constant) {
    constant.insert(constant.end(), {static_cast<double>(one.variable), one.least, one.most});
  }
  for (const auto& one : checks.gains) gains.insert(gains.end(), {static_cast<double>(one.variable), one.gain});
  for (const auto& one : checks.elsewhere) {
    elsewhere.insert(elsewhere.end(), {static_cast<double>(one.variable), one.gain});
  }
  if (const auto& one = checks.other) {
    other = {static_cast<double>(one->variable),
             static_cast<double>(one->level),
             static_cast<double>(one->chains),
             static_cast<double>(one->of),
             one->gain,
             one->here,
             one->there};
  }
  for (const auto& one : checks.off) {
    off.insert(off.end(),
               {static_cast<double>(one.variable), static_cast<double>(one.level), one.frequency, one.probability});
  }
  return {{"interchangeable", checks.interchangeable},
          {"labels", {checks.low, checks.high}},
          {"clusters", checks.clusters},
          {"exact", checks.exact},
          {"tested_levels", checks.tested_levels},
          {"tested_gains", checks.tested_gains},
          {"unvisited", numbers(unvisited)},
          {"constant", numbers(constant)},
          {"solved", checks.solved},
          {"off", numbers(off)},
          {"gains", numbers(gains)},
          {"elsewhere", numbers(elsewhere)},
          {"other", numbers(other)}};
}

}  // namespace

void to_json(json& out, const Warning& warning) { out = {{"code", warning.code}, {"message", warning.sentence()}}; }

std::optional<BestDraw> read_best(const json& results, Index variables) try {
  if (!results.is_object() || !results.contains("best")) return std::nullopt;
  const json& found = results.at("best");
  BestDraw best;
  best.objective = found.value("name", "");
  const json& value = found.at(best.objective.empty() ? "log_prob" : "objective");
  best.value = value.is_null() ? std::nan("") : value.get<double>();
  best.chain = found.at("chain").get<std::size_t>();
  best.draw = found.at("draw").get<std::size_t>();
  for (const json& label : found.at("state")) best.state.push_back(label.get<std::int8_t>());
  if (!best.state.empty() && best.state.size() != variables) return std::nullopt;
  return best;
} catch (const json::exception&) {
  return std::nullopt;  // the file is damaged
}

json report_json(const Report& report) {
  json out = {{"version", report.version},
              {"model", report.model},
              {"sampler", report.sampler},
              {"seed", report.seed},
              {"chains", report.chains},
              {"warmup", report.warmup},
              {"draws", report.draws},
              {"thin", report.thin},
              {"seconds", {{"warmup", number(report.warmup_seconds)}, {"sampling", number(report.sampling_seconds)}}},
              {"steps", report.steps},
              {"updates", count(report.updates)},
              {"initial_steps", count(report.initial_steps)},
              {"warmup_steps", count(report.warmup_steps)},
              {"evals", evals_json(report.evals)},
              {"evals_warmup", evals_json(report.warmup_evals)},
              {"acceptance_rate", number(report.acceptance_rate)},
              {"monitors", json::object()},
              {"observed", report.observed},
              {"frozen", report.frozen},
              {"checks", checks_json(report.checks)},
              {"interrupted", report.interrupted},
              {"warnings", report.warnings},
              {"notes", report.notes}};
  for (const auto& [name, summary] : report.monitors) out["monitors"][name] = monitor_json(summary, report);
  for (const Observable& one : report.observables) {
    out["observables"][one.name] = {
        {"value", number(one.value)}, {"error", number(one.error)}, {"tau", number(one.tau)}};
  }
  if (report.best) out["best"] = best_json(*report.best);
  if (report.independent) out["independent"] = true;
  if (report.choice) out["choice"] = choice_json(*report.choice);
  if (report.tempering) out["tempering"] = tempering_json(*report.tempering);
  if (!report.knots.empty()) out["balance"] = {{"knots", numbers(report.knots)}, {"log_phi", numbers(report.log_phi)}};
  if (std::isfinite(report.objective)) out["objective"] = report.objective;
  if (!report.present.empty()) out["present"] = report.present;
  if (report.variables) out["variables"] = variables_json(*report.variables);
  return out;
}

json report_json(const RunResult& result) { return report_json(make_report(result)); }

json comparison_json(std::span<const Report> reports) {
  json out = {{"version", POISE_VERSION}, {"results", json::array()}};
  if (!reports.empty()) out["model"] = reports.front().model;
  for (const Report& report : reports) {
    json one = report_json(report);
    const double ess = combined_ess(report);
    one["combined"] = efficiency_json(ess, report);
    one["combined"]["ess_per_update"] = report.updates ? number(ess / static_cast<double>(*report.updates)) : json();
    out["results"].push_back(std::move(one));
  }
  return out;
}

std::string json_text(const json& value) { return value.dump(2, ' ', false, json::error_handler_t::replace) + "\n"; }

}  // namespace poise
