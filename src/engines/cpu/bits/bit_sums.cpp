/// Counting with adders of single bits, weighing with masked additions.
#include "engines/cpu/bits/bit_sums.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace poise {

namespace {

constexpr unsigned kPlanes = 35;  // counts of up to 2^32 terms, in each of eight words
using Words = BitVector<8>;

/// Adds words bit by bit: plane p counts 2^p. Eight vectors go through a tree of adders (Harley and Seal), so that the
/// higher planes are touched once for all of them.
class BitAdder {
 public:
  POISE_INLINE void add(const Words& words) {
    waiting_[count_++] = words;
    if (count_ == 8) flush();
  }

  POISE_INLINE void flush() {
    for (; count_ < 8; ++count_) waiting_[count_] = Words{};
    count_ = 0;
    Words twos[4], fours[2], eights;
    for (unsigned k = 0; k < 4; ++k) twos[k] = join(plane_[0], waiting_[2 * k], waiting_[2 * k + 1]);
    for (unsigned k = 0; k < 2; ++k) fours[k] = join(plane_[1], twos[2 * k], twos[2 * k + 1]);
    eights = join(plane_[2], fours[0], fours[1]);
    for (unsigned p = 3; p < kPlanes && any_bit<8>(eights); ++p) {
      const Words carry = plane_[p] & eights;
      plane_[p] ^= eights;
      eights = carry;
      used_ = used_ > p ? used_ : p + 1;
    }
  }

  /// Word w of the block is in every vector lane w, w + words, and so on.
  void write(const BitView& view, std::span<std::int64_t> out) const {
    std::fill(out.begin(), out.end(), 0);
    for (std::size_t k = 0; k < view.lanes; ++k) {
      const std::size_t lane = view.first_lane + k;
      for (unsigned p = 0; p < used_; ++p) {
        for (std::size_t w = lane / 64; w < 8; w += view.words) {
          std::uint64_t word;  // not by [w]: g++ 12 gets it wrong beside checks of bounds and shifts
          std::memcpy(&word, reinterpret_cast<const char*>(&plane_[p]) + 8 * w, sizeof word);
          out[k] += static_cast<std::int64_t>(word >> lane % 64 & 1) << p;
        }
      }
    }
  }

 private:
  /// Leaves the sum of three bits in the first and gives the carry.
  POISE_INLINE static Words join(Words& a, const Words& b, const Words& c) {
    const Words differ = a ^ b;
    const Words carry = (a & b) | (differ & c);
    a = differ ^ c;
    return carry;
  }

  Words plane_[kPlanes] = {};
  Words waiting_[8] = {};
  unsigned count_ = 0;
  unsigned used_ = 3;  // planes that hold anything
};

/// `count` words from there on, the rest zero.
POISE_INLINE Words load_some(const std::uint64_t* from, std::size_t count) {
  Words words = {};
  std::memcpy(&words, from, count * sizeof *from);
  return words;
}

/// Eight times `groups` lanes from `lane` on, all of one word.
template <unsigned groups>
void weigh_lanes(const BitView& view, const BitTerms& terms, const std::int64_t* weights, std::size_t lane,
                 std::int64_t* out) {
  // NOLINTNEXTLINE(modernize-use-using): the attribute needs the old form
  typedef std::int64_t Lanes __attribute__((vector_size(64)));
  const BitTerms::Stretch* const begin = terms.stretches.data();
  const BitTerms::Stretch* const end = begin + terms.stretches.size();
  hot([=] {
    constexpr Lanes kBits = {1, 2, 4, 8, 16, 32, 64, 128};
    Lanes bits[groups];
    for (unsigned g = 0; g < groups; ++g) bits[g] = kBits << static_cast<int>(lane % 64 + 8 * g);
    Lanes sums[groups] = {};
    const std::int64_t* weight = weights;
    for (const BitTerms::Stretch* stretch = begin; stretch != end; ++stretch) {
      const std::uint64_t* first = view.state + stretch->first * view.words + lane / 64;
      const bool pairs = stretch->second != BitTerms::kNone;
      const std::uint64_t* second = pairs ? view.state + stretch->second * view.words + lane / 64 : first;
      for (Index k = 0; k < stretch->count; ++k, first += view.words, second += view.words, ++weight) {
        const Lanes word = Lanes{} + static_cast<std::int64_t>(pairs ? *first ^ *second : *first);
        const Lanes value = Lanes{} + *weight;
        for (unsigned g = 0; g < groups; ++g) sums[g] += value & ((word & bits[g]) != 0);
      }
    }
    std::memcpy(out, sums, sizeof sums);
  });
}

}  // namespace

BitTerms BitTerms::all(Index positions) {
  BitTerms terms;
  terms.stretches.push_back({0, kNone, positions});
  terms.count = positions;
  return terms;
}

