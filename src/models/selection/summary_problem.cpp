/// From summary statistics to a selection model: whether the matrix is one of correlations, and what selection problems
/// of every kind share.
#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include "models/selection/cholesky.hpp"
#include "models/selection/read_selection.hpp"
#include "models/selection/selection_problem.hpp"

namespace poise {

namespace {

/// Squared correlation from which columns are the same to rounding.
constexpr double kSame = 1.0 - 1e-10;
/// By how much a correlation may differ from what it must be: files hold a few digits.
constexpr double kSloppy = 1e-3;

/// Checks entries of a dense symmetric matrix, which are written into `out`.
void fill_dense(const SymmetricMatrix& matrix, const std::vector<std::string>& names, double most,
                DenseCrossProducts& out) {
  const std::size_t p = names.size();
  for (std::size_t i = 0; i < p; ++i) {
    for (std::size_t j = 0; j < p; ++j) {
      const double entry = matrix.dense[i * p + j];
      if (!std::isfinite(entry)) {
        throw InputError(
            fmt::format("{}: found {} for {} and {}, expected a number", matrix.source, entry, names[i], names[j]));
      }
      if (std::abs(entry) > most) {
        throw InputError(fmt::format("{}: found {} for {} and {}, expected a correlation", matrix.source, entry,
                                     names[i], names[j]));
      }
      const double other = matrix.dense[j * p + i];
      if (std::abs(entry - other) > kSloppy * std::max({1.0, std::abs(entry), std::abs(other)})) {
        throw InputError(
            fmt::format("{}: found {} for {} and {} but {} the other way round, expected a symmetric "
                        "matrix",
                        matrix.source, entry, names[i], names[j], other));
      }
      out.row(static_cast<Index>(i))[j] = 0.5 * (entry + other);
    }
  }
  out.finish();
}

void check_size(const SymmetricMatrix& matrix, std::size_t p, const std::string& of) {
  const bool sparse = !matrix.column_start.empty();
  if (sparse ? matrix.column_start.size() == p + 1 : matrix.dense.size() == p * p) return;
  const double found = sparse ? static_cast<double>(matrix.column_start.size() - 1)
                              : std::sqrt(static_cast<double>(matrix.dense.size()));
  throw InputError(
      fmt::format("{}: found {:.6g} columns, expected {}, one for each variable of {}", matrix.source, found, p, of));
}

void check_sparse(const SymmetricMatrix& matrix, const std::vector<std::string>& names) {
  const std::size_t p = names.size();
  for (std::size_t k = 0; k < p; ++k) {
    if (matrix.column_start[k] > matrix.column_start[k + 1] || matrix.column_start[k + 1] > matrix.rows.size()) {
      throw InputError(fmt::format("{}: found column {} to end before it begins, expected columns one behind the other",
                                   matrix.source, k + 1));
    }
  }
  for (std::size_t e = 0; e < matrix.rows.size(); ++e) {
    const double entry = static_cast<double>(matrix.values[e]);
    if (matrix.rows[e] < p && std::abs(entry) <= 1.0 + kSloppy) continue;
    throw InputError(fmt::format("{}: found {} in row {}, expected a correlation in one of {} rows", matrix.source,
                                 entry, matrix.rows[e] + std::size_t{1}, p));
  }
  // Column by column, the entry of row r is the next one of column r that has not been met yet.
  std::vector<std::size_t> next(matrix.column_start.begin(), matrix.column_start.end() - 1);
  for (std::size_t k = 0; k < p; ++k) {
    bool has_diagonal = false;
    for (std::size_t e = matrix.column_start[k]; e < matrix.column_start[k + 1]; ++e) {
      const std::size_t row = matrix.rows[e];
      const double entry = static_cast<double>(matrix.values[e]);
      if (e > matrix.column_start[k] && row <= matrix.rows[e - 1]) {
        throw InputError(fmt::format("{}: found row {} behind row {} in column {}, expected rows in increasing order",
                                     matrix.source, row + 1, matrix.rows[e - 1] + std::size_t{1}, k + 1));
      }
      const std::size_t there = next[row];
      const bool is_there = there < matrix.column_start[row + 1] && matrix.rows[there] == k;
      if (!is_there && entry == 0.0) continue;  // a zero that is stored on one side
      ++next[row];
      const double other = is_there ? static_cast<double>(matrix.values[there]) : 0.0;
      if (!is_there || std::abs(entry - other) > kSloppy) {
        throw InputError(
            fmt::format("{}: found {} for {} and {} but {} the other way round, expected a symmetric "
                        "matrix, both of its triangles",
                        matrix.source, entry, names[row], names[k], other));
      }
      if (row != k) continue;
      has_diagonal = std::abs(entry - 1.0) <= kSloppy;
    }
    if (!has_diagonal) {
      throw InputError(fmt::format("{}: found no 1 on the diagonal for {}, expected one", matrix.source, names[k]));
    }
  }
}

/// Shrinks R towards the identity until it is positive definite; gives by how much.
double make_positive(DenseCrossProducts& r, const std::string& source, SelectionProblem& problem) {
  constexpr double kRounding = 1e-10;  // of a pivot that is zero: R of fewer observations than variables has those
  for (const double shrinkage : {0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3}) {
    if (!cholesky(r, shrinkage + kRounding, 0.0)) continue;
    if (shrinkage == 0.0) return 0.0;
    for (Index k = 0; k < r.size(); ++k) {
      for (Index j = 0; j < r.size(); ++j) r.row(k)[j] *= j == k ? 1.0 : 1.0 - shrinkage;
    }
    const std::string sentence = fmt::format(
        "{} is not positive semidefinite, so no data can have it; correlations were shrunk by {:g} to make "
        "it so",
        source, shrinkage);
    if (shrinkage < 0.01) {
      problem.notes.push_back(sentence);
    } else {
      problem.doubts.push_back(sentence);
    }
    return shrinkage;
  }
  throw InputError(
      fmt::format("{}: found a matrix that is far from positive semidefinite, expected correlations", source));
}

}  // namespace

std::string some_of(const std::vector<std::string>& names, std::size_t most) {
  const std::size_t shown = names.size() > most + 1 ? most : names.size();
  std::string out;
  for (std::size_t k = 0; k < shown; ++k) {
    out += (k == 0 ? "" : k + 1 == names.size() ? " and " : ", ") + names[k];
  }
  return shown == names.size() ? out : fmt::format("{} and {} others", out, names.size() - shown);
}

void check_names(const std::vector<std::string>& names, const std::string& source) {
  std::unordered_map<std::string, std::size_t> seen;
  for (std::size_t j = 0; j < names.size(); ++j) {
    const auto [place, fresh] = seen.emplace(names[j], j);
    if (!fresh) {
      throw InputError(fmt::format("{}: found the name {} for columns {} and {}, expected names that differ", source,
                                   quote(names[j]), place->second + 1, j + 1));
    }
  }
}

void note_same(const CrossProducts& products, const std::vector<std::string>& names, std::vector<std::string>& notes) {
  std::vector<std::string> pairs;
  const std::vector<double>& diagonal = products.diagonal();
  for (Index k = 0; k < products.size(); ++k) {
    if (!(diagonal[k] > 0.0)) continue;
    const CrossColumn column = products.column(k);
    for (Index j = std::max(column.first, k + 1); j < std::min(products.size(), column.first + column.count); ++j) {
      const double entry = column.at(j);
      if (entry * entry > kSame * diagonal[j] * diagonal[k] && diagonal[j] > 0.0) {
        pairs.push_back(fmt::format("{} and {}", names[k], names[j]));
        break;
      }
    }
  }
  if (pairs.empty()) return;
  notes.push_back(fmt::format(
      "{} {} perfectly correlated, so data cannot tell them apart and their probabilities are "
      "shared: {}",
      pairs.size(), pairs.size() == 1 ? "pair of variables is" : "variables have others with which they are",
      some_of(pairs)));
}

void make_law(SelectionProblem& problem, SelectionData data, SelectionPrior prior, const std::vector<Index>& unusable) {
  if (!unusable.empty()) {
    std::vector<std::string> names;
    const double usual = 1.0 / static_cast<double>(std::max<std::size_t>(2, problem.names.size()));
    if (prior.inclusions.empty()) prior.inclusions.assign(problem.names.size(), prior.inclusion.value_or(usual));
    for (const Index j : unusable) {
      names.push_back(problem.names[j]);
      if (std::find(prior.always.begin(), prior.always.end(), problem.names[j]) != prior.always.end()) {
        throw InputError(fmt::format("always: found {}, which is constant, expected a variable that varies",
                                     quote(problem.names[j])));
      }
      if (j < prior.inclusions.size()) prior.inclusions[j] = 0.0;
    }
    problem.notes.push_back(fmt::format("{} {} constant and cannot explain anything, so {} left out: {}", names.size(),
                                        names.size() == 1 ? "column is" : "columns are",
                                        names.size() == 1 ? "it is" : "they are", some_of(names)));
  }
  problem.law = std::make_shared<const SelectionLaw>(std::move(data), prior, problem.names);
}

std::shared_ptr<const SelectionProblem> cross_product_problem(CrossProductTable table, const SelectionPrior& prior) {
  auto problem = std::make_shared<SelectionProblem>();
  problem->name = "selection by X'X";
  problem->response = "y";
  problem->names = std::move(table.names);
  check_names(problem->names, table.xtx.source);
  const std::size_t p = problem->names.size();
  check_size(table.xtx, p, "X'y");
  if (table.xty.size() != p) {
    throw InputError(fmt::format("X'y: found {} numbers, expected {}, one for each variable", table.xty.size(), p));
  }
  for (std::size_t j = 0; j < p; ++j) {
    if (!std::isfinite(table.xty[j])) {
      throw InputError(fmt::format("X'y: found {} for {}, expected a number", table.xty[j], problem->names[j]));
    }
  }
  if (!(table.yty > 0.0) || !std::isfinite(table.yty)) {
    throw InputError(fmt::format("y'y: found {}, expected a positive number", table.yty));
  }
  if (!(table.n > 2.0)) throw InputError(fmt::format("n: found {}, expected more than 2 observations", table.n));
  auto products = std::make_shared<DenseCrossProducts>(static_cast<Index>(p));
  fill_dense(table.xtx, problem->names, std::numeric_limits<double>::infinity(), *products);
  std::vector<Index> constant;
  for (Index j = 0; j < p; ++j) {
    const double square = products->diagonal()[j];
    if (square < 0.0) {
      throw InputError(fmt::format("{}: found {} on the diagonal for {}, expected a sum of squares", table.xtx.source,
                                   square, problem->names[j]));
    }
    if (square == 0.0) constant.push_back(j);
    if (table.xty[j] * table.xty[j] > (1.0 + kSloppy) * square * table.yty) {
      throw InputError(
          fmt::format("X'y: found {} for {}, more than its X'X of {} and y'y of {} allow: they do not "
                      "belong together",
                      table.xty[j], problem->names[j], square, table.yty));
    }
  }
  note_same(*products, problem->names, problem->notes);
  problem->centre.assign(p, 0.0);
  problem->scale.assign(p, 1.0);
  SelectionData data{products, std::move(table.xty), table.yty, table.n - 1.0, prior.residual_variance};
  make_law(*problem, std::move(data), prior, constant);
  return problem;
}

std::shared_ptr<const SelectionProblem> summary_problem(SummaryTable table, SymmetricMatrix correlations,
                                                        const SelectionPrior& prior) {
  auto problem = std::make_shared<SelectionProblem>();
  problem->name = fmt::format("fine-mapping of {}", table.source);
  problem->response = "z";
  problem->names = table.names;
  check_names(problem->names, table.source);
  const std::size_t p = table.z.size();
  if (p == 0) throw InputError(fmt::format("{}: found no z scores, expected some", table.source));
  for (std::size_t j = 0; j < p; ++j) {
    if (!std::isfinite(table.z[j])) {
      throw InputError(
          fmt::format("{}: found a z score of {} for {}, expected a number; leave out variants without "
                      "one, here and in {}",
                      table.source, table.z[j], table.names[j], correlations.source));
    }
  }
  if (table.n && !(*table.n > 2.0 && std::isfinite(*table.n))) {
    throw InputError(fmt::format("n: found {}, expected a sample size of more than 2", *table.n));
  }
  const double squares = table.n ? *table.n - 1.0 : 1.0;
  SelectionData data;
  std::vector<double> diagonal;
  if (!correlations.file.empty()) {
    data.products = map_correlations(correlations.file, static_cast<Index>(p), squares);
  } else if (!correlations.column_start.empty()) {
    check_size(correlations, p, table.source);
    check_sparse(correlations, table.names);
    data.products = std::make_shared<SparseCrossProducts>(
        SparseColumns{std::move(correlations.column_start), std::move(correlations.rows),
                      std::move(correlations.values)},
        squares, kCacheBytes);
  } else {
    check_size(correlations, p, table.source);
    auto r = std::make_shared<DenseCrossProducts>(static_cast<Index>(p));
    fill_dense(correlations, table.names, 1.0 + kSloppy, *r);
    correlations.dense = {};
    for (Index j = 0; j < p; ++j) {
      if (std::abs(r->diagonal()[j] - 1.0) > kSloppy) {
        throw InputError(fmt::format("{}: found {} on the diagonal for {}, expected 1", correlations.source,
                                     r->diagonal()[j], table.names[j]));
      }
      r->row(j)[j] = 1.0;
    }
    r->finish();
    note_same(*r, table.names, problem->notes);
    if (p <= kMostFactored) make_positive(*r, correlations.source, *problem);
    problem->correlations = r;
    auto scaled = std::make_shared<DenseCrossProducts>(static_cast<Index>(p));
    for (Index k = 0; k < p; ++k) {
      for (Index j = 0; j < p; ++j) scaled->row(k)[j] = squares * r->row(k)[j];
    }
    scaled->finish();
    data.products = scaled;
  }
  if (table.n) {
    // z of a regression of one variable, as the correlation of that variable with y.
    for (const double z : table.z) data.xty.push_back(squares * z / std::sqrt(z * z + *table.n - 2.0));
    data.yty = squares;
    data.observations = squares;
    data.residual_variance = prior.residual_variance;
  } else {
    data.xty = table.z;
    data.yty = 1.0;
    data.residual_variance = prior.residual_variance.value_or(1.0);
    problem->notes.emplace_back("without n effects are taken to be small: z scores with R as their covariance");
  }
  problem->centre.assign(p, 0.0);
  problem->scale.assign(p, 1.0);
  problem->summary = std::move(table);
  make_law(*problem, std::move(data), prior, {});
  return problem;
}

}  // namespace poise
