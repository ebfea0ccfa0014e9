/// From summary statistics to a selection model: whether the matrix is one of correlations, and what selection problems
/// of every kind share.
#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include "models/selection/cholesky.hpp"
#include "models/selection/correlation_checks.hpp"
#include "models/selection/read_selection.hpp"
#include "models/selection/selection_problem.hpp"

namespace poise {

namespace {

/// Squared correlation from which columns are the same to rounding.
constexpr double kSame = 1.0 - 1e-10;

/// Names of variants may repeat, as those of multiallelic ones do: the second is given a number, and so on.
std::vector<std::string> distinct_names(std::vector<std::string> names, std::vector<std::string>& notes) {
  std::unordered_map<std::string, std::size_t> seen;
  for (const std::string& name : names) seen.emplace(name, 0);
  std::vector<std::string> changed;
  for (std::string& name : names) {
    std::size_t& count = seen[name];
    if (count++ == 0) continue;
    std::string other;
    do {
      other = fmt::format("{}_{}", name, count);
      if (seen.contains(other)) ++count;
    } while (seen.contains(other));
    changed.push_back(other);
    name = other;
  }
  for (const std::string& name : changed) seen.emplace(name, 1);
  if (!changed.empty()) {
    notes.push_back(fmt::format("{} with a name that occurs before {} given a number: {}",
                                changed.size() == 1 ? "one variant" : fmt::format("{} variants", changed.size()),
                                changed.size() == 1 ? "was" : "were", some_of(changed)));
  }
  return names;
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

/// The same of X'X, by the correlations in it.
void shrink_products(DenseCrossProducts& products, const std::string& source, SelectionProblem& problem) {
  const Index p = products.size();
  if (p > kMostFactored) {
    products.doubt();
    return;
  }
  DenseCrossProducts r(p);
  const std::vector<double>& squares = products.diagonal();
  for (Index k = 0; k < p; ++k) {
    for (Index j = 0; j < p; ++j) {
      const double size = std::sqrt(squares[j] * squares[k]);
      r.row(k)[j] = j == k ? 1.0 : size > 0.0 ? products.row(k)[j] / size : 0.0;
    }
  }
  r.finish();
  const double kept = 1.0 - make_positive(r, source, problem);
  for (Index k = 0; k < p && kept < 1.0; ++k) {
    for (Index j = 0; j < p; ++j) products.row(k)[j] *= j == k ? 1.0 : kept;
  }
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

void make_law(SelectionProblem& problem, SelectionData data, const SelectionPrior& prior,
              const std::vector<Index>& unusable) {
  std::vector<std::string> names;
  for (const Index j : unusable) {
    names.push_back(problem.names[j]);
    if (std::find(prior.always.begin(), prior.always.end(), problem.names[j]) != prior.always.end()) {
      throw InputError(
          fmt::format("always: found {}, which is constant, expected a variable that varies", quote(problem.names[j])));
    }
  }
  if (!unusable.empty()) {
    problem.notes.push_back(fmt::format("{} {} constant and cannot explain anything, so {} left out: {}", names.size(),
                                        names.size() == 1 ? "column is" : "columns are",
                                        names.size() == 1 ? "it is" : "they are", some_of(names)));
  }
  problem.law = std::make_shared<const SelectionLaw>(std::move(data), prior, problem.names, unusable);
}

std::shared_ptr<const SelectionProblem> cross_product_problem(CrossProductTable table, const SelectionPrior& prior) {
  auto problem = std::make_shared<SelectionProblem>();
  problem->name = "selection by X'X";
  problem->response = "y";
  problem->names = std::move(table.names);
  check_names(problem->names, table.xtx.source);
  const std::size_t p = problem->names.size();
  check_size(table.xtx, p, "X'y");
  if (!table.xtx.column_start.empty()) make_dense(table.xtx);
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
  shrink_products(*products, table.xtx.source, *problem);
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
  const std::size_t p = table.z.size();
  follow_names(correlations, table, problem->notes);
  problem->names = distinct_names(table.names, problem->notes);
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
  if (!correlations.column_start.empty()) {
    check_size(correlations, p, table.source);
    add_other_triangle(correlations);
    check_sparse(correlations, table.names);
    // Entries that were cut off may leave a matrix that is not positive semidefinite, which whole ones are checked for.
    if (p <= kMostFactored) make_dense(correlations);
  }
  if (!correlations.file.empty()) {
    data.products = map_correlations(correlations.file, static_cast<Index>(p), squares);
  } else if (!correlations.column_start.empty()) {
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
    note_same(*r, problem->names, problem->notes);
    if (p <= kMostFactored) make_positive(*r, correlations.source, *problem);
    problem->correlations = r;
    auto scaled = std::make_shared<DenseCrossProducts>(static_cast<Index>(p));
    for (Index k = 0; k < p; ++k) {
      for (Index j = 0; j < p; ++j) scaled->row(k)[j] = squares * r->row(k)[j];
    }
    scaled->finish();
    if (p > kMostFactored) scaled->doubt();
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
