/// Products of small matrices of floats with the same bits on every processor.
///
/// Each sum is taken in one order, every product fused with it, whatever the vector width and however many rows are
/// computed together.
#pragma once

#include <cstddef>

namespace poise {

/// Entry (row, k) is at first[row * row_step + k * step].
struct LeftMatrix {
  const float* first;
  std::size_t rows;
  std::size_t row_step;
  std::size_t step;
};

/// Rows one after another, `stride` floats apart.
struct RightMatrix {
  const float* first;
  std::size_t rows;
  std::size_t columns;
  std::size_t stride;
};

/// out += scale * left * right: entry (row, column) of `out`, with the rows `stride` apart, gains the sum over the rows
/// of `right`, in their order.
void add_product(float scale, const LeftMatrix& left, const RightMatrix& right, float* out, std::size_t stride);

/// out += left * right^T: entry (row, j) gains the scalar product of that row of `left` and row j of `right`. Both have
/// `right.columns` columns. Sixteen partial sums of every sixteenth product are added as a balanced tree.
void add_transposed_product(const RightMatrix& left, const RightMatrix& right, float* out, std::size_t stride);

}  // namespace poise
