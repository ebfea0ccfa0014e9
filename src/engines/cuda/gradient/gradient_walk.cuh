/// One chain whose proposals are made from gradients of log p, by some threads: weighing what could change, choosing,
/// deciding.
///
/// Sums are sums of integers, and variables are chosen in the order of their numbers, so what a chain does does not
/// depend on how many threads it has. `Gradients` are where gradients are read: `four(i, out)` gives those of variables
/// i to i + 3, i a multiple of four; what it gives beyond the last variable is not looked at.
#pragma once

#include <cstddef>
#include <type_traits>

#include "engines/common/gradient_law.hpp"
#include "engines/common/host_device.hpp"
#include "engines/common/step_guards.hpp"
#include "engines/cuda/common/kernel.cuh"
#include "engines/cuda/gradient/gradient_view.hpp"

namespace poise::cuda {

/// What a proposal is, for what is counted of it.
enum class GradientChange { some, none, local };

/// What the threads of a chain share about one variable that flips.
struct GradientChosen {
  Word64 random;
  unsigned variable;
  unsigned weight;  // at the proposal
};

/// Variables belong to threads in groups of four side by side.
template <GradientFunction function, unsigned kThreads>
struct GradientWalk {
  static constexpr unsigned kChunk = 1024;                      // variables that are in registers
  static constexpr unsigned kGroups = kChunk / (4 * kThreads);  // of a thread
  using Sums = typename Reduction<kThreads>::Sums;

  const GradientChainsView& all;
  const GradientLaw& law;
  Reduction<kThreads> reduction;
  std::uint32_t* state;  // words, in shared memory
  std::uint32_t* flips;
  std::uint32_t number;
  unsigned thread;  // of those of this chain

  __device__ std::size_t row(std::size_t width) const { return number * width; }

  __device__ void load_words() {
    static_cast<void>(read_words());
    reduction.wait();
  }
  /// The same, and whether anything flips.
  __device__ bool load_words_and_look() { return reduction.any(read_words()); }

  /// Calls use(k, u, flips) for the variables i + k of a group; u is the first-order log ratio of changing one.
  template <class Gradients, class Use>
  __device__ void for_four(const Gradients& gradients, bool at_proposal, unsigned i, Use&& use) const {
    float gradient[4];
    gradients.four(i, gradient);
    const unsigned changed = flips[i / 32] >> i % 32;
    const unsigned on = state[i / 32] >> i % 32 ^ (at_proposal ? changed : 0U);
#pragma unroll
    for (unsigned k = 0; k < 4; ++k) {
      if (i + k >= all.variables) continue;
      use(k, (on >> k & 1U) != 0 ? -gradient[k] : gradient[k], (changed >> k & 1U) != 0);
    }
  }
  /// The same for all variables of this thread from `first` on, as use(i, u, flips).
  template <class Gradients, class Use>
  __device__ void for_each(const Gradients& gradients, bool at_proposal, unsigned first, Use&& use) const {
    for (unsigned i = first + 4 * thread; i < all.variables; i += 4 * kThreads) {
      for_four(gradients, at_proposal, i, [&](unsigned k, float u, bool changes) { use(i + k, u, changes); });
    }
  }

