/// Evidence: the UAI format, present and older, lines with names, and names as they are typed.
#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include <poise/network.hpp>
#include "base/file.hpp"
#include "models/network/tokenizer.hpp"

namespace poise {
namespace {

/// Observations with the lines they come from.
class Collector {
 public:
  Collector(const Network& network, std::string_view name) : network_(network), name_(name) {}

  /// Line 0 is what was typed.
  [[noreturn]] void fail(std::size_t line, const std::string& what) const {
    if (line == 0) throw InputError(fmt::format("{}: {}", name_, what));
    fail_at(name_, line, what);
  }

  void add(Index variable, Index level, std::size_t line) {
    const auto [place, is_new] = seen_.try_emplace(variable, Seen{level, line});
    if (is_new) {
      evidence_.push_back({variable, level});
    } else if (place->second.level != level) {
      const std::string where = line == 0 ? "before" : fmt::format("in line {}", place->second.line);
      fail(line, fmt::format("found {} at level {}, expected level {} as {}", network_.variable_name(variable),
                             network_.level_name(variable, level), network_.level_name(variable, place->second.level),
                             where));
    }
  }

  Evidence take() { return std::move(evidence_); }

 private:
  struct Seen {
    Index level;
    std::size_t line;
  };
  const Network& network_;
  std::string_view name_;
  Evidence evidence_;
  std::unordered_map<Index, Seen> seen_;
};

// ---- numbers

/// Whether the text is a number and then as many records `count variable level ...`.
bool is_list_of_samples(std::string_view content, std::string_view name) {
  Tokenizer words(content, name);
  const std::optional<std::uint64_t> samples = Tokenizer::parse_count(words.next());
  for (std::uint64_t s = 0; samples && s < *samples; ++s) {
    const std::optional<std::uint64_t> pairs = Tokenizer::parse_count(words.next());
    if (!pairs) return false;
    for (std::uint64_t k = 0; k < *pairs; ++k) {
      words.next();
      if (words.next().empty()) return false;
    }
  }
  return samples.has_value() && words.next().empty();
}

/// Whether the number of samples, here 1, comes before the record `count variable level ...`. The older form has it and
/// then an even number of words in all, the present form an odd one: however lines are broken, they cannot be mistaken.
bool has_sample_count(std::string_view content, std::string_view name) {
  Tokenizer words(content, name);
  const std::optional<std::uint64_t> first = Tokenizer::parse_count(words.next());
  const std::size_t line = words.line();
  std::uint64_t count = 1;
  while (!words.next().empty()) ++count;
  if (!first || *first == 0 || (count % 2 == 1 && *first == count / 2)) return false;
  if (*first == 1) return count % 2 == 0;
  if (is_list_of_samples(content, name)) {
    throw InputError(fmt::format("{}, line {}: found {} samples of evidence, expected 1", name, line, *first));
  }
  return false;
}

Evidence read_numbers(std::string_view content, std::string_view name, const Network& network) {
  Tokenizer ahead(content, name);
  const std::string_view first = ahead.next();
  if (first.empty()) return {};  // as UAI programs read it
  if (!Tokenizer::parse_count(first)) {
    ahead.fail(fmt::format("found {}, expected the number of observed variables, or 'variable = level'", quote(first)));
  }
  Tokenizer words(content, name);
  if (has_sample_count(content, name)) words.next();
  Collector collector(network, name);
  const std::uint64_t n = network.num_variables();
  const std::uint64_t pairs = words.integer(0, n == 0 ? 0 : std::numeric_limits<Index>::max(),
                                            [] { return "the number of observed variables"; });
  for (std::uint64_t k = 0; k < pairs; ++k) {
    const auto variable = static_cast<Index>(words.integer(
        0, n - 1, [&] { return fmt::format("the number of a variable, observation {} of {}", k + 1, pairs); }));
    const auto level = static_cast<Index>(words.integer(0, network.cardinalities[variable] - std::uint64_t{1}, [&] {
      return fmt::format("a level of {}", network.variable_name(variable));
    }));
    collector.add(variable, level, words.line());
  }
  words.finish(fmt::format("{} observed variables", pairs));
  return collector.take();
}

// ---- names

std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\v\f";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// A comment starts at a '#' that begins a word; others may be part of a name.
std::string_view without_comment(std::string_view line) {
  for (std::size_t at = line.find('#'); at != std::string_view::npos; at = line.find('#', at + 1)) {
    if (at == 0 || line[at - 1] == ' ' || line[at - 1] == '\t') return line.substr(0, at);
  }
  return line;
}

/// Calls visit(line, number) for each line that holds something; stops when it gives false.
template <class Visit>
void for_each_line(std::string_view content, const Visit& visit) {
  content = without_byte_order_mark(content);
  for (std::size_t number = 1; !content.empty(); ++number) {
    const std::size_t end = std::min(content.find('\n'), content.size());
    const std::string_view line = trim(without_comment(content.substr(0, end)));
    content.remove_prefix(std::min(end + 1, content.size()));
    if (!line.empty() && !visit(line, number)) return;
  }
}

/// Whether the first line that is no comment has a '='; the word `c` starts a comment there unless it is assigned to.
bool has_names(std::string_view content) {
  bool result = false;
  for_each_line(content, [&](std::string_view line, std::size_t) {
    const bool starts_with_c = line[0] == 'c' && (line.size() == 1 || line[1] == ' ' || line[1] == '\t');
    if (starts_with_c && !trim(line.substr(1)).starts_with('=')) return true;
    result = line.find('=') != std::string_view::npos;
    return false;
  });
  return result;
}

/// Variables by what users call them.
class VariableFinder {
 public:
  explicit VariableFinder(const Network& network) : network_(network) {
    for (Index i = 0; i < network.names.size(); ++i) {
      variables_.emplace(network.names[i], i);
      longest_ = std::max(longest_, network.names[i].size());
    }
  }

