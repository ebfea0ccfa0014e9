/// Sweeps of eight chains a vector, on processors with AVX2.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

#include "engines/common/keyed_words.hpp"
#include "engines/cpu/lanes/lane_sweep.hpp"

#include "engines/cpu/lanes/avx2_begin.hpp"  // after all other headers

namespace poise {

namespace avx2_lanes {

namespace {

struct Lanes {
  static constexpr unsigned kCount = 8;
  // NOLINTBEGIN(modernize-use-using): the attribute needs the old form
  typedef float Floats __attribute__((vector_size(32)));
  typedef std::int32_t Ints __attribute__((vector_size(32)));
  typedef std::uint64_t Words __attribute__((vector_size(32)));
  // NOLINTEND(modernize-use-using)

  static __m256 raw(const Floats& x) { return reinterpret_cast<__m256>(x); }
  static __m256i raw(const Ints& x) { return reinterpret_cast<__m256i>(x); }
  static Floats floats(const __m256& x) { return reinterpret_cast<Floats>(x); }
  static Ints ints(const __m256i& x) { return reinterpret_cast<Ints>(x); }
  static Ints load(const Value* row) {
    return ints(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(row))));
  }
  static void store(Value* row, const Ints& level) {
    const __m128i low = _mm256_castsi256_si128(raw(level));
    const __m128i words = _mm_packus_epi32(low, _mm256_extracti128_si256(raw(level), 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(row), _mm_packus_epi16(words, words));
  }
  static Floats read(const float* values) { return floats(_mm256_loadu_ps(values)); }
  static void add(float* sums, const Floats& value) {
    _mm256_storeu_ps(sums, raw(floats(_mm256_loadu_ps(sums)) + value));
  }
  static Floats choose(const Value* row, const float* both) {
    const __m256i down = _mm256_cmpeq_epi32(raw(load(row)), _mm256_setzero_si256());
    return floats(_mm256_blendv_ps(_mm256_set1_ps(both[1]), _mm256_set1_ps(both[0]), _mm256_castsi256_ps(down)));
  }
  static Floats look_up(const float* table, unsigned bits, const Ints& place) {
    if (bits <= 3) return floats(_mm256_permutevar8x32_ps(_mm256_loadu_ps(table), raw(place)));
    return floats(_mm256_i32gather_ps(table, raw(place), 4));
  }
  static Floats limit(const Floats& x) {
    return floats(_mm256_min_ps(_mm256_max_ps(raw(x), _mm256_set1_ps(-80.0F)), _mm256_set1_ps(80.0F)));
  }
  static Floats least(const Floats& a, const Floats& b) { return floats(_mm256_min_ps(raw(a), raw(b))); }
  static Floats most(const Floats& a, const Floats& b) { return floats(_mm256_max_ps(raw(a), raw(b))); }
  static Ints not_negative(const Floats& x) {
    const __m256 mask = _mm256_cmp_ps(raw(x), _mm256_setzero_ps(), _CMP_GE_OQ);
    return ints(_mm256_srli_epi32(_mm256_castps_si256(mask), 31));
  }
  static unsigned within(const Floats& x, const Floats& error) {
    const __m256 size = _mm256_andnot_ps(_mm256_set1_ps(-0.0F), raw(x));
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(size, raw(error), _CMP_LE_OQ)));
  }
  static Floats scale(const Floats& x, const Floats& power) {
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(raw(power)), _mm256_set1_epi32(127));
    return x * floats(_mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
  }
  static Floats uniform(const LaneSweep& sweep, unsigned v, std::uint64_t word) {
    Words first, second, random;
    std::memcpy(&first, sweep.first_keys + v * 4, sizeof first);
    std::memcpy(&second, sweep.second_keys + v * 4, sizeof second);
    make_keyed_word(first, second, word * kWordStep, random);
    const __m256i digits = _mm256_srli_epi32(reinterpret_cast<__m256i>(random), 8);
    return floats(_mm256_cvtepi32_ps(digits)) * 0x1p-24F;
  }
};

#include "engines/cpu/lanes/lane_update.hpp"

}  // namespace

}  // namespace avx2_lanes

void sweep_lanes_avx2(const LaneSweep& sweep) {
  using avx2_lanes::Sweep;
  if (sweep.betas != nullptr) {
    switch (sweep.lanes) {
      case 16: Sweep<2, true>{sweep}.all(); break;
      case 32: Sweep<4, true>{sweep}.all(); break;
      case 48: Sweep<6, true>{sweep}.all(); break;
      default: Sweep<8, true>{sweep}.all(); break;
    }
    return;
  }
  switch (sweep.lanes) {
    case 8: Sweep<1, false>{sweep}.all(); break;
    case 16: Sweep<2, false>{sweep}.all(); break;
    case 32: Sweep<4, false>{sweep}.all(); break;
    case 48: Sweep<6, false>{sweep}.all(); break;
    default: Sweep<8, false>{sweep}.all(); break;
  }
}

}  // namespace poise

#include "engines/cpu/lanes/instructions_end.hpp"
#endif
