/// Compiled with contraction, so that products and sums are fused; on processors without fused instructions the same
/// results are found slowly.
#include "base/matrix_product.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include <poise/extend/base/hot.hpp>

namespace poise {

namespace {

// NOLINTBEGIN(modernize-use-using): the attribute needs the old form
typedef float Floats16 __attribute__((vector_size(64)));
typedef float Floats8 __attribute__((vector_size(32)));
// NOLINTEND(modernize-use-using)

constexpr std::size_t kLanes = 16;  ///< partial sums of a scalar product

template <class Floats>
POISE_INLINE Floats load(const float* from) {
  Floats v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
template <class Floats>
POISE_INLINE void store(float* to, const Floats& v) {
  std::memcpy(to, &v, sizeof v);
}

/// So many rows and so many vectors of columns of the product.
template <class Floats, std::size_t rows, std::size_t vectors>
POISE_INLINE void product_tile(float scale, const float* left, std::size_t row_step, std::size_t step,
                               const float* right, std::size_t right_stride, std::size_t count, float* out,
                               std::size_t stride) {
  constexpr std::size_t lanes = sizeof(Floats) / sizeof(float);
  Floats sums[rows][vectors] = {};
  for (std::size_t k = 0; k < count; ++k, left += step, right += right_stride) {
    Floats b[vectors];
    for (std::size_t v = 0; v < vectors; ++v) b[v] = load<Floats>(right + v * lanes);
    for (std::size_t r = 0; r < rows; ++r) {
      const float a = left[r * row_step];
      for (std::size_t v = 0; v < vectors; ++v) sums[r][v] += a * b[v];
    }
  }
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t v = 0; v < vectors; ++v) {
      float* place = out + r * stride + v * lanes;
      store(place, load<Floats>(place) + scale * sums[r][v]);
    }
  }
}

/// All rows of so many vectors of columns.
template <class Floats, std::size_t rows, std::size_t vectors>
POISE_INLINE void product_panel(float scale, const LeftMatrix& left, const float* right, std::size_t right_stride,
                                std::size_t count, float* out, std::size_t stride) {
  const auto tile = [&]<std::size_t taken>(std::size_t row) __attribute__((always_inline)) {
    product_tile<Floats, taken, vectors>(scale, left.first + row * left.row_step, left.row_step, left.step, right,
                                         right_stride, count, out + row * stride, stride);
  };
  std::size_t row = 0;
  for (; row + rows <= left.rows; row += rows) tile.template operator()<rows>(row);
  if (left.rows - row == 3) return tile.template operator()<3>(row);
  if (left.rows - row == 2) return tile.template operator()<2>(row);
  if (left.rows - row == 1) return tile.template operator()<1>(row);
}

/// The last columns, fewer than a vector has lanes, are copied to where there is room for a vector.
template <class Floats, std::size_t rows, std::size_t vectors>
POISE_INLINE void product(float scale, const LeftMatrix& left, const RightMatrix& right, float* out, std::size_t stride,
                          float* room) {
  constexpr std::size_t lanes = sizeof(Floats) / sizeof(float);
  std::size_t column = 0;
  for (; column + vectors * lanes <= right.columns; column += vectors * lanes) {
    product_panel<Floats, rows, vectors>(scale, left, right.first + column, right.stride, right.rows, out + column,
                                         stride);
  }
  for (; column + lanes <= right.columns; column += lanes) {
    product_panel<Floats, rows, 1>(scale, left, right.first + column, right.stride, right.rows, out + column, stride);
  }
  const std::size_t rest = right.columns - column;
  if (rest == 0) return;
  float* sums = room + right.rows * lanes;
  for (std::size_t k = 0; k < right.rows; ++k) {
    std::memcpy(room + k * lanes, right.first + k * right.stride + column, rest * sizeof(float));
  }
  for (std::size_t row = 0; row < left.rows; ++row) {
    const LeftMatrix one{left.first + row * left.row_step, 1, left.row_step, left.step};
    float* place = out + row * stride + column;
    std::memcpy(sums, place, rest * sizeof(float));
    product_panel<Floats, 1, 1>(scale, one, room, lanes, right.rows, sums, lanes);
    std::memcpy(place, sums, rest * sizeof(float));
  }
}

/// Sixteen partial sums, in one register or two.
struct Wide {
  Floats16 all = {};
  static constexpr std::size_t kRows = 4;
  static constexpr std::size_t kOthers = 4;

  POISE_INLINE static Wide at(const float* from) { return {load<Floats16>(from)}; }
  POISE_INLINE void add(const Wide& a, const Wide& b) { all += a.all * b.all; }
  POISE_INLINE Floats8 folded() const {
    return __builtin_shufflevector(all, all, 0, 1, 2, 3, 4, 5, 6, 7) +
           __builtin_shufflevector(all, all, 8, 9, 10, 11, 12, 13, 14, 15);
  }
};
struct Narrow {
  Floats8 low = {};
  Floats8 high = {};
  static constexpr std::size_t kRows = 2;
  static constexpr std::size_t kOthers = 2;

