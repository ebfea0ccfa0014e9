/// The posterior of inclusion in linear regression: which columns of X belong in the model, coefficients integrated
/// out.
///
/// y = X b + e with e ~ N(0, s2), b_j = 0 where x_j = 0, and independent slabs b_j ~ N(0, s2 / l), or a g-prior
/// b_S ~ N(0, g s2 (X_S'X_S)^-1), on the included ones S. s2 is known, or has p(s2) ~ 1/s2 and is integrated out. All
/// of it depends on X'X, X'y, y'y and n alone.
///
/// A state keeps, of every column j, v_j and r_j: the squared length of the column and its product with y, both given S
/// (v_j includes l). Log odds of inclusion follow from these:
///
///     j outside S:  logit(pi_j) + (log l - log v_j) / 2 - (n / 2) log(1 - r_j^2 / (v_j Q)),     Q = y'y - b'X_S'y
///     j in S:       the same at v_j = 1 / A_jj and r_j = b_j / A_jj, with the last term + (n / 2) log(1 + r_j^2 / (v_j
///     Q))
///
/// where A = (X_S'X_S + l)^-1 and b = A X_S'y. Including k takes h = A X_S'x_k and w = X'(x_k - X_S h), and then
/// v -= w^2 / v_k and r -= w b_k with b_k = r_k / v_k. Removing m takes u = X'X_S A e_m, v += u^2 / A_mm and
/// r += u b_m / A_mm. Both cost O(p s), and read columns of X'X where they are: nothing is orthogonalised.
///
/// Rounding errors add up with the changes, so that a state is now and then computed anew.
#pragma once

#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include <poise/extend/base/hot.hpp>
#include <poise/extend/base/math.hpp>
#include <poise/types.hpp>
#include "base/whole_lanes.hpp"
#include "models/selection/selection_law.hpp"

namespace poise {

class SelectionTarget {
 public:
  /// What depends on the slab variance; with a prior on it there are several.
  struct Part {
    LineVector v;                      ///< of included columns: so large that their odds vanish
    LineVector r;                      ///< of included columns: zero
    std::vector<double> inverse;       ///< A, by rows
    std::vector<double> coefficients;  ///< b
    double fitted = 0.0;               ///< b'X_S'y
    double log_det = 0.0;              ///< log det (X_S'X_S + l)

    template <class A>
    void archive(A& archive) {
      archive(v, r, inverse, coefficients, fitted, log_det);
    }
  };

  /// A column times a factor.
  struct Term {
    const double* values;  ///< of row `first` and those below it
    Index first;
    Index count;
    double factor;
  };
  /// Room for changes, so that they take no memory.
  struct Room {
    std::vector<double> products;
    std::vector<double> factors;
    std::vector<double> inverse;
    std::vector<Term> terms;
    std::vector<Index> wanted;
    LineVector sum;
  };

  struct State {
    std::vector<Value> x;
    std::vector<Index> active;         ///< the included columns, in the order of A
    std::vector<CrossColumn> columns;  ///< of X'X, fetched when a change wants them
    std::vector<Part> parts;
    std::uint32_t changes = 0;  ///< since the state was computed from scratch
    Room room;
    bool singular = false;  ///< under a g-prior: columns that depend on each other, which have no density

    template <class A>
    void archive(A& archive) {
      archive(x, active, parts, changes, singular);
    }
  };

  /// v of an included column: its odds as of an excluded one vanish, and no product of it overflows.
  static constexpr double kIncluded = 1e290;
  /// Changes after which a state is computed anew.
  static constexpr std::uint32_t kRefresh = 1024;
  /// Part of a column's squared length below which removing it has the state computed anew.
  static constexpr double kNearlyDetermined = 1e-2;

  explicit SelectionTarget(std::shared_ptr<const SelectionLaw> law, double beta = 1.0)
      : law_(std::move(law)), beta_(beta) {}

  /// The likelihood to the power of beta, times the prior.
  [[nodiscard]] SelectionTarget heated(double beta) const { return SelectionTarget(law_, beta); }
  [[nodiscard]] double beta() const { return beta_; }
  /// States at all temperatures are alike.
  void adopt(State& /*state*/) const {}

