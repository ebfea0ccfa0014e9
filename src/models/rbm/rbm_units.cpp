/// Bits to lists, eight at a time.
#include "models/rbm/rbm_units.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include <poise/extend/base/hot.hpp>

namespace poise {

namespace {

/// The numbers of the bits that are set in a byte, in increasing order.
constexpr auto kSetBits = [] {
  std::array<std::array<std::uint8_t, 8>, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    unsigned count = 0;
    for (unsigned bit = 0; bit < 8; ++bit) {
      if ((byte >> bit & 1U) != 0) table[byte][count++] = static_cast<std::uint8_t>(bit);
    }
  }
  return table;
}();

/// The bits of a byte as bytes.
constexpr auto kSpread = [] {
  std::array<std::uint64_t, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    for (unsigned bit = 0; bit < 8; ++bit) table[byte] |= std::uint64_t{byte >> bit & 1U} << 8 * bit;
  }
  return table;
}();

std::size_t list_bits(const std::uint64_t* bits, std::size_t words, std::uint64_t flip, Index* list) {
  return hot<InstructionSet::avx2>([=] {
    std::size_t count = 0;
    for (std::size_t word = 0; word < words; ++word) {
      const std::uint64_t set = bits[word] ^ flip;
      for (unsigned shift = 0; shift < 64; shift += 8) {
        const auto byte = static_cast<std::uint8_t>(set >> shift);
        const auto first = static_cast<Index>(64 * word + shift);
        for (unsigned k = 0; k < 8; ++k) list[count + k] = first + kSetBits[byte][k];
        count += static_cast<unsigned>(std::popcount(byte));
      }
    }
    return count;
  });
}

}  // namespace

void RbmUnits::take(std::span<const Value> levels) {
  std::fill(bits_.begin(), bits_.end(), 0);
  Index unit = 0;
  for (; unit + 8 <= units_; unit += 8) {
    // Byte k of eight, which is 0 or 1, times 2^(56 - 7 k) is bit k of the highest byte.
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, levels.data() + unit, sizeof bytes);
    bits_[unit / 64] |= bytes * 0x0102040810204080U >> 56 << unit % 64;
  }
  for (; unit < units_; ++unit) bits_[unit / 64] |= std::uint64_t{levels[unit]} << unit % 64;
}

void RbmUnits::give(std::span<Value> levels) const {
  Index unit = 0;
  for (; unit + 8 <= units_; unit += 8) {
    std::memcpy(levels.data() + unit, &kSpread[bits_[unit / 64] >> unit % 64 & 0xff], 8);
  }
  for (; unit < units_; ++unit) levels[unit] = static_cast<Value>(bits_[unit / 64] >> unit % 64 & 1U);
}

void RbmUnits::list() {
  std::size_t on = 0;
  for (const std::uint64_t word : bits_) on += static_cast<unsigned>(std::popcount(word));
  lists_off_ = 2 * on > units_;
  if (!lists_off_) {
    count_ = list_bits(bits_.data(), bits_.size(), 0, list_.data());
    return;
  }
  // Bits beyond the last unit are 0. Flipped they would be listed, beyond the end of the list: they go last.
  const std::size_t whole = units_ / 64;
  count_ = list_bits(bits_.data(), whole, ~std::uint64_t{0}, list_.data());
  for (auto unit = static_cast<Index>(64 * whole); unit < units_; ++unit) {
    list_[count_] = unit;
    count_ += (~bits_[whole] >> unit % 64) & 1U;
  }
}

}  // namespace poise
