/// Sweeps of chains that are bits.
#include "engines/cpu/bits/bit_tile.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/bits64.hpp"
#include "engines/common/keyed_words.hpp"

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

/// The bits of `undecided` that are up, by all 64 digits.
[[gnu::noinline]] std::uint64_t decide_exactly(const BitTables& tables, Index variable, const std::uint64_t* neighbours,
                                               std::size_t stride, unsigned size, std::uint64_t undecided,
                                               const DigitSource& source) {
  std::uint64_t up = 0;
  for (; undecided != 0; undecided &= undecided - 1) {
    const auto bit = static_cast<unsigned>(__builtin_ctzll(undecided));
    unsigned configuration = 0;
    for (unsigned k = 0; k < size; ++k) configuration |= static_cast<unsigned>(neighbours[k * stride] >> bit & 1) << k;
    const std::uint64_t threshold = tables.threshold(variable, configuration);
    std::uint64_t drawn = 0;
    for (unsigned digit = 0; digit < 64; ++digit) drawn = 2 * drawn + source.digit(digit, bit);
    if (drawn < threshold || threshold == ~std::uint64_t{0}) up |= std::uint64_t{1} << bit;
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

template <unsigned size>
POISE_INLINE const auto& digits_of(const BitTables::Run& run) {
  if constexpr (size == 4) return run.digits4;
  if constexpr (size == 5) return run.digits5;
  if constexpr (size == 6) return run.digits6;
}

}  // namespace

BitTile::BitTile(std::shared_ptr<const BitTables> tables, ChainGroup group, std::uint64_t seed,
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
  if (!is_few()) tables_->make_digits();
}

/// One look at every variable of the run. A digit that decides: the random bit differs from that of the probability;
/// the variable is up where the probability has the larger one.
template <unsigned W, unsigned size>
void BitTile::sweep_run(const BitTables::Run& run) {
  const auto* const digits = digits_of<size>(run).data();
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
      const auto* const digit = digits + k * BitTables::kDigits;
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
          up[w] |= decide_exactly(*tables, variables[k], neighbours + w, W, size, undecided[w], source);
        }
      }
      store_bits(state + (position + k) * W, up);
    }
  });
}

/// The same for a tile of few chains: random numbers are those of `sweep_run`, and so are the states.
void BitTile::sweep_few(const BitTables::Run& run) {
  FewSweep sweep{};
  sweep.run = &run;
  sweep.state = state_.data();
  sweep.first_update = sweeps_ * tables_->variables();
  sweep.chains = chains_[0];
  for (unsigned some = 0; some < 4; ++some) {
    sweep.first_keys[some] = first_keys_[some][0];
    sweep.second_keys[some] = second_keys_[some][0];
  }
  sweep.tables = tables_.get();
  sweep.decide = [](const FewSweep& from, std::size_t k, std::uint64_t undecided) {
    std::array<std::uint64_t, BitTables::kMost> neighbours{};
    const BitTables::Run& at = *from.run;
    for (unsigned j = 0; j < at.size; ++j) neighbours[j] = from.state[at.blanket[k * at.size + j]];
    const DigitSource source{from.first_keys, from.second_keys, scatter(from.first_update + at.variable[k])};
    return decide_exactly(*from.tables, at.variable[k], neighbours.data(), 1, at.size, undecided, source);
  };
  if (run.odds.are_products) return sweep_eights(sweep);
  for (std::size_t k = 0; k < run.count; ++k) state_.data()[run.first + k] = sweep.decide(sweep, k, chains_[0]);
}

template <unsigned W>
void BitTile::sweep_words() {
  for (const BitTables::Run& run : tables_->runs()) {
    switch (run.size) {
      case 4: sweep_run<W, 4>(run); break;
      case 5: sweep_run<W, 5>(run); break;
      default: sweep_run<W, 6>(run); break;
    }
  }
}

void BitTile::sweep(std::uint64_t sweeps) {
  for (; sweeps > 0; --sweeps) {
    switch (is_few() ? 0 : words_) {
      case 0:
        for (const BitTables::Run& run : tables_->runs()) sweep_few(run);
        break;
      case 1: sweep_words<1>(); break;
      case 2: sweep_words<2>(); break;
      case 4: sweep_words<4>(); break;
      default: sweep_words<8>(); break;
    }
    ++sweeps_;
    if (counting_) counts_.add(state_.data());
  }
}

void BitTile::set_levels(std::size_t chain, std::span<const Value> levels) {
  const Lane at = lane(chain);
  for (std::size_t i = 0; i < levels.size(); ++i) set_bit(word_of(i, at.word), at.bit, levels[i] != 0);
}

void BitTile::get_levels(std::size_t chain, std::span<Value> levels) const {
  const Lane at = lane(chain);
  for (std::size_t i = 0; i < levels.size(); ++i) {
    levels[i] = static_cast<Value>(word_of(i, at.word) >> at.bit & 1);
  }
}

void BitTile::set_progress(const TileProgress& progress) {
  sweeps_ = progress.sweeps;
  if (progress.counts != 0) reset_counts();
}

void BitTile::reset_counts() {
  counts_.reset();
  counting_ = true;
}

void BitTile::set_totals(std::size_t chain, const BitTotals& totals) {
  std::vector<std::uint64_t> sorted(totals.counts.size());
  for (Index i = 0; i < sorted.size(); ++i) sorted[tables_->position(i)] = totals.counts[i];
  counts_.set(lane_number(chain), sorted);
}

BitTotals BitTile::get_totals(std::size_t chain) const {
  BitTotals totals{std::vector<std::uint64_t>(counting_ ? tables_->variables() : 0)};
  if (counting_) get_counts(chain, totals.counts);
  return totals;
}

void BitTile::get_counts(std::size_t chain, std::span<std::uint64_t> counts) const {
  std::vector<std::uint64_t> sorted(counts.size());
  counts_.collect(lane_number(chain), sorted);
  for (Index i = 0; i < counts.size(); ++i) counts[i] = sorted[tables_->position(i)];
}

void BitTile::get_all_levels(std::span<Value> levels) const {
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

void BitTile::get_all_bits(std::span<std::uint8_t> bits) const {
  const std::size_t n = tables_->variables();
  const std::size_t width = (n + 7) / 8;
  const std::size_t first_lane = lane_number(group_.first);
  const std::size_t last_lane = first_lane + group_.count;
  for (std::size_t word = first_lane / 64; word * 64 < last_lane; ++word) {
    const std::size_t first = std::max(first_lane, word * 64);
    const std::size_t last = std::min(last_lane, word * 64 + 64);
    for (std::size_t begin = 0; begin < n; begin += 64) {
      const std::size_t many = std::min<std::size_t>(64, n - begin);
      const std::size_t bytes = std::min<std::size_t>(8, width - begin / 8);
      std::uint64_t square[64] = {};
      for (std::size_t k = 0; k < many; ++k) square[k] = word_of(begin + k, word);
      hot([to = square] { transpose64(to); });
      for (std::size_t number = first; number < last; ++number) {
        std::memcpy(bits.data() + (number - first_lane) * width + begin / 8, &square[number % 64], bytes);
      }
    }
  }
}

}  // namespace poise
