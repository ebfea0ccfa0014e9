/// Gradient-informed proposals on user targets and on RBMs on a GPU, as engines: `gwg`, `flsb` and kin, `dlmc`, `dlsb`
/// and `dmala`.
#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include <poise/extend/engines/chain.hpp>
#include <poise/extend/engines/samplers.hpp>
#include <poise/extend/engines/tuner.hpp>
#include <poise/extend/kernels/factorised_law.hpp>
#include <poise/extend/kernels/many_changes.hpp>
#include <poise/sampler.hpp>
#include "engines/cpu/chains/engines.hpp"
#include "engines/cuda/common/chains_engine.hpp"
#include "engines/cuda/engines.hpp"
#include "engines/cuda/gradient/user_chains.hpp"
#include "engines/cuda/rbm/rbm_chains.hpp"
#include "models/rbm/rbm.hpp"
#include "models/user/batch_target.hpp"

namespace poise {

std::optional<CudaGradientForm> cuda_gradient_form(const Sampler& sampler) {
  if (is_row<DlmcRow>(sampler) || is_row<DlsbRow>(sampler)) return CudaGradientForm::relaxation;
  if (is_row<DmalaRow>(sampler)) return CudaGradientForm::langevin;
  const SamplerSettings& settings = sampler.settings;
  if (!is_balanced(sampler) || settings.many || !settings.first_order || settings.block != 1) return {};
  return CudaGradientForm::single;
}

namespace {

static_assert(cuda::kMostRate == kMostRate && cuda::kMostOdds == kMostOdds && cuda::kLocalEvery == kLocalEvery);

/// What engines of user targets and of RBMs have in common.
template <class T, class Chains>
class GradientEngine : public CudaBalancedEngine<T, Chains> {
 protected:
  using GradientEngine::CudaBalancedEngine::CudaBalancedEngine;

  static EngineTraits traits_for(const T& target, CudaGradientForm form, const EngineOptions& options) {
    EngineTraits traits = GradientEngine::traits_of(target, options);
    traits.steps_per_sweep = form == CudaGradientForm::single ? target.num_moves() : 1;
    return traits;
  }

 public:
  void save_chain(std::size_t chain, Saver& out) const final {
    GradientEngine::CudaBalancedEngine::save_chain(chain, out);
    const CudaGradientChains::LeftOut left_out = this->chains().left_out(chain);
    out(left_out.unchanged, left_out.local_accepted);
  }
  void load_chain(std::size_t chain, Loader& in) final {
    GradientEngine::CudaBalancedEngine::load_chain(chain, in);
    CudaGradientChains::LeftOut left_out;
    in(left_out.unchanged, left_out.local_accepted);
    this->chains().set_left_out(chain, left_out);
  }

 private:
  void use_function(const BalancingFunction& function) final { this->chains().set_function(function); }

  void observe_proposals(ChainGroup group, std::span<ProposalCounts> out) const final {
    const std::vector<ProposalCounts> all = this->chains().proposals();
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(group.first), group.count, out.begin());
  }

  [[nodiscard]] Evals evals(std::size_t) const final {
    Evals evals;
    evals.target = 1;
    evals.ratio = this->chains().local_ratios();
    evals.gradient = this->chains().steps() + 1;
    evals.balance = evals.gradient * this->traits_.entries;
    return evals;
  }
};

class CudaUserEngine final : public GradientEngine<BatchTarget, CudaUserChains> {
 public:
  CudaUserEngine(const std::shared_ptr<const BatchTarget>& target, CudaGradientForm form,
                 const BalancingFunction& function, const EngineOptions& options)
      : GradientEngine(traits_for(*target, form, options), target, chains_for(*target, form, options)),
        first_chain_(options.first_chain) {
    traits_.chunk = 64;
    traits_.draws_at_once = 32;
    set_function(function);
    chains().set_reference(options.reference);
    place(options);
  }

  void advance(ChainGroup group, std::uint64_t steps) override {
    settle();
    CudaChainsEngine::advance(group, steps);
  }

  void advance_and_observe(ChainGroup group, std::uint64_t steps, std::span<const Observables> draws) override {
    const Observables& first = draws.front();
    if (!first.evals.empty() || !first.frozen.empty() || !first.empirical_marginals.empty() ||
        !first.proposals.empty()) {
      return Engine::advance_and_observe(group, steps, draws);
    }
    settle();
    const CudaUserChains::Records records = chains().advance_and_record(steps, draws.size());
    for (std::size_t k = 0; k < draws.size(); ++k) tell(records, k, group, draws[k]);
  }

