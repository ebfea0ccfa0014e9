/// A kernel of one's own, single-move Metropolis: checked on a small target, run on a built-in model and on a target of
/// one's own, and compared with Gibbs as `poise compare` does.
#include <poise/extend/check/exactness.hpp>
#include <poise/extend/engines/own_kernel.hpp>
#include <poise/extend/engines/own_model.hpp>
#include <poise/extend/kernels/step.hpp>
#include <poise/poise.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "hard_core_ring.hpp"

/// Proposes one of all moves, each as likely as the others, and accepts it with probability min{1, p(x')/p(x)}.
template <poise::Target T>
class Metropolis {
 public:
  /// What one chain has between its steps.
  struct Scratch {
    explicit Scratch(const T& target) : first_move(poise::first_moves(target)) {}
    std::vector<poise::Index> first_move;
    std::vector<poise::Change> changed;  // by the last step: from these a run counts levels
    const char* failure = nullptr;       // what is wrong with the target; a run ends with this sentence
    poise::Evals evals;                  // what the steps cost

    template <class A>
    void archive(A& archive) {
      archive(evals);  // and whatever the next step depends on
    }
  };
  struct Proposal {
    double prob;         // Q(x'|x)
    double accept_prob;  // A(x', x)
  };

  static poise::Index steps_per_sweep(const T& target) { return target.num_moves(); }

  /// Called when a chain was put at a state from outside.
  void prepare(const T& target, const typename T::State& state, Scratch&) const {
    poise::check_log_prob(target, state);
  }

  /// What the exactness check reads; `step` uses it too, so that both are the same.
  Proposal evaluate(const T& target, const typename T::State& state, Scratch& scratch, poise::Index move) const {
    const double log_ratio = target.log_ratio(state, target.move_at(state, move));
    scratch.evals.ratio += 1;
    if (!poise::is_legal(log_ratio)) scratch.failure = poise::kBadLogRatio;
    return {1.0 / target.num_moves(), std::exp(std::min(0.0, log_ratio))};
  }

  poise::StepInfo step(const T& target, typename T::State& state, Scratch& scratch, poise::Rng& rng) const {
    scratch.changed.clear();
    const auto number = static_cast<poise::Index>(rng.uniform() * target.num_moves());
    const Proposal proposal = evaluate(target, state, scratch, number);
    if (scratch.failure != nullptr || rng.uniform() >= proposal.accept_prob) return {proposal.accept_prob, false, 0};
    const poise::Move move = target.move_at(state, number);
    scratch.changed.push_back({move.variable, scratch.first_move[move.variable], target.level(state, move.variable)});
    target.apply(state, move);
    return {proposal.accept_prob, true, 1};
  }
};

namespace {

/// Runs samplers with the same budget, prints the table of `poise compare`, and says whether they agree on the mean of
/// a monitor within five standard errors.
bool compare(const poise::Model& model, const std::vector<poise::Sampler>& samplers, const poise::RunOptions& options) {
  std::vector<poise::Report> reports;
  for (const poise::Sampler& sampler : samplers) reports.push_back(make_report(run(model, sampler, options)));
  std::fputs(poise::comparison_text(reports).c_str(), stdout);
  const poise::SeriesSummary& a = reports[0].monitors.front().summary;
  const poise::SeriesSummary& b = reports[1].monitors.front().summary;
  return std::abs(a.mean - b.mean) < 5.0 * std::hypot(a.mcse, b.mcse);
}

}  // namespace

int main() {
  const poise::Sampler metropolis = poise::own_kernel("metropolis", Metropolis<poise::AnyTarget>());

  const auto lattice = poise::target_of(poise::make_model("ising:size=3,lambda=0.3"));
  for (const poise::CheckReport& report :
       {poise::check_kernel("metropolis", Metropolis<HardCoreRing>(), HardCoreRing(7, 0.4)),
        poise::check_kernel("metropolis", Metropolis<poise::AnyTarget>(), *lattice)}) {
    std::fputs(report.text().c_str(), stderr);
    if (!report.ok()) return 1;
  }

  const std::vector<poise::Sampler> samplers = {metropolis, poise::parse_sampler("gibbs")};
  poise::RunOptions options;
  options.start = poise::Start::zeros;  // the empty ring is a legal state
  const poise::Model ring = poise::own_model("hard-core ring", std::make_shared<const HardCoreRing>(40, 0.5));
  const bool same = compare(poise::make_model("ising:size=16,lambda=0.3"), samplers, options);
  return compare(ring, samplers, options) && same ? 0 : 1;
}
