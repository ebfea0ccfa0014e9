/// Marginals and log Z as text and JSON.
#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include <poise/log_partition.hpp>
#include <poise/marginals.hpp>
#include <poise/plot.hpp>
#include "exact/exact_inference.hpp"
#include "report/tempering.hpp"
#include "report/text.hpp"

namespace poise {

namespace {

using nlohmann::json;

json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

json numbers(std::span<const double> values) {
  json out = json::array();
  for (const double value : values) out.push_back(number(value));
  return out;
}

/// Probabilities of all levels of a variable, each with as many digits as its error leaves meaning to.
std::string probabilities(const MarginalsAnswer& answer, const Network& network, Index i) {
  std::string out;
  const std::span<const double> levels = answer.marginals.of(i);
  constexpr std::size_t most = 8;
  for (std::size_t k = 0; k < std::min(most, levels.size()); ++k) {
    if (!out.empty()) out += "  ";
    if (!network.level_names.empty()) out += network.level_name(i, static_cast<Index>(k)) + " ";
    const double error = answer.method == Method::exact ? 0.0 : answer.mcse.of(i)[k];
    out += error > 0.0 ? text::mean(levels[k], error) : fmt::format("{:.6f}", levels[k]);
  }
  if (levels.size() > most) out += fmt::format("  ... ({} levels)", levels.size());
  return out;
}

bool has_evidence(const Network& network) {
  return std::any_of(network.observed.begin(), network.observed.end(), [](Index k) { return k != Network::kFree; });
}

std::string evidence_text(double log_probability, const std::optional<double>& error) {
  const std::string value = "P(evidence) = " + text::probability(log_probability);
  return error && *error > 0.0 ? fmt::format("{}, known to {:.2g} %", value, 100.0 * *error) : value;
}

/// Levels of the variables of a joint table, entry by entry.
std::vector<std::string> levels_of_entry(const Joint& joint, const Network& network, std::size_t entry) {
  std::vector<std::string> names(joint.variables.size());
  for (std::size_t k = names.size(); k-- > 0;) {
    const Index levels = network.cardinalities[joint.variables[k]];
    names[k] = network.level_name(joint.variables[k], static_cast<Index>(entry % levels));
    entry /= levels;
  }
  return names;
}

/// Whether an entry agrees with what is observed.
bool is_possible(const Joint& joint, const Network& network, std::size_t entry) {
  for (std::size_t k = joint.variables.size(); k-- > 0;) {
    const Index i = joint.variables[k];
    if (network.is_observed(i) && entry % network.cardinalities[i] != network.observed[i]) return false;
    entry /= network.cardinalities[i];
  }
  return true;
}

json joint_json(const Joint& joint, const Network& network) {
  json out = {{"variables", json::array()}, {"levels", json::array()}, {"probabilities", numbers(joint.probabilities)}};
  for (const Index i : joint.variables) {
    out["variables"].push_back(network.variable_name(i));
    json levels = json::array();
    for (Index k = 0; k < network.cardinalities[i]; ++k) levels.push_back(network.level_name(i, k));
    out["levels"].push_back(std::move(levels));
  }
  if (!joint.mcse.empty()) out["mcse"] = numbers(joint.mcse);
  return out;
}

std::string joint_text(const Joint& joint, const Network& network, std::size_t width, std::size_t most) {
  std::vector<std::string> titles;
  for (const Index i : joint.variables) titles.push_back("<" + network.variable_name(i));
  titles.emplace_back("probability");
  if (!joint.mcse.empty()) titles.emplace_back("mcse");
  text::Table table(titles);
  std::size_t shown = 0;
  std::size_t rest = 0;
  for (std::size_t entry = 0; entry < joint.probabilities.size(); ++entry) {
    if (!is_possible(joint, network, entry)) continue;
    if (shown == most) {
      ++rest;
      continue;
    }
    ++shown;
    std::vector<std::string> row = levels_of_entry(joint, network, entry);
    const double error = joint.mcse.empty() ? 0.0 : joint.mcse[entry];
    row.push_back(error > 0.0 ? text::mean(joint.probabilities[entry], error)
                              : fmt::format("{:.6f}", joint.probabilities[entry]));
    if (!joint.mcse.empty()) row.push_back(text::number(error, 2));
    table.add(row);
  }
  std::string out = table.text(width);
  if (rest > 0) out += fmt::format("and {} more; --csv and --json write all of them\n", rest);
  return out;
}

std::string csv_number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }

double largest(std::span<const double> values) {
  double out = 0.0;
  for (const double value : values) out = std::isnan(value) ? value : std::max(out, value);
  return out;
}

}  // namespace

