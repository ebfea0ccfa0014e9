/// Words of 64 chains side by side, as many as a vector register has room for.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <vector>

#include <poise/extend/base/hot.hpp>
#include "base/bits8.hpp"

namespace poise {

template <unsigned W>
struct BitVectorOf {
  // NOLINTNEXTLINE(modernize-use-using): the attribute needs the old form
  typedef std::uint64_t type __attribute__((vector_size(8 * W)));
};
/// W words, one, two, four or eight.
template <unsigned W>
using BitVector = typename BitVectorOf<W>::type;

template <unsigned W>
POISE_INLINE BitVector<W> load_bits(const std::uint64_t* from) {
  BitVector<W> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
template <class V>
POISE_INLINE void store_bits(std::uint64_t* to, const V& v) {
  std::memcpy(to, &v, sizeof v);
}

template <unsigned W>
POISE_INLINE bool any_bit(const BitVector<W>& v) {
  if constexpr (W > 2) {
    BitVector<W / 2> halves[2];
    std::memcpy(halves, &v, sizeof v);
    return any_bit<W / 2>(halves[0] | halves[1]);
  } else {
    std::uint64_t all = 0;
    for (unsigned k = 0; k < W; ++k) all |= v[k];
    return all != 0;
  }
}

/// Where the selector is set, the second, elsewhere the first.
template <class V>
POISE_INLINE V select_bits(const V& selector, const V& first, const V& second) {
  return (selector & second) | (~selector & first);
}

/// A bit that other threads may be writing the neighbours of.
inline void set_bit(std::uint64_t& word, unsigned bit, bool value) {
  const std::uint64_t mask = std::uint64_t{1} << bit;
  const std::atomic_ref<std::uint64_t> shared(word);
  if (value) {
    shared.fetch_or(mask, std::memory_order_relaxed);
  } else {
    shared.fetch_and(~mask, std::memory_order_relaxed);
  }
}

/// Words in memory that vectors are loaded from without crossing cache lines.
class AlignedWords {
 public:
  void assign(std::size_t words, std::uint64_t value) { lines_.assign((words + 7) / 8, filled(value)); }
  [[nodiscard]] bool empty() const { return lines_.empty(); }
  [[nodiscard]] std::uint64_t* data() { return lines_.empty() ? nullptr : lines_.front().words; }
  [[nodiscard]] const std::uint64_t* data() const { return lines_.empty() ? nullptr : lines_.front().words; }

 private:
  struct alignas(64) Line {
    std::uint64_t words[8];
  };
  static Line filled(std::uint64_t value) { return {{value, value, value, value, value, value, value, value}}; }
  std::vector<Line> lines_;
};

}  // namespace poise
