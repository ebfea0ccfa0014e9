/// The report: one HTML file that needs no other, and its tables and figures as files of their own.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "report/html_page.hpp"
#include "studies/reproduce.hpp"

namespace poise::reproduction {

/// Text of a table for people, in cells of HTML, and its numbers for machines.
struct Table {
  std::string name;     ///< of the CSV file
  std::string caption;  ///< plain text
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  ///< cells as HTML
  std::vector<std::string> csv_columns;
  std::vector<std::vector<std::string>> csv_rows;
};

/// Plots that share a caption; file i is called NAME-LABEL_i.svg.
struct Figure {
  struct Panel {
    std::string label;  ///< in the name of the file; may be empty for a single panel
    std::string svg;
  };
  std::string name;
  std::string caption;  ///< plain text
  std::vector<Panel> panels;
  int columns = 2;  ///< panels side by side, where the window is wide enough
};

class Document : public HtmlPage {
 public:
  using HtmlPage::HtmlPage;

  void verdicts(const std::vector<Verdict>& verdicts);
  void table(const Table& table);
  void figure(const Figure& figure);

  /// Contents by path relative to the report: tables/NAME.csv, figures/NAME.svg.
  [[nodiscard]] const std::map<std::string, std::string>& files() const { return files_; }

 private:
  std::map<std::string, std::string> files_;
};

/// Text as HTML.
[[nodiscard]] std::string escaped(const std::string& text);

/// A number in a CSV file: as many digits as it takes to read the same number again; empty for NaN.
[[nodiscard]] std::string csv_number(double value);

}  // namespace poise::reproduction
