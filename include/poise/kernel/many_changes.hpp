/// What kernels that change many variables in a step share: the proposed states of a group of chains are made and
/// looked at in one go, and taken over or not.
///
/// Their scratches have the state `proposed`, the `moves` that lead there (none: there is nothing to look at), `there`
/// with room for `log_ratios`, `log_prob` of the present state and `proposed_log_prob`.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <poise/concepts.hpp>
#include <poise/kernel/informed_proposal.hpp>
#include <poise/kernel/legal_numbers.hpp>

namespace poise {

/// A target that changes many variables of many states in one go.
template <class T>
concept ManyChangesTarget = Target<T> && requires(const T& target, std::span<const typename T::Changes> all) {
  target.change(all);
};

/// log p, by the way that is the fastest.
template <Target T>
double find_log_prob(const T& target, const typename T::State& state) {
  if constexpr (requires { target.quick_log_prob(state); }) {
    return target.quick_log_prob(state);
  } else {
    return target.log_prob(state);
  }
}

/// Makes the moves of one scratch.
template <Target T, class Scratch>
void make_proposed(const T& target, Scratch& scratch) {
  if constexpr (requires { target.assign(scratch.proposed, std::span<const Value>(scratch.levels)); }) {
    const auto n = static_cast<Index>(scratch.levels.size());
    if (scratch.moves.size() > n / 8) {
      for (Index i = 0; i < n; ++i) scratch.levels[i] = target.level(scratch.proposed, i);
      for (const Move& move : scratch.moves) scratch.levels[move.variable] = move.value;
      target.assign(scratch.proposed, std::span<const Value>(scratch.levels));
      return;
    }
  }
  for (const Move& move : scratch.moves) target.apply(scratch.proposed, move);
}

/// Log ratios at the proposed states, in `there`.
template <Target T, class Scratch>
void find_log_ratios(const T& target, std::span<Scratch* const> group, Ratios ratios) {
  if (group.empty()) return;
  if constexpr (GradientTarget<T>) {
    if (ratios == Ratios::first_order) {
      std::vector<const typename T::State*> states;
      std::vector<double*> out;
      for (Scratch* scratch : group) {
        states.push_back(&scratch->proposed);
        out.push_back(scratch->there.log_ratios.data());
        scratch->evals.gradient += 1;
      }
      target.first_order_log_ratios(states, out);
      return;
    }
  }
  for (Scratch* scratch : group) {
    target.log_ratios(scratch->proposed, {scratch->there.log_ratios.data(), target.num_moves()});
    scratch->evals.ratio += target.num_moves();
  }
}

/// Makes the moves of all scratches, finds log p, and calls `look` with those whose ratios are to be found.
template <Target T, class Scratch, class Look>
void look_at_proposed(const T& target, std::span<Scratch* const> group, Ratios ratios, Look&& look) {
  std::vector<Scratch*> active;
  for (Scratch* scratch : group) {
    if (!scratch->moves.empty()) active.push_back(scratch);
  }
  if (active.empty()) return;
  if constexpr (ManyChangesTarget<T>) {
    std::vector<typename T::Changes> all;
    for (Scratch* scratch : active) all.push_back({&scratch->proposed, scratch->moves});
    target.change(all);
  } else {
    for (Scratch* scratch : active) make_proposed(target, *scratch);
  }
  // User code gives log p together with its gradient.
  const bool together = MemoisingTarget<T> && GradientTarget<T> && ratios == Ratios::first_order;
  const auto look_at_log_prob = [&](Scratch& scratch) {
    scratch.proposed_log_prob = find_log_prob(target, scratch.proposed);
    if (!together) scratch.evals.target += 1;
    if (!is_legal(scratch.proposed_log_prob)) scratch.failure = kBadLogProb;
  };
  if (!together) {
    // A state without probability has no ratios.
    std::erase_if(active, [&](Scratch* scratch) {
      look_at_log_prob(*scratch);
      return !(scratch->proposed_log_prob > -std::numeric_limits<double>::infinity());
    });
  }
  look(std::span<Scratch* const>(active));
  if (together) {
    for (Scratch* scratch : active) look_at_log_prob(*scratch);
  }
}

/// The end of a step.
template <Target T, class Scratch>
StepInfo accept_or_not(typename T::State& state, Scratch& scratch, double accept_prob) {
  if (scratch.threshold >= accept_prob) {
    scratch.changed.clear();
    return {accept_prob, false, 0};
  }
  std::swap(state, scratch.proposed);
  std::swap(scratch.here, scratch.there);
  scratch.log_prob = scratch.proposed_log_prob;
  scratch.evals.changes += scratch.moves.size();
  return {accept_prob, true, static_cast<std::uint32_t>(scratch.moves.size())};
}

}  // namespace poise
