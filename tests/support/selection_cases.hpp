/// Small selection problems of every prior, and their posterior by a second way: dense algebra, one model at a time.
#pragma once

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include <poise/selection.hpp>
#include "models/selection/selection_problem.hpp"

namespace poise::testing {

/// Columns that share a common part, so that they are correlated, and a response of two of them.
inline RegressionTable drawn_table(std::size_t n, Index p, std::uint64_t seed, double shared = 0.7) {
  RegressionTable table;
  Rng rng(seed, 1);
  std::vector<double> common(n);
  for (double& value : common) value = rng.normal();
  for (Index j = 0; j < p; ++j) {
    table.names.push_back("v" + std::to_string(j));
    for (std::size_t i = 0; i < n; ++i) table.x.push_back(shared * common[i] + rng.normal() + 3.0);
  }
  for (std::size_t i = 0; i < n; ++i) {
    table.y.push_back(0.5 * table.x[i] - 0.4 * table.x[n * (p / 2) + i] + rng.normal() + 10.0);
  }
  return table;
}

struct SelectionCase {
  std::string name;
  SelectionPrior prior;
  bool small_table = false;  ///< fewer observations than variables
};

inline std::vector<SelectionCase> selection_cases() {
  std::vector<SelectionCase> cases(1, {"default", {}});
  const auto add = [&](std::string name) -> SelectionPrior& {
    cases.push_back({std::move(name), {}});
    return cases.back().prior;
  };
  add("inclusion").inclusion = 0.3;
  add("slab").slab_variances = {2.0};
  add("several slabs").slab_variances = {0.01, 0.2, 5.0};
  add("known variance").residual_variance = 1.3;
  {
    SelectionPrior& prior = add("beta-binomial");
    prior.beta_a = 1.0;
    prior.beta_b = 4.0;
  }
  {
    SelectionPrior& prior = add("g-prior");
    prior.slab = Slab::g;
    prior.inclusion = 0.2;
  }
  {
    SelectionPrior& prior = add("several g, known variance");
    prior.slab = Slab::g;
    prior.slab_variances = {5.0, 50.0};
    prior.residual_variance = 0.8;
  }
  add("always").always = {"v1", "v3"};
  {
    SelectionPrior& prior = add("one by one");
    prior.inclusions = {0.1, 0.9, 0.0, 0.5, 1.0, 0.3, 0.2};
    prior.slab_variances = {0.5};
  }
  cases.push_back({"more variables than rows", {}, true});
  {
    SelectionPrior& prior = add("g-prior of more variables than rows");
    prior.slab = Slab::g;
    cases.back().small_table = true;
  }
  return cases;
}

inline std::shared_ptr<const SelectionProblem> make_case(const SelectionCase& one, Index p) {
  SelectionPrior prior = one.prior;
  if (!prior.inclusions.empty()) prior.inclusions.resize(p, 0.4);
  // In few rows columns with a common part are nearly dependent, and digits are lost whatever the algebra.
  const RegressionTable table = one.small_table ? drawn_table(p - 1, p, 5, 0.0) : drawn_table(40, p, 5);
  return regression_problem(table, Scaling::standard, prior);
}

/// log det of a symmetric matrix by Gaussian elimination, and the solution of M x = b; nothing where M is singular.
struct Solved {
  double log_det = 0.0;
  std::vector<double> x;
};
inline std::optional<Solved> solve_dense(std::vector<std::vector<double>> m, std::vector<double> b) {
  Solved out;
  const std::size_t s = b.size();
  for (std::size_t k = 0; k < s; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k; i < s; ++i) pivot = std::abs(m[i][k]) > std::abs(m[pivot][k]) ? i : pivot;
    if (std::abs(m[pivot][k]) < 1e-8) return std::nullopt;
    std::swap(m[pivot], m[k]);
    std::swap(b[pivot], b[k]);
    out.log_det += std::log(std::abs(m[k][k]));
    for (std::size_t i = k + 1; i < s; ++i) {
      const double factor = m[i][k] / m[k][k];
      for (std::size_t j = k; j < s; ++j) m[i][j] -= factor * m[k][j];
      b[i] -= factor * b[k];
    }
  }
  out.x.resize(s);
  for (std::size_t k = s; k-- > 0;) {
    double sum = b[k];
    for (std::size_t j = k + 1; j < s; ++j) sum -= m[k][j] * out.x[j];
    out.x[k] = sum / m[k][k];
  }
  return out;
}

