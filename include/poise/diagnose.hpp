/// How far to trust draws: R-hat, effective sample sizes and Monte Carlo errors of monitors and of all variables.
///
/// The definitions are those of Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), and the numbers agree with the
/// R package posterior to rounding. A quantity that is undefined is NaN, where posterior says NA: always so for a
/// series that is constant, too short, or holds a NaN. We part from posterior in three places, each on purpose:
///   - r_hat is the larger of the bulk and the folded part *that is defined*. The folded part of an exactly balanced
///     two-valued series is not (|x - median| is constant), and the bulk part alone then says all there is to say.
///   - r_hat of half-chains that are all constant, but not at one value, is +infinity; posterior gives infinity, NA or
///     about 1e15, as rounding has it.
///   - two or three draws per chain give NaN.
/// ArviZ parts from posterior in two places, where we stay with posterior and Stan:
///   - with an odd number of draws the middle one belongs to no half-chain. ArviZ folds at the median of the others,
///     posterior at that of all draws: r_hat is then up to 0.002 apart with 101 draws and 6e-5 with 1001.
///   - a series that alternates (the autocorrelations at lags 0 and 1 add up to less than zero) has an effective size
///     of n/2 here and of n log10(n) in ArviZ. An antithetic sampler may deserve more than n, but a discrete chain that
///     alternates is mostly one that is caught between two states, and a size above n would hide it.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/states.hpp>
#include <poise/types.hpp>

namespace poise {

/// One number per draw, of several chains of equal length: the value of (chain, draw) is data[chain * draws + draw].
struct ChainsView {
  const double* data = nullptr;
  std::size_t chains = 0;
  std::size_t draws = 0;  ///< per chain

