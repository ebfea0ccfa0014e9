/// Steps of chains of an RBM: a warp or a block for each chain.
#include "engines/cuda/rbm/rbm_kernels.hpp"

#include "engines/cuda/common/kernel.cuh"
#include "engines/cuda/gradient/gradient_walk.cuh"

namespace poise::cuda {

// One chain of an RBM beside its walk: activations of hidden units and log p of the state and of the proposal, and
// their gradients in half precision.

/// Gradients without the biases, and these.
struct RbmGradients {
  const __half* row;
  const float* bias;

  __device__ void four(unsigned i, float (&out)[4]) const {
    const uint2 halves = *reinterpret_cast<const uint2*>(row + i);
    const float2 low = __half22float2(*reinterpret_cast<const __half2*>(&halves.x));
    const float2 high = __half22float2(*reinterpret_cast<const __half2*>(&halves.y));
    const float4 more = __ldg(reinterpret_cast<const float4*>(bias + i));
    out[0] = low.x + more.x, out[1] = low.y + more.y, out[2] = high.x + more.z, out[3] = high.y + more.w;
  }
};

/// Hidden units belong to threads in groups of four side by side, as visible ones do.
template <GradientFunction function, unsigned kThreads>
struct RbmWalk : GradientWalk<function, kThreads> {
  using Walk = GradientWalk<function, kThreads>;
  using Walk::all;
  using Walk::flips;
  using Walk::number;
  using Walk::reduction;
  using Walk::row;
  using Walk::state;
  using Walk::thread;

  const RbmView& rbm;
  const RbmChainsView& chains;

  __device__ RbmWalk(const RbmView& the_rbm, const RbmChainsView& the_chains, const Walk& walk)
      : Walk(walk), rbm(the_rbm), chains(the_chains) {}

  __device__ std::size_t of_half(unsigned half) const {
    return static_cast<std::size_t>(half) * chains.chains + number;
  }
  __device__ std::int64_t* activations(unsigned half) const {
    return chains.activations + of_half(half) * rbm.hidden_stride;
  }
  __device__ RbmGradients gradients() const { return {chains.gradients + row(rbm.visible_stride), rbm.gradients}; }
  __device__ RbmGradients proposed_gradients() const {
    return {chains.proposed_gradients + row(rbm.visible_stride), rbm.gradients};
  }

  /// Four activations side by side.
  struct Four {
    long long units[4];

    Four() = default;
    __device__ explicit Four(const std::int64_t* from) {
      const auto* const pairs = reinterpret_cast<const longlong2*>(from);
      const longlong2 low = pairs[0], high = pairs[1];
      units[0] = low.x, units[1] = low.y, units[2] = high.x, units[3] = high.y;
    }
    /// Adds weights, or takes them away.
    __device__ void add(const std::int64_t* weights, bool away) {
      const auto* const pairs = reinterpret_cast<const longlong2*>(weights);
      const longlong2 low = __ldg(pairs), high = __ldg(pairs + 1);
      const long long sign = away ? -1 : 0;
      units[0] += (low.x ^ sign) - sign;
      units[1] += (low.y ^ sign) - sign;
      units[2] += (high.x ^ sign) - sign;
      units[3] += (high.y ^ sign) - sign;
    }
  };
  /// Stores activations of a proposal, or of a state, with the probabilities of their hidden units; and what they add
  /// to log p. Softplus is the positive part, which is an integer, and log(1 + e^-|a|).
  __device__ Word64 settle(const Four& four, unsigned j, unsigned to) const {
    auto* const out = reinterpret_cast<longlong2*>(activations(to) + j);
    out[0] = make_longlong2(four.units[0], four.units[1]);
    out[1] = make_longlong2(four.units[2], four.units[3]);
    Word64 positive = 0;
    float product = 1.0F;
    __half on[4];
#pragma unroll
    for (unsigned k = 0; k < 4; ++k) {
      if (four.units[k] > 0) positive += static_cast<Word64>(four.units[k]);
      const float a = __ll2float_rn(four.units[k]) * rbm.float_unit;
      const float small = __expf(-fabsf(a));
      product *= 1.0F + small;
      on[k] = __float2half_rn(__fdividef(a < 0.0F ? small : 1.0F, 1.0F + small));
    }
    auto* const halves = reinterpret_cast<__half2*>(chains.on + row(rbm.hidden_stride) + j);
    halves[0] = __halves2half2(on[0], on[1]);
    halves[1] = __halves2half2(on[2], on[3]);
    return positive + static_cast<Word64>(__float2ll_rn(logf(product) * rbm.units_in_one));
  }

  /// Those that this thread begins with, ahead of time.
  __device__ Four first_activations(unsigned half) const {
    return 4 * thread < rbm.hidden_stride ? Four(activations(half) + 4 * thread) : Four();
  }

