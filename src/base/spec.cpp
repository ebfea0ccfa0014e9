/// Parsing of specs and of the numbers in them, and the wording of what is wrong with them.
#include <poise/extend/base/spec.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace poise {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Edits between two words, where swapping neighbours is one edit (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::array<std::vector<std::size_t>, 3> rows;  // rows i-2, i-1 and i of the usual table, in turn
  rows.fill(std::vector<std::size_t>(b.size() + 1));
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& above = rows[(i + 2) % 3];
    const auto& above2 = rows[(i + 1) % 3];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], above2[j - 2] + 1);
    }
  }
  return rows[a.size() % 3][b.size()];
}

bool begins(std::string_view word, std::string_view candidate) {
  return word.size() <= candidate.size() &&
         std::equal(word.begin(), word.end(), candidate.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

/// from_chars knows no leading '+'; people and programs write it.
std::string_view without_plus(std::string_view text) {
  const bool plus = text.size() > 1 && text[0] == '+' && text[1] != '-';
  return plus ? text.substr(1) : text;
}

template <class Number>
std::optional<Number> parse_whole(std::string_view text) {
  text = without_plus(text);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "an integer from 1 to 4", "a number of at least 0": an end that is the type's own is left out.
template <class Number>
std::string describe_range(std::string_view noun, Number min, Number max) {
  const bool below = min != std::numeric_limits<Number>::lowest();
  const bool above = max != std::numeric_limits<Number>::max();
  if (below && above) return fmt::format("{} from {} to {}", noun, min, max);
  if (below) return fmt::format("{} of at least {}", noun, min);
  if (above) return fmt::format("{} of at most {}", noun, max);
  return std::string(noun);
}

[[noreturn]] void fail(std::string_view subject, const std::vector<std::string>& problems) {
  if (problems.size() == 1) throw InputError(problems.front());
  throw InputError(fmt::format("{} problems in {}:\n  - {}", problems.size(), subject, fmt::join(problems, "\n  - ")));
}

}  // namespace

std::string Spec::text() const {
  std::string result = name;
  char separator = ':';
  for (const auto& [key, value] : settings) {
    result += fmt::format("{}{}={}", separator, key, value);
    separator = ',';
  }
  return result;
}

Spec parse_spec(std::string_view text) {
  constexpr std::string_view grammar = "expected name:key=value,key=value";
  std::vector<std::string> problems;
  Spec spec;
  const std::size_t colon = text.find(':');
  spec.name = text.substr(0, colon);
  if (spec.name.empty()) {
    problems.push_back(fmt::format("no name in {}, {}", quote(text), grammar));
  } else if (spec.name.find_first_of("=,") != std::string::npos) {
    problems.push_back(fmt::format("found {} in place of a name, {}", quote(spec.name), grammar));
  }
  bool more = colon != std::string_view::npos;
  std::string_view rest = more ? text.substr(colon + 1) : std::string_view{};
  while (more) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) rest.remove_prefix(comma + 1);
    const std::size_t equals = item.find('=');
    const std::string_view key = item.substr(0, equals);
    const auto same_key = [&](const auto& setting) { return setting.first == key; };
    if (item.empty()) {
      problems.push_back(fmt::format("found nothing where {} needs a setting, expected key=value", quote(text)));
    } else if (equals == std::string_view::npos) {
      problems.push_back(fmt::format("no '=' in {} of {}, expected key=value", quote(item), quote(text)));
    } else if (key.empty()) {
      problems.push_back(fmt::format("no key in {} of {}, expected key=value", quote(item), quote(text)));
    } else if (equals + 1 == item.size()) {
      problems.push_back(fmt::format("no value in {} of {}, expected key=value", quote(item), quote(text)));
    } else if (std::any_of(spec.settings.begin(), spec.settings.end(), same_key)) {
      problems.push_back(fmt::format("key {} is repeated in {}, expected each key once", quote(key), quote(text)));
    } else {
      spec.settings.emplace_back(key, item.substr(equals + 1));
    }
  }
  if (!problems.empty()) fail(quote(text), problems);
  return spec;
}

