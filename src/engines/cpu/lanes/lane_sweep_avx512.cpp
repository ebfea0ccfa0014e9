/// Sweeps of sixteen chains a vector, on processors with AVX-512.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

#include "engines/common/keyed_words.hpp"
#include "engines/cpu/lanes/lane_sweep.hpp"

#include "engines/cpu/lanes/avx512_begin.hpp"  // after all other headers

namespace poise {

namespace avx512_lanes {

namespace {

struct Lanes {
  static constexpr unsigned kCount = 16;
  // NOLINTBEGIN(modernize-use-using): the attribute needs the old form
  typedef float Floats __attribute__((vector_size(64)));
  typedef std::int32_t Ints __attribute__((vector_size(64)));
  typedef std::uint64_t Words __attribute__((vector_size(64)));
  // NOLINTEND(modernize-use-using)

  static __m512 raw(const Floats& x) { return reinterpret_cast<__m512>(x); }
  static __m512i raw(const Ints& x) { return reinterpret_cast<__m512i>(x); }
  static Floats floats(const __m512& x) { return reinterpret_cast<Floats>(x); }
  static Ints ints(const __m512i& x) { return reinterpret_cast<Ints>(x); }
  static __m128i bytes(const Value* row) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(row)); }

  static Ints load(const Value* row) { return ints(_mm512_cvtepu8_epi32(bytes(row))); }
  static void store(Value* row, const Ints& level) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(row), _mm512_cvtepi32_epi8(raw(level)));
  }
  static Floats read(const float* values) { return floats(_mm512_loadu_ps(values)); }
  static void add(float* sums, const Floats& value) {
    _mm512_storeu_ps(sums, raw(floats(_mm512_loadu_ps(sums)) + value));
  }
  static Floats choose(const Value* row, const float* both) {
    const __m128i levels = bytes(row);
    return floats(
        _mm512_mask_blend_ps(_mm_test_epi8_mask(levels, levels), _mm512_set1_ps(both[0]), _mm512_set1_ps(both[1])));
  }
  static Floats look_up(const float* table, unsigned bits, const Ints& place) {
    if (bits <= 4) return floats(_mm512_permutexvar_ps(raw(place), _mm512_loadu_ps(table)));
    if (bits == 5) {
      return floats(_mm512_permutex2var_ps(_mm512_loadu_ps(table), raw(place), _mm512_loadu_ps(table + 16)));
    }
    return floats(_mm512_i32gather_ps(raw(place), table, 4));
  }
  static Floats limit(const Floats& x) {
    return floats(_mm512_min_ps(_mm512_max_ps(raw(x), _mm512_set1_ps(-80.0F)), _mm512_set1_ps(80.0F)));
  }
  static Floats least(const Floats& a, const Floats& b) { return floats(_mm512_min_ps(raw(a), raw(b))); }
  static Floats most(const Floats& a, const Floats& b) { return floats(_mm512_max_ps(raw(a), raw(b))); }
  static Ints not_negative(const Floats& x) {
    const __mmask16 mask = _mm512_cmp_ps_mask(raw(x), _mm512_setzero_ps(), _CMP_GE_OQ);
    return ints(_mm512_maskz_set1_epi32(mask, 1));
  }
  static unsigned within(const Floats& x, const Floats& error) {
    return _mm512_cmp_ps_mask(_mm512_abs_ps(raw(x)), raw(error), _CMP_LE_OQ);
  }
  static Floats scale(const Floats& x, const Floats& power) {
    const __m512i exponent = _mm512_add_epi32(_mm512_cvtps_epi32(raw(power)), _mm512_set1_epi32(127));
    return x * floats(_mm512_castsi512_ps(_mm512_slli_epi32(exponent, 23)));
  }
  static Floats uniform(const LaneSweep& sweep, unsigned v, std::uint64_t word) {
    Words first, second, random;
    std::memcpy(&first, sweep.first_keys + v * 8, sizeof first);
    std::memcpy(&second, sweep.second_keys + v * 8, sizeof second);
    make_keyed_word(first, second, word * kWordStep, random);
    const __m512i digits = _mm512_srli_epi32(reinterpret_cast<__m512i>(random), 8);
    return floats(_mm512_cvtepi32_ps(digits)) * 0x1p-24F;
  }
};

#include "engines/cpu/lanes/lane_update.hpp"

}  // namespace

}  // namespace avx512_lanes

void sweep_lanes_avx512(const LaneSweep& sweep) {
  using avx512_lanes::Sweep;
  if (sweep.betas != nullptr) {
    switch (sweep.lanes) {
      case 16: Sweep<1, true>{sweep}.all(); break;
      case 32: Sweep<2, true>{sweep}.all(); break;
      case 48: Sweep<3, true>{sweep}.all(); break;
      default: Sweep<4, true>{sweep}.all(); break;
    }
    return;
  }
  switch (sweep.lanes) {
    case 16: Sweep<1, false>{sweep}.all(); break;
    case 32: Sweep<2, false>{sweep}.all(); break;
    case 48: Sweep<3, false>{sweep}.all(); break;
    default: Sweep<4, false>{sweep}.all(); break;
  }
}

}  // namespace poise

#include "engines/cpu/lanes/instructions_end.hpp"
#endif
