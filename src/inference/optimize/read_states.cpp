/// States and fixed variables as text.
#include <poise/optimize.hpp>

#include <algorithm>

#include <fmt/format.h>

#include "base/file.hpp"
#include "models/ising/ising_text.hpp"

namespace poise {

namespace {

/// The level that a word stands for, by its name or its label.
Value level_at(std::string_view word, Index variable, const VariableLayout& layout, std::string_view name,
               std::size_t line) {
  const Index cardinality = layout.cardinality(variable);
  std::vector<std::string> known;
  for (Index level = 0; level < cardinality; ++level) {
    known.push_back(layout.level_names.empty() ? fmt::format("{}", layout.label(static_cast<Value>(level)))
                                               : layout.level_names[variable][level]);
    if (known.back() == word) return static_cast<Value>(level);
  }
  const std::optional<std::int64_t> number = parse_integer(word.starts_with('+') ? word.substr(1) : word);
  for (Index level = 0; number && level < cardinality; ++level) {
    if (layout.label(static_cast<Value>(level)) == *number) return static_cast<Value>(level);
  }
  constexpr std::size_t most = 8;
  const std::size_t shown = std::min(most, known.size());
  fail_at(name, line,
          fmt::format("found {} as the level of variable {}, expected one of {}{}", quote(word), variable,
                      fmt::join(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                      known.size() > shown ? ", ..." : ""));
}

Index variable_at(std::string_view word, const VariableLayout& layout, std::string_view name, std::size_t line) {
  const auto found = std::find(layout.names.begin(), layout.names.end(), word);
  if (found != layout.names.end()) return static_cast<Index>(found - layout.names.begin());
  return static_cast<Index>(integer_at(
      word, {"the name or number of a variable,", 0, static_cast<std::int64_t>(layout.variables) - 1}, name, line));
}

}  // namespace

std::string states_text(const OptimizeAnswer& answer, const VariableLayout& layout) {
  std::string out;
  for (const Solution& solution : answer.solutions) {
    out += fmt::format("# {} {:.12g}\n", answer.objective, solution.objective);
    for (std::size_t i = 0; i < solution.state.size(); ++i) {
      if (i > 0) out += ' ';
      out += fmt::format("{}", layout.label(solution.state[i]));
    }
    out += '\n';
  }
  return out;
}

std::vector<std::vector<Value>> parse_states(std::string_view content, std::string_view name,
                                             const VariableLayout& layout) {
  std::vector<std::vector<Value>> states;
  Lines lines(content);
  while (lines.next()) {
    if (lines.words.size() != layout.variables) {
      fail_at(name, lines.number,
              fmt::format("found {} levels, expected one for each of the {} variables", lines.words.size(),
                          layout.variables));
    }
    std::vector<Value>& state = states.emplace_back();
    for (Index i = 0; i < layout.variables; ++i) {
      state.push_back(level_at(lines.words[i], i, layout, name, lines.number));
    }
  }
  if (states.empty()) throw InputError(fmt::format("{}: found no state, expected one a line", name));
  return states;
}

std::vector<std::optional<Value>> parse_fixed(std::string_view content, std::string_view name,
                                              const VariableLayout& layout) {
  std::vector<std::optional<Value>> fixed(layout.variables);
  Lines lines(content);
  while (lines.next()) {
    std::vector<std::string_view>& words = lines.words;
    if (words.size() == 3 && words[1] == "=") words.erase(words.begin() + 1);
    if (words.size() != 2) {
      fail_at(name, lines.number, fmt::format("found {} words, expected 'variable level'", words.size()));
    }
    const Index i = variable_at(words[0], layout, name, lines.number);
    const Value level = level_at(words[1], i, layout, name, lines.number);
    if (fixed[i] && *fixed[i] != level) {
      fail_at(name, lines.number, fmt::format("found another level for variable {}, expected one", quote(words[0])));
    }
    fixed[i] = level;
  }
  return fixed;
}

}  // namespace poise