  [[nodiscard]] const SelectionLaw& law() const { return *law_; }
  [[nodiscard]] Index num_variables() const { return law_->size(); }
  [[nodiscard]] Index num_moves() const { return law_->size(); }
  [[nodiscard]] static Index cardinality(Index /*i*/) { return 2; }
  [[nodiscard]] static std::vector<std::string> statistic_names() { return {"included"}; }
  void statistics(const State& state, std::span<double> out) const {
    out[0] = static_cast<double>(state.active.size());
  }

  [[nodiscard]] State make_state(std::span<const Value> x) const;
  [[nodiscard]] Value level(const State& state, Index i) const { return state.x[i]; }
  [[nodiscard]] Move move_at(const State& state, Index i) const { return {i, static_cast<Value>(1 - state.x[i])}; }
  [[nodiscard]] double log_prob(const State& state) const;
  /// log of the marginal likelihood over that of the empty model.
  [[nodiscard]] double log_likelihood(const State& state) const;
  /// log P(j included | the others) - log P(j excluded | the others).
  [[nodiscard]] double log_odds(const State& state, Index j) const;
  [[nodiscard]] double log_ratio(const State& state, Move move) const {
    const double odds = log_odds(state, move.variable);
    return move.value > 0 ? odds : -odds;
  }
  void log_ratios(const State& state, std::span<double> out) const;
  void apply(State& state, Move move) const;

  /// Whether odds are prior odds times v^(-1/2) (1 - t)^(-n/2): one slab variance, no g-prior, s2 integrated out.
  [[nodiscard]] bool has_direct_odds() const {
    return law_->parts() == 1 && !law_->is_g_prior() && !law_->residual_variance() && beta_ == 1.0 &&
           law_->products().is_positive();
  }
  /// `out` holds whole lines. Entries of included columns are those of `log_odds`; beyond the last variable they are
  /// -infinity.
  void all_log_odds(const State& state, double* out) const;

  /// The odds as lanes for one slab variance: log odds of excluded columns from v and r, eight at a time. Included ones
  /// have v = kIncluded and come out below -300.
  struct OddsLanes {
    const double* v;
    const double* r;
    const double* log_prior;
    double constant;      ///< of the log odds
    double of_log_v;      ///< the factor of log v
    double per_residual;  ///< r^2 / v times this is t
    double exponent;      ///< the factor of log(1 - t); where s2 is known, of t
    bool known_variance;
    const double* least_v;  ///< below which a column depends on the included ones; null: none does

    [[nodiscard]] POISE_INLINE Doubles8 at(std::size_t j) const;
    /// The likelihood's part alone.
    [[nodiscard]] POISE_INLINE Doubles8 likelihood(std::size_t j) const;
  };
  [[nodiscard]] OddsLanes odds_lanes(const State& state, std::size_t part) const;

 private:
  void reset(State& state) const;
  void include(State& state, Index k) const;
  void exclude(State& state, Index k) const;
  void fetch_columns(State& state) const;
  static void hide_included(const State& state, Part& part);
  /// y'y less what a part explains.
  [[nodiscard]] double residual(const State& state, std::size_t k) const {
    return law_->yty() - law_->explained(k) * state.parts[k].fitted;
  }
  [[nodiscard]] double part_log_likelihood(const State& state, std::size_t k) const;
  /// log P(slab variance k | S) of all parts; one part has 0.
  void part_weights(const State& state, std::vector<double>& out) const;
  /// The likelihood's part of the log odds of a variable, by one slab variance.
  [[nodiscard]] double part_log_odds(const State& state, std::size_t k, Index j) const;

