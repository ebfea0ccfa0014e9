/// Steps of chains of an RBM, a block for each chain.
#include "rbm_kernels.hpp"

#include "philox.cuh"

namespace poise::cuda {

namespace {

using Word64 = unsigned long long;

constexpr unsigned kThreads = 128;
constexpr unsigned kWarps = kThreads / 32;
constexpr unsigned kAll = 0xffffffffU;
constexpr unsigned kRowsAtOnce = 4;  // hidden units that a thread has in registers

/// Sums and the like over a block. Always in the same order.
struct Meeting {
  alignas(8) unsigned char room[kWarps * 8];

  template <class Number, class Combine>
  __device__ Number all(Number mine, Combine&& combine) {
    for (unsigned distance = 16; distance > 0; distance /= 2) {
      mine = combine(mine, __shfl_xor_sync(kAll, mine, static_cast<int>(distance)));
    }
    auto* const of_warps = reinterpret_cast<Number*>(room);
    __syncthreads();
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = mine;
    __syncthreads();
    Number whole = of_warps[0];
    for (unsigned warp = 1; warp < kWarps; ++warp) whole = combine(whole, of_warps[warp]);
    return whole;
  }
  template <class Number>
  __device__ Number sum(Number mine) {
    return all(mine, [](Number a, Number b) { return a + b; });
  }
  __device__ float most(float mine) {
    return all(mine, [](float a, float b) { return fmaxf(a, b); });
  }
  /// The sum over all threads before this one.
  __device__ Word64 before(Word64 mine, Word64& whole) {
    Word64 inclusive = mine;
    for (unsigned distance = 1; distance < 32; distance *= 2) {
      const Word64 other = __shfl_up_sync(kAll, inclusive, distance);
      if (threadIdx.x % 32 >= distance) inclusive += other;
    }
    auto* const of_warps = reinterpret_cast<Word64*>(room);
    __syncthreads();
    if (threadIdx.x % 32 == 31) of_warps[threadIdx.x / 32] = inclusive;
    __syncthreads();
    Word64 earlier = 0;
    whole = 0;
    for (unsigned warp = 0; warp < kWarps; ++warp) {
      if (warp < threadIdx.x / 32) earlier += of_warps[warp];
      whole += of_warps[warp];
    }
    return earlier + inclusive - mine;
  }
};

/// log g(e^u) - u/2 of a table.
__device__ float phi(const RbmLaw& law, float size) {
  const float inside = fminf(size, law.phi_step * (kPhiPoints - 1));
  const float place = inside / law.phi_step;
  const unsigned cell = min(static_cast<unsigned>(place), kPhiPoints - 2);
  const float left = __ldg(law.phi + cell), right = __ldg(law.phi + cell + 1);
  return left + (right - left) * (place - static_cast<float>(cell)) + law.tail_slope * (size - inside);
}

__device__ float log_g(const RbmLaw& law, float u) {
  switch (law.function) {
    case RbmFunction::sqrt: return 0.5F * u;
    case RbmFunction::barker: return fminf(u, 0.0F) - log1pf(expf(-fabsf(u)));
    case RbmFunction::min: return fminf(u, 0.0F);
    case RbmFunction::max: return fmaxf(u, 0.0F);
    case RbmFunction::table: return 0.5F * u + phi(law, fabsf(u));
  }
  return 0.0F;
}

/// The probability that a unit changes by itself, in units of 2^-32: neither none nor all.
__device__ std::uint32_t chance(const RbmLaw& law, float u) {
  float p;
  if (law.form == RbmForm::langevin) {
    const float log_odds = log_g(law, u) - log_g(law, 0.0F) + law.log_length;
    p = 1.0F / (1.0F + expf(-log_odds));
  } else {
    const float size = fminf(fabsf(u), 64.0F);
    const float root = expf(-0.5F * size);
    const float small = root * root;
    const float sum = 1.0F + small;
    float rate = law.length;
    switch (law.function) {
      case RbmFunction::sqrt: rate *= sum / root; break;
      case RbmFunction::barker: break;
      case RbmFunction::min: rate *= sum; break;
      case RbmFunction::max: rate *= sum / small; break;
      case RbmFunction::table: rate *= expf(phi(law, size)) * (sum / root); break;
    }
    const float gone = -expm1f(-fminf(rate, 64.0F));
    p = gone / sum * (u > 0.0F ? 1.0F : small);
  }
  const Word64 parts = __float2ull_rz(p * 0x1p32F);
  return static_cast<std::uint32_t>(parts < 1 ? 1 : parts > 0xffffffffU ? 0xffffffffU : parts);
}

/// log of such a probability, or of that of staying.
__device__ float log_chance(std::uint32_t parts, bool changes) {
  const std::uint32_t rest = 0U - parts;
  const bool minor = parts < 0x80000000U;
  const float lesser = static_cast<float>(minor ? parts : rest) * 0x1p-32F;
  return changes == minor ? logf(lesser) : log1pf(-lesser);
}

/// The weight of a single change by how its log g compares with the largest.
__device__ Word64 weight(float log_g, float largest) {
  const Word64 parts = __float2ull_rz(exp2f((log_g - largest) * 1.44269504F) * 0x1p50F);
  return parts < 1 ? 1 : parts;
}

/// One chain, by the threads of a block. Visible units belong to threads in groups of four.
struct Walk {
  const RbmView& rbm;
  const RbmChainsView& all;
  const RbmLaw& law;
  Meeting& meeting;
  std::uint32_t* state;  // words, in shared memory
  std::uint32_t* flips;
  std::uint32_t number;

