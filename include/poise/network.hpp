/// A network of categorical variables: factors whose product is the probability of a state, up to a constant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/types.hpp>

namespace poise {

/// p(x) is proportional to the product over factors of table(f)[place of x in it].
///
/// A factor has a scope, a list of different variables, and a table with one number for each combination of their
/// levels; the last variable of the scope changes fastest. Numbers are finite and not negative, and none is a
/// logarithm. An empty scope makes a factor that is a constant.
///
/// Scopes and tables of all factors lie one after another, because files may hold millions of small ones. Factors may
/// share a table.
struct Network {
  static constexpr Index kFree = std::numeric_limits<Index>::max();

  std::string name;  ///< where it came from, for reports
  Index rows = 0;    ///< of a lattice, stored row by row; 0 where there is none
  Index columns = 0;
  std::vector<Index> sides;                           ///< of a lattice of three dimensions and more; empty elsewhere
  std::vector<Index> cardinalities;                   ///< levels of each variable, at least 1
  std::vector<std::string> names;                     ///< of variables; empty: x[0], x[1], ...
  std::vector<std::vector<std::string>> level_names;  ///< of each variable's levels; empty: their numbers
  std::vector<Index> observed;                        ///< the level a variable is clamped to, or kFree; empty: all free
  bool bayesian = false;  ///< factors are conditional distributions: Z is the probability of what is observed

  std::vector<Index> scopes;
  std::vector<std::size_t> scope_start = {0};  ///< factors + 1 places in `scopes`
  std::vector<double> values;
  std::vector<std::size_t> table_start;  ///< a place in `values` for each factor

  /// Number of variables, observed ones included.
  [[nodiscard]] Index num_variables() const { return static_cast<Index>(cardinalities.size()); }
  /// Number of tables.
  [[nodiscard]] std::size_t num_factors() const { return table_start.size(); }
  /// Whether evidence fixes variable i.
  [[nodiscard]] bool is_observed(Index i) const { return !observed.empty() && observed[i] != kFree; }
  /// Levels a variable can still take: 1 when it is observed.
  [[nodiscard]] Index levels(Index i) const { return is_observed(i) ? 1 : cardinalities[i]; }

  /// The variables of a factor, in the order of its table.
  [[nodiscard]] std::span<const Index> scope(std::size_t factor) const {
    return {scopes.data() + scope_start[factor], scope_start[factor + 1] - scope_start[factor]};
  }
  /// The product of the cardinalities of the scope.
  [[nodiscard]] std::size_t table_size(std::size_t factor) const {
    std::size_t size = 1;
    for (const Index i : scope(factor)) size *= cardinalities[i];
    return size;
  }
  /// The entries of a factor, the level of the last variable changing fastest.
  [[nodiscard]] std::span<const double> table(std::size_t factor) const {
    return {values.data() + table_start[factor], table_size(factor)};
  }

  /// Appends a factor with a table of its own.
  void add_factor(std::span<const Index> scope, std::span<const double> table);

  /// Whether any entry of a table is zero.
  [[nodiscard]] bool has_zeros() const;

  /// "x[3]" or the name.
  [[nodiscard]] std::string variable_name(Index i) const;
  /// "2" or the name.
  [[nodiscard]] std::string level_name(Index i, Index level) const;
  /// "factor 12 (x[3], x[7])", shortened where the scope is long.
  [[nodiscard]] std::string factor_name(std::size_t factor) const;
};

/// One variable, seen at one level.
struct Observation {
  Index variable;
  Index level;
};
using Evidence = std::vector<Observation>;

/// Clamps variables: observed ones leave the scopes, and of every table only the part that agrees with them stays.
/// Variables keep their numbers and cardinalities; the normalising constant of the result is that of `network` summed
/// over the states that agree with the evidence. Throws InputError where a variable or level does not exist, where two
/// observations contradict each other, and where a factor is zero everywhere on what is left of it.
[[nodiscard]] Network condition(Network network, const Evidence& evidence);

/// The probability of each level of each variable: entry first(i) + level.
struct Marginals {
  std::vector<std::size_t> start;  ///< variables + 1
  std::vector<double> values;

