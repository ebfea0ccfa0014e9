/// Products of bytes on tensor cores, summed in integers.
#pragma once

#include <cstdint>

namespace poise::cuda {

/// Sixteen rows of 32 numbers times eight columns of them. Lane l has of the rows l / 4 and l / 4 + 8 and of the column
/// l / 4 four numbers from 4 * (l % 4) on, and those sixteen further, a byte with a sign each: rows in the order row,
/// row + 8, and both again further on. Of the sums it has the columns 2 * (l % 4) and the next, in both rows.
__device__ inline void multiply_bytes(std::int32_t (&sums)[4], const std::uint32_t (&rows)[4],
                                      const std::uint32_t (&columns)[2]) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(columns[0]), "r"(columns[1]));
#else
  // The same in quarters: eight rows of sixteen numbers.
  const auto quarter = [](std::int32_t& first, std::int32_t& second, std::uint32_t a, std::uint32_t b) {
    asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+r"(first), "+r"(second)
        : "r"(a), "r"(b));
  };
  quarter(sums[0], sums[1], rows[0], columns[0]);
  quarter(sums[0], sums[1], rows[2], columns[1]);
  quarter(sums[2], sums[3], rows[1], columns[0]);
  quarter(sums[2], sums[3], rows[3], columns[1]);
#endif
}

}  // namespace poise::cuda