  __device__ std::size_t row_of_slopes() const { return std::size_t{number} * rbm.visible_stride; }
  __device__ static bool bit(const std::uint32_t* words, unsigned i) { return (words[i / 32] >> i % 32 & 1U) != 0; }

  /// Calls use(i, u, flips) for the units of this thread, u the first-order log ratio of changing i.
  template <class Use>
  __device__ void for_each(const float* slopes, bool at_proposal, Use&& use) const {
    for (unsigned i = 4 * threadIdx.x; i < rbm.visible; i += 4 * kThreads) {
      const float4 four = *reinterpret_cast<const float4*>(slopes + i);
      const float4 bias = __ldg(reinterpret_cast<const float4*>(rbm.slopes + i));
      const float sums[4] = {four.x + bias.x, four.y + bias.y, four.z + bias.z, four.w + bias.w};
      const unsigned changed = flips[i / 32] >> i % 32;
      const unsigned on = state[i / 32] >> i % 32 ^ (at_proposal ? changed : 0U);
#pragma unroll
      for (unsigned k = 0; k < 4; ++k) {
        if (i + k < rbm.visible) use(i + k, (on >> k & 1U) != 0 ? -sums[k] : sums[k], (changed >> k & 1U) != 0);
      }
    }
  }

  struct Weights {
    float largest;  // log g
    Word64 mine;    // sum of those of this thread
    Word64 chosen;  // that of the unit that flips, where it is this thread's
  };
  __device__ Weights weigh(const float* slopes, bool at_proposal) const {
    float most = -3e38F;
    for_each(slopes, at_proposal, [&](unsigned, float u, bool) { most = fmaxf(most, log_g(law, u)); });
    Weights out{meeting.most(most), 0, 0};
    for_each(slopes, at_proposal, [&](unsigned, float u, bool changes) {
      const Word64 w = weight(log_g(law, u), out.largest);
      out.mine += w;
      if (changes) out.chosen = w;
    });
    return out;
  }
  __device__ static float log_of(Word64 part, Word64 whole) {
    return logf(static_cast<float>(part) / static_cast<float>(whole));
  }

  /// log of the probability that the flips have, where every unit is drawn by itself.
  __device__ double log_probability(const float* slopes, bool at_proposal) const {
    double mine = 0.0;
    for_each(slopes, at_proposal,
             [&](unsigned, float u, bool changes) { mine += log_chance(chance(law, u), changes); });
    return meeting.sum(mine);
  }

  /// Random words of a step, four at a time.
  __device__ Philox words(std::uint64_t step, bool many, unsigned call) const {
    const std::uint64_t calls = many ? (rbm.visible + 3) / 4 + 1 : 1;
    return philox(step * calls + call, all.first_chain + number, all.seed);
  }

  /// One unit in proportion to the weights.
  __device__ void choose_one(const float* slopes, const Weights& weights, std::uint64_t step) {
    Word64 whole = 0;
    const Word64 before = meeting.before(weights.mine, whole);
    const Philox random = words(step, false, 0);
    const Word64 place = __umul64hi(static_cast<Word64>(random.word[0]) << 32 | random.word[1], whole);
    for (unsigned w = threadIdx.x; w < all.words; w += kThreads) flips[w] = 0;
    __syncthreads();
    if (place < before || place - before >= weights.mine) return;
    Word64 passed = before;
    bool found = false;
    for_each(slopes, false, [&](unsigned i, float u, bool) {
      if (found) return;
      const Word64 w = weight(log_g(law, u), weights.largest);
      passed += w;
      if (place >= passed) return;
      found = true;
      flips[i / 32] = 1U << i % 32;
      all.log_forth[number] = log_of(w, whole);
    });
  }

