/// Packing, counting and autocovariances of chains of zeros and ones.
#include "diagnose/bit_chains.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include <poise/extend/base/hot.hpp>

#include "diagnose/effective_size.hpp"
#include "diagnose/real_chains.hpp"

namespace poise::diagnose_detail {
namespace {

POISE_INLINE std::uint64_t count_ones_as_built(const std::uint64_t* words, std::size_t count) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += static_cast<std::uint64_t>(std::popcount(words[i]));
  return sum;
}

POISE_INLINE std::uint64_t count_pairs_as_built(const std::uint64_t* words, std::size_t count, std::size_t lag) {
  const std::size_t skip = lag / 64;
  const unsigned shift = lag % 64;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i + skip < count; ++i) {
    const std::uint64_t later = (words[i + skip] >> shift) | ((words[i + skip + 1] << 1) << (63 - shift));
    sum += static_cast<std::uint64_t>(std::popcount(words[i] & later));
  }
  return sum;
}

POISE_INLINE void count_between_as_built(const std::uint64_t* words, std::span<const std::size_t> ends,
                                         std::uint32_t* ones) {
  std::uint64_t whole = 0, before = 0;
  std::size_t word = 0;
  for (std::size_t k = 0; k < ends.size(); ++k) {
    for (; word < ends[k] / 64; ++word) whole += static_cast<std::uint64_t>(std::popcount(words[word]));
    const std::uint64_t begun = words[word] & ((std::uint64_t{1} << ends[k] % 64) - 1);
    const std::uint64_t now = whole + static_cast<std::uint64_t>(std::popcount(begun));
    ones[k] = static_cast<std::uint32_t>(now - before);
    before = now;
  }
}

// The counting loops are compiled for vectors of counts, for one count at a time and without the popcount instruction,
// and chosen when the program starts. Sanitizers do not get along with that.
#if defined(__x86_64__) && !defined(POISE_SANITIZED)
#define POISE_COUNTING(name, instructions)                                                           \
  __attribute__((target(instructions)))                                                              \
  std::uint64_t count_ones_##name(const std::uint64_t* words, std::size_t count) {                   \
    return count_ones_as_built(words, count);                                                        \
  }                                                                                                  \
  __attribute__((target(instructions)))                                                              \
  std::uint64_t count_pairs_##name(const std::uint64_t* words, std::size_t count, std::size_t lag) { \
    return count_pairs_as_built(words, count, lag);                                                  \
  }
__attribute__((target("popcnt"))) void count_between_one(const std::uint64_t* words, std::span<const std::size_t> ends,
                                                         std::uint32_t* ones) {
  count_between_as_built(words, ends, ones);
}
POISE_COUNTING(vectors, "avx512f,avx512vl,avx512vpopcntdq,popcnt")
POISE_COUNTING(one, "popcnt")
#undef POISE_COUNTING

const bool kHasVectors = __builtin_cpu_supports("avx512vpopcntdq");
const bool kHasOne = __builtin_cpu_supports("popcnt");

std::uint64_t count_ones(const std::uint64_t* words, std::size_t count) {
  if (kHasVectors && kInstructionSet == InstructionSet::avx512) return count_ones_vectors(words, count);
  return kHasOne ? count_ones_one(words, count) : count_ones_as_built(words, count);
}
/// Reads the word behind the last end, too.
void count_between(const std::uint64_t* words, std::span<const std::size_t> ends, std::uint32_t* ones) {
  kHasOne ? count_between_one(words, ends, ones) : count_between_as_built(words, ends, ones);
}
/// Number of i with bits i and i + lag both set. Reads word `count`, which is zero.
std::uint64_t count_pairs(const std::uint64_t* words, std::size_t count, std::size_t lag) {
  if (kHasVectors && kInstructionSet == InstructionSet::avx512) return count_pairs_vectors(words, count, lag);
  return kHasOne ? count_pairs_one(words, count, lag) : count_pairs_as_built(words, count, lag);
}
#else
void count_between(const std::uint64_t* words, std::span<const std::size_t> ends, std::uint32_t* ones) {
  count_between_as_built(words, ends, ones);
}
std::uint64_t count_ones(const std::uint64_t* words, std::size_t count) { return count_ones_as_built(words, count); }
/// Number of i with bits i and i + lag both set. Reads word `count`, which is zero.
std::uint64_t count_pairs(const std::uint64_t* words, std::size_t count, std::size_t lag) {
  return count_pairs_as_built(words, count, lag);
}
#endif