json marginals_json(const MarginalsAnswer& answer, const Network& network) {
  const bool sampled = answer.method == Method::sample;
  json out = {{"version", POISE_VERSION},
              {"model", answer.model},
              {"method", sampled ? "sample" : "exact"},
              {"reason", answer.reason},
              {"width", answer.width},
              {"exact_bytes", number(answer.bytes)},
              {"seconds", answer.seconds},
              {"interrupted", answer.interrupted},
              {"warnings", answer.warnings()},
              {"variables", json::array()}};
  if (answer.log_partition) out["log10_partition"] = number(*answer.log_partition / std::log(10.0));
  if (answer.log_partition_error) out["log10_partition_error"] = number(*answer.log_partition_error / std::log(10.0));
  if (answer.log_partition && network.bayesian && has_evidence(network)) {
    const double probability = std::exp(*answer.log_partition);
    out["evidence_probability"] = probability > 0.0 ? json(probability) : json(nullptr);  // beyond the range of doubles
    if (answer.log_partition_error) out["evidence_probability_error"] = probability * *answer.log_partition_error;
  }
  if (answer.joint) out["joint"] = joint_json(*answer.joint, network);
  if (sampled) {
    out["sampler"] = answer.report->sampler;
    out["pilots"] = json::array();
    for (const Pilot& pilot : answer.pilots) {
      out["pilots"].push_back({{"sampler", pilot.sampler},
                               {"error_after_a_second", number(pilot.error)},
                               {"steps_per_second", number(pilot.steps_per_second)}});
      if (!pilot.verdict.empty()) out["pilots"].back()["verdict"] = pilot.verdict;
    }
    out["report"] = report_json(*answer.report);
  }
  for (Index i = 0; i < network.num_variables(); ++i) {
    json variable = {{"name", network.variable_name(i)},
                     {"levels", json::array()},
                     {"probabilities", numbers(answer.marginals.of(i))},
                     {"observed", network.is_observed(i)}};
    for (Index k = 0; k < network.cardinalities[i]; ++k) variable["levels"].push_back(network.level_name(i, k));
    if (sampled) {
      variable["counted"] = numbers(answer.counted.of(i));
      variable["mcse"] = numbers(answer.mcse.of(i));
      variable["exact"] = std::binary_search(answer.exact_variables.begin(), answer.exact_variables.end(), i);
    }
    out["variables"].push_back(std::move(variable));
  }
  return out;
}

std::string marginals_plot(const MarginalsAnswer& answer, const Network& network, std::size_t most) {
  BarChart chart{.title = answer.model, .x_label = "probability", .bars = {}, .x_max = 1.0};
  bool is_group = false;  // the bars of the variable before
  for (Index i = 0; i < network.num_variables(); ++i) {
    if (network.is_observed(i)) continue;
    if (chart.bars.size() >= most) {
      chart.x_label = fmt::format("probability; the first {} of {} variables", i, network.num_variables());
      break;
    }
    const std::span<const double> levels = answer.marginals.of(i);
    const std::size_t first = levels.size() == 2 ? 1 : 0;
    const bool stands_apart = is_group || levels.size() > 2;
    is_group = levels.size() > 2;
    for (std::size_t k = first; k < levels.size(); ++k) {
      const double error = answer.method == Method::exact ? 0.0 : answer.mcse.of(i)[k];
      chart.bars.push_back(
          {.label = fmt::format("{} = {}", network.variable_name(i), network.level_name(i, static_cast<Index>(k))),
           .value = levels[k],
           .error = error,
           .note = "",
           .first_of_group = k == first && stands_apart});
    }
  }
  return render_bars(chart);
}

