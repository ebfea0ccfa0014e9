/// Sweeps of chains that are bits.
#include <poise/lanes/bit_block.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <poise/lanes/keyed_words.hpp>

namespace poise {

namespace {

/// The random digits of the chains of one word.
struct DigitSource {
  std::array<std::uint64_t, 4> first_keys;  // by sixteen chains
  std::array<std::uint64_t, 4> second_keys;
  std::uint64_t scattered;  // of the first digits

  [[nodiscard]] std::uint64_t digit(unsigned number, unsigned bit) const {
    const unsigned some = bit / kKeyChains;
    const std::uint64_t word =
        keyed_word(first_keys[some], second_keys[some], scattered + number / kKeyDigits * kWordStep);
    return word >> (number % kKeyDigits * kKeyChains + bit % kKeyChains) & 1;
  }
};

/// What follows when the tabled digits did not decide: the bits of `undecided` that are up.
[[gnu::noinline]] std::uint64_t decide_rest(const BitTables& tables, Index variable, const std::uint64_t* neighbours,
                                            std::size_t stride, unsigned size, std::uint64_t undecided,
                                            const DigitSource& source) {
  std::uint64_t up = 0;
  for (; undecided != 0; undecided &= undecided - 1) {
    const auto bit = static_cast<unsigned>(__builtin_ctzll(undecided));
    unsigned configuration = 0;
    for (unsigned k = 0; k < size; ++k) configuration |= static_cast<unsigned>(neighbours[k * stride] >> bit & 1) << k;
    const std::uint64_t threshold = tables.threshold(variable, configuration);
    std::uint64_t drawn = 0;
    for (unsigned digit = BitTables::kDigits; digit < 64; ++digit) drawn = 2 * drawn + source.digit(digit, bit);
    const std::uint64_t wanted = threshold & 0xffffffff;
    if (drawn < wanted || (drawn == wanted && threshold == ~std::uint64_t{0})) up |= std::uint64_t{1} << bit;
  }
  return up;
}

/// All sixteen functions of two bits, by their truth table.
template <unsigned W>
POISE_INLINE void functions_of_two(const BitVector<W>& a, const BitVector<W>& b, BitVector<W>* out) {
  const BitVector<W> none = {};
  const BitVector<W> both = a & b;
  const BitVector<W> one = a ^ b;
  const BitVector<W> only_a = a & ~b;
  const BitVector<W> only_b = b & ~a;
  const BitVector<W> neither = ~(a | b);
  const BitVector<W> table[16] = {none, neither, only_a, ~b,      only_b, ~a,      one,   ~both,
                                  both, ~one,    a,      ~only_b, b,      ~only_a, a | b, ~none};
  for (unsigned k = 0; k < 16; ++k) out[k] = table[k];
}

/// Where the digits of update number `update` begin. Sixteen words have 64 digits.
template <class Word>
POISE_INLINE Word scatter(const Word& update) {
  return (update << 4) * kWordStep;
}

/// From four digits of sixteen chains in each word to one digit of sixty-four: a transposition of fields.
template <unsigned W>
POISE_INLINE void digits_of_words(BitVector<W>* words) {
  const auto exchange = [](BitVector<W>& a, BitVector<W>& b, unsigned shift, std::uint64_t mask) {
    const BitVector<W> low = (a & mask) | (b << shift & ~mask);
    b = (a >> shift & mask) | (b & ~mask);
    a = low;
  };
  exchange(words[0], words[1], 16, 0x0000ffff0000ffff);
  exchange(words[2], words[3], 16, 0x0000ffff0000ffff);
  exchange(words[0], words[2], 32, 0x00000000ffffffff);
  exchange(words[1], words[3], 32, 0x00000000ffffffff);
}

/// A vector of what `at` gives for each lane.
template <class At>
POISE_INLINE BitVector<8> gather8(At&& at) {
  const BitVector<8> lanes = {at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)};
  return lanes;
}

/// Eight indices side by side.
POISE_INLINE BitVector<8> widen8(const Index* from) {
  // NOLINTNEXTLINE(modernize-use-using): the attribute needs the old form
  typedef std::uint32_t Narrow __attribute__((vector_size(32)));
  Narrow narrow;
  std::memcpy(&narrow, from, sizeof narrow);
  return __builtin_convertvector(narrow, BitVector<8>);
}

template <class Digit>
POISE_INLINE BitVector<8> load_lanes(const Digit* from) {
  BitVector<8> lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

template <unsigned size>
POISE_INLINE const auto& digits_of(const BitTables::Run& run) {
  if constexpr (size == 4) return run.digits4;
  if constexpr (size == 5) return run.digits5;
  if constexpr (size == 6) return run.digits6;
}

}  // namespace

BitBlock::BitBlock(std::shared_ptr<const BitTables> tables, ChainGroup group, std::uint64_t seed,
                   std::uint64_t first_chain)
    : tables_(std::move(tables)),
      group_(group),
      first_chain_(first_chain),
      first_word_((first_chain + group.first) / 64),
      words_(std::bit_ceil((first_chain + group.first + group.count - 1) / 64 - first_word_ + 1)),
      counts_(tables_->variables(), words_, lane_number(group.first), group.count, is_few()) {
  for (std::size_t w = 0; w < words_; ++w) {
    for (std::size_t some = 0; some < 4; ++some) {
      const WordKey key = word_key(seed, Stream::bits, (first_word_ + w) * 4 + some);
      first_keys_[some][w] = key.first;
      second_keys_[some][w] = key.second;
    }
  }
  for (std::size_t c = group.first; c < group.first + group.count; ++c) {
    chains_[lane(c).word] |= std::uint64_t{1} << lane(c).bit;
  }
  state_.assign((tables_->variables() + std::size_t{1}) * words_, 0);
}

/// One look at every variable of the run. A digit that decides: the random bit differs from that of the probability;
/// the variable is up where the probability has the larger one.
template <unsigned W, unsigned size>
void BitBlock::sweep_run(const BitTables::Run& run) {
  const auto* const head = digits_of<size>(run).head.data();
  const auto* const tail = digits_of<size>(run).tail.data();
  const Index* const variables = run.variable.data();
  const Index* const blankets = run.blanket.data();
  const std::size_t count = run.count;
  std::uint64_t* const state = state_.data();
  const std::size_t position = run.first;
  const std::uint64_t base = sweeps_ * tables_->variables();
  const BitTables* const tables = tables_.get();
  const Keys* const first_keys = &first_keys_;
  const Keys* const second_keys = &second_keys_;
  hot([=, chains = chains_] {
    const BitVector<W> all = load_bits<W>(chains.data());
    for (std::size_t k = 0; k < count; ++k) {
      BitVector<W> x[size];
      for (unsigned j = 0; j < size; ++j) x[j] = load_bits<W>(state + blankets[k * size + j] * W);
      BitVector<W> table[16];
      functions_of_two<W>(x[0], x[1], table);
      const auto* digit = head + k * BitTables::kHead;
      const std::uint64_t scattered = scatter(base + variables[k]);
      BitVector<W> up = {};
      BitVector<W> undecided = all;
      unsigned d = 0;
      do {
        BitVector<W> random[4];
        for (unsigned some = 0; some < 4; ++some) {
          random[some] = keyed_word(load_bits<W>((*first_keys)[some].data()), load_bits<W>((*second_keys)[some].data()),
                                    scattered + d / kKeyDigits * kWordStep);
        }
        digits_of_words<W>(random);
        for (unsigned a = 0; a < kKeyDigits; ++a) {
          // The first two neighbours select by looking up, the others by choosing between two.
          constexpr unsigned kLookUps = 1U << (size - 2);
          BitVector<W> value[kLookUps];
          for (unsigned j = 0; j < kLookUps; ++j) value[j] = table[digit[d + a] >> (4 * j) & 15];
          for (unsigned j = 2; j < size; ++j) {
            for (unsigned m = 0; m < kLookUps >> (j - 1); ++m) {
              value[m] = select_bits(x[j], value[2 * m], value[2 * m + 1]);
            }
          }
          const BitVector<W> differs = random[a] ^ value[0];
          up |= undecided & differs & value[0];
          undecided &= ~differs;
        }
        d += kKeyDigits;
        if (d == BitTables::kHead) digit = tail + k * (BitTables::kDigits - BitTables::kHead) - BitTables::kHead;
      } while (any_bit<W>(undecided) && d < BitTables::kDigits);
      if (d == BitTables::kDigits) {
        std::uint64_t neighbours[size * W];
        for (unsigned j = 0; j < size; ++j) store_bits(neighbours + j * W, x[j]);
        for (unsigned w = 0; w < W; ++w) {
          if (undecided[w] == 0) continue;
          DigitSource source{{}, {}, scattered};
          for (unsigned some = 0; some < 4; ++some) {
            source.first_keys[some] = (*first_keys)[some][w];
            source.second_keys[some] = (*second_keys)[some][w];
          }
          up[w] |= decide_rest(*tables, variables[k], neighbours + w, W, size, undecided[w], source);
        }
      }
      store_bits(state + (position + k) * W, up);
    }
  });
}

/// The same for a block of few chains: a vector has eight variables of the run in its lanes, and the chains take turns.
/// Random words and digits are those of `sweep_run`, and so are the states.
template <unsigned size>
void BitBlock::sweep_few(const BitTables::Run& run) {
  const auto* const head = digits_of<size>(run).head.data();
  const auto* const tail = digits_of<size>(run).tail.data();
  const Index* const variables = run.variable.data();
  const Index* const blankets = run.blanket.data();
  const Index* const together = run.side_by_side.data();
  const std::size_t count = run.count;
  std::uint64_t* const state = state_.data();
  const std::size_t position = run.first;
  const std::uint64_t base = sweeps_ * tables_->variables();
  const BitTables* const tables = tables_.get();
  const Keys* const first_keys = &first_keys_;
  const Keys* const second_keys = &second_keys_;
  hot([=, all = chains_[0]] {
    using Lanes = BitVector<8>;
    constexpr unsigned kConfigurations = 1U << size;
    constexpr unsigned kAhead = 64 / kConfigurations;  // digits that one load brings
    constexpr unsigned kStride = BitTables::kHead;     // digits that are looked at before it is asked who is undecided
    for (std::size_t start = 0; start < count; start += 8) {
      // The last vector goes back to variables of the one before: they come out the same.
      const std::size_t k = std::min(start, count - std::min<std::size_t>(8, count));
      Lanes x[size];
      for (unsigned j = 0; j < size; ++j) {
        const Index side = together[start / 8 * size + j];
        x[j] = side != BitTables::kApart
                   ? load_bits<8>(state + side)
                   : gather8([=](unsigned lane) { return state[blankets[(k + lane) * size + j]]; });
      }
      const Lanes numbers = widen8(variables + k);
      const Lanes scattered = scatter(numbers + base);
      const auto table_of = [=](const auto* digits, unsigned each, unsigned digit) {
        return gather8([=](unsigned lane) {
          std::uint64_t ahead;
          std::memcpy(&ahead, digits + (k + lane) * each + digit, sizeof ahead);
          return ahead;
        });
      };
      Lanes table[kStride / kAhead];
      if constexpr (size == 4) {
        // Two words of each of eight variables, side by side: the first ones, the second ones.
        const Lanes low = load_lanes(head + k * BitTables::kHead);
        const Lanes high = load_lanes(head + (k + 4) * BitTables::kHead);
        table[0] = __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14);
        table[1] = __builtin_shufflevector(low, high, 1, 3, 5, 7, 9, 11, 13, 15);
      } else {
        for (unsigned t = 0; t < kStride / kAhead; ++t) table[t] = table_of(head, BitTables::kHead, t * kAhead);
      }
      Lanes after = {};
      for (unsigned some = 0; some < 4; ++some) {
        const std::uint64_t mine = all >> (kKeyChains * some) & 0xffff;
        if (mine == 0) continue;
        const Lanes first = Lanes{} + (*first_keys)[some][0];
        const Lanes second = Lanes{} + (*second_keys)[some][0];
        Lanes random[kStride / kKeyDigits];
        for (unsigned r = 0; r < kStride / kKeyDigits; ++r)
          random[r] = keyed_word(first, second, scattered + r * kWordStep);
        for (std::uint64_t chains = mine; chains != 0; chains &= chains - 1) {
          const auto bit = static_cast<unsigned>(__builtin_ctzll(chains));
          const unsigned own = kKeyChains * some + bit;
          Lanes configuration = {};
          for (unsigned j = 0; j < size; ++j) configuration |= (x[j] >> own & 1) << j;
          Lanes up = {};
          Lanes undecided = Lanes{} + 1;
          for (unsigned d = 0; d < kStride; ++d) {
            const Lanes value = table[d / kAhead] >> (configuration + d % kAhead * kConfigurations);
            const Lanes differs = (random[d / kKeyDigits] >> (d % kKeyDigits * kKeyChains + bit)) ^ value;
            up |= undecided & differs & value;
            undecided &= ~differs;
          }
          for (unsigned d = kStride; any_bit<8>(undecided) && d < BitTables::kDigits; ++d) {
            const Lanes later = table_of(tail, BitTables::kDigits - BitTables::kHead, (d - kStride) / kAhead * kAhead);
            const Lanes value = later >> (configuration + d % kAhead * kConfigurations);
            const Lanes word = keyed_word(first, second, scattered + d / kKeyDigits * kWordStep);
            const Lanes differs = (word >> (d % kKeyDigits * kKeyChains + bit)) ^ value;
            up |= undecided & differs & value;
            undecided &= ~differs;
          }
          if (any_bit<8>(undecided)) {
            for (unsigned lane = 0; lane < 8; ++lane) {
              if (undecided[lane] == 0) continue;
              std::uint64_t neighbours[size];
              for (unsigned j = 0; j < size; ++j) neighbours[j] = x[j][lane];
              DigitSource source{{}, {}, scattered[lane]};
              source.first_keys[some] = (*first_keys)[some][0];
              source.second_keys[some] = (*second_keys)[some][0];
              const std::uint64_t only = std::uint64_t{1} << own;
              up[lane] |= decide_rest(*tables, variables[k + lane], neighbours, 1, size, only, source) != 0 ? 1 : 0;
            }
          }
          after |= up << own;
        }
      }
      if (count >= 8) {
        store_bits(state + position + k, after);
      } else {
        for (std::size_t lane = 0; lane < count; ++lane) state[position + lane] = after[lane];
      }
    }
  });
}

