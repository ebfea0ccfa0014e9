/// Eight numbers at a time, on any processor: vector extensions, for loops that are compiled for each instruction set.
#pragma once

#include <cstdint>
#include <cstring>

#include <poise/extend/base/hot.hpp>

namespace poise {

/// Two vectors of 32 bytes. One of 64 would be taken apart element by element wherever the compiler compares or selects
/// on a processor without AVX-512, and gains nothing on one that has it but works in halves. Numbers of 64 bits have
/// eight lanes, those of 32 bits have sixteen (lanes16.hpp).
template <class T>
struct Lanes {
  typedef T Half __attribute__((vector_size(32)));  // NOLINT(modernize-use-using): the attribute needs the old form
  static constexpr unsigned kHalf = 32 / sizeof(T);
  Half low;
  Half high;

  POISE_INLINE T operator[](unsigned lane) const { return lane < kHalf ? low[lane] : high[lane - kHalf]; }
  /// Slow: goes through memory unless `lane` is known to the compiler.
  POISE_INLINE void set(unsigned lane, T value) {
    if (lane < kHalf) {
      low[lane] = value;
    } else {
      high[lane - kHalf] = value;
    }
  }
};

template <class T>
using Lanes8 = Lanes<T>;
using Doubles8 = Lanes8<double>;
using Ints8 = Lanes8<std::int64_t>;
using Words8 = Lanes8<std::uint64_t>;

template <class T>
POISE_INLINE Lanes8<T> lanes8(T a, T b, T c, T d, T e, T f, T g, T h) {
  const typename Lanes8<T>::Half low = {a, b, c, d};
  const typename Lanes8<T>::Half high = {e, f, g, h};
  return {low, high};
}
template <class T>
POISE_INLINE Lanes8<T> all8(T a) {
  return {a - typename Lanes8<T>::Half{}, a - typename Lanes8<T>::Half{}};
}
POISE_INLINE Doubles8 broadcast8(double a) { return all8(a); }

#define POISE_LANEWISE(op)                                                  \
  template <class T>                                                        \
  POISE_INLINE Lanes<T> operator op(const Lanes<T>& a, const Lanes<T>& b) { \
    return {a.low op b.low, a.high op b.high};                              \
  }                                                                         \
  template <class T>                                                        \
  POISE_INLINE Lanes<T> operator op(const Lanes<T>& a, T b) {               \
    return {a.low op b, a.high op b};                                       \
  }                                                                         \
  template <class T>                                                        \
  POISE_INLINE Lanes<T> operator op(T a, const Lanes<T>& b) {               \
    return {a op b.low, a op b.high};                                       \
  }
POISE_LANEWISE(+)
POISE_LANEWISE(-)
POISE_LANEWISE(*)
POISE_LANEWISE(/)
POISE_LANEWISE(&)
POISE_LANEWISE(|)
POISE_LANEWISE(^)
#undef POISE_LANEWISE

template <class T>
POISE_INLINE Lanes<T>& operator+=(Lanes<T>& a, const Lanes<T>& b) {
  return a = a + b;
}
template <class T>
POISE_INLINE Lanes<T> operator<<(const Lanes<T>& a, int shift) {
  return {a.low << shift, a.high << shift};
}
template <class T>
POISE_INLINE Lanes<T> operator>>(const Lanes<T>& a, int shift) {
  return {a.low >> shift, a.high >> shift};
}

// Comparisons give -1 in the lanes where they hold and 0 elsewhere.
template <class T>
POISE_INLINE Ints8 less8(const Lanes8<T>& a, const Lanes8<T>& b) {
  return {a.low < b.low, a.high < b.high};
}
template <class T>
POISE_INLINE Ints8 less_equal8(const Lanes8<T>& a, const Lanes8<T>& b) {
  return {a.low <= b.low, a.high <= b.high};
}
/// Whether a comparison held in every lane.
POISE_INLINE bool all_of8(const Ints8& mask) {
  const auto both = mask.low & mask.high;
  const auto pairs = both & __builtin_shufflevector(both, both, 2, 3, 0, 1);
  return (pairs[0] & pairs[1]) != 0;
}
POISE_INLINE Doubles8 select8(const Ints8& mask, const Doubles8& a, const Doubles8& b) {
  return {mask.low ? a.low : b.low, mask.high ? a.high : b.high};
}

/// The same bits as another type.
template <class To, class From>
POISE_INLINE Lanes8<To> bits8(const Lanes8<From>& a) {
  using Half = typename Lanes8<To>::Half;
  return {reinterpret_cast<Half>(a.low), reinterpret_cast<Half>(a.high)};
}

/// Eight doubles on a cache line of their own. In a vector of these nothing that is loaded lies across two lines.
struct alignas(64) Line8 {
  double lanes[8];
};

template <class T>
POISE_INLINE Lanes8<T> load8(const T* from) {
  Lanes8<T> v;
  std::memcpy(&v.low, from, sizeof v.low);
  std::memcpy(&v.high, from + 4, sizeof v.high);
  return v;
}
template <class T>
POISE_INLINE void store8(T* to, const Lanes8<T>& v) {
  std::memcpy(to, &v.low, sizeof v.low);
  std::memcpy(to + 4, &v.high, sizeof v.high);
}

/// Where a lane of `b` is not a number, neither is the result.
POISE_INLINE Doubles8 min8(const Doubles8& a, const Doubles8& b) {
  return {a.low < b.low ? a.low : b.low, a.high < b.high ? a.high : b.high};
}
POISE_INLINE Doubles8 max8(const Doubles8& a, const Doubles8& b) {
  return {a.low > b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
}
POISE_INLINE Doubles8 abs8(const Doubles8& a) {
  return bits8<double>(bits8<std::int64_t>(a) & std::int64_t{0x7fffffffffffffff});
}

/// Sum of four lanes, and of eight, always in the same order (a balanced tree).
template <class Half>
POISE_INLINE auto sum4(Half v) {
  const auto pairs = v + __builtin_shufflevector(v, v, 2, 3, 0, 1);
  return pairs[0] + pairs[1];
}
POISE_INLINE double sum8(const Doubles8& v) { return sum4(v.low + v.high); }

}  // namespace poise
