/// What kernels that change several variables at once share: a random block, walks through its settings, their weights.
#pragma once

#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <poise/concepts.hpp>

namespace poise {

/// A target that weighs all settings of a block faster than one change after another: `walk(change, take)` calls
/// change(k, level) to set block variable k, and take() where the setting is to be weighed; the log ratios to the
/// present state are appended to `out` in that order.
template <class T>
concept BlockTarget = Target<T> &&
    requires(const T& target, const typename T::State& state, std::span<const Index> block, std::vector<double>& out) {
  target.block_log_ratios(state, block, out, [](auto&&, auto&&) {});
};

template <Target T>
struct BlockScratch {
  explicit BlockScratch(const T& target)
      : first_move(target.num_variables()), walker(target.make_state(std::vector<Value>(target.num_variables(), 0))) {
    Index first = 0;
    for (Index i = 0; i < target.num_variables(); ++i) {
      first_move[i] = first;
      first += target.cardinality(i) - 1;
      if (target.cardinality(i) > 1) free.push_back(i);
    }
  }
  std::vector<Index> first_move;
  std::vector<Index> free;                       // variables that can change, in an order that drawing blocks shuffles
  std::vector<Index> block;                      // variables of the present step
  std::vector<Value> center;                     // levels of the block around which settings are walked through
  std::vector<Value> settings;                   // levels of the block, one setting after another
  std::vector<double> weights;                   // log ratios to the present state, then probabilities
  std::vector<std::pair<Index, Value>> changed;  // variables that the last step changed, and the levels they had
  typename T::State walker;
  const char* failure = nullptr;
  Evals evals;

  /// What the next step depends on, and what was counted.
  template <class A>
  void archive(A& archive) {
    archive(free, evals);
  }
};

/// The first `size` of a partial shuffle: every block is equally likely, whatever the order was.
template <class Scratch>
void draw_block(Scratch& scratch, std::size_t size, Rng& rng) {
  std::vector<Index>& free = scratch.free;
  size = std::min(size, free.size());
  for (std::size_t k = 0; k < size; ++k) {
    const auto other = k + static_cast<std::size_t>(rng.uniform() * static_cast<double>(free.size() - k));
    std::swap(free[k], free[other]);
  }
  scratch.block.assign(free.begin(), free.begin() + static_cast<std::ptrdiff_t>(size));
}

/// All settings of the block in reflected Gray-code order, one change apart; starts and ends anywhere.
template <class Change, class Take>
void walk_all(std::span<const Index> cardinalities, std::span<const Value> from, Change&& change, Take&& take) {
  const std::size_t size = from.size();
  std::vector<Value> level(from.begin(), from.end());
  std::vector<int> direction(size, 1);
  for (std::size_t k = 0; k < size; ++k) {
    if (level[k] != 0) change(k, level[k] = 0);
  }
  for (;;) {
    take();
    std::size_t k = 0;
    for (; k < size; ++k) {
      const int next = level[k] + direction[k];
      if (next >= 0 && next < static_cast<int>(cardinalities[k])) {
        change(k, level[k] = static_cast<Value>(next));
        break;
      }
      direction[k] = -direction[k];
    }
    if (k == size) return;
  }
}

/// All settings that differ from `center` in at most `radius` places, the center first. Begins and ends at the center.
template <class Change, class Take>
void walk_ball(std::span<const Index> cardinalities, std::span<const Value> center, unsigned radius, Change&& change,
               Take&& take, std::size_t first = 0) {
  take();
  if (radius == 0) return;
  for (std::size_t k = first; k < center.size(); ++k) {
    for (Index level = 0; level < cardinalities[k]; ++level) {
      if (level == center[k]) continue;
      change(k, static_cast<Value>(level));
      walk_ball(cardinalities, center, radius - 1, change, take, k + 1);
    }
    change(k, center[k]);
  }
}

/// Fills `settings` and `weights` (log ratios to the state) along a walk.
template <Target T, class Walk>
void weigh_settings(const T& target, const typename T::State& state, BlockScratch<T>& scratch, Walk&& walk) {
  const std::span<const Index> block = scratch.block;
  std::vector<Value> now(block.size());
  for (std::size_t k = 0; k < block.size(); ++k) now[k] = target.level(state, block[k]);
  scratch.settings.clear();
  scratch.weights.clear();
  const auto note = [&] { scratch.settings.insert(scratch.settings.end(), now.begin(), now.end()); };
  if constexpr (BlockTarget<T>) {
    target.block_log_ratios(state, block, scratch.weights, [&](auto&& change, auto&& take) {
      walk([&](std::size_t k, Value level) { change(k, now[k] = level); },
           [&] {
             note();
             take();
           });
    });
  } else {
    scratch.walker = state;
    const double start = target.log_prob(state);
    double log_ratio = 0.0;
    walk(
        [&](std::size_t k, Value level) {
          const Move move = {block[k], now[k] = level};
          const double step = std::isfinite(log_ratio) ? target.log_ratio(scratch.walker, move) : 0.0;
          const bool inside = std::isfinite(log_ratio) && std::isfinite(step);
          target.apply(scratch.walker, move);
          log_ratio = inside ? log_ratio + step : target.log_prob(scratch.walker) - start;
        },
        [&] {
          note();
          scratch.weights.push_back(log_ratio);
        });
  }
  scratch.evals.ratio += scratch.weights.size();
}

/// Fibers log ratios into probabilities; the present state is among the settings, so some are positive.
template <class Scratch>
void normalise(Scratch& scratch) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const double weight : scratch.weights) largest = std::max(largest, weight);
  double total = 0.0;
  for (double& weight : scratch.weights) total += weight = std::exp(weight - largest);
  if (!(total > 0.0)) scratch.failure = "the target gave a log ratio that is not a number";
  for (double& weight : scratch.weights) weight /= total;
}

/// Draws one of the settings and makes it the state's.
template <Target T>
StepInfo draw_setting(const T& target, typename T::State& state, BlockScratch<T>& scratch, Rng& rng) {
  double place = rng.uniform();
  std::size_t chosen = 0;
  while (chosen + 1 < scratch.weights.size() && place >= scratch.weights[chosen]) place -= scratch.weights[chosen++];
  while (chosen > 0 && scratch.weights[chosen] == 0.0) --chosen;
  scratch.changed.clear();
  if (scratch.failure != nullptr) return {1.0, false, 0};
  for (std::size_t k = 0; k < scratch.block.size(); ++k) {
    const Index i = scratch.block[k];
    const Value level = scratch.settings[chosen * scratch.block.size() + k];
    const Value old = target.level(state, i);
    if (level == old) continue;
    scratch.changed.emplace_back(i, old);
    target.apply(state, {i, level});
  }
  return {1.0, !scratch.changed.empty(), static_cast<std::uint32_t>(scratch.changed.size())};
}

}  // namespace poise
