/// One Markov chain: state, kernel memory, random numbers, and what is counted along the way.
#pragma once

#include <algorithm>
#include <concepts>
#include <span>
#include <vector>

#include <poise/extend/base/concepts.hpp>
#include <poise/extend/kernels/changes.hpp>
#include <poise/extend/kernels/rao_blackwell.hpp>
#include <poise/extend/engines/empirical_marginals.hpp>

namespace poise {

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
  /// miss of the cache; there it is measured when a draw is recorded.
  /// Kernels that go many steps by themselves have nobody look.
  [[nodiscard]] bool tracks_distance() const {
    return reference.size() <= 8192 && !requires { K::kTogether; };
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

/// What is counted after every step.
template <Target T, class K>
POISE_INLINE void count_step(const K& kernel, const T& target, Chain<T, K>& chain, const StepInfo& info) {
  const std::uint64_t before = chain.steps++;  // a variable has its old level up to the step before this one
  chain.accepted += info.accept_prob;
  for_each_change<T>(kernel, target, chain.state, chain.scratch, info, [&](Index variable, Index first, Value old) {
    chain.empirical_marginals.leave(first, old, before);
    if (!chain.tracks_distance()) return;
    const Value place = chain.reference[variable];
    chain.distance += (old == place ? 1 : 0) - (target.level(chain.state, variable) == place ? 1 : 0);
  });
}

/// The loop for targets that may throw, or wait, in the middle of a step: the time goes into the target, so one copy is
/// enough.
template <MemoisingTarget T, class K>
void advance_waiting(const K& kernel, const T& target, Chain<T, K>& chain, std::uint64_t steps) {
  for (std::uint64_t step = 0; step < steps; ++step) {
    count_step(kernel, target, chain, kernel.step(target, chain.state, chain.scratch, chain.rng));
  }
}

/// The widest instruction set that the steps of a kernel gain from.
template <class K>
constexpr InstructionSet widest_of() {
  if constexpr (requires { K::kWidest; }) return K::kWidest;
  return InstructionSet::avx2;
}

/// The hot loop: everything below it is inlined and compiled for each instruction set.
template <Target T, class K>
void advance(const K& kernel, const T& target, Chain<T, K>& chain, std::uint64_t steps) {
  hot<widest_of<K>()>([&, steps] {
    for (std::uint64_t step = 0; step < steps; ++step) {
      count_step(kernel, target, chain, kernel.step(target, chain.state, chain.scratch, chain.rng));
    }
  });
}

/// A kernel whose step comes in parts. The parts of one chain wait for each other, those of different chains do not, so
/// taking several chains through each part together keeps the processor busy: a third more steps a second.
template <class K, class T>
concept StagedKernel = requires(const K& kernel, const T& target, typename T::State& state,
                                typename K::Scratch& scratch, Rng& rng, const typename K::Proposal& proposal) {
  { scratch.tree.is_large() } -> std::same_as<bool>;
  kernel.start(scratch, rng);
  kernel.propose(target, state, scratch);
  { kernel.evaluate(target, state, scratch, Index{}) } -> std::same_as<typename K::Proposal>;
  { kernel.decide(target, state, scratch, proposal) } -> std::same_as<StepInfo>;
};

/// Fetches ahead what `count_step` will touch if the proposed move is accepted.
template <Target T, class K>
POISE_INLINE void prefetch_counts(const Chain<T, K>& chain) {
  if (chain.scratch.tree.is_large()) chain.empirical_marginals.prefetch(chain.scratch.move);
}

/// At most this many chains of a staged kernel go through their parts together.
constexpr unsigned kTogether = 4;

/// `count` chains, up to kTogether of them, each making the steps that it would make alone.
template <Target T, StagedKernel<T> K>
void advance_together(const K& kernel, const T& target, Chain<T, K>* const* chains, unsigned count,
                      std::uint64_t steps) {
  hot<widest_of<K>()>([&, chains, count, steps] {
    typename K::Proposal proposals[kTogether];
    for (std::uint64_t step = 0; step < steps; ++step) {
      for (unsigned c = 0; c < count; ++c) kernel.start(chains[c]->scratch, chains[c]->rng);
      for (unsigned c = 0; c < count; ++c) kernel.propose(target, chains[c]->state, chains[c]->scratch);
      for (unsigned c = 0; c < count; ++c) {
        prefetch_counts(*chains[c]);
        proposals[c] = kernel.evaluate(target, chains[c]->state, chains[c]->scratch, chains[c]->scratch.move);
      }
      for (unsigned c = 0; c < count; ++c) {
        count_step(kernel, target, *chains[c],
                   kernel.decide(target, chains[c]->state, chains[c]->scratch, proposals[c]));
      }
    }
  });
}

/// A kernel that looks at the proposed states of a whole group in one go.
template <class K, class T>
concept GroupKernel = requires(const K& kernel, const T& target, typename T::State& state, typename K::Scratch& scratch,
                               Rng& rng, std::span<typename K::Scratch* const> group) {
  kernel.propose(target, state, scratch, rng);
  kernel.look_ahead(target, group);
  { kernel.decide(target, state, scratch) } -> std::same_as<StepInfo>;
};

/// All chains of the group, each making the steps that it would make alone.
template <Target T, GroupKernel<T> K>
void advance_group(const K& kernel, const T& target, std::span<Chain<T, K>* const> chains, std::uint64_t steps) {
  std::vector<typename K::Scratch*> scratches;
  for (Chain<T, K>* chain : chains) scratches.push_back(&chain->scratch);
  for (std::uint64_t step = 0; step < steps; ++step) {
    for (Chain<T, K>* chain : chains) kernel.propose(target, chain->state, chain->scratch, chain->rng);
    kernel.look_ahead(target, scratches);
    for (Chain<T, K>* chain : chains) {
      count_step(kernel, target, *chain, kernel.decide(target, chain->state, chain->scratch));
    }
  }
}

/// A kernel that takes a group of chains through many steps by itself. It counts the steps after which a variable (all
/// are binary) was at level 1, and brings the states up to date at the end.
template <class K, class T>
concept BulkKernel = requires(const K& kernel, const T& target, std::span<const typename K::Member> group,
                              const typename K::Scratch& scratch) {
  { K::kTogether } -> std::convertible_to<std::size_t>;
  kernel.advance(target, group, std::uint64_t{});
  { scratch.counts[0] } -> std::convertible_to<std::uint32_t>;
};

/// All chains of the group, each making the steps that it would make alone.
template <Target T, BulkKernel<T> K>
void advance_bulk(const K& kernel, const T& target, std::span<Chain<T, K>* const> chains, std::uint64_t steps) {
  constexpr std::uint64_t most = std::uint64_t{1} << 30;  // counts have 32 bits
  for (std::size_t first = 0; first < chains.size(); first += K::kTogether) {
    const auto group = chains.subspan(first, std::min(K::kTogether, chains.size() - first));
    std::vector<typename K::Member> members;
    for (Chain<T, K>* chain : group) members.push_back({&chain->state, &chain->scratch, &chain->rng});
    for (std::uint64_t done = 0; done < steps; done += most) {
      const std::uint64_t now = std::min(most, steps - done);
      kernel.advance(target, members, now);
      for (Chain<T, K>* chain : group) {
        chain->steps += now;
        chain->accepted += static_cast<double>(now);
        chain->empirical_marginals.add(chain->scratch.counts, chain->steps);
      }
    }
  }
}

}  // namespace poise
