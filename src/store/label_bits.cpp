/// Sixteen labels at a time, or 64 where the processor compares as many at once.
#include "store/journal.hpp"

#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <poise/extend/base/hot.hpp>

namespace poise {

namespace {

struct Labels {
  std::span<const std::int8_t> all;
  std::int8_t low;
  std::int8_t high;
};

/// From label `first` on, a multiple of eight.
bool pack_one_by_one(const Labels& labels, std::size_t first, std::uint8_t* to) {
  bool known = true;
  for (std::size_t i = first; i < labels.all.size(); ++i) {
    const std::int8_t label = labels.all[i];
    if (i % 8 == 0) to[i / 8] = 0;
    known = known && (label == labels.low || label == labels.high);
    if (label == labels.high) to[i / 8] = static_cast<std::uint8_t>(to[i / 8] | 1U << i % 8);
  }
  return known;
}

#if defined(__x86_64__)

bool pack_sixteens(const Labels& labels, std::uint8_t* to) {
  const __m128i lows = _mm_set1_epi8(labels.low);
  const __m128i highs = _mm_set1_epi8(labels.high);
  int all = 0xffff;
  std::size_t k = 0;
  for (; k + 16 <= labels.all.size(); k += 16) {
    const __m128i sixteen = _mm_loadu_si128(reinterpret_cast<const __m128i*>(labels.all.data() + k));
    const int bits = _mm_movemask_epi8(_mm_cmpeq_epi8(sixteen, highs));
    all &= bits | _mm_movemask_epi8(_mm_cmpeq_epi8(sixteen, lows));
    const auto two = static_cast<std::uint16_t>(bits);
    std::memcpy(to + k / 8, &two, sizeof two);
  }
  return pack_one_by_one(labels, k, to) && all == 0xffff;
}

__attribute__((target("avx512f,avx512bw"))) bool pack_sixty_fours(const Labels& labels, std::uint8_t* to) {
  const __m512i lows = _mm512_set1_epi8(labels.low);
  const __m512i highs = _mm512_set1_epi8(labels.high);
  std::uint64_t all = ~std::uint64_t{0};
  std::size_t k = 0;
  for (; k + 64 <= labels.all.size(); k += 64) {
    const __m512i many = _mm512_loadu_si512(labels.all.data() + k);
    const std::uint64_t bits = _mm512_cmpeq_epi8_mask(many, highs);
    all &= bits | _mm512_cmpeq_epi8_mask(many, lows);
    std::memcpy(to + k / 8, &bits, sizeof bits);
  }
  if (k < labels.all.size()) {
    const std::size_t left = labels.all.size() - k;
    const std::uint64_t used = ~std::uint64_t{0} >> (64 - left);
    const __m512i rest = _mm512_maskz_loadu_epi8(used, labels.all.data() + k);
    const std::uint64_t bits = _mm512_mask_cmpeq_epi8_mask(used, rest, highs);
    all &= bits | _mm512_mask_cmpeq_epi8_mask(used, rest, lows) | ~used;
    std::memcpy(to + k / 8, &bits, (left + 7) / 8);
  }
  return all == ~std::uint64_t{0};
}

__attribute__((target("avx512f,avx512bw"))) std::size_t unpack_sixty_fours(const std::uint8_t* bits,
                                                                           const Labels& kinds,
                                                                           std::span<std::int8_t> to) {
  const __m512i lows = _mm512_set1_epi8(kinds.low);
  const __m512i highs = _mm512_set1_epi8(kinds.high);
  std::size_t k = 0;
  for (; k + 64 <= to.size(); k += 64) {
    std::uint64_t many = 0;
    std::memcpy(&many, bits + k / 8, sizeof many);
    _mm512_storeu_si512(to.data() + k, _mm512_mask_blend_epi8(many, lows, highs));
  }
  return k;
}

#endif

}  // namespace

void unpack_labels(const std::uint8_t* bits, std::int8_t low, std::int8_t high, std::span<std::int8_t> to) {
  std::size_t k = 0;
#if defined(__x86_64__)
  if (kInstructionSet == InstructionSet::avx512) k = unpack_sixty_fours(bits, {{}, low, high}, to);
#endif
  for (; k < to.size(); ++k) to[k] = (bits[k / 8] >> k % 8 & 1) != 0 ? high : low;
}

bool pack_labels(std::span<const std::int8_t> labels, std::int8_t low, std::int8_t high, std::uint8_t* to) {
#if defined(__x86_64__)
  if (kInstructionSet == InstructionSet::avx512) return pack_sixty_fours({labels, low, high}, to);
  return pack_sixteens({labels, low, high}, to);
#else
  return pack_one_by_one({labels, low, high}, 0, to);
#endif
}

}  // namespace poise
