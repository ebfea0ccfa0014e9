/// Block Gibbs on RBMs on a GPU as an engine: its draws are those of the CPU, and so are saved states.
#include <algorithm>
#include <mutex>
#include <stdexcept>
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

class CudaRbmGibbsEngine final : public Engine {
 public:
  CudaRbmGibbsEngine(std::shared_ptr<const Rbm> target, const EngineOptions& options)
      : Engine(traits_of(*target, options)),
        target_(std::move(target)),
        seed_(options.seed),
        first_chain_(options.first_chain),
        reference_(options.reference),
        chains_(*target_, options.starts.size(), options.seed, options.first_chain),
        kept_(options.starts.size()) {
    chains_.set_reference(reference_);
    for (std::size_t c = 0; c < options.starts.size(); ++c) place(c, options.starts[c]);
  }

  std::vector<ChainGroup> share_out(unsigned) override { return {{0, traits_.chains}}; }

  void advance(ChainGroup group, std::uint64_t steps) override {
    if (group.count != traits_.chains) throw std::logic_error("chains on a GPU are moved on together");
    chains_.advance(steps);
  }

  void observe(ChainGroup group, const Observables& out) const override {
    if (wants_sums(out)) observe_rbm_sums(chains_.sums(), group, out);
    std::fill(out.accepted.begin(), out.accepted.end(), static_cast<double>(chains_.steps()));
    observe_each(*this, traits_, group, out);
  }

  // For observe_each.
  void get_levels(std::size_t c, std::span<Value> out) const { chains_.get_levels(c, out); }
  void copy_marginals(std::size_t c, std::span<double> out) const {
    copy_fractions(up_counts(c), chains_.steps() - kept_[c].counted_from, out);
  }
  [[nodiscard]] Evals evals(std::size_t chain) const {
    Evals evals;
    evals.target = kept_[chain].placed;
    evals.gradient = chains_.steps();
    return evals;
  }

  void advance_and_observe(ChainGroup group, std::uint64_t steps, std::span<const Observables> draws) override {
    if (!wants_sums_alone(draws.front()) || group.count != traits_.chains)
      return Engine::advance_and_observe(group, steps, draws);
    const std::uint64_t before = chains_.steps();
    const std::vector<CudaRbmGibbsChains::Sums> sums = chains_.advance_and_sum(steps, draws.size());
    for (std::size_t k = 0; k < draws.size(); ++k) {
      observe_rbm_sums(sums[k], group, draws[k]);
      std::fill(draws[k].accepted.begin(), draws[k].accepted.end(), static_cast<double>(before + (k + 1) * steps));
    }
  }

  void restart(std::size_t chain, std::span<const Value> levels) override {
    place(chain, levels);
    if (!chains_.counts()) return;
    kept_[chain].counted_from = chains_.steps();
    chains_.set_up_counts(chain, std::vector<std::uint64_t>(traits_.variables, 0));
  }

  void start_marginals(ChainGroup, bool rao_blackwell) override {
    chains_.start_counting();
    for (Kept& kept : kept_) {
      kept.counted_from = chains_.steps();
      if (rao_blackwell) kept.rao_blackwell = {std::vector<double>(target_->num_moves(), 0.0), 0};
    }
  }

  void visit_marginals(ChainGroup group) override {
    visit_conditionals(
        *target_, group, [&](std::size_t c) -> RaoBlackwell& { return kept_[c].rao_blackwell; },
        [&](std::size_t c) { return levels_of(c); });
  }

  [[nodiscard]] RaoBlackwell rao_blackwell(std::size_t chain) const override { return kept_[chain].rao_blackwell; }

  // As chains on the CPU are saved (EngineOf): they have nothing in common.

  void save_common(Saver&) const override {}
  void load_common(Loader&) override {}

  void save_chain(std::size_t c, Saver& out) const override {
    const Kept& kept = kept_[c];
    save_rbm_chain(chain_of(c),
                   {.levels = levels_of(c),
                    .steps = chains_.steps(),
                    .counted_from = kept.counted_from,
                    .up_counts = up_counts(c),
                    .placed = kept.placed,
                    .rao_blackwell = kept.rao_blackwell},
                   out);
  }

  void load_chain(std::size_t c, Loader& in) override {
    SavedRbmChain chain = load_rbm_chain(chain_of(c), in);
    {
      const std::lock_guard lock(loading_);  // all chains have the same
      chains_.set_steps(chain.steps);
      if (!chains_.counts()) chains_.start_counting();
    }
    chains_.set_levels(c, chain.levels);
    kept_[c] = {std::move(chain.rao_blackwell), chain.counted_from, chain.placed};
    chains_.set_up_counts(c, chain.up_counts);
  }

 private:
  /// What a chain has here.
  struct Kept {
    RaoBlackwell rao_blackwell;
    std::uint64_t counted_from = 0;  // steps
    std::uint64_t placed = 0;        // times
  };

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

  void place(std::size_t chain, std::span<const Value> levels) {
    chains_.set_levels(chain, levels);
    ++kept_[chain].placed;
  }

  [[nodiscard]] std::vector<Value> levels_of(std::size_t chain) const {
    std::vector<Value> levels(traits_.variables);
    chains_.get_levels(chain, levels);
    return levels;
  }

  [[nodiscard]] RbmChainOf chain_of(std::size_t chain) const {
    return {*target_, reference_, seed_, first_chain_ + chain};
  }

  /// Empty where nothing is counted.
  [[nodiscard]] std::vector<std::uint64_t> up_counts(std::size_t c) const {
    return chains_.counts() ? chains_.up_counts(c) : std::vector<std::uint64_t>();
  }

  std::shared_ptr<const Rbm> target_;
  std::uint64_t seed_;
  std::uint64_t first_chain_;
  std::vector<Value> reference_;
  CudaRbmGibbsChains chains_;
  std::vector<Kept> kept_;
  std::mutex loading_;
};

}  // namespace

TunableEngine make_cuda_rbm_gibbs(const Model& model, const Sampler&, const EngineOptions& options) {
  const auto& target = std::get<std::shared_ptr<const Rbm>>(model.description);
  return {std::make_unique<CudaRbmGibbsEngine>(target, options)};
}

}  // namespace poise