/// Lags counted one by one before the FFT is considered for the rest. Short chains never get there.
constexpr std::size_t fewest_direct_lags = 4096;

/// Whether counting the lags from `lag` on takes longer than the FFT of a chain of n: a butterfly takes about as long
/// as eight words.
bool transform_is_faster(std::size_t n, std::size_t lag) {
  const auto rest = static_cast<double>(n - lag);
  const auto length = 2.0 * static_cast<double>(n);
  return lag >= fewest_direct_lags && rest * rest / 128.0 > 8.0 * length * std::log2(length);
}

/// What one chain of n draws adds to the autocovariance at a lag t, times n^2. With k ones, S pairs of ones at that
/// lag, and H and T ones among the first and the last n - t draws,
///   sum (x_i - k/n)(x_{i+t} - k/n) = S - k (H + T)/n + (n - t) k^2/n^2,
/// so n^2 times it is a whole number. Up to two million draws it fits a word, however the terms on the way wrap around.
double scaled_products(std::uint64_t n, std::uint64_t k, std::uint64_t pairs, std::uint64_t ends, std::uint64_t lag) {
  if (n <= (std::uint64_t{1} << 21)) {
    return static_cast<double>(static_cast<std::int64_t>(n * (n * pairs - k * ends) + (n - lag) * k * k));
  }
  const auto length = static_cast<long double>(n);
  const auto ones = static_cast<long double>(k);
  return static_cast<double>(length *
                                 (length * static_cast<long double>(pairs) - ones * static_cast<long double>(ends)) +
                             static_cast<long double>(n - lag) * ones * ones);
}

/// Autocovariance averaged over the chains, found as far as it is asked for.
class BitAutocovariance {
 public:
  explicit BitAutocovariance(const BitChains& chains)
      : chains_(chains), head_(chains.chains()), tail_(chains.chains()) {
    for (std::size_t chain = 0; chain < chains.chains(); ++chain) {
      head_[chain] = tail_[chain] = chains.ones(chain);
      moves_ = moves_ || (chains.ones(chain) != 0 && chains.ones(chain) != chains.length());
    }
  }

  double operator()(std::size_t lag) {
    if (!moves_) return 0;
    while (lag >= sums_.size()) extend();
    return sums_[lag] / static_cast<double>(chains_.length() * chains_.chains());
  }

 private:
  void extend() {
    const std::size_t lag = sums_.size();
    if (transform_is_faster(chains_.length(), lag)) {
      transform();
      return;
    }
    const std::size_t n = chains_.length();
    double sum = 0;
    for (std::size_t chain = 0; chain < chains_.chains(); ++chain) {
      if (lag > 0) {
        head_[chain] -= chains_.bit(chain, n - lag) ? 1 : 0;
        tail_[chain] -= chains_.bit(chain, lag - 1) ? 1 : 0;
      }
      const std::uint64_t k = chains_.ones(chain);
      if (k == 0 || k == n) continue;
      const std::uint64_t pairs = count_pairs(chains_.words(chain), chains_.word_count(), lag);
      sum += scaled_products(n, k, pairs, head_[chain] + tail_[chain], lag);
    }
    sums_.push_back(sum / (static_cast<double>(n) * static_cast<double>(n)));
  }

  void transform() {
    const std::size_t n = chains_.length();
    std::vector<double> centered;
    centered.reserve(n * chains_.chains());
    for (std::size_t chain = 0; chain < chains_.chains(); ++chain) {
      const double mean = static_cast<double>(chains_.ones(chain)) / static_cast<double>(n);
      for (std::size_t i = 0; i < n; ++i) centered.push_back((chains_.bit(chain, i) ? 1.0 : 0.0) - mean);
    }
    sums_ = summed_autocovariance(centered, n);
  }

  const BitChains& chains_;
  std::vector<std::uint64_t> head_;
  std::vector<std::uint64_t> tail_;
  std::vector<double> sums_;
  bool moves_ = false;
};

/// Variance of the means of the chains (ddof 1), from whole numbers.
double variance_of_means(const BitChains& chains) {
  long double sum = 0;
  long double squares = 0;
  for (std::size_t chain = 0; chain < chains.chains(); ++chain) {
    const auto k = static_cast<long double>(chains.ones(chain));
    sum += k;
    squares += k * k;
  }
  const auto m = static_cast<long double>(chains.chains());
  const auto n = static_cast<long double>(chains.length());
  return static_cast<double>((m * squares - sum * sum) / (m * (m - 1) * n * n));
}