/// log p of a set up to a constant, from X'X, X'y, y'y and n and the words of the prior.
class SelectionOracle {
 public:
  SelectionOracle(const SelectionProblem& problem, SelectionPrior prior)
      : law_(*problem.law), prior_(std::move(prior)), names_(problem.names) {
    const auto p = static_cast<double>(names_.size());
    inclusion_.assign(names_.size(), prior_.inclusion.value_or(1.0 / p));
    if (!prior_.inclusions.empty()) inclusion_ = prior_.inclusions;
    inclusion_.resize(names_.size(), 0.4);
    for (const std::string& name : prior_.always) {
      for (std::size_t j = 0; j < names_.size(); ++j) {
        if (names_[j] == name) inclusion_[j] = 1.0;
      }
    }
    if (prior_.slab_variances.empty()) prior_.slab_variances = {prior_.slab == Slab::g ? law_.observations() : 0.2};
  }

  [[nodiscard]] double log_prob(const std::vector<Value>& x) const {
    double most = kMinusInfinity;
    std::vector<double> logs;
    for (const double variance : prior_.slab_variances) logs.push_back(log_likelihood(x, variance));
    for (const double log : logs) most = std::max(most, log);
    if (most == kMinusInfinity) return most;
    double sum = 0.0;
    for (const double log : logs) sum += std::exp(log - most) / static_cast<double>(logs.size());
    return log_prior(x) + most + std::log(sum);
  }

 private:
  [[nodiscard]] double log_prior(const std::vector<Value>& x) const {
    double sum = 0.0;
    double free = 0.0;
    double included = 0.0;
    for (std::size_t j = 0; j < x.size(); ++j) {
      const bool fixed = inclusion_[j] == 0.0 || inclusion_[j] == 1.0;
      if (fixed && x[j] != static_cast<Value>(inclusion_[j])) return kMinusInfinity;
      if (fixed) continue;
      free += 1.0;
      included += x[j];
      if (!prior_.beta_a) sum += std::log(x[j] > 0 ? inclusion_[j] : 1.0 - inclusion_[j]);
    }
    if (!prior_.beta_a) return sum;
    const double a = *prior_.beta_a;
    const double b = *prior_.beta_b;
    return std::lgamma(a + included) + std::lgamma(b + free - included) - std::lgamma(a + b + free) -
           (std::lgamma(a) + std::lgamma(b) - std::lgamma(a + b));
  }

  [[nodiscard]] double log_likelihood(const std::vector<Value>& x, double variance) const {
    std::vector<Index> set;
    for (Index j = 0; j < x.size(); ++j) {
      if (x[j] > 0) set.push_back(j);
    }
    const bool g = prior_.slab == Slab::g;
    std::vector<std::vector<double>> m(set.size(), std::vector<double>(set.size()));
    std::vector<double> xty;
    for (std::size_t i = 0; i < set.size(); ++i) {
      for (std::size_t k = 0; k < set.size(); ++k) m[i][k] = law_.products().column(set[i]).at(set[k]);
      if (!g) m[i][i] += 1.0 / variance;
      xty.push_back(law_.xty()[set[i]]);
    }
    const std::optional<Solved> solved = solve_dense(m, xty);
    if (!solved) return kMinusInfinity;
    double fitted = 0.0;
    for (std::size_t i = 0; i < set.size(); ++i) fitted += solved->x[i] * xty[i];
    const auto s = static_cast<double>(set.size());
    if (g) fitted *= variance / (1.0 + variance);
    const double volume = g ? -0.5 * s * std::log1p(variance) : -0.5 * (s * std::log(variance) + solved->log_det);
    if (prior_.residual_variance) return volume + fitted / (2.0 * *prior_.residual_variance);
    return volume - 0.5 * law_.observations() * std::log1p(-fitted / law_.yty());
  }

  const SelectionLaw& law_;
  SelectionPrior prior_;
  std::vector<std::string> names_;
  std::vector<double> inclusion_;
};

}  // namespace poise::testing