 private:
  static std::unique_ptr<CudaUserChains> chains_for(const BatchTarget& target, CudaGradientForm form,
                                                    const EngineOptions& options) {
    using Appearance = CudaUserChains::Appearance;
    std::string why;
    return std::make_unique<CudaUserChains>(
        target.function().device_function(why), target.shape(),
        target.function().one_hot() ? Appearance::one_hot : Appearance::labels,
        CudaGradientOptions{form, options.starts.size(), target.num_variables(), options.seed, options.first_chain});
  }

  /// Chains that stand where there is no probability.
  [[nodiscard]] std::vector<std::size_t> impossible() const {
    const std::vector<double> log_prob = chains().log_prob();
    std::vector<std::size_t> found;
    for (std::size_t c = 0; c < log_prob.size(); ++c) {
      if (log_prob[c] == -std::numeric_limits<double>::infinity()) found.push_back(c);
    }
    return found;
  }
  /// Has states that were set computed, and refuses those without probability.
  void settle() const {
    if (!chains().prepare()) return;
    const std::vector<std::size_t> found = impossible();
    if (!found.empty()) throw InputError(no_start(first_chain_ + found[0], 0));
  }

  /// Puts chains at states of positive probability, the given ones or others.
  void place(const EngineOptions& options) {
    set_starts(options);
    for (const std::size_t c : impossible()) {
      std::function<std::vector<Value>(unsigned)> next;
      if (options.other_start) next = [&](unsigned attempt) { return options.other_start(c, attempt); };
      Evals evals;
      chains().set_levels(c, make_start(target(), options.starts[c], first_chain_ + c, next, evals).x);
    }
    settle();
  }

  void observe_states(ChainGroup group, const Observables& out) const override {
    settle();
    tell(chains().record(), 0, group, {.log_prob = out.log_prob, .distance = out.distance});
  }

  /// What was recorded of a draw, of the chains of a group.
  void tell(const CudaUserChains::Records& records, std::size_t draw, ChainGroup group, const Observables& out) const {
    const std::size_t first = draw * traits_.chains + group.first, n = traits_.variables;
    const auto copy = [&](const auto& from, auto to) {
      if (!to.empty()) std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(first), group.count, to.begin());
    };
    copy(records.log_prob, out.log_prob);
    copy(records.accepted, out.accepted);
    copy(records.different, out.distance);
    for (std::size_t k = 0; k < group.count && !out.levels.empty(); ++k) {
      cuda::unpack_bits(std::span(records.words).subspan((first + k) * records.row, records.row),
                        out.levels.subspan(k * n, n));
    }
  }

  std::uint64_t first_chain_;
};

class CudaRbmEngine final : public GradientEngine<Rbm, CudaRbmChains> {
 public:
  CudaRbmEngine(const std::shared_ptr<const Rbm>& target, CudaGradientForm form, const BalancingFunction& function,
                const EngineOptions& options)
      : GradientEngine(traits_for(*target, form, options), target,
                       std::make_unique<CudaRbmChains>(target->weights(), form, options.starts.size(), options.seed,
                                                       options.first_chain)) {
    traits_.chunk = 256;
    set_function(function);
    chains().set_reference(options.reference);
    set_starts(options);
  }

 private:
  void observe_states(ChainGroup group, const Observables& out) const override {
    observe_rbm_sums(chains().sums(), group, out);
  }
};

/// `description` is what the tuner's engine on the CPU is made of.
template <class E, class T, class Description>
TunableEngine make_informed(const std::shared_ptr<const T>& target, const Description& description,
                            const Sampler& sampler, const EngineOptions& options) {
  const BalancingFunction function(sampler.settings.function, sampler.settings.level);
  auto engine = std::make_unique<E>(target, *cuda_gradient_form(sampler), function, options);
  auto tuner = make_cuda_tuner(*engine, description, sampler, options);
  return {std::move(engine), std::move(tuner)};
}

}  // namespace

TunableEngine make_cuda_user(const Model& model, const Sampler& sampler, const EngineOptions& options) {
  const auto& callback = std::get<CallbackDescription>(model.description);
  return make_informed<CudaUserEngine, BatchTarget>(callback.target, callback, sampler, options);
}

TunableEngine make_cuda_rbm(const Model& model, const Sampler& sampler, const EngineOptions& options) {
  const auto& target = std::get<std::shared_ptr<const Rbm>>(model.description);
  return make_informed<CudaRbmEngine>(target, target, sampler, options);
}

}  // namespace poise
