/// Networks in the Bayesian Interchange Format: variables with named levels, and their conditional distributions.
#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include <poise/network.hpp>
#include "base/file.hpp"
#include "models/network/bif_lexer.hpp"
#include "models/network/tokenizer.hpp"

namespace poise {
namespace {

/// Entries of all tables together that even a short file may have: without a limit, a default row would make tables of
/// any size.
constexpr std::size_t kSmallEnough = std::size_t{1} << 24;

/// The distribution of one variable given its parents, while it is read.
struct Conditional {
  Index child = 0;
  std::vector<Index> parents;
  std::size_t levels = 0;  ///< of the child
  std::vector<double> table;
  std::vector<std::size_t> line_of;  ///< each row's; 0: not yet given
};

class BifReader {
 public:
  BifReader(std::string_view content, std::string_view name)
      : lexer_(content, name), limit_(std::max(kSmallEnough, content.size())), entries_left_(limit_) {
    network_.name = name;
  }

  Network read() {
    std::vector<BifLexer> blocks;  // variables may be declared after their distributions
    while (lexer_.peek().kind != BifToken::Kind::end) {
      const BifToken found = lexer_.take();
      if (found.is("network")) {
        lexer_.skip_block("'network'");
      } else if (found.is("variable")) {
        read_variable();
      } else if (found.is("probability")) {
        blocks.push_back(lexer_);
        lexer_.skip_block("'probability'");
      } else if (found.is("property")) {
        lexer_.skip_property();
      } else {
        lexer_.refuse(found, "'network', 'variable' or 'probability'");
      }
    }
    if (network_.cardinalities.empty()) lexer_.refuse(lexer_.peek(), "'variable'");
    given_in_.assign(network_.num_variables(), 0);
    last_child_.assign(network_.num_variables(), Network::kFree);
    for (BifLexer& block : blocks) {
      lexer_ = block;
      read_probability();
    }
    finish();
    return std::move(network_);
  }

 private:
  // ---- variables

  void read_variable() {
    const BifToken name = lexer_.word("the name of a variable");
    const auto [place, is_new] = numbers_.try_emplace(name.text, network_.num_variables());
    if (!is_new) {
      lexer_.fail(name.line, fmt::format("found variable {} of line {} again, expected each variable once",
                                         quote(name.text), declared_in_[place->second]));
    }
    network_.names.emplace_back(name.text);
    network_.level_names.emplace_back();
    level_numbers_.emplace_back();
    declared_in_.push_back(name.line);
    lexer_.sign('{', fmt::format("variable {}", quote(name.text)));
    for (;;) {
      const BifToken found = lexer_.take();
      if (found.is('}')) break;
      if (found.is(';')) continue;
      if (found.is("property")) {
        lexer_.skip_property();
      } else if (found.is("type") && network_.level_names.back().empty()) {
        read_levels(name.text);
      } else {
        lexer_.refuse(found, fmt::format("one 'type', 'property' or '}}' in variable {}", quote(name.text)));
      }
    }
    if (network_.level_names.back().empty()) {
      lexer_.fail(name.line, fmt::format("found variable {} without levels, expected 'type discrete [ 2 ] {{ a, b }};'",
                                         quote(name.text)));
    }
    network_.cardinalities.push_back(static_cast<Index>(network_.level_names.back().size()));
  }

  void read_levels(std::string_view name) {
    const BifToken type = lexer_.take();
    if (!type.is("discrete")) lexer_.refuse(type, "'discrete' after 'type'");
    std::optional<BifToken> declared;
    if (lexer_.take_if('[')) {
      declared = lexer_.word("a number of levels");
      lexer_.sign(']', "the number of levels");
    }
    lexer_.sign('{', "'type discrete'");
    std::vector<std::string>& levels = network_.level_names.back();
    while (!lexer_.peek().is('}')) {
      const BifToken level = lexer_.word(fmt::format("a level of {} or '}}'", quote(name)));
      if (!level_numbers_.back().try_emplace(level.text, static_cast<Index>(levels.size())).second) {
        lexer_.fail(level.line,
                    fmt::format("found level {} of {} twice, expected each once", quote(level.text), quote(name)));
      }
      levels.emplace_back(level.text);
    }
    const BifToken end = lexer_.take();
    if (levels.empty()) lexer_.refuse(end, fmt::format("a level of {}", quote(name)));
    if (declared && Tokenizer::parse_count(declared->text) != levels.size()) {
      lexer_.fail(declared->line, fmt::format("found {}, expected {}, the number of levels of {} that follow",
                                              quote(declared->text), levels.size(), quote(name)));
    }
  }

  // ---- distributions

  [[nodiscard]] std::string name_of(Index i) const { return quote(network_.names[i]); }

  Index known_variable(const BifToken& name) const {
    if (const auto place = numbers_.find(name.text); place != numbers_.end()) return place->second;
    lexer_.refuse(name, "the name of a variable" + did_you_mean(name.text, network_.names));
  }