  struct Weights {
    float largest;  // log g
    Word64 whole;   // sum of weights
  };
  /// What a thread has of this sum in each of its groups, where these are few.
  static constexpr bool kKeepsGroups = kGroups <= 2;
  struct GroupWeights {
    unsigned of[kKeepsGroups ? kGroups : 1];
    bool known = false;
  };
  /// `chosen`, which is shared, becomes the weight of the variable that flips.
  template <class Gradients>
  __device__ Weights weigh(const Gradients& gradients, bool at_proposal, unsigned& chosen, GroupWeights& groups) {
    float most = -3e38F;
    float held[4 * kGroups] = {};
    unsigned there = 0, changed = 0;
#pragma unroll
    for (unsigned group = 0; group < kGroups; ++group) {
      const unsigned i = 4 * (thread + group * kThreads);
      if (i >= all.variables) continue;
      for_four(gradients, at_proposal, i, [&](unsigned k, float u, bool changes) {
        held[4 * group + k] = log_g<function>(law, u);
        most = fmaxf(most, held[4 * group + k]);
        there |= 1U << (4 * group + k);
        if (changes) changed |= 1U << (4 * group + k);
      });
    }
    for_each(gradients, at_proposal, kChunk,
             [&](unsigned, float u, bool) { most = fmaxf(most, log_g<function>(law, u)); });
    Weights out{reduction.most(most), 0};
    unsigned whole = 0;
#pragma unroll
    for (unsigned group = 0; group < kGroups; ++group) {
      unsigned mine = 0;
#pragma unroll
      for (unsigned k = 4 * group; k < 4 * group + 4; ++k) {
        const unsigned w = (there >> k & 1U) != 0 ? weight(held[k], out.largest) : 0;
        mine += w;
        if ((changed >> k & 1U) != 0) chosen = w;
      }
      if constexpr (kKeepsGroups) groups.of[group] = mine;
      whole += mine;
    }
    groups.known = kKeepsGroups;
    out.whole = whole;
    for_each(gradients, at_proposal, kChunk, [&](unsigned, float u, bool changes) {
      const unsigned w = weight(log_g<function>(law, u), out.largest);
      out.whole += w;
      if (changes) chosen = w;
    });
    reduction.sum(out.whole);
    return out;
  }

  /// log of the probability that the flips have at the proposal, where every variable is drawn by itself.
  template <class Gradients>
  __device__ double log_back_of_many(const Gradients& proposed) {
    Word64 sum = 0;
    for_each(proposed, true, 0, [&](unsigned, float u, bool changes) {
      sum += static_cast<Word64>(log_in_parts(log_chance(chance<function>(law, u), changes)));
    });
    reduction.sum(sum);
    return log_from_parts(static_cast<long long>(sum));
  }

  /// Four random words of a step that asks for them `calls` times.
  __device__ Philox words(std::uint64_t step, std::uint64_t calls, std::uint64_t call) const {
    return philox(step * calls + call, all.first_chain + number, all.seed);
  }
  __device__ static Word64 both(std::uint32_t high, std::uint32_t low) { return static_cast<Word64>(high) << 32 | low; }

  /// What a step in which one variable changes has of chance; the level of its decision is stored.
  __device__ void draw_one(std::uint64_t step, GradientChosen& chosen) {
    if (thread >= 32) return;
    const Philox drawn = words(step, 1, 0);
    if (thread != 0) return;
    chosen.random = both(drawn.word[0], drawn.word[1]);
    all.level[number] = both(drawn.word[2], drawn.word[3]);
  }

  /// One variable in proportion to the weights, after draw_one.
  template <class Gradients>
  __device__ void choose_one(const Gradients& gradients, const Weights& weights, const GroupWeights& groups,
                             GradientChosen& chosen) {
    for (unsigned w = thread; w < all.words; w += kThreads) flips[w] = 0;
    reduction.wait();
    Word64 left = __umul64hi(chosen.random, weights.whole);
    bool reached = false;
    unsigned four[4];
    const auto weigh_four = [&](unsigned i) {
      unsigned sum = 0;
#pragma unroll
      for (unsigned& own : four) own = 0;
      if (i >= all.variables) return sum;
      for_four(gradients, false, i, [&](unsigned k, float u, bool) {
        four[k] = weight(log_g<function>(law, u), weights.largest);
        sum += four[k];
      });
      return sum;
    };
    const auto look = [&](unsigned i, unsigned mine, bool weighed) {
      const Sums sums = reduction.scan(mine);
      reached = left < sums.whole;
      if (!reached) left -= sums.whole;
      if (!reached || left < sums.before || left - sums.before >= mine) return;
      // Both are sums of the same weights; should a compiler ever round one of them otherwise, somebody is chosen
      // still.
      const unsigned all_four = weighed ? mine : weigh_four(i);
      unsigned rest = min(static_cast<unsigned>(left - sums.before), all_four - 1);
      bool found = false;
#pragma unroll
      for (unsigned k = 0; k < 4; ++k) {
        if (!found && rest < four[k]) {
          found = true;
          chosen.variable = i + k;
          flips[i / 32] = 1U << (i + k) % 32;
          all.forth[number] = static_cast<float>(four[k]) / static_cast<float>(weights.whole);
        }
        rest -= four[k];
      }
    };
    // One group of each thread after the other, until their sum is reached.
    unsigned first = 0;
    if constexpr (kKeepsGroups) {
      if (groups.known) {
        first = kChunk;
#pragma unroll
        for (unsigned group = 0; group < kGroups; ++group) {
          if (reached || 4 * group * kThreads >= all.variables) continue;
          look(4 * (thread + group * kThreads), groups.of[group], false);
        }
      }
    }
    for (; !reached && first < all.variables; first += 4 * kThreads) {
      const unsigned i = first + 4 * thread;
      look(i, weigh_four(i), true);
    }
  }

