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

#include <poise/model.hpp>
#include <poise/report.hpp>
#include <poise/run.hpp>

namespace poise {

class OptionVisitor;
class SelectionProblem;

/// The prior of coefficients: independent ones, or a g-prior, whose covariance is that of least squares.
enum class Slab { independent, g };

struct SelectionPrior {
  /// Prior probability of inclusion; none: one over the number of variables. With `beta_a` and `beta_b` it has a beta
  /// distribution and is integrated out.
  std::optional<double> inclusion;
  std::optional<double> beta_a;
  std::optional<double> beta_b;
  /// One probability for each variable in place of `inclusion`: 0 is never included, 1 always.
  std::vector<double> inclusions;
  std::vector<std::string> always;  ///< names of variables that are always included
  Slab slab = Slab::independent;
  /// Variance of a coefficient over that of the residuals, columns scaled as the problem says; g of a g-prior. Several
  /// values are equally likely, and averaged over. Empty: 0.2; the number of observations for g; 50 without n.
  std::vector<double> slab_variances;
  std::optional<double> residual_variance;  ///< where it is known; none: integrated out

  void describe(OptionVisitor& visit);
};

/// Observations: a row each, columns one behind the other.
struct RegressionTable {
  std::vector<std::string> names;  ///< of the columns of x
  std::vector<double> x;
  std::vector<double> y;
  std::string response = "y";
  std::string source = "X";  ///< for messages
};

/// What of the columns of X is made before coefficients have a prior.
enum class Scaling {
  standard,  ///< columns are centred and divided by their standard deviations, y is centred
  centre,    ///< columns and y are centred
  none       ///< all is taken as it is, and there is no intercept
};

/// Reads a table with a head: CSV, or separated by tabs, semicolons or spaces. Columns that are not numbers, and
/// missing values, throw an InputError that names line and column; so does a response that is no column.
[[nodiscard]] RegressionTable read_regression(const std::string& path, const std::string& response);
[[nodiscard]] RegressionTable read_regression(std::string_view text, const std::string& name,
                                              const std::string& response);

/// A symmetric matrix by rows, or by columns that hold the entries that are not zero. One of them is empty.
struct SymmetricMatrix {
  std::vector<double> dense;
  std::vector<std::size_t> column_start;  ///< sparse: of each column, and the end of the last
  std::vector<std::uint32_t> rows;
  std::vector<float> values;
  std::string file;          ///< a .npy file whose rows are read when they are wanted
  std::string source = "R";  ///< for messages
};

/// What fine-mapping starts from.
struct SummaryTable {
  std::vector<std::string> names;
  std::vector<double> z;
  std::optional<double> n;  ///< the sample size
  /// Columns of the file that go with the names, such as chromosome, position and alleles: heads, and a row of words
  /// for each variant.
  std::vector<std::string> extra_heads;
  std::vector<std::vector<std::string>> extra;
  std::string source = "z";
};

/// Reads z scores: FINEMAP's .z file (rsid chromosome position allele1 allele2 maf beta se), or any table with a head
/// that has a column z, or beta and se.
[[nodiscard]] SummaryTable read_summary(const std::string& path);
[[nodiscard]] SummaryTable read_summary(std::string_view text, const std::string& name);
/// Reads correlations: a .npy file, or FINEMAP's .ld file, numbers in rows without a head. Large .npy files stay where
/// they are.
[[nodiscard]] SymmetricMatrix read_correlations(const std::string& path);
[[nodiscard]] SymmetricMatrix read_correlations(std::string_view bytes, const std::string& name);

/// A row of a FINEMAP master file.
struct FinemapInput {
  std::string z, ld, snp, config, cred;
  std::optional<double> n;
};
[[nodiscard]] std::vector<FinemapInput> read_master(const std::string& path);

/// Throws InputError where the data do not allow for a regression; what was set right or left out is in the notes of
/// the answer.
[[nodiscard]] std::shared_ptr<const SelectionProblem> regression_problem(RegressionTable table, Scaling scaling,
                                                                         const SelectionPrior& prior);
/// From X'X (dense), X'y and y'y of centred columns, taken as they are.
struct CrossProductTable {
  std::vector<std::string> names;
  SymmetricMatrix xtx;
  std::vector<double> xty;
  double yty = 0.0;
  double n = 0.0;
};
[[nodiscard]] std::shared_ptr<const SelectionProblem> cross_product_problem(CrossProductTable table,
                                                                            const SelectionPrior& prior);
[[nodiscard]] std::shared_ptr<const SelectionProblem> summary_problem(SummaryTable table, SymmetricMatrix correlations,
                                                                      const SelectionPrior& prior);

/// The same as a model, for every sampler that makes single changes. Chains start with few variables included.
[[nodiscard]] Model selection_model(const std::shared_ptr<const SelectionProblem>& problem);

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

struct SelectHooks {
  std::function<void(const Progress&)> progress;
  const std::atomic<bool>* stop = nullptr;
  Collective* collective = nullptr;
  SelectStart start = SelectStart::mixed;
};

struct SelectedVariable {
  std::string name;
  double prior = 0.0;   ///< P(included)
  double pip = 0.0;     ///< P(included | data)
  double pip_se = 0.0;  ///< its Monte Carlo standard error
  double mean = 0.0;    ///< of the coefficient, zero where it is not included; in units of the table
  double sd = 0.0;
  double low = 0.0;  ///< interval of the coefficient
  double high = 0.0;
};

struct CredibleSet {
  std::vector<Index> variables;  ///< the most probable first
  std::vector<double> share;     ///< of the draws with one of the set, those with this variable
  double mass = 0.0;             ///< P(one of the set is included | data): at least the coverage
  double purity = 0.0;           ///< least absolute correlation within
};

struct SelectedModel {
  std::vector<Index> variables;
  double probability = 0.0;  ///< fraction of draws
  double log_posterior = 0.0;
};

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
  SummaryTable summary;  ///< of fine-mapping: extra columns, z, n
  double coverage = 0.95;
  double seconds = 0.0;
  bool interrupted = false;
};

