/// The partition function of an RBM, by annealed importance sampling and, where one of its sides is small, exactly; and
/// that of a network or another model, by the junction tree or by replica exchange.
///
/// Z of an RBM is the sum of exp(b . v + c . h + h . W v) over all visible units v and hidden units h in {0, 1}.
///
/// Annealing (Neal 2001; Salakhutdinov and Murray 2008) goes through p_beta(v) = e^(b . v) prod_j (1 + e^(beta a_j)),
/// a_j = c_j + sum_i W_ji v_i: at beta = 0 the visible units are independent with the RBM's own biases and Z is
/// known, at beta = 1 it is the RBM. A chain starts with a draw at beta = 0; each temperature multiplies its weight
/// by p_beta / p_(beta before) where it stands and then makes one step of block Gibbs. The mean weight is an unbiased
/// estimate of the ratio of the partition functions. Its error is that of the weights seen: where a mode is so rare at
/// small beta that no chain came upon it, the estimate is too low and nothing in the weights tells.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <poise/marginals.hpp>
#include <poise/types.hpp>

namespace poise {

class OptionVisitor;
class Rbm;

/// Automatic is both where the smaller side can be enumerated, else annealing alone.
enum class LogPartitionMethod { automatic, ais, exact, both };

/// How log Z of an RBM is estimated. Time grows with chains * temperatures * visible * hidden units.
struct LogPartitionOptions {
  LogPartitionMethod method = LogPartitionMethod::automatic;
  std::size_t chains = 256;  ///< the error falls with the root of it; multiples of 16 waste nothing
  /// Values of beta above 0. The first to raise when weights are uneven: it makes each chain better, while more chains
  /// only average what there is.
  std::size_t temperatures = 10000;
  std::uint64_t seed = 1;
  unsigned threads = 0;  ///< 0: all cores; results do not depend on it

  void describe(OptionVisitor& visit);  ///< as RunOptions do
};

/// The estimate of log Z (natural logarithm) by annealed importance sampling, and how far to trust it.
struct AnnealedLogPartition {
  double value = 0.0;  ///< log of the mean weight, plus log Z at beta = 0
  /// Its standard error by the delta method, sd(w) / (mean(w) sqrt(chains)), widened by Student's t.
  double error = 0.0;
  double effective_chains = 0.0;  ///< (sum w)^2 / sum w^2
  double largest_share = 0.0;     ///< of the sum of the weights, that of the largest
  std::size_t chains = 0;         ///< that came through; fewer than asked for after a stop
  std::size_t temperatures = 0;
  double seconds = 0.0;
};

/// log Z by summing over all states of the smaller side, in time 2^units times the units of the other side.
struct ExactLogPartition {
  double value = 0.0;
  Index units = 0;      ///< of the side that was enumerated, 2^units states
  bool hidden = false;  ///< whether that was the hidden side
  double seconds = 0.0;
};

/// log Z of an RBM: what was computed, by which method.
struct LogPartition {
  Index visible = 0;
  Index hidden = 0;
  std::uint64_t seed = 0;
  std::optional<AnnealedLogPartition> annealed;  ///< nothing where it was not asked for, or stopped too early
  std::optional<ExactLogPartition> exact;
  bool interrupted = false;

