/// Transition probabilities of one state and their gradient, for kernels that change one variable a step.
///
/// Where a move changes few ratios: with g_m the weight of move m, T_m = g_m / max(Z(x), Z(x'_m)). So d log T_m is
/// d log g_m minus the weighted mean of d log g over the moves of x (where Z(x) is the larger) or of x'_m (where
/// Z(x'_m) is). The latter differs from the former only in the moves that m affects, so all gradients of a state cost
/// O(moves * degree).
///
/// Where every move changes every ratio, the acceptance probability of every move would cost an evaluation of all
/// ratios each. So T_m = Q_m A is taken with A the mean over a few proposals drawn from Q; both factors are
/// differentiated: d log Q_m is d log g_m minus its mean under Q, and d A is the mean of A d log Q(x|x') over proposals
/// that are not sure to be accepted (A Q(x'|x) is then p(x')/p(x) Q(x|x')), of A d log Q(x'|x) over the others.
#pragma once

#include <span>
#include <vector>

#include <poise/extend/kernels/informed_proposal.hpp>
#include <poise/extend/kernels/locally_balanced.hpp>
#include <poise/extend/learning/transition_gradient.hpp>

namespace poise {

/// After `reserve_entries`.
template <SparseTarget T>
void fill_entries(const LocallyBalanced<T>& kernel, const T& target, const typename T::State& state,
                  typename LocallyBalanced<T>::Scratch& scratch, Rng& rng, const TransitionGradientOptions& options,
                  TransitionGradient& out) {
  hot<InstructionSet::avx2>([&] {
    using Entry = TransitionGradient::Entry;
    const auto entry_of = [](Index move, Index position) { return Entry{move, position, 0, 0.0, 0.0, 0.0}; };
    out.log_prob = target.log_prob(state);
    if (options.all_moves) {
      for_each_looked_at(target, options, out, [&](Index position, Index first, Index end) {
        for (Index move = first; move < end; ++move) out.entries.push_back(entry_of(move, position));
      });
    }
    if (options.sampled_moves) {
      const double drawn = rng.uniform() * scratch.tree.total();  // of an isolated state 0, and every move as unlikely
      out.sampled.push_back(entry_of(drawn > 0.0 ? scratch.tree.select(drawn) : 0, 0));
      out.sampled.push_back(entry_of(static_cast<Index>(rng.uniform() * target.num_moves()), 0));
    }
    for (std::vector<Entry>* list : {&out.entries, &out.sampled}) {
      for (Entry& entry : *list) {
        const auto proposal = kernel.evaluate(target, state, scratch, entry.move);
        const Move change = target.move_at(state, entry.move);
        entry.value = change.value;
        entry.log_ratio = target.log_ratio(state, change);
        entry.accept_prob = proposal.accept_prob;
        entry.transition = proposal.prob * proposal.accept_prob;
      }
    }
  });
}

template <SparseTarget T>
void transition_gradient(const LocallyBalanced<T>& kernel, const T& target, const typename T::State& state,
                         typename LocallyBalanced<T>::Scratch& scratch, Rng& rng,
                         const TransitionGradientOptions& options, TransitionGradient& out) {
  reserve_entries(target, options, out);
  fill_entries(kernel, target, state, scratch, rng, options, out);
}

/// Adds sum over entries of coefficient * dT/d phi_k to out[k]; `coefficients` are d objective / d T, those of
/// `entries` first, then those of `sampled`.
template <SparseTarget T>
void add_gradient(const LocallyBalanced<T>& kernel, const T& target, const typename T::State& state,
                  typename LocallyBalanced<T>::Scratch& scratch, const TransitionGradient& gradient,
                  std::span<const double> coefficients, std::span<double> out) {
  hot<InstructionSet::avx2>([&] {
    const BalanceTable& table = *kernel.function().table();
    const double total = scratch.tree.total();
    double mean_weight = 0.0;  // of the mean of d log g over the moves of x, divided by Z(x)
    std::size_t index = 0;
    const auto add = [&](const TransitionGradient::Entry& entry) {
      const double weight = coefficients[index++] * entry.transition;
      if (weight == 0.0) return;
      if (entry.accept_prob >= 1.0) {
        table.add_gradient(entry.log_ratio, weight, out);
        mean_weight += weight / total;
        return;
      }
      // Beyond the range of doubles A is all but zero, and so is what it could teach.
      if (!kernel.evaluate(target, state, scratch, entry.move).in_range) return;
      table.add_gradient(entry.log_ratio, weight, out);
      const double share = weight * entry.accept_prob / total;  // weight / Z(x')
      mean_weight += share;
      std::size_t affected = 0;
      target.for_each_affected(state, entry.move, [&](const AffectedLanes& lanes) {
        for (unsigned k = 0; k < lanes.count; ++k) {
          const Index other = lanes.moves[k];
          const double before = target.log_ratio(state, target.move_at(state, other));
          table.add_gradient(lanes.log_ratios[k], -share * scratch.new_weights[affected++], out);
          table.add_gradient(before, share * scratch.tree.weight(other), out);
        }
      });
    };
    for (const auto* list : {&gradient.entries, &gradient.sampled}) {
      for (const auto& entry : *list) add(entry);
    }
    if (mean_weight == 0.0) return;
    for (Index move = 0; move < target.num_moves(); ++move) {
      const double log_ratio = target.log_ratio(state, target.move_at(state, move));
      table.add_gradient(log_ratio, -mean_weight * scratch.tree.weight(move), out);
    }
  });
}

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
    for_each_looked_at(target, options, out, [&](Index position, Index first, Index end) {
      for (Index move = first; move < end; ++move) {
        out.entries.push_back({move, position, target.move_at(state, move).value, exact[move], accept,
                               here.weights[move] / here.total * accept});
      }
    });
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
