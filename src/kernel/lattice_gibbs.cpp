/// The parts of lattice Gibbs that move spins between the row order of the state and the two colour planes.
#include <poise/kernel/lattice_gibbs.hpp>

#include <algorithm>
#include <cstring>

namespace poise {

namespace {

/// A vector of spins: -1, +1, 0 where there is no site.
typedef std::int8_t Spins __attribute__((vector_size(32)));    // NOLINT(modernize-use-using): as in simd.hpp
typedef std::int32_t Masks4 __attribute__((vector_size(32)));  // NOLINT(modernize-use-using): of four spins, repeated
typedef std::int64_t Words4 __attribute__((vector_size(32)));  // NOLINT(modernize-use-using)
constexpr Index kSpinLanes = 32;

struct Shape {
  Index stride;
  std::size_t size;
};

/// Of a plane: room for a whole vector past the last site of a row and its border, and for a long one past the last
/// row.
Shape shape_of(const LatticeIsing& target, Index border) {
  const Index sites = (target.columns() + 1) / 2;
  const Index stride = border + (sites + 1 + 7) / 8 * 8 + 8;
  return {stride, std::size_t{target.rows() + 2} * stride + 2 * kSpinLanes};
}

/// Sums over all sites. Spins are summed in lanes and taken out of them before these would overflow.
struct Totals {
  static constexpr int kMost = 31;  // blocks of lanes that are at most four in size

  Spins spins = {};
  Spins products = {};  // of neighbouring spins
  int blocks = 0;
  std::int64_t magnetization = 0;
  std::int64_t pairs = 0;
  Words4 up_fields = {};  // of sites with spin +1

