/// A matrix of floats laid out for products with sixteen columns at a time, one column per chain.
///
/// Every product is fused with its sum, and every sum is taken in the same order: a column gives the same bits alone
/// and in company, on every processor.
#pragma once

#include <cstddef>
#include <vector>

namespace poise {

class PackedMatrix {
 public:
  static constexpr std::size_t kRows = 8;      ///< taken at a time; rows are padded with zeros to a multiple
  static constexpr std::size_t kColumns = 16;  ///< of the other factor

  PackedMatrix() = default;
  /// All zeros; `set` fills it.
  PackedMatrix(std::size_t rows, std::size_t columns);

  void set(std::size_t row, std::size_t column, float value) {
    packed_[(row / kRows * columns_ + column) * kRows + row % kRows] = value;
  }
  /// Rows with their padding: what `out` must have room for.
  [[nodiscard]] std::size_t padded_rows() const { return (rows_ + kRows - 1) / kRows * kRows; }

  /// out[row][lane] = sum over columns of this[row][column] * in[column][lane], sixteen lanes.
  void multiply(const float* in, float* out) const;
  /// The same with one lane.
  void multiply_column(const float* in, float* out) const;

 private:
  std::size_t rows_ = 0;
  std::size_t columns_ = 0;
  std::vector<float> packed_;  // [block of kRows rows][column][row of the block]
};

}  // namespace poise
