/// The contracts between targets, kernels and the runner.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include <poise/extend/base/simd.hpp>
#include <poise/types.hpp>

namespace poise {

/// A target is an immutable model, shared by all threads (but see SingleThreadTarget). Its State holds the current x,
/// log p up to a constant, and whatever the model caches to make ratios cheap.
///
/// The moves of a state are numbered 0 .. num_moves()-1. A variable with k levels has k-1 of them, one for each level
/// it does not have now, in increasing order; `move_at` turns a number into a move. For binary targets the number of a
/// move is the number of the variable it flips.
///
/// A log ratio is log p(x')/p(x) of a move: -inf is legal (x' has no probability), NaN and +inf are errors of the
/// target.
template <class T>
concept Target = requires(const T& target, typename T::State& state, const typename T::State& constant, Move move,
                          std::span<double> out, std::span<const Value> x, std::span<Value> levels, Index i) {
  { target.num_variables() } -> std::same_as<Index>;
  { target.num_moves() } -> std::same_as<Index>;
  { target.cardinality(i) } -> std::convertible_to<Index>;
  { target.make_state(x) } -> std::same_as<typename T::State>;
  { target.level(constant, i) } -> std::same_as<Value>;
  { target.log_prob(constant) } -> std::same_as<double>;
  { target.move_at(constant, i) } -> std::same_as<Move>;
  { target.log_ratio(constant, move) } -> std::same_as<double>;
  target.log_ratios(constant, out);  // of all moves
  target.apply(state, move);
};

/// The levels of all variables of a state.
template <Target T>
std::vector<Value> levels_of(const T& target, const typename T::State& state) {
  std::vector<Value> x(target.num_variables());
  for (Index i = 0; i < target.num_variables(); ++i) x[i] = target.level(state, i);
  return x;
}

/// Up to eight moves whose ratio changes when one move is made, with their log ratios after it. Held in registers:
/// numbers that are written one by one and read back as a vector would wait for the stores.
struct AffectedLanes {
  std::array<Index, 8> moves;
  Doubles8 log_ratios;  ///< -inf in the lanes beyond `count`
  unsigned count;
};

/// A target in which a move changes the ratios of few others: those of the changed variable and of its Markov blanket.
template <class T>
concept SparseTarget = Target<T> && requires(const T& target, const typename T::State& state, Index move) {
  { target.max_affected() } -> std::convertible_to<std::size_t>;
  // Calls the function with all affected moves, eight at a time, as the ratios would be after the move.
  target.for_each_affected(state, move, [](const AffectedLanes&) {});
};

/// A target that keeps log p with every state it was computed for: `log_prob` of a state whose ratios or gradient were
/// just asked for costs nothing, and copying a state is cheaper than computing it again.
template <class T>
concept MemoisingTarget = Target<T> && T::kMemoises;

/// A target that is not for several threads: its const functions gather what chains ask for in the target itself, so
/// that one call can answer all of them. Its chains take turns on one thread (base/fiber_scheduler.hpp); code
/// that moves chains on several threads must refuse it.
template <class T>
concept SingleThreadTarget = Target<T> && T::kSingleThread;

/// A kernel makes one transition that leaves the target invariant. Scratch is its memory between steps (one per chain),
/// brought up to date by `prepare` after the state or the kernel was changed from outside.
template <class K, class T>
concept Kernel = requires(const K& kernel, const T& target, typename T::State& state, typename K::Scratch& scratch,
                          Rng& rng) {
  kernel.prepare(target, state, scratch);
  { kernel.step(target, state, scratch, rng) } -> std::same_as<StepInfo>;
};

}  // namespace poise
