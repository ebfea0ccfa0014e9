/// Counter-based random numbers: Philox 4x32-10 (Salmon et al. 2011).
///
/// key = seed, the upper half of the counter = stream (one per chain), the lower half counts blocks. A number depends
/// on seed, stream and position alone, never on threads or on the order of work, and any position can be reached at
/// once.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>

#include <poise/extend/base/simd.hpp>

namespace poise {

/// One Philox 4x32-10 block: four words from a 128-bit counter and a 64-bit key.
inline std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// A stream of uniform numbers. Generated sixteen blocks (32 numbers) at a time, which vectorises; number k of a batch
/// comes from words 0 and 1 of block k (k < 16) or from words 2 and 3 of block k - 16.
class Rng {
 public:
  static constexpr unsigned kBlocks = 16;
  static constexpr unsigned kBatch = 2 * kBlocks;

  Rng(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}

  /// Uniform on [0, 1), a multiple of 2^-52.
  POISE_INLINE double uniform() {
    if (position_ == kBatch) refill();
    return batch_[position_++];
  }

  /// Eight uniforms at once. Starts at the next multiple of eight in the stream.
  POISE_INLINE Doubles8 uniform8() {
    position_ = (position_ + 7) & ~7U;
    if (position_ == kBatch) refill();
    const Doubles8 v = load8(batch_ + position_);
    position_ += 8;
    return v;
  }

  /// Random bits, from whole batches of blocks: the words 0 and 1 of each, then the words 2 and 3. Starts at the next
  /// batch of the stream; the size is a multiple of kBatch.
  void fill(std::span<std::uint64_t> out);

  /// Goes to where `fill` is after so many batches from the beginning of the stream.
  void go_to_batch(std::uint64_t batches) {
    next_block_ = batches * kBlocks;
    position_ = kBatch;
  }

  /// Standard normal (Box and Muller's first half); not for hot loops.
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log1p(-uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }

  /// The batch follows from the rest.
  template <class A>
  void archive(A& archive) {
    archive(seed_, stream_, next_block_, position_);
    if (next_block_ == 0) return;
    const unsigned position = position_;
    next_block_ -= kBlocks;
    refill();
    position_ = position;
  }

  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  [[nodiscard]] std::uint64_t stream() const { return stream_; }
  /// How many numbers have been taken from the stream.
  [[nodiscard]] std::uint64_t position() const { return 2 * next_block_ - kBatch + position_; }
  /// As if so many had been taken.
  void move_to(std::uint64_t position) {
    next_block_ = position / kBatch * kBlocks;
    position_ = kBatch;
    if (position % kBatch == 0) return;
    refill();
    position_ = static_cast<unsigned>(position % kBatch);
  }

 private:
  POISE_INLINE void refill() {
    for (unsigned half = 0; half < 2; ++half) {
      const Words8x4 words = blocks8(next_block_ + 8 * half);
      store8(batch_ + 8 * half, to_unit(words.c0, words.c1));
      store8(batch_ + kBlocks + 8 * half, to_unit(words.c2, words.c3));
    }
    next_block_ += kBlocks;
    position_ = 0;
  }

  /// `fill` on any processor, and with products of 32 bits.
  static void fill_lanes(Rng& rng, std::span<std::uint64_t> out);
  static void fill_avx2(Rng& rng, std::span<std::uint64_t> out);

  struct Words8x4 {
    Words8 c0, c1, c2, c3;
  };

