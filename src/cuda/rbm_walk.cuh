/// One chain of an RBM, by some threads: weighing what could change, choosing, and making the proposal.
///
/// Sums are sums of integers, and units are chosen in the order of their numbers, so what a chain does does not depend
/// on how many threads it has.
#pragma once

#include "meeting.cuh"
#include "philox.cuh"
#include "rbm_law.cuh"

namespace poise::cuda {

/// What the threads of a chain share about one unit that flips.
struct RbmChosen {
  Word64 random;
  unsigned unit;
  unsigned weight;  // at the proposal
};

/// Visible units belong to threads in groups of four side by side, hidden units likewise.
template <RbmFunction function, unsigned kThreads>
struct RbmWalk {
  static constexpr unsigned kChunk = 1024;                      // units that are in registers
  static constexpr unsigned kGroups = kChunk / (4 * kThreads);  // of a thread
  using Sums = typename Meeting<kThreads>::Sums;

  const RbmView& rbm;
  const RbmChainsView& all;
  const RbmLaw& law;
  Meeting<kThreads> meeting;
  std::uint32_t* state;  // words, in shared memory
  std::uint32_t* flips;
  std::uint32_t number;
  unsigned thread;  // of those of this chain

  __device__ std::size_t row(std::size_t width) const { return number * width; }
  __device__ std::size_t of_half(unsigned half) const { return static_cast<std::size_t>(half) * all.chains + number; }
  __device__ std::int64_t* activations(unsigned half) const {
    return all.activations + of_half(half) * rbm.hidden_stride;
  }
  __device__ const __half* slopes() const { return all.slopes + row(rbm.visible_stride); }
  __device__ const __half* proposed_slopes() const { return all.proposed_slopes + row(rbm.visible_stride); }

  __device__ void load_words() {
    for (unsigned w = thread; w < all.words; w += kThreads) {
      state[w] = all.state[row(all.words) + w];
      flips[w] = all.flips[row(all.words) + w];
    }
    meeting.wait();
  }

  /// Calls use(k, u, flips) for the units i + k of a group; u is the first-order log ratio of changing the unit.
  template <class Use>
  __device__ void for_four(const __half* slopes, bool at_proposal, unsigned i, Use&& use) const {
    const uint2 four = *reinterpret_cast<const uint2*>(slopes + i);
    const float2 low = __half22float2(*reinterpret_cast<const __half2*>(&four.x));
    const float2 high = __half22float2(*reinterpret_cast<const __half2*>(&four.y));
    const float4 bias = __ldg(reinterpret_cast<const float4*>(rbm.slopes + i));
    const float sums[4] = {low.x + bias.x, low.y + bias.y, high.x + bias.z, high.y + bias.w};
    const unsigned changed = flips[i / 32] >> i % 32;
    const unsigned on = state[i / 32] >> i % 32 ^ (at_proposal ? changed : 0U);
#pragma unroll
    for (unsigned k = 0; k < 4; ++k) {
      if (i + k >= rbm.visible) continue;
      use(k, (on >> k & 1U) != 0 ? -sums[k] : sums[k], (changed >> k & 1U) != 0);
    }
  }
  /// The same for all units of this thread from `first` on, as use(i, u, flips).
  template <class Use>
  __device__ void for_each(const __half* slopes, bool at_proposal, unsigned first, Use&& use) const {
    for (unsigned i = first + 4 * thread; i < rbm.visible; i += 4 * kThreads) {
      for_four(slopes, at_proposal, i, [&](unsigned k, float u, bool changes) { use(i + k, u, changes); });
    }
  }

