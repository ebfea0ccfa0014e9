/// Planes that carry into each other, bytes, and where both are emptied into.
#include "engines/cpu/bits/up_counts.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace poise {

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
    // Two of this level and what came in: a bit of the sum stays, the rest goes on in the place of what was pending.
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