/// Throws InputError.
[[nodiscard]] SelectionAnswer select(const std::shared_ptr<const SelectionProblem>& problem,
                                     const SelectOptions& options, const SelectHooks& hooks = {});

/// Predictions of the average over models, of rows whose columns have the names of the answer's variables.
/// A table of rows to predict: columns that are not variables of the answer are passed over.
[[nodiscard]] RegressionTable read_rows_to_predict(const std::string& path, const SelectionAnswer& answer);
[[nodiscard]] std::vector<double> predict(const SelectionAnswer& answer, const RegressionTable& rows);

/// Keys: version, model, response, variables[{name, pip, pip_se, mean, sd, low, high}], intercept, sizes[],
/// models[{variables[], probability, log_posterior}], sets[{variables[], share[], mass, purity}], warnings[],
/// notes[], seconds, interrupted, report{}.
[[nodiscard]] nlohmann::json selection_json(const SelectionAnswer& answer);
/// Tables of the `most` most probable variables, the sets and the models.
[[nodiscard]] std::string selection_text(const SelectionAnswer& answer, std::size_t width, std::size_t most);
/// Tables with blanks between, as FINEMAP writes them: variants (.snp), models (.config) and sets (.cred).
[[nodiscard]] std::string finemap_snp(const SelectionAnswer& answer);
[[nodiscard]] std::string finemap_config(const SelectionAnswer& answer);
[[nodiscard]] std::string finemap_cred(const SelectionAnswer& answer);
/// A row for each variable: its name, the extra columns, z, PIP and CREDIBLE_SET, as PolyFun and susieR's users know.
[[nodiscard]] std::string selection_table(const SelectionAnswer& answer);

}  // namespace poise
