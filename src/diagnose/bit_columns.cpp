/// Squares of 64 draws and 64 variables, transposed.
#include "diagnose/bit_columns.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <poise/extend/base/hot.hpp>
#include "base/bits64.hpp"

namespace poise::diagnose_detail {
namespace {

/// The 64 bits of a row from one of them on; what is behind the row is zero.
POISE_INLINE std::uint64_t bits_from(const std::uint8_t* row, std::size_t bytes, std::size_t first) {
  const std::size_t byte = first / 8;
  const unsigned shift = first % 8;
  std::uint64_t bits = 0;
  if (byte + 8 <= bytes) {
    std::memcpy(&bits, row + byte, sizeof bits);
  } else {
    std::memcpy(&bits, row + byte, bytes - byte);
  }
  bits >>= shift;
  if (shift > 0 && byte + 8 < bytes) bits |= std::uint64_t{row[byte + 8]} << (64 - shift);
  return bits;
}

}  // namespace

void take_columns(const DrawsView& draws, std::size_t first, std::span<BitChains> columns) {
  for (BitChains& column : columns) column.reset(draws.chains, draws.draws);
  const std::size_t bytes = draws.row_bytes();
  for (std::size_t chain = 0; chain < draws.chains; ++chain) {
    for (std::size_t begin = 0; begin < draws.draws; begin += 64) {
      const std::uint8_t* const rows = draws.bits + (chain * draws.draws + begin) * bytes;
      const std::size_t many = std::min<std::size_t>(64, draws.draws - begin);
      const std::uint64_t all = ~std::uint64_t{0} >> (64 - many);
      const std::uint64_t flipped = draws.low > draws.high ? all : 0;
      std::uint64_t square[64] = {};
      hot([=, to = square] {
        for (std::size_t k = 0; k < many; ++k) to[k] = bits_from(rows + k * bytes, bytes, first);
        transpose64(to);
      });
      for (std::size_t i = 0; i < columns.size(); ++i) columns[i].set_word(chain, begin / 64, square[i] ^ flipped);
    }
  }
  for (BitChains& column : columns) column.count();
}

}  // namespace poise::diagnose_detail