  /// How often a step asks for random words where variables are drawn by themselves: for four of them at a time, and
  /// for its level.
  __device__ std::uint64_t calls_of_many() const { return (all.variables + 3) / 4 + 1; }
  __device__ void draw_level(std::uint64_t step) const {
    const std::uint64_t calls = calls_of_many();
    const Philox last = words(step, calls, calls - 1);
    all.level[number] = both(last.word[0], last.word[1]);
  }

  /// Every variable by itself.
  template <class Gradients>
  __device__ void choose_many(const Gradients& gradients, std::uint64_t step) {
    const std::uint64_t calls = calls_of_many();
    for (unsigned w = thread; w < all.words; w += kThreads) flips[w] = 0;
    reduction.wait();
    Word64 log_forth = 0;
    Philox random{};
    unsigned drawn = 0;
    // Variables come in fours, and so do random words.
    for_each(gradients, false, 0, [&](unsigned i, float u, bool) {
      if (i % 4 == 0) random = words(step, calls, i / 4);
      const std::uint32_t parts = chance<function>(law, u);
      const bool changes = random.word[i % 4] < parts;
      log_forth += static_cast<Word64>(log_in_parts(log_chance(parts, changes)));
      if (i % 4 == 0) drawn = 0;
      if (changes) drawn |= 1U << i % 32;
      if ((i % 4 == 3 || i + 1 == all.variables) && drawn != 0) atomicOr(flips + i / 32, drawn);
    });
    reduction.sum(log_forth);
    if (thread != 0) return;
    all.forth[number] = log_from_parts(static_cast<long long>(log_forth));
    draw_level(step);
  }

  /// The variable that a local step tries, and the level of this try: by itself, or as one of several.
  struct LocalTry {
    unsigned variable;
    std::uint64_t level;
  };
  __device__ LocalTry draw_local(std::uint64_t step, unsigned number_of_try) const {
    const Philox drawn = words(step, calls_of_many(), number_of_try);
    return {one_of(all.variables, drawn.word[0]), both(drawn.word[2], drawn.word[3])};
  }
  /// One variable, any as likely as another: the proposal of a local step.
  __device__ void choose_local(std::uint64_t step) {
    for (unsigned w = thread; w < all.words; w += kThreads) flips[w] = 0;
    reduction.wait();
    if (thread != 0) return;
    const LocalTry drawn = draw_local(step, 0);
    flips[drawn.variable / 32] = 1U << drawn.variable % 32;
    all.level[number] = drawn.level;
  }

  /// What is drawn from, for each variable: weights of single changes, or probabilities in units of 2^-32. `chosen` is
  /// as in `weigh`.
  template <class Gradients>
  __device__ void tell_law(const Gradients& gradients, unsigned& chosen, std::uint64_t* out) {
    if (law.form == GradientForm::single) {
      GroupWeights groups;
      const float largest = weigh(gradients, false, chosen, groups).largest;
      for_each(gradients, false, 0,
               [&](unsigned i, float u, bool) { out[i] = weight(log_g<function>(law, u), largest); });
    } else {
      for_each(gradients, false, 0, [&](unsigned i, float u, bool) { out[i] = chance<function>(law, u); });
    }
  }

