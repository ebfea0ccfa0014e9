/// Eight doubles at a time, on any x86-64: vector extensions plus one clone of each hot loop per instruction set.
///
/// A function marked POISE_HOT is compiled for baseline x86-64, AVX2 and AVX-512, and the loader picks the best one the
/// machine has. Everything it calls is inlined into each clone, so helpers need no marking. Products and sums are never
/// contracted (the build says so), hence all clones give the same bits. A hot function must not throw: the compiler takes
/// calls through the dispatcher for calls that do not.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && !defined(POISE_SANITIZED)
#define POISE_HOT __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4"), flatten, noinline))
#else
#define POISE_HOT __attribute__((noinline))
#endif
#define POISE_INLINE inline __attribute__((always_inline))

namespace poise {

using Doubles8 = double __attribute__((vector_size(64)));
using Ints8 = std::int64_t __attribute__((vector_size(64)));
using Words8 = std::uint64_t __attribute__((vector_size(64)));

POISE_INLINE Doubles8 load8(const double* from) {
  Doubles8 v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

POISE_INLINE void store8(double* to, Doubles8 v) { std::memcpy(to, &v, sizeof v); }

POISE_INLINE Doubles8 broadcast8(double a) { return a - Doubles8{}; }  // one instruction; eight initialisers are not

POISE_INLINE Doubles8 min8(Doubles8 a, Doubles8 b) { return a < b ? a : b; }
POISE_INLINE Doubles8 max8(Doubles8 a, Doubles8 b) { return a > b ? a : b; }

POISE_INLINE Doubles8 abs8(Doubles8 a) {
  constexpr std::int64_t kMask = 0x7fffffffffffffff;
  return reinterpret_cast<Doubles8>(reinterpret_cast<Ints8>(a) & kMask);
}

/// Sum of the eight lanes, always in the same order (a balanced tree).
POISE_INLINE double sum8(Doubles8 v) {
  using Doubles4 = double __attribute__((vector_size(32)));
  using Doubles2 = double __attribute__((vector_size(16)));
  const Doubles4 a = __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
  const Doubles2 b = __builtin_shufflevector(a, a, 0, 1) + __builtin_shufflevector(a, a, 2, 3);
  return b[0] + b[1];
}

}  // namespace poise
