/// Kernels of chains as bits: a thread has 32 chains of one variable. Threads of a warp have neighbouring words, or,
/// where there are few of them, neighbouring variables.
#include "bit_kernels.hpp"

#include <algorithm>

namespace poise::cuda {

namespace {

/// Positions of random words one after the other differ by this, before they are mixed.
constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;

__device__ inline std::uint64_t random_word(std::uint64_t first_key, std::uint64_t second_key,
                                            std::uint64_t scattered) {
  std::uint64_t word = first_key + scattered;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
  word = (word ^ (word >> 27) ^ second_key) * 0x94d049bb133111eb;
  return word ^ (word >> 31);
}

/// All sixteen functions of two words of bits, a column for each thread.
struct Functions {
  std::uint32_t of[16 * kThreads];

  __device__ void fill(unsigned thread, std::uint32_t a, std::uint32_t b) {
    const std::uint32_t values[16] = {0,     ~(a | b), a & ~b, ~b,     b & ~a, ~a,     a ^ b, ~(a & b),
                                      a & b, ~(a ^ b), a,      a | ~b, b,      b | ~a, a | b, ~0U};
#pragma unroll
    for (unsigned k = 0; k < 16; ++k) of[k * kThreads + thread] = values[k];
  }

  /// The function whose table is four bits of `digit`, from bit `first` on. `column` is the place of the thread's
  /// column in bytes, which fits below that of a function: one operation joins them.
  template <unsigned first>
  __device__ std::uint32_t at(std::uint32_t digit, unsigned column) const {
    constexpr unsigned row = kThreads * sizeof(std::uint32_t);
    constexpr int shift = static_cast<int>(first) - 10;
    static_assert(row == 1U << 10);
    const std::uint32_t moved = shift >= 0 ? digit >> (shift >= 0 ? shift : 0) : digit << (shift < 0 ? -shift : 0);
    return *reinterpret_cast<const std::uint32_t*>(reinterpret_cast<const char*>(of) + ((moved & 15 * row) | column));
  }
};

__device__ inline std::uint32_t select(std::uint32_t by, std::uint32_t zero, std::uint32_t one) {
  return (by & one) | (~by & zero);
}

template <unsigned lookups, unsigned k = 0>
__device__ inline void look_up(std::uint64_t digit, const Functions& functions, unsigned column,
                               std::uint32_t (&value)[lookups]) {
  if constexpr (k < lookups) {
    value[k] = functions.at<4 * k % 32>(static_cast<std::uint32_t>(digit >> (4 * k / 32 * 32)), column);
    look_up<lookups, k + 1>(digit, functions, column, value);
  }
}

/// Of each two values the first where neighbour j is down and the second where it is up, and so on until one is left.
template <unsigned count, unsigned j, unsigned lookups, unsigned size>
__device__ inline void choose(std::uint32_t (&value)[lookups], const std::uint32_t (&x)[size]) {
  if constexpr (count > 1) {
#pragma unroll
    for (unsigned m = 0; m < count / 2; ++m) value[m] = select(x[j], value[2 * m], value[2 * m + 1]);
    choose<count / 2, j + 1>(value, x);
  }
}

/// A digit of the probabilities of 32 chains: the first two neighbours select by looking up, the others by choosing.
template <unsigned size>
__device__ inline std::uint32_t digit_of(typename DigitOf<size>::type digit, const Functions& functions,
                                         unsigned column, const std::uint32_t (&x)[size]) {
  constexpr unsigned lookups = 1U << (size - 2);
  std::uint32_t value[lookups];
  look_up<lookups>(digit, functions, column, value);
  choose<lookups, 2>(value, x);
  return value[0];
}

/// Which chains have a variable up: their own random integers of 64 digits are below P(up | blanket).
template <unsigned size>
__device__ inline std::uint32_t draw(const RunView& run, std::uint32_t table, const WordKeys& keys,
                                     std::uint64_t scattered, std::uint32_t chains, const Functions& functions,
                                     unsigned column, const std::uint32_t (&x)[size]) {
  const auto* digits = static_cast<const Digits<size>*>(run.digits) + table;
  std::uint32_t up = 0;
  std::uint32_t undecided = chains;
  std::uint32_t ones = ~0U;
  for (unsigned group = 0; group < kDigitGroups && undecided != 0; ++group) {
    const std::uint64_t low = random_word(keys.first[0], keys.second[0], scattered);
    const std::uint64_t high = random_word(keys.first[1], keys.second[1], scattered);
    scattered += kStep;
    const Digits<size> four = digits[static_cast<std::size_t>(group) * run.tables];
#pragma unroll
    for (unsigned a = 0; a < kRandomDigits; ++a) {
      const unsigned half = a / 2 * 32;
      const std::uint32_t random = __byte_perm(static_cast<std::uint32_t>(low >> half),
                                               static_cast<std::uint32_t>(high >> half), a % 2 == 0 ? 0x5410 : 0x7632);
      const std::uint32_t value = digit_of<size>(four.digit[a], functions, column, x);
      const std::uint32_t differs = random ^ value;
      up |= undecided & differs & value;
      undecided &= ~differs;
      ones &= value;
    }
  }
  // Down is impossible where all digits are ones.
  return up | (undecided & ones);
}

template <unsigned size>
__global__ void __launch_bounds__(kThreads) sweep_kernel(RunView run, SweepView view) {
  __shared__ Functions functions;
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
  const std::uint32_t k = blockIdx.x * blockDim.y + threadIdx.y;
  const std::uint32_t word = blockIdx.y * blockDim.x + threadIdx.x;
  if (k >= run.count || word >= view.words) return;
  std::uint32_t x[size];
#pragma unroll
  for (unsigned j = 0; j < size; ++j) {
    x[j] = view.state[static_cast<std::size_t>(run.blanket[j * run.count + k]) * view.words + word];
  }
  functions.fill(thread, x[0], x[1]);
  const std::uint64_t scattered = ((view.first_update + run.variable[k]) * kDigitGroups) * kStep;
  const WordKeys keys = view.keys[word];
  view.state[static_cast<std::size_t>(run.first + k) * view.words + word] =
      draw<size>(run, run.table[k], keys, scattered, view.chains[word], functions,
                 thread * static_cast<unsigned>(sizeof(std::uint32_t)), x);
}

/// The same for a single chain: nothing is made for chains that there are none of. Four digits are compared at once.
template <unsigned size>
__global__ void __launch_bounds__(kThreads) single_kernel(RunView run, SweepView view) {
  const std::uint32_t k = blockIdx.x * kThreads + threadIdx.x;
  if (k >= run.count) return;
  const unsigned chain = view.chain;
  unsigned configuration = 0;
#pragma unroll
  for (unsigned j = 0; j < size; ++j) {
    const std::uint32_t position =
        run.away == nullptr
            ? run.blanket[j * run.count + k]
            : run.first + k + static_cast<std::uint32_t>(__ldg(run.away + run.away_code[j * run.count + k]));
    configuration |= (view.state[position] >> chain & 1U) << j;
  }
  const WordKeys keys = view.keys[0];
  const std::uint64_t first_key = chain < 16 ? keys.first[0] : keys.first[1];
  const std::uint64_t second_key = chain < 16 ? keys.second[0] : keys.second[1];
  std::uint64_t scattered = ((view.first_update + run.variable[k]) * kDigitGroups) * kStep;
  const auto* digits = static_cast<const Digits<size>*>(run.digits) + (run.tables == run.count ? k : run.table[k]);
  bool up = false;
  bool ones = true;
  for (unsigned group = 0;; ++group, scattered += kStep) {
    const std::uint64_t random = random_word(first_key, second_key, scattered) >> (chain % 16);
    const auto low = static_cast<std::uint32_t>(random), high = static_cast<std::uint32_t>(random >> 32);
    const std::uint32_t drawn = (low & 1U) << 3 | (low >> 14 & 4U) | (high << 1 & 2U) | (high >> 16 & 1U);
    const Digits<size> four = digits[static_cast<std::size_t>(group) * run.tables];
    std::uint32_t value = 0;
#pragma unroll
    for (unsigned a = 0; a < kRandomDigits; ++a) {
      value = 2 * value + (static_cast<std::uint32_t>(four.digit[a] >> configuration) & 1U);
    }
    up = drawn < value;
    ones = ones && value == 15;
    if (drawn != value) break;
    if (group + 1 == kDigitGroups) {
      up = ones;
      break;
    }
  }
  view.state[run.first + k] = static_cast<std::uint32_t>(up) << chain;
}

__global__ void exchange_bits_kernel(ExchangeView view) {
  const std::size_t k = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
  if (k >= static_cast<std::size_t>(view.positions) * view.words) return;
  const std::uint32_t first = view.first[k], second = view.second[k];
  const std::uint32_t differ = view.mask[k % view.words] & (first ^ second);
  view.first[k] = first ^ differ;
  view.second[k] = second ^ differ;
}

__global__ void count_kernel(PlanesView view, const std::uint32_t* state, unsigned full_levels) {
  const std::size_t k = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
  if (k >= view.size) return;
  std::uint32_t carry = state[k];
  for (unsigned level = 0; level < full_levels; ++level) {
    std::uint32_t& plane = view.planes[level * view.size + k];
    const std::uint32_t a = plane, b = view.pending[level * view.size + k];
    plane = a ^ b ^ carry;
    carry = (a & b) | (carry & (a ^ b));
  }
  view.pending[full_levels * view.size + k] = carry;
}

/// Count of one chain in the planes.
__device__ inline std::uint32_t recent_count(const PlanesView& view, std::size_t k, unsigned bit) {
  std::uint32_t count = 0;
  for (unsigned level = 0; level < kPlanes; ++level) {
    count += (view.planes[level * view.size + k] >> bit & 1U) << level;
    if ((view.states >> level & 1U) != 0) count += (view.pending[level * view.size + k] >> bit & 1U) << level;
  }
  return count;
}

__global__ void spill_kernel(PlanesView view, std::uint32_t* spilled) {
  const std::size_t k = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
  if (k >= view.size) return;
  for (unsigned bit = 0; bit < kWordChains; ++bit) {
    spilled[k * kWordChains + bit] += recent_count(view, k, bit);
  }
}

__global__ void gather_kernel(PlanesView view, std::uint32_t lane, const std::uint32_t* spilled, std::uint64_t* out) {
  const std::size_t position = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
  if (position >= view.size / view.words) return;
  const std::size_t k = position * view.words + lane / kWordChains;
  std::uint64_t count = recent_count(view, k, lane % kWordChains);
  if (spilled != nullptr) count += spilled[k * kWordChains + lane % kWordChains];
  out[position] = count;
}

/// Of the words of 32 lanes: bit k of lane c becomes what bit c of lane k was.
__device__ std::uint32_t transpose(std::uint32_t word) {
  const unsigned lane = threadIdx.x % 32;
  std::uint32_t low = 0x0000ffffU;
#pragma unroll
  for (unsigned distance = 16; distance > 0; distance /= 2) {
    const std::uint32_t other = __shfl_xor_sync(0xffffffffU, word, static_cast<int>(distance));
    word =
        (lane & distance) == 0 ? (word & low) | (other & low) << distance : (word & ~low) | (other & ~low) >> distance;
    low ^= low << distance / 2;
  }
  return word;
}

/// Of the numbers of a part of 32, those whose bits are set.
__device__ std::int64_t sum_where(std::uint32_t bits, const std::int64_t* part) {
  std::int64_t sum = 0;
#pragma unroll
  for (unsigned k = 0; k < 32; k += 2) {
    const longlong2 two = __ldg(reinterpret_cast<const longlong2*>(part + k));
    if ((bits >> k & 1U) != 0) sum += two.x;
    if ((bits >> k & 2U) != 0) sum += two.y;
  }
  return sum;
}

/// A warp sums some parts, of 32 positions and of 32 edges each, for the 32 chains of a word: every lane loads a
/// position, and after transposing has a chain.
__global__ void sums_kernel(TermsView view, std::int64_t* out) {
  const unsigned lane = threadIdx.x % 32;
  const std::uint32_t word = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (word >= view.words) return;
  const auto at = [&](std::uint32_t position) {
    return view.state[static_cast<std::size_t>(position) * view.words + word];
  };
  std::int64_t up = 0, fields = 0, edges = 0, different = 0;
  for (std::uint32_t first = blockIdx.y * 32; first < view.positions; first += gridDim.y * 32) {
    const std::uint32_t position = first + lane;
    const bool is_there = position < view.positions;
    const std::uint32_t bits = transpose(is_there ? at(position) : 0U);
    const std::uint32_t reference = __ballot_sync(0xffffffffU, is_there && view.reference[position] != 0);
    up += __popc(bits);
    different += __popc(bits ^ reference);
    if (view.fields != nullptr) fields += sum_where(bits, view.fields + first);
  }
  for (std::uint32_t first = blockIdx.y * 32; first < view.edges; first += gridDim.y * 32) {
    const std::uint32_t edge = first + lane;
    const std::uint32_t bits =
        transpose(edge < view.edges ? at(view.ends[2 * edge]) ^ at(view.ends[2 * edge + 1]) : 0U);
    edges += view.weights == nullptr ? __popc(bits) : sum_where(bits, view.weights + first);
  }
  const std::size_t lanes = static_cast<std::size_t>(view.words) * kWordChains;
  std::int64_t* const to = out + blockIdx.y * 4 * lanes + word * kWordChains + lane;
  to[0] = up;
  to[lanes] = fields;
  to[2 * lanes] = edges;
  to[3 * lanes] = different;
}

/// Adds up the slices of a draw.
__global__ void whole_sums_kernel(const std::int64_t* parts, std::size_t width, std::uint32_t slices,
                                  std::int64_t* out) {
  const std::size_t k = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
  if (k >= width) return;
  const std::int64_t* const from = parts + blockIdx.y * slices * width + k;
  std::int64_t sum = 0;
  for (std::uint32_t slice = 0; slice < slices; ++slice) sum += from[slice * width];
  out[blockIdx.y * width + k] = sum;
}

__global__ void pack_kernel(PackView view) {
  const std::uint32_t lane = blockIdx.y * blockDim.x + threadIdx.x;
  if (lane >= view.lanes) return;
  const std::uint32_t number = view.first + lane;
  const std::uint32_t first = blockIdx.x * 32;
  std::uint32_t bits = 0;
  for (std::uint32_t k = 0; k < 32 && first + k < view.positions; ++k) {
    const std::uint32_t word = view.state[static_cast<std::size_t>(first + k) * view.words + number / kWordChains];
    bits |= (word >> (number % kWordChains) & 1U) << k;
  }
  view.packed[static_cast<std::size_t>(lane) * view.stride + blockIdx.x] = bits;
}

__global__ void unpack_kernel(PackView view) {
  const std::uint32_t position = blockIdx.x * blockDim.x + threadIdx.x;
  if (position >= view.positions) return;
  std::uint32_t word = 0;
  for (std::uint32_t k = 0; k < kWordChains; ++k) {
    const std::uint32_t number = blockIdx.y * kWordChains + k;
    if (number < view.first || number >= view.first + view.lanes) continue;
    const std::uint32_t bits = view.packed[static_cast<std::size_t>(number - view.first) * view.stride + position / 32];
    word |= (bits >> (position % 32) & 1U) << k;
  }
  view.state[static_cast<std::size_t>(position) * view.words + blockIdx.y] = word;
}

__global__ void levels_kernel(LevelsView view, std::uint8_t* out) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= view.variables) return;
  const std::uint32_t lane = view.first + blockIdx.y;
  out[static_cast<std::size_t>(blockIdx.y) * view.variables + i] = static_cast<std::uint8_t>(
      view.state[static_cast<std::size_t>(view.position[i]) * view.words + lane / kWordChains] >> (lane % kWordChains) &
      1U);
}

