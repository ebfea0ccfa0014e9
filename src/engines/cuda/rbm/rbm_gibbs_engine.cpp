/// Block Gibbs on RBMs on a GPU as an engine: its draws are those of the CPU, and so are saved states.
#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include <poise/extend/engines/samplers.hpp>
#include "engines/common/saved_rbm_chain.hpp"
#include "engines/cuda/common/chains_engine.hpp"
#include "engines/cuda/engines.hpp"
#include "engines/cuda/rbm/rbm_gibbs_chains.hpp"

namespace poise {

namespace {

class CudaRbmGibbsEngine final : public CudaChainsEngine<Rbm, CudaRbmGibbsChains> {
 public:
  CudaRbmGibbsEngine(const std::shared_ptr<const Rbm>& target, const EngineOptions& options)
      : CudaChainsEngine(
            traits_of(*target, options), target,
            std::make_unique<CudaRbmGibbsChains>(*target, options.starts.size(), options.seed, options.first_chain)),
        seed_(options.seed),
        first_chain_(options.first_chain),
        reference_(options.reference),
        placed_(options.starts.size(), 1) {
    chains().set_reference(reference_);
    set_starts(options);
  }

  [[nodiscard]] Evals evals(std::size_t chain) const override {
    Evals evals;
    evals.target = placed_[chain];
    evals.gradient = chains().steps();
    return evals;
  }

  void advance_and_observe(ChainGroup group, std::uint64_t steps, std::span<const Observables> draws) override {
    if (!wants_sums_alone(draws.front()) || group.count != traits_.chains)
      return Engine::advance_and_observe(group, steps, draws);
    const std::uint64_t before = chains().steps();
    const std::vector<CudaRbmSums> sums = chains().advance_and_sum(steps, draws.size());
    for (std::size_t k = 0; k < draws.size(); ++k) {
      observe_rbm_sums(sums[k], group, draws[k]);
      std::fill(draws[k].accepted.begin(), draws[k].accepted.end(), static_cast<double>(before + (k + 1) * steps));
    }
  }

  void restart(std::size_t chain, std::span<const Value> levels) override {
    CudaChainsEngine::restart(chain, levels);
    ++placed_[chain];
  }

  // As chains on the CPU are saved (EngineOf): they have nothing in common.

  void save_common(Saver&) const override {}
  void load_common(Loader&) override {}

  void save_chain(std::size_t c, Saver& out) const override {
    save_rbm_chain(chain_of(c),
                   {.levels = levels_of(c),
                    .steps = chains().steps(),
                    .counted_from = counted_from_[c],
                    .up_counts = chains().up_counts(c),
                    .placed = placed_[c],
                    .rao_blackwell = rao_blackwell_[c]},
                   out);
  }

  void load_chain(std::size_t c, Loader& in) override {
    SavedRbmChain chain = load_rbm_chain(chain_of(c), in);
    {
      const std::lock_guard lock(loading_);  // all chains have the same
      chains().set_steps(chain.steps);
      if (!chains().counts()) chains().start_counting();
    }
    chains().set_levels(c, chain.levels);
    rao_blackwell_[c] = std::move(chain.rao_blackwell);
    counted_from_[c] = chain.counted_from;
    placed_[c] = chain.placed;
    chains().set_up_counts(c, chain.up_counts);
  }

 private:
  static EngineTraits traits_of(const Rbm& target, const EngineOptions& options) {
    EngineTraits traits = device_traits(target, options);
    traits.draws_at_once = 64;
    // Microseconds that a sweep takes: some at least, and so many weights of all chains in one more.
    constexpr double least = 8.0, weights = 6e7, milliseconds = 5.0;
    const double sweep =
        least + static_cast<double>(traits.chains) * static_cast<double>(target.weights().weights.size()) / weights;
    traits.chunk = static_cast<std::uint64_t>(std::clamp(1000.0 * milliseconds / sweep, 1.0, 512.0));
    return traits;
  }

  void observe_states(ChainGroup group, const Observables& out) const override {
    observe_rbm_sums(chains().sums(), group, out);
  }
  /// Every sweep counts as accepted.
  void observe_accepted(ChainGroup, const Observables& out) const override {
    std::fill(out.accepted.begin(), out.accepted.end(), static_cast<double>(chains().steps()));
  }

  [[nodiscard]] RbmChainOf chain_of(std::size_t chain) const {
    return {target(), reference_, seed_, first_chain_ + chain};
  }

  std::uint64_t seed_;
  std::uint64_t first_chain_;
  std::vector<Value> reference_;
  std::vector<std::uint64_t> placed_;  // times that each chain was put at a state
  std::mutex loading_;
};

}  // namespace

TunableEngine make_cuda_rbm_gibbs(const Model& model, const Sampler&, const EngineOptions& options) {
  const auto& target = std::get<std::shared_ptr<const Rbm>>(model.description);
  return {std::make_unique<CudaRbmGibbsEngine>(target, options)};
}

}  // namespace poise
