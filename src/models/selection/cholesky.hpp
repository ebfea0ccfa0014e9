/// Cholesky factors of correlation matrices: whether a matrix is positive definite, and its inverse's diagonal.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include <poise/types.hpp>
#include "models/selection/cross_products.hpp"

namespace poise {

/// A lower triangle by rows, each padded to whole lines.
class LowerTriangle {
 public:
  explicit LowerTriangle(Index size) : size_(size), stride_(8 * lines_of(size)), values_(lines_of(size) * size) {}
  [[nodiscard]] double* row(Index i) { return numbers_of(values_) + stride_ * i; }
  [[nodiscard]] const double* row(Index i) const { return numbers_of(values_) + stride_ * i; }
  [[nodiscard]] Index size() const { return size_; }

 private:
  Index size_;
  std::size_t stride_;
  LineVector values_;
};

/// The factor L of (1 - s) R + s I = L L', where R is given by its entries; nothing where there is none, a pivot being
/// below `least`.
[[nodiscard]] std::optional<LowerTriangle> cholesky(const DenseCrossProducts& r, double shrinkage, double least);

/// x with L x = b.
[[nodiscard]] std::vector<double> solve_lower(const LowerTriangle& l, std::vector<double> b);
/// The inverse of L.
[[nodiscard]] LowerTriangle inverse_of(const LowerTriangle& l);

}  // namespace poise
