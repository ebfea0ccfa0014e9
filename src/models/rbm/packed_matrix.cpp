/// The only file in which products and sums are fused: compiled with contraction, and on processors without fused
/// instructions the same results are found slowly.
#include "models/rbm/packed_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <poise/extend/base/simd.hpp>

namespace poise {

namespace {

// NOLINTBEGIN(modernize-use-using): the attribute needs the old form
typedef float Floats16 __attribute__((vector_size(64)));
typedef float Floats8 __attribute__((vector_size(32)));
// NOLINTEND(modernize-use-using)

/// As many of the sixteen columns as a vector has lanes, eight rows at a time.
template <class Floats>
POISE_INLINE void multiply_lanes(const float* packed, std::size_t rows, std::size_t columns, const float* in,
                                 float* out) {
  for (std::size_t row = 0; row < rows; row += 8) {
    Floats s0 = {}, s1 = {}, s2 = {}, s3 = {}, s4 = {}, s5 = {}, s6 = {}, s7 = {};
    const float* w = packed + row * columns;
    for (std::size_t column = 0; column < columns; ++column, w += 8) {
      Floats x;
      std::memcpy(&x, in + column * 16, sizeof x);
      s0 += w[0] * x;
      s1 += w[1] * x;
      s2 += w[2] * x;
      s3 += w[3] * x;
      s4 += w[4] * x;
      s5 += w[5] * x;
      s6 += w[6] * x;
      s7 += w[7] * x;
    }
    const Floats sums[8] = {s0, s1, s2, s3, s4, s5, s6, s7};
    for (std::size_t k = 0; k < 8; ++k) std::memcpy(out + (row + k) * 16, &sums[k], sizeof sums[k]);
  }
}

/// With AVX2 there are registers for eight sums of eight columns, so these go one half after the other.
void multiply_rows(const float* packed, std::size_t rows, std::size_t columns, const float* in, float* out) {
  hot([=] {
    if (kInstructionSet == InstructionSet::avx512) {
      multiply_lanes<Floats16>(packed, rows, columns, in, out);
    } else {
      multiply_lanes<Floats8>(packed, rows, columns, in, out);
      multiply_lanes<Floats8>(packed, rows, columns, in + 8, out + 8);
    }
  });
}

void multiply_one(const float* packed, std::size_t rows, std::size_t columns, const float* in, float* out) {
  hot([=] {
    for (std::size_t row = 0; row < rows; row += 8) {
      Floats8 sums = {};
      const float* place = packed + row * columns;
      for (std::size_t column = 0; column < columns; ++column, place += 8) {
        Floats8 w;
        std::memcpy(&w, place, sizeof w);
        sums += w * in[column];
      }
      std::memcpy(out + row, &sums, sizeof sums);
    }
  });
}

/// Whether the loops above are compiled to fused instructions.
bool fuses() {
#if defined(__x86_64__)
  return kInstructionSet != InstructionSet::baseline;
#elif defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

/// Both products, for any number of lanes, fused by the standard library.
void multiply_slowly(const float* packed, std::size_t rows, std::size_t columns, std::size_t lanes, const float* in,
                     float* out) {
  for (std::size_t row = 0; row < rows; ++row) {
    const float* w = packed + row / PackedMatrix::kRows * PackedMatrix::kRows * columns + row % PackedMatrix::kRows;
    float* sums = out + row * lanes;
    std::fill_n(sums, lanes, 0.0F);
    for (std::size_t column = 0; column < columns; ++column, w += PackedMatrix::kRows) {
      for (std::size_t k = 0; k < lanes; ++k) sums[k] = std::fma(*w, in[column * lanes + k], sums[k]);
    }
  }
}

}  // namespace

PackedMatrix::PackedMatrix(std::size_t rows, std::size_t columns)
    : rows_(rows), columns_(columns), packed_(padded_rows() * columns, 0.0F) {}

void PackedMatrix::multiply(const float* in, float* out) const {
  if (!fuses()) return multiply_slowly(packed_.data(), padded_rows(), columns_, kColumns, in, out);
  multiply_rows(packed_.data(), padded_rows(), columns_, in, out);
}

void PackedMatrix::multiply_column(const float* in, float* out) const {
  if (!fuses()) return multiply_slowly(packed_.data(), padded_rows(), columns_, 1, in, out);
  multiply_one(packed_.data(), padded_rows(), columns_, in, out);
}

}  // namespace poise
