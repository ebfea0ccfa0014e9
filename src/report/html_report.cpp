/// The report of a run as one page of HTML.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/report.hpp>
#include "report/html_page.hpp"
#include "report/run_pictures.hpp"
#include "report/tempering.hpp"
#include "report/text.hpp"

namespace poise {

namespace {

constexpr std::size_t kMostRows = 1000;  // of variables; of more, those that mix worst

std::string facts_html(const Report& report) {
  std::vector<std::pair<std::string, std::string>> facts{{"model", report.model}};
  facts.emplace_back("variables", report.observed > 0
                                      ? fmt::format("{}, {} of them observed", report.num_variables, report.observed)
                                      : fmt::format("{}", report.num_variables));
  facts.emplace_back("sampler", report.choice
                                    ? fmt::format("{}, chosen by auto: {}", report.sampler, report.choice->reason)
                                    : report.sampler);
  std::string draws = fmt::format("{} of {}", text::plural(report.chains, "chain"), text::plural(report.draws, "draw"));
  if (report.thin > 0) draws += fmt::format(", one every {}", text::every(report.thin, "step"));
  facts.emplace_back("draws", draws);
  facts.emplace_back("seed", fmt::format("{}", report.seed));
  if (std::isfinite(report.sampling_seconds)) {
    facts.emplace_back("time", fmt::format("warm-up {}, sampling {}", text::duration(report.warmup_seconds),
                                           text::duration(report.sampling_seconds)));
  }
  if (report.draws > 0) facts.emplace_back("acceptance", fmt::format("{:.3f}", report.acceptance_rate));
  if (report.tempering && !report.tempering->acceptance.empty()) {
    facts.emplace_back(report.tempering->ladders == 1 ? "ladder" : "ladders", ladder_text(*report.tempering));
  }
  if (report.tempering && std::isfinite(report.tempering->log_partition)) {
    facts.emplace_back("log Z", log_partition_text(*report.tempering));
  }
  std::string out = "<dl class=\"facts\">\n";
  for (const auto& [name, value] : facts) {
    out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped_html(name), escaped_html(value));
  }
  return out + "</dl>\n";
}

void add_warnings(HtmlPage& page, const Report& report) {
  if (report.warnings.empty()) {
    page.paragraph(report.draws > 0 ? "No warnings: nothing in these draws speaks against using them." : "No draws.");
  } else {
    std::string list = "<ul class=\"warnings\">\n";
    for (const Warning& warning : report.warnings) {
      list += fmt::format("<li><b>{}</b> {}.", escaped_html(warning.code), escaped_html(warning.text));
      if (!warning.next.empty()) list += fmt::format(" Try <code>{}</code>.", escaped_html(warning.next));
      if (has_explanation(warning.code)) list += fmt::format(" More: <code>poise explain {}</code>.", warning.code);
      list += "</li>\n";
    }
    page.add(list + "</ul>\n");
  }
  if (!report.certain.empty()) page.paragraph(report.certain);
  if (!report.notes.empty()) page.list(report.notes);
}

std::string words_cell(std::string_view words) {
  return fmt::format("<span class=\"words\">{}</span>", escaped_html(words));
}

void add_observables(HtmlPage& page, const Report& report) {
  HtmlTable table{
      .caption = "Observables per site, with standard errors and integrated autocorrelation times in draws.",
      .columns = {"observable", "value", "error", "tau", "what it is"},
      .rows = {},
      .sorts = false};
  for (const Observable& one : report.observables) {
    const auto& help = observable_help();
    const auto row =
        std::find_if(help.begin(), help.end(), [&](const NameHelp& name) { return name.name == one.name; });
    table.rows.push_back({escaped_html(one.name), text::mean(one.value, one.error), text::number(one.error, 2),
                          text::number(one.tau, 3), row == help.end() ? "" : words_cell(row->help)});
  }
  page.table(table);
}

std::string status_cell(SeriesStatus status) { return escaped_html(to_string(status)); }

void add_monitors(HtmlPage& page, const Report& report) {
  HtmlTable table{.caption =
                      "log p and the statistics of the model: mean, standard deviation, Monte Carlo error of the "
                      "mean, effective sample sizes in the middle and in the tails, R-hat.",
                  .columns = {"monitor", "mean", "sd", "error", "ESS", "tail ESS", "R-hat", "ESS per second", "status"},
                  .rows = {},
                  .sorts = true};
  for (const auto& [name, summary] : report.monitors) {
    table.rows.push_back({escaped_html(name), text::mean(summary.mean, summary.mcse), text::number(summary.sd, 3),
                          text::number(summary.mcse, 2), text::count(summary.ess), text::count(summary.ess_tail),
                          text::r_hat(summary.r_hat), text::count(summary.ess / report.sampling_seconds),
                          status_cell(summary.status)});
  }
  page.table(table);
}

void add_variables(HtmlPage& page, const Report& report) {
  const VariablesSummary& variables = *report.variables;
  std::vector<VariableRow> rows = variables.rows;
  std::string caption =
      "All variables: mean, its Monte Carlo error, effective sample size, R-hat, and how often it "
      "changed from draw to draw. A click on a column sorts by it.";
  if (rows.size() > kMostRows) {
    const auto badness = [](const VariableRow& row) { return std::isnan(row.ess) ? 0.0 : row.ess; };
    std::stable_sort(rows.begin(), rows.end(),
                     [&](const VariableRow& a, const VariableRow& b) { return badness(a) < badness(b); });
    caption = fmt::format("The {} of {} rows with the fewest effective draws. A click on a column sorts by it.",
                          kMostRows, rows.size());
    rows.resize(kMostRows);
  }
  if (variables.exact < variables.variables) {
    caption += fmt::format(" The ESS of {} variables is exact, that of the others (~) estimated from batch means.",
                           variables.exact);
  }
  HtmlTable table{.caption = caption,
                  .columns = {"variable", "mean", "error", "ESS", "R-hat", "changes", "status"},
                  .rows = {},
                  .sorts = true};
  const VariableNames name{report.variable_names, report.level_names};
  for (const VariableRow& row : rows) {
    table.rows.push_back({escaped_html(name(row)), text::mean(row.mean, row.mcse), text::number(row.mcse, 2),
                          text::count(row.ess) + (row.is_estimate ? " ~" : ""), text::r_hat(row.r_hat),
                          fmt::format("{}", row.transitions), status_cell(row.status)});
  }
  page.table(table);
}

}  // namespace

std::string report_html(const Report& report, const Trace& trace) {
  HtmlPage page(report.model, fmt::format("sampled by {} with poise {}", report.sampler, report.version));
  page.heading("Run");
  page.add(facts_html(report));
  page.heading("Warnings");
  add_warnings(page, report);
  if (report.draws > 0) {
    page.heading("Diagnostics");
    add_monitors(page, report);
    if (!report.observables.empty()) add_observables(page, report);
    page.heading("Pictures");
    for (const HtmlFigure& figure : run_figures(report, trace)) page.figure(figure);
    if (const HtmlFigure means = mean_figure(report); !means.panels.empty()) page.figure(means);
    if (report.variables) {
      page.heading("Variables");
      add_variables(page, report);
    }
  }
  return page.html();
}

}  // namespace poise
