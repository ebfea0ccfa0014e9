/// Bayesian variable selection and fine-mapping: inclusion probabilities of the variables of a linear regression, from
/// a table of observations or from summary statistics.
///
/// y = X b + e, e ~ N(0, s2). A variable is included with a prior probability; an included one has a coefficient with a
/// normal prior (a slab), the others have none. Coefficients and s2 are integrated out, so what is sampled is which
/// variables are included: a model of two-valued variables that `run` takes as any other.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <poise/extend/models/selection_data.hpp>
#include <poise/report.hpp>
#include <poise/run.hpp>

namespace poise {

class OptionVisitor;

/// How the posterior of inclusion is sampled and what is reported of it.
struct SelectOptions {
  std::string sampler = "wtgs";
  std::size_t chains = 4;
  std::optional<std::size_t> warmup;  ///< draws; none: a fifth of `draws`
  std::size_t draws = 1000;
  /// Steps per draw; 0: 8 units of time with wtgs, a sweep with other samplers.
  std::uint64_t thin = 0;
  double seconds = 0.0;  ///< if positive, this long in place of `draws`
  std::uint64_t seed = 1;
  unsigned threads = 0;
  double coverage = 0.95;   ///< of credible sets
  double purity = 0.5;      ///< the least absolute correlation within one
  std::size_t models = 10;  ///< most probable models that are listed
  double interval = 0.95;   ///< posterior mass of the intervals of coefficients

  void describe(OptionVisitor& visit);
  void check() const;
};

/// Where chains of `select` start. `mixed`, the default: the first with nothing included, the second with what greedy
/// addition finds, the others with a few at random.
enum class SelectStart { mixed, empty, greedy, random };

/// How the work is seen from outside.
struct SelectHooks {
  std::function<void(const Progress&)> progress;
  const std::atomic<bool>* stop = nullptr;
  Collective* collective = nullptr;  ///< the ranks that make the run together, as in RunHooks
  /// Who gets the answer; others learn only whether the run was interrupted.
  Collective::To draws_to = Collective::To::root;
  SelectStart start = SelectStart::mixed;
};

/// What the posterior says of one variable.
struct SelectedVariable {
  std::string name;
  double prior = 0.0;   ///< P(included)
  double pip = 0.0;     ///< P(included | data)
  double pip_se = 0.0;  ///< its Monte Carlo standard error
  double mean = 0.0;    ///< of the coefficient, zero where it is not included; in units of the table
  double sd = 0.0;
  double mean_included = 0.0;  ///< of the coefficient where it is included; NaN where no draw has it
  double sd_included = 0.0;
  double low = 0.0;  ///< interval of the coefficient
  double high = 0.0;
};

/// A small group of correlated variables that contains a signal with the probability `coverage`.
struct CredibleSet {
  std::vector<Index> variables;  ///< the most probable first
  std::vector<double> share;     ///< of the draws with one of the set, those with this variable
  double mass = 0.0;             ///< P(one of the set is included | data): at least the coverage
  double purity = 0.0;           ///< least absolute correlation within
};

/// A set of included variables and its posterior probability.
struct SelectedModel {
  std::vector<Index> variables;
  double probability = 0.0;  ///< fraction of draws
  double log_posterior = 0.0;
  double log_bayes_factor = 0.0;  ///< over the model without variables
};

/// The answer of `select`: variables, credible sets, models and warnings.
struct SelectionAnswer {
  std::string model;
  std::string response;
  std::vector<SelectedVariable> variables;
  double intercept = 0.0;
  std::vector<double> sizes;  ///< P(so many are included)
  std::vector<SelectedModel> models;
  std::vector<CredibleSet> sets;
  std::vector<Warning> warnings;
  std::vector<std::string> notes;
  Report report;
  SummaryTable summary;              ///< of fine-mapping: extra columns, z, n
  std::vector<Index> top;            ///< the most probable variables, a dozen at most, in the order of the data
  std::vector<double> correlations;  ///< of these, by rows
  double coverage = 0.95;
  double seconds = 0.0;
  bool interrupted = false;
};

/// Throws InputError.
[[nodiscard]] SelectionAnswer select(const std::shared_ptr<const SelectionProblem>& problem,
                                     const SelectOptions& options, const SelectHooks& hooks = {});

/// A table of rows to predict: columns that are not variables of the answer are passed over.
[[nodiscard]] RegressionTable read_rows_to_predict(const std::string& path, const SelectionAnswer& answer);
/// Predictions of the average over models, of rows whose columns have the names of the answer's variables.
[[nodiscard]] std::vector<double> predict(const SelectionAnswer& answer, const RegressionTable& rows);

/// Keys: version, model, response, variables[{name, pip, pip_se, mean, sd,
/// mean_included, sd_included, low, high}], intercept, sizes[],
/// models[{variables[], probability, log_posterior, log_bayes_factor}], sets[{variables[], share[], mass, purity}],
/// warnings[], notes[], seconds, interrupted, report{}.
[[nodiscard]] nlohmann::json selection_json(const SelectionAnswer& answer);
/// Tables of the `most` most probable variables, the sets and the models.
[[nodiscard]] std::string selection_text(const SelectionAnswer& answer, std::size_t width, std::size_t most);
/// Tables with blanks between, as FINEMAP writes them: variants (.snp), models (.config) and sets (.cred).
[[nodiscard]] std::string finemap_snp(const SelectionAnswer& answer);
/// The table of models in the form of FINEMAP (.config).
[[nodiscard]] std::string finemap_config(const SelectionAnswer& answer);
/// The table of credible sets in the form of FINEMAP (.cred).
[[nodiscard]] std::string finemap_cred(const SelectionAnswer& answer);
/// A picture, as SVG: inclusion probabilities with two standard errors, credible sets in colours, along `positions`,
/// else along the column of positions of the summary statistics, else in the order of the data; below it the
/// correlations of the most probable variables. Throws InputError where there is not a position for each variable.
[[nodiscard]] std::string selection_plot(const SelectionAnswer& answer, const std::vector<double>& positions = {});
/// A row for each variable: its name, the extra columns, z, PIP and CREDIBLE_SET, as PolyFun and susieR's users know.
[[nodiscard]] std::string selection_table(const SelectionAnswer& answer);

}  // namespace poise