  std::shared_ptr<const SelectionLaw> law_;
  double beta_;
};

/// t below which a short series has log(1 - t).
inline constexpr double kSmallPart = 1.0 / 64.0;

/// -(t + t^2/2 + t^3/3 + ...) for small t >= 0; what is left out is below 2^-57 of the first term.
template <class V>
POISE_INLINE V log_of_small_rest8(const V& t) {
  const V t2 = t * t;
  const V t4 = t2 * t2;
  const V a = 1.0 + t * 0.5;
  const V b = 1.0 / 3 + t * 0.25;
  const V c = 1.0 / 5 + t * (1.0 / 6);
  const V d = 1.0 / 7 + t * (1.0 / 8);
  const V series = (a + t2 * b) + t4 * ((c + t2 * d) + t4 * (1.0 / 9));
  return (-1.0 * t) * series;
}

/// log(1 - t) for 0 <= t < 1.
POISE_INLINE Doubles8 log_of_rest8(const Doubles8& t) {
  if (all_of8(less8(t, broadcast8(kSmallPart)))) return log_of_small_rest8(t);
  const Doubles8 large = log8(1.0 - t);
  return select8(less8(t, broadcast8(kSmallPart)), log_of_small_rest8(t), large);
}

/// v^(-1/2) of normal positive numbers: a guess by the exponent's bits, right to 3.5 %, and four steps of Newton's.
template <class V>
POISE_INLINE V inverse_root8(const V& v) {
  constexpr std::uint64_t kGuess = 0x5fe6eb50c7b537a9;
  const V half = v * 0.5;
  const auto guess = kGuess - (bits8<std::uint64_t>(v) >> 1);
  V y = bits8<double>(guess);
  for (int step = 0; step < 4; ++step) y = y * (1.5 - half * y * y);
  return y;
}

POISE_INLINE Doubles8 SelectionTarget::OddsLanes::likelihood(std::size_t j) const {
  const Doubles8 vj = load8(v + j);
  const Doubles8 rj = load8(r + j);
  const Doubles8 t = rj * rj / vj * per_residual;
  Doubles8 u = constant + of_log_v * log8(vj);
  // Where more than all is explained the matrix was no X'X, and the column is left out.
  constexpr double kMost = 1.0 - 0x1p-50;
  Ints8 possible = all8(std::int64_t{-1});
  if (known_variance) {
    u += exponent * t;
  } else {
    possible = less8(t, broadcast8(kMost));
    u += exponent * log_of_rest8(min8(max8(t, Doubles8{}), broadcast8(kMost)));
  }
  possible = possible & less8(broadcast8(0.0), vj);
  if (least_v != nullptr) possible = possible & less8(load8(least_v + j), vj);
  return select8(possible, u, broadcast8(kMinusInfinity));
}

POISE_INLINE Doubles8 SelectionTarget::OddsLanes::at(std::size_t j) const {
  return load8(log_prior + j) + likelihood(j);
}

/// e^x for |x| < 700, to within 8 units in the last place: half the work of exp8, which takes any number. e^r with
/// |r| <= ln(2) / 2 is the fourth power of a Taylor polynomial at r / 4 of degree 9 (remainder below 7e-18).
template <class V>
POISE_INLINE V bounded_exp8(const V& x) {
  constexpr double kLog2e = 1.4426950408889634074;
  constexpr double kLn2High = 6.93147180369123816490e-01;  // the first 32 bits of ln 2: n * kLn2High is exact
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer kept in the low bits
  const V shifted = x * kLog2e + kMagic;
  const V n = shifted - kMagic;
  const V q = ((x - n * kLn2High) - n * kLn2Low) * 0.25;
  const V q2 = q * q;
  const V q4 = q2 * q2;
  const V low = (1.0 + q) + q2 * (1.0 / 2 + q * (1.0 / 6));
  const V middle = (1.0 / 24 + q * (1.0 / 120)) + q2 * (1.0 / 720 + q * (1.0 / 5040));
  const V high = 1.0 / 40320 + q * (1.0 / 362880);
  const V p = low + q4 * (middle + q4 * high);
  const V p2 = p * p;
  const auto scaled = bits8<std::int64_t>(p2 * p2) + (bits8<std::int64_t>(shifted) << 52);
  return bits8<double>(scaled);
}

}  // namespace poise
