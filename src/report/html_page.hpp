/// Pages of HTML that need no other file: headings with links, tables, figures.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace poise {

/// Text as HTML; bytes that are not UTF-8 are replaced.
[[nodiscard]] std::string escaped_html(std::string_view text);

struct HtmlTable {
  std::string caption;  ///< plain text
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  ///< cells as HTML; one that begins with <td is taken as it is
  bool sorts = false;                          ///< whether a click on the head of a column sorts the rows
};

/// Pictures that share a caption.
struct HtmlFigure {
  std::string caption;              ///< plain text
  std::vector<std::string> panels;  ///< SVG documents
  int columns = 2;                  ///< panels side by side, where the window is wide enough
};

class HtmlPage {
 public:
  HtmlPage(std::string title, std::string subtitle);

  void heading(const std::string& text);
  void paragraph(const std::string& text);
  void list(const std::vector<std::string>& items);
  void table(const HtmlTable& table);
  void figure(const HtmlFigure& figure);
  /// HTML as it is.
  void add(const std::string& html) { body_ += html; }

  [[nodiscard]] std::string html() const;

 private:
  std::string title_;
  std::string subtitle_;
  std::string body_;
  std::vector<std::string> headings_;
  int tables_ = 0;
  int figures_ = 0;
  bool sorts_ = false;
};

}  // namespace poise
