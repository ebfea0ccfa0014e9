/// Steps of chains of an RBM: a warp or a block for each chain.
#include "rbm_kernels.hpp"

#include <type_traits>

#include "launch.cuh"
#include "rbm_walk.cuh"

namespace poise::cuda {

namespace {

constexpr unsigned kThreads = 128;  // of a block

/// Threads of a block in which each chain has so many: warps do not wait for each other, larger groups do.
template <unsigned kOfChain>
inline constexpr unsigned kBlock = kOfChain == 32 ? kThreads : kOfChain;

/// Words of shared memory that a chain has beside its own.
template <unsigned kOfChain>
struct Shared {
  typename Meeting<kOfChain>::Rooms rooms;
  RbmChosen chosen;
};

template <RbmFunction function, bool many, unsigned kOfChain>
__global__ void __launch_bounds__(kBlock<kOfChain>)
    step_kernel(RbmView rbm, RbmChainsView all, RbmLaw law, RbmPhases phases) {
  extern __shared__ std::uint32_t words[];
  __shared__ Shared<kOfChain> shared[kBlock<kOfChain> / kOfChain];
  const unsigned place = threadIdx.x / kOfChain;
  const std::uint32_t number = blockIdx.x * (kBlock<kOfChain> / kOfChain) + place;
  if (number >= all.chains) return;
  RbmChosen& chosen = shared[place].chosen;
  std::uint32_t* const own = words + 2 * place * all.words;
  RbmWalk<function, kOfChain> chain{
      rbm, all, law, Meeting<kOfChain>(shared[place].rooms), own, own + all.words, number, threadIdx.x % kOfChain};
  wait_for_the_one_before();
  chain.load_words();
  unsigned half = all.half[chain.number];
  std::uint64_t step = all.steps[chain.number];
  typename RbmWalk<function, kOfChain>::Weights weights{0.0F, 0};
  bool accepted = false;
  if (phases.decide) {
    float ratio;
    if constexpr (many) {
      const double log_back = chain.log_back_of_many();
      ratio = expf(static_cast<float>(fmin(80.0, chain.log_ratio(half) + log_back - all.forth[chain.number])));
    } else {
      weights = chain.weigh(chain.proposed_slopes(), true, chosen.weight);
      chain.meeting.wait();
      const float back = static_cast<float>(chosen.weight) / static_cast<float>(weights.whole);
      ratio = expf(static_cast<float>(fmin(80.0, chain.log_ratio(half)))) *
              (back / static_cast<float>(all.forth[chain.number]));
    }
    accepted = chain.decide(ratio);
    if (accepted) {
      chain.take(step);
      half = 1 - half;
    }
    ++step;
    chain.meeting.wait();
    if (chain.thread == 0) {
      all.half[chain.number] = static_cast<std::uint8_t>(half);
      all.steps[chain.number] = step;
    }
  }
  if (!phases.propose) return;
  if constexpr (many) {
    chain.choose_many(step);
  } else {
    // What was weighed at the proposal serves the state that it became; otherwise what is kept of the state does.
    if (phases.decide && !accepted) {
      weights = {all.largest[chain.number], all.whole[chain.number]};
    } else {
      if (!phases.decide) weights = chain.weigh(chain.slopes(), false, chosen.weight);
      if (chain.thread == 0) {
        all.largest[chain.number] = weights.largest;
        all.whole[chain.number] = weights.whole;
      }
    }
    chain.choose_one(weights, step, chosen);
  }
  chain.meeting.wait();
  for (unsigned w = chain.thread; w < all.words; w += kOfChain) {
    all.flips[chain.row(all.words) + w] = chain.flips[w];
  }
  if constexpr (many) {
    chain.make_many(chain.flips, chain.activations(half), all.linear[chain.of_half(half)], 1 - half);
  } else {
    chain.make_one(chosen.unit, half);
  }
}

__global__ void __launch_bounds__(kThreads) prepare_kernel(RbmView rbm, RbmChainsView all) {
  extern __shared__ std::uint32_t words[];
  __shared__ Shared<kThreads> shared;
  const RbmLaw none{};
  RbmWalk<RbmFunction::sqrt, kThreads> chain{
      rbm, all, none, Meeting<kThreads>(shared.rooms), words, words + all.words, blockIdx.x, threadIdx.x};
  chain.load_words();
  for (unsigned w = threadIdx.x; w < all.words; w += kThreads) all.flips[chain.row(all.words) + w] = 0;
  if (threadIdx.x == 0) all.half[chain.number] = 0;
  chain.make_many(chain.state, rbm.hidden_bias, 0, 0);
}

__global__ void __launch_bounds__(kThreads) sums_kernel(RbmView rbm, RbmChainsView all, RbmSums sums) {
  __shared__ Meeting<kThreads>::Rooms rooms;
  Meeting<kThreads> meeting(rooms);
  const std::size_t number = blockIdx.x;
  const std::size_t half = all.half[number] * static_cast<std::size_t>(all.chains) + number;
  Word64 positive = 0;
  double soft = 0.0;
  for (unsigned j = threadIdx.x; j < rbm.hidden_stride; j += kThreads) {
    const std::int64_t units = all.activations[half * rbm.hidden_stride + j];
    if (units > 0) positive += static_cast<Word64>(units);
    soft += log1p(exp(-fabs(rbm.unit * static_cast<double>(units))));
  }
  Word64 on = 0, different = 0;
  for (unsigned w = threadIdx.x; w < all.words; w += kThreads) {
    const std::uint32_t word = all.state[number * all.words + w];
    on += __popc(word);
    different += __popc(word ^ sums.reference[w]);
  }
  meeting.sum(positive, soft);
  meeting.sum(on, different);
  if (threadIdx.x != 0) return;
  const std::int64_t whole = static_cast<std::int64_t>(positive) + all.linear[half];
  sums.log_prob[number] = rbm.unit * static_cast<double>(whole) + soft;
  sums.on[number] = static_cast<std::int64_t>(on);
  sums.different[number] = static_cast<std::int64_t>(different);
}

template <RbmFunction function>
__global__ void __launch_bounds__(kThreads) law_kernel(RbmView rbm, RbmChainsView all, RbmLaw law, std::uint64_t* out) {
  extern __shared__ std::uint32_t words[];
  __shared__ Shared<kThreads> shared;
  RbmWalk<function, kThreads> chain{
      rbm, all, law, Meeting<kThreads>(shared.rooms), words, words + all.words, blockIdx.x, threadIdx.x};
  chain.load_words();
  out += chain.row(rbm.visible);
  if (law.form == RbmForm::single) {
    const float largest = chain.weigh(chain.slopes(), false, shared.chosen.weight).largest;
    chain.for_each(chain.slopes(), false, 0,
                   [&](unsigned i, float u, bool) { out[i] = weight(log_g<function>(law, u), largest); });
  } else {
    chain.for_each(chain.slopes(), false, 0, [&](unsigned i, float u, bool) { out[i] = chance<function>(law, u); });
  }
}

/// Calls use(function), with a function that the compiler knows.
template <class Use>
void with_function(RbmFunction function, Use&& use) {
  switch (function) {
    case RbmFunction::sqrt: use(std::integral_constant<RbmFunction, RbmFunction::sqrt>()); break;
    case RbmFunction::barker: use(std::integral_constant<RbmFunction, RbmFunction::barker>()); break;
    case RbmFunction::min: use(std::integral_constant<RbmFunction, RbmFunction::min>()); break;
    case RbmFunction::max: use(std::integral_constant<RbmFunction, RbmFunction::max>()); break;
    case RbmFunction::table: use(std::integral_constant<RbmFunction, RbmFunction::table>()); break;
  }
}

std::size_t shared_words(const RbmChainsView& chains, unsigned of_block) {
  return 2 * sizeof(std::uint32_t) * chains.words * of_block;
}

template <unsigned kOfChain>
void launch_step(const RbmView& rbm, const RbmChainsView& chains, const RbmLaw& law, RbmPhases phases,
                 cudaStream_t stream) {
  constexpr unsigned kChains = kBlock<kOfChain> / kOfChain;
  with_function(law.function, [&](auto function) {
    const auto kernel = law.form == RbmForm::single ? step_kernel<function(), false, kOfChain>
                                                    : step_kernel<function(), true, kOfChain>;
    launch_after(
        kernel,
        {dim3((chains.chains + kChains - 1) / kChains), kBlock<kOfChain>, shared_words(chains, kChains), stream}, rbm,
        chains, law, phases);
  });
}

}  // namespace

void launch_rbm_step(const RbmView& rbm, const RbmChainsView& chains, const RbmLaw& law, RbmPhases phases,
                     cudaStream_t stream) {
  // The fewer threads a chain has, the less is done in all, and the longer it takes.
  if (chains.chains > 2048 && rbm.visible <= 4096) {
    launch_step<32>(rbm, chains, law, phases, stream);
  } else {
    launch_step<128>(rbm, chains, law, phases, stream);
  }
}

void launch_rbm_prepare(const RbmView& rbm, const RbmChainsView& chains, cudaStream_t stream) {
  prepare_kernel<<<chains.chains, kThreads, shared_words(chains, 1), stream>>>(rbm, chains);
}

void launch_rbm_sums(const RbmView& rbm, const RbmChainsView& chains, const RbmSums& sums, cudaStream_t stream) {
  sums_kernel<<<chains.chains, kThreads, 0, stream>>>(rbm, chains, sums);
}

void launch_rbm_law(const RbmView& rbm, const RbmChainsView& chains, const RbmLaw& law, std::uint64_t* out,
                    cudaStream_t stream) {
  with_function(law.function, [&](auto function) {
    law_kernel<function()><<<chains.chains, kThreads, shared_words(chains, 1), stream>>>(rbm, chains, law, out);
  });
}

}  // namespace poise::cuda
