/// The parts of lattice Gibbs that move spins between the row order of the state and the two colour planes.
#include <poise/kernel/lattice_gibbs.hpp>

#include <algorithm>

namespace poise {

LatticeGibbs::Scratch::Scratch(const LatticeIsing& target) {
  const Index sites = (target.columns() + 1) / 2;
  stride = kBorder + (sites + 1 + 7) / 8 * 8 + 8;  // room for a whole vector past the last site and its border
  const std::size_t size = std::size_t{target.rows() + 2} * stride + 16;
  for (unsigned colour = 0; colour < 2; ++colour) {
    plane[colour].spin.assign(size, 0);
    plane[colour].field.assign(size, 0.0);
    plane[colour].up.assign(size, 0);
    for (Index row = 0; row < target.rows(); ++row) {
      const Index shift = parity(row, colour);
      for (Index k = 0; 2 * k + shift < target.columns(); ++k) {
        plane[colour].field[row_start(*this, row) + k] = target.field(row * target.columns() + 2 * k + shift);
      }
    }
  }
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
  const Index columns = target.columns();
  state.magnetization = state.fields = state.pairs = 0;
  for (Index row = 0; row < target.rows(); ++row) {
    LatticeIsing::Site* sites = state.sites.data() + std::size_t{row} * columns;
    const std::size_t start = row_start(scratch, row);
    for (unsigned colour = 0; colour < 2; ++colour) {
      const std::int8_t* mine = scratch.plane[colour].spin.data() + start;
      const std::int8_t* other = scratch.plane[1 - colour].spin.data() + start;
      const Index shift = parity(row, colour);
      const std::int8_t* above = other - scratch.stride;
      const std::int8_t* below = other + scratch.stride;
      const std::int8_t* side = other + (shift != 0 ? 1 : -1);
      const Index count = (columns - shift + 1) / 2;
      int spins = 0, pairs = 0;
      for (Index k = 0; k < count; ++k) {
        const int up = (above[k] > 0) + (below[k] > 0) + (other[k] > 0) + (side[k] > 0);
        spins += mine[k];
        pairs += mine[k] * (above[k] + below[k] + other[k] + side[k]);
        state.fields += mine[k] * target.field_units(row * columns + 2 * k + shift);
        sites[2 * k + shift] = static_cast<LatticeIsing::Site>((mine[k] > 0 ? LatticeIsing::kUp : 0) + up);
      }
      state.magnetization += spins;
      if (colour == 1) state.pairs += pairs;  // every edge joins the two colours
    }
  }
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
