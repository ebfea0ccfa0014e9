/// Hamming distances of all pairs by bits, the two statistics from their histogram, and the permutations in integers.
#include <poise/mmd.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include <poise/extend/base/simd.hpp>
#include "base/thread_pool.hpp"

namespace poise {
namespace {

/// So that sums over all pairs, times the number of draws, fit 63 bits: see PermutationTest.
constexpr std::size_t kMostDraws = std::size_t{1} << 16;

/// Where row i of a symmetric matrix begins, of which only what is left of the diagonal is kept.
constexpr std::size_t row_start(std::size_t i) { return i * (i - (i > 0 ? 1 : 0)) / 2; }

/// The pooled draws with the bits of all variables side by side: `planes` words hold 64 variables, the first the lowest
/// bit of their labels, the next the second bit. Labels are numbered as they come, so that two of them take one bit.
class PackedDraws {
 public:
  PackedDraws(std::span<const std::int8_t> a, std::span<const std::int8_t> b, std::size_t variables)
      : blocks_((variables + 63) / 64) {
    std::array<bool, 256> seen{};
    for (const auto sample : {a, b}) {
      for (const std::int8_t label : sample) seen[static_cast<std::uint8_t>(label)] = true;
    }
    std::array<std::uint8_t, 256> code{};
    unsigned labels = 0;
    for (std::size_t label = 0; label < seen.size(); ++label) {
      if (seen[label]) code[label] = static_cast<std::uint8_t>(labels++);
    }
    while ((1U << planes_) < labels) ++planes_;
    words_.assign((a.size() + b.size()) / variables * blocks_ * planes_, 0);
    std::uint64_t* row = words_.data();
    for (const auto sample : {a, b}) {
      for (std::size_t first = 0; first < sample.size(); first += variables, row += blocks_ * planes_) {
        for (std::size_t i = 0; i < variables; ++i) {
          const std::uint64_t bits = code[static_cast<std::uint8_t>(sample[first + i])];
          for (std::size_t p = 0; p < planes_; ++p) row[i / 64 * planes_ + p] |= (bits >> p & 1) << (i % 64);
        }
      }
    }
  }

  [[nodiscard]] const std::uint64_t* row(std::size_t draw) const { return words_.data() + draw * blocks_ * planes_; }
  [[nodiscard]] std::size_t blocks() const { return blocks_; }
  [[nodiscard]] std::size_t planes() const { return planes_; }

 private:
  std::size_t blocks_;  // of 64 variables
  std::size_t planes_ = 1;
  std::vector<std::uint64_t> words_;
};

/// Two labels differ where any of their bits does.
template <std::size_t kPlanes>
POISE_INLINE std::uint32_t distance(const std::uint64_t* x, const std::uint64_t* y, std::size_t blocks,
                                    std::size_t planes) {
  std::uint32_t sum = 0;
  for (std::size_t block = 0; block < blocks; ++block) {
    std::uint64_t differ = 0;
    const std::size_t count = kPlanes > 0 ? kPlanes : planes;
    for (std::size_t p = 0; p < count; ++p) differ |= *x++ ^ *y++;
    sum += static_cast<std::uint32_t>(std::popcount(differ));
  }
  return sum;
}

/// Distances of draw i from all before it.
void distances_of(const PackedDraws& draws, std::size_t i, std::uint32_t* out) {
  hot([=, &draws] {
    const std::uint64_t* x = draws.row(i);
    const std::size_t blocks = draws.blocks();
    const std::size_t planes = draws.planes();
    if (planes == 1) {
      for (std::size_t j = 0; j < i; ++j) out[j] = distance<1>(x, draws.row(j), blocks, planes);
    } else if (planes == 2) {
      for (std::size_t j = 0; j < i; ++j) out[j] = distance<2>(x, draws.row(j), blocks, planes);
    } else {
      for (std::size_t j = 0; j < i; ++j) out[j] = distance<0>(x, draws.row(j), blocks, planes);
    }
  });
}

/// Permutations that are looked at together, a lane each, and rows of the kernel that share a pass over them.
constexpr std::size_t kLanes = 16;
constexpr std::size_t kRows = 4;
typedef std::uint32_t Words __attribute__((vector_size(32)));  // NOLINT(modernize-use-using): as in simd.hpp

/// All ones in the lanes of the permutations that put a draw into the first sample, zero in the others.
struct alignas(64) Membership {
  std::uint32_t lanes[kLanes];
};

/// The lanes in registers.
struct Lanes {
  Words low;
  Words high;

