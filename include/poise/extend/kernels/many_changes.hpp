/// What kernels that change many variables in a step share: the proposed states of a group of chains are made and
/// looked at in one go, and taken over or not; and local steps, which are mixed in.
///
/// Their scratches have the `moves` that are made (none: there is nothing to look at) at the state `present`, the state
/// `proposed` that they lead to, `there` with room for `log_ratios`, `log_prob` of the present state and
/// `proposed_log_prob`, and `local`, whether this is a local step.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <poise/extend/base/concepts.hpp>
#include <poise/extend/kernels/informed_proposal.hpp>
#include <poise/extend/kernels/step.hpp>

namespace poise {

/// A target that changes many variables of many states in one go.
template <class T>
concept ManyChangesTarget = Target<T> && requires(const T& target, std::span<const typename T::Changes> all) {
  target.change(all);
};

/// A target whose first-order log ratios are floats, and whose variables have two levels.
template <class T>
concept FloatGradientTarget = GradientTarget<T> &&
    requires(const T& target, std::span<const typename T::State* const> states, std::span<float* const> out) {
  target.first_order_log_ratios(states, out);
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

/// Says at which state the moves of a scratch are made.
template <Target T, class Scratch>
void set_out_from(const T&, const typename T::State& state, Scratch& scratch) {
  scratch.present = &state;
  if constexpr (!ManyChangesTarget<T>) {
    if (!scratch.moves.empty()) scratch.proposed = state;
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

/// Log ratios at the proposed states, in `there`, of at most kLookTogether scratches.
template <Target T, class Scratch>
void find_log_ratios(const T& target, std::span<Scratch* const> group, Ratios ratios) {
  using Real = typename decltype(Scratch::there.log_ratios)::value_type;
  if constexpr (GradientTarget<T>) {
    if (ratios == Ratios::first_order) {
      std::array<const typename T::State*, kLookTogether> states;
      std::array<Real*, kLookTogether> out;
      for (std::size_t c = 0; c < group.size(); ++c) {
        states[c] = &group[c]->proposed;
        out[c] = group[c]->there.log_ratios.data();
        group[c]->evals.gradient += 1;
      }
      target.first_order_log_ratios(std::span<const typename T::State* const>(states.data(), group.size()),
                                    std::span<Real* const>(out.data(), group.size()));
      return;
    }
  }
  for (Scratch* scratch : group) {
    if constexpr (std::is_same_v<Real, double>) {
      target.log_ratios(scratch->proposed, {scratch->there.log_ratios.data(), target.num_moves()});
    } else {
      scratch->exact.resize(target.num_moves());
      target.log_ratios(scratch->proposed, scratch->exact);
      std::transform(scratch->exact.begin(), scratch->exact.end(), scratch->there.log_ratios.begin(),
                     [](double u) { return static_cast<Real>(u); });
    }
    scratch->evals.ratio += target.num_moves();
  }
}

/// Makes the moves of at most kLookTogether scratches, finds log p, and calls `look` with those whose ratios are to be
/// found.
template <Target T, class Scratch, class Look>
void look_at_some(const T& target, std::span<Scratch* const> group, Ratios ratios, Look&& look) {
  std::array<Scratch*, kLookTogether> active;
  std::size_t count = 0;
  for (Scratch* scratch : group) {
    if (!scratch->moves.empty()) active[count++] = scratch;
  }
  if (count == 0) return;
  if constexpr (ManyChangesTarget<T>) {
    std::array<typename T::Changes, kLookTogether> all;
    for (std::size_t c = 0; c < count; ++c) all[c] = {&active[c]->proposed, active[c]->present, active[c]->moves};
    target.change(std::span<const typename T::Changes>(all.data(), count));
  } else {
    for (std::size_t c = 0; c < count; ++c) make_proposed(target, *active[c]);
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
    const auto last = std::remove_if(active.begin(), active.begin() + count, [&](Scratch* scratch) {
      look_at_log_prob(*scratch);
      return !(scratch->proposed_log_prob > -std::numeric_limits<double>::infinity());
    });
    count = static_cast<std::size_t>(last - active.begin());
  }
  if (count > 0) look(std::span<Scratch* const>(active.data(), count));
  if (together) {
    for (std::size_t c = 0; c < count; ++c) look_at_log_prob(*active[c]);
  }
}

/// The same of any number of scratches.
template <Target T, class Scratch, class Look>
void look_at_proposed(const T& target, std::span<Scratch* const> group, Ratios ratios, Look&& look) {
  for (std::size_t first = 0; first < group.size(); first += kLookTogether) {
    look_at_some(target, group.subspan(first, std::min(kLookTogether, group.size() - first)), ratios, look);
  }
}

/// One step in so many is local, at random: single changes, each accepted with min{1, p(x')/p(x)}. A mixture of kernels
/// that leave p alone leaves it alone. Whatever the proposals of many changes are worth at a state, for want of
/// acceptance or because first-order ratios are far off, chains get away from there by single changes; and this takes
/// at most a 32nd of what the other steps do.
inline constexpr unsigned kLocalEvery = 32;

/// Single changes that a local step tries. Where user code computes log p it is one, for the one evaluation of a step;
/// elsewhere as many as take about the time of another step.
template <Target T>
[[nodiscard]] Index local_changes(const T& target) {
  return MemoisingTarget<T> ? 1 : std::max<Index>(1, target.num_variables() / 16);
}

/// One of all moves, each as likely: what leads back is as likely too.
template <Target T>
[[nodiscard]] Move draw_move(const T& target, const typename T::State& state, Rng& rng) {
  return target.move_at(state, static_cast<Index>(rng.uniform() * target.num_moves()));
}

/// The single changes of a local step, made one after another in `proposed` as a buffer; `moves` is what comes of them.
/// Where they are one, it is left to `decide_local`, which has log p of the state it leads to.
template <Target T, class Scratch>
void propose_local(const T& target, const typename T::State& state, Scratch& scratch, std::span<const Index> first_move,
                   Rng& rng) {
  std::vector<Move>& moves = scratch.moves;
  moves.clear();
  scratch.changed.clear();
  if (target.num_moves() > 0) {
    if constexpr (MemoisingTarget<T>) {
      moves.push_back(draw_move(target, state, rng));
    } else {
      scratch.proposed = state;
      const Index tries = local_changes(target);
      for (Index k = 0; k < tries; ++k) {
        const Move move = draw_move(target, scratch.proposed, rng);
        const double log_ratio = target.log_ratio(scratch.proposed, move);
        if (!is_legal(log_ratio)) scratch.failure = kBadLogRatio;
        if (!(rng.uniform() < std::exp(std::min(0.0, log_ratio)))) continue;
        target.apply(scratch.proposed, move);
        moves.push_back(move);
      }
      scratch.evals.ratio += tries;
      // A variable may have changed several times, and back.
      const auto by_variable = [](const Move& a, const Move& b) { return a.variable < b.variable; };
      std::sort(moves.begin(), moves.end(), by_variable);
      std::size_t count = 0;
      for (std::size_t k = 0; k < moves.size(); ++k) {
        const Index i = moves[k].variable;
        if (k > 0 && moves[k - 1].variable == i) continue;
        const Value now = target.level(scratch.proposed, i);
        if (now != target.level(state, i)) moves[count++] = {i, now};
      }
      moves.resize(count);
    }
  }
  for (const Move& move : moves) {
    scratch.changed.push_back({move.variable, first_move[move.variable], target.level(state, move.variable)});
  }
  set_out_from(target, state, scratch);
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

/// The end of a local step.
template <Target T, class Scratch>
StepInfo decide_local(typename T::State& state, Scratch& scratch) {
  if (scratch.moves.empty()) return {0.0, false, 0};
  double accept_prob = 1.0;
  if constexpr (MemoisingTarget<T>) accept_prob = std::exp(std::min(0.0, scratch.proposed_log_prob - scratch.log_prob));
  const bool possible = scratch.proposed_log_prob > -std::numeric_limits<double>::infinity();
  return accept_or_not<T>(state, scratch, scratch.failure == nullptr && possible ? accept_prob : 0.0);
}

/// The end of a step that is not: `judge` gives the acceptance probability. A proposal that changes nothing is not
/// accepted, and nothing is learned from it.
template <Target T, class Scratch, class Judge>
StepInfo decide_many(typename T::State& state, Scratch& scratch, Judge&& judge) {
  if (scratch.moves.empty()) return {0.0, false, 0};
  const double accept_prob = judge();
  scratch.proposals.count += 1.0;
  scratch.proposals.accepted += accept_prob;
  return accept_or_not<T>(state, scratch, accept_prob);
}

}  // namespace poise