  [[nodiscard]] std::size_t size() const { return chains * draws; }
  [[nodiscard]] std::span<const double> chain(std::size_t which) const { return {data + which * draws, draws}; }
};

/// Rank-normalised split R-hat: 1 when all half-chains look alike, in location (bulk) and in spread (folded).
/// Needs 4 draws. Infinite values are legal, for only their ranks count.
[[nodiscard]] double r_hat(ChainsView series);

/// Split R-hat of the values themselves. Ranks of a few chains cannot be far apart; values can, and this number says
/// so. +infinity when no half-chain varies and they differ, NaN when nothing varies or a value is not finite.
[[nodiscard]] double split_r_hat(ChainsView series);

/// Effective sample size of the rank-normalised draws: how well the middle of the distribution is known.
/// Needs 6 draws, like every effective sample size below; under 12 no lag is looked at and the result is half the
/// number of draws, whatever they are. Infinite values are legal.
[[nodiscard]] double ess_bulk(ChainsView series);

/// Effective sample size for the mean. NaN if any value is infinite, as in all the functions below.
[[nodiscard]] double ess_mean(ChainsView series);

/// The smaller of the effective sample sizes of 1[x <= Q] at the 5 % and the 95 % quantile Q. NaN when one of them is
/// undefined, as when more than 5 % of the draws share the largest value.
[[nodiscard]] double ess_tail(ChainsView series);

/// Monte Carlo standard error of the mean: sd / sqrt(ess_mean).
[[nodiscard]] double mcse_mean(ChainsView series);

/// Monte Carlo standard error of the standard deviation.
[[nodiscard]] double mcse_sd(ChainsView series);

/// Autocorrelation of one chain at lags 0 .. n-1, the autocovariance at every lag divided by n (the biased estimate).
/// All NaN for a constant chain.
[[nodiscard]] std::vector<double> autocorrelation(std::span<const double> chain);

/// `tfp`: the estimator of TensorFlow Probability, n / (-1 + 2 sum rho_t) with the sum over t = 0, 1, ... up to the
/// first negative rho_t. Undefined counts as 1, as is the habit in the papers that use it.
[[nodiscard]] double ess_tfp(std::span<const double> chain);

/// `window`: (L+1) / (1 + 2 sum over {1 <= j <= L : rho_j > 0.05} of rho_j (1 - j/(L+1))), so a number out of L+1.
/// Throws InputError unless L = lags is less than the number of draws. NaN for a constant chain.
[[nodiscard]] double ess_window(std::span<const double> chain, std::size_t lags);

/// What to think of a series before looking at its numbers. The first that applies, in this order.
enum class SeriesStatus : std::uint8_t {
  non_finite,  ///< holds NaN (nothing is defined) or infinities (r_hat and ess are, being made from ranks)
  constant,    ///< all draws of all chains are equal: neither good nor bad, there is nothing to estimate from
  frozen,      ///< no chain ever moved, and they stand at different values: r_hat is infinite
  too_short,   ///< under 12 draws per chain: see ess_bulk
  rare,        ///< few transitions: one short excursion in 4000 draws has an ESS of 4000 and an R-hat of 1
  ok,
};

/// "ok", "constant", ...: the names above.
[[nodiscard]] std::string_view to_string(SeriesStatus status);

/// A series is `rare` with fewer transitions than this in all chains together and in under a tenth of the steps. Twenty
/// transitions are ten excursions: the frequency of what they visit is then known to about 1/sqrt(10), a third.
inline constexpr std::uint64_t rare_transitions = 20;

/// An R-hat is high when it is over this limit (Vehtari et al. 2021) and chance does not explain it: with a probability
/// under `chance_limit` any of all the series tested would have one so large. Of series worth
/// 400 draws in four chains a third is over the limit by chance, and nearly all of those worth 100; in a long run any
/// difference, however small, is beyond chance.
inline constexpr double r_hat_limit = 1.01;
inline constexpr double chance_limit = 0.001;

/// Effective draws, of all chains together, that a mean should rest on (Vehtari et al. 2021: 100 for each of four).
inline constexpr double ess_limit = 400;
/// Fewer than these are a warning. An ESS is itself an estimate: of 8000 series worth 444 the smallest was 141, so that
/// one of many is not under 100 by chance; and errors are honest down to here (docs/diagnostics.md).
inline constexpr double ess_alarm = 100;

/// All there is to say of one series. Undefined numbers are NaN.
struct SeriesSummary {
  using Status = SeriesStatus;
  double mean;
  double sd;
  double mcse;                ///< of the mean
  double ess;                 ///< bulk; for two values that is the same as for the mean
  double ess_tail;            ///< NaN under three distinct values
  double r_hat;               ///< +infinity when frozen
  std::uint64_t transitions;  ///< draws that differ from the draw before, over all chains
  Status status;
  double chance = 1;  ///< probability of so large an r_hat if the chains agreed; 1 where it is not over r_hat_limit
};

/// All numbers of one series, in O(n log n) for n draws.
[[nodiscard]] SeriesSummary summarize(ChainsView series);

// All variables of a model.

/// Draws of all variables, in row chain * draws + draw: labels, a byte each, or bits as in States.
struct DrawsView {
  const std::int8_t* data = nullptr;
  std::size_t chains = 0;
  std::size_t draws = 0;  ///< per chain
  std::size_t variables = 0;
  const std::uint8_t* bits = nullptr;  ///< instead of `data`; rows are whole bytes
  std::int8_t low = 0, high = 1;       ///< labels of a bit

