/// Counting with adders of single bits, weighing with masked additions.
#include <poise/lanes/bit_sums.hpp>

#include <algorithm>

namespace poise {

namespace {

constexpr unsigned kPlanes = 33;  // counts of up to 2^32 variables

/// Adds words bit by bit: plane p counts 2^p. Eight words go through a tree of adders (Harley and Seal), so that the
/// higher planes are touched once for all of them.
template <unsigned W>
class BitAdder {
 public:
  POISE_INLINE void add(const BitVector<W>& word) {
    waiting_[count_++] = word;
    if (count_ == 8) flush();
  }

  POISE_INLINE void flush() {
    for (; count_ < 8; ++count_) waiting_[count_] = BitVector<W>{};
    count_ = 0;
    BitVector<W> twos[4], fours[2], eights;
    for (unsigned k = 0; k < 4; ++k) twos[k] = join(plane_[0], waiting_[2 * k], waiting_[2 * k + 1]);
    for (unsigned k = 0; k < 2; ++k) fours[k] = join(plane_[1], twos[2 * k], twos[2 * k + 1]);
    eights = join(plane_[2], fours[0], fours[1]);
    for (unsigned p = 3; p < kPlanes && any_bit<W>(eights); ++p) {
      const BitVector<W> carry = plane_[p] & eights;
      plane_[p] ^= eights;
      eights = carry;
    }
  }

  void write(std::span<std::int64_t> out) {
    std::fill(out.begin(), out.end(), 0);
    for (unsigned p = 0; p < kPlanes; ++p) {
      for (unsigned w = 0; w < W; ++w) {
        for (std::uint64_t bits = plane_[p][w]; bits != 0; bits &= bits - 1) {
          out[64 * w + static_cast<unsigned>(__builtin_ctzll(bits))] += std::int64_t{1} << p;
        }
      }
    }
  }

 private:
  /// Leaves the sum of three bits in the first and gives the carry.
  POISE_INLINE static BitVector<W> join(BitVector<W>& a, const BitVector<W>& b, const BitVector<W>& c) {
    const BitVector<W> differ = a ^ b;
    const BitVector<W> carry = (a & b) | (differ & c);
    a = differ ^ c;
    return carry;
  }

  BitVector<W> plane_[kPlanes] = {};
  BitVector<W> waiting_[8] = {};
  unsigned count_ = 0;
};

template <unsigned W>
POISE_INLINE BitVector<W> term_of(const std::uint64_t* state, const BitTerm& term) {
  const BitVector<W> first = load_bits<W>(state + std::size_t{term.first} * W);
  return term.second == BitTerm::kNone ? first : first ^ load_bits<W>(state + std::size_t{term.second} * W);
}

/// Calls `work` with the number of words as a constant.
template <class Work>
void with_words(std::size_t words, Work&& work) {
  switch (words) {
    case 1: work(std::integral_constant<unsigned, 1>()); break;
    case 2: work(std::integral_constant<unsigned, 2>()); break;
    case 4: work(std::integral_constant<unsigned, 4>()); break;
    default: work(std::integral_constant<unsigned, 8>()); break;
  }
}

}  // namespace

void count_terms(const std::uint64_t* state, std::size_t words, std::span<const BitTerm> terms,
                 std::span<std::int64_t> out) {
  with_words(words, [&](auto constant) {
    constexpr unsigned W = constant();
    BitAdder<W> adder;
    hot([&adder, state, terms] {
      BitAdder<W> sum;
      for (const BitTerm& term : terms) sum.add(term_of<W>(state, term));
      sum.flush();
      adder = sum;
    });
    adder.write(out);
  });
}

void count_differences(const std::uint64_t* state, std::size_t words, std::span<const Value> reference,
                       std::span<std::int64_t> out) {
  with_words(words, [&](auto constant) {
    constexpr unsigned W = constant();
    BitAdder<W> adder;
    hot([&adder, state, reference] {
      BitAdder<W> sum;
      for (std::size_t i = 0; i < reference.size(); ++i) {
        const std::uint64_t other = reference[i] != 0 ? ~std::uint64_t{0} : 0;
        sum.add(load_bits<W>(state + i * W) ^ other);
      }
      sum.flush();
      adder = sum;
    });
    adder.write(out);
  });
}

void weigh_terms(const std::uint64_t* state, std::size_t words, std::span<const BitTerm> terms,
                 std::span<const std::int64_t> weights, std::span<std::int64_t> out) {
  // NOLINTNEXTLINE(modernize-use-using): the attribute needs the old form
  typedef std::int64_t Lanes __attribute__((vector_size(64)));
  for (std::size_t w = 0; w < words; ++w) {
    std::int64_t* const to = out.data() + 64 * w;
    hot([=] {
      constexpr Lanes kBits = {1, 2, 4, 8, 16, 32, 64, 128};
      Lanes sums[8] = {};
      for (std::size_t t = 0; t < terms.size(); ++t) {
        std::uint64_t word = state[terms[t].first * words + w];
        if (terms[t].second != BitTerm::kNone) word ^= state[terms[t].second * words + w];
        const Lanes copies = Lanes{} + static_cast<std::int64_t>(word);
        const Lanes weight = Lanes{} + weights[t];
        for (unsigned g = 0; g < 8; ++g) sums[g] += weight & ((copies & (kBits << (8 * g))) != 0);
      }
      std::memcpy(to, sums, sizeof sums);
    });
  }
}

}  // namespace poise
