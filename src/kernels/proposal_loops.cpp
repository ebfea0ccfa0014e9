/// Loops of proposals that do not depend on the target: compiled once, not with every target.
#include <poise/extend/kernels/factorised_law.hpp>
#include <poise/extend/kernels/informed_proposal.hpp>

namespace poise {

namespace {

// The relaxation law of variables of two levels in floats. Where log ratios are first-order ones, off by far more than
// a float is, nothing is gained by more digits; and any law will do that a state determines. What is not lost to
// rounding is the balance between small numbers: 1 - e^(-tau s) is taken without cancellation, and the smaller of two
// probabilities is the one that is kept.

/// What the loops need of the function, in registers.
struct FloatRelaxation {
  using Kind = BalancingFunction::Kind;

  explicit FloatRelaxation(const BalancingFunction& function)
      : length(static_cast<float>(std::exp(function.level()))),
        still(static_cast<float>(std::exp(-std::min(kMostRate, std::exp(function.level()))))),
        moved(static_cast<float>(-std::expm1(-std::min(kMostRate, std::exp(function.level()))))),
        table(function.table()) {}

  float length;        // e^level
  float still, moved;  // e^-length, 1 - e^-length, of the longest at most
  const BalanceTable* table;

  /// e^phi at |u| = size.
  [[nodiscard]] POISE_INLINE Floats16::Half table_factor(const Floats16::Half& size) const {
    const Doubles8 wide = {__builtin_convertvector(__builtin_shufflevector(size, size, 0, 1, 2, 3), Doubles8::Half),
                           __builtin_convertvector(__builtin_shufflevector(size, size, 4, 5, 6, 7), Doubles8::Half)};
    Doubles8 exponent, factor;
    table->phi_parts(wide, exponent, factor);
    if (!all_of8(less_equal8(wide, broadcast8(BalanceTable::kRange)))) factor = factor * exp8(exponent);
    const Floats4 low = __builtin_convertvector(factor.low, Floats4);
    const Floats4 high = __builtin_convertvector(factor.high, Floats4);
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
  }

  /// `minor` of sixteen variables by their log ratios.
  template <Kind kind>
  [[nodiscard]] POISE_INLINE Floats16 law(const Floats16& u) const {
    const Floats16 size = min16(all16(kSteepestFloat), abs16(u));
    Floats16 scale, rest;
    exp_parts16(size * -0.5F, scale, rest);
    const Floats16 root = scale + scale * rest;
    const Floats16 small = root * root;
    const Floats16 sum = 1.0F + small;
    Floats16 likely, gone, left;  // 1 / (1 + e^-|u|), 1 - e^(-tau s), e^(-tau s)
    if constexpr (kind == Kind::barker) {
      likely = 1.0F / sum;
      gone = all16(moved);
      left = all16(still);
    } else {
      Floats16 rate;
      if constexpr (kind == Kind::min) {
        likely = 1.0F / sum;
        rate = length * sum;
      } else {
        const Floats16& denominator = kind == Kind::max ? small : root;
        const Floats16 inverse = 1.0F / (denominator * sum);
        likely = denominator * inverse;
        rate = length * (sum * sum * inverse);
      }
      if constexpr (kind == Kind::table) rate = rate * Floats16{table_factor(size.low), table_factor(size.high)};
      exp_parts16(-1.0F * min16(all16(static_cast<float>(kMostRate)), rate), scale, rest);
      rest = scale * rest;
      left = scale + rest;
      gone = (1.0F - scale) - rest;
    }
    const Floats16 stay = small + left;  // over `likely`, where the change is to the likelier level
    const Ints16 up = less16(Floats16{}, u);
    const Ints16 possible = less16(all16(-1e30F), u);
    const Ints16 stays_less = less16(stay, gone) & up;
    const Floats16 value = likely * select16(up, min16(stay, gone), small * gone);
    return bits16<float>((bits16<std::int32_t>(value) | (stays_less & std::numeric_limits<std::int32_t>::min())) &
                         possible);
  }

