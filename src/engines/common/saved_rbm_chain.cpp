/// Chains of block Gibbs that are continued on another device.
#include "engines/common/saved_rbm_chain.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <poise/extend/base/rng.hpp>
#include <poise/extend/engines/chain.hpp>
#include "kernels/rbm_gibbs.hpp"

namespace poise {

namespace {

using HostChain = Chain<Rbm, RbmGibbs>;

std::uint64_t random_words(const Rbm& target) {
  return RbmLayers::random_words(target.num_variables(), target.num_hidden());
}

HostChain make_chain(const RbmChainOf& of, std::span<const Value> levels, std::uint64_t steps) {
  Rng rng = make_rng(of.seed, Stream::chain, of.number);
  rng.go_to_batch(steps * (random_words(of.target) / Rng::kBatch));
  return {of.target, levels, of.reference, rng};
}

/// A chain on the CPU adds 32 bits at a time.
void count(HostChain& chain, std::vector<std::uint64_t> counts) {
  std::vector<std::uint32_t> some(counts.size());
  bool is_left = true;
  while (is_left) {
    is_left = false;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      some[i] = static_cast<std::uint32_t>(std::min<std::uint64_t>(counts[i], ~std::uint32_t{0}));
      counts[i] -= some[i];
      is_left = is_left || counts[i] > 0;
    }
    chain.empirical_marginals.add(some, chain.steps);
  }
}

}  // namespace

void save_rbm_chain(const RbmChainOf& of, const SavedRbmChain& saved, Saver& out) {
  HostChain chain = make_chain(of, saved.levels, saved.steps);
  chain.rao_blackwell = saved.rao_blackwell;
  chain.steps = saved.steps;
  chain.accepted = static_cast<double>(saved.steps);
  chain.settled = saved.counted_from;
  chain.scratch.evals.target = saved.placed;
  chain.scratch.evals.gradient = saved.steps;
  chain.empirical_marginals.reset(saved.counted_from);
  if (!saved.up_counts.empty()) count(chain, saved.up_counts);
  out(chain, chain.state);
}

SavedRbmChain load_rbm_chain(const RbmChainOf& of, Loader& in) {
  HostChain chain = make_chain(of, std::vector<Value>(of.target.num_variables(), 0), 0);
  in(chain, chain.state);
  if (chain.rng.position() != chain.steps * random_words(of.target)) {
    throw std::runtime_error("the saved state was made by another model, sampler or version");
  }
  SavedRbmChain saved;
  saved.levels = chain.state.x;
  saved.steps = chain.steps;
  saved.counted_from = chain.empirical_marginals.start();
  for (Index i = 0; i < of.target.num_variables(); ++i) saved.up_counts.push_back(chain.empirical_marginals.time(i));
  saved.placed = chain.scratch.evals.target;
  saved.rao_blackwell = std::move(chain.rao_blackwell);
  return saved;
}

}  // namespace poise