  POISE_INLINE static Narrow at(const float* from) { return {load<Floats8>(from), load<Floats8>(from + 8)}; }
  POISE_INLINE void add(const Narrow& a, const Narrow& b) {
    low += a.low * b.low;
    high += a.high * b.high;
  }
  POISE_INLINE Floats8 folded() const { return low + high; }
};

POISE_INLINE float sum_of(const Floats8& v) {
  const auto four = v + __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
  const auto two = four + __builtin_shufflevector(four, four, 2, 3, 0, 1, 6, 7, 4, 5);
  return two[0] + two[1];
}

/// Scalar products of some rows with some others.
template <class Sums, std::size_t rows, std::size_t others>
POISE_INLINE void scalar_tile(const float* left, std::size_t left_stride, const float* right, std::size_t right_stride,
                              std::size_t count, float* out, std::size_t stride) {
  Sums sums[rows][others] = {};
  const std::size_t whole = count / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) {
    Sums a[rows];
    for (std::size_t r = 0; r < rows; ++r) a[r] = Sums::at(left + r * left_stride + i);
    for (std::size_t j = 0; j < others; ++j) {
      const Sums b = Sums::at(right + j * right_stride + i);
      for (std::size_t r = 0; r < rows; ++r) sums[r][j].add(a[r], b);
    }
  }
  if (whole < count) {
    float a[rows][kLanes] = {};
    float b[kLanes] = {};
    for (std::size_t r = 0; r < rows; ++r)
      std::copy(left + r * left_stride + whole, left + r * left_stride + count, a[r]);
    for (std::size_t j = 0; j < others; ++j) {
      std::copy(right + j * right_stride + whole, right + j * right_stride + count, b);
      for (std::size_t r = 0; r < rows; ++r) sums[r][j].add(Sums::at(a[r]), Sums::at(b));
    }
  }
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t j = 0; j < others; ++j) out[r * stride + j] += sum_of(sums[r][j].folded());
  }
}

template <class Sums, std::size_t rows>
POISE_INLINE void scalar_rows(const RightMatrix& left, std::size_t row, const RightMatrix& right, float* out,
                              std::size_t stride) {
  const float* from = left.first + row * left.stride;
  std::size_t j = 0;
  for (; j + Sums::kOthers <= right.rows; j += Sums::kOthers) {
    scalar_tile<Sums, rows, Sums::kOthers>(from, left.stride, right.first + j * right.stride, right.stride,
                                           right.columns, out + row * stride + j, stride);
  }
  for (; j < right.rows; ++j) {
    scalar_tile<Sums, rows, 1>(from, left.stride, right.first + j * right.stride, right.stride, right.columns,
                               out + row * stride + j, stride);
  }
}

template <class Sums>
POISE_INLINE void scalar_products(const RightMatrix& left, const RightMatrix& right, float* out, std::size_t stride) {
  std::size_t row = 0;
  for (; row + Sums::kRows <= left.rows; row += Sums::kRows) {
    scalar_rows<Sums, Sums::kRows>(left, row, right, out, stride);
  }
  if (left.rows - row == 3) return scalar_rows<Sums, 3>(left, row, right, out, stride);
  if (left.rows - row == 2) return scalar_rows<Sums, 2>(left, row, right, out, stride);
  if (left.rows - row == 1) return scalar_rows<Sums, 1>(left, row, right, out, stride);
}

void add_product_slowly(float scale, const LeftMatrix& left, const RightMatrix& right, float* out, std::size_t stride) {
  std::vector<float> sums(right.columns);
  for (std::size_t row = 0; row < left.rows; ++row) {
    std::fill(sums.begin(), sums.end(), 0.0F);
    for (std::size_t k = 0; k < right.rows; ++k) {
      const float a = left.first[row * left.row_step + k * left.step];
      const float* b = right.first + k * right.stride;
      for (std::size_t column = 0; column < right.columns; ++column) {
        sums[column] = std::fma(a, b[column], sums[column]);
      }
    }
    float* to = out + row * stride;
    for (std::size_t column = 0; column < right.columns; ++column) {
      to[column] = std::fma(scale, sums[column], to[column]);
    }
  }
}

void add_transposed_product_slowly(const RightMatrix& left, const RightMatrix& right, float* out, std::size_t stride) {
  for (std::size_t row = 0; row < left.rows; ++row) {
    const float* a = left.first + row * left.stride;
    for (std::size_t j = 0; j < right.rows; ++j) {
      const float* b = right.first + j * right.stride;
      float sums[kLanes] = {};
      for (std::size_t i = 0; i < right.columns; ++i) sums[i % kLanes] = std::fma(a[i], b[i], sums[i % kLanes]);
      for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
        for (std::size_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
      }
      out[row * stride + j] += sums[0];
    }
  }
}

/// Whether the loops above are compiled to fused instructions.
bool fuses() {
#if defined(__x86_64__) && !defined(POISE_SANITIZED)
  return kInstructionSet != InstructionSet::baseline;
#elif defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

}  // namespace

void add_product(float scale, const LeftMatrix& left, const RightMatrix& right, float* out, std::size_t stride) {
  if (!fuses()) return add_product_slowly(scale, left, right, out, stride);
  thread_local std::vector<float> room;
  room.resize((right.rows + 1) * kLanes);
  float* rest = room.data();
  hot([=] {
    if (kInstructionSet == InstructionSet::avx512) {
      product<Floats16, 4, 4>(scale, left, right, out, stride, rest);
    } else {
      product<Floats8, 4, 2>(scale, left, right, out, stride, rest);
    }
  });
}

void add_transposed_product(const RightMatrix& left, const RightMatrix& right, float* out, std::size_t stride) {
  if (!fuses()) return add_transposed_product_slowly(left, right, out, stride);
  hot([=] {
    if (kInstructionSet == InstructionSet::avx512) {
      scalar_products<Wide>(left, right, out, stride);
    } else {
      scalar_products<Narrow>(left, right, out, stride);
    }
  });
}

}  // namespace poise