  template <Kind kind>
  [[nodiscard]] bool fill(std::span<const float> log_ratios, float* minor) const {
    return hot([own = *this, from = log_ratios.data(), size = log_ratios.size(), minor] {
      Ints16 legal = all16(std::int32_t{-1});
      for (std::size_t k = 0; k < size; k += 16) {
        const Floats16 u = load16(from + k);
        legal = legal & less16(u, all16(std::numeric_limits<float>::infinity()));
        store16(minor + k, own.law<kind>(u));
      }
      return or_of8(~(legal.low & legal.high)) == 0;
    });
  }
};

/// The law of all variables; false where a log ratio is illegal.
[[nodiscard]] bool relax_floats(std::span<const float> log_ratios, const BalancingFunction& function, float* minor) {
  using Kind = BalancingFunction::Kind;
  const FloatRelaxation relaxation(function);
  switch (function.kind()) {
    case Kind::sqrt: return relaxation.fill<Kind::sqrt>(log_ratios, minor);
    case Kind::barker: return relaxation.fill<Kind::barker>(log_ratios, minor);
    case Kind::min: return relaxation.fill<Kind::min>(log_ratios, minor);
    case Kind::max: return relaxation.fill<Kind::max>(log_ratios, minor);
    case Kind::table: return relaxation.fill<Kind::table>(log_ratios, minor);
  }
  return false;
}

/// The law in doubles, and that of Langevin form in either.
struct FactorisedLoops {
  const BalancingFunction& function_;

  using Kind = BalancingFunction::Kind;

  template <class Real>
  [[nodiscard]] static bool is_legal(const FactorisedLaw<Real>& law) {
    return hot([from = law.log_ratios.data(), size = law.log_ratios.size()] {
      Ints8 all = all8(std::int64_t{-1});
      for (std::size_t k = 0; k < size; k += 8) all = all & legal8(load_reals8(from + k));
      return all_of8(all);
    });
  }
  static constexpr std::size_t kBlock = kFlipsTogether;
  static constexpr double kSteepest = FactorisedLaw<double>::kSteepest;

  /// What the loops need of the function, in registers.
  struct Step {
    double length;  // e^level
    double still;   // e^-length
    const BalanceTable* table;
  };
  [[nodiscard]] Step step() const {
    const double length = std::exp(function_.level());
    return {length, std::exp(-std::min(kMostRate, length)), function_.table()};
  }

  /// The loop is compiled for every kind of function.
  template <Kind kind>
  void relax(FactorisedLaw<double>& law, const VariableMoves& moves) const {
    if (moves.binary) {
      hot([&law, step = step()] {
        const double* const log_ratios = law.log_ratios.data();
        double* const minor = law.minor.data();
        const std::size_t size = law.log_ratios.size();
        for (std::size_t k = 0; k < size; k += kBlock) relax_block<kind>(log_ratios + k, step, minor + k);
      });
    } else {
      hot([&law, &moves, step = step()] { fill_relaxation<kind>(law, moves, step); });
    }
  }

  // Results go through references: a struct of vectors would be stored in halves and loaded as a whole.

  /// tau s at |u| = size and 1 / (1 + e^-|u|), by `root` = e^(-|u|/2): s = 2 e^phi cosh(u/2) = e^phi (1 + root^2) /
  /// root, so that all takes one exponential and one division.
  template <Kind kind>
  POISE_INLINE static void find_rate(const Doubles8& size, const Doubles8& root, const Step& step, Doubles8& rate,
                                     Doubles8& likely) {
    const Doubles8 small = root * root;
    const Doubles8 sum = 1.0 + small;
    if constexpr (kind == Kind::barker || kind == Kind::min) {
      likely = 1.0 / sum;
      rate = kind == Kind::barker ? broadcast8(step.length) : step.length * sum;
      return;
    }
    const Doubles8& denominator = kind == Kind::max ? small : root;
    const Doubles8 inverse = 1.0 / (denominator * sum);
    likely = denominator * inverse;
    rate = step.length * (sum * sum * inverse);
    if constexpr (kind == Kind::table) {
      Doubles8 exponent, factor;
      step.table->phi_parts(size, exponent, factor);
      rate = rate * factor;
      if (!all_of8(less_equal8(size, broadcast8(BalanceTable::kRange)))) rate = rate * exp8(exponent);
    }
  }

  /// Some variables at a time, first their rates, then what follows from these: two chains of operations of half the
  /// length, of which a processor overlaps more.
  template <Kind kind>
  POISE_INLINE static void relax_block(const double* log_ratios, const Step& step, double* minor) {
    Line8 smalls[kBlock / 8], likelies[kBlock / 8], rates[kBlock / 8];
    for (std::size_t k = 0; k < kBlock / 8; ++k) {
      const Doubles8 size = min8(broadcast8(kSteepest), abs8(load8(log_ratios + 8 * k)));
      const Doubles8 root = exp8(-0.5 * size);
      Doubles8 rate, likely;
      find_rate<kind>(size, root, step, rate, likely);
      store8(smalls[k].lanes, root * root);
      store8(likelies[k].lanes, likely);
      store8(rates[k].lanes, rate);
    }
    for (std::size_t k = 0; k < kBlock / 8; ++k) {
      const Doubles8 u = load8(log_ratios + 8 * k);
      const Doubles8 small = load8(smalls[k].lanes);
      const Doubles8 likely = load8(likelies[k].lanes);
      const Doubles8 still = kind == Kind::barker ? broadcast8(step.still)
                                                  : exp8(-1.0 * min8(broadcast8(kMostRate), load8(rates[k].lanes)));
      const Doubles8 moved = (1.0 - still) * likely;
      const Ints8 up = less8(Doubles8{}, u);
      const Doubles8 change = select8(up, moved, small * moved);
      const Doubles8 stay = likely * select8(up, small + still, 1.0 + small * still);
      store8(minor + 8 * k, minor_of(u, change, stay));
    }
  }

