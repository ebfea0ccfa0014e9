/// One chain of an RBM beside its walk: activations of hidden units and log p of the state and of the proposal, and
/// their gradients in half precision.
#pragma once

#include <cuda_fp16.h>

#include "engines/cuda/common/kernel.cuh"
#include "engines/cuda/gradient/gradient_walk.cuh"
#include "engines/cuda/rbm/rbm_kernels.hpp"

namespace poise::cuda {

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
    __device__ void store(std::int64_t* to) const {
      auto* const pairs = reinterpret_cast<longlong2*>(to);
      pairs[0] = make_longlong2(units[0], units[1]);
      pairs[1] = make_longlong2(units[2], units[3]);
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
    four.store(activations(to) + j);
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

  /// What activations add to log p, to the last bit as `settle` has it.
  __device__ Word64 softplus(const Four& four) const {
    Word64 positive = 0;
    float product = 1.0F;
#pragma unroll
    for (unsigned k = 0; k < 4; ++k) {
      if (four.units[k] > 0) positive += static_cast<Word64>(four.units[k]);
      product *= 1.0F + __expf(-fabsf(__ll2float_rn(four.units[k]) * rbm.float_unit));
    }
    return positive + static_cast<Word64>(__float2ll_rn(logf(product) * rbm.units_in_one));
  }

  /// Some single changes one after another, each of any unit and accepted with min{1, p(x')/p(x)}. What comes of them
  /// is in `flips`, and activations are those of the state that it leads to.
  __device__ void try_changes(unsigned half, std::uint64_t step, unsigned tries) {
    for (unsigned w = thread; w < all.words; w += kThreads) flips[w] = 0;
    std::int64_t* const own = activations(half);
    std::int64_t linear = chains.linear[of_half(half)], log_prob = chains.log_prob[of_half(half)];
    reduction.wait();
    for (unsigned k = 0; k < tries; ++k) {
      const auto [unit, level] = this->draw_local(step, k);
      const bool away = ((state[unit / 32] ^ flips[unit / 32]) >> unit % 32 & 1U) != 0;
      const std::int64_t bias = rbm.visible_bias[unit], linear_after = linear + (away ? -bias : bias);
      const std::int64_t* const weights = rbm.weights + static_cast<std::size_t>(unit) * rbm.hidden_stride;
      Word64 sum = 0;
      for (unsigned j = 4 * thread; j < rbm.hidden_stride; j += 4 * kThreads) {
        Four four(own + j);
        four.add(weights + j, away);
        sum += softplus(four);
      }
      reduction.sum(sum);
      const std::int64_t after = static_cast<std::int64_t>(sum) + linear_after;
      const double log_ratio = rbm.unit * static_cast<double>(after - log_prob);
      if (level_of(level) >= static_cast<double>(expf(static_cast<float>(fmin(0.0, log_ratio))))) continue;
      // Activations belong to threads, so no thread waits for them.
      for (unsigned j = 4 * thread; j < rbm.hidden_stride; j += 4 * kThreads) {
        Four four(own + j);
        four.add(weights + j, away);
        four.store(own + j);
      }
      linear = linear_after;
      log_prob = after;
      reduction.wait_after_sum();  // the former flips are not read any more
      if (thread == 0) flips[unit / 32] ^= 1U << unit % 32;
      reduction.wait();
    }
    Word64 sum = 0;
    for (unsigned j = 4 * thread; j < rbm.hidden_stride; j += 4 * kThreads) sum += settle(Four(own + j), j, half);
    reduction.sum(sum);
    if (thread != 0) return;
    chains.linear[of_half(half)] = linear;
    chains.log_prob[of_half(half)] = static_cast<std::int64_t>(sum) + linear;
  }

  /// A local step, where no decision is due. It counts as accepted where something has changed in the end.
  __device__ void make_local_step(unsigned tries) {
    const std::uint64_t step = all.steps[number];
    try_changes(chains.half[number], step, tries);
    bool mine = false;
    for (unsigned w = thread; w < all.words; w += kThreads) mine = mine || flips[w] != 0;
    const bool changes = reduction.any(mine);
    this->take_flips(step);
    if (thread != 0) return;
    if (changes) this->count(1.0, GradientChange::local);
    all.steps[number] = step + 1;
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

}  // namespace poise::cuda