  /// Every unit by itself.
  __device__ void choose_many(const float* slopes, std::uint64_t step) {
    for (unsigned w = threadIdx.x; w < all.words; w += kThreads) flips[w] = 0;
    __syncthreads();
    for (unsigned i = 4 * threadIdx.x; i < rbm.visible; i += 4 * kThreads) {
      const Philox random = words(step, true, i / 4);
      unsigned drawn = 0;
      const float4 four = *reinterpret_cast<const float4*>(slopes + i);
      const float4 bias = __ldg(reinterpret_cast<const float4*>(rbm.slopes + i));
      const float sums[4] = {four.x + bias.x, four.y + bias.y, four.z + bias.z, four.w + bias.w};
      const unsigned on = state[i / 32] >> i % 32;
#pragma unroll
      for (unsigned k = 0; k < 4; ++k) {
        if (i + k >= rbm.visible) continue;
        if (random.word[k] < chance(law, (on >> k & 1U) != 0 ? -sums[k] : sums[k])) drawn |= 1U << k;
      }
      if (drawn != 0) atomicOr(flips + i / 32, drawn << i % 32);
    }
    __syncthreads();
    const double log_forth = log_probability(slopes, false);
    if (threadIdx.x == 0) all.log_forth[number] = log_forth;
  }

  __device__ std::int64_t* activations(unsigned half) const {
    return all.activations + (std::size_t{half} * all.chains + number) * rbm.hidden_stride;
  }
  __device__ std::size_t of_half(unsigned half) const { return std::size_t{half} * all.chains + number; }

