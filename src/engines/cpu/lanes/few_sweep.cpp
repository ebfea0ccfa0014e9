/// Sweeps of a few chains on any processor.
#include "engines/cpu/lanes/few_sweep.hpp"

#include <algorithm>
#include <cstring>

#include <poise/extend/base/simd.hpp>

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
  POISE_INLINE static Words load(const std::uint64_t* from) {
    Words words;
    std::memcpy(&words.low, from, sizeof words.low);
    std::memcpy(&words.high, from + 4, sizeof words.high);
    return words;
  }
  POISE_INLINE static void store(std::uint64_t* to, const Words& words) {
    std::memcpy(to, &words.low, sizeof words.low);
    std::memcpy(to + 4, &words.high, sizeof words.high);
  }
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

#include "engines/cpu/lanes/few_update.hpp"

}  // namespace

}  // namespace generic_eights

void sweep_eights(const FewSweep& sweep) {
#if defined(__x86_64__)
  if (kInstructionSet == InstructionSet::avx512) return sweep_eights_avx512(sweep);
#endif
  hot<InstructionSet::avx2>([&sweep] {
    switch (sweep.run->size) {
      case 4: generic_eights::sweep_all<4>(sweep); break;
      case 5: generic_eights::sweep_all<5>(sweep); break;
      default: generic_eights::sweep_all<6>(sweep); break;
    }
  });
}

}  // namespace poise