  POISE_INLINE static Lanes load(const Membership& from) {
    Lanes to;
    std::memcpy(&to.low, from.lanes, sizeof to.low);
    std::memcpy(&to.high, from.lanes + kLanes / 2, sizeof to.high);
    return to;
  }
  POISE_INLINE void add(const Lanes& member, std::uint32_t entry) {
    low += member.low & entry;
    high += member.high & entry;
  }
};

/// Adds to each lane the sum of the kernel over the pairs that are both in the first sample. `kernel` has a multiple of
/// kRows rows, and none of them a sum over 2^32.
void add_pair_sums(const std::uint32_t* kernel, const Membership* in, std::size_t rows, std::uint64_t* sums) {
  hot([=] {
    for (std::size_t first = 0; first < rows; first += kRows) {
      Lanes sum[kRows] = {};
      const std::uint32_t* row[kRows];
      for (std::size_t r = 0; r < kRows; ++r) row[r] = kernel + row_start(first + r);
      for (std::size_t j = 0; j < first; ++j) {
        const Lanes member = Lanes::load(in[j]);
        for (std::size_t r = 0; r < kRows; ++r) sum[r].add(member, row[r][j]);
      }
      for (std::size_t r = 0; r < kRows; ++r) {
        for (std::size_t j = first; j < first + r; ++j) sum[r].add(Lanes::load(in[j]), row[r][j]);
        std::uint32_t row_sum[kLanes];
        std::memcpy(row_sum, &sum[r].low, sizeof sum[r].low);
        std::memcpy(row_sum + kLanes / 2, &sum[r].high, sizeof sum[r].high);
        for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += row_sum[lane] & in[first + r].lanes[lane];
      }
    }
  });
}

/// Knuth's selection sampling: sets `lane` in a random `size` of the draws, all subsets being as likely.
void choose(Rng& rng, std::size_t size, std::size_t lane, std::span<Membership> in) {
  std::size_t missing = size;
  for (std::size_t i = 0; i < in.size() && missing > 0; ++i) {
    if (rng.uniform() * static_cast<double>(in.size() - i) >= static_cast<double>(missing)) continue;
    in[i].lanes[lane] = ~std::uint32_t{0};
    --missing;
  }
}

/// Compares the samples with random splits of the pooled draws.
///
/// Which split is farther apart does not change under k -> a k + b (a > 0), nor by what stands on the diagonal, as the
/// weights of the two samples, 1/m and -1/n, sum to zero. So the kernel is made whole numbers, spread over as many bits
/// as leave the sum of a row within 32: sums are then exact, whatever their order, ties are ties, and the test is
/// exact for the rounded kernel as for any other. With A the sum over the pairs inside the first sample and R the sum
/// of the whole rows of its draws, N = m + n and T the sum of all entries,
///   m^2 n^2 V = N^2 (2 A) - 2 m N R + m^2 T,
/// so that N A - m R puts all splits in order. With a row's sum below 2^32 and N <= 2^16 its size is below 2^63,
/// however the products on the way wrap around.
class PermutationTest {
 public:
  /// Turns the distances into the rounded kernel, in place.
  PermutationTest(std::vector<std::uint32_t>& distances, std::size_t draws_a, std::size_t draws, std::size_t variables)
      : kernel_(distances), draws_a_(draws_a), draws_(draws), row_sums_(draws) {
    const std::size_t pairs = row_start(draws);
    const auto [low, high] = std::minmax_element(kernel_.begin(), kernel_.begin() + static_cast<std::ptrdiff_t>(pairs));
    const std::uint32_t nearest = *low;
    const std::uint32_t farthest = *high;
    const auto size = static_cast<double>(variables);
    const double range = -std::expm1(-static_cast<double>(farthest - nearest) / size);
    const double unit = std::floor(0x1p32 / static_cast<double>(draws)) - 1;
    std::vector<std::uint32_t> rounded(farthest - nearest + 1);
    for (std::size_t h = 0; h + 1 < rounded.size(); ++h) {
      const double above = std::expm1(-static_cast<double>(h) / size) + range;
      rounded[h] = static_cast<std::uint32_t>(std::round(std::clamp(above / range, 0.0, 1.0) * unit));
    }
    for (std::size_t k = 0; k < pairs; ++k) kernel_[k] = rounded[kernel_[k] - nearest];
    for (std::size_t i = 0; i < draws; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const std::uint32_t entry = kernel_[row_start(i) + j];
        row_sums_[i] += entry;
        row_sums_[j] += entry;
      }
    }
  }

