/// What kernels that change several variables at once share: a random block, walks through its configurations, their
/// weights.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <poise/extend/base/concepts.hpp>
#include <poise/extend/kernels/step.hpp>

namespace poise {

/// Configurations that a step may weigh. A chain keeps a number for each: 8 MiB at most.
inline constexpr std::size_t kMostConfigurations = std::size_t{1} << 20;

/// Configurations of any `block` variables with these cardinalities, at most. Throws InputError where they are more
/// than kMostConfigurations.
std::size_t most_configurations(std::vector<Index> cardinalities, std::size_t block);
/// The same of those that differ from a given one in at most `radius` variables.
std::size_t most_configurations(std::vector<Index> cardinalities, std::size_t block, unsigned radius);

/// A target that weighs all configurations of a block faster than one change after another: `walk(change, take)` calls
/// change(k, level) to set block variable k to a level that it does not have, and take() where the configuration is to
/// be weighed; the log ratios to the present state are put into `out` in that order. BlockMemory is the target's own,
/// kept from step to step.
template <class T>
concept BlockTarget = Target<T> && std::constructible_from<typename T::BlockMemory, const T&> &&
    requires(const T& target, const typename T::State& state, std::span<const Index> block,
             typename T::BlockMemory& memory, std::vector<double>& out) {
  target.block_log_ratios(state, block, memory, out, [](auto&&, auto&&) {});
};

/// In place of a BlockMemory: a state that makes all changes of a walk.
template <Target T>
struct BlockWalker {
  explicit BlockWalker(const T& target) : state(target.make_state(std::vector<Value>(target.num_variables(), 0))) {}
  typename T::State state;
};

template <Target T>
struct BlockMemoryOf {
  using type = BlockWalker<T>;
};
template <BlockTarget T>
struct BlockMemoryOf<T> {
  using type = typename T::BlockMemory;
};

template <Target T>
struct BlockScratch {
  explicit BlockScratch(const T& target) : first_move(first_moves(target)), memory(target) {
    for (Index i = 0; i < target.num_variables(); ++i) {
      if (target.cardinality(i) > 1) free.push_back(i);
    }
  }

  /// Cardinalities of the variables that can change.
  [[nodiscard]] std::vector<Index> free_cardinalities(const T& target) const {
    std::vector<Index> out;
    for (const Index i : free) out.push_back(target.cardinality(i));
    return out;
  }

  /// Makes room for steps with blocks of this size.
  void reserve(std::size_t size, std::size_t configurations) {
    size = std::min(size, free.size());
    block.reserve(size);
    cardinalities.reserve(size);
    now.reserve(size);
    center.reserve(size);
    direction.reserve(size);
    changed.reserve(size);
    weights.reserve(configurations);
  }