  /// `( child | parent, parent )`; some programs leave out the bar.
  Conditional read_variables() {
    Conditional conditional;
    lexer_.sign('(', "'probability'");
    const BifToken child = lexer_.word("the name of a variable");
    conditional.child = known_variable(child);
    std::size_t& given_in = given_in_[conditional.child];
    if (given_in != 0) {
      lexer_.fail(child.line, fmt::format("found a second distribution of {}, expected only the one of line {}",
                                          quote(child.text), given_in));
    }
    given_in = child.line;
    last_child_[conditional.child] = conditional.child;
    lexer_.take_if('|');
    while (!lexer_.take_if(')')) {
      const BifToken name = lexer_.word(fmt::format("a parent of {} or ')'", quote(child.text)));
      const Index parent = known_variable(name);
      if (std::exchange(last_child_[parent], conditional.child) == conditional.child) {
        lexer_.fail(name.line, fmt::format("found {} twice in the distribution of {}, expected different variables",
                                           quote(name.text), quote(child.text)));
      }
      conditional.parents.push_back(parent);
    }
    make_room(conditional, child.line);
    return conditional;
  }

  void make_room(Conditional& conditional, std::size_t line) {
    conditional.levels = network_.cardinalities[conditional.child];
    std::size_t rows = 1;
    for (const Index parent : conditional.parents) {
      const std::size_t levels = network_.cardinalities[parent];
      rows = rows > limit_ / levels ? limit_ + 1 : rows * levels;
    }
    if (rows > entries_left_ / conditional.levels) {
      lexer_.fail(line, fmt::format("found {} parents of {}, expected no more than {} numbers in all tables",
                                    conditional.parents.size(), name_of(conditional.child), limit_));
    }
    entries_left_ -= rows * conditional.levels;
    conditional.table.assign(rows * conditional.levels, 0.0);
    conditional.line_of.assign(rows, 0);
  }

  void read_probability() {
    Conditional conditional = read_variables();
    const std::string block = fmt::format("the distribution of {}", name_of(conditional.child));
    lexer_.sign('{', block);
    std::optional<std::vector<double>> otherwise;
    for (;;) {
      const BifToken found = lexer_.take();
      if (found.is('}')) {
        finish_rows(conditional, otherwise, found.line);
        break;
      }
      if (found.is(';')) continue;
      if (found.is("property")) {
        lexer_.skip_property();
      } else if (found.is('(')) {
        read_row(conditional);
      } else if (found.is("table")) {
        read_table(conditional, found.line);
      } else if (found.is("default") && !otherwise) {
        otherwise =
            read_numbers(conditional.levels, fmt::format("one for each level of {}", name_of(conditional.child)));
        check_sum(conditional, *otherwise, [] { return "'default'"; });
      } else {
        lexer_.refuse(found, fmt::format("'table', '(', one 'default' or '}}' in {}", block));
      }
    }
    std::vector<Index> scope = conditional.parents;
    scope.push_back(conditional.child);
    network_.add_factor(scope, conditional.table);
  }

  /// Numbers up to a semicolon; `which` says what they are when there are not as many as expected.
  std::vector<double> read_numbers(std::size_t expected, const std::string& which) {
    std::vector<double> numbers;
    for (;;) {
      const BifToken found = lexer_.take();
      if (found.is(';')) {
        if (numbers.size() == expected) return numbers;
        lexer_.fail(found.line, fmt::format("found {} numbers, expected {}, {}", numbers.size(), expected, which));
      }
      double value = 0;
      if (found.kind != BifToken::Kind::word || !Tokenizer::parse_weight(found.text, value)) {
        lexer_.refuse(found, fmt::format("';' or a finite number of at least 0{}", Tokenizer::reason(found.text)));
      }
      if (numbers.size() == expected) lexer_.refuse(found, fmt::format("';' after {} numbers, {}", expected, which));
      numbers.push_back(value);
    }
  }

  template <class RowName>
  void check_sum(const Conditional& conditional, std::span<const double> row, const RowName& row_name) {
    if (adds_up_to_one(row)) return;
    const double sum = std::accumulate(row.begin(), row.end(), 0.0);
    lexer_.fail(lexer_.line(), fmt::format("found {:.6g} as the sum of row {} of {}, expected probabilities that add "
                                           "up to 1",
                                           sum, row_name(), name_of(conditional.child)));
  }

