/// HTML and CSV.
#include "studies/document.hpp"

#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace poise::reproduction {

namespace {

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #1d1d1f; --soft: #5c5c63; --page: #ffffff; --line: #d9d9de; --tint: #f4f4f7;
  --link: #0072b2; --yes: #00734f; --no: #a84300; --open: #5c5c63; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8ea; --soft: #a5a5ad; --page: #17171a; --line: #3a3a40;
  --tint: #222226; --link: #56b4e9; --yes: #3fc99a; --no: #f0915a; --open: #a5a5ad; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 2.5rem 1.5rem 4rem; }
p, ul, .verdicts, nav { max-width: 46rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.3rem; margin: 2.6rem 0 .6rem; padding-top: .8rem; border-top: 1px solid var(--line); }
.subtitle { color: var(--soft); margin: 0 0 1.5rem; }
nav a { color: var(--link); margin-right: 1.1rem; text-decoration: none; }
nav a:hover { text-decoration: underline; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { padding: .42rem .7rem; text-align: right; border-bottom: 1px solid var(--line); vertical-align: top; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 2px solid var(--ink); white-space: nowrap; }
td .paper { display: block; color: var(--soft); font-size: .92em; white-space: nowrap; }
td .ours { white-space: nowrap; }
td.differs .ours::after { content: " \2260"; color: var(--no); font-weight: 700; }
td.differs { background: var(--tint); }
td.best .ours { font-weight: 700; }
.scroll { overflow-x: auto; margin-bottom: 1.6rem; }
figure { margin: 1.4rem 0 2rem; }
figcaption, .caption { color: var(--soft); font-size: .92rem; max-width: 46rem; margin: .5rem 0; }
figcaption b, .caption b { color: var(--ink); }
.panels { display: grid; gap: .8rem; grid-template-columns: repeat(var(--columns), minmax(0, 1fr)); }
.panels > div { background: #ffffff; border-radius: 6px; padding: 4px; }
.panels svg { display: block; width: 100%; height: auto; margin: 0 auto; }
@media (max-width: 760px) { .panels { grid-template-columns: minmax(0, 1fr); } }
.verdicts { list-style: none; padding: 0; }
.verdicts li { padding: .55rem 0 .55rem 8.2rem; border-bottom: 1px solid var(--line); position: relative; }
.verdicts .badge { position: absolute; left: 0; top: .6rem; width: 7.4rem; font-size: .82rem; font-weight: 700; }
.yes .badge { color: var(--yes); } .no .badge { color: var(--no); } .open .badge { color: var(--open); }
.verdicts .evidence { color: var(--soft); display: block; font-size: .92rem; }
@media print { main { max-width: none; } figure { break-inside: avoid; } }
)";

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

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string csv_number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }

Document::Document(std::string title, std::string subtitle)
    : title_(std::move(title)), subtitle_(std::move(subtitle)) {}

void Document::heading(const std::string& text) {
  headings_.push_back(text);
  body_ += fmt::format("<h2 id=\"part-{}\">{}</h2>\n", headings_.size(), escaped(text));
}

void Document::paragraph(const std::string& text) { body_ += fmt::format("<p>{}</p>\n", escaped(text)); }

void Document::list(const std::vector<std::string>& items) {
  body_ += "<ul>\n";
  for (const std::string& item : items) body_ += fmt::format("<li>{}</li>\n", escaped(item));
  body_ += "</ul>\n";
}

void Document::verdicts(const std::vector<Verdict>& verdicts) {
  body_ += "<ul class=\"verdicts\">\n";
  for (const Verdict& verdict : verdicts) {
    const bool yes = verdict.holds == Verdict::Holds::yes;
    const bool no = verdict.holds == Verdict::Holds::no;
    body_ += fmt::format("<li class=\"{}\"><span class=\"badge\">{}</span>{}<span class=\"evidence\">{}</span></li>\n",
                         yes  ? "yes"
                         : no ? "no"
                              : "open",
                         yes  ? "\u2713 holds"
                         : no ? "\u2717 does not hold"
                              : "\u2013 open",
                         escaped(verdict.claim), escaped(verdict.evidence));
  }
  body_ += "</ul>\n";
}

void Document::table(const Table& table) {
  body_ += fmt::format("<p class=\"caption\"><b>Table {}.</b> {}</p>\n<div class=\"scroll\"><table>\n<thead><tr>",
                       ++tables_, escaped(table.caption));
  for (const std::string& column : table.columns) body_ += fmt::format("<th scope=\"col\">{}</th>", escaped(column));
  body_ += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    body_ += "<tr>";
    for (const std::string& cell : row) body_ += cell.starts_with("<td") ? cell : fmt::format("<td>{}</td>", cell);
    body_ += "</tr>\n";
  }
  body_ += "</tbody></table></div>\n";
  std::string csv = csv_row(table.csv_columns);
  for (const auto& row : table.csv_rows) csv += csv_row(row);
  files_["tables/" + table.name + ".csv"] = csv;
}

void Document::figure(const Figure& figure) {
  body_ += fmt::format("<figure>\n<div class=\"panels\" style=\"--columns: {}\">\n", figure.columns);
  for (const Figure::Panel& panel : figure.panels) {
    body_ += "<div>" + panel.svg + "</div>\n";
    files_[fmt::format("figures/{}{}{}.svg", figure.name, panel.label.empty() ? "" : "-", panel.label)] = panel.svg;
  }
  body_ += fmt::format("</div>\n<figcaption><b>Figure {}.</b> {}</figcaption>\n</figure>\n", ++figures_,
                       escaped(figure.caption));
}

std::string Document::html() const {
  std::string contents;
  for (std::size_t i = 0; i < headings_.size(); ++i) {
    contents += fmt::format("<a href=\"#part-{}\">{}</a>", i + 1, escaped(headings_[i]));
  }
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n"
      "<link rel=\"icon\" href=\"data:,\">\n<style>{1}</style>\n</head>\n<body>\n<main>\n<h1>{0}</h1>\n"
      "<p class=\"subtitle\">{2}</p>\n<nav>{3}</nav>\n{4}</main>\n</body>\n</html>\n",
      escaped(title_), kStyle, escaped(subtitle_), contents, body_);
}

}  // namespace poise::reproduction
