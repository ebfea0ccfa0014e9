/// What each kind of warning means, as plain text for a terminal.
#include <poise/diagnose.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <poise/types.hpp>

#include "diagnose/explanation_pages.hpp"

namespace poise {

namespace {

/// Markdown without the marks of headings and code blocks, and with the words of a link in place of it.
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
    for (std::size_t link = line.find("]("); link != std::string::npos; link = line.find("](")) {
      line.erase(link, line.find(')', link) + 1 - link);
      line.erase(line.rfind('[', link), 1);
    }
    out += line + "\n";
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