std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates) {
  std::string nearest;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const std::string& candidate : candidates) {
    const std::size_t longer = std::max(word.size(), candidate.size());
    const std::size_t shorter = std::min(word.size(), candidate.size());
    const std::size_t close = std::max<std::size_t>(1, longer / 3);
    std::size_t distance = least;
    if (word.size() >= 3 && begins(word, candidate)) {
      distance = std::min(close, longer - shorter);
    } else if (longer - shorter <= close) {
      distance = edit_distance(word, candidate);
    }
    if (distance < least && distance <= close && distance < longer) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t longest = 60;  // a longer word is none that was mistyped
  const std::string nearest = word.size() <= longest ? nearest_name(word, candidates) : "";
  return nearest.empty() ? "" : fmt::format(" (did you mean {}?)", quote(nearest));
}

std::optional<double> parse_real(std::string_view text) {
  const auto value = parse_whole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<std::int64_t> parse_integer(std::string_view text) { return parse_whole<std::int64_t>(text); }

std::optional<std::int64_t> parse_whole_number(std::string_view text) {
  if (const auto integer = parse_integer(text)) return integer;
  constexpr double largest = 9007199254740992.0;  // 2^53: up to there doubles are all whole numbers
  if (text.find_first_of("eE") == std::string_view::npos) return std::nullopt;
  const auto value = parse_real(text);
  if (!value || std::abs(*value) > largest || *value != std::floor(*value)) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::string quote(std::string_view found) {
  constexpr std::size_t longest = 60;
  std::string result = "'";
  for (const char c : found.substr(0, longest)) {
    const bool printable = c >= ' ' && c <= '~';
    if (printable) {
      result += c;
    } else {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  if (found.size() > longest) result += "...";
  return result + "'";
}

SpecReader::SpecReader(Spec spec, std::string kind) : spec_(std::move(spec)), kind_(std::move(kind)) {}

const std::string* SpecReader::find(std::string_view key) const {
  for (const auto& [name, value] : spec_.settings) {
    if (name == key) return &value;
  }
  return nullptr;
}

bool SpecReader::has(std::string_view key) const { return find(key) != nullptr; }

std::int64_t SpecReader::integer(std::string_view key, std::int64_t otherwise, std::int64_t min, std::int64_t max) {
  const std::string* found = find(key);
  if (!found) return otherwise;
  const auto value = parse_whole_number(*found);
  if (value && *value >= min && *value <= max) return *value;
  reject(key, describe_range("an integer", min, max));
  return otherwise;
}

double SpecReader::real(std::string_view key, double otherwise, double min, double max) {
  const std::string* found = find(key);
  if (!found) return otherwise;
  const auto value = parse_real(*found);
  if (value && *value >= min && *value <= max) return *value;
  reject(key, describe_range("a finite number", min, max));
  return otherwise;
}

std::string SpecReader::choice(std::string_view key, std::string_view otherwise,
                               const std::vector<std::string>& names) {
  const std::string* found = find(key);
  if (!found) return std::string(otherwise);
  if (std::find(names.begin(), names.end(), *found) != names.end()) return *found;
  reject(key, fmt::format("{}{}", fmt::join(names, " or "), did_you_mean(*found, names)));
  return std::string(otherwise);
}

std::string SpecReader::text(std::string_view key, std::string_view otherwise) const {
  const std::string* found = find(key);
  return found ? *found : std::string(otherwise);
}

void SpecReader::reject(std::string_view key, std::string_view expected) {
  problem(fmt::format("key '{}' in {} {}: found {}, expected {}", key, kind_, quote(spec_.name), quote(text(key, "")),
                      expected));
}

void SpecReader::problem(std::string sentence) { problems_.push_back(std::move(sentence)); }

void SpecReader::finish(const std::vector<std::string>& known) {
  for (const auto& setting : spec_.settings) {
    const std::string& key = setting.first;
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string nearest = nearest_name(key, known);
    std::string hint = fmt::format("known: {}", fmt::join(known, ", "));
    if (!nearest.empty()) hint = fmt::format("did you mean '{}'?", nearest);
    if (known.empty()) hint = "it takes none";
    problem(fmt::format("unknown key {} in {} {} ({})", quote(key), kind_, quote(spec_.name), hint));
  }
  if (!problems_.empty()) fail(fmt::format("{} {}", kind_, quote(spec_.name)), problems_);
}

}  // namespace poise