  [[nodiscard]] bool has_states() const { return data != nullptr || bits != nullptr; }
  /// Of a row of bits.
  [[nodiscard]] std::size_t row_bytes() const { return (variables + 7) / 8; }
  [[nodiscard]] std::int8_t label(std::size_t row, std::size_t variable) const {
    if (bits == nullptr) return data[row * variables + variable];
    return (bits[row * row_bytes() + variable / 8] >> variable % 8 & 1U) != 0 ? high : low;
  }
};

/// States of a trace, which must outlive the view.
[[nodiscard]] DrawsView draws_view(const States& states, std::size_t chains, std::size_t draws);

/// Draws of all variables that need not be in memory at once: some variables at a time are.
class ColumnSource {
 public:
  virtual ~ColumnSource() = default;
  /// Number of chains.
  [[nodiscard]] virtual std::size_t chains() const = 0;
  [[nodiscard]] virtual std::size_t draws() const = 0;  ///< per chain
  /// Number of variables.
  [[nodiscard]] virtual std::size_t variables() const = 0;
  /// Gets the variables from `first` on, as many as there is room for, and says how many these are: at least one.
  [[nodiscard]] virtual std::size_t load(std::size_t first) = 0;
  /// Copies the labels of variables that were loaded, chain by chain; those of `first` + i go to `to` + i * stride.
  /// Threads may do so at the same time.
  virtual void copy(std::size_t first, std::size_t count, std::int8_t* to, std::size_t stride) const = 0;
  /// All draws, where they are in memory draw by draw.
  [[nodiscard]] virtual const DrawsView* in_memory() const { return nullptr; }
};

/// One series of zeros and ones, or of two labels. A variable seen at one or two labels is one series, as it is coded.
/// A variable seen at more has one series per label, 1[x = level]: labels have no order, so their mean says nothing.
struct VariableRow {
  double mean;  ///< of the labels; with a level, the share of the draws that have it
  double mcse;  ///< of the mean
  double ess;
  double r_hat;               ///< +infinity when frozen
  std::uint64_t transitions;  ///< over all chains
  Index variable;
  std::optional<std::int8_t> level;  ///< the label the series indicates; empty when the series is the variable itself
  SeriesStatus status;               ///< constant, frozen, too_short, rare or ok
  double chance = 1;                 ///< as in SeriesSummary
  bool is_estimate = false;          ///< ess, mcse and chance are estimated from batch means
};

/// Over all rows where the number is defined; NaN when there are none. R-hat may be infinite.
struct Quantiles {
  double min, q05, median, q95, max;
};

/// The rows, and what to look at when there are too many of them.
struct VariablesSummary {
  std::size_t chains = 0;
  std::size_t draws = 0;  ///< per chain
  std::size_t variables = 0;
  std::vector<VariableRow> rows;            ///< by variable, then by level
  std::vector<VariableRow> worst_by_r_hat;  ///< largest first
  std::vector<VariableRow> worst_by_ess;    ///< smallest first
  Quantiles ess{};                          ///< of the rows whose ESS is no estimate
  Quantiles r_hat{};
  std::size_t exact = 0;  ///< variables whose ESS is no estimate

  // Numbers of variables. One with several levels counts where any of them does.
  std::size_t constant = 0;
  std::size_t frozen = 0;
  std::size_t rare = 0;
  std::size_t high_r_hat = 0;  ///< R-hat over r_hat_limit by more than chance, the frozen ones apart
  std::size_t low_ess = 0;     ///< ESS under ess_limit, the frozen ones apart
};

/// How the variables of a run are diagnosed.
struct VariablesOptions {
  unsigned threads = 1;    ///< the result does not depend on it; 0: as many as the machine has
  std::size_t worst = 10;  ///< length of the two lists of worst rows
};

/// Up to so many values, of all variables in all draws, are diagnosed at every lag.
inline constexpr std::size_t values_at_every_lag = std::size_t{1} << 24;

/// Each variable has the ess_mean, r_hat and mcse_mean that the functions above give for its series, without
/// the series ever being stored as real numbers: a few dozen variables at a time are copied out of the draws and packed
/// into bits. All variables are looked at, none is left out or sampled.
///
/// Where there are more than `values_at_every_lag` values, every variable has its exact mean, transitions and R-hat,
/// and an ESS from batch means (`is_estimate`). Those with the worst of either have the exact ESS too, and so have
/// others at equal distances, as many as have a quarter of these values: by count, so numbers are the same on every
/// machine.
[[nodiscard]] VariablesSummary summarize_variables(DrawsView draws, const VariablesOptions& options = {});
/// The same of draws that are read part by part.
[[nodiscard]] VariablesSummary summarize_variables(ColumnSource& draws, const VariablesOptions& options = {});

/// A monitor by name.
struct NamedSummary {
  std::string name;
  SeriesSummary summary;
};

/// What variables and their levels are called: x[0], x[1], ... and labels where nothing is said.
struct VariableNames {
  std::span<const std::string> variables;
  std::span<const std::vector<std::string>> levels;

