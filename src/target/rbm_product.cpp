/// Compiled with contraction: products and sums are fused wherever the machine can, in both functions alike.
#include "rbm_product.hpp"

#include <cstring>

#include <poise/simd.hpp>

namespace poise {

namespace {

typedef float Floats16
    __attribute__((vector_size(64)));  // NOLINT(modernize-use-using): the attribute needs the old form
typedef float Floats8 __attribute__((vector_size(32)));  // NOLINT(modernize-use-using)

}  // namespace

POISE_HOT void multiply_rows(const float* packed, const float* panel, std::size_t depth, float* out) {
  Floats16 s0 = {}, s1 = {}, s2 = {}, s3 = {}, s4 = {}, s5 = {}, s6 = {}, s7 = {};
  for (std::size_t j = 0; j < depth; ++j) {
    Floats16 x;
    std::memcpy(&x, panel + j * 16, sizeof x);
    const float* w = packed + j * 8;
    s0 += w[0] * x;
    s1 += w[1] * x;
    s2 += w[2] * x;
    s3 += w[3] * x;
    s4 += w[4] * x;
    s5 += w[5] * x;
    s6 += w[6] * x;
    s7 += w[7] * x;
  }
  const Floats16 sums[8] = {s0, s1, s2, s3, s4, s5, s6, s7};
  std::memcpy(out, sums, sizeof sums);
}

POISE_HOT void multiply_column(const float* packed, const float* column, std::size_t depth, float* out) {
  Floats8 sums = {};
  for (std::size_t j = 0; j < depth; ++j) {
    Floats8 w;
    std::memcpy(&w, packed + j * 8, sizeof w);
    sums += w * column[j];
  }
  std::memcpy(out, &sums, sizeof sums);
}

}  // namespace poise
