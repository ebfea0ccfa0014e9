/// Sweeps of a few chains that are bits: on any processor, and on those with AVX-512.
#include "engines/cpu/bits/bit_tile.hpp"

#include <cstring>

#include <poise/extend/base/simd.hpp>
#include "engines/cpu/lanes/instructions.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace poise {

namespace generic_eights {

namespace {

struct Eight {
  using Words = Words8;
  using Doubles = Doubles8;
  using Mask = Ints8;

  POISE_INLINE static Words all(std::uint64_t word) { return all8(word); }
  POISE_INLINE static Doubles all(double number) { return broadcast8(number); }
  POISE_INLINE static Doubles load(const double* from) { return load8(from); }
  POISE_INLINE static Words load(const std::uint64_t* from) { return load8(from); }
  POISE_INLINE static void store(std::uint64_t* to, const Words& words) { store8(to, words); }
  POISE_INLINE static Words gather(const std::uint64_t* state, const Index* positions, std::size_t stride) {
    const auto at = [=](std::size_t lane) { return state[positions[lane * stride]]; };
    return lanes8<std::uint64_t>(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7));
  }
  POISE_INLINE static Words widen(const Index* from) {
    return lanes8<std::uint64_t>(from[0], from[1], from[2], from[3], from[4], from[5], from[6], from[7]);
  }
  POISE_INLINE static Words fields(const Words& word, unsigned chain) {
    return (word >> static_cast<int>(chain)) & std::uint64_t{0x0001000100010001};
  }
  POISE_INLINE static Doubles to_doubles(const Words& words) {  // below 2^52
    return bits8<double>(words | std::uint64_t{0x4330000000000000}) - 0x1p52;
  }
  POISE_INLINE static Mask is_less(const Doubles& a, const Doubles& b) { return less8(a, b); }
  POISE_INLINE static Mask is_set(const Words& words, unsigned bit) {
    return less8(bits8<std::int64_t>(words << static_cast<int>(63 - bit)), Ints8{});
  }
  POISE_INLINE static Doubles times_where(const Mask& mask, const Doubles& a, const Doubles& b) {
    return a * select8(mask, b, broadcast8(1.0));
  }
  POISE_INLINE static bool any(const Mask& mask) { return !all_of8(mask ^ std::int64_t{-1}); }
  POISE_INLINE static bool has(const Mask& mask, unsigned lane) { return mask[lane] != 0; }
  POISE_INLINE static Words bits(const Mask& mask, unsigned bit) {
    return bits8<std::uint64_t>(mask) & (std::uint64_t{1} << bit);
  }
  POISE_INLINE static Words only(unsigned lane, std::uint64_t word) {
    Words words = {};
    words.set(lane, word);
    return words;
  }
  POISE_INLINE static std::uint64_t at(const Words& words, std::size_t lane) {
    return words[static_cast<unsigned>(lane)];
  }
};

#include "engines/cpu/bits/few_update.hpp"

}  // namespace

}  // namespace generic_eights

#if defined(__x86_64__)

POISE_BEGIN_AVX512

namespace avx512_eights {

namespace {

struct Eight {
  // NOLINTBEGIN(modernize-use-using): the attribute needs the old form
  typedef std::uint64_t Words __attribute__((vector_size(64)));
  typedef double Doubles __attribute__((vector_size(64)));
  // NOLINTEND(modernize-use-using)
  using Mask = __mmask8;

  static __m512i raw(const Words& x) { return reinterpret_cast<__m512i>(x); }
  static __m512d raw(const Doubles& x) { return reinterpret_cast<__m512d>(x); }
  static Words words(const __m512i& x) { return reinterpret_cast<Words>(x); }
  static Doubles doubles(const __m512d& x) { return reinterpret_cast<Doubles>(x); }

  static Words all(std::uint64_t word) { return words(_mm512_set1_epi64(static_cast<long long>(word))); }
  static Doubles all(double number) { return doubles(_mm512_set1_pd(number)); }
  static Doubles load(const double* from) { return doubles(_mm512_loadu_pd(from)); }
  static Words load(const std::uint64_t* from) { return words(_mm512_loadu_si512(from)); }
  static void store(std::uint64_t* to, const Words& word) { _mm512_storeu_si512(to, raw(word)); }
  static Words gather(const std::uint64_t* state, const Index* positions, std::size_t stride) {
    const auto at = [=](std::size_t lane) { return state[positions[lane * stride]]; };
    const Words gathered = {at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)};
    return gathered;
  }
  static Words widen(const Index* from) {
    return words(_mm512_cvtepu32_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
  }
  static Words fields(const Words& word, unsigned chain) {
    const __m512i shifted = _mm512_srl_epi64(raw(word), _mm_cvtsi32_si128(static_cast<int>(chain)));
    return words(shifted) & std::uint64_t{0x0001000100010001};
  }
  static Doubles to_doubles(const Words& word) { return doubles(_mm512_cvtepu64_pd(raw(word))); }
  static Mask is_less(const Doubles& a, const Doubles& b) { return _mm512_cmp_pd_mask(raw(a), raw(b), _CMP_LT_OQ); }
  static Mask is_set(const Words& word, unsigned bit) {
    return _mm512_test_epi64_mask(raw(word), raw(all(std::uint64_t{1} << bit)));
  }
  static Doubles times_where(Mask mask, const Doubles& a, const Doubles& b) {
    return doubles(_mm512_mask_mul_pd(raw(a), mask, raw(a), raw(b)));
  }
  static bool any(Mask mask) { return mask != 0; }
  static bool has(Mask mask, unsigned lane) { return (mask >> lane & 1) != 0; }
  static Words bits(Mask mask, unsigned bit) {
    return words(_mm512_maskz_set1_epi64(mask, static_cast<long long>(std::uint64_t{1} << bit)));
  }
  static Words only(unsigned lane, std::uint64_t word) {
    return words(_mm512_maskz_set1_epi64(static_cast<Mask>(1U << lane), static_cast<long long>(word)));
  }
  static std::uint64_t at(const Words& word, std::size_t lane) {
    std::uint64_t lanes[8];
    std::memcpy(lanes, &word, sizeof lanes);
    return lanes[lane];
  }
};

#include "engines/cpu/bits/few_update.hpp"  // NOLINT(readability-duplicate-include): once for each instruction set

}  // namespace

}  // namespace avx512_eights

POISE_END_INSTRUCTIONS

#endif

void sweep_eights(const FewSweep& sweep) {
#if defined(__x86_64__)
  if (kInstructionSet == InstructionSet::avx512) return avx512_eights::sweep_any(sweep);
#endif
  hot<InstructionSet::avx2>([&sweep] { generic_eights::sweep_any(sweep); });
}

}  // namespace poise