  POISE_INLINE static Doubles8 weight_of_change(const Doubles8& u, const BalancingFunction& function, double steepest) {
    const Doubles8 inside = max8(broadcast8(-steepest), min8(broadcast8(steepest), u));
    return function.weights(inside, -function.level());
  }

  /// g(1), beside which a step of Langevin form weighs changes.
  [[nodiscard]] static double weight_of_present(const BalancingFunction& function) {
    return function.kind() == Kind::barker ? 0.5 : 1.0;
  }

  template <class Real>
  POISE_INLINE void fill_langevin(FactorisedLaw<Real>& law) const {
    const BalancingFunction function = function_;  // its own, so that no store in the loop can change it
    const double present = weight_of_present(function);
    const Real* const log_ratios = law.log_ratios.data();
    Real* const minor = law.minor.data();
    const std::size_t size = law.log_ratios.size();
    for (std::size_t k = 0; k < size; k += 8) {
      const Doubles8 u = load_reals8(log_ratios + k);
      const Doubles8 weight =
          min8(broadcast8(kMostOdds * present), weight_of_change(u, function, FactorisedLaw<Real>::kSteepest));
      const Doubles8 scale = 1.0 / (present + weight);
      store_reals8(minor + k, minor_of(u, weight * scale, present * scale));
    }
  }

  /// The conditional distribution of every variable relative to its largest probability, then how far it has relaxed.
  template <Kind kind>
  POISE_INLINE static void fill_relaxation(FactorisedLaw<double>& law, const VariableMoves& moves, const Step& step) {
    double* const weights = law.move_probs.data();
    double* const present = law.stay_probs.data();
    // What is possible keeps some weight, as it does where variables have two levels: a way back is never lost.
    constexpr double never = -std::numeric_limits<double>::infinity();
    for (Index i = 0; i < moves.variables(); ++i) {
      double most = 0.0;
      for (Index m = moves.first[i]; m < moves.first[i + 1]; ++m) most = std::max(most, law.log_ratios[m]);
      present[i] = std::max(-most, -kSteepest);
      for (Index m = moves.first[i]; m < moves.first[i + 1]; ++m) {
        const double u = law.log_ratios[m];
        weights[m] = u == never ? never : std::max(u - most, -kSteepest);
      }
    }
    for (std::size_t k = moves.variables(); k < law.stay_probs.size(); ++k) present[k] = 0.0;
    for (std::size_t k = moves.moves(); k < law.move_probs.size(); ++k) weights[k] = 0.0;
    for (std::size_t k = 0; k < law.move_probs.size(); k += 8) store8(weights + k, exp8(load8(weights + k)));
    for (std::size_t k = 0; k < law.stay_probs.size(); k += 8) store8(present + k, exp8(load8(present + k)));
    for (Index first = 0; first < moves.variables(); first += 8) {
      const Index last = std::min(first + 8, moves.variables());
      Line8 changes = {}, others = {};  // weights of all moves, and of all levels but the likeliest
      for (Index i = first; i < last; ++i) {
        double sum = 0.0, rest = present[i], most = 0.0;
        for (Index m = moves.first[i]; m < moves.first[i + 1]; ++m) {
          sum += weights[m];
          rest += std::min(most, weights[m]);
          most = std::max(most, weights[m]);
        }
        changes.lanes[i - first] = sum;
        others.lanes[i - first] = most > present[i] ? rest : sum;
      }
      // Odds of the likeliest level against the others, or of them against it: at least e^-600.
      const Doubles8 rest = load8(others.lanes);
      const Doubles8 odds = max8(broadcast8(1e-260), min8(rest, 1.0 / max8(rest, broadcast8(1e-260))));
      const Doubles8 size = -1.0 * log8(odds);
      Doubles8 rate, likely;
      find_rate<kind>(size, exp8(-0.5 * size), step, rate, likely);
      const Doubles8 still = exp8(-1.0 * min8(broadcast8(kMostRate), rate));
      const Doubles8 here = load8(present + first);
      const Doubles8 scale = 1.0 / (here + load8(changes.lanes));
      Line8 moved;
      store8(moved.lanes, (1.0 - still) * scale);
      store8(present + first, (here + load8(changes.lanes) * still) * scale);
      for (Index i = first; i < last; ++i) {
        for (Index m = moves.first[i]; m < moves.first[i + 1]; ++m) weights[m] *= moved.lanes[i - first];
      }
    }
  }

