/// Units of an RBM as bits and lists, and layers drawn from sums of rounded weights.
#include "models/rbm/rbm_layer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include <poise/extend/base/hot.hpp>
#include "base/bits8.hpp"

namespace poise {

namespace {

/// The numbers of the bits that are set in a byte, in increasing order.
constexpr auto kSetBits = [] {
  std::array<std::array<std::uint8_t, 8>, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    unsigned count = 0;
    for (unsigned bit = 0; bit < 8; ++bit) {
      if ((byte >> bit & 1U) != 0) table[byte][count++] = static_cast<std::uint8_t>(bit);
    }
  }
  return table;
}();

std::size_t list_bits(const std::uint64_t* bits, std::size_t words, std::uint64_t flip, Index* list) {
  return hot<InstructionSet::avx2>([=] {
    std::size_t count = 0;
    for (std::size_t word = 0; word < words; ++word) {
      const std::uint64_t set = bits[word] ^ flip;
      for (unsigned shift = 0; shift < 64; shift += 8) {
        const auto byte = static_cast<std::uint8_t>(set >> shift);
        const auto first = static_cast<Index>(64 * word + shift);
        for (unsigned k = 0; k < 8; ++k) list[count + k] = first + kSetBits[byte][k];
        count += static_cast<unsigned>(std::popcount(byte));
      }
    }
    return count;
  });
}

}  // namespace

void RbmUnits::take(std::span<const Value> levels) {
  std::fill(bits_.begin(), bits_.end(), 0);
  Index unit = 0;
  for (; unit + 8 <= units_; unit += 8) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, levels.data() + unit, sizeof bytes);
    bits_[unit / 64] |= pack8(bytes) << unit % 64;
  }
  for (; unit < units_; ++unit) bits_[unit / 64] |= std::uint64_t{levels[unit]} << unit % 64;
}

void RbmUnits::give(std::span<Value> levels) const {
  Index unit = 0;
  for (; unit + 8 <= units_; unit += 8) {
    const std::uint64_t bytes = spread8(bits_[unit / 64] >> unit % 64 & 0xff);
    std::memcpy(levels.data() + unit, &bytes, sizeof bytes);
  }
  for (; unit < units_; ++unit) levels[unit] = static_cast<Value>(bits_[unit / 64] >> unit % 64 & 1U);
}

void RbmUnits::list() {
  std::size_t on = 0;
  for (const std::uint64_t word : bits_) on += static_cast<unsigned>(std::popcount(word));
  lists_off_ = 2 * on > units_;
  if (!lists_off_) {
    count_ = list_bits(bits_.data(), bits_.size(), 0, list_.data());
    return;
  }
  // Bits beyond the last unit are 0. Flipped they would be listed, beyond the end of the list: they go last.
  const std::size_t whole = units_ / 64;
  count_ = list_bits(bits_.data(), whole, ~std::uint64_t{0}, list_.data());
  for (auto unit = static_cast<Index>(64 * whole); unit < units_; ++unit) {
    list_[count_] = unit;
    count_ += (~bits_[whole] >> unit % 64) & 1U;
  }
}

