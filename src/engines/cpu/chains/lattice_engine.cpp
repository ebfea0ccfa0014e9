/// Every kernel on Ising lattices.
#include <poise/extend/engines/samplers.hpp>
#include "engines/cpu/bits/ising_bits.hpp"
#include "engines/cpu/chains/bonds.hpp"
#include "engines/cpu/chains/engines.hpp"

namespace poise {

TunableEngine make_engine(const std::shared_ptr<const LatticeIsing>& target, const Sampler& sampler,
                          const EngineOptions& options) {
  if (moves_clusters(sampler)) return make_cluster_engine(target, bond_graph(*target), sampler, options);
  if (!is_single_site_gibbs(sampler)) return make_engine<LatticeIsing>(target, sampler, options);
  using Layout = BitLayout<LatticeIsing>;
  return {std::make_unique<TileEngine<LatticeIsing, Layout>>(target, Layout(target, bit_model(target)), options),
          nullptr};
}

}  // namespace poise
