/// The loops of weighted tempered Gibbs.
#include "kernels/weighted_gibbs.hpp"

#include "base/whole_lanes.hpp"

namespace poise {

namespace {

/// Log rates stay below this; what is beyond is scaled.
constexpr double kMostLog = 600.0;
/// Sums of rates beyond this are taken again, scaled.
constexpr double kMostSum = 1e250;

/// Where rates go, and what they take besides the odds.
struct RateLanes {
  double offset;     // of log rates
  double one;        // e^-offset
  double elsewhere;  // k/p
  const double* free;
  double* rates;
  double* probs;

  /// From odds times `one`; gives the rates.
  template <class L>
  POISE_INLINE typename L::Doubles store(std::size_t j, const typename L::Doubles& odds) const {
    constexpr double kTiny = 1e-300;  // where both terms vanish
    store8(probs + j, odds / max8(odds + one, L::all(kTiny)));
    const typename L::Doubles rate = odds * (1.0 + elsewhere) + L::load(free + j) * (elsewhere * one);
    store8(rates + j, rate);
    return rate;
  }
};

/// The usual case, independent slabs of one variance and s2 integrated out: odds without a logarithm of v.
struct DirectOdds {
  const double* v;
  const double* r;
  const double* prior;  // odds
  double factor;
  double per_residual;
  double exponent;
  double most_part;  // t beyond which odds would be out of range

  /// Rates of the variables from j to j + kTogether; their sum; infinity where one is out of range.
  template <class L>
  POISE_INLINE double store_block(std::size_t first, std::size_t end, const RateLanes& to) const {
    using Doubles = typename L::Doubles;
    alignas(64) double t[WeightedGibbs::kTogether];
    alignas(64) double root[WeightedGibbs::kTogether];
    Doubles most{};
    for (std::size_t j = first; j < end; j += 8) {
      const Doubles y = inverse_root8(L::load(v + j));
      const Doubles ry = L::load(r + j) * y;
      const Doubles own = ry * ry * per_residual;
      store8(root + (j - first), y);
      store8(t + (j - first), own);
      most = max8(most, own);
    }
    if (!all_less8(most, L::all(most_part))) return std::numeric_limits<double>::infinity();
    Doubles sum{};
    if (all_less8(most, L::all(kSmallPart))) {
      for (std::size_t j = first; j < end; j += 8) {
        const Doubles log = log_of_small_rest8(L::load(t + (j - first)));
        sum += store_odds<L>(j, log, L::load(root + (j - first)), to);
      }
    } else {
      for (std::size_t j = first; j < end; j += 8) {
        const Doubles log = L::from(log_of_rest8(load8(t + (j - first))));
        sum += store_odds<L>(j, log, L::load(root + (j - first)), to);
      }
    }
    return sum8(sum);
  }
  template <class L>
  POISE_INLINE typename L::Doubles store_odds(std::size_t j, const typename L::Doubles& log,
                                              const typename L::Doubles& y, const RateLanes& to) const {
    return to.store<L>(j, L::load(prior + j) * factor * y * bounded_exp8(exponent * log));
  }
};

/// From log odds that are written down: several slab variances, a g-prior, a known s2, other temperatures.
struct StoredOdds {
  const double* odds;

