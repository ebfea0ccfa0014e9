/// Sixty-four bits at a time, as rows and columns of a square.
#pragma once

#include <cstddef>
#include <cstdint>

#include <poise/extend/base/hot.hpp>

namespace poise {

/// Exchanges the upper right and the lower left of every square of 2 x `half` rows.
template <unsigned half>
POISE_INLINE void exchange_quarters(std::uint64_t* x, std::uint64_t low) {
  for (std::size_t first = 0; first < 64; first += std::size_t{2} * half) {
    for (std::size_t k = first; k < first + half; ++k) {
      const std::uint64_t t = (x[k] >> half ^ x[k + half]) & low;
      x[k + half] ^= t;
      x[k] ^= t << half;
    }
  }
}

/// Rows and columns of a matrix of 64 x 64 bits exchanged: bit c of x[r] becomes bit r of x[c].
POISE_INLINE void transpose64(std::uint64_t* x) {
  exchange_quarters<32>(x, 0x00000000ffffffff);
  exchange_quarters<16>(x, 0x0000ffff0000ffff);
  exchange_quarters<8>(x, 0x00ff00ff00ff00ff);
  exchange_quarters<4>(x, 0x0f0f0f0f0f0f0f0f);
  exchange_quarters<2>(x, 0x3333333333333333);
  exchange_quarters<1>(x, 0x5555555555555555);
}

}  // namespace poise
