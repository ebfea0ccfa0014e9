/// Sweeps of chains across lanes: a chain at a time, and eight or sixteen chains a vector with AVX2 and AVX-512.
#include "engines/cpu/lanes/lane_sweep.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "engines/common/keyed_words.hpp"
#include "engines/cpu/lanes/instructions.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace poise {

namespace scalar_lanes {

namespace {

struct Lanes {
  static constexpr unsigned kCount = 1;
  using Floats = float;
  using Ints = std::int32_t;

  static Ints load(const Value* row) { return *row; }
  static void store(Value* row, Ints level) { *row = static_cast<Value>(level); }
  static Floats read(const float* values) { return *values; }
  static void add(float* sums, Floats value) { *sums += value; }
  static Floats choose(const Value* row, const float* both) { return both[*row]; }  // without a branch
  static Floats look_up(const float* table, unsigned, Ints place) { return table[place]; }
  static Floats limit(Floats x) { return std::min(std::max(x, -80.0F), 80.0F); }
  static Floats least(Floats a, Floats b) { return std::min(a, b); }
  static Floats most(Floats a, Floats b) { return std::max(a, b); }
  static Ints not_negative(Floats x) { return x >= 0.0F ? 1 : 0; }
  static unsigned within(Floats x, Floats error) { return std::abs(x) <= error ? 1 : 0; }
  static Floats scale(Floats x, Floats power) {
    return x * std::bit_cast<float>((static_cast<std::int32_t>(power) + 127) << 23);
  }
  static Floats uniform(const LaneSweep& sweep, unsigned v, std::uint64_t word) {
    const std::uint64_t random = keyed_word(sweep.first_keys[v], sweep.second_keys[v], word * kWordStep);
    const auto half = static_cast<std::uint32_t>(random >> sweep.shifts[v]);
    return static_cast<float>(static_cast<std::int32_t>(half >> 8)) * 0x1p-24F;
  }
};

#include "engines/cpu/lanes/lane_update.hpp"

}  // namespace

}  // namespace scalar_lanes

void sweep_lanes_scalar(const LaneSweep& sweep) { scalar_lanes::sweep_any(sweep); }

#if defined(__x86_64__)

POISE_BEGIN_AVX2

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

#include "engines/cpu/lanes/lane_update.hpp"  // NOLINT(readability-duplicate-include): once for each instruction set

}  // namespace

}  // namespace avx2_lanes

void sweep_lanes_avx2(const LaneSweep& sweep) { avx2_lanes::sweep_any(sweep); }

POISE_END_INSTRUCTIONS

POISE_BEGIN_AVX512

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

#include "engines/cpu/lanes/lane_update.hpp"  // NOLINT(readability-duplicate-include): once for each instruction set

}  // namespace

}  // namespace avx512_lanes

void sweep_lanes_avx512(const LaneSweep& sweep) { avx512_lanes::sweep_any(sweep); }

POISE_END_INSTRUCTIONS

#endif

}  // namespace poise