  template <class>
  POISE_INLINE double store_block(std::size_t first, std::size_t end, const RateLanes& to) const {
    Doubles8 sum{};
    for (std::size_t j = first; j < end; j += 8) {
      const Doubles8 u = load8(odds + j);
      const Doubles8 rate = to.store<HalfLanes>(j, exp8(u - to.offset));
      // What is impossible is not tried.
      const Doubles8 kept = select8(less8(broadcast8(kMinusInfinity), u), rate, Doubles8{});
      store8(to.rates + j, kept);
      sum += kept;
    }
    return sum8(sum);
  }
};

/// Rates of all variables, the included ones as if they were not, and their sums.
template <class Odds>
void store_rates(const Odds& odds, const RateLanes& to, std::size_t padded, std::vector<double>& sums) {
  hot_lanes([odds, to, padded, sums = sums.data()]<class L>(L) {
    for (std::size_t first = 0; first < padded; first += WeightedGibbs::kTogether) {
      const std::size_t end = first + WeightedGibbs::kTogether < padded ? first + WeightedGibbs::kTogether : padded;
      sums[first / WeightedGibbs::kTogether] = odds.template store_block<L>(first, end, to);
    }
  });
}

/// The variable at a place among the rates.
Index select(const WeightedGibbs::Scratch& scratch, std::size_t padded, double place) {
  std::size_t block = 0;
  for (; block + 1 < scratch.sums.size() && place >= scratch.sums[block]; ++block) place -= scratch.sums[block];
  const double* const rates = numbers_of(scratch.rates);
  std::size_t j = block * WeightedGibbs::kTogether;
  const std::size_t end = std::min(padded, j + WeightedGibbs::kTogether);
  while (j + 1 < end && place >= rates[j]) place -= rates[j++];
  while (j > 0 && rates[j] == 0.0) --j;  // rounding may lead past the last positive rate
  return static_cast<Index>(j);
}

void add_probs(const double* probs, double ticks, std::vector<double>& sums) {
  hot_lanes([probs, ticks, to = sums.data(), size = sums.size()]<class L>(L) {
    const std::size_t whole = size / 8 * 8;
    for (std::size_t j = 0; j < whole; j += 8) store8(to + j, L::load(to + j) + L::load(probs + j) * ticks);
    for (std::size_t j = whole; j < size; ++j) to[j] += probs[j] * ticks;
  });
}

/// Lists what differs from the beginning of the step: a variable that flips back is taken off again.
void note_change(std::vector<Change>& changed, Index j, Value old) {
  const auto found = std::find_if(changed.begin(), changed.end(), [&](const Change& c) { return c.variable == j; });
  if (found == changed.end()) {
    changed.push_back({j, j, old});
  } else {
    *found = changed.back();
    changed.pop_back();
  }
}

}  // namespace

WeightedGibbs::Scratch::Scratch(const SelectionTarget& target)
    : rates(lines_of(target.law().padded())),
      probs(lines_of(target.law().padded())),
      sums((target.law().padded() + kTogether - 1) / kTogether) {}

void WeightedGibbs::look(const SelectionTarget& target, const SelectionTarget::State& state, Scratch& scratch) const {
  const SelectionLaw& law = target.law();
  const double elsewhere = elsewhere_ / static_cast<double>(target.num_variables());
  std::vector<double>& odds = scratch.odds;
  odds.clear();
  double lowest = 0.0;
  for (const Index j : state.active) lowest = std::min(lowest, odds.emplace_back(target.log_odds(state, j)));
  RateLanes to{std::max(0.0, -lowest - kMostLog), 1.0, elsewhere, law.free_ones(), numbers_of(scratch.rates),
               numbers_of(scratch.probs)};
  bool done = to.offset == 0.0 && target.has_direct_odds();
  if (done) {
    const SelectionTarget::OddsLanes lanes = target.odds_lanes(state, 0);
    const DirectOdds direct{lanes.v,
                            lanes.r,
                            law.prior_odds(),
                            std::exp(lanes.constant),
                            lanes.per_residual,
                            lanes.exponent,
                            -std::expm1(kMostLog / lanes.exponent)};
    store_rates(direct, to, law.padded(), scratch.sums);
    for (const double sum : scratch.sums) done = done && sum < kMostSum;
  }
  if (!done) {
    LineVector& all = scratch.stored;
    all.resize(lines_of(law.padded()));
    target.all_log_odds(state, numbers_of(all));
    for (const Index j : state.active) numbers_of(all)[j] = 0.0;
    double most = 0.0;
    for (Index j = 0; j < target.num_variables(); ++j) {
      const double u = numbers_of(all)[j];
      if (!is_legal(u)) scratch.failure = kBadLogRatio;
      most = std::max(most, u);
    }
    to.offset = std::max(to.offset, most - kMostLog);
    to.one = std::exp(-to.offset);
    store_rates(StoredOdds{numbers_of(all)}, to, law.padded(), scratch.sums);
  }
  scratch.scale = to.one;
  for (std::size_t i = 0; i < state.active.size(); ++i) {
    const Index j = state.active[i];
    const double rate = (1.0 + elsewhere) * to.one + elsewhere * std::exp(-odds[i] - to.offset);
    to.rates[j] = law.is_fixed(j) ? 0.0 : rate;
    to.probs[j] = 1.0 / (1.0 + std::exp(-odds[i]));
  }
  for (const Index j : state.active) {
    const std::size_t first = j / kTogether * kTogether;
    const std::size_t end = std::min(first + kTogether, law.padded());
    Doubles8 sum{};
    for (std::size_t l = first; l < end; l += 8) sum += load8(to.rates + l);
    scratch.sums[j / kTogether] = sum8(sum);
  }
  scratch.total = 0.0;
  for (const double sum : scratch.sums) scratch.total += sum;
  if (!is_legal(scratch.total)) scratch.failure = kBadLogRatio;
  scratch.known = true;
}

StepInfo WeightedGibbs::step(const SelectionTarget& target, SelectionTarget::State& state, Scratch& scratch,
                             Rng& rng) const {
  scratch.changed.clear();
  double left = 1.0;
  for (;;) {
    if (!scratch.known) look(target, state, scratch);
    if (scratch.failure != nullptr) break;
    if (scratch.total == 0.0) {  // nothing may change
      scratch.rao_blackwell.count += static_cast<std::uint64_t>(kTicks);
      if (!scratch.rao_blackwell.sums.empty()) {
        add_probs(numbers_of(scratch.probs), kTicks, scratch.rao_blackwell.sums);
      }
      break;
    }
    const double mean = scratch.scale / scratch.total;
    const double ticks = std::nearbyint(-std::expm1(-left / mean) * mean * kTicks);
    if (!scratch.rao_blackwell.sums.empty() && ticks > 0.0) {
      add_probs(numbers_of(scratch.probs), ticks, scratch.rao_blackwell.sums);
    }
    scratch.rao_blackwell.count += static_cast<std::uint64_t>(ticks);
    const double held = -std::log1p(-rng.uniform()) * mean;
    if (!(held < left)) break;
    left -= held;
    const Index j = select(scratch, target.law().padded(), rng.uniform() * scratch.total);
    const Move move = target.move_at(state, j);
    note_change(scratch.changed, j, state.x[j]);
    target.apply(state, move);
    // Counted by flips, so that a chain that was saved, and looks again, has the same numbers.
    scratch.evals.ratio += target.num_variables();
    scratch.evals.changes += 1;
    scratch.known = false;
  }
  return {1.0, !scratch.changed.empty(), static_cast<std::uint32_t>(scratch.changed.size())};
}

}  // namespace poise