namespace {

// NOLINTBEGIN(modernize-use-using): the attribute needs the old form
typedef std::int32_t Int32x4 __attribute__((vector_size(16)));
typedef std::int32_t Int32x8 __attribute__((vector_size(32)));
typedef std::int32_t Int32x16 __attribute__((vector_size(64)));
// NOLINTEND(modernize-use-using)

/// The estimate of e^-a has a relative error of at most 2e-5 besides that of the sum: 4e-6 from the polynomial, 5e-6
/// from an exponent of up to 40 in floats, and what floats round in between.
constexpr double kEstimate = 2e-5;
/// u, in units of 2^-16, times 1 + e^-a is compared with 2^16: floats round this by less than an eightieth.
constexpr float kSlack = 1.0F / 32;
constexpr float kFull = 65536.0F;
/// Larger exponents of e^-a change nothing that sixteen bits could tell.
constexpr float kLargestExponent = 40.0F;

template <class Ints>
struct LanesOf {
  typedef float Floats __attribute__((vector_size(sizeof(Ints))));         // NOLINT(modernize-use-using)
  typedef std::int16_t Shorts __attribute__((vector_size(sizeof(Ints))));  // NOLINT(modernize-use-using)
};

template <class Vector>
POISE_INLINE Vector load(const void* from) {
  Vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
template <class Vector>
POISE_INLINE void store(void* to, const Vector& v) {
  std::memcpy(to, &v, sizeof v);
}

POISE_INLINE std::uint32_t or_lanes(const Int32x8& v) {
  const Int32x4 half = __builtin_shufflevector(v, v, 0, 1, 2, 3) | __builtin_shufflevector(v, v, 4, 5, 6, 7);
  const Int32x4 pair = half | __builtin_shufflevector(half, half, 2, 3, 0, 1);
  return static_cast<std::uint32_t>(pair[0] | pair[1]);
}
POISE_INLINE std::uint32_t or_lanes(const Int32x16& v) {
  const Int32x8 half = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) |
                       __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
  return or_lanes(half);
}

/// The lower and the upper sixteen bits of every lane, with their signs.
template <class Ints>
POISE_INLINE Ints lower(const Ints& v) {
  return (v << 16) >> 16;
}
template <class Ints>
POISE_INLINE Ints upper(const Ints& v) {
  return v >> 16;
}

/// What is read of a layer, and what a lane needs to know of one slice.
struct Slice {
  const std::int16_t* weights;
  const std::int32_t* start;  // biases or totals
  const float* scales;
  const float* above;
  const float* below;
  std::uint32_t valid;  // bits of units that are not padding
};

struct Decided {
  std::uint32_t on;
  std::uint32_t open;
};

/// Which of the units `first` and on of a slice are on, and which are open, as -1 in their lanes.
template <class Ints>
POISE_INLINE void decide(const Slice& slice, unsigned first, const Ints& sum, const Ints& random, Ints& on,
                         Ints& open) {
  using Floats = typename LanesOf<Ints>::Floats;
  Floats x = __builtin_convertvector(sum, Floats) * load<Floats>(slice.scales + first);
  x = x < -kLargestExponent ? Floats{} - kLargestExponent : x;
  x = x > kLargestExponent ? Floats{} + kLargestExponent : x;
  constexpr float kMagic = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer kept in the low bits
  const Floats shifted = x + kMagic;
  const Floats r = x - (shifted - kMagic);
  // Taylor polynomial of 2^r on |r| <= 1/2.
  const Floats p =
      1.0F + r * (0.693147181F + r * (0.240226507F + r * (0.0555041087F + r * (0.00961812911F + r * 0.00133335581F))));
  const Floats e = reinterpret_cast<Floats>(reinterpret_cast<Ints>(p) + (reinterpret_cast<Ints>(shifted) << 23));
  const Floats u = __builtin_convertvector(random, Floats);
  on = (u + (1.0F + kSlack)) * (1.0F + e * load<Floats>(slice.above + first)) < kFull;
  const Ints off = (u - kSlack) * (1.0F + e * load<Floats>(slice.below + first)) > kFull;
  open = ~(on | off);
}

template <class Ints>
POISE_INLINE Ints bits_from(unsigned first) {
  Ints bits;
  for (unsigned lane = 0; lane < sizeof(Ints) / 4; ++lane) bits[lane] = static_cast<std::int32_t>(1U << (first + lane));
  return bits;
}

/// One slice of one chain. Sums of up to `short_sum` weights have sixteen bits, and are added up in 32.
template <class Ints, unsigned slice_units, unsigned short_sum>
POISE_INLINE Decided draw_slice(const Slice& slice, const RbmUnits& given, const std::uint64_t* random,
                                std::uint32_t* counts) {
  using Shorts = typename LanesOf<Ints>::Shorts;
  constexpr unsigned width = sizeof(Ints) / 4;
  constexpr unsigned vectors = slice_units / 2 / width;
  const Index* list = given.listed().data();
  const std::size_t count = given.listed().size();
  Ints low[vectors] = {}, high[vectors] = {};
  std::size_t k = 0;
  const auto row = [&](std::size_t entry, unsigned v) {
    return load<Shorts>(slice.weights + std::size_t{list[entry]} * slice_units + 2 * width * v);
  };
  for (; k + short_sum <= count; k += short_sum) {
    for (unsigned v = 0; v < vectors; ++v) {
      Shorts sum = row(k, v);
      for (unsigned l = 1; l < short_sum; ++l) sum += row(k + l, v);
      low[v] += lower(reinterpret_cast<Ints>(sum));
      high[v] += upper(reinterpret_cast<Ints>(sum));
    }
  }
  for (unsigned v = 0; v < vectors; ++v) {
    Shorts sum = {};
    for (std::size_t l = k; l < count; ++l) sum += row(l, v);
    low[v] += lower(reinterpret_cast<Ints>(sum));
    high[v] += upper(reinterpret_cast<Ints>(sum));
  }
  const std::int32_t sign = given.lists_off() ? -1 : 1;
  Ints on_bits = {}, open_bits = {};
  for (unsigned v = 0; v < vectors; ++v) {
    const Ints words = load<Ints>(reinterpret_cast<const char*>(random) + sizeof(Ints) * v);
    for (unsigned half = 0; half < 2; ++half) {
      const unsigned first = half * slice_units / 2 + v * width;
      const Ints sum = load<Ints>(slice.start + first) + sign * (half == 0 ? low[v] : high[v]);
      const Ints u = (half == 0 ? words : words >> 16) & 0xffff;
      Ints on, open;
      decide(slice, first, sum, u, on, open);
      const Ints bits = bits_from<Ints>(first);
      on_bits |= on & bits;
      open_bits |= open & bits;
      store(counts + first, load<Ints>(counts + first) - on);
    }
  }
  return {or_lanes(on_bits) & slice.valid, or_lanes(open_bits) & slice.valid};
}

}  // namespace

