/// The report of the DISCS experiment.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/text.hpp"

#include "studies/discs/discs.hpp"
#include "studies/figures.hpp"
#include "studies/published.hpp"

namespace poise::reproduction {

namespace {

std::string cell(const std::string& text) { return fmt::format("<td><span class=\"ours\">{}</span></td>", text); }

}  // namespace

std::string DiscsExperiment::case_text(const DiscsCase& which, const Results& results) const {
  if (which.hidden == 0) return fmt::format("{}: {}", which.label, which.model);
  const nlohmann::json& training = results.at("training-" + which.key);
  return fmt::format(
      "{}: {} visible and {} hidden units, trained here on {} images ({}, black above 0.5) by one epoch of CD-10; "
      "reconstruction error {:.4f} a pixel",
      which.label, images_.rows * images_.columns, which.hidden, images_.count, data_name_,
      number(training["reconstruction_error"]));
}

void DiscsExperiment::add_settings(Document& document, const Results& results) const {
  document.heading("What was run");
  document.paragraph(
      "Models of K. Goshvadi et al., DISCS: A Benchmark for Discrete Sampling (NeurIPS 2023), with parameters drawn "
      "from the same laws; this program reads the specs below.");
  std::vector<std::string> items;
  for (const DiscsCase* which : main_cases()) items.push_back(case_text(*which, results));
  const std::vector<const DiscsCase*> sweep = sweep_cases();
  items.push_back(
      fmt::format("The sweep of couplings: {}, and so on up to {}", sweep.front()->model, sweep.back()->label));
  document.list(items);
  const std::size_t chains = ess_per_step(*found(results, cases_.front(), "gibbs")).count;
  document.paragraph(fmt::format(
      "{} chains begin where some hundred sweeps of Gibbs have led them (the RBM's own Gibbs on RBMs; on the sweep of "
      "couplings these begin with all spins alike), so that burn-in plays no part. Numbers are effective sample sizes "
      "of log p of all chains together (Vehtari et al. 2021), per chain, so that chains that disagree count for "
      "little; "
      "errors are those of the jackknife over chains. A step of Gibbs is a sweep "
      "over all variables, one of lb, lsb, GWG and flsb changes one variable, one of PAS, DMALA and DLMC many. An "
      "evaluation is one look at the whole state: a gradient, or as many log ratios as there are single changes. "
      "Seconds "
      "are processor time of one core, for all chains together.",
      chains));
  document.list(
      {"PAS, DMALA and DLMC with \u221at or t/(1+t) have the best step length of a grid, chosen by effective samples "
       "per "
       "step in runs of half as many chains and then measured anew with other random numbers, so that luck in the "
       "choice "
       "is not counted.",
       "Self-tuned samplers, dlsb and auto have nothing set by hand. dlsb learns function and step length; auto "
       "chooses "
       "for the slowest of log p, the model's statistics and the variables, not for log p alone.",
       "The published benchmark takes effective samples of a distance to a random state, adapts step lengths to an "
       "acceptance rate of 0.574, and goes on adapting while it measures."});
}

void DiscsExperiment::add_table(Document& document, const Results& results, Per per) const {
  ComparisonPlan plan;
  const double scale = per == Per::second ? 1.0 : 1000.0;
  const std::string unit = per == Per::step         ? "thousand steps"
                           : per == Per::evaluation ? "thousand evaluations"
                                                    : "second and core";
  plan.name = per == Per::step ? "ess-per-step" : per == Per::evaluation ? "ess-per-evaluation" : "ess-per-second";
  plan.caption =
      fmt::format("Effective samples of log p per {}. Bold: the most, and what cannot be told from it.", unit);
  std::vector<Contestant> rows;
  for (const DiscsSampler& one : samplers_) {
    if (per == Per::step && one.pace == Pace::chosen) continue;  // its step is that of another
    rows.push_back(one.contestant);
  }
  std::vector<std::vector<Compared>> cells;
  for (const DiscsCase* which : main_cases()) {
    plan.cases.push_back(which->label);
    std::vector<Compared>& column = cells.emplace_back();
    for (const Contestant& row : rows) {
      Estimate value = ess(results, *which, row.key, per);
      value.mean *= scale;
      value.sd *= scale;
      column.push_back({value, std::nullopt});
    }
  }
  document.table(comparison_table(plan, rows, cells));
}

void DiscsExperiment::add_details(Document& document, const Results& results) const {
  Table table;
  table.name = "acceptance";
  table.caption = fmt::format(
      "Acceptance rates, the step length where there is one, and the sampler that auto chose. A star marks chains that "
      "disagree on log p (R-hat over {}): their effective sample size means little.",
      kAgree);
  table.columns = {"Sampler"};
  table.csv_columns = {"case", "sampler", "spec", "chosen", "acceptance_rate", "r_hat", "evaluations_per_step"};
  for (const DiscsCase* which : main_cases()) table.columns.push_back(which->label);
  for (const DiscsSampler& one : samplers_) {
    std::vector<std::string> row = {escaped(one.contestant.label)};
    for (const DiscsCase* which : main_cases()) {
      const nlohmann::json* part = found(results, *which, one.contestant.key);
      if (part == nullptr) {
        row.push_back(cell(""));
        continue;
      }
      const std::string chosen = (*part)["chosen"];
      const double agree = number((*part)["r_hat"]);
      std::string text =
          one.pace == Pace::chosen ? escaped(chosen) : text::number(number((*part)["acceptance_rate"]), 2);
      if (one.has_grid()) {
        text += fmt::format(", {} {}", one.length, number(results.at(part_key(*which, one, "-grid"))["best"]));
      }
      row.push_back(cell(text + (agree <= kAgree ? "" : " *")));
      table.csv_rows.push_back({which->key, one.contestant.key, (*part)["sampler"], chosen,
                                csv_number(number((*part)["acceptance_rate"])), csv_number(agree),
                                csv_number(number((*part)["evaluations_per_step"]))});
    }
    table.rows.push_back(std::move(row));
  }
  document.table(table);
}

void DiscsExperiment::add_grids(Document& document, const Results& results) const {
  Figure figure{"step-lengths",
                "Effective samples of log p per thousand steps against the step length (tau of DLMC, alpha of DMALA, "
                "radius of PAS), with bands of two standard errors, and dlsb, which learns its own (a line across).",
                {},
                2};
  for (const DiscsCase* which : main_cases()) {
    for (const char* family : {"dlmc", "dmala", "pas"}) {
      Plot plot;
      plot.title = which->label;
      plot.x_label = sampler(fmt::format("{}-sqrt", family)).length;
      plot.y_label = "effective samples per thousand steps";
      plot.x_log = true;
      plot.width = 420;
      plot.height = 280;
      double low = 1e300;
      double high = 0.0;
      for (const char* function : {"sqrt", "barker"}) {
        const DiscsSampler& one = sampler(fmt::format("{}-{}", family, function));
        const nlohmann::json& grid = results.at(part_key(*which, one, "-grid"));
        BandData band{numbers(grid["length"]), numbers(grid["ess_per_step"]), numbers(grid["error"])};
        for (double& value : band.mean) value *= 1000.0;
        for (double& value : band.error) value *= 1000.0;
        low = std::min(low, band.x.front());
        high = std::max(high, band.x.back());
        Series series = band_of(one.contestant, band);
        series.marker_radius = 2.5;
        plot.series.push_back(std::move(series));
      }
      Series line = line_of(sampler("dlsb").contestant);
      const double learned = 1000.0 * ess(results, *which, "dlsb", Per::step).mean;
      line.x = {low, high};
      line.y = {learned, learned};
      plot.series.push_back(std::move(line));
      figure.panels.push_back({fmt::format("{}-{}", which->key, family), render_svg(plot)});
    }
  }
  figure.columns = 3;
  document.heading("Step lengths");
  document.figure(figure);
}

void DiscsExperiment::add_sweep(Document& document, const Results& results) const {
  Plot plot;
  plot.title = "Ising models without field";
  plot.x_label = "coupling \u03bb (critical: 0.4407)";
  plot.y_label = "effective samples per thousand steps";
  plot.y_log = true;
  plot.width = 720;
  plot.height = 420;
  std::vector<Contestant> rows;
  std::vector<std::vector<Compared>> cells(sweep_cases().size());
  ComparisonPlan plan{.name = "couplings",
                      .caption =
                          "Effective samples of log p per thousand steps on Ising models of every coupling. Bold: "
                          "the most, and what cannot be told from it.",
                      .cases = {}};
  for (const DiscsCase* which : sweep_cases()) plan.cases.push_back(which->label);
  for (const DiscsSampler& one : samplers_) {
    if (!one.in_sweep) continue;
    rows.push_back(one.contestant);
    BandData band;
    for (std::size_t k = 0; k < sweep_cases().size(); ++k) {
      const DiscsCase& which = *sweep_cases()[k];
      Estimate value = ess(results, which, one.contestant.key, Per::step);
      value.mean *= 1000.0;
      value.sd *= 1000.0;
      cells[k].push_back({value, std::nullopt});
      band.x.push_back(which.coupling);
      band.mean.push_back(value.mean);
    }
    Series series = band_of(one.contestant, band);
    series.marker_radius = 2.5;
    plot.series.push_back(std::move(series));
  }
  document.heading("The sweep of couplings");
  document.figure(
      {"couplings",
       "Effective samples of log p per thousand steps against the coupling, each sampler with its best step "
       "length.",
       {{"", render_svg(plot)}},
       1});
  document.table(comparison_table(plan, rows, cells));
}

void DiscsExperiment::add_peer(Document& document, const Results& results) const {
  if (peer_runs().empty()) return;
  Table table;
  table.name = "published-code";
  table.caption =
      "The published code and ours, by the same samplers (its adapted step length, ours the best of the grid; GWG "
      "there "
      "changes several variables a step), and auto: steps of single chains and effective samples of log p per second "
      "of "
      "one core.";
  table.columns = {"Model",       "Sampler",       "Steps/s, published", "Steps/s, here", "ESS/s, published",
                   "ESS/s, here", "Times as many", "auto, ESS/s",        "Times as many"};
  table.csv_columns = {"case",
                       "sampler",
                       "published_steps_per_second",
                       "steps_per_second",
                       "published_ess_per_second",
                       "ess_per_second",
                       "published_ess_per_step",
                       "ess_per_step",
                       "auto_ess_per_second"};
  for (const DiscsCase* which : main_cases()) {
    const double chosen = ess(results, *which, "auto", Per::second).mean;
    for (const PeerRun& run : peer_runs()) {
      if (run.model != which->key) continue;
      const std::string key(run.sampler);
      const nlohmann::json& part = *found(results, *which, key);
      const double steps =
          static_cast<double>(ess_per_step(part).count) / number(part["seconds"]["per_step_of_all_chains"]);
      const double ours = ess(results, *which, key, Per::second).mean;
      table.rows.push_back({escaped(which->label), escaped(sampler(key).contestant.label),
                            cell(text::rate(run.chain_steps_per_second)), cell(text::rate(steps)),
                            cell(text::number(run.ess_per_second(), 3)), cell(text::number(ours, 3)),
                            cell(text::number(ours / run.ess_per_second(), 3)), cell(text::number(chosen, 3)),
                            cell(text::number(chosen / run.ess_per_second(), 3))});
      table.csv_rows.push_back({which->key, key, csv_number(run.chain_steps_per_second), csv_number(steps),
                                csv_number(run.ess_per_second()), csv_number(ours), csv_number(run.ess_per_step),
                                csv_number(ess(results, *which, key, Per::step).mean), csv_number(chosen)});
    }
  }
  document.heading("Beside the published code");
  document.paragraph(peer_method());
  document.table(table);
}

Document DiscsExperiment::describe(const Results& results, const std::vector<Verdict>& verdicts) const {
  Document document("Samplers on the models of DISCS", subtitle(options_));
  document.heading("What holds");
  document.verdicts(verdicts);
  add_settings(document, results);
  document.heading("Effective samples");
  for (const Per per : {Per::step, Per::evaluation, Per::second}) add_table(document, results, per);
  add_details(document, results);
  add_sweep(document, results);
  add_grids(document, results);
  add_peer(document, results);
  return document;
}

}  // namespace poise::reproduction
