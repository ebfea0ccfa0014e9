/// Matrix products against the same sums one by one, bit by bit, whatever the shape. ctest runs this with every
/// instruction set that the processor has.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include "base/matrix_product.hpp"

namespace poise::matrix_product_test {

std::vector<float> numbers(std::size_t count, std::uint64_t seed) {
  Rng rng = make_rng(seed, Stream::training_weights);
  std::vector<float> out(count);
  for (float& x : out) x = static_cast<float>(rng.normal());
  return out;
}

struct Shape {
  std::size_t rows, count, columns;
};
const std::vector<Shape> kShapes = {{1, 1, 1},    {4, 16, 64},   {3, 5, 15},  {5, 7, 33},
                                    {28, 37, 45}, {2, 100, 129}, {7, 3, 200}, {6, 250, 784}};

TEST(MatrixProduct, EachSumIsFusedAndInOrder) {
  for (const Shape& shape : kShapes) {
    const std::size_t stride = shape.columns + 3;
    const std::vector<float> left = numbers(shape.rows * shape.count, 1);
    const std::vector<float> right = numbers(shape.count * stride, 2);
    const std::vector<float> before = numbers(shape.rows * stride, 3);
    for (const bool transposed : {false, true}) {
      const std::size_t row_step = transposed ? 1 : shape.count;
      const std::size_t step = transposed ? shape.rows : 1;
      std::vector<float> out = before;
      add_product(0.3F, {left.data(), shape.rows, row_step, step}, {right.data(), shape.count, shape.columns, stride},
                  out.data(), stride);
      std::vector<float> expected = before;
      for (std::size_t r = 0; r < shape.rows; ++r) {
        for (std::size_t c = 0; c < shape.columns; ++c) {
          float sum = 0.0F;
          for (std::size_t k = 0; k < shape.count; ++k) {
            sum = std::fma(left[r * row_step + k * step], right[k * stride + c], sum);
          }
          expected[r * stride + c] = std::fma(0.3F, sum, before[r * stride + c]);
        }
      }
      EXPECT_EQ(out, expected) << shape.rows << " x " << shape.count << " x " << shape.columns;
    }
  }
}

TEST(MatrixProduct, ScalarProductsAddSixteenSumsAsATree) {
  for (const Shape& shape : kShapes) {
    const std::size_t stride = shape.count + 2;
    const std::vector<float> left = numbers(shape.rows * stride, 4);
    const std::vector<float> right = numbers(shape.columns * stride, 5);
    const std::vector<float> before = numbers(shape.rows * shape.columns, 6);
    std::vector<float> out = before;
    add_transposed_product({left.data(), shape.rows, shape.count, stride},
                           {right.data(), shape.columns, shape.count, stride}, out.data(), shape.columns);
    std::vector<float> expected = before;
    for (std::size_t r = 0; r < shape.rows; ++r) {
      for (std::size_t j = 0; j < shape.columns; ++j) {
        std::vector<float> sums(16, 0.0F);
        for (std::size_t i = 0; i < shape.count; ++i) {
          sums[i % 16] = std::fma(left[r * stride + i], right[j * stride + i], sums[i % 16]);
        }
        for (std::size_t half = 8; half > 0; half /= 2) {
          for (std::size_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
        }
        expected[r * shape.columns + j] += sums[0];
      }
    }
    EXPECT_EQ(out, expected) << shape.rows << " x " << shape.count << " x " << shape.columns;
  }
}

}  // namespace poise::matrix_product_test
