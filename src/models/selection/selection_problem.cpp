/// From tables to a selection model: scaling, and what is wrong with the data.
#include "models/selection/selection_problem.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include <poise/extend/models/describe_model.hpp>
#include "models/selection/read_selection.hpp"

namespace poise {

namespace {

/// Variables up to which X'X is formed: 8 MiB a thousand of them squared.
constexpr Index kMostFormed = 4096;
/// A column whose variation is this part of its size or less is constant but for rounding.
constexpr double kConstant = 1e-12;
/// Included variables that chains start with at most, and the usual number of them.
constexpr std::size_t kMostAtStart = 10;

/// Squares must neither overflow nor vanish.
void check_squares(double squares, double largest, const std::string& source, const std::string& column) {
  constexpr double kLeast = 1e-140;
  constexpr double kMost = 1e140;
  if (std::isfinite(squares) && largest < kMost && (largest > kLeast || largest == 0.0)) return;
  throw InputError(
      fmt::format("{}: found values of up to {:.3g} in column {}, expected units in which squares can be "
                  "summed (1e-140 to 1e140)",
                  source, largest, quote(column)));
}

/// Centres and scales the columns of a table; gives the constant ones.
std::vector<Index> scale_columns(const RegressionTable& table, Scaling scaling, ColumnTable& out,
                                 SelectionProblem& problem) {
  const std::size_t n = table.y.size();
  std::vector<Index> constant;
  for (std::size_t j = 0; j < table.names.size(); ++j) {
    const double* const from = table.x.data() + j * n;
    const std::span<double> to = out.column(j);
    double mean = 0.0;
    double largest = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
      if (!std::isfinite(from[i])) {
        throw InputError(
            fmt::format("{}: found {} in row {} of column {}, expected a number; leave out rows with "
                        "missing values, or fill them in",
                        table.source, from[i], i + 1, quote(table.names[j])));
      }
      mean += from[i] / static_cast<double>(n);
      largest = std::max(largest, std::abs(from[i]));
    }
    if (scaling == Scaling::none) mean = 0.0;
    double squares = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
      to[i] = from[i] - mean;
      squares += to[i] * to[i];
    }
    const double deviation = std::sqrt(squares / static_cast<double>(n - 1));
    check_squares(squares, largest, table.source, table.names[j]);
    const bool is_constant = !(deviation > kConstant * largest);
    if (is_constant) {
      constant.push_back(static_cast<Index>(j));
      std::fill(to.begin(), to.end(), 0.0);
    }
    const double scale = scaling == Scaling::standard && !is_constant ? deviation : 1.0;
    for (double& value : to) value /= scale;
    problem.centre.push_back(mean);
    problem.scale.push_back(scale);
  }
  return constant;
}

std::shared_ptr<const CrossProducts> products_of(const std::shared_ptr<const ColumnTable>& table, Index p) {
  // With more variables than formed ones, or X thinner by far, columns of X'X are computed when they are wanted.
  if (p > kMostFormed && table->rows < p) return std::make_shared<ThinCrossProducts>(table, p, kCacheBytes);
  auto products = std::make_shared<DenseCrossProducts>(p);
  for (Index k = 0; k < p; ++k) {
    for (Index j = 0; j <= k; ++j) {
      const double product = padded_product(table->column(j).data(), table->column(k).data(), table->stride);
      products->row(k)[j] = product;
      products->row(j)[k] = product;
    }
  }
  products->finish();
  return products;
}

/// A column that is the response itself is a mistake where it has its name, and worth a note elsewhere.
void check_response(const SelectionData& data, SelectionProblem& problem, const std::string& source) {
  std::vector<std::string> same;
  for (Index j = 0; j < problem.names.size(); ++j) {
    const double square = data.products->diagonal()[j] * data.yty;
    if (!(data.xty[j] * data.xty[j] > (1.0 - 1e-12) * square) || square == 0.0) continue;
    if (problem.names[j] == problem.response) {
      throw InputError(
          fmt::format("{}: found the response {} among the columns that are to explain it, expected it "
                      "left out",
                      source, quote(problem.names[j])));
    }
    same.push_back(problem.names[j]);
  }
  if (!same.empty()) {
    problem.notes.push_back(fmt::format("{} {} the response but for units, and leave{} nothing for others to explain",
                                        some_of(same), same.size() == 1 ? "is" : "are", same.size() == 1 ? "s" : ""));
  }
}

}  // namespace