template <unsigned W>
void BitBlock::sweep_words() {
  for (const BitTables::Run& run : tables_->runs()) {
    switch (run.size) {
      case 4: sweep_run<W, 4>(run); break;
      case 5: sweep_run<W, 5>(run); break;
      default: sweep_run<W, 6>(run); break;
    }
  }
}

void BitBlock::sweep_few_chains() {
  for (const BitTables::Run& run : tables_->runs()) {
    switch (run.size) {
      case 4: sweep_few<4>(run); break;
      case 5: sweep_few<5>(run); break;
      default: sweep_few<6>(run); break;
    }
  }
}

void BitBlock::sweep(std::uint64_t sweeps) {
  for (; sweeps > 0; --sweeps) {
    switch (is_few() ? 0 : words_) {
      case 0: sweep_few_chains(); break;
      case 1: sweep_words<1>(); break;
      case 2: sweep_words<2>(); break;
      case 4: sweep_words<4>(); break;
      default: sweep_words<8>(); break;
    }
    ++sweeps_;
    if (counting_) counts_.add(state_.data());
  }
}

void BitBlock::set_levels(std::size_t chain, std::span<const Value> levels) {
  const Lane at = lane(chain);
  for (std::size_t i = 0; i < levels.size(); ++i) set_bit(word_of(i, at.word), at.bit, levels[i] != 0);
}

