/// Balancing functions g(t) = t g(1/t), evaluated at u = log t: log g = u/2 + phi(|u|), phi any even function.
///
/// Two kinds: the four fixed functions in closed form, and a table of phi that any learned one can be frozen into. A
/// table is exactly balanced whatever stands in it, because g(e^u) and e^u g(e^-u) read the same entry.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include <poise/extend/base/math.hpp>
#include <poise/sampler.hpp>
#include <poise/types.hpp>

namespace poise {

/// e^phi on a grid in |u|, linear between grid points; beyond the grid phi continues with its last slope.
///
/// Interpolating e^phi rather than phi lets the look-up run beside the exponential of u/2 instead of before it.
class BalanceTable {
 public:
  static constexpr int kCells = 256;
  static constexpr int kPoints = kCells + 1;
  static constexpr double kStep = 0.125;
  static constexpr double kRange = kCells * kStep;

  /// phi(k * kStep) for k = 0 .. kCells. Values are shifted so that phi(0) = 0, which changes no proposal of single
  /// changes; `level` says by how much.
  explicit BalanceTable(std::span<const double> phi) : level_(phi[0]) {
    for (int k = 0; k < kPoints; ++k) phi_[k] = phi[k] - phi[0];
    for (int k = 0; k < kPoints; ++k) value_[k] = std::exp(phi_[k]);
    for (int k = 0; k < kCells; ++k) {
      cell_[k].slope = (value_[k + 1] - value_[k]) / kStep;
      cell_[k].intercept = value_[k] - cell_[k].slope * (k * kStep);
    }
    tail_slope_ = (phi_[kCells] - phi_[kCells - 1]) / kStep;
  }

  [[nodiscard]] static double grid(int k) { return k * kStep; }
  [[nodiscard]] std::span<const double> phi() const { return phi_; }
  /// What was taken from phi.
  [[nodiscard]] double level() const { return level_; }

  /// log(e^u/2 * e^phi) in two parts: an exponent and a factor.
  POISE_INLINE void parts(const Doubles8& u, Doubles8& exponent, Doubles8& factor) const {
    Doubles8 tail;
    phi_parts(abs8(u), tail, factor);
    exponent = 0.5 * u + tail;
  }

  /// log(e^phi) at |u| = size in two parts: the exponent is 0 within the grid.
  POISE_INLINE void phi_parts(const Doubles8& size, Doubles8& exponent, Doubles8& factor) const {
    constexpr double kMagic = 6755399441055744.0;
    const Doubles8 inside = min8(broadcast8(kRange), size);
    // Rounding to the nearest picks either neighbour on a grid point, where both cells agree.
    const Doubles8 place = min8(broadcast8(kCells - 1.0), inside * (1.0 / kStep) - 0.5) + kMagic;
    const Ints8 index = bits8<std::int64_t>(place) & std::int64_t{0x1ff};
    Doubles8 intercept, slope;
    gather(index.low, intercept.low, slope.low);
    gather(index.high, intercept.high, slope.high);
    factor = intercept + slope * inside;
    exponent = tail_slope_ * min8(broadcast8(1e8), size - inside);
  }

  [[nodiscard]] double log_g(double u) const {
    const double size = std::abs(u);
    const double inside = std::min(size, kRange);
    const int k = cell_of(inside);
    return 0.5 * u + tail_slope_ * std::min(size - inside, 1e8) +
           std::log(cell_[k].intercept + cell_[k].slope * inside);
  }

  /// Adds weight * d log g(e^u) / d phi_k to out[k] for every grid point k on which log g(e^u) depends.
  void add_gradient(double u, double weight, std::span<double> out) const {
    const double size = std::abs(u);
    if (size >= kRange) {
      const double slope_weight = weight * std::min(size - kRange, 1e8) / kStep;
      out[kCells] += weight + slope_weight;
      out[kCells - 1] -= slope_weight;
      return;
    }
    const int k = cell_of(size);
    const double right = size / kStep - k;
    const double scale = weight / (cell_[k].intercept + cell_[k].slope * size);
    out[k] += scale * (1.0 - right) * value_[k];
    out[k + 1] += scale * right * value_[k + 1];
  }