  /// "x[3]", "x[3] = 2", "smoke = no". A series of two labels with names is that of the second.
  [[nodiscard]] std::string operator()(const VariableRow& row) const;
};

/// What the user should know before using a result.
struct Warning {
  std::string code;       ///< stable, for programs: rhat, ess, stuck, ...
  std::string text;       ///< what was seen and what it means
  std::string next = {};  ///< what to type next: "--draws 6000"; may be empty

  /// All of it as one sentence.
  [[nodiscard]] std::string sentence() const { return next.empty() ? text : text + "; try " + next; }
  bool operator==(const Warning&) const = default;
};

/// The codes of all kinds of warnings, in alphabetical order.
[[nodiscard]] std::vector<std::string> warning_codes();

/// Whether there is a page for a code.
[[nodiscard]] bool has_explanation(std::string_view code);

/// What a kind of warning means, how sure it is, and what to do: the page of docs/warnings as plain text, about forty
/// lines. Throws InputError for an unknown code.
[[nodiscard]] std::string explanation(std::string_view code);

/// What warnings depend on besides the series.
struct RunFacts {
  std::size_t chains = 0;
  std::size_t draws = 0;  ///< per chain
  std::size_t warmup = 0;
  std::string sampler = {};  ///< its spec
  double seconds = 0.0;      ///< that were asked for; 0: the run is as long as its draws
  bool independent = false;  ///< draws are independent of each other: there is no mixing to warn of
  VariableNames names = {};
  std::string crossing = "temper";  ///< the sampler that crosses the barriers of the model

  /// What makes the run `factor` times as long: "--draws 6000", "--seconds 40".
  [[nodiscard]] std::string longer(double factor) const;
  /// What helps chains that would need `factor` times as many draws: these, or the sampler that crosses barriers.
  [[nodiscard]] std::string better(double factor) const;
};

/// One for each cause, most serious first; empty when all is well. `variables` may be empty (draws not kept).
[[nodiscard]] std::vector<Warning> warnings(std::span<const NamedSummary> monitors, const VariablesSummary& variables,
                                            const RunFacts& facts);

/// What the model says of the draws, which no statistic of the draws can show. A run asks it when it ends; warnings are
/// judged from it where a report is made.
struct ModelChecks {
  /// A level that no chain was ever at, of a variable that did change.
  struct Unvisited {
    Index variable;
    std::int8_t level;   ///< its label
    double probability;  ///< exact, or a lower bound by conditional laws at the draws
  };
  /// A variable that stayed at one level, the same in all chains. Bounds on the probability of its other levels.
  struct Constant {
    Index variable;
    double least;
    double most;
  };
  /// A variable of which a Gibbs update would raise log p on average, where 0 is right.
  struct LocalGain {
    Index variable;
    double gain;  ///< of log p
  };
  /// A variable that never changed, at another level in a chain from elsewhere.
  struct Elsewhere {
    Index variable;
    double gain;  ///< log p there, less its mean over the draws
  };
  /// Chains from elsewhere that stay where no draw is.
  struct OtherMode {
    std::size_t chains;  ///< of them
    std::size_t of;      ///< of all chains from elsewhere
    double gain;         ///< log of their probability beside that of the draws, as entropies of single variables say
    Index variable;      ///< one that differs most
    std::int8_t level;   ///< its label
    double here, there;  ///< its frequency in the draws, and in the most probable of these chains
  };
  /// A level whose frequency is not its exact probability.
  struct Off {
    Index variable;
    std::int8_t level;  ///< its label
    double frequency;
    double probability;
  };