void BitBlock::get_levels(std::size_t chain, std::span<Value> levels) const {
  const Lane at = lane(chain);
  for (std::size_t i = 0; i < levels.size(); ++i) {
    levels[i] = static_cast<Value>(word_of(i, at.word) >> at.bit & 1);
  }
}

void BitBlock::set_progress(const BlockProgress& progress) {
  sweeps_ = progress.sweeps;
  if (progress.counts != 0) reset_counts();
}

void BitBlock::reset_counts() {
  counts_.reset();
  counting_ = true;
}

void BitBlock::set_totals(std::size_t chain, const BitTotals& totals) {
  std::vector<std::uint64_t> sorted(totals.counts.size());
  for (Index i = 0; i < sorted.size(); ++i) sorted[tables_->position(i)] = totals.counts[i];
  counts_.set(lane_number(chain), sorted);
}

BitTotals BitBlock::get_totals(std::size_t chain) const {
  BitTotals totals{std::vector<std::uint64_t>(counting_ ? tables_->variables() : 0)};
  if (counting_) get_counts(chain, totals.counts);
  return totals;
}

void BitBlock::get_counts(std::size_t chain, std::span<std::uint64_t> counts) const {
  std::vector<std::uint64_t> sorted(counts.size());
  counts_.collect(lane_number(chain), sorted);
  for (Index i = 0; i < counts.size(); ++i) counts[i] = sorted[tables_->position(i)];
}