  struct Weights {
    float largest;  // log g
    Word64 whole;   // sum of weights
  };
  /// `chosen`, which is shared, becomes the weight of the unit that flips.
  __device__ Weights weigh(const __half* slopes, bool at_proposal, unsigned& chosen) {
    float most = -3e38F;
    float held[4 * kGroups] = {};
    unsigned there = 0, changed = 0;
#pragma unroll
    for (unsigned group = 0; group < kGroups; ++group) {
      const unsigned i = 4 * (thread + group * kThreads);
      if (i >= rbm.visible) continue;
      for_four(slopes, at_proposal, i, [&](unsigned k, float u, bool changes) {
        held[4 * group + k] = log_g<function>(law, u);
        most = fmaxf(most, held[4 * group + k]);
        there |= 1U << (4 * group + k);
        if (changes) changed |= 1U << (4 * group + k);
      });
    }
    for_each(slopes, at_proposal, kChunk,
             [&](unsigned, float u, bool) { most = fmaxf(most, log_g<function>(law, u)); });
    Weights out{meeting.most(most), 0};
    unsigned mine = 0;
#pragma unroll
    for (unsigned k = 0; k < 4 * kGroups; ++k) {
      const unsigned w = (there >> k & 1U) != 0 ? weight(held[k], out.largest) : 0;
      mine += w;
      if ((changed >> k & 1U) != 0) chosen = w;
    }
    out.whole = mine;
    for_each(slopes, at_proposal, kChunk, [&](unsigned, float u, bool changes) {
      const unsigned w = weight(log_g<function>(law, u), out.largest);
      out.whole += w;
      if (changes) chosen = w;
    });
    meeting.sum(out.whole);
    return out;
  }

  /// log of the probability that the flips have at the proposal, where every unit is drawn by itself.
  __device__ double log_back_of_many() {
    Word64 sum = 0;
    for_each(proposed_slopes(), true, 0,
             [&](unsigned, float u, bool changes) { sum += in_parts(log_chance(chance<function>(law, u), changes)); });
    meeting.sum(sum);
    return from_parts(sum);
  }
  /// Logarithms as integers.
  __device__ static Word64 in_parts(float log) { return static_cast<Word64>(__float2ll_rn(log * 0x1p32F)); }
  __device__ static double from_parts(Word64 parts) {
    return static_cast<double>(static_cast<long long>(parts)) * 0x1p-32;
  }

  /// Four random words of a step that asks for them `calls` times.
  __device__ Philox words(std::uint64_t step, std::uint64_t calls, std::uint64_t call) const {
    return philox(step * calls + call, all.first_chain + number, all.seed);
  }
  __device__ static Word64 both(std::uint32_t high, std::uint32_t low) { return static_cast<Word64>(high) << 32 | low; }

  /// One unit in proportion to the weights.
  __device__ void choose_one(const Weights& weights, std::uint64_t step, RbmChosen& chosen) {
    for (unsigned w = thread; w < all.words; w += kThreads) flips[w] = 0;
    if (thread < 32) {
      const Philox drawn = words(step, 1, 0);
      if (thread == 0) {
        chosen.random = both(drawn.word[0], drawn.word[1]);
        all.level[number] = both(drawn.word[2], drawn.word[3]);
      }
    }
    meeting.wait();
    Word64 left = __umul64hi(chosen.random, weights.whole);
    // One group of each thread after the other, until their sum is reached.
    for (unsigned first = 0; first < rbm.visible; first += 4 * kThreads) {
      const unsigned i = first + 4 * thread;
      unsigned four[4] = {}, mine = 0;
      if (i < rbm.visible) {
        for_four(slopes(), false, i, [&](unsigned k, float u, bool) {
          four[k] = weight(log_g<function>(law, u), weights.largest);
          mine += four[k];
        });
      }
      const Sums sums = meeting.scan(mine);
      if (left >= sums.whole) {
        left -= sums.whole;
        continue;
      }
      if (left >= sums.before && left - sums.before < mine) {
        auto rest = static_cast<unsigned>(left - sums.before);
        bool found = false;
#pragma unroll
        for (unsigned k = 0; k < 4; ++k) {
          if (!found && rest < four[k]) {
            found = true;
            chosen.unit = i + k;
            flips[i / 32] = 1U << (i + k) % 32;
            all.forth[number] = static_cast<float>(four[k]) / static_cast<float>(weights.whole);
          }
          rest -= four[k];
        }
      }
      break;
    }
  }

