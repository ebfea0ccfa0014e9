/// Columns, numbers and lines of text reports.
#include "report/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace poise::text {

namespace {

/// Characters, not bytes, of UTF-8.
std::size_t length(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// Power of ten of the first digit, after rounding to `significant` digits.
int magnitude(double value, int significant) {
  if (value == 0) return 0;
  int power = static_cast<int>(std::floor(std::log10(std::abs(value))));
  if (std::abs(value) >= std::pow(10.0, power + 1) - 0.5 * std::pow(10.0, power + 1 - significant)) ++power;
  return power;
}

std::string fixed(double value, int decimals) {
  std::string text = fmt::format("{:.{}f}", value, decimals);
  const bool zero = text.find_first_of("123456789") == std::string::npos;
  return zero && text.front() == '-' ? text.substr(1) : text;
}

constexpr std::size_t kGap = 2;  // between columns

}  // namespace

std::string number(double value, int significant) {
  if (std::isnan(value)) return "-";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  const int power = magnitude(value, significant);
  if (power > 9 || power < -4) return fmt::format("{:.{}g}", value, significant);
  return fixed(value, std::max(0, significant - 1 - power));
}

std::string mean(double value, double error) {
  if (!std::isfinite(value) || !std::isfinite(error) || error <= 0) return number(value, 5);
  const int decimals = 1 - magnitude(error, 2);
  if (decimals > 7 || std::abs(value) >= 1e10) return number(value, 5);
  return fixed(value, std::max(0, decimals));
}

std::string csv_field(const std::string& field) {
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string out = "\"";
  for (const char c : field) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

std::string probability(double log_probability) {
  constexpr double smallest = -700.0;  // doubles end a little below
  if (!(log_probability < smallest)) return number(std::exp(log_probability), 4);
  if (std::isinf(log_probability)) return "0";
  const double log10 = log_probability / std::log(10.0);
  const double power = std::floor(log10);
  return fmt::format("{:.3f}e{:.0f}", std::pow(10.0, log10 - power), power);
}

std::string count(double value) {
  if (!std::isfinite(value)) return number(value);
  return std::abs(value) < 9.95 && value != std::floor(value) ? number(value, 2) : fixed(value, 0);
}

std::string r_hat(double value) {
  if (!std::isfinite(value)) return number(value);
  return value < 10 ? fixed(value, 4) : number(value, 4);
}

std::string rate(double value) {
  if (!std::isfinite(value)) return number(value);
  constexpr std::array units{"", " k", " M", " G", " T"};
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < units.size(); ++unit) value /= 1000;
  return number(value, 3) + units[unit];
}

std::string bytes(double value) {
  if (!(value < 1e24)) return "more memory than there is";
  constexpr std::array units{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  for (; value >= 1023.5 && unit + 1 < units.size(); ++unit) value /= 1024;
  return fmt::format("{} {}", unit == 0 ? fmt::format("{:.0f}", value) : number(value, 3), units[unit]);
}

std::string duration(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds < 0.0995) return fmt::format("{:.2f} s", seconds);
  if (seconds < 99.95) return number(seconds, seconds < 9.995 ? 2 : 3) + " s";
  const auto whole = static_cast<long long>(std::lround(seconds));
  if (whole < 6000) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

std::string plural(std::uint64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

std::string every(std::uint64_t number, std::string_view noun) {
  return number == 1 ? std::string(noun) : plural(number, noun);
}

std::string wrap(std::string_view words, std::string_view first, std::size_t width) {
  std::string out(first);
  const std::string indent(length(first), ' ');
  std::size_t used = indent.size();
  bool at_start = true;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    const std::string_view word = words.substr(0, end);
    words.remove_prefix(std::min(end + 1, words.size()));
    if (word.empty()) continue;
    if (!at_start && used + 1 + length(word) > width) {
      out += '\n' + indent;
      used = indent.size();
      at_start = true;
    }
    if (!at_start) {
      out += ' ';
      ++used;
    }
    out += word;
    used += length(word);
    at_start = false;
  }
  return out + '\n';
}

std::string warnings(std::span<const Warning> warnings, std::size_t width) {
  std::string out = warnings.empty() ? "" : "\n";
  std::vector<std::string> codes;
  for (const Warning& warning : warnings) {
    out += wrap(warning.sentence(), "warning: ", width);
    // A comparison has a warning of each cause and sampler.
    if (has_explanation(warning.code) && std::find(codes.begin(), codes.end(), warning.code) == codes.end()) {
      codes.push_back(warning.code);
    }
  }
  if (!codes.empty())
    out += wrap(fmt::format("poise explain {}", fmt::join(codes, ", poise explain ")), "more:    ", width);
  return out;
}

Table::Table(std::vector<std::string> titles) {
  std::size_t lines = 1;
  for (std::string& title : titles) {
    const bool marked = !title.empty() && title.front() == '<';
    left_.push_back(marked || left_.empty());
    if (marked) title.erase(0, 1);
    std::vector<std::string> split;
    for (std::size_t start = 0; start <= title.size();) {
      const std::size_t end = std::min(title.find('\n', start), title.size());
      split.push_back(title.substr(start, end - start));
      start = end + 1;
    }
    lines = std::max(lines, split.size());
    titles_.push_back(std::move(split));
  }
  for (auto& split : titles_) split.insert(split.begin(), lines - split.size(), "");
}

void Table::add(std::vector<std::string> row) {
  row.resize(titles_.size());
  rows_.push_back(std::move(row));
}

std::size_t Table::column_width(std::size_t column) const {
  std::size_t width = 0;
  for (const auto& line : titles_[column]) width = std::max(width, length(line));
  for (const auto& row : rows_) width = std::max(width, length(row[column]));
  return width;
}

std::string Table::block(const std::vector<std::size_t>& columns) const {
  std::vector<std::size_t> widths;
  widths.reserve(columns.size());
  for (const std::size_t column : columns) widths.push_back(column_width(column));
  std::string out;
  const auto add_line = [&](const auto& cell) {
    std::string line;
    for (std::size_t k = 0; k < columns.size(); ++k) {
      const std::string& text = cell(columns[k]);
      const std::string blanks(widths[k] - length(text), ' ');
      if (k > 0) line.append(kGap, ' ');
      line += left_[columns[k]] ? text + blanks : blanks + text;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  };
  for (std::size_t k = 0; k < titles_.front().size(); ++k) {
    add_line([&](std::size_t column) -> const std::string& { return titles_[column][k]; });
  }
  for (const auto& row : rows_) {
    add_line([&](std::size_t column) -> const std::string& { return row[column]; });
  }
  return out;
}

std::string Table::text(std::size_t width) const {
  std::string out;
  for (std::size_t column = 1; column < titles_.size();) {
    std::vector<std::size_t> columns{0};
    std::size_t used = column_width(0);
    for (; column < titles_.size(); ++column) {
      const std::size_t needed = kGap + column_width(column);
      if (columns.size() > 1 && used + needed > width) break;
      columns.push_back(column);
      used += needed;
    }
    if (!out.empty()) out += '\n';
    out += block(columns);
  }
  return out;
}

}  // namespace poise::text
