/// HTML of pages that need no other file.
#include "report/html_page.hpp"

#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "report/svg.hpp"

namespace poise {

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
nav { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; }
nav a { color: var(--link); text-decoration: none; }
nav a:hover { text-decoration: underline; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { padding: .42rem .7rem; text-align: right; border-bottom: 1px solid var(--line); vertical-align: top; }
th:first-child, td:first-child { text-align: left; }
td .words { display: block; min-width: 14rem; text-align: left; }
table:has(td:last-child .words) th:last-child { text-align: left; }
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
th[aria-sort] { cursor: pointer; }
th[aria-sort] button { all: unset; cursor: pointer; }
th[aria-sort] button:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
th[aria-sort="ascending"] button::after { content: " \\25B4"; }
th[aria-sort="descending"] button::after { content: " \\25BE"; }
.facts { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .25rem 1.2rem; max-width: 60rem; margin: 1rem 0; }
.facts dt { color: var(--soft); } .facts dd { margin: 0; overflow-wrap: anywhere; }
.warnings { list-style: none; padding: 0; }
.warnings li { padding: .55rem .9rem; margin: .5rem 0; border-left: 4px solid var(--no); background: var(--tint); }
.warnings code { white-space: nowrap; }
@media (max-width: 760px) { main { padding: 1.5rem 1rem 3rem; } h1 { font-size: 1.5rem; overflow-wrap: anywhere; } }
@media print { main { max-width: none; } figure { break-inside: avoid; } }
)";

/// Sorts the rows of a table by the column whose head is chosen: numbers by value, unknown ones last.
constexpr std::string_view kSort = R"(
for (const head of document.querySelectorAll("th[aria-sort]")) head.addEventListener("click", () => {
  const body = head.closest("table").tBodies[0], column = head.cellIndex;
  const up = head.getAttribute("aria-sort") !== "ascending";
  for (const other of head.parentNode.cells) other.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  const text = row => row.cells[column].textContent.trim().replace("\u2212", "-");
  const value = row => text(row) === "\u221e" ? Infinity : parseFloat(text(row));
  const numbers = [...body.rows].some(row => !isNaN(value(row)) && /^[-+.\u221e\d]/.test(text(row)));
  const rows = [...body.rows].sort((a, b) => {
    if (!numbers) return (up ? 1 : -1) * text(a).localeCompare(text(b), undefined, { numeric: true });
    const x = value(a), y = value(b);
    if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y);
    return x === y ? 0 : (up ? 1 : -1) * (x < y ? -1 : 1);
  });
  body.append(...rows);
});
)";

}  // namespace

std::string escaped_html(std::string_view text) { return svg::escaped(text); }

HtmlPage::HtmlPage(std::string title, std::string subtitle)
    : title_(std::move(title)), subtitle_(std::move(subtitle)) {}

void HtmlPage::heading(const std::string& text) {
  headings_.push_back(text);
  body_ += fmt::format("<h2 id=\"part-{}\">{}</h2>\n", headings_.size(), escaped_html(text));
}

void HtmlPage::paragraph(const std::string& text) { body_ += fmt::format("<p>{}</p>\n", escaped_html(text)); }

void HtmlPage::list(const std::vector<std::string>& items) {
  body_ += "<ul>\n";
  for (const std::string& item : items) body_ += fmt::format("<li>{}</li>\n", escaped_html(item));
  body_ += "</ul>\n";
}

void HtmlPage::table(const HtmlTable& table) {
  body_ += fmt::format("<p class=\"caption\"><b>Table {}.</b> {}</p>\n<div class=\"scroll\"><table>\n<thead><tr>",
                       ++tables_, escaped_html(table.caption));
  for (const std::string& column : table.columns) {
    body_ += table.sorts
                 ? fmt::format("<th scope=\"col\" aria-sort=\"none\"><button>{}</button></th>", escaped_html(column))
                 : fmt::format("<th scope=\"col\">{}</th>", escaped_html(column));
  }
  body_ += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    body_ += "<tr>";
    for (const std::string& cell : row) body_ += cell.starts_with("<td") ? cell : fmt::format("<td>{}</td>", cell);
    body_ += "</tr>\n";
  }
  body_ += "</tbody></table></div>\n";
  sorts_ = sorts_ || table.sorts;
}

void HtmlPage::figure(const HtmlFigure& figure) {
  body_ += fmt::format("<figure>\n<div class=\"panels\" style=\"--columns: {}\">\n", figure.columns);
  for (const std::string& panel : figure.panels) body_ += "<div>" + panel + "</div>\n";
  body_ += fmt::format("</div>\n<figcaption><b>Figure {}.</b> {}</figcaption>\n</figure>\n", ++figures_,
                       escaped_html(figure.caption));
}

std::string HtmlPage::html() const {
  std::string contents;
  for (std::size_t i = 0; i < headings_.size(); ++i) {
    contents += fmt::format("<a href=\"#part-{}\">{}</a>", i + 1, escaped_html(headings_[i]));
  }
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n"
      "<link rel=\"icon\" href=\"data:,\">\n<style>{1}</style>\n</head>\n<body>\n<main>\n<h1>{0}</h1>\n"
      "<p class=\"subtitle\">{2}</p>\n<nav>{3}</nav>\n{4}</main>\n{5}</body>\n</html>\n",
      escaped_html(title_), kStyle, escaped_html(subtitle_), contents, body_,
      sorts_ ? fmt::format("<script>{}</script>\n", kSort) : "");
}

}  // namespace poise
