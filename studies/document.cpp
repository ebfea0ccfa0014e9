/// Tables and figures of a study as HTML, CSV and SVG.
#include "studies/document.hpp"

#include <cmath>

#include <fmt/format.h>

namespace poise::reproduction {

namespace {

std::string csv_row(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += ',';
    if (cells[i].find_first_of(",\"\n") == std::string::npos) {
      line += cells[i];
      continue;
    }
    line += '"';
    for (const char c : cells[i]) line += c == '"' ? std::string("\"\"") : std::string(1, c);
    line += '"';
  }
  return line + "\n";
}

}  // namespace

std::string escaped(const std::string& text) { return escaped_html(text); }

std::string csv_number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }

void Document::verdicts(const std::vector<Verdict>& verdicts) {
  std::string list = "<ul class=\"verdicts\">\n";
  for (const Verdict& verdict : verdicts) {
    const bool yes = verdict.holds == Verdict::Holds::yes;
    const bool no = verdict.holds == Verdict::Holds::no;
    list += fmt::format("<li class=\"{}\"><span class=\"badge\">{}</span>{}<span class=\"evidence\">{}</span></li>\n",
                        yes  ? "yes"
                        : no ? "no"
                             : "open",
                        yes  ? "\u2713 holds"
                        : no ? "\u2717 does not hold"
                             : "\u2013 open",
                        escaped(verdict.claim), escaped(verdict.evidence));
  }
  add(list + "</ul>\n");
}

void Document::table(const Table& table) {
  HtmlPage::table({.caption = table.caption, .columns = table.columns, .rows = table.rows});
  std::string csv = csv_row(table.csv_columns);
  for (const auto& row : table.csv_rows) csv += csv_row(row);
  files_["tables/" + table.name + ".csv"] = csv;
}

void Document::figure(const Figure& figure) {
  HtmlFigure shown{.caption = figure.caption, .panels = {}, .columns = figure.columns};
  for (const Figure::Panel& panel : figure.panels) {
    shown.panels.push_back(panel.svg);
    files_[fmt::format("figures/{}{}{}.svg", figure.name, panel.label.empty() ? "" : "-", panel.label)] = panel.svg;
  }
  HtmlPage::figure(shown);
}

}  // namespace poise::reproduction