std::string marginals_csv(const MarginalsAnswer& answer, const Network& network) {
  std::string out;
  if (answer.joint) {
    const Joint& joint = *answer.joint;
    for (const Index i : joint.variables) out += text::csv_field(network.variable_name(i)) + ',';
    out += "probability,mcse\n";
    for (std::size_t entry = 0; entry < joint.probabilities.size(); ++entry) {
      if (!is_possible(joint, network, entry)) continue;
      for (const std::string& level : levels_of_entry(joint, network, entry)) out += text::csv_field(level) + ',';
      out += csv_number(joint.probabilities[entry]) + ',';
      out += (joint.mcse.empty() ? "" : csv_number(joint.mcse[entry])) + '\n';
    }
    return out;
  }
  out = "variable,level,probability,mcse\n";
  for (Index i = 0; i < answer.marginals.num_variables(); ++i) {
    for (Index k = 0; k < network.cardinalities[i]; ++k) {
      const bool sampled = answer.method == Method::sample;
      out += fmt::format("{},{},{},{}\n", text::csv_field(network.variable_name(i)),
                         text::csv_field(network.level_name(i, k)), csv_number(answer.marginals.of(i)[k]),
                         sampled ? csv_number(answer.mcse.of(i)[k]) : "");
    }
  }
  return out;
}

std::string marginals_text(const MarginalsAnswer& answer, const Network& network, std::size_t width, std::size_t most) {
  const bool sampled = answer.method == Method::sample;
  std::string out = text::wrap(answer.model, "model       ", width);
  std::size_t observed = 0;
  for (Index i = 0; i < network.num_variables(); ++i) observed += network.is_observed(i) ? 1 : 0;
  out += text::wrap(observed > 0 ? fmt::format("{}, {} of them observed", network.num_variables(), observed)
                                 : fmt::format("{}", network.num_variables()),
                    "variables   ", width);
  out += text::wrap(fmt::format("{}: {}", sampled ? "sampling" : "exact", answer.reason), "method      ", width);
  if (answer.log_partition) {
    const double log10 = *answer.log_partition / std::log(10.0);
    std::string shown = fmt::format("{:.8g}", std::abs(log10) < 1e-12 ? 0.0 : log10);
    if (answer.log_partition_error) {
      const double error = *answer.log_partition_error / std::log(10.0);
      shown = fmt::format("{} (error {}, from tempering)", text::mean(log10, error), text::number(error, 2));
    }
    out += text::wrap(shown, "log10 Z     ", width);
    if (network.bayesian && has_evidence(network)) {
      out += text::wrap(evidence_text(*answer.log_partition, answer.log_partition_error), "evidence    ", width);
    }
  }
  if (sampled) {
    const Report& report = *answer.report;
    out += text::wrap(fmt::format("{}, {} x {} sweeps recorded, every step counted", report.sampler,
                                  text::plural(report.chains, "chain"), report.draws),
                      "sampler     ", width);
    if (report.tempering) out += tempering_text(*report.tempering, width);
    for (const Pilot& pilot : answer.pilots) {
      if (answer.pilots.size() < 2) break;
      std::string line = fmt::format("{}: error {} after a second, {} steps/s a chain", pilot.sampler,
                                     text::number(pilot.error, 2), text::rate(pilot.steps_per_second));
      if (!pilot.verdict.empty()) line += "; not taken, because " + pilot.verdict;
      out += text::wrap(line, "pilot       ", width);
    }
  }
  out += text::wrap(text::duration(answer.seconds), "time        ", width) + "\n";
  if (answer.joint) {
    out += joint_text(*answer.joint, network, width, most);
    return out + text::warnings(answer.warnings(), width);
  }
  std::vector<std::string> titles{"variable", "<probabilities of its levels"};
  if (sampled) titles.insert(titles.begin() + 1, "mcse");
  text::Table table(titles);
  std::size_t shown = 0;
  for (Index i = 0; i < network.num_variables() && shown < most; ++i) {
    if (network.is_observed(i)) continue;
    ++shown;
    std::vector<std::string> row{network.variable_name(i), probabilities(answer, network, i)};
    const bool is_exact = std::binary_search(answer.exact_variables.begin(), answer.exact_variables.end(), i);
    if (sampled) row.insert(row.begin() + 1, is_exact ? "exact" : text::number(largest(answer.mcse.of(i)), 2));
    table.add(row);
  }
  out += table.text(width);
  const std::size_t rest = network.num_variables() - observed - shown;
  if (rest > 0) out += fmt::format("and {}; --out and --json write all of them\n", text::plural(rest, "more variable"));
  return out + text::warnings(answer.warnings(), width);
}

