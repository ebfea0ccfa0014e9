/// One Markov chain: state, kernel memory, random numbers, and what is counted along the way.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <poise/extend/base/concepts.hpp>
#include <poise/extend/base/simd.hpp>
#include <poise/extend/kernels/step.hpp>
#include <poise/types.hpp>

namespace poise {

/// Engines that keep the state of each chain as its target has it.
template <Target T>
class StatesOf {
 public:
  virtual ~StatesOf() = default;
  [[nodiscard]] virtual const typename T::State& state(std::size_t chain) const = 0;
};

/// Why no chain can start at what was tried.
[[nodiscard]] std::string no_start(std::uint64_t chain, unsigned attempts);

/// A state of positive probability: the given one, or what `other` gives, attempt after attempt, until it gives an
/// empty one. `chain` is for the sentence if there is none.
template <Target T>
typename T::State make_start(const T& target, std::span<const Value> levels, std::uint64_t chain,
                             const std::function<std::vector<Value>(unsigned attempt)>& other, Evals& evals) {
  typename T::State state = target.make_state(levels);
  for (unsigned attempt = 0;; ++attempt) {
    evals.target += 1;
    if (target.log_prob(state) != -std::numeric_limits<double>::infinity()) return state;
    const std::vector<Value> next = other ? other(attempt) : std::vector<Value>();
    if (next.empty()) throw InputError(no_start(chain, attempt));
    state = target.make_state(next);
  }
}

template <Target T>
void copy_levels(const T& target, const typename T::State& state, std::span<Value> out) {
  for (Index i = 0; i < target.num_variables(); ++i) out[i] = target.level(state, i);
}

/// Says of each variable whether every other level has probability zero: then it is frozen.
template <Target T>
void find_frozen(const T& target, const typename T::State& state, std::span<std::uint8_t> out) {
  std::vector<double> ratios(target.num_moves());
  target.log_ratios(state, ratios);
  Index move = 0;
  for (Index i = 0; i < target.num_variables(); ++i) {
    out[i] = 1;
    for (Index k = 1; k < target.cardinality(i); ++k) {
      if (ratios[move++] > -std::numeric_limits<double>::infinity()) out[i] = 0;
    }
  }
}

/// Adds the conditional probabilities of all variables; `log_ratios` is a buffer.
template <Target T>
void add_conditionals(const T& target, const typename T::State& state, std::vector<double>& log_ratios,
                      RaoBlackwell& to) {
  log_ratios.resize(target.num_moves());
  target.log_ratios(state, log_ratios);
  Index first = 0;
  for (Index i = 0; i < target.num_variables(); ++i) {
    const Index moves = target.cardinality(i) - 1;
    if (moves > 0) to.add(first, {log_ratios.data() + first, moves}, target.level(state, i));
    first += moves;
  }
  ++to.count;
}

/// How long each variable has been at each level, counting every step, at O(1) a change.
class EmpiricalMarginals {
 public:
  /// `entries` is the number of (variable, level > 0) pairs; for binary variables, of variables.
  explicit EmpiricalMarginals(Index entries) : entries_(entries) {}

  /// A variable had `level` up to and including step `now`, and no longer. `first` is the entry of its level 1.
  POISE_INLINE void leave(Index first, Value level, std::uint64_t now) {
    const std::uint32_t spent = static_cast<std::uint32_t>(now) - entries_[first].last;
    entries_[first].last = static_cast<std::uint32_t>(now);
    if (level > 0) entries_[first + level - 1].time += spent;
  }

  /// For binary variables that were all counted up to now: adds the steps up to `now` at level 1 since then.
  void add(std::span<const std::uint32_t> steps, std::uint64_t now) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      entries_[i].time += steps[i];
      entries_[i].last = static_cast<std::uint32_t>(now);
    }
  }

  POISE_INLINE void prefetch(Index entry) const { __builtin_prefetch(entries_.data() + entry, 1); }

  /// Starts counting at step `now`.
  void reset(std::uint64_t now) {
    std::fill(entries_.begin(), entries_.end(), Entry{0, static_cast<std::uint32_t>(now)});
    start_ = now;
  }

  template <class A>
  void archive(A& archive) {
    archive(entries_, start_);
  }

  [[nodiscard]] std::uint64_t start() const { return start_; }
  [[nodiscard]] std::uint64_t time(Index entry) const { return entries_[entry].time; }
  /// Steps up to `now` that a variable has been at its present level and `time` does not count yet.
  [[nodiscard]] std::uint32_t since_change(Index first, std::uint64_t now) const {
    return static_cast<std::uint32_t>(now) - entries_[first].last;
  }

 private:
  /// Twelve bytes, so that a change touches one place in memory.
  struct __attribute__((packed, aligned(4))) Entry {
    std::uint64_t time;  // steps at this level
    std::uint32_t last;  // step of the variable's last change modulo 2^32, in the entry of its level 1
  };

  std::vector<Entry> entries_;
  std::uint64_t start_ = 0;
};

