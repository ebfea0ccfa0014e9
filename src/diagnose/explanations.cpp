/// What each kind of warning means, as plain text for a terminal.
#include <poise/diagnose.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <poise/types.hpp>

#include "diagnose/explanation_pages.hpp"

namespace poise {

namespace {

void erase_all(std::string& text, std::string_view mark) {
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
    text.erase(at, mark.size());
  }
}

/// Markdown without the marks of headings, code blocks and bold type, and with the words of a link in place of it.
std::string plain(std::string_view markdown) {
  std::string out;
  bool code = false;
  while (!markdown.empty()) {
    const std::size_t end = std::min(markdown.find('\n'), markdown.size() - 1);
    std::string line(markdown.substr(0, end));
    markdown.remove_prefix(end + 1);
    if (line.starts_with("```")) {
      code = !code;
      continue;
    }
    if (code) {
      out += "    " + line + "\n";
      continue;
    }
    if (line.starts_with("#")) line.erase(0, line.find_first_not_of("# "));
    erase_all(line, "**");
    const std::size_t begin = out.size();
    out += line + "\n";
    for (std::size_t link = out.find("](", begin); link != std::string::npos; link = out.find("](", begin)) {
      out.erase(link, out.find(')', link) + 1 - link);
      out.erase(out.rfind('[', link), 1);  // the words may begin on a line before
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> warning_codes() {
  std::vector<std::string> codes;
  for (const auto& page : diagnose_detail::explanation_pages()) codes.emplace_back(page.code);
  return codes;
}

bool has_explanation(std::string_view code) {
  const std::vector<diagnose_detail::ExplanationPage>& pages = diagnose_detail::explanation_pages();
  return std::any_of(pages.begin(), pages.end(), [&](const auto& page) { return page.code == code; });
}

std::string explanation(std::string_view code) {
  for (const auto& page : diagnose_detail::explanation_pages()) {
    if (page.code == code) return plain(page.text);
  }
  throw InputError(fmt::format("unknown warning '{}'; codes are {}", code, fmt::join(warning_codes(), ", ")));
}

}  // namespace poise