namespace {

using nlohmann::json;

const char* side(const ExactLogPartition& exact) { return exact.hidden ? "hidden" : "visible"; }

}  // namespace

json log_partition_json(const LogPartition& answer, const std::string& model) {
  json out = {{"version", POISE_VERSION},
              {"model", model},
              {"visible", answer.visible},
              {"hidden", answer.hidden},
              {"seed", answer.seed},
              {"ais", nullptr},
              {"exact", nullptr},
              {"difference_in_errors", nullptr},
              {"interrupted", answer.interrupted},
              {"warnings", answer.warnings()}};
  if (answer.annealed) {
    out["ais"] = {{"log_partition", answer.annealed->value},
                  {"log10_partition", answer.annealed->value / std::numbers::ln10},
                  {"mcse", answer.annealed->error},
                  {"effective_chains", answer.annealed->effective_chains},
                  {"largest_share", answer.annealed->largest_share},
                  {"chains", answer.annealed->chains},
                  {"temperatures", answer.annealed->temperatures},
                  {"seconds", answer.annealed->seconds}};
  }
  if (answer.exact) {
    out["exact"] = {{"log_partition", answer.exact->value},
                    {"log10_partition", answer.exact->value / std::numbers::ln10},
                    {"side", side(*answer.exact)},
                    {"units", answer.exact->units},
                    {"seconds", answer.exact->seconds}};
  }
  if (const auto difference = answer.difference_in_errors()) out["difference_in_errors"] = *difference;
  return out;
}

std::string log_partition_text(const LogPartition& answer, const std::string& model, std::size_t width) {
  std::string out = text::wrap(model, "model       ", width);
  out += text::wrap(fmt::format("{} visible, {} hidden", answer.visible, answer.hidden), "units       ", width);
  if (answer.annealed) {
    out += text::wrap(fmt::format("{} chains through {} temperatures, worth {} equal ones{}", answer.annealed->chains,
                                  answer.annealed->temperatures, text::count(answer.annealed->effective_chains),
                                  answer.interrupted ? "; interrupted" : ""),
                      "annealing   ", width);
  } else if (answer.interrupted) {
    out += text::wrap("interrupted before the first chains were through", "annealing   ", width);
  }
  if (answer.exact) {
    out += text::wrap(fmt::format("2^{} states of the {} units", answer.exact->units, side(*answer.exact)),
                      "enumerated  ", width);
  }
  out += '\n';
  text::Table table({"method", "log Z", "log10 Z", "mcse", "time"});
  if (const auto& ais = answer.annealed) {
    table.add({"ais", text::mean(ais->value, ais->error),
               text::mean(ais->value / std::numbers::ln10, ais->error / std::numbers::ln10),
               text::number(ais->error, 2), text::duration(ais->seconds)});
  }
  if (answer.exact) {
    table.add({"exact", fmt::format("{:.6f}", answer.exact->value),
               fmt::format("{:.6f}", answer.exact->value / std::numbers::ln10), "-",
               text::duration(answer.exact->seconds)});
  }
  out += table.text(width);
  if (const auto difference = answer.difference_in_errors()) {
    out += fmt::format("\nais - exact = {}, {} standard errors\n",
                       text::number(answer.annealed->value - answer.exact->value, 2), text::number(*difference, 2));
  }
  return out + text::warnings(answer.warnings(), width);
}

}  // namespace poise
