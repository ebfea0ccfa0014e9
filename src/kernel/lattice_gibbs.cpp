/// The parts of lattice Gibbs that move spins between the row order of the state and the two colour planes.
#include <poise/kernel/lattice_gibbs.hpp>

#include <algorithm>

namespace poise {

namespace {

struct Shape {
  Index stride;
  std::size_t size;
};

/// Of a plane: room for a whole vector past the last site of a row and its border.
Shape shape_of(const LatticeIsing& target, Index border) {
  const Index sites = (target.columns() + 1) / 2;
  const Index stride = border + (sites + 1 + 7) / 8 * 8 + 8;
  return {stride, std::size_t{target.rows() + 2} * stride + 16};
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

/// Loops over contiguous sites of one colour without branches, which the compiler turns into vectors.
void LatticeGibbs::write_back(const LatticeIsing& target, LatticeIsing::State& state, const Scratch& scratch) const {
  hot([&] {
    constexpr Index kBlock = 64;  // sites of a colour at a time
    const Index columns = target.columns();
    state.magnetization = state.fields = state.pairs = 0;
    for (Index row = 0; row < target.rows(); ++row) {
      LatticeIsing::Site* sites = state.sites.data() + std::size_t{row} * columns;
      const std::size_t start = row_start(scratch, row);
      for (Index first = 0; 2 * first < columns; first += kBlock) {
        LatticeIsing::Site codes[2][kBlock];  // by the parity of the column
        for (unsigned colour = 0; colour < 2; ++colour) {
          const Index shift = parity(row, colour);
          const Index count = std::min(kBlock, (columns - shift + 1) / 2 - std::min(first, (columns - shift + 1) / 2));
          const std::int8_t* mine = scratch.plane[colour].spin.data() + start + first;
          const std::int8_t* other = scratch.plane[1 - colour].spin.data() + start + first;
          const std::int8_t* above = other - scratch.stride;
          const std::int8_t* below = other + scratch.stride;
          const std::int8_t* side = other + (shift != 0 ? 1 : -1);
          const std::int64_t* units = fields_[colour].units.data() + start + first;
          int spins = 0, pairs = 0;
          std::int64_t fields = 0;
          for (Index k = 0; k < count; ++k) {
            // Spins are -1, 0 and 1, so (s + s*s) / 2 is 1 for an up spin and 0 otherwise.
            const auto sum = static_cast<std::int8_t>(above[k] + below[k] + other[k] + side[k]);
            const auto there = static_cast<std::int8_t>(above[k] * above[k] + below[k] * below[k] +
                                                        other[k] * other[k] + side[k] * side[k]);
            codes[shift][k] = static_cast<LatticeIsing::Site>(4 * (mine[k] + 1) + (sum + there) / 2);
            spins += mine[k];
            pairs += mine[k] * sum;
          }
          for (Index k = 0; k < count; ++k) fields += mine[k] < 0 ? -units[k] : units[k];
          state.magnetization += spins;
          state.fields += fields;
          if (colour == 1) state.pairs += pairs;  // every edge joins the two colours
        }
        const Index here = std::min<Index>(2 * kBlock, columns - 2 * first);
        LatticeIsing::Site* out = sites + 2 * first;
        for (Index k = 0; k < here / 2; ++k) {
          out[2 * k] = codes[0][k];
          out[2 * k + 1] = codes[1][k];
        }
        if (here % 2 != 0) out[here - 1] = codes[0][here / 2];
      }
    }
  });
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
