/// Chains of user targets on a GPU as an engine: `gwg`, `flsb` and kin, `dlmc`, `dlsb` and `dmala`.
#include "engines/cuda/engines.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <poise/extend/engines/states.hpp>
#include <poise/extend/engines/tuner.hpp>
#include <poise/sampler.hpp>
#include "engines/cpu/chains/engines.hpp"
#include "engines/cuda/common/chains_engine.hpp"
#include "engines/cuda/gradient/gradient_form.hpp"
#include "engines/cuda/gradient/user_chains.hpp"
#include "models/user/batch_target.hpp"

namespace poise {

namespace {

class CudaUserEngine final : public CudaChainsEngine<BatchTarget, CudaUserChains> {
 public:
  CudaUserEngine(const std::shared_ptr<const BatchTarget>& target, CudaGradientForm form,
                 const BalancingFunction& function, const EngineOptions& options)
      : CudaChainsEngine(traits_for(*target, form, options), target, chains_for(*target, form, options)),
        first_chain_(options.first_chain) {
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
    if (!first.evals.empty() || !first.frozen.empty() || !first.empirical_marginals.empty()) {
      return Engine::advance_and_observe(group, steps, draws);
    }
    settle();
    const CudaUserChains::Records records = chains().advance_and_record(steps, draws.size());
    for (std::size_t k = 0; k < draws.size(); ++k) tell(records, k, group, draws[k]);
  }

 private:
  static EngineTraits traits_for(const BatchTarget& target, CudaGradientForm form, const EngineOptions& options) {
    EngineTraits traits = traits_of(target, options);
    traits.steps_per_sweep = form == CudaGradientForm::single ? target.num_moves() : 1;
    traits.chunk = 64;
    traits.draws_at_once = 32;
    return traits;
  }

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
    for (std::size_t c = 0; c < options.starts.size(); ++c) chains().set_levels(c, options.starts[c]);
    for (const std::size_t c : impossible()) {
      std::function<std::vector<Value>(unsigned)> next;
      if (options.other_start) next = [&](unsigned attempt) { return options.other_start(c, attempt); };
      Evals evals;
      chains().set_levels(c, make_start(target(), options.starts[c], first_chain_ + c, next, evals).x);
    }
    settle();
  }

  void use_function(const BalancingFunction& function) override { chains().set_function(function); }

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
      CudaUserChains::unpack(std::span(records.words).subspan((first + k) * records.row, records.row),
                             out.levels.subspan(k * n, n));
    }
  }

  [[nodiscard]] Evals evals() const override {
    Evals evals;
    evals.target = 1;
    evals.gradient = chains().steps() + 1;
    evals.balance = evals.gradient * traits_.entries;
    return evals;
  }

  std::uint64_t first_chain_;
};

}  // namespace

TunableEngine make_cuda_user(const Model& model, const Sampler& sampler, const EngineOptions& options) {
  const auto& callback = std::get<CallbackDescription>(model.description);
  const BalancingFunction function(sampler.settings.function, sampler.settings.level);
  auto engine = std::make_unique<CudaUserEngine>(callback.target, *cuda_gradient_form(sampler), function, options);
  auto tuner = make_cuda_tuner(*engine, callback, sampler, options);
  return {std::move(engine), std::move(tuner)};
}

}  // namespace poise
