/// Labels to bits sixteen at a time where the processor compares as many at once, and back eight at a time.
#include "store/label_bits.hpp"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "base/bits8.hpp"

namespace poise {

BitLabels bit_labels(const VariableLayout& layout) {
  BitLabels labels{layout.label(0), layout.label(0)};
  Index most = 1;
  for (Index i = 0; i < layout.variables; ++i) most = std::max(most, layout.cardinality(i));
  if (most == 2) labels.high = layout.label(1);
  return labels;
}

bool pack_labels(std::span<const std::int8_t> labels, std::int8_t low, std::int8_t high, std::uint8_t* to) {
  bool known = true;
  std::size_t k = 0;
#if defined(__x86_64__)
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
  for (; k < labels.size(); ++k) {
    if (k % 8 == 0) to[k / 8] = 0;
    known = known && (labels[k] == low || labels[k] == high);
    if (labels[k] == high) to[k / 8] = static_cast<std::uint8_t>(to[k / 8] | 1U << k % 8);
  }
  return known;
}

void unpack_labels(const std::uint8_t* bits, std::int8_t low, std::int8_t high, std::span<std::int8_t> to) {
  const std::uint64_t lows = spread8(0xff) * static_cast<std::uint8_t>(low);
  const auto difference = static_cast<std::uint8_t>(low ^ high);
  for (std::size_t k = 0; k < to.size(); k += 8) {
    const std::uint64_t eight = lows ^ spread8(bits[k / 8]) * difference;
    std::memcpy(to.data() + k, &eight, std::min(to.size() - k, sizeof eight));
  }
}

}  // namespace poise
