/// Cutting texts into lines of words, and words into numbers.
#include "models/ising/text_lines.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include "models/ising/ising_limits.hpp"

namespace poise {
namespace {

constexpr std::string_view kBlanks = " \t\r\v\f";
constexpr std::string_view kBlanksAndComma = " \t\r\v\f,";

}  // namespace

void fail_at(std::string_view name, std::size_t line, const std::string& what) {
  throw InputError(fmt::format("{}, line {}: {}", name, line, what));
}

Lines::Lines(std::string_view content) : rest_(content) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (rest_.starts_with(byte_order_mark)) rest_.remove_prefix(byte_order_mark.size());
}

bool Lines::next() {
  words.clear();
  while (words.empty() && !rest_.empty()) {
    ++number;
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    const std::size_t comment = line.find('#');
    if (see_comment && comment != std::string_view::npos) see_comment(line.substr(comment + 1));
    split(line.substr(0, comment));
  }
  return !words.empty();
}

void Lines::split(std::string_view line) {
  bool after_comma = false;
  for (std::size_t at = 0;;) {
    at = line.find_first_not_of(kBlanks, at);
    if (at == std::string_view::npos) break;
    const std::size_t end = std::min(line.find_first_of(kBlanksAndComma, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlanks, end);
    after_comma = at != std::string_view::npos && line[at] == ',';
    if (after_comma) ++at;
  }
  if (after_comma) words.emplace_back();
}

double real_at(std::string_view word, std::string_view name, std::size_t line) {
  const std::optional<double> value = parse_real(word);
  if (!value) fail_at(name, line, fmt::format("found {}, expected a finite number", quote(word)));
  if (std::abs(*value) > kLargest) {
    fail_at(name, line, fmt::format("found {}, expected a number from {} to {}", quote(word), -kLargest, kLargest));
  }
  return *value;
}

std::int64_t integer_at(std::string_view word, const Expected& one, std::string_view name, std::size_t line) {
  const std::optional<std::int64_t> value = parse_integer(word);
  if (value && *value >= one.min && *value <= one.max) return *value;
  fail_at(name, line,
          fmt::format("found {}, expected {} from {} to {}{}", quote(word), one.noun, one.min, one.max,
                      value && *value > one.max ? one.reason : ""));
}

}  // namespace poise
