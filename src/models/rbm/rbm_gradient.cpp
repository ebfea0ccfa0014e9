/// First-order ratios of RBMs: one matrix product for many states, and what goes in and comes out of it.
#include <algorithm>
#include <cstring>
#include <vector>

#include <poise/extend/base/lanes16.hpp>
#include "models/rbm/rbm.hpp"

namespace poise {

namespace {

// NOLINTBEGIN(modernize-use-using): the attribute needs the old form
typedef float Floats8 __attribute__((vector_size(32)));
typedef std::int32_t Signs8 __attribute__((vector_size(32)));
typedef std::uint8_t Bytes8 __attribute__((vector_size(8)));
// NOLINTEND(modernize-use-using)

constexpr std::size_t kSide = 8;  // of the squares that are transposed

/// Rows become columns.
POISE_INLINE void transpose(Floats8 (&rows)[kSide]) {
  Floats8 pairs[kSide];
  for (std::size_t k = 0; k < kSide; k += 2) {
    pairs[k] = __builtin_shufflevector(rows[k], rows[k + 1], 0, 8, 2, 10, 4, 12, 6, 14);
    pairs[k + 1] = __builtin_shufflevector(rows[k], rows[k + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  }
  Floats8 fours[kSide];
  for (std::size_t k = 0; k < kSide; k += 4) {
    for (std::size_t half = 0; half < 2; ++half) {
      const Floats8 a = pairs[k + half], b = pairs[k + 2 + half];
      fours[k + half] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
      fours[k + 2 + half] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
  for (std::size_t k = 0; k < 4; ++k) {
    rows[k] = __builtin_shufflevector(fours[k], fours[k + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    rows[k + 4] = __builtin_shufflevector(fours[k], fours[k + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

POISE_INLINE Floats8 load(const float* from) {
  Floats8 v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

/// What is linear in the gradient's sums: (1 - 2 x) (beta (bias + sum) + offset).
struct Gradients {
  const float* bias;
  const double* offset;
  double beta;

  // Eight visible units at a time.
  POISE_INLINE void give(std::size_t i, const Floats8& sums, const Value* x, double* out) const {
    const Doubles8 sum = {__builtin_convertvector(__builtin_shufflevector(sums, sums, 0, 1, 2, 3), Doubles8::Half),
                          __builtin_convertvector(__builtin_shufflevector(sums, sums, 4, 5, 6, 7), Doubles8::Half)};
    const Doubles8 gradient = beta * (load_floats8(bias + i) + sum) + load8(offset + i);
    const Signs8 ones = levels(x + i);
    const Ints8 signs = {__builtin_convertvector(__builtin_shufflevector(ones, ones, 0, 1, 2, 3), Ints8::Half),
                         __builtin_convertvector(__builtin_shufflevector(ones, ones, 4, 5, 6, 7), Ints8::Half)};
    store8(out + i, bits8<double>(bits8<std::int64_t>(gradient) ^ (signs << 63)));
  }
  POISE_INLINE void give(std::size_t i, const Floats8& sums, const Value* x, float* out) const {
    const Doubles8 wide = load8(offset + i);
    const Floats4 low = __builtin_convertvector(wide.low, Floats4), high = __builtin_convertvector(wide.high, Floats4);
    const Floats8 gradient =
        static_cast<float>(beta) * (load(bias + i) + sums) + __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
    const Signs8 turned = reinterpret_cast<Signs8>(gradient) ^ (levels(x + i) << 31);
    std::memcpy(out + i, &turned, sizeof turned);
  }

  // One visible unit.
  POISE_INLINE void give_one(std::size_t i, float sum, const Value* x, double* out) const {
    const double gradient = beta * (bias[i] + static_cast<double>(sum)) + offset[i];
    out[i] = x[i] != 0 ? -gradient : gradient;
  }
  POISE_INLINE void give_one(std::size_t i, float sum, const Value* x, float* out) const {
    const float gradient = static_cast<float>(beta) * (bias[i] + sum) + static_cast<float>(offset[i]);
    out[i] = x[i] != 0 ? -gradient : gradient;
  }

 private:
  static_assert(sizeof(Value) == 1);
  POISE_INLINE static Signs8 levels(const Value* x) {
    Bytes8 bytes;
    std::memcpy(&bytes, x, sizeof bytes);
    return __builtin_convertvector(bytes, Signs8);
  }
};

/// Sigmoids of up to sixteen states side by side, as floats.
void fill_panel(std::span<const Rbm::State* const> states, std::size_t hidden, float* panel) {
  constexpr std::size_t lanes = PackedMatrix::kColumns;
  hot([=] {
    for (std::size_t first = 0; first < states.size(); first += kSide) {
      const std::size_t count = std::min(kSide, states.size() - first);
      for (std::size_t j = 0; j < hidden; j += kSide) {  // sigmoids are padded to a multiple of eight
        Floats8 rows[kSide] = {};
        for (std::size_t l = 0; l < count; ++l) {
          const Doubles8 on = load8(states[first + l]->on.data() + j);
          const Floats4 low = __builtin_convertvector(on.low, Floats4),
                        high = __builtin_convertvector(on.high, Floats4);
          rows[l] = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
        }
        transpose(rows);
        const std::size_t left = std::min(kSide, hidden - j);
        for (std::size_t k = 0; k < left; ++k) std::memcpy(panel + (j + k) * lanes + first, &rows[k], sizeof rows[k]);
      }
    }
  });
}

/// Ratios of up to sixteen states from sums side by side.
template <class Real>
void give_all(std::span<const Rbm::State* const> states, const Gradients& gradients, const float* sums,
              Real* const* out) {
  constexpr std::size_t lanes = PackedMatrix::kColumns;
  hot([=] {
    const std::size_t visible = states[0]->x.size();
    const std::size_t whole = visible / kSide * kSide;
    for (std::size_t i = 0; i < whole; i += kSide) {
      for (std::size_t first = 0; first < states.size(); first += kSide) {
        Floats8 rows[kSide];
        for (std::size_t k = 0; k < kSide; ++k) rows[k] = load(sums + (i + k) * lanes + first);
        transpose(rows);
        const std::size_t count = std::min(kSide, states.size() - first);
        for (std::size_t l = 0; l < count; ++l) gradients.give(i, rows[l], states[first + l]->x.data(), out[first + l]);
      }
    }
    for (std::size_t i = whole; i < visible; ++i) {
      for (std::size_t l = 0; l < states.size(); ++l) {
        gradients.give_one(i, sums[i * lanes + l], states[l]->x.data(), out[l]);
      }
    }
  });
}

/// Ratios of one state.
template <class Real>
void give_alone(const Rbm::State& state, const Gradients& gradients, const float* sums, Real* out) {
  hot([=, x = state.x.data(), visible = state.x.size()] {
    std::size_t i = 0;
    for (; i + kSide <= visible; i += kSide) gradients.give(i, load(sums + i), x, out);
    for (; i < visible; ++i) gradients.give_one(i, sums[i], x, out);
  });
}

}  // namespace

template <class Real>
void Rbm::find_gradients(std::span<const State* const> states, std::span<Real* const> out) const {
  const std::size_t hidden = num_hidden();
  // Kept between calls, so that steps take no memory.
  thread_local std::vector<float> panel, sums;
  panel.resize(std::max(panel.size(), hidden * PackedMatrix::kColumns));
  sums.resize(std::max(sums.size(), numbers_->gradient.padded_rows() * PackedMatrix::kColumns));
  const Gradients gradients = {weights().visible_bias.data(), offsets_.visible.data(), beta_};
  for (std::size_t first = 0; first < states.size();) {
    if (states.size() - first < kFew) {
      const State& state = *states[first];
      std::transform(state.on.begin(), state.on.begin() + num_hidden(), panel.begin(),
                     [](double on) { return static_cast<float>(on); });
      numbers_->gradient.multiply_column(panel.data(), sums.data());
      give_alone(state, gradients, sums.data(), out[first]);
      ++first;
      continue;
    }
    const auto some = states.subspan(first, std::min(PackedMatrix::kColumns, states.size() - first));
    fill_panel(some, hidden, panel.data());
    numbers_->gradient.multiply(panel.data(), sums.data());
    give_all(some, gradients, sums.data(), out.data() + first);
    first += some.size();
  }
}

void Rbm::first_order_log_ratios(std::span<const State* const> states, std::span<double* const> out) const {
  find_gradients(states, out);
}

void Rbm::first_order_log_ratios(std::span<const State* const> states, std::span<float* const> out) const {
  find_gradients(states, out);
}

}  // namespace poise
