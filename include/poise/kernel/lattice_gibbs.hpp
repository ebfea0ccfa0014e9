/// Systematic Gibbs on an Ising lattice, checkerboard order, eight sites at a time.
///
/// The sites of each colour are stored apart, row by row, so that the four neighbours of eight consecutive sites are
/// four consecutive loads of the other colour. A border of one site on every side holds the wrapped-around spins of a
/// torus or the zeros outside an open lattice. One step is one sweep: colour 0, then colour 1.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include <poise/concepts.hpp>
#include <poise/math.hpp>
#include <poise/target/lattice_ising.hpp>

namespace poise {

class LatticeGibbs {
 public:
  static constexpr InstructionSet kWidest = InstructionSet::avx512;  // half as fast again as with AVX2

  struct Fields {                     // of the sites of one colour, the same for all chains
    std::vector<double> field;        // 0 where there is no site
    std::vector<std::int64_t> units;  // the same as integers, in the target's unit
  };
  struct Plane {                         // the sites of one colour
    std::vector<std::int8_t> spin;       // -1, +1; 0 where there is no site
    std::vector<std::uint32_t> up;       // sweeps after which the spin was +1
    std::vector<std::uint64_t> earlier;  // the same of sweeps long ago, before `up` would have overflowed

    template <class A>
    void archive(A& archive) {
      archive(spin, up, earlier);
    }
  };
  struct Scratch {
    explicit Scratch(const LatticeIsing& target);
    Plane plane[2];
    Index stride;  // of a row in a plane, border included
    std::uint64_t sweeps = 0;
    std::uint64_t recent = 0;  // sweeps that are counted in `up`
    Evals evals;

    /// What the next step depends on, and what was counted.
    template <class A>
    void archive(A& archive) {
      archive(plane[0], plane[1], sweeps, recent, evals);
    }
  };

  /// The kernel is for this target only.
  explicit LatticeGibbs(const LatticeIsing& target);

  /// The checkerboard closes around a torus only if both sides are even.
  [[nodiscard]] static bool fits(const LatticeIsing& target) {
    return !target.is_torus() || (target.rows() % 2 == 0 && target.columns() % 2 == 0);
  }
  [[nodiscard]] static Index steps_per_sweep(const LatticeIsing&) { return 1; }

  void prepare(const LatticeIsing& target, const LatticeIsing::State& state, Scratch& scratch) const;

  /// P(spin = +1 | neighbours) for eight sites is 1 / (1 + odds_down); a spin is up when uniform * (1 + odds_down) < 1.
  POISE_INLINE static Doubles8 odds_down(const Doubles8& field, const Doubles8& neighbours, double coupling) {
    return exp8(-2.0 * (field + coupling * neighbours));
  }

  POISE_INLINE StepInfo step(const LatticeIsing& target, LatticeIsing::State&, Scratch& scratch, Rng& rng) const {
    update(target, fields_[0], scratch, 0, rng);
    update(target, fields_[1], scratch, 1, rng);
    ++scratch.sweeps;
    ++scratch.recent;
    scratch.evals.ratio += target.num_variables();
    return {1.0, true, target.num_variables()};
  }

  /// Writes the spins back into the state.
  void publish(const LatticeIsing& target, LatticeIsing::State& state, Scratch& scratch) const;

  /// Nothing to visit: the planes count how often each spin was up.
  template <class Visit>
  POISE_INLINE void for_each_change(const LatticeIsing&, const LatticeIsing::State&, const Scratch&, const StepInfo&,
                                    Visit&&) const {}

  /// Starts the counting of spins anew.
  void reset_marginals(Scratch& scratch) const;
  /// Adds the part of the sweeps after which each spin was up.
  void add_marginals(const LatticeIsing& target, const Scratch& scratch, std::span<double> out) const;

  /// Column of site k of a row in the plane of a colour is 2 k + parity.
  [[nodiscard]] static Index parity(Index row, unsigned colour) { return (row + colour) & 1; }

 private:
  static constexpr Index kBorder = 8;  // columns before the first site of a row; keeps rows aligned to eight

  POISE_INLINE static std::size_t row_start(const Scratch& scratch, Index row) {
    return std::size_t{row + 1} * scratch.stride + kBorder;
  }
  static void wrap(const LatticeIsing& target, Scratch& scratch, unsigned colour);
  void write_back(const LatticeIsing& target, LatticeIsing::State& state, const Scratch& scratch) const;

  POISE_INLINE static void update(const LatticeIsing& target, const Fields& fields, Scratch& scratch, unsigned colour,
                                  Rng& rng) {
    using Bytes4 = std::int8_t __attribute__((vector_size(4)));
    using Words4 = std::int32_t __attribute__((vector_size(16)));
    using Doubles4 = Doubles8::Half;
    const double coupling = target.coupling();
    Plane& mine = scratch.plane[colour];
    const Plane& other = scratch.plane[1 - colour];
    const Index columns = target.columns();
    const auto load = [](const std::int8_t* from) {
      Bytes4 v;
      std::memcpy(&v, from, sizeof v);
      return v;
    };
    for (Index row = 0; row < target.rows(); ++row) {
      const Index shift = parity(row, colour);
      const Index count = (columns - shift + 1) / 2;
      const std::size_t start = row_start(scratch, row);
      const std::int8_t* here = other.spin.data() + start;
      const std::int8_t* side = here + (shift != 0 ? 1 : -1);
      const auto neighbours = [&](Index k) {
        const std::int8_t* p = here + k;
        return __builtin_convertvector(load(p - scratch.stride) + load(p + scratch.stride) + load(p) + load(side + k),
                                       Words4);
      };
      for (Index k = 0; k < count; k += 8) {
        const Doubles8 sums = {__builtin_convertvector(neighbours(k), Doubles4),
                               __builtin_convertvector(neighbours(k + 4), Doubles4)};
        const Doubles8 field = load8(fields.field.data() + start + k);
        const Ints8 up = less8(rng.uniform8() * (1.0 + odds_down(field, sums, coupling)), broadcast8(1.0));
        constexpr Ints8 kLanes = {{0, 1, 2, 3}, {4, 5, 6, 7}};
        const Ints8 inside = less8(kLanes, all8(static_cast<std::int64_t>(count - k)));
        const auto write = [&](std::size_t place, Ints8::Half is_up, Ints8::Half is_inside) {
          const Words4 spin = __builtin_convertvector(((is_up & 2) - 1) & is_inside, Words4);
          const Bytes4 stored = __builtin_convertvector(spin, Bytes4);
          std::memcpy(mine.spin.data() + place, &stored, sizeof stored);
          Words4 counts;
          std::memcpy(&counts, mine.up.data() + place, sizeof counts);
          counts -= __builtin_convertvector(is_up & is_inside, Words4);
          std::memcpy(mine.up.data() + place, &counts, sizeof counts);
        };
        write(start + k, up.low, inside.low);
        write(start + k + 4, up.high, inside.high);
      }
    }
    if (target.is_torus()) wrap(target, scratch, colour);
  }

  std::shared_ptr<const std::array<Fields, 2>> shared_;
  const Fields* fields_;            // both colours of `shared_`
  std::int64_t sum_of_fields_ = 0;  // in units
  bool has_fields_ = false;
};

}  // namespace poise