  /// Adds what changing the units of `which` does to activations, from one half to the other, and log p and
  /// probabilities of hidden units there. `from` may be the biases, with all units that are on changing.
  __device__ void make(const std::uint32_t* which, const std::int64_t* from, std::int64_t linear, unsigned to) const {
    std::int64_t positive = 0;
    double soft = 0.0;
    const auto unit = static_cast<float>(rbm.unit);
    std::int64_t* const out = activations(to);
    for (unsigned first = threadIdx.x; first < rbm.hidden_stride; first += kRowsAtOnce * kThreads) {
      std::int64_t sums[kRowsAtOnce];
#pragma unroll
      for (unsigned k = 0; k < kRowsAtOnce; ++k) {
        const unsigned j = first + k * kThreads;
        sums[k] = j < rbm.hidden_stride ? from[j] : 0;
      }
      for (unsigned w = 0; w < all.words; ++w) {
        for (unsigned left = which[w]; left != 0; left &= left - 1) {
          const unsigned shift = __ffs(static_cast<int>(left)) - 1;
          const bool goes_off = which == flips && (state[w] >> shift & 1U) != 0;
          const std::int64_t* const row = rbm.weights + std::size_t{32 * w + shift} * rbm.hidden_stride;
#pragma unroll
          for (unsigned k = 0; k < kRowsAtOnce; ++k) {
            const unsigned j = first + k * kThreads;
            if (j >= rbm.hidden_stride) continue;
            const std::int64_t weight = __ldg(reinterpret_cast<const long long*>(row + j));
            sums[k] += goes_off ? -weight : weight;
          }
        }
      }
#pragma unroll
      for (unsigned k = 0; k < kRowsAtOnce; ++k) {
        const unsigned j = first + k * kThreads;
        if (j >= rbm.hidden_stride) continue;
        out[j] = sums[k];
        if (sums[k] > 0) positive += sums[k];
        const float a = __ll2float_rn(sums[k]) * unit;
        const float small = expf(-fabsf(a));
        soft += log1pf(small);
        all.on[std::size_t{number} * rbm.hidden_stride + j] =
            __float2half_rn((a < 0.0F ? small : 1.0F) / (1.0F + small));
      }
    }
    for (unsigned i = threadIdx.x; i < rbm.visible; i += kThreads) {
      if (!bit(which, i)) continue;
      linear += which == flips && bit(state, i) ? -rbm.visible_bias[i] : rbm.visible_bias[i];
    }
    const auto whole_linear = static_cast<std::int64_t>(meeting.sum(static_cast<Word64>(linear)));
    const auto whole = static_cast<std::int64_t>(meeting.sum(static_cast<Word64>(positive))) + whole_linear;
    const double whole_soft = meeting.sum(soft);
    if (threadIdx.x != 0) return;
    all.linear[of_half(to)] = whole_linear;
    all.log_prob[of_half(to)] = rbm.unit * static_cast<double>(whole) + whole_soft;
  }
};

/// Whether the proposal is accepted, with this probability.
template <bool many>
__device__ bool decide(const Walk& walk, unsigned half, std::uint64_t step, Walk::Weights& there) {
  const RbmChainsView& all = walk.all;
  const float* const slopes = all.proposed_slopes + walk.row_of_slopes();
  double log_back;
  Word64 word;
  if constexpr (many) {
    log_back = walk.log_probability(slopes, true);
    const Philox random = walk.words(step, true, (walk.rbm.visible + 3) / 4);
    word = static_cast<Word64>(random.word[0]) << 32 | random.word[1];
  } else {
    there = walk.weigh(slopes, true);
    const Word64 whole = walk.meeting.sum(there.mine);
    log_back = Walk::log_of(walk.meeting.sum(there.chosen), whole);
    const Philox random = walk.words(step, false, 0);
    word = static_cast<Word64>(random.word[2]) << 32 | random.word[3];
  }
  const double log_ratio =
      all.log_prob[walk.of_half(1 - half)] - all.log_prob[walk.of_half(half)] + log_back - all.log_forth[walk.number];
  const float probability = log_ratio >= 0.0 ? 1.0F : expf(static_cast<float>(log_ratio));
  if (threadIdx.x == 0) all.accepted[walk.number] += probability;
  return (static_cast<double>(word) + 0.5) * 0x1p-64 < static_cast<double>(probability);
}

/// The proposal becomes the state.
__device__ void take(const Walk& walk, std::uint64_t step) {
  const RbmChainsView& all = walk.all;
  const float* const from = all.proposed_slopes + walk.row_of_slopes();
  float* const to = all.slopes + walk.row_of_slopes();
  for (unsigned i = 4 * threadIdx.x; i < walk.rbm.visible; i += 4 * kThreads) {
    *reinterpret_cast<float4*>(to + i) = *reinterpret_cast<const float4*>(from + i);
  }
  if (all.up != nullptr) {
    const auto when = static_cast<std::int64_t>(step + 1 - all.counted_from);
    for (unsigned i = threadIdx.x; i < walk.rbm.visible; i += kThreads) {
      if (!Walk::bit(walk.flips, i)) continue;
      all.up[std::size_t{walk.number} * walk.rbm.visible + i] += Walk::bit(walk.state, i) ? when : -when;
    }
  }
  __syncthreads();
  for (unsigned w = threadIdx.x; w < all.words; w += kThreads) {
    walk.state[w] ^= walk.flips[w];
    all.state[std::size_t{walk.number} * all.words + w] = walk.state[w];
  }
}

__device__ void load_words(const RbmChainsView& all, std::uint32_t* state, std::uint32_t* flips) {
  for (unsigned w = threadIdx.x; w < all.words; w += kThreads) {
    state[w] = all.state[std::size_t{blockIdx.x} * all.words + w];
    flips[w] = all.flips[std::size_t{blockIdx.x} * all.words + w];
  }
  __syncthreads();
}

template <bool many>
__global__ void __launch_bounds__(kThreads) step_kernel(RbmView rbm, RbmChainsView all, RbmLaw law, RbmPhases phases) {
  extern __shared__ std::uint32_t words[];
  __shared__ Meeting meeting;
  Walk walk{rbm, all, law, meeting, words, words + all.words, blockIdx.x};
  load_words(all, walk.state, walk.flips);
  unsigned half = all.half[walk.number];
  std::uint64_t step = all.steps[walk.number];
  Walk::Weights weights;
  bool weighed = false;
  if (phases.decide) {
    if (decide<many>(walk, half, step, weights)) {
      weighed = true;  // by the same function of the same state
      take(walk, step);
      half = 1 - half;
    }
    ++step;
    __syncthreads();
    if (threadIdx.x == 0) {
      all.half[walk.number] = static_cast<std::uint8_t>(half);
      all.steps[walk.number] = step;
    }
  }
  if (!phases.propose) return;
  const float* const slopes = all.slopes + walk.row_of_slopes();
  if constexpr (many) {
    walk.choose_many(slopes, step);
  } else {
    if (!weighed) weights = walk.weigh(slopes, false);
    walk.choose_one(slopes, weights, step);
  }
  __syncthreads();
  for (unsigned w = threadIdx.x; w < all.words; w += kThreads) {
    all.flips[std::size_t{walk.number} * all.words + w] = walk.flips[w];
  }
  walk.make(walk.flips, walk.activations(half), threadIdx.x == 0 ? all.linear[walk.of_half(half)] : 0, 1 - half);
}

__global__ void __launch_bounds__(kThreads) prepare_kernel(RbmView rbm, RbmChainsView all) {
  extern __shared__ std::uint32_t words[];
  __shared__ Meeting meeting;
  const RbmLaw none{};
  Walk walk{rbm, all, none, meeting, words, words + all.words, blockIdx.x};
  load_words(all, walk.state, walk.flips);
  for (unsigned w = threadIdx.x; w < all.words; w += kThreads) all.flips[std::size_t{walk.number} * all.words + w] = 0;
  if (threadIdx.x == 0) all.half[walk.number] = 0;
  walk.make(walk.state, rbm.hidden_bias, 0, 0);
}

__global__ void __launch_bounds__(kThreads) sums_kernel(RbmView rbm, RbmChainsView all, RbmSums sums) {
  __shared__ Meeting meeting;
  const std::uint32_t number = blockIdx.x;
  const std::size_t half = std::size_t{all.half[number]} * all.chains + number;
  const std::int64_t* const activations = all.activations + half * rbm.hidden_stride;
  double soft = 0.0;
  Word64 positive = 0;
  for (unsigned j = threadIdx.x; j < rbm.hidden_stride; j += kThreads) {
    const std::int64_t units = activations[j];
    if (units > 0) positive += static_cast<Word64>(units);
    soft += log1p(exp(-fabs(rbm.unit * static_cast<double>(units))));
  }
  Word64 on = 0, different = 0;
  for (unsigned w = threadIdx.x; w < all.words; w += kThreads) {
    const std::uint32_t word = all.state[std::size_t{number} * all.words + w];
    on += __popc(word);
    different += __popc(word ^ sums.reference[w]);
  }
  soft = meeting.sum(soft);
  positive = meeting.sum(positive);
  on = meeting.sum(on);
  different = meeting.sum(different);
  if (threadIdx.x != 0) return;
  const std::int64_t whole = static_cast<std::int64_t>(positive) + all.linear[half];
  sums.log_prob[number] = rbm.unit * static_cast<double>(whole) + soft;
  sums.on[number] = static_cast<std::int64_t>(on);
  sums.different[number] = static_cast<std::int64_t>(different);
}

__global__ void __launch_bounds__(kThreads) law_kernel(RbmView rbm, RbmChainsView all, RbmLaw law, std::uint64_t* out) {
  extern __shared__ std::uint32_t words[];
  __shared__ Meeting meeting;
  Walk walk{rbm, all, law, meeting, words, words + all.words, blockIdx.x};
  load_words(all, walk.state, walk.flips);
  const float* const slopes = all.slopes + walk.row_of_slopes();
  out += std::size_t{walk.number} * rbm.visible;
  if (law.form == RbmForm::single) {
    const float largest = walk.weigh(slopes, false).largest;
    walk.for_each(slopes, false, [&](unsigned i, float u, bool) { out[i] = weight(log_g(law, u), largest); });
  } else {
    walk.for_each(slopes, false, [&](unsigned i, float u, bool) { out[i] = chance(law, u); });
  }
}

std::size_t shared_words(const RbmChainsView& chains) { return 2 * sizeof(std::uint32_t) * chains.words; }

}  // namespace

void launch_rbm_step(const RbmView& rbm, const RbmChainsView& chains, const RbmLaw& law, RbmPhases phases,
                     cudaStream_t stream) {
  const auto kernel = law.form == RbmForm::single ? step_kernel<false> : step_kernel<true>;
  kernel<<<chains.chains, kThreads, shared_words(chains), stream>>>(rbm, chains, law, phases);
}

void launch_rbm_prepare(const RbmView& rbm, const RbmChainsView& chains, cudaStream_t stream) {
  prepare_kernel<<<chains.chains, kThreads, shared_words(chains), stream>>>(rbm, chains);
}

void launch_rbm_sums(const RbmView& rbm, const RbmChainsView& chains, const RbmSums& sums, cudaStream_t stream) {
  sums_kernel<<<chains.chains, kThreads, 0, stream>>>(rbm, chains, sums);
}

void launch_rbm_law(const RbmView& rbm, const RbmChainsView& chains, const RbmLaw& law, std::uint64_t* out,
                    cudaStream_t stream) {
  law_kernel<<<chains.chains, kThreads, shared_words(chains), stream>>>(rbm, chains, law, out);
}

}  // namespace poise::cuda
