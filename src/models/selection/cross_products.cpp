/// Where columns of X'X come from.
#include "models/selection/cross_products.hpp"

#include <algorithm>

#include <poise/extend/base/hot.hpp>

namespace poise {

double padded_product(const double* a, const double* b, std::size_t padded) {
  return hot([a, b, padded] {
    Doubles8 even{}, odd{};
    std::size_t k = 0;
    for (; k + 16 <= padded; k += 16) {
      even += load8(a + k) * load8(b + k);
      odd += load8(a + k + 8) * load8(b + k + 8);
    }
    if (k < padded) even += load8(a + k) * load8(b + k);
    return sum8(even + odd);
  });
}

DenseCrossProducts::DenseCrossProducts(Index size)
    : size_(size), stride_(8 * lines_of(size)), values_(lines_of(size) * size) {}

void DenseCrossProducts::finish() {
  diagonal_.resize(size_);
  for (Index k = 0; k < size_; ++k) diagonal_[k] = row(k)[k];
}

ThinCrossProducts::ThinCrossProducts(std::shared_ptr<const ColumnTable> table, Index columns, double cache_bytes)
    : table_(std::move(table)), cache_(cache_bytes) {
  diagonal_.resize(columns);
  for (Index k = 0; k < columns; ++k) {
    const double* const x = table_->column(k).data();
    diagonal_[k] = padded_product(x, x, table_->stride);
  }
}

CrossColumn ThinCrossProducts::column(Index k) const {
  return cache_.get(k, [&] {
    const auto made = std::make_shared<LineVector>(lines_of(size()));
    double* const out = numbers_of(*made);
    const double* const x = table_->column(k).data();
    for (Index j = 0; j < size(); ++j) out[j] = padded_product(table_->column(j).data(), x, table_->stride);
    return CrossColumn{k, 0, static_cast<Index>(8 * made->size()), out, made};
  });
}

SparseCrossProducts::SparseCrossProducts(SparseColumns columns, double scale, double cache_bytes)
    : columns_(std::move(columns)), scale_(scale), cache_(cache_bytes) {
  diagonal_.resize(columns_.start.size() - 1, 0.0);
  for (Index k = 0; k < size(); ++k) {
    for (std::size_t e = columns_.start[k]; e < columns_.start[k + 1]; ++e) {
      if (columns_.rows[e] == k) diagonal_[k] = scale_ * static_cast<double>(columns_.values[e]);
    }
  }
}

CrossColumn SparseCrossProducts::column(Index k) const {
  return cache_.get(k, [&] {
    Index least = k;
    Index most = k;
    for (std::size_t e = columns_.start[k]; e < columns_.start[k + 1]; ++e) {
      least = std::min(least, columns_.rows[e]);
      most = std::max(most, columns_.rows[e]);
    }
    const Index first = least / 8 * 8;
    const auto made = std::make_shared<LineVector>(lines_of(most + 1 - first));
    double* const out = numbers_of(*made);
    for (std::size_t e = columns_.start[k]; e < columns_.start[k + 1]; ++e) {
      out[columns_.rows[e] - first] = scale_ * static_cast<double>(columns_.values[e]);
    }
    return CrossColumn{k, first, static_cast<Index>(8 * made->size()), out, made};
  });
}

}  // namespace poise