  /// Every unit by itself.
  __device__ void choose_many(std::uint64_t step) {
    const std::uint64_t calls = (rbm.visible + 3) / 4 + 1;
    for (unsigned w = thread; w < all.words; w += kThreads) flips[w] = 0;
    meeting.wait();
    Word64 log_forth = 0;
    Philox random{};
    unsigned drawn = 0;
    // Units come in fours, and so do random words.
    for_each(slopes(), false, 0, [&](unsigned i, float u, bool) {
      if (i % 4 == 0) random = words(step, calls, i / 4);
      const std::uint32_t parts = chance<function>(law, u);
      const bool changes = random.word[i % 4] < parts;
      log_forth += in_parts(log_chance(parts, changes));
      if (i % 4 == 0) drawn = 0;
      if (changes) drawn |= 1U << i % 32;
      if ((i % 4 == 3 || i + 1 == rbm.visible) && drawn != 0) atomicOr(flips + i / 32, drawn);
    });
    meeting.sum(log_forth);
    if (thread != 0) return;
    all.forth[number] = from_parts(log_forth);
    const Philox last = words(step, calls, calls - 1);
    all.level[number] = both(last.word[0], last.word[1]);
  }

  /// Four activations side by side.
  struct Four {
    long long units[4];

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
    auto* const halves = reinterpret_cast<__half2*>(all.on + row(rbm.hidden_stride) + j);
    halves[0] = __halves2half2(on[0], on[1]);
    halves[1] = __halves2half2(on[2], on[3]);
    return positive + static_cast<Word64>(__float2ll_rn(logf(product) * rbm.units_in_one));
  }

  /// Changes one unit.
  __device__ void make_one(unsigned unit, unsigned half) {
    const bool away = (state[unit / 32] >> unit % 32 & 1U) != 0;
    const std::int64_t bias = rbm.visible_bias[unit], linear = all.linear[of_half(half)] + (away ? -bias : bias);
    const std::int64_t* const weights = rbm.weights + static_cast<std::size_t>(unit) * rbm.hidden_stride;
    const std::int64_t* const from = activations(half);
    Word64 sum = 0;
    for (unsigned j = 4 * thread; j < rbm.hidden_stride; j += 4 * kThreads) {
      Four four(from + j);
      four.add(weights + j, away);
      sum += settle(four, j, 1 - half);
    }
    meeting.sum(sum);
    if (thread != 0) return;
    all.linear[of_half(1 - half)] = linear;
    all.log_prob[of_half(1 - half)] = static_cast<std::int64_t>(sum) + linear;
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
    meeting.sum(sum, change);
    if (thread != 0) return;
    linear += static_cast<std::int64_t>(change);
    all.linear[of_half(to)] = linear;
    all.log_prob[of_half(to)] = static_cast<std::int64_t>(sum) + linear;
  }

  /// log p of the proposal less that of the state.
  __device__ double log_ratio(unsigned half) const {
    return rbm.unit * static_cast<double>(all.log_prob[of_half(1 - half)] - all.log_prob[of_half(half)]);
  }
  /// Whether the proposal is accepted.
  __device__ bool decide(float ratio) const {
    const float probability = fminf(ratio, 1.0F);
    if (thread == 0) all.accepted[number] += probability;
    return (static_cast<double>(all.level[number]) + 0.5) * 0x1p-64 < static_cast<double>(probability);
  }

  /// The proposal becomes the state.
  __device__ void take(std::uint64_t step) {
    __half* const to = all.slopes + row(rbm.visible_stride);
    for (unsigned i = 4 * thread; i < rbm.visible; i += 4 * kThreads) {
      *reinterpret_cast<uint2*>(to + i) = *reinterpret_cast<const uint2*>(proposed_slopes() + i);
    }
    const auto when = static_cast<std::int64_t>(step + 1 - all.counted_from);
    meeting.wait();  // nobody looks at the state that was
    for (unsigned w = thread; w < all.words; w += kThreads) {
      const unsigned before = state[w];
      if (all.up != nullptr) {
        for (unsigned left = flips[w]; left != 0; left &= left - 1) {
          const unsigned shift = __ffs(static_cast<int>(left)) - 1;
          all.up[row(rbm.visible) + 32 * w + shift] += (before >> shift & 1U) != 0 ? when : -when;
        }
      }
      state[w] = before ^ flips[w];
      all.state[row(all.words) + w] = state[w];
    }
  }
};

}  // namespace poise::cuda