double SelectionProblem::correlation(Index i, Index j) const {
  const std::vector<double>& diagonal = law->products().diagonal();
  const double size = std::sqrt(diagonal[i] * diagonal[j]);
  return size > 0.0 ? law->products().entry(j, i) / size : 0.0;
}

std::shared_ptr<const SelectionProblem> regression_problem(RegressionTable table, Scaling scaling,
                                                           const SelectionPrior& prior) {
  auto problem = std::make_shared<SelectionProblem>();
  const std::size_t n = table.y.size();
  const auto p = static_cast<Index>(table.names.size());
  problem->name = fmt::format("selection of {}", table.source);
  problem->response = table.response;
  problem->names = table.names;
  check_names(problem->names, table.source);
  if (p == 0) throw InputError(fmt::format("{}: found no columns beside the response, expected some", table.source));
  if (n < 3) throw InputError(fmt::format("{}: found {} rows, expected at least 3", table.source, n));
  if (table.x.size() != n * p) {
    throw InputError(fmt::format("{}: found {} numbers for {} rows of {} columns, expected {}", table.source,
                                 table.x.size(), n, p, n * p));
  }
  const auto x = std::make_shared<ColumnTable>(n, p);
  const std::vector<Index> constant = scale_columns(table, scaling, *x, *problem);
  table.x = {};
  ColumnTable y(n, 1);
  double mean = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!std::isfinite(table.y[i])) {
      throw InputError(fmt::format("{}: found {} in row {} of the response {}, expected a number", table.source,
                                   table.y[i], i + 1, quote(table.response)));
    }
    mean += table.y[i] / static_cast<double>(n);
  }
  if (scaling == Scaling::none) mean = 0.0;
  for (std::size_t i = 0; i < n; ++i) y.column(0)[i] = table.y[i] - mean;
  problem->response_centre = mean;

  SelectionData data;
  data.products = products_of(x, p);
  for (Index j = 0; j < p; ++j) {
    data.xty.push_back(padded_product(x->column(j).data(), y.column(0).data(), x->stride));
  }
  data.yty = padded_product(y.column(0).data(), y.column(0).data(), y.stride);
  data.observations = static_cast<double>(scaling == Scaling::none ? n : n - 1);
  data.residual_variance = prior.residual_variance;
  const double largest = std::abs(
      *std::max_element(table.y.begin(), table.y.end(), [](double a, double b) { return std::abs(a) < std::abs(b); }));
  check_squares(data.yty, largest, table.source, table.response);
  if (!(data.yty > kConstant * kConstant * largest * largest * static_cast<double>(n))) {
    throw InputError(fmt::format("{}: found the response {} constant, expected one that varies", table.source,
                                 quote(table.response)));
  }
  check_response(data, *problem, table.source);
  if (p <= kMostFactored) note_same(*data.products, problem->names, problem->notes);
  make_law(*problem, std::move(data), prior, constant);
  return problem;
}

Model selection_model(const std::shared_ptr<const SelectionProblem>& problem) {
  const auto target = std::make_shared<const SelectionTarget>(problem->law);
  VariableLayout layout;
  layout.names = problem->names;
  Model model = describe_model(problem->name, *target, std::move(layout));
  model.description = target;
  for (Index j = 0; j < problem->law->size(); ++j) {
    if (!problem->law->is_fixed(j)) continue;
    model.possible_levels.resize(problem->law->size(), 2);
    model.possible_levels[j] = 1;
  }
  // Few of the variables are likely to be included, and a state costs their number squared.
  model.into_support = [law = problem->law](std::vector<Value> x, Rng rng) {
    std::vector<Index> on;
    for (Index j = 0; j < law->size(); ++j) {
      if (x[j] > 0 && !law->is_fixed(j)) on.push_back(j);
      x[j] = law->is_forced(j) ? 1 : 0;
    }
    const std::size_t most = std::min(kMostAtStart, on.size());
    const auto wanted = static_cast<std::size_t>(rng.uniform() * static_cast<double>(most + 1));
    for (std::size_t k = 0; k < wanted; ++k) {
      const auto pick = k + static_cast<std::size_t>(rng.uniform() * static_cast<double>(on.size() - k));
      std::swap(on[k], on[pick]);
      x[on[k]] = 1;
    }
    const SelectionTarget one(law);
    // Under a g-prior columns that depend on each other have no density together.
    for (std::size_t k = wanted; k-- > 0 && !(one.log_prob(one.make_state(x)) > kMinusInfinity);) x[on[k]] = 0;
    return x;
  };
  return model;
}

}  // namespace poise
