/// Sweeps of a few chains on processors with AVX-512.
#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "engines/cpu/lanes/few_sweep.hpp"

#include "engines/cpu/lanes/avx512_begin.hpp"  // after all other headers

namespace poise {

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

#include "engines/cpu/lanes/few_update.hpp"

}  // namespace

}  // namespace avx512_eights

void sweep_eights_avx512(const FewSweep& sweep) {
  switch (sweep.run->size) {
    case 4: avx512_eights::sweep_all<4>(sweep); break;
    case 5: avx512_eights::sweep_all<5>(sweep); break;
    default: avx512_eights::sweep_all<6>(sweep); break;
  }
}

}  // namespace poise

#include "engines/cpu/lanes/instructions_end.hpp"
#endif