  /// How many permutations are as far apart as the samples, or farther.
  [[nodiscard]] std::size_t as_far(const MmdOptions& options, ThreadPool& pool) const {
    // Number 0 is the samples as they are.
    std::vector<std::int64_t> order(options.permutations + 1);
    const std::size_t blocks = (order.size() + kLanes - 1) / kLanes;
    const std::size_t rows = (draws_ + kRows - 1) / kRows * kRows;
    pool.for_each(blocks, [&](std::size_t block) {
      std::vector<Membership> in(rows);
      const std::size_t first = block * kLanes;
      const std::size_t count = std::min(kLanes, order.size() - first);
      for (std::size_t lane = 0; lane < count; ++lane) {
        const std::size_t chosen_among = first + lane == 0 ? draws_a_ : draws_;
        Rng rng = make_rng(options.seed, Stream::permutation, first + lane);
        choose(rng, draws_a_, lane, std::span(in).first(chosen_among));
      }
      const std::array<std::int64_t, kLanes> values = orders(in);
      std::copy_n(values.begin(), count, order.begin() + static_cast<std::ptrdiff_t>(first));
    });
    return static_cast<std::size_t>(
        std::count_if(order.begin() + 1, order.end(), [&](std::int64_t value) { return value >= order[0]; }));
  }

 private:
  /// N A - m R of each lane.
  [[nodiscard]] std::array<std::int64_t, kLanes> orders(const std::vector<Membership>& in) const {
    std::array<std::uint64_t, kLanes> pairs{};
    add_pair_sums(kernel_.data(), in.data(), in.size(), pairs.data());
    std::array<std::uint64_t, kLanes> whole_rows{};
    for (std::size_t i = 0; i < draws_; ++i) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) whole_rows[lane] += in[i].lanes[lane] & row_sums_[i];
    }
    std::array<std::int64_t, kLanes> values{};
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      values[lane] = static_cast<std::int64_t>(draws_ * pairs[lane] - draws_a_ * whole_rows[lane]);
    }
    return values;
  }

  std::vector<std::uint32_t>& kernel_;
  std::size_t draws_a_;
  std::size_t draws_;
  std::vector<std::uint32_t> row_sums_;
};

/// How many pairs of different draws stand at a distance: both in a, both in b, one in each.
struct PairCounts {
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t both = 0;
};