  Marginals() = default;
  /// Zeros for variables with so many levels.
  explicit Marginals(std::span<const Index> cardinalities);
  /// Number of variables.
  [[nodiscard]] std::size_t num_variables() const { return start.empty() ? 0 : start.size() - 1; }
  /// The probabilities of the levels of variable i.
  [[nodiscard]] std::span<double> of(Index i) { return {values.data() + start[i], start[i + 1] - start[i]}; }
  [[nodiscard]] std::span<const double> of(Index i) const {
    return {values.data() + start[i], start[i + 1] - start[i]};
  }
};

/// Mean of |difference| over all levels of all variables. Both must have the same shape.
[[nodiscard]] double mean_absolute_error(const Marginals& a, const Marginals& b);

/// Reads a network; the ending of the path says how: `.uai` or `.bif`.
[[nodiscard]] Network read_network(const std::string& path);

/// The UAI format: `MARKOV` or `BAYES`, the number of variables and their cardinalities, the number of factors and
/// their scopes (`size variable ...`), then their tables (`size number ...`), in any layout. '#' starts a comment, and
/// so does a line that begins with the word `c`. In a network of type BAYES each variable must be the last one in one
/// scope, without cycles, and its numbers must add up to 1 for each combination of the others, up to rounding, or all
/// be 0. The file is read in chunks, so that memory is needed for the network only.
[[nodiscard]] Network read_uai(const std::string& path);

/// The Bayesian Interchange Format as JavaBayes and bnlearn write it: blocks `variable` and `probability`, the latter
/// with rows `(level, ...) number, ...;`, with a `default` row, or with one `table` in which the child changes slowest.
/// Comments and properties are skipped. The scope of a factor is the parents, then the child.
[[nodiscard]] Network read_bif(const std::string& path);

/// Variables by name, or by number from 0, with commas between: `lung,smoke`. Names may hold commas. Throws InputError
/// where a variable does not exist or is named twice; `name` begins the message.
[[nodiscard]] std::vector<Index> parse_variables(std::string_view text, std::string_view name, const Network& network);

/// Evidence as it is typed: the path of a file that exists, else `variable=level,variable=level`, names or numbers.
[[nodiscard]] Evidence find_evidence(const std::string& words, const Network& network);

/// Reads evidence for a network, by content: UAI evidence in its present form (`count variable level ...`, on any
/// number of lines) or in the older form (the number of samples, here 1, before that), where an empty file means none;
/// or lines `variable = level`, each a name or a number. Where a name of a level is itself a number, the name counts.
[[nodiscard]] Evidence read_evidence(const std::string& path, const Network& network);

/// A network from the text of a UAI file; `name` stands for the file in errors.
[[nodiscard]] Network parse_uai(std::string_view content, std::string_view name);
/// The same from the text of a BIF file.
[[nodiscard]] Network parse_bif(std::string_view content, std::string_view name);
/// Evidence from text.
[[nodiscard]] Evidence parse_evidence(std::string_view content, std::string_view name, const Network& network);

/// Marginals in the UAI format: `MAR`, then the number of variables and for each its cardinality and probabilities. Of
/// several solutions in a file, separated by `-BEGIN-`, the last one counts; the older form with the number of samples,
/// here 1, before the number of variables is read as well.
[[nodiscard]] std::string mar_text(const Marginals& marginals);
/// The same from text.
[[nodiscard]] Marginals parse_mar(std::string_view content, std::string_view name);
/// The same from a file.
[[nodiscard]] Marginals read_mar(const std::string& path);

/// A state in the UAI format of most probable explanations: `MPE`, then the number of variables and their levels. Files
/// that begin with `MAP`, as some years have it, are read as well, and so is the older form with the number of samples,
/// here 1, before the number of variables. Of several solutions in a file, separated by `-BEGIN-`, the last one counts.
[[nodiscard]] std::string mpe_text(std::span<const Value> state);
/// The same from text.
[[nodiscard]] std::vector<Value> parse_mpe(std::string_view content, std::string_view name);
/// The same from a file.
[[nodiscard]] std::vector<Value> read_mpe(const std::string& path);

/// A partition function in the UAI format: `PR`, then its logarithm to the base 10.
[[nodiscard]] std::string pr_text(double log_partition);

}  // namespace poise