bool all_equal(const BitChains& chains) {
  const std::uint64_t ones = chains.ones();
  return ones == 0 || ones == chains.chains() * chains.length();
}

}  // namespace

void BitChains::reset(std::size_t chains, std::size_t length) {
  length_ = length;
  stride_ = (length + 63) / 64 + 1;
  words_.assign(chains * stride_, 0);
  ones_.assign(chains, 0);
}

void BitChains::fill_equal(std::size_t chain, const std::int8_t* bytes, std::int8_t value) {
  std::uint64_t* words = words_.data() + chain * stride_;
  std::size_t i = 0;
  if constexpr (std::endian::native == std::endian::little) {
    // Eight bytes of 0 or 1 at a time: the product gathers bit 0 of byte j into bit 56 + j.
    for (; i + 8 <= length_; i += 8) {
      std::uint8_t equal[8];
      for (std::size_t j = 0; j < 8; ++j) equal[j] = bytes[i + j] == value ? 1 : 0;
      std::uint64_t packed;
      std::memcpy(&packed, equal, sizeof packed);
      words[i / 64] |= ((packed * 0x0102040810204080U) >> 56) << (i % 64);
    }
  }
  for (; i < length_; ++i) words[i / 64] |= static_cast<std::uint64_t>(bytes[i] == value) << (i % 64);
}

void BitChains::take_halves(const BitChains& whole) {
  const std::size_t half = whole.length_ / 2;
  reset(2 * whole.chains(), half);
  const std::uint64_t last_mask = half % 64 == 0 ? ~std::uint64_t{0} : (std::uint64_t{1} << (half % 64)) - 1;
  for (std::size_t chain = 0; chain < chains(); ++chain) {
    const std::size_t from = chain % 2 == 0 ? 0 : whole.length_ - half;
    const std::uint64_t* source = whole.words(chain / 2) + from / 64;
    const unsigned shift = from % 64;
    std::uint64_t* target = words_.data() + chain * stride_;
    for (std::size_t i = 0; i < word_count(); ++i) {
      target[i] = (source[i] >> shift) | ((source[i + 1] << 1) << (63 - shift));
    }
    if (half > 0) target[word_count() - 1] &= last_mask;
  }
  count();
}

std::uint64_t BitChains::ones() const { return std::accumulate(ones_.begin(), ones_.end(), std::uint64_t{0}); }

void BitChains::count() {
  for (std::size_t chain = 0; chain < chains(); ++chain) ones_[chain] = count_ones(words(chain), word_count());
}

void BitChains::count(std::size_t chain, std::span<const std::size_t> ends, std::span<std::uint32_t> ones) const {
  count_between(words(chain), ends, ones.data());
}

// A transition has a one on one side only: of the k ones, those at the ends of a chain have one neighbour, all others
// two, and a pair of ones uses up two neighbours.
std::uint64_t BitChains::transitions() const {
  std::uint64_t sum = 0;
  for (std::size_t chain = 0; chain < chains(); ++chain) {
    if (ones_[chain] == 0) continue;
    const std::uint64_t ends = (bit(chain, 0) ? 1U : 0U) + (bit(chain, length_ - 1) ? 1U : 0U);
    sum += 2 * ones_[chain] - ends - 2 * count_pairs(words(chain), word_count(), 1);
  }
  return sum;
}

BitMixing mixing_of(const BitChains& chains) {
  BitMixing mixing{undefined, undefined, 1.0};
  if (chains.length() < 2 || all_equal(chains)) return mixing;
  const auto n = static_cast<double>(chains.length());
  double within = 0;
  for (std::size_t chain = 0; chain < chains.chains(); ++chain) {
    const auto k = static_cast<double>(chains.ones(chain));
    within += k * (n - k) / (n * (n - 1));
  }
  const double between = variance_of_means(chains);
  mixing.r_hat = split_r_hat(chains.length(), between, within / static_cast<double>(chains.chains()));
  if (chains.length() < 3) return mixing;
  // Autocovariances are most of the work; both numbers need the same ones.
  BitAutocovariance lags(chains);
  mixing.ess = effective_size(chains.chains(), chains.length(), between, lags);
  if (mixing.r_hat > r_hat_limit) {
    const double effective = effective_if_stationary(chains.chains(), chains.length(), between, lags);
    mixing.chance = chance_of_r_hat(chains.chains(), chains.length(), mixing.r_hat, effective);
  }
  return mixing;
}

}  // namespace poise::diagnose_detail