  [[nodiscard]] std::optional<Index> find(std::string_view text) const {
    if (const auto place = variables_.find(text); place != variables_.end()) return place->second;
    if (text.starts_with("x[") && text.ends_with("]")) text = text.substr(2, text.size() - 3);
    const std::optional<std::uint64_t> number = Tokenizer::parse_count(text);
    if (!number || *number >= network_.num_variables()) return std::nullopt;
    return static_cast<Index>(*number);
  }
  [[nodiscard]] std::size_t longest() const { return longest_; }
  [[nodiscard]] std::string refusal(std::string_view found) const {
    return fmt::format("found {}, expected the name of a variable or its number, from 0 to {}{}", quote(found),
                       network_.num_variables() - 1, did_you_mean(found, network_.names));
  }

 private:
  const Network& network_;
  std::unordered_map<std::string_view, Index> variables_;
  std::size_t longest_ = 32;  ///< characters of a name or a number
};

/// What stands between commas; a comma inside a name or a level is where `begins` refuses what follows it.
template <class Begins>
std::vector<std::string> split_at_commas(std::string_view text, const Begins& begins) {
  std::vector<std::string> items;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, comma);
    if (items.empty() || begins(items.back(), item)) {
      items.emplace_back(item);
    } else {
      items.back() += fmt::format(",{}", item);
    }
    if (comma == text.size()) return items;
    text.remove_prefix(comma + 1);
  }
}

class NameReader {
 public:
  NameReader(const Network& network, std::string_view name)
      : network_(network), variables_(network), collector_(network, name) {}

  Evidence read_typed(std::string_view words) {
    const auto has_equals = [](const std::string&, std::string_view next) {
      return next.find('=') != std::string_view::npos || trim(next).empty();
    };
    for (const std::string& item : split_at_commas(words, has_equals)) {
      if (trim(item).empty()) collector_.fail(0, "found nothing between two commas, expected variable=level");
      read_line(trim(item), 0);
    }
    return collector_.take();
  }

  Evidence read(std::string_view content) {
    for_each_line(content, [&](std::string_view line, std::size_t number) {
      read_line(line, number);
      return true;
    });
    return collector_.take();
  }

 private:
  /// Names may hold '=' as levels like '<=5' do: the first one that follows the name of a variable counts.
  void read_line(std::string_view line, std::size_t number) {
    std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      collector_.fail(number, fmt::format("found {}, expected 'variable = level'", quote(line)));
    }
    const std::string_view first = trim(line.substr(0, equals));
    for (; equals != std::string_view::npos; equals = line.find('=', equals + 1)) {
      const std::string_view left = trim(line.substr(0, equals));
      if (left.size() > variables_.longest()) break;
      const std::optional<Index> variable = variables_.find(left);
      if (!variable) continue;
      collector_.add(*variable, level_of(*variable, trim(line.substr(equals + 1)), number), number);
      return;
    }
    collector_.fail(number, variables_.refusal(first));
  }

  Index level_of(Index variable, std::string_view text, std::size_t line) const {
    static const std::vector<std::string> none;
    const auto& names = variable < network_.level_names.size() ? network_.level_names[variable] : none;
    if (const auto place = std::find(names.begin(), names.end(), text); place != names.end()) {
      return static_cast<Index>(place - names.begin());
    }
    const Index last = network_.cardinalities[variable] - 1;
    const std::optional<std::uint64_t> number = Tokenizer::parse_count(text);
    if (number && *number <= last) return static_cast<Index>(*number);
    collector_.fail(line, fmt::format("found {}, expected a level of {}{}, from 0 to {}{}", quote(text),
                                      network_.variable_name(variable), names.empty() ? "" : " or its number", last,
                                      did_you_mean(text, names)));
  }

  const Network& network_;
  VariableFinder variables_;
  Collector collector_;
};

}  // namespace

Evidence parse_evidence(std::string_view content, std::string_view name, const Network& network) {
  if (has_names(content)) return NameReader(network, name).read(content);
  return read_numbers(content, name, network);
}

Evidence find_evidence(const std::string& words, const Network& network) {
  std::error_code ignored;
  if (words.find('=') == std::string::npos || std::filesystem::exists(words, ignored)) {
    return read_evidence(words, network);
  }
  return NameReader(network, "evidence").read_typed(words);
}

std::vector<Index> parse_variables(std::string_view text, std::string_view name, const Network& network) {
  const VariableFinder finder(network);
  const auto is_whole = [&](const std::string& before, std::string_view) {
    return finder.find(trim(before)).has_value();
  };
  std::vector<Index> variables;
  for (const std::string& item : split_at_commas(text, is_whole)) {
    const std::optional<Index> variable = finder.find(trim(item));
    if (!variable) throw InputError(fmt::format("{}: {}", name, finder.refusal(trim(item))));
    if (std::find(variables.begin(), variables.end(), *variable) != variables.end()) {
      throw InputError(fmt::format("{}: found {} twice, expected it once", name, network.variable_name(*variable)));
    }
    variables.push_back(*variable);
  }
  return variables;
}

Evidence read_evidence(const std::string& path, const Network& network) {
  return parse_evidence(read_file(path), path, network);
}

}  // namespace poise