  POISE_INLINE void flush() {
    for (Index k = 0; k < kSpinLanes; ++k) {
      magnetization += spins[k];
      pairs += products[k];
    }
    spins = products = Spins{};
    blocks = 0;
  }
};

struct Block {
  Spins mine;
  const Spins* neighbours;  // four
};

POISE_INLINE Spins load_spins(const std::int8_t* from) {
  Spins v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

/// All bits set in the first `count` lanes.
POISE_INLINE Spins lanes_below(Index count) {
  constexpr Spins kLanes = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                            16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
  return kLanes < static_cast<std::int8_t>(std::min(count, kSpinLanes));
}

POISE_INLINE Spins interleave_low(const Spins& a, const Spins& b) {
  return __builtin_shufflevector(a, b, 0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 8, 40, 9, 41, 10, 42, 11,
                                 43, 12, 44, 13, 45, 14, 46, 15, 47);
}
POISE_INLINE Spins interleave_high(const Spins& a, const Spins& b) {
  return __builtin_shufflevector(a, b, 16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55, 24, 56, 25, 57,
                                 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63);
}

/// Adds the fields of the sites where `plus` is set.
POISE_INLINE void add_fields(const Spins& plus, const std::int64_t* units, Totals& totals) {
  std::int32_t four[kSpinLanes / 4];
  std::memcpy(four, &plus, sizeof four);
  for (Index k = 0; k < kSpinLanes / 4; ++k) {
    // Four bytes, each of them repeated eight times: a mask of four words.
    const Masks4 copies = Masks4{} + four[k];
    const auto bytes = reinterpret_cast<Spins>(copies);
    const Spins mask = __builtin_shufflevector(bytes, bytes, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 18, 18, 18,
                                               18, 18, 18, 18, 18, 19, 19, 19, 19, 19, 19, 19, 19);
    Words4 value;
    std::memcpy(&value, units + 4 * k, sizeof value);
    totals.up_fields += value & reinterpret_cast<Words4>(mask);
  }
}

/// Adds thirty-two sites to the totals and gives their codes. Lanes without a site have spin 0 and field 0.
POISE_INLINE Spins add_block(const Block& block, const std::int64_t* units, bool count_pairs, Totals& totals) {
  const Spins& mine = block.mine;
  const Spins* n = block.neighbours;
  const Spins sum = n[0] + n[1] + n[2] + n[3];
  const Spins present = (n[0] != 0) + (n[1] != 0) + (n[2] != 0) + (n[3] != 0);  // minus their number
  const Spins minus = mine < 0;
  totals.spins += mine;
  if (count_pairs) totals.products += ((sum ^ minus) - minus) & (mine != 0);  // every edge joins both colours
  if (++totals.blocks == Totals::kMost) totals.flush();
  if (units != nullptr) add_fields(mine > 0, units, totals);
  return ((mine + std::int8_t{1}) << 2) + ((sum - present) >> 1);
}

}  // namespace

LatticeGibbs::Scratch::Scratch(const LatticeIsing& target) : stride(shape_of(target, kBorder).stride) {
  for (Plane& one : plane) {
    one.spin.assign(shape_of(target, kBorder).size, 0);
    one.up.assign(one.spin.size(), 0);
  }
}

LatticeGibbs::LatticeGibbs(const LatticeIsing& target) {
  const Shape shape = shape_of(target, kBorder);
  auto made = std::make_shared<std::array<Fields, 2>>();
  for (unsigned colour = 0; colour < 2; ++colour) {
    Fields& fields = (*made)[colour];
    fields.field.assign(shape.size, 0.0);
    fields.units.assign(shape.size, 0);
    for (Index row = 0; row < target.rows(); ++row) {
      const std::size_t start = std::size_t{row + 1} * shape.stride + kBorder;
      const Index shift = parity(row, colour);
      for (Index k = 0; 2 * k + shift < target.columns(); ++k) {
        const Index site = row * target.columns() + 2 * k + shift;
        fields.field[start + k] = target.field(site);
        fields.units[start + k] = target.field_units(site);
        sum_of_fields_ += fields.units[start + k];
        has_fields_ = has_fields_ || fields.units[start + k] != 0;
      }
    }
  }
  fields_ = made->data();
  shared_ = std::move(made);
}

void LatticeGibbs::prepare(const LatticeIsing& target, const LatticeIsing::State& state, Scratch& scratch) const {
  for (unsigned colour = 0; colour < 2; ++colour) {
    for (Index row = 0; row < target.rows(); ++row) {
      const Index shift = parity(row, colour);
      for (Index k = 0; 2 * k + shift < target.columns(); ++k) {
        const auto site = state.sites[row * target.columns() + 2 * k + shift];
        scratch.plane[colour].spin[row_start(scratch, row) + k] = static_cast<std::int8_t>(LatticeIsing::spin_of(site));
      }
    }
    if (target.is_torus()) wrap(target, scratch, colour);
  }
}

void LatticeGibbs::wrap(const LatticeIsing& target, Scratch& scratch, unsigned colour) {
  std::int8_t* spin = scratch.plane[colour].spin.data();
  const Index sites = target.columns() / 2;
  for (Index row = 0; row < target.rows(); ++row) {
    std::int8_t* first = spin + row_start(scratch, row);
    first[-1] = first[sites - 1];
    first[sites] = first[0];
  }
  // The parity of a row's columns is that of the row it borders on, since the number of rows is even.
  const auto row_begin = [&](std::size_t line) { return spin + line * scratch.stride; };
  std::copy_n(row_begin(target.rows()), scratch.stride, row_begin(0));
  std::copy_n(row_begin(1), scratch.stride, row_begin(target.rows() + std::size_t{1}));
}

void LatticeGibbs::publish(const LatticeIsing& target, LatticeIsing::State& state, Scratch& scratch) const {
  if (scratch.recent >= std::uint64_t{1} << 31) {
    for (Plane& plane : scratch.plane) {
      plane.earlier.resize(plane.up.size(), 0);
      for (std::size_t k = 0; k < plane.up.size(); ++k) plane.earlier[k] += plane.up[k];
      std::fill(plane.up.begin(), plane.up.end(), 0);
    }
    scratch.recent = 0;
  }
  write_back(target, state, scratch);
}

/// Thirty-two sites of one colour at a time.
void LatticeGibbs::write_back(const LatticeIsing& target, LatticeIsing::State& state, const Scratch& scratch) const {
  const Index rows = target.rows();
  const Index columns = target.columns();
  const Index stride = scratch.stride;
  const std::int8_t* const spins[2] = {scratch.plane[0].spin.data(), scratch.plane[1].spin.data()};
  const std::int64_t* const units[2] = {fields_[0].units.data(), fields_[1].units.data()};
  const bool with_fields = has_fields_;
  LatticeIsing::Site* const sites = state.sites.data();
  const std::size_t size = state.sites.size();
  const Totals totals = hot([=] {
    Totals sum;
    for (Index row = 0; row < rows; ++row) {
      const std::size_t start = std::size_t{row + 1} * stride + kBorder;
      for (Index first = 0; 2 * first < columns; first += kSpinLanes) {
        Spins codes[2];  // by the parity of the column
        for (unsigned colour = 0; colour < 2; ++colour) {
          const Index shift = parity(row, colour);
          const Index count = (columns - shift + 1) / 2;
          const std::int8_t* other = spins[1 - colour] + start + first;
          const Spins neighbours[4] = {load_spins(other - stride), load_spins(other + stride), load_spins(other),
                                       load_spins(other + (shift != 0 ? 1 : -1))};
          const Spins inside = lanes_below(count > first ? count - first : 0);
          const Spins mine = load_spins(spins[colour] + start + first) & inside;
          codes[shift] =
              add_block({mine, neighbours}, with_fields ? units[colour] + start + first : nullptr, colour == 1, sum);
        }
        // Columns alternate between the colours.
        const Spins low = interleave_low(codes[0], codes[1]);
        const Spins high = interleave_high(codes[0], codes[1]);
        std::int8_t both[2 * kSpinLanes];
        std::memcpy(both, &low, sizeof low);
        std::memcpy(both + kSpinLanes, &high, sizeof high);
        // What this writes past its row is written anew with the next one.
        const std::size_t offset = std::size_t{row} * columns + 2 * first;
        if (offset + sizeof both <= size) {
          std::memcpy(sites + offset, both, sizeof both);
        } else {
          std::memcpy(sites + offset, both, size - offset);
        }
      }
    }
    sum.flush();
    return sum;
  });
  state.magnetization = totals.magnetization;
  state.fields = 2 * sum4(totals.up_fields) - sum_of_fields_;
  state.pairs = totals.pairs;
}

void LatticeGibbs::reset_marginals(Scratch& scratch) const {
  for (Plane& plane : scratch.plane) {
    std::fill(plane.up.begin(), plane.up.end(), 0);
    plane.earlier.clear();
  }
  scratch.sweeps = scratch.recent = 0;
}

void LatticeGibbs::add_marginals(const LatticeIsing& target, const Scratch& scratch, std::span<double> out) const {
  const double scale = scratch.sweeps > 0 ? 1.0 / static_cast<double>(scratch.sweeps) : 0.0;
  for (unsigned colour = 0; colour < 2; ++colour) {
    const Plane& plane = scratch.plane[colour];
    for (Index row = 0; row < target.rows(); ++row) {
      const Index shift = parity(row, colour);
      for (Index k = 0; 2 * k + shift < target.columns(); ++k) {
        const std::size_t place = row_start(scratch, row) + k;
        const std::uint64_t up = plane.up[place] + (plane.earlier.empty() ? 0 : plane.earlier[place]);
        out[row * target.columns() + 2 * k + shift] += scale * static_cast<double>(up);
      }
    }
  }
}

}  // namespace poise
