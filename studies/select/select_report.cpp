/// The report of the experiment on variable selection.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <poise/plot.hpp>
#include "report/text.hpp"

#include "studies/figures.hpp"
#include "studies/select/select.hpp"

namespace poise::reproduction {

namespace {

std::string cell(const std::string& text) { return fmt::format("<td><span class=\"ours\">{}</span></td>", text); }

}  // namespace

void SelectExperiment::add_settings(Document& document, const Results& results) const {
  document.heading("What was run");
  std::vector<std::string> items;
  for (const SelectCase& which : cases_) {
    const nlohmann::json& reference = results.at(reference_key(which));
    const std::vector<double> errors = numbers(reference["pip_se"]);
    items.push_back(fmt::format("{}: {}; {:.1f} included on average, standard errors of the reference up to {:.4f}",
                                which.label, which.about, number(reference["included"]),
                                *std::max_element(errors.begin(), errors.end())));
  }
  document.list(items);
  document.paragraph(fmt::format(
      "Linear regression with coefficients integrated out and the default prior (docs/selection.md). {} chains of "
      "every "
      "sampler begin as those of poise select: one empty, one with what greedy addition finds, the others with a few "
      "random variables; a fifth of all steps is warm-up. A step of Gibbs and of tempering is a sweep, one of lb and "
      "lsb "
      "a flip, one of wtgs a unit of time. Inclusion probabilities are averages of P(included | the others): of every "
      "variable in its turn with Gibbs, over time with wtgs, every 2, 8 or 32 steps with lb and lsb, every 1 or 4 with "
      "tempering. Each sampler is shown with the settings that give it the most effective samples per second.",
      plan_.chains));
  document.paragraph(fmt::format(
      "The reference is wtgs, in runs that are {} times as much work as one chain, with random numbers of its own. "
      "Effective samples of a chain: the number of independent draws whose inclusion probabilities would be as far "
      "from the reference, that is the sum over variables of P(1-P) over the mean of the summed squared errors. Chains "
      "that miss a mode, or come late to it, count for what they are. Seconds are processor time of one core for all "
      "chains together.",
      plan_.chains / 2 * plan_.reference_times));
}

void SelectExperiment::add_table(Document& document, const Results& results, Per per) const {
  ComparisonPlan plan;
  plan.name = per == Per::second ? "ess-per-second" : "ess-per-second-of-sampling";
  plan.caption = fmt::format(
      "Effective samples of inclusion probabilities per second and core, {}. Bold: the most, and what cannot be told "
      "from it.",
      per == Per::second ? "warm-up and learning included" : "after warm-up");
  std::vector<Contestant> rows;
  for (const SelectSampler& one : samplers_) rows.push_back(one.contestant);
  std::vector<std::vector<Compared>> cells;
  for (const SelectCase& which : cases_) {
    plan.cases.push_back(which.label);
    std::vector<Compared>& column = cells.emplace_back();
    for (const Contestant& row : rows) column.push_back({ess(results, which, row.key, per), std::nullopt});
  }
  document.table(comparison_table(plan, rows, cells));
}

void SelectExperiment::add_details(Document& document, const Results& results) const {
  Table table;
  table.name = "settings";
  table.caption =
      "The best settings of each sampler (steps between two looks in brackets), effective samples of a whole chain, "
      "and "
      "those of the uncertain variable that has the fewest.";
  table.columns = {"Sampler"};
  table.csv_columns = {"case",  "sampler", "spec",          "thin",           "steps",           "ess_of_chain",
                       "error", "slowest", "largest_error", "warmup_seconds", "sampling_seconds"};
  for (const SelectCase& which : cases_) table.columns.push_back(which.label);
  for (const SelectSampler& one : samplers_) {
    std::vector<std::string> row = {escaped(one.contestant.label)};
    for (const SelectCase& which : cases_) {
      const nlohmann::json& run = best_run(results, which, one);
      const Estimate size = ess(results.at(reference_key(which)), run);
      const auto thin = run["thin"].get<std::uint64_t>();
      const std::string spec = run["spec"];
      std::string settings = one.specs.size() > 1 ? spec : "";
      if (one.thins.size() > 1) settings += fmt::format("({})", thin);
      row.push_back(cell(fmt::format("{}{}{}, {}", escaped(settings), settings.empty() ? "" : " ",
                                     text::number(size.mean, 3), text::number(number(run["slowest"]), 2))));
      table.csv_rows.push_back({which.key, one.contestant.key, spec, fmt::format("{}", thin),
                                fmt::format("{}", run["steps"].get<std::uint64_t>()), csv_number(size.mean),
                                csv_number(size.error()), csv_number(number(run["slowest"])),
                                csv_number(number(run["farthest"])), csv_number(number(run["seconds"]["warmup"])),
                                csv_number(number(run["seconds"]["sampling"]))});
    }
    table.rows.push_back(std::move(row));
  }
  document.table(table);
}

void SelectExperiment::add_pictures(Document& document, const Results& results) const {
  Figure figure{
      "inclusion",
      "Inclusion probabilities of the reference with two standard errors; variables of a credible set have its "
      "colour. Causes are said below each picture where they are known.",
      {},
      1};
  std::vector<std::string> causes;
  for (const SelectCase& which : cases_) {
    const nlohmann::json& reference = results.at(reference_key(which));
    SelectionAnswer answer;
    answer.model = which.label;
    const std::vector<double> pips = numbers(reference["pip"]);
    const std::vector<double> errors = numbers(reference["pip_se"]);
    for (std::size_t j = 0; j < pips.size(); ++j) {
      SelectedVariable& one = answer.variables.emplace_back();
      one.name = which.problem->names[j];
      one.pip = pips[j];
      one.pip_se = errors[j];
    }
    for (const nlohmann::json& set : reference["sets"]) {
      answer.sets.push_back({set["variables"].get<std::vector<Index>>(), numbers(set["share"]), number(set["mass"]),
                             number(set["purity"])});
    }
    add_correlations(*which.problem, answer);
    figure.panels.push_back({which.key, selection_plot(answer)});
    std::vector<std::string> names;
    for (const Index j : which.causes) names.push_back(which.problem->names[j]);
    if (!names.empty()) causes.push_back(fmt::format("{}: causes {}", which.label, fmt::join(names, ", ")));
  }
  document.heading("Inclusion probabilities");
  document.figure(figure);
  if (!causes.empty()) document.list(causes);
}

void SelectExperiment::add_curves(Document& document, const Results& results) const {
  Figure figure{
      "errors",
      "Error of the inclusion probabilities of one chain (root of the summed squares, mean over chains) against "
      "seconds of processor time of that chain, warm-up and learning included.",
      {},
      2};
  for (const SelectCase& which : cases_) {
    Plot plot;
    plot.title = which.label;
    plot.x_label = "seconds";
    plot.y_label = "error of inclusion probabilities";
    plot.x_log = plot.y_log = true;
    for (const SelectSampler& one : samplers_) {
      const nlohmann::json& run = best_run(results, which, one);
      const auto chains = static_cast<double>(plan_.chains);
      BandData band{numbers(run["curve"]["part"]), numbers(run["curve"]["error"]), {}};
      for (double& x : band.x) {
        x = (number(run["seconds"]["warmup"]) + x * number(run["seconds"]["sampling"])) / chains;
      }
      Series series = band_of(one.contestant, band);
      series.marker_radius = 2.5;
      plot.series.push_back(std::move(series));
    }
    figure.panels.push_back({which.key, render_svg(plot)});
  }
  document.heading("Errors by time");
  document.figure(figure);
}

void SelectExperiment::add_functions(Document& document, const Results& results) const {
  Figure figure{"balancing-functions",
                "Balancing functions that lsb learned, beside the fixed ones; a panel for each case, in their order.",
                {},
                2};
  for (const SelectCase& which : cases_) {
    const nlohmann::json& run = best_run(results, which, sampler("lsb"));
    figure.panels.push_back({which.key, balance_plot(numbers(run["knots"]), numbers(run["log_phi"]))});
  }
  document.heading("What was learned");
  document.figure(figure);
}

Document SelectExperiment::describe(const Results& results, const std::vector<Verdict>& verdicts) const {
  Document document("Samplers of variable selection", subtitle(options_));
  document.heading("What holds");
  document.verdicts(verdicts);
  add_settings(document, results);
  document.heading("Effective samples");
  for (const Per per : {Per::second, Per::sampling}) add_table(document, results, per);
  add_details(document, results);
  add_curves(document, results);
  add_functions(document, results);
  add_pictures(document, results);
  return document;
}

}  // namespace poise::reproduction