  /// After '(': the levels of the parents, then the numbers.
  void read_row(Conditional& conditional) {
    std::size_t row = 0;
    std::size_t count = 0;
    std::size_t line = lexer_.line();
    while (!lexer_.take_if(')')) {
      const BifToken level = lexer_.word("a level of a parent or ')'");
      line = level.line;
      if (count == conditional.parents.size()) {
        lexer_.refuse(level,
                      fmt::format("')' after {} levels, one for each parent of {}", count, name_of(conditional.child)));
      }
      const Index parent = conditional.parents[count++];
      const auto place = level_numbers_[parent].find(level.text);
      if (place == level_numbers_[parent].end()) {
        lexer_.refuse(level, fmt::format("a level of {}", name_of(parent)));
      }
      row = row * network_.cardinalities[parent] + place->second;
    }
    if (count != conditional.parents.size()) {
      lexer_.fail(line, fmt::format("found {} levels, expected {}, one for each parent of {}", count,
                                    conditional.parents.size(), name_of(conditional.child)));
    }
    if (conditional.line_of[row] != 0) {
      lexer_.fail(line, fmt::format("found row {} of line {} again, expected each row once", row_name(conditional, row),
                                    conditional.line_of[row]));
    }
    const std::vector<double> numbers =
        read_numbers(conditional.levels, fmt::format("one for each level of {}", name_of(conditional.child)));
    check_sum(conditional, numbers, [&] { return row_name(conditional, row); });
    conditional.line_of[row] = line;
    std::copy(numbers.begin(), numbers.end(), conditional.table.begin() + offset(conditional, row));
  }

  /// All rows at once; the variables count in the order of the list, the last one fastest, so that here the child is
  /// the slowest.
  void read_table(Conditional& conditional, std::size_t line) {
    const std::size_t rows = conditional.line_of.size();
    const auto given = std::find_if(conditional.line_of.begin(), conditional.line_of.end(),
                                    [](std::size_t line_of) { return line_of != 0; });
    if (given != conditional.line_of.end()) {
      lexer_.fail(line, fmt::format("found 'table' after the numbers of line {}, expected one or the other", *given));
    }
    const std::vector<double> numbers =
        read_numbers(conditional.table.size(), fmt::format("the size of the table of {}", name_of(conditional.child)));
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t level = 0; level < conditional.levels; ++level) {
        conditional.table[row * conditional.levels + level] = numbers[level * rows + row];
      }
      check_sum(conditional, row_of(conditional, row), [&] { return row_name(conditional, row); });
    }
    std::fill(conditional.line_of.begin(), conditional.line_of.end(), line);
  }

  /// Rows that were not given take the default.
  void finish_rows(Conditional& conditional, const std::optional<std::vector<double>>& otherwise, std::size_t line) {
    for (std::size_t row = 0; row < conditional.line_of.size(); ++row) {
      if (conditional.line_of[row] != 0) continue;
      if (!otherwise) {
        lexer_.fail(line, fmt::format("found no row {} of {}, expected one for each combination of its parents' levels",
                                      row_name(conditional, row), name_of(conditional.child)));
      }
      std::copy(otherwise->begin(), otherwise->end(), conditional.table.begin() + offset(conditional, row));
    }
  }

  static std::ptrdiff_t offset(const Conditional& conditional, std::size_t row) {
    return static_cast<std::ptrdiff_t>(row * conditional.levels);
  }
  static std::span<const double> row_of(const Conditional& conditional, std::size_t row) {
    return std::span(conditional.table).subspan(row * conditional.levels, conditional.levels);
  }

  [[nodiscard]] std::string row_name(const Conditional& conditional, std::size_t row) const {
    std::string name;
    for (std::size_t k = conditional.parents.size(); k-- > 0;) {
      const Index parent = conditional.parents[k];
      const std::size_t levels = network_.cardinalities[parent];
      name = network_.level_names[parent][row % levels] + (name.empty() ? "" : ", ") + name;
      row /= levels;
    }
    return quote("(" + name + ")");
  }

  void finish() {
    network_.bayesian = true;
    for (Index i = 0; i < network_.num_variables(); ++i) {
      if (given_in_[i] != 0) continue;
      lexer_.fail(declared_in_[i],
                  fmt::format("found no distribution of {}, expected a block 'probability' for it", name_of(i)));
    }
    if (const std::optional<Index> variable = own_ancestor(network_)) {
      lexer_.fail(given_in_[*variable],
                  fmt::format("found {} among its own ancestors, expected no cycle", name_of(*variable)));
    }
  }

  BifLexer lexer_;
  Network network_;
  std::size_t limit_;         ///< entries of all tables together
  std::size_t entries_left_;  ///< of them
  std::unordered_map<std::string_view, Index> numbers_;
  std::vector<std::unordered_map<std::string_view, Index>> level_numbers_;
  std::vector<std::size_t> declared_in_;  ///< line of each variable
  std::vector<std::size_t> given_in_;     ///< line of its distribution; 0: none yet
  std::vector<Index> last_child_;         ///< in whose list a variable was last; kFree: in none
};

}  // namespace

Network parse_bif(std::string_view content, std::string_view name) { return BifReader(content, name).read(); }

Network read_bif(const std::string& path) { return parse_bif(read_file(path), path); }

}  // namespace poise
