/// States of Ising models that are known by their sums only.
#pragma once

#include <cstdint>

#include "engines/cpu/bits/ising_bits.hpp"
#include "models/ising/graph_ising.hpp"
#include "models/ising/lattice_ising.hpp"

namespace poise {

/// What log p and the statistics of a state follow from, without the state.
struct SummedSpins {
  std::int64_t spins;
  std::int64_t fields;
  std::int64_t edges;
};
inline void set_sums(const SummedSpins& sums, LatticeIsing::State& state) {
  state.magnetization = sums.spins;
  state.fields = sums.fields;
  state.pairs = sums.edges;
}
inline void set_sums(const SummedSpins& sums, GraphIsing::State& state) {
  state.magnetization = sums.spins;
  state.log_prob = sums.fields + sums.edges;
}

/// log p and statistics of chains whose sums are known.
template <class T>
void observe_sums(const T& target, const SpinSums::Sums& sums, const Observables& out) {
  typename T::State summed;
  for (std::size_t k = 0; k < sums.spins.size(); ++k) {
    set_sums({sums.spins[k], sums.fields[k], sums.edges[k]}, summed);
    if (!out.log_prob.empty()) out.log_prob[k] = target.log_prob(summed);
    if (!out.statistics.empty()) target.statistics(summed, out.statistics.subspan(k, 1));
  }
}

}  // namespace poise
