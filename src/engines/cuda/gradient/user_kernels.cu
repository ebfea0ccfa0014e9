/// Steps of chains of user targets: a warp or a block for each chain.
#include "engines/cuda/gradient/user_kernels.hpp"

#include "engines/cuda/gradient/gradient_walk.cuh"

namespace poise::cuda {

namespace {

/// Gradients of a state, as they are kept.
struct KeptGradients {
  const float* row;

  __device__ void four(unsigned i, float (&out)[4]) const {
    const float4 all = *reinterpret_cast<const float4*>(row + i);
    out[0] = all.x, out[1] = all.y, out[2] = all.z, out[3] = all.w;
  }
};

/// Gradients of a proposal, as user code has just said.
struct AnsweredGradients {
  const UserShape& shape;
  const DeviceNumbers& gradient;
  std::size_t first;  // offset of the first variable

  __device__ void four(unsigned i, float (&out)[4]) const {
    bool finite;
#pragma unroll
    for (unsigned k = 0; k < 4; ++k) {
      out[k] = i + k < shape.variables ? derivative_at(shape, gradient, first + i + k, finite) : 0.0F;
    }
  }
};

template <GradientFunction function, unsigned kThreads>
struct UserWalk : GradientWalk<function, kThreads> {
  using Walk = GradientWalk<function, kThreads>;
  using Walk::flips;
  using Walk::number;
  using Walk::reduction;
  using Walk::row;
  using Walk::state;
  using Walk::thread;

  const UserChainsView& chains;

  __device__ UserWalk(const UserChainsView& the_chains, const Walk& walk) : Walk(walk), chains(the_chains) {}

  __device__ KeptGradients gradients() const { return {chains.gradients + row(chains.stride)}; }
  __device__ AnsweredGradients answered(const DeviceAnswers& answers) const {
    return {chains.shape, answers.gradient, row(chains.variables)};
  }

  /// Whether a chain can be where the code has said this; notes what is wrong with it.
  __device__ bool is_usable(const DeviceAnswers& answers, double log_prob) {
    Word64 wrong = 0;
    for (unsigned i = thread; i < chains.variables; i += kThreads) {
      bool finite;
      static_cast<void>(derivative_at(chains.shape, answers.gradient, row(chains.variables) + i, finite));
      if (!finite) ++wrong;
    }
    reduction.sum(wrong);
    if (thread == 0) {
      const std::uint64_t failure = failure_of(log_prob, wrong == 0, number);
      if (failure != kNoFailure) {
        atomicMin(reinterpret_cast<Word64*>(chains.failure), static_cast<Word64>(failure));
      }
    }
    return is_finite(log_prob) && wrong == 0;
  }

  /// What the code has said becomes what is kept of the state.
  __device__ void keep(const DeviceAnswers& answers, double log_prob) const {
    const AnsweredGradients from = answered(answers);
    for (unsigned i = 4 * thread; i < chains.variables; i += 4 * kThreads) {
      float four[4];
      from.four(i, four);
      *reinterpret_cast<float4*>(chains.gradients + row(chains.stride) + i) =
          make_float4(four[0], four[1], four[2], four[3]);
    }
    if (thread == 0) chains.log_prob[number] = log_prob;
  }