  /// Annealed less exact in standard errors, where there are both. Products in single precision add about 1e-7 of the
  /// value to the error, which matters only where all weights are equal.
  [[nodiscard]] std::optional<double> difference_in_errors() const;
  /// Why the estimate cannot be trusted, if so.
  [[nodiscard]] std::vector<Warning> warnings() const;
};

/// How the work is seen from outside.
struct LogPartitionHooks {
  /// Called now and then on the calling thread; `what` is "enumeration" or "annealing".
  std::function<void(const char* what, double part_done)> progress;
  const std::atomic<bool>* stop = nullptr;  ///< gives what there is: the chains that are through
};

/// The most units of a side that is enumerated.
inline constexpr Index kMostEnumerated = 25;

/// beta of temperature k = 0 .. count, evenly spaced. Chains mix more slowly near beta = 1, but schedules denser there
/// (1 - (1 - t)^p, sqrt(t), the three pieces of Salakhutdinov and Murray) are not better throughout: on RBMs
/// trained on digits and on random ones they multiplied the variance of the log weights by 0.6 to 10.
[[nodiscard]] double inverse_temperature(std::size_t k, std::size_t count);

/// Throws InputError where enumeration is asked for and both sides are too large, and where there are fewer than two
/// chains or no temperatures.
[[nodiscard]] LogPartition find_log_partition(const Rbm& rbm, const LogPartitionOptions& options,
                                              const LogPartitionHooks& hooks = {});

/// Keys: version, model, visible, hidden, seed, ais{log_partition, log10_partition, mcse, effective_chains,
/// largest_share, chains, temperatures, seconds}, exact{log_partition, log10_partition, side, units, seconds},
/// difference_in_errors, interrupted, warnings[{code, message}]; what was not computed is null. mcse is that of the
/// natural logarithm.
[[nodiscard]] nlohmann::json log_partition_json(const LogPartition& answer, const std::string& model);
/// What a terminal shows, in lines of at most `width` characters.
[[nodiscard]] std::string log_partition_text(const LogPartition& answer, const std::string& model, std::size_t width);

// Networks and other models.

/// How log Z of a network or another model is found: limits of memory (bytes) and time (seconds), and ladders.
struct NetworkLogPartitionOptions {
  /// Automatic is exact where that fits the memory and takes no more than ten minutes, else sampling.
  Method method = Method::automatic;
  double memory_limit = MarginalsOptions().memory_limit;  ///< bytes that the tables of exact inference may take
  double seconds = 10.0;                                  ///< for tempering, if it comes to that
  std::size_t chains = 4;  ///< ladders of it, whose spread is the error: with few of them it is widened
  std::uint64_t seed = 1;
  unsigned threads = 0;

  void describe(OptionVisitor& visit);  ///< as RunOptions do
};

/// log Z of a network or another model, with its error where it comes from tempering.
struct NetworkLogPartition {
  std::string model;
  Index variables = 0;
  Index observed = 0;             ///< of them
  bool bayesian = false;          ///< the value is the logarithm of the probability of what is observed
  Method method = Method::exact;  ///< what was used
  std::string reason;             ///< why, in one sentence
  double value = 0.0;             ///< natural logarithm
  /// Its standard error, that of TemperingReport; nothing where it is exact, not a number with one ladder.
  std::optional<double> error = {};
  Index width = 0;  ///< induced width of the plan that was found, and its cost in bytes
  double bytes = 0.0;
  double seconds = 0.0;               ///< in all
  std::optional<Report> report = {};  ///< of the tempered run
  bool interrupted = false;

  /// The value as a logarithm to base 10.
  [[nodiscard]] double log10() const;
};

/// How the work is seen from outside.
struct NetworkLogPartitionHooks {
  std::function<void(double part_done)> progress;       ///< of exact inference
  std::function<void(const Progress&)> tempering = {};  ///< of a tempered run
  const std::atomic<bool>* stop = nullptr;
};

/// Throws InputError where exact inference was asked for but does not fit, with what it would need, and where no state
/// has positive probability; ExactStopped where exact inference was stopped. Tempering that is stopped gives what it
/// has.
[[nodiscard]] NetworkLogPartition find_log_partition(const Network& network, const NetworkLogPartitionOptions& options,
                                                     const NetworkLogPartitionHooks& hooks = {});

/// The partition function of a model that is no network, by replica exchange alone. Throws InputError where it cannot
/// be tempered, or the hot end of its ladder has no known constant.
[[nodiscard]] NetworkLogPartition find_log_partition(const Model& model, const NetworkLogPartitionOptions& options,
                                                     const NetworkLogPartitionHooks& hooks = {});

/// Keys: version, model, variables, observed, method (exact or sample), reason, log_partition, log10_partition, mcse
/// (null where exact or unknown), width, exact_bytes, seconds, interrupted, warnings[{code, message}], report{} (when
/// sampled).
[[nodiscard]] nlohmann::json log_partition_json(const NetworkLogPartition& answer);
/// What a terminal shows, in lines of at most `width` characters.
[[nodiscard]] std::string log_partition_text(const NetworkLogPartition& answer, std::size_t width);

}  // namespace poise
