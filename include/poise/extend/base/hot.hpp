/// Hot loops: compiled once for each instruction set, run on the best that the processor has.
///
/// `hot([=] { ... })` does so with the body it is given. Everything that the body calls is inlined into each copy as
/// far as the compiler can, so helpers are marked POISE_INLINE and nothing else. Products and sums are never contracted
/// (the build says so), hence all copies give the same bits. Numbers and pointers are captured by value: the compiler
/// then knows that no store in the loop changes them. `hot<InstructionSet::avx2>` makes no copy for AVX-512, for loops
/// that are no faster with it: what waits for memory, or works on one short vector at a time.
#pragma once

#define POISE_INLINE inline __attribute__((always_inline))

namespace poise {

enum class InstructionSet : unsigned char { baseline, avx2, avx512 };

/// What hot loops are run with: the best that the processor has, or less where the environment variable
/// POISE_INSTRUCTIONS says so (baseline, avx2 or avx512). Until static objects are made it is the baseline.
extern const InstructionSet kInstructionSet;

#if defined(__x86_64__) && !defined(POISE_SANITIZED)

// Processors without AVX2 are from before 2013. Their copy is the largest of the three, since eight lanes take four
// registers each, and at -O3 takes a third of the time that the library takes to compile.
#if defined(__GNUC__) && !defined(__clang__)
#define POISE_BASELINE __attribute__((optimize("O1")))
#else
#define POISE_BASELINE
#endif

// A body is passed by reference and copied inside, where its captures become registers. (A copy that is made for the
// call would be read back from memory in larger chunks than it was written in, which processors wait for.)
template <class Body>
POISE_BASELINE __attribute__((flatten, noinline)) auto run_baseline(const Body& body) {
  return Body(body)();
}
template <class Body>
__attribute__((target("arch=x86-64-v3"), flatten, noinline)) auto run_avx2(const Body& body) {
  return Body(body)();
}
template <class Body>
__attribute__((target("arch=x86-64-v4"), flatten, noinline)) auto run_avx512(const Body& body) {
  return Body(body)();
}

template <InstructionSet best = InstructionSet::avx512, class Body>
POISE_INLINE auto hot(const Body& body) {
  if (kInstructionSet == InstructionSet::baseline) return run_baseline(body);
  if constexpr (best == InstructionSet::avx512) {
    if (kInstructionSet == InstructionSet::avx512) return run_avx512(body);
  }
  return run_avx2(body);
}

#else

template <InstructionSet best = InstructionSet::avx512, class Body>
POISE_INLINE auto hot(const Body& body) {
  return body();
}

#endif

}  // namespace poise
