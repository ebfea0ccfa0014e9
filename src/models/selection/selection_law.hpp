/// Data and prior of a selection model, in the form that odds are computed from.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <poise/extend/models/selection_data.hpp>
#include <poise/types.hpp>
#include "models/selection/cross_products.hpp"

namespace poise {

/// What the likelihood depends on.
struct SelectionData {
  std::shared_ptr<const CrossProducts> products;  ///< X'X
  std::vector<double> xty;
  double yty = 0.0;
  double observations = 0.0;  ///< n, less one where columns were centred
  /// The residual variance of y; where it is given the exponent is r^2 / (2 s2 v).
  std::optional<double> residual_variance;
};

class SelectionLaw {
 public:
  /// Throws an InputError that names everything in the prior that makes no sense for these variables.
  /// `unusable` variables are never included, whatever the prior says.
  SelectionLaw(SelectionData data, const SelectionPrior& prior, const std::vector<std::string>& names,
               const std::vector<Index>& unusable = {});

  [[nodiscard]] Index size() const { return data_.products->size(); }
  /// Numbers in arrays of one for each variable: whole lines.
  [[nodiscard]] std::size_t padded() const { return 8 * lines_of(size()); }
  [[nodiscard]] const CrossProducts& products() const { return *data_.products; }
  [[nodiscard]] const std::vector<double>& xty() const { return data_.xty; }
  [[nodiscard]] double yty() const { return data_.yty; }
  [[nodiscard]] double observations() const { return data_.observations; }
  [[nodiscard]] const std::optional<double>& residual_variance() const { return data_.residual_variance; }

  [[nodiscard]] std::size_t parts() const { return slab_variances_.size(); }
  [[nodiscard]] double slab_variance(std::size_t k) const { return slab_variances_[k]; }
  [[nodiscard]] bool is_g_prior() const { return is_g_prior_; }
  /// l: what is added to the diagonal of X'X; zero with a g-prior.
  [[nodiscard]] double ridge(std::size_t k) const { return is_g_prior_ ? 0.0 : 1.0 / slab_variances_[k]; }
  /// How much of b'X_S'y leaves y'y: all of it, or g / (1 + g).
  [[nodiscard]] double explained(std::size_t k) const { return explained_[k]; }
  /// log of the prior determinant for each included column: log l / 2, or -log(1 + g) / 2.
  [[nodiscard]] double log_slab(std::size_t k) const { return log_slabs_[k]; }
  /// Minus the factor of log v.
  [[nodiscard]] double half() const { return is_g_prior_ ? 0.0 : 0.5; }

  /// Whether a variable is always included, or never.
  [[nodiscard]] bool is_fixed(Index j) const { return fixed_[j] != 0; }
  [[nodiscard]] bool is_forced(Index j) const { return fixed_[j] == kForced; }
  [[nodiscard]] Index num_free() const { return free_; }
  /// Log prior odds of a free variable where `others` other free ones are included: the constant part, and what
  /// depends on the number.
  [[nodiscard]] const double* log_prior() const { return numbers_of(log_prior_); }
  [[nodiscard]] double prior_inclusion(Index j) const { return inclusion_[j]; }
  [[nodiscard]] const double* prior_odds() const { return numbers_of(prior_odds_); }
  [[nodiscard]] double log_prior_of_size(std::size_t others) const {
    return size_odds_.empty() ? 0.0 : size_odds_[others];
  }
  /// log p of a set; -infinity where a forced variable is missing or a forbidden one is in it.
  [[nodiscard]] double log_prior(const std::vector<Value>& x, const std::vector<Index>& active) const;
  /// v of a column of which nothing is left beside the included ones.
  [[nodiscard]] const double* least_v() const { return is_g_prior_ ? numbers_of(least_v_) : nullptr; }
  /// 1 for free variables, 0 for fixed ones and beyond the last.
  [[nodiscard]] const double* free_ones() const { return numbers_of(free_ones_); }
  [[nodiscard]] std::size_t num_forced() const { return forced_.size(); }
  [[nodiscard]] const std::vector<Index>& forced() const { return forced_; }

 private:
  static constexpr std::uint8_t kForced = 1;
  static constexpr std::uint8_t kForbidden = 2;

  SelectionData data_;
  std::vector<double> slab_variances_;
  std::vector<double> log_slabs_;
  bool is_g_prior_ = false;
  std::vector<double> explained_;
  std::vector<std::uint8_t> fixed_;
  std::vector<Index> forced_;
  Index free_ = 0;
  LineVector log_prior_;  // zero for forced variables, which are never outside; -infinity for forbidden ones
  std::vector<double> inclusion_;
  LineVector prior_odds_;
  LineVector free_ones_;
  LineVector least_v_;
  std::vector<double> size_odds_;   // of a beta-binomial prior, by the number of others
  std::vector<double> size_prior_;  // log p of a set, by its number of free variables
  double log_empty_ = 0.0;          // log prior of the empty set
};

}  // namespace poise