std::vector<PairCounts> count_pairs(const std::vector<std::uint32_t>& distances, std::size_t draws_a, std::size_t draws,
                                    std::size_t variables) {
  std::vector<PairCounts> counts(variables + 1);
  for (std::size_t i = 0; i < draws; ++i) {
    const std::uint32_t* row = distances.data() + row_start(i);
    for (std::size_t j = 0; j < std::min(i, draws_a); ++j) ++(i < draws_a ? counts[row[j]].a : counts[row[j]].both);
    for (std::size_t j = draws_a; j < i; ++j) ++counts[row[j]].b;
  }
  return counts;
}

/// Each is a sum over the distances of k times a whole number that vanishes when both samples hold the same draws.
/// These numbers sum to zero, so k - 1 may stand for k, which loses nothing where all distances are small.
void add_statistics(const std::vector<PairCounts>& counts, MmdResult& result) {
  const auto m = static_cast<std::int64_t>(result.draws_a);
  const auto n = static_cast<std::int64_t>(result.draws_b);
  double v = 0.0;
  double u = 0.0;
  for (std::size_t h = 1; h < counts.size(); ++h) {
    const double k_less_one = std::expm1(-static_cast<double>(h) / static_cast<double>(result.variables));
    const PairCounts& pairs = counts[h];
    v += k_less_one * static_cast<double>(2 * (pairs.a * n * n + pairs.b * m * m - pairs.both * m * n));
    u += k_less_one *
         static_cast<double>(2 * (pairs.a * n * (n - 1) + pairs.b * m * (m - 1) - pairs.both * (m - 1) * (n - 1)));
  }
  const auto ordered_pairs = [](std::int64_t draws) { return static_cast<double>(draws * (draws - 1)); };
  result.v_statistic = std::max(v / (static_cast<double>(m * m) * static_cast<double>(n * n)), 0.0);
  if (m > 1 && n > 1) result.u_statistic = u / (ordered_pairs(m) * ordered_pairs(n));
}

}  // namespace

double MmdResult::mmd() const { return std::sqrt(v_statistic); }
double MmdResult::log10_mmd() const { return 0.5 * std::log10(v_statistic); }

MmdResult mmd(std::span<const std::int8_t> a, std::span<const std::int8_t> b, std::size_t variables,
              const MmdOptions& options) {
  if (variables == 0 || a.empty() || b.empty() || a.size() % variables != 0 || b.size() % variables != 0) {
    throw InputError("found samples of " + std::to_string(a.size()) + " and " + std::to_string(b.size()) +
                     " labels, expected at least one draw of " + std::to_string(variables) + " variables in each");
  }
  MmdResult result;
  result.variables = variables;
  result.draws_a = a.size() / variables;
  result.draws_b = b.size() / variables;
  const std::size_t draws = result.draws_a + result.draws_b;
  if (draws > kMostDraws) {
    throw InputError("found " + std::to_string(draws) + " draws in both samples together, expected at most " +
                     std::to_string(kMostDraws));
  }
  ThreadPool pool(std::max(1U, options.threads == 0 ? std::thread::hardware_concurrency() : options.threads));
  // Up to a multiple of kRows draws, the last of which are not there: their rows are zero.
  std::vector<std::uint32_t> distances(row_start((draws + kRows - 1) / kRows * kRows));
  {
    const PackedDraws packed(a, b, variables);
    constexpr std::size_t kStripe = 16;
    pool.for_each((draws + kStripe - 1) / kStripe, [&](std::size_t stripe) {
      for (std::size_t i = stripe * kStripe; i < std::min(draws, (stripe + 1) * kStripe); ++i) {
        distances_of(packed, i, distances.data() + row_start(i));
      }
    });
  }
  add_statistics(count_pairs(distances, result.draws_a, draws, variables), result);
  if (options.permutations > 0) {
    const PermutationTest test(distances, result.draws_a, draws, variables);
    result.permutations = options.permutations;
    result.as_far = test.as_far(options, pool);
    result.p_value = static_cast<double>(result.as_far + 1) / static_cast<double>(result.permutations + 1);
  }
  return result;
}

}  // namespace poise