  POISE_INLINE void fill_langevin(FactorisedLaw<double>& law, const VariableMoves& moves) const {
    const BalancingFunction function = function_;
    double* const weights = law.move_probs.data();
    const double present = weight_of_present(function);
    for (std::size_t k = 0; k < law.move_probs.size(); k += 8) {
      const Doubles8 u = load8(law.log_ratios.data() + k);
      store8(weights + k, select8(less8(u, broadcast8(-1e300)), Doubles8{}, weight_of_change(u, function, kSteepest)));
    }
    for (Index i = 0; i < moves.variables(); ++i) {
      double changes = 0.0;
      for (Index m = moves.first[i]; m < moves.first[i + 1]; ++m) changes += weights[m];
      const double stay = std::max(present, changes / kMostOdds);
      const double scale = 1.0 / (stay + changes);
      law.stay_probs[i] = stay * scale;
      for (Index m = moves.first[i]; m < moves.first[i + 1]; ++m) weights[m] *= scale;
    }
  }
};

/// Fills weights by a balancing function at the present offset; gives their sum.
POISE_INLINE double fill_weights(const BalancingFunction& balance, WeighedMoves& out) {
  // Its own, so that no store in the loop can change it.
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  const BalancingFunction function = balance;
  const double* const log_ratios = out.log_ratios.data();
  double* const weights = out.weights.data();
  const std::size_t size = out.weights.size();
  const double offset = out.offset;
  Doubles8 total = {};
  for (std::size_t k = 0; k < size; k += 8) {
    const Doubles8 one = function.weights(load8(log_ratios + k), offset);
    store8(weights + k, one);
    total += one;
  }
  return sum8(total);
}

}  // namespace

bool weigh_moves(const BalancingFunction& function, WeighedMoves& out) {
  return hot([&] {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const std::size_t padded = out.log_ratios.size();
    Doubles8 most = broadcast8(-infinity);
    Ints8 legal = all8(std::int64_t{-1});
    for (std::size_t k = 0; k < padded; k += 8) {
      const Doubles8 u = load8(out.log_ratios.data() + k);
      most = max8(most, u);
      legal = legal & legal8(u);
    }
    double largest = -infinity;
    for (unsigned lane = 0; lane < 8; ++lane) largest = std::max(largest, most[lane]);
    if (!all_of8(legal)) return false;
    out.offset = largest > -infinity ? function.log_g(largest) : 0.0;
    out.total = fill_weights(function, out);
    if (!(out.total > 1e-140 && out.total < 1e140) && largest > -infinity) {
      // g need not be monotone: look for its largest value.
      out.offset = -infinity;
      for (const double u : out.log_ratios) out.offset = std::max(out.offset, function.log_g(u));
      out.total = fill_weights(function, out);
    }
    return true;
  });
}

bool FactorisedRule::fill(FactorisedLaw<float>& law, const VariableMoves&) const {
  if (form_ == FactorisedForm::relaxation) return relax_floats(law.log_ratios, function_, law.minor.data());
  if (!FactorisedLoops::is_legal(law)) return false;
  hot([&law, loops = FactorisedLoops{function_}] { loops.fill_langevin(law); });
  return true;
}

bool FactorisedRule::fill(FactorisedLaw<double>& law, const VariableMoves& moves) const {
  using Kind = BalancingFunction::Kind;
  if (!FactorisedLoops::is_legal(law)) return false;
  const FactorisedLoops loops{function_};
  if (form_ == FactorisedForm::langevin) {
    hot([&law, &moves, loops] { moves.binary ? loops.fill_langevin(law) : loops.fill_langevin(law, moves); });
    return true;
  }
  switch (function_.kind()) {
    case Kind::sqrt: loops.relax<Kind::sqrt>(law, moves); break;
    case Kind::barker: loops.relax<Kind::barker>(law, moves); break;
    case Kind::min: loops.relax<Kind::min>(law, moves); break;
    case Kind::max: loops.relax<Kind::max>(law, moves); break;
    case Kind::table: loops.relax<Kind::table>(law, moves); break;
  }
  return true;
}

}  // namespace poise
