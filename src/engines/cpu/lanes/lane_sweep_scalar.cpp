/// Sweeps of one or two chains, and of any number on processors without vectors of eight floats: a chain at a time.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "engines/common/keyed_words.hpp"
#include "engines/cpu/lanes/lane_sweep.hpp"

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

void sweep_lanes_scalar(const LaneSweep& sweep) {
  using scalar_lanes::Sweep;
  if (sweep.betas != nullptr) {
    switch (sweep.lanes) {
      case 16: Sweep<16, true>{sweep}.all(); break;
      case 32: Sweep<32, true>{sweep}.all(); break;
      case 48: Sweep<48, true>{sweep}.all(); break;
      default: Sweep<64, true>{sweep}.all(); break;
    }
    return;
  }
  switch (sweep.lanes) {
    case 1: Sweep<1, false>{sweep}.all(); break;
    case 2: Sweep<2, false>{sweep}.all(); break;
    case 8: Sweep<8, false>{sweep}.all(); break;
    case 16: Sweep<16, false>{sweep}.all(); break;
    case 32: Sweep<32, false>{sweep}.all(); break;
    case 48: Sweep<48, false>{sweep}.all(); break;
    default: Sweep<64, false>{sweep}.all(); break;
  }
}

}  // namespace poise
