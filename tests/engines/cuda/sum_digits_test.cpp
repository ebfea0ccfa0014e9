/// Digits of numbers as tensor cores take them: what lanes have of them gives the sums of any subset.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include <poise/extend/base/rng.hpp>

#include "engines/cuda/common/sum_digits.hpp"

namespace poise::cuda::sum_digits_test {

std::int64_t from_digits(std::int64_t number) {
  const auto digits = sum_digits(number);
  std::int64_t sum = 0;
  for (unsigned k = kSumDigits; k-- > 0;) sum = 256 * sum + digits[k];
  return sum;
}

TEST(SumDigits, GiveTheNumberBack) {
  for (const std::int64_t number :
       {0L, 1L, -1L, 127L, 128L, -128L, -129L, 255L, 32767L, 32768L, (1L << 62) - 1, -(1L << 62)}) {
    EXPECT_EQ(from_digits(number), number);
  }
  Rng rng(1, 1);
  for (int k = 0; k < 1000; ++k) {
    const auto number = static_cast<std::int64_t>((rng.uniform() - 0.5) * 0x1p62) >> k % 60;
    EXPECT_EQ(from_digits(number), number);
  }
}

/// The sums of all rows over the numbers whose bits are set, as a warp makes them: rows of lanes times bits.
std::vector<std::int64_t> row_sums(const std::vector<std::uint32_t>& rows, const std::vector<bool>& bits) {
  std::vector<std::int64_t> sums(kSumRows, 0);
  for (std::size_t part = 0; part < rows.size() / 128; ++part) {
    for (std::size_t lane = 0; lane < 32; ++lane) {
      for (std::size_t which = 0; which < 4; ++which) {
        for (std::size_t byte = 0; byte < 4; ++byte) {
          const std::size_t number = 32 * part + which / 2 * 16 + lane % 4 * 4 + byte;
          const auto digit = static_cast<std::int8_t>(rows[(32 * part + lane) * 4 + which] >> 8 * byte & 255U);
          if (number < bits.size() ? bits[number] : true) sums[lane / 4 + which % 2 * 8] += digit;
        }
      }
    }
  }
  return sums;
}

TEST(SumDigits, RowsGiveSumsCountsAndDifferences) {
  Rng rng(2, 1);
  for (const std::size_t count : {1, 31, 32, 33, 100}) {
    std::vector<std::int64_t> numbers(count);
    std::vector<std::uint8_t> reference(count);
    std::vector<bool> bits(count);
    std::int64_t sum = 0, up = 0, different = 0, reference_bits = 0;
    for (std::size_t k = 0; k < count; ++k) {
      numbers[k] = static_cast<std::int64_t>((rng.uniform() - 0.5) * 0x1p50);
      reference[k] = rng.uniform() < 0.5 ? 1 : 0;
      bits[k] = rng.uniform() < 0.5;
      sum += bits[k] ? numbers[k] : 0;
      up += bits[k] ? 1 : 0;
      different += bits[k] != (reference[k] != 0) ? 1 : 0;
      reference_bits += reference[k];
    }
    const std::vector<std::int64_t> found = row_sums(rows_of_sums(count, numbers, reference), bits);
    std::int64_t whole = 0;
    for (unsigned k = kSumDigits; k-- > 0;) whole = 256 * whole + found[k];
    EXPECT_EQ(whole, sum);
    EXPECT_EQ(found[kOnesRow], up);
    EXPECT_EQ(found[kDifferenceRow] + reference_bits, different);
  }
}

TEST(SumDigits, WhatIsMissingIsZero) {
  for (const std::uint32_t word : rows_of_sums(40, {}, {})) EXPECT_EQ(word, 0U);
}

}  // namespace poise::cuda::sum_digits_test
