/// Diagnostics of all variables of a model at once, straight from the stored draws, and warnings in plain language.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <poise/diagnose.hpp>
#include <poise/types.hpp>

namespace poise {

/// Draws of all variables: the label of `variable` is at ((chain * draws) + draw) * variables + variable.
struct DrawsView {
  const std::int8_t* data = nullptr;
  std::size_t chains = 0;
  std::size_t draws = 0;  ///< per chain
  std::size_t variables = 0;
};

/// Draws of all variables that need not be in memory at once: some variables at a time are.
class ColumnSource {
 public:
  virtual ~ColumnSource() = default;
  [[nodiscard]] virtual std::size_t chains() const = 0;
  [[nodiscard]] virtual std::size_t draws() const = 0;  ///< per chain
  [[nodiscard]] virtual std::size_t variables() const = 0;
  /// Gets the variables from `first` on, as many as there is room for, and says how many these are: at least one.
  [[nodiscard]] virtual std::size_t load(std::size_t first) = 0;
  /// Copies the labels of variables that were loaded, chain by chain; those of `first` + i go to `to` + i * stride.
  /// Threads may do so at the same time.
  virtual void copy(std::size_t first, std::size_t count, std::int8_t* to, std::size_t stride) const = 0;
};

/// One series of zeros and ones, or of two labels. A variable seen at one or two labels is one series, as it is coded.
/// A variable seen at more has one series per label, 1[x = level]: labels have no order, so their mean says nothing.
struct VariableRow {
  double mean;  ///< of the labels; with a level, the share of the draws that have it
  double mcse;  ///< of the mean
  double ess;
  double r_hat;               ///< +infinity when frozen
  std::uint64_t transitions;  ///< over all chains
  Index variable;
  std::optional<std::int8_t> level;  ///< the label the series indicates; empty when the series is the variable itself
  SeriesStatus status;               ///< constant, frozen, too_short, rare or ok
};

/// Over all rows where the number is defined; NaN when there are none. R-hat may be infinite.
struct Quantiles {
  double min, q05, median, q95, max;
};

/// The rows, and what to look at when there are too many of them.
struct VariablesSummary {
  std::size_t chains = 0;
  std::size_t draws = 0;  ///< per chain
  std::size_t variables = 0;
  std::vector<VariableRow> rows;            ///< by variable, then by level
  std::vector<VariableRow> worst_by_r_hat;  ///< largest first
  std::vector<VariableRow> worst_by_ess;    ///< smallest first
  Quantiles ess{};
  Quantiles r_hat{};

  // Numbers of variables. One with several levels counts where any of them does.
  std::size_t constant = 0;
  std::size_t frozen = 0;
  std::size_t rare = 0;
  std::size_t high_r_hat = 0;  ///< R-hat over r_hat_limit, the frozen ones apart
  std::size_t low_ess = 0;     ///< ESS under ess_limit_per_chain * chains, the frozen ones apart
};

/// Where warnings begin (Vehtari et al. 2021).
inline constexpr double r_hat_limit = 1.01;
inline constexpr double ess_limit_per_chain = 100;

struct VariablesOptions {
  unsigned threads = 1;    ///< the result does not depend on it; 0: as many as the machine has
  std::size_t worst = 10;  ///< length of the two lists of worst rows
};

/// Each variable has the ess_mean, r_hat and mcse_mean that the functions of diagnose.hpp give for its series, without
/// the series ever being stored as real numbers: a few dozen variables at a time are copied out of the draws and packed
/// into bits. All variables are looked at, none is left out or sampled.
[[nodiscard]] VariablesSummary summarize_variables(DrawsView draws, const VariablesOptions& options = {});
[[nodiscard]] VariablesSummary summarize_variables(ColumnSource& draws, const VariablesOptions& options = {});

/// A monitor by name.
struct NamedSummary {
  std::string name;
  SeriesSummary summary;
};

/// What variables and their levels are called: x[0], x[1], ... and labels where nothing is said.
struct VariableNames {
  std::span<const std::string> variables;
  std::span<const std::vector<std::string>> levels;

  /// "x[3]", "x[3] = 2", "smoke = no". A series of two labels with names is that of the second.
  [[nodiscard]] std::string operator()(const VariableRow& row) const;
};

/// What the user should know before using the results, most serious first; empty when all is well. Each is one sentence
/// that says what was seen, what it means and what to do. `variables` may be empty (draws not kept).
[[nodiscard]] std::vector<std::string> warnings(std::span<const NamedSummary> monitors,
                                                const VariablesSummary& variables, std::size_t chains,
                                                const VariableNames& names = {});

}  // namespace poise
