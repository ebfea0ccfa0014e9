/// Tables of words: CSV and its relatives.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include "base/file.hpp"
#include "base/image/inflate.hpp"
#include "models/selection/read_selection.hpp"

namespace poise {

namespace {

constexpr bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// The separator of a file by its first line; a blank stands for any number of blanks and tabs.
char separator_of(std::string_view line) {
  bool quoted = false;
  bool tab = false;
  bool semicolon = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == ',') return ',';
    tab = tab || c == '\t';
    semicolon = semicolon || c == ';';
  }
  return semicolon ? ';' : tab ? '\t' : ' ';
}

/// Fields of one line.
class Fields {
 public:
  Fields(std::string_view line, char separator, std::string_view name, std::size_t number)
      : rest_(line), separator_(separator), name_(name), number_(number) {
    if (separator == ' ') skip_blanks();
    done_ = separator == ' ' && rest_.empty();
  }

  std::optional<std::string> next() {
    if (done_) return std::nullopt;
    skip_spaces();
    std::string field = !rest_.empty() && rest_.front() == '"' ? quoted() : plain();
    skip_spaces();
    if (separator_ == ' ') {
      done_ = rest_.empty();
    } else if (rest_.empty()) {
      done_ = true;
    } else if (rest_.front() == separator_) {
      rest_.remove_prefix(1);
    } else {
      fail_at(name_, number_,
              fmt::format("found {} behind a quoted field, expected a separator", quote(rest_.substr(0, 1))));
    }
    return field;
  }

 private:
  [[nodiscard]] bool separates(char c) const { return separator_ == ' ' ? is_blank(c) : c == separator_; }
  void skip_blanks() {
    while (!rest_.empty() && is_blank(rest_.front())) rest_.remove_prefix(1);
  }
  /// Blanks around a field, but not those that separate.
  void skip_spaces() {
    while (!rest_.empty() && is_blank(rest_.front()) && (separator_ == ' ' || rest_.front() != separator_)) {
      rest_.remove_prefix(1);
    }
  }
  std::string plain() {
    std::size_t end = 0;
    while (end < rest_.size() && !separates(rest_[end])) ++end;
    std::string field(rest_.substr(0, end));
    while (!field.empty() && is_blank(field.back())) field.pop_back();
    rest_.remove_prefix(end);
    return field;
  }
  std::string quoted() {
    std::string field;
    for (std::size_t k = 1; k < rest_.size(); ++k) {
      if (rest_[k] != '"') {
        field += rest_[k];
      } else if (k + 1 < rest_.size() && rest_[k + 1] == '"') {
        field += rest_[k++];
      } else {
        rest_.remove_prefix(k + 1);
        return field;
      }
    }
    fail_at(name_, number_, "found a quoted field without an end, expected \" before the end of the line");
  }

  std::string_view rest_;
  char separator_;
  std::string_view name_;
  std::size_t number_;
  bool done_ = false;
};

}  // namespace

WordTable read_words(std::string_view text, const std::string& name) {
  text = without_byte_order_mark(text);
  WordTable table;
  std::size_t head_line = 1;
  char separator = ',';
  const char line_end = text.find('\n') == std::string_view::npos ? '\r' : '\n';  // some programs end lines by \r alone
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find(line_end), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    const bool is_head = table.heads.empty();
    if (is_head) separator = separator_of(line);
    Fields fields(line, separator, name, number);
    std::vector<std::string> words;
    while (std::optional<std::string> field = fields.next()) words.push_back(std::move(*field));
    if (is_head) {
      head_line = number;
      table.heads = std::move(words);
      continue;
    }
    // R writes row names without a head. Those that are numbers could be a value too many.
    const bool is_named = table.rows.empty() && words.size() == table.heads.size() + 1 && !number_of(words.front());
    if (is_named) table.heads.insert(table.heads.begin(), "");
    if (words.size() != table.heads.size()) {
      fail_at(name, number,
              fmt::format("found {} fields, expected {} as in the head", words.size(), table.heads.size()));
    }
    table.rows.push_back(std::move(words));
    table.lines.push_back(number);
  }
  if (table.heads.empty()) throw InputError(fmt::format("{}: found nothing in it, expected a head and rows", name));
  for (std::size_t k = 1; k < table.heads.size(); ++k) {
    if (table.heads[k].empty())
      fail_at(name, head_line, fmt::format("found no name for column {}, expected one", k + 1));
  }
  return table;
}

std::optional<std::size_t> find_head(const WordTable& table, std::string_view name) {
  for (std::size_t k = 0; k < table.heads.size(); ++k) {
    if (table.heads[k] == name) return k;
  }
  return std::nullopt;
}

/// The first head of several that is there, whatever its case.
std::optional<std::size_t> find_any(const WordTable& table, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    for (std::size_t k = 0; k < table.heads.size(); ++k) {
      if (same_letters(table.heads[k], name)) return k;
    }
  }
  return std::nullopt;
}

double number_at(const WordTable& table, std::size_t row, std::size_t column, const std::string& name) {
  const std::optional<double> value = number_of(table.rows[row][column]);
  if (value) return *value;
  const std::string& word = table.rows[row][column];
  const bool missing = word.empty() || same_letters(word, "NA") || same_letters(word, "NaN") || word == ".";
  fail_at(name, table.lines[row],
          fmt::format("found {} in column {}, expected a number{}", missing ? "no value" : quote(word),
                      quote(table.heads[column]),
                      missing                               ? "; leave the row out or fill the value in"
                      : word.find(',') != std::string::npos ? " with a point before its decimals"
                                                            : ""));
}

std::string read_data_file(const std::string& path) {
  constexpr std::uint64_t kLongest = std::uint64_t{1} << 36;  // tables may be large
  std::string content = read_file(path, kLongest);
  return is_gzip(content) ? unzip(content, path, kLongest) : content;
}

std::optional<double> number_of(const std::string& word) {
  const char* first = word.data();
  if (!word.empty() && word.front() == '+') ++first;
  double value = 0.0;
  const auto [end, error] = std::from_chars(first, word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace poise
