/// One layer of an RBM given the other, for many chains: which units are on wherever sixteen random bits and small
/// integers can tell.
///
/// A unit is on if u < sigmoid(a), a = its bias and a sum of weights. The sum is taken of weights rounded to sixteen
/// bits, by all chains of a group from one slice of the matrix after the other, so that it stays in the cache; of u the
/// first sixteen bits are looked at. What is neglected has bounds, so nearly all units are decided for certain. The
/// others, one in a thousand, are left open, and the caller decides them exactly: rounding costs time, not exactness.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include "models/rbm/rbm.hpp"

namespace poise {

/// Which units of one layer are on, as bits and as a list.
class RbmUnits {
 public:
  explicit RbmUnits(Index units) : units_(units), bits_((units + std::size_t{63}) / 64), list_(units + kAtOnce) {}

  [[nodiscard]] std::span<std::uint64_t> bits() { return bits_; }
  [[nodiscard]] std::span<const std::uint64_t> bits() const { return bits_; }

  void take(std::span<const Value> levels);
  void give(std::span<Value> levels) const;

  /// Lists the units that are on, or those that are off where these are fewer. To be called when bits have changed.
  void list();
  [[nodiscard]] std::span<const Index> listed() const { return {list_.data(), count_}; }
  [[nodiscard]] bool lists_off() const { return lists_off_; }

 private:
  static constexpr std::size_t kAtOnce = 8;  // are written, and as many of them count as there are

  Index units_;
  std::vector<std::uint64_t> bits_;
  std::vector<Index> list_;
  std::size_t count_ = 0;
  bool lists_off_ = false;
};

/// Calls visit(unit) for every bit that is set, in increasing order.
template <class Visit>
void for_each_unit(std::span<const std::uint64_t> bits, Visit&& visit) {
  for (std::size_t word = 0; word < bits.size(); ++word) {
    for (std::uint64_t left = bits[word]; left != 0; left &= left - 1) {
      visit(static_cast<Index>(64 * word + static_cast<unsigned>(__builtin_ctzll(left))));
    }
  }
}

class RbmLayer {
 public:
  enum class Side : unsigned char { hidden, visible };

  /// A layer of the RBM at beta = 1. `doubt` leaves more open than need be: activations may be off by this much.
  RbmLayer(const Rbm& target, Side side, double doubt);

  /// The layer at an inverse temperature: activations times beta, plus an offset for each unit. Weights are shared.
  [[nodiscard]] RbmLayer heated(double beta, std::span<const double> offsets) const;

  /// One chain.
  struct Lane {
    const RbmUnits* given;        ///< the other layer, listed
    const std::uint64_t* random;  ///< sixteen bits for each of the `padded` units
    std::uint64_t* on;            ///< out: bits of the units that are on for certain
    std::uint64_t* open;          ///< out: bits of those that may be on or off
    std::uint32_t* counts;        ///< one more for every unit that is on for certain
  };
  void draw(std::span<const Lane> lanes) const;

  [[nodiscard]] Index num_units() const { return units_; }
  /// Units with what fills their last slice: so many have random bits, and a count.
  [[nodiscard]] static std::size_t padded(Index units) { return (std::size_t{units} + kSlice - 1) / kSlice * kSlice; }
  /// Where the sixteen random bits of a unit are, counted in sixteens. Two units lie in 32 bits, and half a slice lies
  /// between them: so shifts take a vector of sums apart into vectors of consecutive units.
  [[nodiscard]] static std::size_t place(Index unit) {
    return unit / kSlice * kSlice + 2 * (unit % (kSlice / 2)) + unit % kSlice / (kSlice / 2);
  }

 private:
  static constexpr Index kSlice = 32;  // units that are summed together
  static constexpr Index kRun = 8;     // weights whose sum sixteen bits hold

  /// Weights of a slice: a line of the cache.
  struct alignas(64) Row {
    std::int16_t places[kSlice];
  };

  /// What a sum of rounded weights is off by, at most.
  struct RoundingError {
    double low = 0.0;  // too large
    double high = 0.0;
    double step = 0.0;  // the unit of weights
  };

  RoundingError set_unit(Index unit, std::span<const double> weights, double bias, std::vector<Row>& rows);
  void set_bounds(Index unit, double beta, double offset);

  Index units_;
  Index inputs_;
  double doubt_;
  std::shared_ptr<const std::vector<Row>> weights_;  // [slice][input]
  std::vector<RoundingError> errors_;                // of each unit
  std::vector<std::int32_t> biases_;                 // the rest by unit
  std::vector<std::int32_t> totals_;                 // biases with all weights
  std::vector<float> scales_;                        // -log2(e) times the unit of weights
  std::vector<float> above_;                         // e^-a is at most this times its estimate,
  std::vector<float> below_;                         // and at least this times it
};

/// Both layers of an RBM.
struct RbmLayers {
  RbmLayer hidden;
  RbmLayer visible;

  RbmLayers(const Rbm& target, double doubt)
      : hidden(target, RbmLayer::Side::hidden, doubt), visible(target, RbmLayer::Side::visible, doubt) {}
  RbmLayers(RbmLayer the_hidden, RbmLayer the_visible)
      : hidden(std::move(the_hidden)), visible(std::move(the_visible)) {}

  /// Words of random bits that drawing both takes, those of the hidden units first, in whole batches.
  [[nodiscard]] static std::size_t random_words(Index visible, Index hidden) {
    const std::size_t units = RbmLayer::padded(hidden) + RbmLayer::padded(visible);
    return (units / 4 + Rng::kBatch - 1) / Rng::kBatch * Rng::kBatch;
  }
};

}  // namespace poise
