/// Steps of chains of an RBM: a warp or a block for each chain.
#include "engines/cuda/rbm/rbm_kernels.hpp"

#include "engines/cuda/common/kernel.cuh"
#include "engines/cuda/rbm/rbm_walk.cuh"

namespace poise::cuda {

namespace {

/// As the compiler's own functions take them.
__device__ inline const Word64* as_words(const std::uint64_t* numbers) {
  return reinterpret_cast<const Word64*>(numbers);
}

/// Blocks of steps that a multiprocessor is to have room for, so registers of a thread: 48 leave some for a block of
/// the product beside eight blocks (half_matrix_product.cu). They are too few for tables.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr unsigned kMostStepBlocks = 8;  // there is no room for more threads
#else
constexpr unsigned kMostStepBlocks = 10;
#endif
template <GradientFunction function, unsigned kOfChain>
inline constexpr unsigned kStepBlocks = kOfChain == 32 || function == GradientFunction::table ? 8 : kMostStepBlocks;

template <GradientFunction function, bool many, unsigned kOfChain>
__global__ void __launch_bounds__(kGradientBlock<kOfChain>, kStepBlocks<function, kOfChain>)
    step_kernel(RbmView rbm, RbmChainsView all, RbmRange range, GradientLaw law, GradientPhases phases) {
  extern __shared__ std::uint32_t words[];
  __shared__ GradientShared<kOfChain> shared[kGradientBlock<kOfChain> / kOfChain];
  const unsigned slot = threadIdx.x / kOfChain;
  const std::uint32_t of_range = blockIdx.x * (kGradientBlock<kOfChain> / kOfChain) + slot;
  if (of_range >= range.count) return;
  const std::uint32_t number = range.first + of_range;
  GradientChosen& chosen = shared[slot].chosen;
  std::uint32_t* const own = words + 2 * slot * all.words;
  RbmWalk<function, kOfChain> chain(
      rbm, all,
      {all, law, Reduction<kOfChain>(shared[slot].rooms), own, own + all.words, number, threadIdx.x % kOfChain});
  let_the_next_begin();
  // The product that gradients come from may still be under way; it does not begin before the step before has ended,
  // and does not let this one begin before that (half_matrix_product.cu), so everything else is there. What will be needed is
  // asked for at once, so that it is waited for once.
  unsigned half = __ldcg(all.half + number);
  std::uint64_t step = __ldcg(as_words(all.steps) + number);
  const std::uint64_t level = __ldcg(as_words(all.level) + number);
  const double forth = __ldcg(all.forth + number);
  const auto* const log_prob = reinterpret_cast<const long long*>(all.log_prob);
  const std::int64_t log_probs[2] = {__ldcg(log_prob + chain.of_half(0)), __ldcg(log_prob + chain.of_half(1))};
  bool changes = true;
  if constexpr (many) {
    changes = chain.load_words_and_look();
  } else {
    chain.load_words();
  }
  typename RbmWalk<function, kOfChain>::Weights weights{0.0F, 0};
  typename RbmWalk<function, kOfChain>::GroupWeights groups;
  if (!many && phases.propose) chain.draw_one(phases.decide ? step + 1 : step, chosen);
  wait_for_the_end_of_the_one_before();
  bool accepted = false;
  if (phases.decide) {
    float ratio;
    const std::int64_t gain = half == 0 ? log_probs[1] - log_probs[0] : log_probs[0] - log_probs[1];
    const double log_ratio = rbm.unit * static_cast<double>(gain);
    if constexpr (many) {
      const double log_back = chain.log_back_of_many(chain.proposed_gradients());
      chain.reduction.wait_after_sum();
      ratio = expf(static_cast<float>(fmin(80.0, log_ratio + log_back - forth)));
    } else {
      weights = chain.weigh(chain.proposed_gradients(), true, chosen.weight, groups);
      chain.reduction.wait_after_sum();
      const float back = static_cast<float>(chosen.weight) / static_cast<float>(weights.whole);
      ratio = expf(static_cast<float>(fmin(80.0, log_ratio))) * (back / static_cast<float>(forth));
    }
    accepted = chain.decide(ratio, level, changes ? GradientChange::some : GradientChange::none);
    if (accepted) {
      chain.take_flips(step);
      half = 1 - half;
    } else {
      chain.keep_gradients();
    }
    ++step;
    if (chain.thread == 0) {
      all.half[chain.number] = static_cast<std::uint8_t>(half);
      all.steps[chain.number] = step;
    }
  }
  if (!phases.propose) return;
  const RbmGradients gradients = phases.decide ? chain.proposed_gradients() : chain.gradients();
  typename RbmWalk<function, kOfChain>::Four first;
  if constexpr (many) {
    chain.choose_many(gradients, step);
  } else {
    // What was weighed at the proposal serves the state that it became; otherwise what is kept of the state does.
    if (phases.decide && !accepted) {
      weights = {all.largest[chain.number], all.whole[chain.number]};
      groups.known = false;
    } else {
      if (!phases.decide) weights = chain.weigh(gradients, false, chosen.weight, groups);
      if (chain.thread == 0) {
        all.largest[chain.number] = weights.largest;
        all.whole[chain.number] = weights.whole;
      }
    }
    first = chain.first_activations(half);
    chain.choose_one(gradients, weights, groups, chosen);
  }
  chain.reduction.wait();
  chain.store_flips();
  if constexpr (many) {
    chain.make_many(chain.flips, chain.activations(half), all.linear[chain.of_half(half)], 1 - half);
  } else {
    chain.make_one(chosen.variable, half, first);
  }
}

/// A local step of chains about which no decision is due. Gradients of their states are still to be found afterwards.
template <unsigned kOfChain>
__global__ void __launch_bounds__(kGradientBlock<kOfChain>)
    local_kernel(RbmView rbm, RbmChainsView all, RbmRange range, unsigned tries) {
  extern __shared__ std::uint32_t words[];
  __shared__ GradientShared<kOfChain> shared[kGradientBlock<kOfChain> / kOfChain];
  const unsigned slot = threadIdx.x / kOfChain;
  const std::uint32_t of_range = blockIdx.x * (kGradientBlock<kOfChain> / kOfChain) + slot;
  if (of_range >= range.count) return;
  std::uint32_t* const own = words + 2 * slot * all.words;
  const GradientLaw none{};
  RbmWalk<GradientFunction::sqrt, kOfChain> chain(rbm, all,
                                                  {all, none, Reduction<kOfChain>(shared[slot].rooms), own,
                                                   own + all.words, range.first + of_range, threadIdx.x % kOfChain});
  chain.load_words();
  chain.make_local_step(tries);
}

__global__ void __launch_bounds__(kGradientThreads) prepare_kernel(RbmView rbm, RbmChainsView all) {
  extern __shared__ std::uint32_t words[];
  __shared__ GradientShared<kGradientThreads> shared;
  const GradientLaw none{};
  RbmWalk<GradientFunction::sqrt, kGradientThreads> chain(
      rbm, all,
      {all, none, Reduction<kGradientThreads>(shared.rooms), words, words + all.words, blockIdx.x, threadIdx.x});
  chain.load_words();
  for (unsigned w = threadIdx.x; w < all.words; w += kGradientThreads) all.flips[chain.row(all.words) + w] = 0;
  if (threadIdx.x == 0) all.half[chain.number] = 0;
  chain.make_many(chain.state, rbm.hidden_bias, 0, 0);
}

__global__ void __launch_bounds__(kGradientThreads) sums_kernel(RbmView rbm, RbmChainsView all, RbmSums sums) {
  __shared__ Reduction<kGradientThreads>::Rooms rooms;
  Reduction<kGradientThreads> reduction(rooms);
  const std::size_t number = blockIdx.x;
  const std::size_t half = all.half[number] * static_cast<std::size_t>(all.chains) + number;
  Word64 positive = 0;
  double soft = 0.0;
  for (unsigned j = threadIdx.x; j < rbm.hidden_stride; j += kGradientThreads) {
    const std::int64_t units = all.activations[half * rbm.hidden_stride + j];
    if (units > 0) positive += static_cast<Word64>(units);
    soft += log1p(exp(-fabs(rbm.unit * static_cast<double>(units))));
  }
  Word64 on = 0, different = 0;
  for (unsigned w = threadIdx.x; w < all.words; w += kGradientThreads) {
    const std::uint32_t word = all.state[number * all.words + w];
    on += __popc(word);
    different += __popc(word ^ sums.reference[w]);
  }
  reduction.sum(positive, soft);
  reduction.sum(on, different);
  if (threadIdx.x != 0) return;
  const std::int64_t whole = static_cast<std::int64_t>(positive) + all.linear[half];
  sums.log_prob[number] = rbm.unit * static_cast<double>(whole) + soft;
  sums.on[number] = static_cast<std::int64_t>(on);
  sums.different[number] = static_cast<std::int64_t>(different);
}

template <GradientFunction function>
__global__ void __launch_bounds__(kGradientThreads)
    law_kernel(RbmView rbm, RbmChainsView all, GradientLaw law, std::uint64_t* out) {
  extern __shared__ std::uint32_t words[];
  __shared__ GradientShared<kGradientThreads> shared;
  RbmWalk<function, kGradientThreads> chain(
      rbm, all,
      {all, law, Reduction<kGradientThreads>(shared.rooms), words, words + all.words, blockIdx.x, threadIdx.x});
  chain.load_words();
  chain.tell_law(chain.gradients(), shared.chosen.weight, out + chain.row(rbm.visible));
}

template <unsigned kOfChain>
void launch_step(const RbmView& rbm, const RbmChainsView& chains, RbmRange range, const GradientLaw& law,
                 GradientPhases phases, cudaStream_t stream) {
  constexpr unsigned kChains = kGradientBlock<kOfChain> / kOfChain;
  with_function(law.function, [&](auto function) {
    const auto kernel = law.form == GradientForm::single ? step_kernel<function(), false, kOfChain>
                                                         : step_kernel<function(), true, kOfChain>;
    launch_after(
        kernel,
        {dim3((range.count + kChains - 1) / kChains), kGradientBlock<kOfChain>, shared_words(chains, kChains), stream},
        rbm, chains, range, law, phases);
  });
}

template <unsigned kOfChain>
void launch_local(const RbmView& rbm, const RbmChainsView& chains, RbmRange range, cudaStream_t stream) {
  constexpr unsigned kChains = kGradientBlock<kOfChain> / kOfChain;
  local_kernel<kOfChain>
      <<<(range.count + kChains - 1) / kChains, kGradientBlock<kOfChain>, shared_words(chains, kChains), stream>>>(
          rbm, chains, range, local_tries(rbm.visible));
}

}  // namespace

void launch_rbm_step(const RbmView& rbm, const RbmChainsView& chains, RbmRange range, const GradientLaw& law,
                     GradientPhases phases, cudaStream_t stream) {
  if (has_warp_for_each(chains)) {
    launch_step<32>(rbm, chains, range, law, phases, stream);
  } else {
    launch_step<128>(rbm, chains, range, law, phases, stream);
  }
}

void launch_rbm_local(const RbmView& rbm, const RbmChainsView& chains, RbmRange range, cudaStream_t stream) {
  if (has_warp_for_each(chains)) {
    launch_local<32>(rbm, chains, range, stream);
  } else {
    launch_local<128>(rbm, chains, range, stream);
  }
}

void launch_rbm_prepare(const RbmView& rbm, const RbmChainsView& chains, cudaStream_t stream) {
  prepare_kernel<<<chains.chains, kGradientThreads, shared_words(chains, 1), stream>>>(rbm, chains);
}

void launch_rbm_sums(const RbmView& rbm, const RbmChainsView& chains, const RbmSums& sums, cudaStream_t stream) {
  sums_kernel<<<chains.chains, kGradientThreads, 0, stream>>>(rbm, chains, sums);
}

void launch_rbm_law(const RbmView& rbm, const RbmChainsView& chains, const GradientLaw& law, std::uint64_t* out,
                    cudaStream_t stream) {
  with_function(law.function, [&](auto function) {
    law_kernel<function()><<<chains.chains, kGradientThreads, shared_words(chains, 1), stream>>>(rbm, chains, law, out);
  });
}

}  // namespace poise::cuda
