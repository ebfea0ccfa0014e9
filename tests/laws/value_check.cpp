/// Values that are exact, and estimates of log Z: against enumeration.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <poise/extend/engines/own_kernel.hpp>
#include <poise/log_partition.hpp>
#include <poise/marginals.hpp>
#include "laws/checks.hpp"

namespace poise::laws {

namespace {

/// Of probabilities, and of log p relative to its size.
constexpr double kExact = 1e-9;
/// Weights of RBMs are floats: sums of some dozens of them.
constexpr double kSinglePrecision = 1e-5;

class Values {
 public:
  Values(const Trial& trial, Tally& tally) : trial_(trial), small_(*trial.small), truth_(*trial.truth), tally_(tally) {}

  /// A difference that must be within the tolerance.
  void hold(const char* what, double difference, double tolerance) {
    Checks& checks = tally_.checks[what];
    ++checks.done;
    checks.worst = std::max(checks.worst, std::abs(difference));
    if (std::abs(difference) <= tolerance) return;
    ++checks.failed;
    trial_.report(tally_,
                  {what, small_.kind, "no sampler", fmt::format("off by {:.3g}", difference), trial_.again("")});
  }

  /// An estimate with its error. It counts as wrong where chance does not make such a difference: errors come from as
  /// few as four ladders, and z values with three degrees of freedom are beyond 40 three times in a hundred thousand.
  void hold_estimate(const char* what, double value, double error, bool warned) {
    const double off = value - truth_.log_partition;
    if (error > 1e-9) tally_.errors[what].add(off / error);
    Checks& checks = tally_.checks[what];
    ++checks.done;
    checks.worst = std::max(checks.worst, std::abs(off));
    if (warned || std::abs(off) <= std::max(0.02, 40.0 * error)) return;
    ++checks.failed;
    trial_.report(
        tally_, {what, small_.kind, "no sampler",
                 fmt::format("{:.4f} +- {:.4f}, exact {:.4f}", value, error, truth_.log_partition), trial_.again("")});
  }

  void log_prob() {
    const auto target = target_of(small_.model);
    double first = std::nan("");
    double largest = 0.0;
    for (const std::vector<Value>& x : truth_.space.states) {
      // Observed variables have one level, whatever is said of them.
      const double ours = small_.log_prob(x);
      if (ours == kMinusInfinity && !small_.model.layout.observed.empty()) continue;
      const double theirs = target->log_prob(target->make_state(x));
      if (ours == kMinusInfinity || theirs == kMinusInfinity) {
        largest = ours == theirs ? largest : std::numeric_limits<double>::infinity();
        continue;
      }
      if (std::isnan(first)) first = theirs - ours;
      largest = std::max(largest, std::abs(theirs - ours - first) / (1.0 + std::abs(ours)));
    }
    hold("log p", largest, small_.rbm ? kSinglePrecision : kExact);
  }

  void network() {
    if (!small_.network) return;
    MarginalsOptions options;
    options.method = Method::exact;
    options.threads = 1;
    const MarginalsAnswer answer = find_marginals(small_.network, options);
    double largest = 0.0;
    for (std::size_t k = 0; k < truth_.known.marginals.values.size(); ++k) {
      largest = std::max(largest, std::abs(answer.marginals.values[k] - truth_.known.marginals.values[k]));
    }
    hold("exact marginals", largest, kExact);
    NetworkLogPartitionOptions exact;
    exact.method = Method::exact;
    exact.threads = 1;
    if (!small_.has_constant) return;
    hold("exact log Z", find_log_partition(*small_.network, exact).value - truth_.log_partition,
         kExact * (1.0 + std::abs(truth_.log_partition)));
    if (answer.log_partition) {
      hold("exact log Z of marginals", *answer.log_partition - truth_.log_partition,
           kExact * (1.0 + std::abs(truth_.log_partition)));
    }
  }

  void rbm() {
    if (!small_.rbm) return;
    LogPartitionOptions options;
    options.method = LogPartitionMethod::both;
    options.chains = 64;
    options.temperatures = 500;
    options.seed = trial_.run_seed();
    options.threads = 1;
    const LogPartition answer = find_log_partition(*small_.rbm, options);
    if (answer.exact) {
      hold("exact log Z of RBMs", answer.exact->value - truth_.log_partition,
           kSinglePrecision * (1.0 + std::abs(truth_.log_partition)));
    }
    if (answer.annealed) {
      hold_estimate("annealed log Z", answer.annealed->value, answer.annealed->error, !answer.warnings().empty());
    }
  }

  /// By ladders of as many draws as a default run has.
  void tempered() {
    if (!small_.has_constant || !takes(small_.model, "temper") || !trial_.wants("temper")) return;
    RunOptions options;
    options.seed = trial_.run_seed();
    options.threads = 1;
    options.start = Start::dispersed;
    const RunResult result = run(small_.model, parse_sampler("temper"), options);
    if (!result.tempering || !std::isfinite(result.tempering->log_partition)) return;
    const double error = result.tempering->log_partition_error;
    hold_estimate("tempered log Z", result.tempering->log_partition, std::isnan(error) ? 0.0 : error,
                  !make_report(result).warnings.empty());
  }

  /// As users ask for it. How many draws there are depends on the speed of the machine.
  void by_the_clock() {
    if (!trial_.by_the_clock || trial_.number % 4 != 0) return;
    NetworkLogPartitionOptions options;
    options.method = Method::sample;
    options.seconds = 0.2;
    options.seed = trial_.run_seed();
    options.threads = 1;
    // Where user code has states of probability zero, nobody knows how many.
    const bool has_hot_end = small_.model.fibers() == nullptr ||
                             std::find(truth_.space.probabilities.begin(), truth_.space.probabilities.end(), 0.0) ==
                                 truth_.space.probabilities.end();
    if (has_hot_end && small_.has_constant && !small_.network && takes(small_.model, "temper")) {
      const NetworkLogPartition answer = find_log_partition(small_.model, options);
      hold_estimate("log Z by the clock", answer.value, answer.error.value_or(0.0),
                    answer.report && !answer.report->warnings.empty());
    }
    if (!small_.network) return;
    MarginalsOptions marginals;
    marginals.method = Method::sample;
    marginals.sampler = "gibbs";
    marginals.seconds = 0.2;
    marginals.seed = trial_.run_seed();
    marginals.threads = 1;
    const MarginalsAnswer answer = find_marginals(small_.network, marginals);
    if (!answer.warnings().empty()) return;
    for (Index i = 0; i < small_.cardinalities.size(); ++i) {
      for (Index level = 0; level < small_.cardinalities[i]; ++level) {
        const double p = truth_.known.marginals.of(i)[level];
        const double error = answer.mcse.of(i)[level];
        if (p < 0.02 || p > 0.98 || !(error > 1e-9)) continue;
        tally_.errors[level == 0 ? "marginals by the clock, level 0" : "marginals by the clock, others"].add(
            (answer.marginals.of(i)[level] - p) / error);
      }
    }
  }

 private:
  const Trial& trial_;
  const SmallModel& small_;
  const Truth& truth_;
  Tally& tally_;
};

}  // namespace

void check_values(const Trial& trial, Tally& tally) {
  Values values(trial, tally);
  values.log_prob();
  values.network();
  values.rbm();
  values.tempered();
  values.by_the_clock();
}

}  // namespace poise::laws