  /// The proposal, as the code sees it.
  __device__ void write(const DeviceRoom& room) const {
    for (unsigned i = thread; i < chains.variables; i += kThreads) {
      const unsigned word = state[i / 32] ^ flips[i / 32];
      write_level(chains.shape, room, row(chains.variables) + i, (word >> i % 32 & 1U) != 0);
    }
  }
};

template <GradientFunction function, bool many, unsigned kOfChain>
__global__ void __launch_bounds__(kGradientBlock<kOfChain>)
    step_kernel(UserChainsView all, GradientLaw law, UserStep now) {
  extern __shared__ std::uint32_t words[];
  __shared__ GradientShared<kOfChain> shared[kGradientBlock<kOfChain> / kOfChain];
  const unsigned slot = threadIdx.x / kOfChain;
  const std::uint32_t number = blockIdx.x * (kGradientBlock<kOfChain> / kOfChain) + slot;
  if (number >= all.chains) return;
  GradientChosen& chosen = shared[slot].chosen;
  std::uint32_t* const own = words + 2 * slot * all.words;
  UserWalk<function, kOfChain> chain(
      all, {all, law, Reduction<kOfChain>(shared[slot].rooms), own, own + all.words, number, threadIdx.x % kOfChain});
  std::uint64_t step = all.steps[number];
  const double log_prob = all.log_prob[number];  // before anybody writes it
  bool changes = true;
  if constexpr (many) {
    changes = chain.load_words_and_look();
  } else {
    chain.load_words();
  }
  typename UserWalk<function, kOfChain>::Weights weights{0.0F, 0};
  typename UserWalk<function, kOfChain>::GroupWeights groups;
  bool accepted = false;
  if (now.phases.decide) {
    const double proposed = number_at(now.answers.log_prob, number);
    const bool usable = chain.is_usable(now.answers, proposed);
    const double log_ratio = usable ? proposed - log_prob : 0.0;
    float ratio;
    GradientChange change = changes ? GradientChange::some : GradientChange::none;
    if constexpr (many) {
      double log_ways = 0.0;  // of a local step, which leads back as likely as forth
      if (is_local_step(step)) {
        change = GradientChange::local;
      } else {
        log_ways = chain.log_back_of_many(chain.answered(now.answers)) - all.forth[number];
      }
      ratio = expf(static_cast<float>(fmin(80.0, log_ratio + log_ways)));
    } else {
      weights = chain.weigh(chain.answered(now.answers), true, chosen.weight, groups);
      chain.reduction.wait_after_sum();
      const float back = static_cast<float>(chosen.weight) / static_cast<float>(weights.whole);
      // The log ratio may be large where the way back is unlikely, and the other way round.
      const double log_ways = static_cast<double>(logf(back) - logf(static_cast<float>(all.forth[number])));
      ratio = expf(static_cast<float>(fmin(80.0, log_ratio + log_ways)));
    }
    accepted = chain.decide(usable ? ratio : 0.0F, all.level[chain.number], change);
    if (accepted) {
      chain.keep(now.answers, proposed);
      chain.take_flips(step);
    }
    ++step;
    chain.reduction.wait();
    if (chain.thread == 0) all.steps[number] = step;
  }
  if (!now.phases.propose) return;
  if constexpr (many) {
    if (is_local_step(step)) {
      chain.choose_local(step);
    } else {
      chain.choose_many(chain.gradients(), step);
    }
  } else {
    // What was weighed at the proposal serves the state that it became; otherwise what is kept of the state does.
    if (now.phases.decide && !accepted) {
      weights = {all.largest[number], all.whole[number]};
      groups.known = false;
    } else {
      if (!now.phases.decide) weights = chain.weigh(chain.gradients(), false, chosen.weight, groups);
      if (chain.thread == 0) {
        all.largest[number] = weights.largest;
        all.whole[number] = weights.whole;
      }
    }
    chain.draw_one(step, chosen);
    chain.choose_one(chain.gradients(), weights, groups, chosen);
  }
  chain.reduction.wait();
  chain.store_flips();
  chain.write(now.room);
}

/// Calls use(chain) for the chain of each block, whatever its function.
template <class Use>
__device__ void with_chain(const UserChainsView& all, Use&& use) {
  extern __shared__ std::uint32_t words[];
  __shared__ GradientShared<kGradientThreads> shared;
  const GradientLaw none{};
  UserWalk<GradientFunction::sqrt, kGradientThreads> chain(
      all, {all, none, Reduction<kGradientThreads>(shared.rooms), words, words + all.words, blockIdx.x, threadIdx.x});
  use(chain);
}

__global__ void __launch_bounds__(kGradientThreads) states_kernel(UserChainsView all, DeviceRoom room) {
  with_chain(all, [&](auto& chain) {
    for (unsigned w = threadIdx.x; w < all.words; w += kGradientThreads) all.flips[chain.row(all.words) + w] = 0;
    chain.load_words();
    chain.write(room);
  });
}

__global__ void __launch_bounds__(kGradientThreads) keep_kernel(UserChainsView all, DeviceAnswers answers) {
  with_chain(all, [&](auto& chain) {
    const double log_prob = number_at(answers.log_prob, chain.number);
    static_cast<void>(chain.is_usable(answers, log_prob));
    chain.keep(answers, log_prob);
  });
}

__global__ void __launch_bounds__(kGradientThreads) record_kernel(UserChainsView all, UserRecord record) {
  __shared__ Reduction<kGradientThreads>::Rooms rooms;
  Reduction<kGradientThreads> reduction(rooms);
  const std::size_t first = blockIdx.x * static_cast<std::size_t>(all.words);
  Word64 different = 0;
  for (unsigned w = threadIdx.x; w < all.words; w += kGradientThreads) {
    const std::uint32_t word = all.state[first + w];
    record.words[first + w] = word;
    different += __popc(word ^ record.reference[w]);
  }
  reduction.sum(different);
  if (threadIdx.x != 0) return;
  record.log_prob[blockIdx.x] = all.log_prob[blockIdx.x];
  record.accepted[blockIdx.x] = all.accepted[blockIdx.x];
  record.different[blockIdx.x] = static_cast<std::int64_t>(different);
}

template <GradientFunction function>
__global__ void __launch_bounds__(kGradientThreads)
    law_kernel(UserChainsView all, GradientLaw law, std::uint64_t* out) {
  extern __shared__ std::uint32_t words[];
  __shared__ GradientShared<kGradientThreads> shared;
  UserWalk<function, kGradientThreads> chain(
      all, {all, law, Reduction<kGradientThreads>(shared.rooms), words, words + all.words, blockIdx.x, threadIdx.x});
  chain.load_words();
  chain.tell_law(chain.gradients(), shared.chosen.weight, out + chain.row(all.variables));
}

template <unsigned kOfChain>
void launch_step(const UserChainsView& chains, const GradientLaw& law, const UserStep& step, cudaStream_t stream) {
  constexpr unsigned kChains = kGradientBlock<kOfChain> / kOfChain;
  with_function(law.function, [&](auto function) {
    const auto kernel = law.form == GradientForm::single ? step_kernel<function(), false, kOfChain>
                                                         : step_kernel<function(), true, kOfChain>;
    kernel<<<(chains.chains + kChains - 1) / kChains, kGradientBlock<kOfChain>, shared_words(chains, kChains),
             stream>>>(chains, law, step);
  });
}

}  // namespace

void launch_user_step(const UserChainsView& chains, const GradientLaw& law, const UserStep& step, cudaStream_t stream) {
  if (has_warp_for_each(chains)) {
    launch_step<32>(chains, law, step, stream);
  } else {
    launch_step<128>(chains, law, step, stream);
  }
}

void launch_user_states(const UserChainsView& chains, const DeviceRoom& room, cudaStream_t stream) {
  states_kernel<<<chains.chains, kGradientThreads, shared_words(chains, 1), stream>>>(chains, room);
}

void launch_user_keep(const UserChainsView& chains, const DeviceAnswers& answers, cudaStream_t stream) {
  keep_kernel<<<chains.chains, kGradientThreads, shared_words(chains, 1), stream>>>(chains, answers);
}

void launch_user_record(const UserChainsView& chains, const UserRecord& record, cudaStream_t stream) {
  record_kernel<<<chains.chains, kGradientThreads, 0, stream>>>(chains, record);
}

void launch_user_law(const UserChainsView& chains, const GradientLaw& law, std::uint64_t* out, cudaStream_t stream) {
  with_function(law.function, [&](auto function) {
    law_kernel<function()><<<chains.chains, kGradientThreads, shared_words(chains, 1), stream>>>(chains, law, out);
  });
}

}  // namespace poise::cuda