void BitBlock::get_all_levels(std::span<Value> levels) const {
  const std::size_t n = tables_->variables();
  const std::size_t first_lane = lane_number(group_.first);
  const std::size_t last_lane = first_lane + group_.count;
  // Eight variables of eight chains at a time.
  for (std::size_t lanes = first_lane / 8 * 8; lanes < last_lane; lanes += 8) {
    const std::size_t word = lanes / 64;
    const unsigned shift = lanes % 64;
    for (std::size_t i = 0; i < n; i += 8) {
      std::uint64_t square = 0;
      const std::size_t rows = std::min<std::size_t>(8, n - i);
      for (std::size_t r = 0; r < rows; ++r) square |= (word_of(i + r, word) >> shift & 0xff) << (8 * r);
      square = transpose8(square);
      for (std::size_t c = 0; c < 8; ++c) {
        const std::size_t number = lanes + c;
        if (number < first_lane || number >= last_lane) continue;
        const std::uint64_t bytes = spread8(square >> (8 * c) & 0xff);
        std::memcpy(levels.data() + (number - first_lane) * n + i, &bytes, rows);
      }
    }
  }
}

std::vector<ChainGroup> group_bits(std::size_t chains, std::uint64_t first_chain, unsigned threads) {
  return group_words(chains, first_chain, threads, {64, BitBlock::kMostWords});
}

}  // namespace poise