void BitTerms::add(Index first, Index second) {
  ++count;
  if (!stretches.empty()) {
    Stretch& last = stretches.back();
    if (first == last.first + last.count && second == last.second + last.count) {
      ++last.count;
      return;
    }
  }
  stretches.push_back({first, second, 1});
}

void count_terms(const BitView& view, const BitTerms& terms, std::span<std::int64_t> out) {
  BitAdder adder;
  const BitTerms::Stretch* const begin = terms.stretches.data();
  const BitTerms::Stretch* const end = begin + terms.stretches.size();
  hot([=, &adder] {
    BitAdder sum;
    for (const BitTerms::Stretch* stretch = begin; stretch != end; ++stretch) {
      const std::uint64_t* const first = view.state + stretch->first * view.words;
      const bool pairs = stretch->second != BitTerms::kNone;
      const std::uint64_t* const second = pairs ? view.state + stretch->second * view.words : nullptr;
      const std::size_t size = stretch->count * view.words;
      std::size_t k = 0;
      for (; k + 8 <= size; k += 8) {
        sum.add(pairs ? load_bits<8>(first + k) ^ load_bits<8>(second + k) : load_bits<8>(first + k));
      }
      if (k == size) continue;
      const Words rest = load_some(first + k, size - k);
      sum.add(pairs ? rest ^ load_some(second + k, size - k) : rest);
    }
    sum.flush();
    adder = sum;
  });
  adder.write(view, out);
}

void count_differences(const BitView& view, std::span<const std::uint64_t> reference, std::span<std::int64_t> out) {
  BitAdder adder;
  hot([=, &adder] {
    BitAdder sum;
    const std::size_t size = reference.size() * view.words;
    const std::size_t positions = 8 / view.words;  // in a vector
    std::size_t k = 0;
    for (std::size_t i = 0; k + 8 <= size; k += 8, i += positions) {
      Words other;
      switch (view.words) {
        case 1: other = load_bits<8>(&reference[i]); break;
        case 2:
          other = Words{reference[i],     reference[i],     reference[i + 1], reference[i + 1],
                        reference[i + 2], reference[i + 2], reference[i + 3], reference[i + 3]};
          break;
        case 4:
          other = Words{reference[i],     reference[i],     reference[i],     reference[i],
                        reference[i + 1], reference[i + 1], reference[i + 1], reference[i + 1]};
          break;
        default: other = Words{} + reference[i]; break;
      }
      sum.add(load_bits<8>(view.state + k) ^ other);
    }
    if (k < size) {
      Words other = {};
      for (std::size_t w = 0; k + w < size; ++w) other[w] = reference[(k + w) / view.words];
      sum.add(load_some(view.state + k, size - k) ^ other);
    }
    sum.flush();
    adder = sum;
  });
  adder.write(view, out);
}

void weigh_terms(const BitView& view, const BitTerms& terms, std::span<const std::int64_t> weights,
                 std::span<std::int64_t> out) {
  const std::size_t last = view.first_lane + view.lanes;
  // All lanes of a word at a time; or sixteen, where there are no more.
  const bool few = view.first_lane / 16 == (last - 1) / 16;
  const std::size_t step = few ? 16 : 64;
  for (std::size_t some = view.first_lane / step * step; some < last; some += step) {
    std::int64_t sums[64];
    if (few) {
      weigh_lanes<2>(view, terms, weights.data(), some, sums);
    } else {
      weigh_lanes<8>(view, terms, weights.data(), some, sums);
    }
    for (std::size_t lane = std::max(some, view.first_lane); lane < std::min(some + step, last); ++lane) {
      out[lane - view.first_lane] = sums[lane - some];
    }
  }
}

void UpCounts::reset() {
  for (unsigned level = 0; level < kLevels; ++level) {
    if (in_bytes_) {
      if (level <= (lanes_ - 1) / 8) bytes_[level].assign(positions_, 0);
    } else {
      planes_[level].assign(positions_ * words_, 0);
      pending_[level].assign(positions_ * words_, 0);
    }
  }
  spilled_.clear();
  earlier_.clear();
  states_ = spilled_states_ = 0;
}

void UpCounts::add(const std::uint64_t* state) {
  if (states_ == kMost) spill();
  if (in_bytes_) {
    for (std::size_t eight = 0; eight <= (lanes_ - 1) / 8; ++eight) {
      std::uint64_t* bytes = bytes_[eight].data();
      hot([=, size = positions_, shift = first_lane_ + 8 * eight] {
        for (std::size_t k = 0; k < size; ++k) bytes[k] += spread8(state[k] >> shift & 0xff);
      });
    }
    ++states_;
    return;
  }
  const std::uint64_t* carry = state;
  unsigned level = 0;
  for (; (states_ >> level & 1) != 0; ++level) {
    // Two of this level and what came in: a bit of the sum stays, the rest is carried in the place of what was pending.
    std::uint64_t* plane = planes_[level].data();
    std::uint64_t* pending = pending_[level].data();
    hot([=, size = positions_ * words_] {
      for (std::size_t k = 0; k < size; ++k) {
        const std::uint64_t a = plane[k], b = pending[k], c = carry[k];
        plane[k] = a ^ b ^ c;
        pending[k] = (a & b) | (c & (a ^ b));
      }
    });
    carry = pending;
  }
  std::copy_n(carry, positions_ * words_, pending_[level].data());
  ++states_;
}