RbmLayer::RbmLayer(const Rbm& target, Side side, double doubt) : doubt_(doubt) {
  const RbmWeights& weights = target.weights();
  const bool hidden = side == Side::hidden;
  units_ = hidden ? weights.hidden : weights.visible;
  inputs_ = hidden ? weights.visible : weights.hidden;
  const std::size_t all = padded(units_);
  std::vector<Row> rows(all / kSlice * inputs_, Row{});
  biases_.assign(all, 0);
  totals_.assign(all, 0);
  scales_.assign(all, 0.0F);
  above_.assign(all, 1.0F);
  below_.assign(all, 1.0F);
  std::vector<double> row(inputs_);
  for (Index unit = 0; unit < units_; ++unit) {
    for (Index input = 0; input < inputs_; ++input) {
      row[input] = weights.weights[hidden ? std::size_t{unit} * inputs_ + input : std::size_t{input} * units_ + unit];
    }
    errors_.push_back(set_unit(unit, row, (hidden ? weights.hidden_bias : weights.visible_bias)[unit], rows));
    set_bounds(unit, 1.0, 0.0);
  }
  weights_ = std::make_shared<const std::vector<Row>>(std::move(rows));
}

RbmLayer RbmLayer::heated(double beta, std::span<const double> offsets) const {
  RbmLayer layer = *this;
  for (Index unit = 0; unit < units_; ++unit) layer.set_bounds(unit, beta, offsets[unit]);
  return layer;
}

/// e^-(beta a + offset): beta goes into the scale of the exponent, the offset into what the estimate is multiplied by.
/// As estimates end at 2^-40 and 2^40, what they are multiplied by ends where these are still certain of anything that
/// sixteen bits can tell.
void RbmLayer::set_bounds(Index unit, double beta, double offset) {
  const auto& [low, high, step] = errors_[unit];
  scales_[unit] = static_cast<float>(-beta * step * std::numbers::log2e);
  constexpr double least = 0x1p-24;
  constexpr double most = 0x1p24;
  const double above = std::exp(beta * low + doubt_ - offset) * (1.0 + kEstimate);
  const double below = std::exp(-beta * high - doubt_ - offset) * (1.0 - kEstimate);
  above_[unit] = static_cast<float>(std::clamp(above, least, 1e30));
  below_[unit] = static_cast<float>(std::min(below, most));
}

/// Weights are rounded to a unit of which kRun of them have at most 15 bits, and the whole sum 30. The sum over some of
/// the weights is then too small by the sum of some of the errors: at most by that of the positive ones, and too large
/// at most by that of the negative ones.
RbmLayer::RoundingError RbmLayer::set_unit(Index unit, std::span<const double> weights, double bias,
                                           std::vector<Row>& rows) {
  double largest = std::numeric_limits<float>::min();
  double total = std::abs(bias);
  for (const double weight : weights) {
    largest = std::max(largest, std::abs(weight));
    total += std::abs(weight);
  }
  constexpr double most = 32767.0 / kRun - 1.0;
  const double step = std::max(largest / most, std::ldexp(total, -30));
  double low = 0.0;
  double high = 0.0;
  const auto round = [&](double value) {
    const double rounded = std::nearbyint(value / step);
    const double error = value - step * rounded;
    (error < 0.0 ? low : high) += std::abs(error);
    return static_cast<std::int32_t>(rounded);
  };
  biases_[unit] = totals_[unit] = round(bias);
  Row* row = rows.data() + std::size_t{unit / kSlice} * inputs_;
  for (const double weight : weights) {
    const std::int32_t rounded = round(weight);
    (row++)->places[place(unit % kSlice)] = static_cast<std::int16_t>(rounded);
    totals_[unit] += rounded;
  }
  return {low, high, step};
}

void RbmLayer::draw(std::span<const Lane> lanes) const {
  for (Index first = 0; first < units_; first += kSlice) {
    const Index left = units_ - first;
    Slice slice = {(*weights_)[std::size_t{first / kSlice} * inputs_].places,
                   nullptr,
                   scales_.data() + first,
                   above_.data() + first,
                   below_.data() + first,
                   left < kSlice ? (std::uint32_t{1} << left) - 1 : ~std::uint32_t{0}};
    hot([this, first, slice, lanes] {
      Slice of = slice;
      for (const Lane& lane : lanes) {
        of.start = (lane.given->lists_off() ? totals_ : biases_).data() + first;
        const std::uint64_t* random = lane.random + first / 4;
        const Decided decided = kInstructionSet == InstructionSet::avx512
                                    ? draw_slice<Int32x16, kSlice, kRun>(of, *lane.given, random, lane.counts + first)
                                    : draw_slice<Int32x8, kSlice, kRun>(of, *lane.given, random, lane.counts + first);
        const std::size_t word = first / 64;
        if (first % 64 == 0) {
          lane.on[word] = decided.on;
          lane.open[word] = decided.open;
        } else {
          lane.on[word] |= std::uint64_t{decided.on} << 32;
          lane.open[word] |= std::uint64_t{decided.open} << 32;
        }
      }
    });
  }
}

}  // namespace poise