  /// Changes one unit. `four` are the first activations of this thread.
  __device__ void make_one(unsigned unit, unsigned half, Four four) {
    const bool away = (state[unit / 32] >> unit % 32 & 1U) != 0;
    const std::int64_t bias = rbm.visible_bias[unit], linear = chains.linear[of_half(half)] + (away ? -bias : bias);
    const std::int64_t* const weights = rbm.weights + static_cast<std::size_t>(unit) * rbm.hidden_stride;
    const std::int64_t* const from = activations(half);
    Word64 sum = 0;
    for (unsigned j = 4 * thread; j < rbm.hidden_stride; j += 4 * kThreads) {
      if (j != 4 * thread) four = Four(from + j);
      four.add(weights + j, away);
      sum += settle(four, j, 1 - half);
    }
    reduction.sum(sum);
    if (thread != 0) return;
    chains.linear[of_half(1 - half)] = linear;
    chains.log_prob[of_half(1 - half)] = static_cast<std::int64_t>(sum) + linear;
  }

  /// Changes the units of `which`, from activations `from`, as half `to`. These may be all units that are on, and the
  /// biases.
  __device__ void make_many(const std::uint32_t* which, const std::int64_t* from, std::int64_t linear, unsigned to) {
    Word64 sum = 0;
    for (unsigned j = 4 * thread; j < rbm.hidden_stride; j += 4 * kThreads) {
      Four four(from + j);
      for (unsigned w = 0; w < all.words; ++w) {
        const unsigned off = which == flips ? state[w] : 0U;
        for (unsigned left = which[w]; left != 0; left &= left - 1) {
          const unsigned shift = __ffs(static_cast<int>(left)) - 1;
          four.add(rbm.weights + static_cast<std::size_t>(32 * w + shift) * rbm.hidden_stride + j,
                   (off >> shift & 1U) != 0);
        }
      }
      sum += settle(four, j, to);
    }
    Word64 change = 0;
    for (unsigned w = thread; w < all.words; w += kThreads) {
      const unsigned off = which == flips ? state[w] : 0U;
      for (unsigned left = which[w]; left != 0; left &= left - 1) {
        const unsigned shift = __ffs(static_cast<int>(left)) - 1;
        const std::int64_t bias = rbm.visible_bias[32 * w + shift];
        change += static_cast<Word64>((off >> shift & 1U) != 0 ? -bias : bias);
      }
    }
    reduction.sum(sum, change);
    if (thread != 0) return;
    linear += static_cast<std::int64_t>(change);
    chains.linear[of_half(to)] = linear;
    chains.log_prob[of_half(to)] = static_cast<std::int64_t>(sum) + linear;
  }

  /// Where the proposal was rejected, gradients of the state go to the slot of its own: the next ones come where those
  /// of the state have been.
  __device__ void keep_gradients() const {
    __half* const to = chains.proposed_gradients + row(rbm.visible_stride);
    const __half* const from = gradients().row;
    for (unsigned i = 4 * thread; i < rbm.visible; i += 4 * kThreads) {
      *reinterpret_cast<uint2*>(to + i) = *reinterpret_cast<const uint2*>(from + i);
    }
  }
};

namespace {

/// As the compiler's own functions take them.
__device__ inline const Word64* as_words(const std::uint64_t* numbers) {
  return reinterpret_cast<const Word64*>(numbers);
}

/// Blocks of steps that a multiprocessor is to have room for, so registers of a thread: 48 leave some for a block of
/// the product beside eight blocks (half_product.cu). They are too few for tables.
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
  // and does not let this one begin before that (half_product.cu), so everything else is there. What will be needed is
  // asked for at once, so that it is waited for once.
  unsigned half = __ldcg(all.half + number);
  std::uint64_t step = __ldcg(as_words(all.steps) + number);
  const std::uint64_t level = __ldcg(as_words(all.level) + number);
  const double forth = __ldcg(all.forth + number);
  const auto* const log_prob = reinterpret_cast<const long long*>(all.log_prob);
  const std::int64_t log_probs[2] = {__ldcg(log_prob + chain.of_half(0)), __ldcg(log_prob + chain.of_half(1))};
  chain.load_words();
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
    accepted = chain.decide(ratio, level);
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

}  // namespace

void launch_rbm_step(const RbmView& rbm, const RbmChainsView& chains, RbmRange range, const GradientLaw& law,
                     GradientPhases phases, cudaStream_t stream) {
  if (has_warp_for_each(chains)) {
    launch_step<32>(rbm, chains, range, law, phases, stream);
  } else {
    launch_step<128>(rbm, chains, range, law, phases, stream);
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