unsigned blocks_for(std::size_t items, unsigned threads) {
  return static_cast<unsigned>((items + threads - 1) / threads);
}

}  // namespace

void launch_sweep(const RunView& run, const SweepView& view) {
  if (view.single) {
    const unsigned blocks = blocks_for(run.count, kThreads);
    switch (run.size) {
      case 4: single_kernel<4><<<blocks, kThreads>>>(run, view); break;
      case 5: single_kernel<5><<<blocks, kThreads>>>(run, view); break;
      default: single_kernel<6><<<blocks, kThreads>>>(run, view); break;
    }
    return;
  }
  unsigned across = 1;
  while (across < 32 && across < view.words) across *= 2;
  const dim3 threads(across, kThreads / across);
  const dim3 blocks(blocks_for(run.count, threads.y), blocks_for(view.words, threads.x));
  switch (run.size) {
    case 4: sweep_kernel<4><<<blocks, threads>>>(run, view); break;
    case 5: sweep_kernel<5><<<blocks, threads>>>(run, view); break;
    default: sweep_kernel<6><<<blocks, threads>>>(run, view); break;
  }
}

void launch_exchange_bits(const ExchangeView& view) {
  const std::size_t size = static_cast<std::size_t>(view.positions) * view.words;
  exchange_bits_kernel<<<blocks_for(size, kThreads), kThreads>>>(view);
}

