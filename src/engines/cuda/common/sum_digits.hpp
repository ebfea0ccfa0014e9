/// Numbers by their digits, as tensor cores take them: the sum of those whose bits are set is a product of bits and
/// digits (bit_sums.cuh).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace poise::cuda {

/// Digits of base 256, from -128 to 127, the lowest first.
inline constexpr unsigned kSumDigits = 8;
/// Rows below these: 1 for every number, and 1 or -1 where the bit of a reference is not set or set, so that the bits
/// which differ from it are as many as this sum and the bits of the reference.
inline constexpr unsigned kOnesRow = 8, kDifferenceRow = 9, kSumRows = 16;

inline std::array<std::int8_t, kSumDigits> sum_digits(std::int64_t number) {
  std::array<std::int8_t, kSumDigits> digits{};
  for (std::int8_t& digit : digits) {
    digit = static_cast<std::int8_t>(number & 255);
    number = (number - digit) / 256;  // which is whole
  }
  return digits;
}

/// What lanes of a warp have of so many numbers, as `rows` of multiply_bytes (byte_product.cuh): [part of 32][lane][4].
/// Numbers that are missing are 0; without a reference the rows below the digits are.
inline std::vector<std::uint32_t> rows_of_sums(std::size_t count, const std::vector<std::int64_t>& numbers,
                                               const std::vector<std::uint8_t>& reference) {
  constexpr std::size_t kPart = 32, kOfLane = 4;
  std::vector<std::uint32_t> rows((count + kPart - 1) / kPart * kPart * kOfLane, 0);
  for (std::size_t k = 0; k < count; ++k) {
    std::array<std::int8_t, kSumRows> column{};
    if (k < numbers.size()) {
      const auto digits = sum_digits(numbers[k]);
      for (unsigned row = 0; row < kSumDigits; ++row) column[row] = digits[row];
    }
    if (k < reference.size()) {
      column[kOnesRow] = 1;
      column[kDifferenceRow] = static_cast<std::int8_t>(reference[k] != 0 ? -1 : 1);
    }
    const std::size_t inside = k % kPart;
    for (std::size_t row = 0; row < kSumRows; ++row) {
      const std::size_t lane = row % 8 * 4 + inside % 16 / 4;
      const std::size_t which = row / 8 + inside / 16 * 2;
      const std::uint32_t byte = static_cast<std::uint8_t>(column[row]);
      rows[(k / kPart * kPart + lane) * kOfLane + which] |= byte << 8 * (inside % 4);
    }
  }
  return rows;
}

}  // namespace poise::cuda