template <Target T, class K>
struct Chain {
  /// `reference_state` is what the Hamming distance is measured from; it outlives the chain.
  Chain(const T& target, std::span<const Value> start, std::span<const Value> reference_state, Rng random)
      : state(target.make_state(start)),
        scratch(target),
        rng(random),
        reference(reference_state),
        empirical_marginals(target.num_moves()) {
    distance = measure_distance(target);
  }

  /// Variables that differ from the reference.
  [[nodiscard]] std::int64_t measure_distance(const T& target) const {
    Index different = 0;  // as narrow as will do, for the sake of vectors
    for (Index i = 0; i < target.num_variables(); ++i) different += target.level(state, i) != reference[i] ? 1 : 0;
    return different;
  }

  /// The same, by what is kept where it is kept.
  [[nodiscard]] std::int64_t present_distance(const T& target) const {
    return tracks_distance() ? distance : measure_distance(target);
  }

  /// Small models keep the distance up to date at every step. In large ones a look at the reference would be one more
  /// miss of the cache; there, and where a kernel counts levels itself, it is measured when a draw is recorded.
  [[nodiscard]] bool tracks_distance() const {
    return reference.size() <= 8192 && !requires { K::kCountsLevels; };
  }

  /// Counts a step that has just been made.
  POISE_INLINE void count(const K& kernel, const T& target, const StepInfo& info) {
    const std::uint64_t before = steps++;  // a variable has its old level up to the step before this one
    accepted += info.accept_prob;
    for_each_change<T>(kernel, target, state, scratch, info, [&](Index variable, Index first, Value old) {
      empirical_marginals.leave(first, old, before);
      if (!tracks_distance()) return;
      const Value place = reference[variable];
      distance += (old == place ? 1 : 0) - (target.level(state, variable) == place ? 1 : 0);
    });
  }
  /// Fetches ahead what `count` will touch if a move is accepted.
  POISE_INLINE void prefetch_counts(Index move) const { empirical_marginals.prefetch(move); }
  /// Counts steps that were all accepted, of a kernel that has counted after how many of them each variable (all are
  /// binary) was at level 1.
  void count_levels(std::span<const std::uint32_t> at_one, std::uint64_t made) {
    steps += made;
    accepted += static_cast<double>(made);
    empirical_marginals.add(at_one, steps);
  }

  /// All but the state.
  template <class A>
  void archive(A& archive) {
    archive(rng, distance, empirical_marginals, rao_blackwell, steps, accepted, settled, scratch);
  }

  typename T::State state;
  typename K::Scratch scratch;
  Rng rng;
  std::span<const Value> reference;
  std::int64_t distance = 0;  // from the reference, where it is tracked
  EmpiricalMarginals empirical_marginals;
  RaoBlackwell rao_blackwell;      // at recorded draws; unused where the kernel averages them by itself
  std::vector<double> log_ratios;  // a buffer for them
  std::uint64_t steps = 0;
  double accepted = 0.0;      // sum of acceptance probabilities
  std::uint64_t settled = 0;  // step at which `empirical_marginals` was last brought up to date in full
};

/// Brings the empirical_marginals of every variable up to the present step.
template <Target T, class K>
void settle(const T& target, Chain<T, K>& chain) {
  Index first = 0;
  for (Index i = 0; i < target.num_variables(); ++i) {
    if (target.cardinality(i) > 1) chain.empirical_marginals.leave(first, target.level(chain.state, i), chain.steps);
    first += target.cardinality(i) - 1;
  }
  chain.settled = chain.steps;
}

/// The widest instruction set that the steps of a kernel gain from.
template <class K>
constexpr InstructionSet widest_of() {
  if constexpr (requires { K::kWidest; }) return K::kWidest;
  return InstructionSet::avx2;
}

/// A kernel with a loop of its own, which takes several chains through many steps. Each chain makes the steps that it
/// would make alone; the loop counts them by `Chain::count` or `Chain::count_levels`.
template <class K, class T>
concept LoopingKernel = requires(const K& kernel, const T& target, std::span<Chain<T, K>* const> chains) {
  { K::kChainsTogether } -> std::convertible_to<std::size_t>;
  kernel.advance(target, chains, std::uint64_t{});
};

/// Moves chains on by the loop of their kernel, or chain by chain and step by step.
template <Target T, class K>
void advance(const K& kernel, const T& target, std::span<Chain<T, K>* const> chains, std::uint64_t steps) {
  if constexpr (MemoisingTarget<T>) {
    // Such a target may throw, or wait, in the middle of a step, and the time goes into it: one copy is enough.
    for (Chain<T, K>* chain : chains) {
      for (std::uint64_t step = 0; step < steps; ++step) {
        chain->count(kernel, target, kernel.step(target, chain->state, chain->scratch, chain->rng));
      }
    }
  } else if constexpr (LoopingKernel<K, T>) {
    kernel.advance(target, chains, steps);
  } else {
    // The hot loop: everything below it is inlined and compiled for each instruction set.
    for (Chain<T, K>* one : chains) {
      hot<widest_of<K>()>([&, one, steps] {
        Chain<T, K>& chain = *one;
        for (std::uint64_t step = 0; step < steps; ++step) {
          chain.count(kernel, target, kernel.step(target, chain.state, chain.scratch, chain.rng));
        }
      });
    }
  }
}

}  // namespace poise
