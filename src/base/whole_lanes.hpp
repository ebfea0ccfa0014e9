/// Eight numbers in one register of 64 bytes, for loops that gain from it on processors that work on all of it at once.
///
/// `hot_lanes([=]<class L>(L) { ... })` runs its body as `hot` does, with L::Doubles one register under AVX-512 and
/// Lanes8, two of 32 bytes, elsewhere. Both make the same operations on each number and sum in the same order, so they
/// give the same bits.
#pragma once

#include <cstdint>
#include <cstring>

#include <poise/extend/base/simd.hpp>

namespace poise {

template <class T>
struct Whole8 {
  typedef T Full __attribute__((vector_size(64)));  // NOLINT(modernize-use-using): the attribute needs the old form
  Full all;
};

#define POISE_WHOLE(op)                                                        \
  template <class T>                                                           \
  POISE_INLINE Whole8<T> operator op(const Whole8<T>& a, const Whole8<T>& b) { \
    return {a.all op b.all};                                                   \
  }                                                                            \
  template <class T>                                                           \
  POISE_INLINE Whole8<T> operator op(const Whole8<T>& a, T b) {                \
    return {a.all op b};                                                       \
  }                                                                            \
  template <class T>                                                           \
  POISE_INLINE Whole8<T> operator op(T a, const Whole8<T>& b) {                \
    return {a op b.all};                                                       \
  }
POISE_WHOLE(+)
POISE_WHOLE(-)
POISE_WHOLE(*)
POISE_WHOLE(/)
#undef POISE_WHOLE

template <class T>
POISE_INLINE Whole8<T>& operator+=(Whole8<T>& a, const Whole8<T>& b) {
  return a = a + b;
}
template <class T>
POISE_INLINE Whole8<T> operator<<(const Whole8<T>& a, int shift) {
  return {a.all << shift};
}
template <class T>
POISE_INLINE Whole8<T> operator>>(const Whole8<T>& a, int shift) {
  return {a.all >> shift};
}

/// The same numbers in two registers.
template <class T>
POISE_INLINE Lanes8<T> halves8(const Whole8<T>& a) {
  Lanes8<T> out;
  std::memcpy(&out.low, &a.all, sizeof out.low);
  std::memcpy(&out.high, reinterpret_cast<const char*>(&a.all) + sizeof out.low, sizeof out.high);
  return out;
}
template <class T>
POISE_INLINE const Lanes8<T>& halves8(const Lanes8<T>& a) {
  return a;
}

template <class To, class From>
POISE_INLINE Whole8<To> bits8(const Whole8<From>& a) {
  return {reinterpret_cast<typename Whole8<To>::Full>(a.all)};
}
POISE_INLINE Whole8<double> max8(const Whole8<double>& a, const Whole8<double>& b) {
  return {a.all > b.all ? a.all : b.all};
}
/// Whether every number of one is less than that of the other.
POISE_INLINE bool all_less8(const Whole8<double>& a, const Whole8<double>& b) {
  return all_of8(halves8(Whole8<std::int64_t>{a.all < b.all}));
}
POISE_INLINE bool all_less8(const Doubles8& a, const Doubles8& b) { return all_of8(less8(a, b)); }
POISE_INLINE double sum8(const Whole8<double>& a) { return sum8(halves8(a)); }
template <class T>
POISE_INLINE void store8(T* to, const Whole8<T>& a) {
  std::memcpy(to, &a.all, sizeof a.all);
}

struct WholeLanes {
  using Doubles = Whole8<double>;
  using Words = Whole8<std::uint64_t>;
  POISE_INLINE static Doubles load(const double* from) {
    Doubles a;
    std::memcpy(&a.all, from, sizeof a.all);
    return a;
  }
  POISE_INLINE static Doubles all(double a) { return {a - Doubles::Full{}}; }
  POISE_INLINE static Doubles from(const Doubles8& a) {
    Doubles out;
    std::memcpy(&out.all, &a.low, sizeof a.low);
    std::memcpy(reinterpret_cast<char*>(&out.all) + sizeof a.low, &a.high, sizeof a.high);
    return out;
  }
};

struct HalfLanes {
  using Doubles = Doubles8;
  using Words = Words8;
  POISE_INLINE static Doubles load(const double* from) { return load8(from); }
  POISE_INLINE static Doubles all(double a) { return broadcast8(a); }
  POISE_INLINE static const Doubles& from(const Doubles8& a) { return a; }
};

template <class Body, class L>
struct BodyOfLanes {
  Body body;
  POISE_INLINE auto operator()() const { return body(L{}); }
};

template <class Body>
POISE_INLINE auto hot_lanes(const Body& body) {
#if defined(__x86_64__) && !defined(POISE_SANITIZED)
  if (kInstructionSet == InstructionSet::avx512) return run_avx512(BodyOfLanes<Body, WholeLanes>{body});
#endif
  return hot<InstructionSet::avx2>(BodyOfLanes<Body, HalfLanes>{body});
}

}  // namespace poise
