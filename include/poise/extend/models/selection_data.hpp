/// Data and priors of variable selection, and the models made from them: what `<poise/selection.hpp>` answers questions
/// about.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

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
  /// Of the columns, where they are known: those of the z scores, in any order.
  std::vector<std::string> names;
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
  bool is_numbered = false;  ///< the file has no names
};

/// Reads z scores: FINEMAP's .z file (rsid chromosome position allele1 allele2 maf beta se), or any table with a head
/// that has a column z, or beta and se; numbers alone, a line each, or a .npy file. Gzip files are unpacked.
[[nodiscard]] SummaryTable read_summary(const std::string& path);
[[nodiscard]] SummaryTable read_summary(std::string_view text, const std::string& name);
/// Reads correlations: a .npy file, FINEMAP's .ld file (numbers in rows, also with names), or a .npz file of SciPy's
/// sparse matrices. Gzip files are unpacked. Large .npy files stay where they are.
[[nodiscard]] SymmetricMatrix read_correlations(const std::string& path);
[[nodiscard]] SymmetricMatrix read_correlations(std::string_view bytes, const std::string& name);

/// Reads prior probabilities of inclusion, one for each of these variables: a table with a head whose first column has
/// the names, and a column prob, prior, inclusion or pip.
[[nodiscard]] std::vector<double> read_inclusions(const std::string& path, const std::vector<std::string>& names);

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

}  // namespace poise