  /// Whether the proposal is accepted, by its level. A chain that rests compares with more than 1.
  __device__ bool decide(float ratio, std::uint64_t level, GradientChange change) const {
    const auto probability = static_cast<double>(fminf(ratio, 1.0F));
    if (thread == 0) count(probability, change);
    return level_of(level) * all.stretch < probability;
  }

  /// Counts what a proposal is worth. No thread waits for what was there before; nor below.
  __device__ void count(double probability, GradientChange change) const {
    if (change == GradientChange::none) {
      atomicAdd(all.unchanged + number, 1.0);
      return;
    }
    atomicAdd(all.accepted + number, probability);
    if (change == GradientChange::local) atomicAdd(all.local_accepted + number, probability);
  }

  /// The proposal becomes the state. Only after something was summed since states and flips were read.
  __device__ void take_flips(std::uint64_t step) {
    const auto when = static_cast<std::int64_t>(step + 1 - all.counted_from);
    reduction.wait_after_sum();  // the former state is not read any more
    for (unsigned w = thread; w < all.words; w += kThreads) {
      const unsigned before = state[w];
      if (all.up != nullptr) {
        for (unsigned left = flips[w]; left != 0; left &= left - 1) {
          const unsigned shift = __ffs(static_cast<int>(left)) - 1;
          atomicAdd(reinterpret_cast<Word64*>(all.up) + row(all.variables) + 32 * w + shift,
                    static_cast<Word64>((before >> shift & 1U) != 0 ? when : -when));
        }
      }
      state[w] = before ^ flips[w];
      all.state[row(all.words) + w] = state[w];
    }
  }

  /// The proposal, for the next launch.
  __device__ void store_flips() const {
    for (unsigned w = thread; w < all.words; w += kThreads) all.flips[row(all.words) + w] = flips[w];
  }

 private:
  /// Past the multiprocessor's own cache: a launch that overlaps with the one before may come here before that is over.
  /// Whether anything of what this thread reads flips.
  __device__ bool read_words() {
    std::uint32_t some = 0;
    for (unsigned w = thread; w < all.words; w += kThreads) {
      state[w] = __ldcg(all.state + row(all.words) + w);
      flips[w] = __ldcg(all.flips + row(all.words) + w);
      some |= flips[w];
    }
    return some != 0;
  }
};

// How kernels are shaped: a warp or a thread block for each chain, a function that the compiler knows.

inline constexpr unsigned kGradientThreads = 128;  // of a block

/// Threads of a block in which each chain has so many: warps do not wait for each other, larger groups do.
template <unsigned kOfChain>
inline constexpr unsigned kGradientBlock = kOfChain == 32 ? kGradientThreads : kOfChain;

/// Words of shared memory that a chain has beside its own.
template <unsigned kOfChain>
struct GradientShared {
  typename Reduction<kOfChain>::Rooms rooms;
  GradientChosen chosen;
};

/// The fewer threads a chain has, the less is done in all, and the longer it takes.
inline bool has_warp_for_each(const GradientChainsView& chains) {
  return chains.chains > 2048 && chains.variables <= 4096;
}

/// Calls use(function), with a function that the compiler knows.
template <class Use>
void with_function(GradientFunction function, Use&& use) {
  switch (function) {
    case GradientFunction::sqrt: use(std::integral_constant<GradientFunction, GradientFunction::sqrt>()); break;
    case GradientFunction::barker: use(std::integral_constant<GradientFunction, GradientFunction::barker>()); break;
    case GradientFunction::min: use(std::integral_constant<GradientFunction, GradientFunction::min>()); break;
    case GradientFunction::max: use(std::integral_constant<GradientFunction, GradientFunction::max>()); break;
    case GradientFunction::table: use(std::integral_constant<GradientFunction, GradientFunction::table>()); break;
  }
}

/// Bytes of words of chains in a block: their states and flips.
inline std::size_t shared_words(const GradientChainsView& chains, unsigned of_block) {
  return 2 * sizeof(std::uint32_t) * chains.words * of_block;
}

}  // namespace poise::cuda
