/// The matrix products behind first-order ratios.
#pragma once

#include <cstddef>

namespace poise {

/// Weights of eight visible units, [depth][8], times sixteen columns, [depth][16]; `out` is [8][16].
void multiply_rows(const float* packed, const float* panel, std::size_t depth, float* out);

/// The same with one column; each sum is taken in the same order and has the same bits.
void multiply_column(const float* packed, const float* column, std::size_t depth, float* out);

}  // namespace poise
