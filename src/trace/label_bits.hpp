/// Labels of two kinds as bits, sixteen at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace poise {

/// Writes a bit for each label, set where it is `high`, eight to a byte and the first lowest; gives whether all are one
/// of the two. The bits behind the last label are zero.
inline bool pack_labels(std::span<const std::int8_t> labels, std::int8_t low, std::int8_t high, std::uint8_t* to) {
  std::size_t k = 0;
  bool known = true;
#if defined(__SSE2__)
  const __m128i lows = _mm_set1_epi8(low);
  const __m128i highs = _mm_set1_epi8(high);
  int all = 0xffff;
  for (; k + 16 <= labels.size(); k += 16) {
    const __m128i sixteen = _mm_loadu_si128(reinterpret_cast<const __m128i*>(labels.data() + k));
    const int bits = _mm_movemask_epi8(_mm_cmpeq_epi8(sixteen, highs));
    all &= bits | _mm_movemask_epi8(_mm_cmpeq_epi8(sixteen, lows));
    const auto two = static_cast<std::uint16_t>(bits);
    std::memcpy(to + k / 8, &two, sizeof two);
  }
  known = all == 0xffff;
#endif
  for (std::size_t i = k; i < labels.size(); ++i) {
    if (i % 8 == 0) to[i / 8] = 0;
    known = known && (labels[i] == low || labels[i] == high);
    if (labels[i] == high) to[i / 8] = static_cast<std::uint8_t>(to[i / 8] | 1U << i % 8);
  }
  return known;
}

}  // namespace poise