void launch_count(const PlanesView& view, const std::uint32_t* state) {
  unsigned full = 0;
  while ((view.states >> full & 1U) != 0) ++full;
  count_kernel<<<blocks_for(view.size, kThreads), kThreads>>>(view, state, full);
}

void launch_spill(const PlanesView& view, std::uint32_t* spilled) {
  spill_kernel<<<blocks_for(view.size, kThreads), kThreads>>>(view, spilled);
}

void launch_gather(const PlanesView& view, std::uint32_t lane, const std::uint32_t* spilled, std::uint64_t* out) {
  gather_kernel<<<blocks_for(view.size / view.words, kThreads), kThreads>>>(view, lane, spilled, out);
}

std::uint32_t slices_of_sums(const TermsView& terms) {
  constexpr std::size_t warps = 1056;  // keep a large device busy
  const std::size_t parts = (std::max(terms.positions, terms.edges) + 31) / 32;
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(warps / terms.words, 1, std::max<std::size_t>(parts, 1)));
}

void launch_sums(const TermsView& terms, std::int64_t* out) {
  const dim3 blocks(blocks_for(terms.words, kThreads / 32), slices_of_sums(terms));
  sums_kernel<<<blocks, kThreads>>>(terms, out);
}

void launch_whole_sums(const std::int64_t* parts, const TermsView& terms, std::uint32_t draws, std::int64_t* out) {
  const std::size_t width = 4 * static_cast<std::size_t>(terms.words) * kWordChains;
  const dim3 blocks(blocks_for(width, kThreads), draws);
  whole_sums_kernel<<<blocks, kThreads>>>(parts, width, slices_of_sums(terms), out);
}

void launch_pack(const PackView& view) {
  const dim3 blocks(view.stride, blocks_for(view.lanes, kThreads));
  pack_kernel<<<blocks, kThreads>>>(view);
}

void launch_unpack(const PackView& view) {
  const dim3 blocks(blocks_for(view.positions, kThreads), view.words);
  unpack_kernel<<<blocks, kThreads>>>(view);
}

void launch_levels(const LevelsView& view, std::uint8_t* out) {
  const dim3 blocks(blocks_for(view.variables, kThreads), view.count);
  levels_kernel<<<blocks, kThreads>>>(view, out);
}

}  // namespace poise::cuda
