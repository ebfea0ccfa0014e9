/// Transition probabilities of one state and their gradient where every move changes every ratio.
///
/// The acceptance probability of every move would cost an evaluation of all ratios each. So T_m = Q_m A is taken with A
/// the mean over a few proposals drawn from Q; both factors are differentiated: d log Q_m is d log g_m minus its mean
/// under Q, and d A is the mean of A d log Q(x|x') over proposals that are not sure to be accepted (A Q(x'|x) is then
/// p(x')/p(x) Q(x|x')), of A d log Q(x'|x) over the others.
#pragma once

#include <span>
#include <vector>

#include <poise/extend/learning/transition_gradient.hpp>
#include <poise/extend/kernels/informed_proposal.hpp>

namespace poise {

inline constexpr int kAcceptanceProbes = 4;

template <Target T>
void transition_gradient(const InformedProposal<T>& kernel, const T& target, const typename T::State& state,
                         typename InformedProposal<T>::Scratch& scratch, Rng& rng,
                         const TransitionGradientOptions& options, TransitionGradient& out) {
  const auto& here = scratch.here;
  out.entries.clear();
  out.sampled.clear();
  out.probes.clear();
  out.log_prob = target.log_prob(state);
  const auto proposal = [&] {
    double place = rng.uniform() * here.total;
    Index move = 0;
    while (move + 1 < target.num_moves() && place >= here.weights[move]) place -= here.weights[move++];
    return move;
  };
  if (options.all_moves) {
    double accept = 0.0;
    for (int k = 0; k < kAcceptanceProbes; ++k) {
      const Index move = proposal();
      const auto looked = kernel.evaluate(target, state, scratch, move);
      out.probes.push_back({move, looked.accept_prob});
      accept += looked.accept_prob / kAcceptanceProbes;
    }
    std::vector<double> exact(target.num_moves());  // what marginals are learned from
    target.log_ratios(state, exact);
    scratch.evals.ratio += exact.size();
    const Index variables = target.num_variables();
    const Index stride = (variables + options.max_variables - 1) / options.max_variables;
    Index position = 0;
    for (Index i = 0; i < variables; i += stride, ++position) {
      for (Index k = 0; k + 1 < target.cardinality(i); ++k) {
        const Index move = scratch.first_move[i] + k;
        out.entries.push_back({move, position, target.move_at(state, move).value, exact[move], accept,
                               here.weights[move] / here.total * accept});
      }
    }
    out.scale = static_cast<double>(variables) / position;
  }
  if (options.sampled_moves) {
    for (const Index move : {proposal(), static_cast<Index>(rng.uniform() * target.num_moves())}) {
      const auto looked = kernel.evaluate(target, state, scratch, move);
      const Move change = target.move_at(state, move);
      out.sampled.push_back({move, 0, change.value, target.log_ratio(state, change), looked.accept_prob,
                             looked.prob * looked.accept_prob});
    }
  }
}

template <Target T>
void add_gradient(const InformedProposal<T>& kernel, const T& target, const typename T::State& state,
                  typename InformedProposal<T>::Scratch& scratch, const TransitionGradient& gradient,
                  std::span<const double> coefficients, std::span<double> out) {
  const BalanceTable& table = *kernel.function().table();
  const auto spread = [&](const typename InformedProposal<T>::Weighed& weighed, double weight) {
    if (weight == 0.0) return;
    for (Index m = 0; m < target.num_moves(); ++m) {
      table.add_gradient(weighed.log_ratios[m], weight * weighed.weights[m] / weighed.total, out);
    }
  };
  double mean_here = 0.0;  // weight of the mean of d log g under Q at the present state
  // `weight` times d log(A Q) of a move.
  const auto add_transition = [&](Index move, double accept_prob, double weight) {
    if (weight == 0.0) return;
    if (accept_prob >= 1.0) {
      table.add_gradient(scratch.here.log_ratios[move], weight, out);
      mean_here += weight;
      return;
    }
    kernel.evaluate(target, state, scratch, move);
    table.add_gradient(scratch.there.log_ratios[InformedProposal<T>::back_move(scratch)], weight, out);
    spread(scratch.there, -weight);
  };
  std::size_t index = 0;
  double by_acceptance = 0.0;  // d objective / d A
  for (const auto& entry : gradient.entries) {
    const double coefficient = coefficients[index++];
    by_acceptance += coefficient * scratch.here.weights[entry.move] / scratch.here.total;
    table.add_gradient(scratch.here.log_ratios[entry.move], coefficient * entry.transition, out);
    mean_here += coefficient * entry.transition;
  }
  for (const auto& probe : gradient.probes) {
    add_transition(probe.move, probe.accept_prob,
                   by_acceptance * probe.accept_prob / static_cast<double>(gradient.probes.size()));
  }
  for (const auto& entry : gradient.sampled) {
    add_transition(entry.move, entry.accept_prob, coefficients[index++] * entry.transition);
  }
  spread(scratch.here, -mean_here);
}

}  // namespace poise