 private:
  struct Cell {
    double intercept;
    double slope;
  };
  /// A cell is loaded whole, and four of them transposed: half the loads of taking intercepts and slopes one by one.
  POISE_INLINE void gather(const Ints8::Half& index, Doubles8::Half& intercept, Doubles8::Half& slope) const {
    typedef double Pair __attribute__((vector_size(16)));  // NOLINT(modernize-use-using): see Lanes8
    const auto load = [&](std::int64_t k) {
      Pair pair;
      std::memcpy(&pair, &cell_[static_cast<std::size_t>(k)], sizeof pair);
      return pair;
    };
    const Pair a = load(index[0]), b = load(index[1]), c = load(index[2]), d = load(index[3]);
    const auto even = __builtin_shufflevector(a, c, 0, 1, 2, 3);
    const auto odd = __builtin_shufflevector(b, d, 0, 1, 2, 3);
    intercept = __builtin_shufflevector(even, odd, 0, 4, 2, 6);
    slope = __builtin_shufflevector(even, odd, 1, 5, 3, 7);
  }

  [[nodiscard]] static int cell_of(double size) { return std::min(static_cast<int>(size * (1.0 / kStep)), kCells - 1); }

  std::array<double, kPoints> phi_{};
  std::array<double, kPoints> value_{};
  std::array<Cell, kCells> cell_{};
  double tail_slope_ = 0.0;
  double level_;
};

/// A balancing function as a value. Cheap to copy; a table is shared.
class BalancingFunction {
 public:
  using Kind = FunctionKind;

  BalancingFunction() = default;
  explicit BalancingFunction(Kind kind, double level = 0.0) : kind_(kind), level_(level) {}
  explicit BalancingFunction(std::shared_ptr<const BalanceTable> table)
      : kind_(Kind::table), level_(table->level()), table_(std::move(table)) {}

  [[nodiscard]] Kind kind() const { return kind_; }
  /// Log of a constant factor, which `log_g` and `weights` leave out: proposals of single changes do not depend on it.
  /// To those of many it is the length of a step.
  [[nodiscard]] double level() const { return level_; }
  [[nodiscard]] BalancingFunction with_level(double level) const {
    BalancingFunction other = *this;
    other.level_ = level;
    return other;
  }
  [[nodiscard]] const BalanceTable* table() const { return table_.get(); }

  /// log g(e^u); -inf where u = -inf, also for max: a state without probability is not in the neighbourhood.
  [[nodiscard]] double log_g(double u) const {
    if (!(u > -std::numeric_limits<double>::infinity())) return u;  // NaN comes back as NaN
    switch (kind_) {
      case Kind::sqrt: return 0.5 * u;
      case Kind::barker: return u < 0 ? u - std::log1p(std::exp(u)) : -std::log1p(std::exp(-u));
      case Kind::min: return std::min(u, 0.0);
      case Kind::max: return std::max(u, 0.0);
      case Kind::table: return table_->log_g(u);
    }
    return 0.0;
  }

  /// g(e^u) e^-offset in eight lanes.
  POISE_INLINE Doubles8 weights(const Doubles8& u, double offset) const {
    const Doubles8 zero = {};
    Doubles8 w = zero;
    switch (kind_) {
      case Kind::sqrt: return exp8(0.5 * u - offset);
      case Kind::barker: return exp8(min8(zero, u) - offset) / (1.0 + exp8(-1.0 * abs8(u)));
      case Kind::min: return exp8(min8(zero, u) - offset);
      case Kind::max: w = exp8(max8(zero, u) - offset); break;
      case Kind::table: {
        Doubles8 exponent, factor;
        table_->parts(u, exponent, factor);
        w = exp8(exponent - offset) * factor;
        break;
      }
    }
    return select8(less8(u, broadcast8(-1e300)), zero, w);
  }

  template <class A>
  void archive(A& archive) {
    std::vector<double> phi;
    if (table_) phi.assign(table_->phi().begin(), table_->phi().end());
    archive(kind_, phi, level_);
    table_ = phi.empty() ? nullptr : std::make_shared<const BalanceTable>(phi);
  }

 private:
  Kind kind_ = Kind::sqrt;
  double level_ = 0.0;
  std::shared_ptr<const BalanceTable> table_;
};

/// The names of the fixed functions on the command line and in files, in the order of BalancingFunction::Kind.
inline constexpr std::array<const char*, 4> kFunctionNames = {"sqrt", "barker", "min", "max"};

}  // namespace poise