  /// Eight blocks of the stream.
  [[nodiscard]] POISE_INLINE Words8x4 blocks8(std::uint64_t first) const {
    constexpr Words8 kLanes = {{0, 1, 2, 3}, {4, 5, 6, 7}};
    const Words8 block = kLanes + first;
    Words8 c0 = block & kLow, c1 = block >> 32;
    Words8 c2 = all8(stream_ & kLow), c3 = all8(stream_ >> 32);
    auto k0 = static_cast<std::uint32_t>(seed_);
    auto k1 = static_cast<std::uint32_t>(seed_ >> 32);
    for (int round = 0; round < 10; ++round) {
      const Words8 a = c0 * std::uint64_t{0xD2511F53};
      const Words8 b = c2 * std::uint64_t{0xCD9E8D57};
      c0 = (b >> 32) ^ c1 ^ std::uint64_t{k0};
      c1 = b & kLow;
      c2 = (a >> 32) ^ c3 ^ std::uint64_t{k1};
      c3 = a & kLow;
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    return {c0, c1, c2, c3};
  }

  /// 52 random bits become the fraction of a number in [1, 2).
  POISE_INLINE static Doubles8 to_unit(const Words8& high, const Words8& low) {
    return bits8<double>((high << 32 | low) >> 12 | std::uint64_t{0x3ff0000000000000}) - 1.0;
  }

  static constexpr std::uint64_t kLow = 0xffffffff;

  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t next_block_ = 0;
  unsigned position_ = kBatch;
  alignas(64) double batch_[kBatch] = {};
};

/// Every use of random numbers has streams of its own, named here and nowhere else.
///
/// With the same seed no two uses can meet, and what one of them takes never shifts what another gets. The streams of a
/// purpose are numbered (by chain, row, image) from its value on; purposes lie at least 2^56 apart, but for the last
/// two, which have one stream each.
enum class Stream : std::uint64_t {
  chain = 0,                                          ///< the steps of a chain, by its number
  digit = std::uint64_t{0x01} << 56,                  ///< a drawn digit, by its number
  binarise = std::uint64_t{0x02} << 56,               ///< grey levels to black and white
  training_weights = std::uint64_t{0x03} << 56,       ///< the first weights of an RBM
  training_order = std::uint64_t{0x04} << 56,         ///< the order of its training images
  training_row = std::uint64_t{0x05} << 56,           ///< contrastive divergence, by the row of a batch
  training_particles = std::uint64_t{0x06} << 56,     ///< the first states of persistent chains
  training_evaluation = std::uint64_t{0x07} << 56,    ///< metrics after an epoch, by row
  annealing = std::uint64_t{0x08} << 56,              ///< annealed importance sampling, by group of chains; searches
  bits = std::uint64_t{0x09} << 56,                   ///< chains that are bits of a word, by sixteen
  lanes = std::uint64_t{0x0a} << 56,                  ///< chains across lanes, by two
  further_digits = std::uint64_t{0x0b} << 56,         ///< of random words of a chain whose first digits do not decide
  swaps = std::uint64_t{0x0c} << 56,                  ///< of replicas of neighbouring temperatures, by ladder
  components = std::uint64_t{0x0d} << 56,             ///< parts of states that two ladders exchange, by pair
  backward = std::uint64_t{0x0e} << 56,               ///< variables that were summed out, drawn anew, by chain
  device = std::uint64_t{0x0f} << 56,                 ///< single flips on a GPU, by chain
  permutation = std::uint64_t{0x10} << 56,            ///< permutation tests of the discrepancy of two runs
  learned_function = std::uint64_t{0x11} << 56,       ///< first weights of a learned balancing function, by its kind
  elimination_order = std::uint64_t{0x12} << 56,      ///< ties in an elimination order, by the trial
  elimination_prefix = std::uint64_t{0x13} << 56,     ///< how far a trial follows the best order so far
  collapse_order = std::uint64_t{0x14} << 56,         ///< ties in an order of summing out, by the trial
  collapse_prefix = std::uint64_t{0x15} << 56,        ///< how far a trial follows the best such order so far
  elimination_annealing = std::uint64_t{0x16} << 56,  ///< rotations of an elimination tree
  training_digits = std::uint64_t{0x17} << 56,        ///< further digits of contrastive divergence on a GPU, by row
  checks = std::uint64_t{0x18} << 56,                 ///< variables that draws are checked at
  network_search = std::uint64_t{0x1d} << 56,         ///< the search for a most probable state, by chain
  experiment_start = std::uint64_t{0x20} << 56,       ///< starting states of `poise reproduce`, by chain
  experiment_choice = std::uint64_t{0x21} << 56,      ///< images at which its reference chains start, by part
  experiment_network = std::uint64_t{0x22} << 56,     ///< networks that are generated for it
  drawn_parameters = std::uint64_t{0x30} << 56,       ///< parameters of models that are drawn, by their kind
  start = std::uint64_t{0x40} << 56,                  ///< the starting state of a chain
  retry = std::uint64_t{0x50} << 56,                  ///< further starting states, where the first has no probability
  repair = std::uint64_t{0x60} << 56,                 ///< moving a starting state into the support
  learning = std::uint64_t{0x80} << 56,               ///< what learning draws beside a chain
  field = ~std::uint64_t{0} - 1,                      ///< the noisy field of an Ising model
  reference = ~std::uint64_t{0},                      ///< the state that Hamming distances are measured from
};

[[nodiscard]] inline Rng make_rng(std::uint64_t seed, Stream purpose, std::uint64_t number = 0) {
  return {seed, static_cast<std::uint64_t>(purpose) + number};
}

}  // namespace poise