/// What the planes or bytes have of one lane.
std::uint64_t UpCounts::recent(std::size_t position, std::size_t lane) const {
  if (in_bytes_) return bytes_[(lane - first_lane_) / 8].data()[position] >> ((lane - first_lane_) % 8 * 8) & 0xff;
  const std::size_t k = position * words_ + lane / 64;
  std::uint64_t count = 0;
  for (unsigned level = 0; level < kLevels; ++level) {
    count += (planes_[level].data()[k] >> lane % 64 & 1) << level;
    if ((states_ >> level & 1) != 0) count += (pending_[level].data()[k] >> lane % 64 & 1) << level;
  }
  return count;
}

void UpCounts::make_room(std::uint64_t states) {
  constexpr std::uint64_t kLargest = std::numeric_limits<std::uint32_t>::max();
  if (spilled_.empty()) spilled_.assign(positions_ * lanes_, 0);
  if (states > kLargest - spilled_states_) {
    earlier_.resize(spilled_.size(), 0);
    for (std::size_t k = 0; k < spilled_.size(); ++k) earlier_[k] += std::exchange(spilled_[k], 0);
    spilled_states_ = 0;
  }
  spilled_states_ += states;
}

void UpCounts::spill() {
  make_room(states_);
  std::uint32_t* to = spilled_.data();
  for (std::size_t position = 0; position < positions_; ++position, to += lanes_) {
    for (std::size_t eight = first_lane_ / 8 * 8; eight < first_lane_ + lanes_; eight += 8) {
      const std::uint64_t counts = in_bytes_ ? 0 : planes_of_eight(position, eight);
      for (std::size_t lane = std::max(eight, first_lane_); lane < std::min(eight + 8, first_lane_ + lanes_); ++lane) {
        // Bytes hold the whole count; planes and what is pending have a sum of up to 255 too.
        to[lane - first_lane_] +=
            static_cast<std::uint32_t>(in_bytes_ ? recent(position, lane) : counts >> ((lane - eight) * 8) & 0xff);
      }
    }
  }
  for (unsigned level = 0; level < kLevels; ++level) {
    if (!planes_[level].empty()) planes_[level].assign(positions_ * words_, 0);
    if (!bytes_[level].empty()) bytes_[level].assign(positions_, 0);
  }
  states_ = 0;
}

/// Counts of eight lanes, one in each byte.
std::uint64_t UpCounts::planes_of_eight(std::size_t position, std::size_t lane) const {
  const std::size_t k = position * words_ + lane / 64;
  std::uint64_t sum = 0;
  for (const auto* which : {&planes_, &pending_}) {
    std::uint64_t digits = 0;
    for (unsigned level = 0; level < kLevels; ++level) {
      if (which == &pending_ && (states_ >> level & 1) == 0) continue;
      digits |= ((*which)[level].data()[k] >> (lane % 64) & 0xff) << (8 * level);
    }
    sum += transpose8(digits);  // no byte overflows: together they have counted kMost states
  }
  return sum;
}

void UpCounts::collect(std::size_t lane, std::span<std::uint64_t> out) const {
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t k = i * lanes_ + lane - first_lane_;
    out[i] = recent(i, lane) + (spilled_.empty() ? 0 : spilled_[k]) + (earlier_.empty() ? 0 : earlier_[k]);
  }
}

void UpCounts::set(std::size_t lane, std::span<const std::uint64_t> counts) {
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (in_bytes_) {
      auto& bytes = bytes_[(lane - first_lane_) / 8].data()[i];
      for (unsigned bit = 0; bit < 8; ++bit)
        set_bit(bytes, static_cast<unsigned>((lane - first_lane_) % 8 * 8) + bit, false);
    } else {
      for (unsigned level = 0; level < kLevels; ++level) {
        set_bit(planes_[level].data()[i * words_ + lane / 64], lane % 64, false);
        set_bit(pending_[level].data()[i * words_ + lane / 64], lane % 64, false);
      }
    }
    const std::size_t k = i * lanes_ + lane - first_lane_;
    if (counts[i] != 0 && earlier_.empty()) earlier_.assign(positions_ * lanes_, 0);
    if (!spilled_.empty()) spilled_[k] = 0;
    if (!earlier_.empty()) earlier_[k] = counts[i];
  }
}

}  // namespace poise