  std::vector<Unvisited> unvisited;  ///< the most probable first
  std::vector<Constant> constant;    ///< the one with the most probable other levels first
  std::vector<LocalGain> gains;      ///< the largest first
  std::vector<Elsewhere> elsewhere;  ///< of the one of these chains that has the largest log p
  std::optional<OtherMode> other;    ///< a mode that no draw is in
  std::vector<Off> off;              ///< the farthest first
  /// Levels that may be exchanged in all variables without changing log p, so that each has the same probability:
  /// those of Ising and Potts models without fields. 0 where there are none.
  Index interchangeable = 0;
  double low = 0.0;  ///< labels of these, where they are two
  double high = 0.0;
  bool clusters = false;          ///< the model has clusters, which `wolff` moves as a whole
  bool exact = false;             ///< probabilities are those of a junction tree
  bool solved = false;            ///< every part of the model has a junction tree that takes no time
  std::size_t tested_levels = 0;  ///< levels never visited
  std::size_t tested_gains = 0;   ///< variables whose gain was computed, of all chains and of each
};

// Standard errors from batch means.

/// Between 16 and 32 batches, however long the run: when there are 32, neighbours are joined and batches become twice
/// as long.
class BatchMeans {
 public:
  static constexpr std::size_t kMost = 32;

  /// Whether draw number `draw` (from 1) ends a batch.
  [[nodiscard]] bool ends_at(std::uint64_t draw) const { return draw % draws_per_batch_ == 0; }

  /// `sums` of `count` values up to draw number `draw`. Draws that do not end a batch are passed over.
  void add(std::uint64_t draw, std::span<const double> sums, std::uint64_t count) {
    if (!ends_at(draw)) return;
    Batch batch{std::vector<double>(sums.begin(), sums.end()), count};
    batches_.push_back(std::move(batch));
    if (batches_.size() < kMost) return;
    for (std::size_t k = 0; k < kMost / 2; ++k) std::swap(batches_[k], batches_[2 * k + 1]);
    batches_.resize(kMost / 2);
    draws_per_batch_ *= 2;
  }

  /// Number of batches.
  [[nodiscard]] std::size_t size() const { return batches_.size(); }

  template <class A>
  void archive(A& archive) {
    archive(batches_, draws_per_batch_);
  }

  /// Mean of series `k` over batch `b`.
  [[nodiscard]] double mean(std::size_t b, std::size_t k) const {
    const double before = b == 0 ? 0.0 : batches_[b - 1].sums[k];
    const std::uint64_t earlier = b == 0 ? 0 : batches_[b - 1].count;
    return (batches_[b].sums[k] - before) / static_cast<double>(batches_[b].count - earlier);
  }

 private:
  struct Batch {
    std::vector<double> sums;  // from the start of the run to the end of the batch
    std::uint64_t count;

    template <class A>
    void archive(A& archive) {
      archive(sums, count);
    }
  };
  std::vector<Batch> batches_;
  std::uint64_t draws_per_batch_ = 1;
};

/// Mean of series `k` over the later half of a chain's batches, and its standard error by their spread alone: small
/// where the chain has settled, wherever that is. NaN with fewer than four batches there.
struct SettledMean {
  double mean;
  double error;
};
[[nodiscard]] inline SettledMean settled_mean(const BatchMeans& chain, std::size_t k) {
  const std::size_t first = chain.size() / 2;
  const auto count = static_cast<double>(chain.size() - first);
  if (count < 4) return {std::nan(""), std::nan("")};
  double mean = 0.0;
  for (std::size_t b = first; b < chain.size(); ++b) mean += chain.mean(b, k) / count;
  double square = 0.0;
  for (std::size_t b = first; b < chain.size(); ++b) square += (chain.mean(b, k) - mean) * (chain.mean(b, k) - mean);
  return {mean, std::sqrt(square / (count - 1.0) / count)};
}

/// Standard error of the mean over all chains of series `first`, or of the sum of `count` series from it on. As many
/// batches count as all chains have. Those of slow chains are short, and so correlated: the error is that of
/// ess_mean on batches in place of draws, with chains that disagree worth one batch each. NaN with fewer than two.
[[nodiscard]] double standard_error(std::span<const BatchMeans> chains, std::size_t first, std::size_t count = 1);

}  // namespace poise