  std::vector<Index> first_move;
  std::vector<Index> free;              // variables that can change, in an order that drawing blocks shuffles
  std::vector<Index> block;             // variables of the present step
  std::vector<Index> cardinalities;     // of the block
  std::vector<Value> now;               // levels of the block
  std::vector<Value> center;            // levels around which configurations are walked through
  std::vector<int> direction;           // of each variable in a walk through all configurations
  std::vector<std::size_t> ball_sizes;  // see ball_size
  std::vector<double> weights;          // log ratios to the present state, then probabilities
  std::vector<Change> changed;          // by the last step
  typename BlockMemoryOf<T>::type memory;
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

/// Cardinalities and present levels of the block.
template <Target T>
void look_at_block(const T& target, const typename T::State& state, BlockScratch<T>& scratch) {
  scratch.cardinalities.clear();
  scratch.now.clear();
  for (const Index i : scratch.block) {
    scratch.cardinalities.push_back(target.cardinality(i));
    scratch.now.push_back(target.level(state, i));
  }
}

/// All configurations of a block in reflected Gray-code order, one change apart. `now` is where the walk begins and
/// follows it; it ends anywhere.
template <class Change, class Take>
void walk_all(std::span<const Index> cardinalities, std::span<Value> now, std::span<int> direction, Change&& change,
              Take&& take) {
  for (std::size_t k = 0; k < now.size(); ++k) {
    direction[k] = 1;
    if (now[k] != 0) change(k, now[k] = 0);
  }
  for (;;) {
    take();
    std::size_t k = 0;
    for (; k < now.size(); ++k) {
      const int next = now[k] + direction[k];
      if (next >= 0 && next < static_cast<int>(cardinalities[k])) {
        change(k, now[k] = static_cast<Value>(next));
        break;
      }
      direction[k] = -direction[k];
    }
    if (k == now.size()) return;
  }
}

/// Configuration `number` of walk_all: the digits of the number in mixed radix, the first one lowest; a digit runs
/// backwards where the number above it is odd.
inline void gray_code(std::span<const Index> cardinalities, std::size_t number, std::span<Value> out) {
  for (std::size_t k = 0; k < out.size(); ++k) {
    const auto digit = static_cast<Value>(number % cardinalities[k]);
    number /= cardinalities[k];
    out[k] = number % 2 == 0 ? digit : static_cast<Value>(cardinalities[k] - 1 - digit);
  }
}

/// All configurations that differ from `center` in at most `radius` places, the center first. Begins and ends at the
/// center.
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

/// How many configurations walk_ball takes. Leaves in `sizes` those from each variable on and within each radius,
/// N(k, r) = N(k + 1, r) + (cardinality_k - 1) N(k + 1, r - 1), at k * (radius + 1) + r.
inline std::size_t ball_size(std::span<const Index> cardinalities, unsigned radius, std::vector<std::size_t>& sizes) {
  const std::size_t width = radius + std::size_t{1};
  sizes.assign((cardinalities.size() + 1) * width, 1);
  for (std::size_t k = cardinalities.size(); k-- > 0;) {
    const std::size_t* below = sizes.data() + (k + 1) * width;
    for (std::size_t r = 1; r < width; ++r) sizes[k * width + r] = below[r] + (cardinalities[k] - 1) * below[r - 1];
  }
  return sizes[radius];
}

/// Configuration `number` of walk_ball, with the sizes that ball_size left: `out`, which holds the center, is changed
/// where it differs.
inline void ball_member(std::span<const Index> cardinalities, std::size_t number, unsigned radius,
                        std::span<const std::size_t> sizes, std::span<Value> out) {
  const std::size_t width = radius + std::size_t{1};
  for (std::size_t k = 0, left = radius; number > 0; ++k) {
    // Those that change variable k, and none before it, come first; the center itself was number 0.
    const std::size_t each = sizes[(k + 1) * width + left - 1];
    const std::size_t all = (cardinalities[k] - 1) * each;
    if (number > all) {
      number -= all;
      continue;
    }
    const std::size_t level = (number - 1) / each;
    number = (number - 1) % each;
    out[k] = static_cast<Value>(level < out[k] ? level : level + 1);
    --left;
  }
}

/// Fills `weights` with the log ratios to the state of all configurations along a walk.
template <Target T, class Walk>
void weigh_configurations(const T& target, const typename T::State& state, BlockScratch<T>& scratch, Walk&& walk) {
  const std::span<const Index> block = scratch.block;
  scratch.weights.clear();
  if constexpr (BlockTarget<T>) {
    target.block_log_ratios(state, block, scratch.memory, scratch.weights, walk);
  } else {
    typename T::State& walker = scratch.memory.state;
    walker = state;
    const double start = target.log_prob(state);
    double log_ratio = 0.0;
    walk(
        [&](std::size_t k, Value level) {
          const Move move = {block[k], level};
          // From a state without probability there is no ratio.
          const double step = std::isfinite(log_ratio) ? target.log_ratio(walker, move) : 0.0;
          if (!is_legal(step)) scratch.failure = kBadLogRatio;
          const bool inside = std::isfinite(log_ratio) && std::isfinite(step);
          target.apply(walker, move);
          log_ratio = inside ? log_ratio + step : target.log_prob(walker) - start;
        },
        [&] { scratch.weights.push_back(log_ratio); });
  }
  scratch.evals.ratio += scratch.weights.size();
}

/// Turns log ratios into probabilities; the present state is among the configurations, so some are positive.
template <class Scratch>
void normalise(Scratch& scratch) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const double weight : scratch.weights) largest = std::max(largest, weight);
  double total = 0.0;
  for (double& weight : scratch.weights) total += weight = std::exp(weight - largest);
  if (!(total > 0.0)) scratch.failure = kBadLogRatio;  // NaN, also where the largest is +inf
  for (double& weight : scratch.weights) weight /= total;
}

/// The number of one of the configurations, drawn in proportion to its weight.
template <class Scratch>
std::size_t draw_number(const Scratch& scratch, Rng& rng) {
  double place = rng.uniform();
  std::size_t chosen = 0;
  while (chosen + 1 < scratch.weights.size() && place >= scratch.weights[chosen]) place -= scratch.weights[chosen++];
  while (chosen > 0 && scratch.weights[chosen] == 0.0) --chosen;
  return chosen;
}

/// Gives the state the levels `now` of the block.
template <Target T>
StepInfo move_to(const T& target, typename T::State& state, BlockScratch<T>& scratch) {
  scratch.changed.clear();
  if (scratch.failure != nullptr) return {0.0, false, 0};
  for (std::size_t k = 0; k < scratch.block.size(); ++k) {
    const Index i = scratch.block[k];
    const Value old = target.level(state, i);
    if (scratch.now[k] == old) continue;
    scratch.changed.push_back({i, scratch.first_move[i], old});
    target.apply(state, {i, scratch.now[k]});
  }
  return {1.0, !scratch.changed.empty(), static_cast<std::uint32_t>(scratch.changed.size())};
}

}  // namespace poise
