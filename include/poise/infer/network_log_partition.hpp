/// The partition function of a network: exact where a junction tree fits.
///
/// Z is the sum of the product of all factors over all states that agree with the evidence. Of a Bayesian network it is
/// the probability of the evidence.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include <poise/infer/marginals.hpp>

namespace poise {

struct NetworkLogPartitionOptions {
  /// Automatic is exact where that fits the memory and takes no more than ten minutes, else sampling.
  Method method = Method::automatic;
  double memory_limit = MarginalsOptions().memory_limit;  ///< bytes that the tables of exact inference may take
};

struct NetworkLogPartition {
  std::string model;
  Index variables = 0;
  Index observed = 0;                ///< of them
  Method method = Method::exact;     ///< what was used
  std::string reason;                ///< why, in one sentence
  double value = 0.0;                ///< natural logarithm
  std::optional<double> error = {};  ///< its standard error; nothing where it is exact
  Index width = 0;                   ///< induced width of the plan that was found, and its cost in bytes
  double bytes = 0.0;
  double seconds = 0.0;  ///< in all

  [[nodiscard]] double log10() const;
};

/// How the work is seen from outside.
struct NetworkLogPartitionHooks {
  std::function<void(double part_done)> progress;  ///< of exact inference
  const std::atomic<bool>* stop = nullptr;
};

/// Throws InputError where exact inference does not fit, with what it would need, and where no state has positive
/// probability; ExactStopped where it was stopped.
[[nodiscard]] NetworkLogPartition find_log_partition(const Network& network, const NetworkLogPartitionOptions& options,
                                                     const NetworkLogPartitionHooks& hooks = {});

/// Keys: version, model, variables, observed, method (exact or sample), reason, log_partition, log10_partition, mcse
/// (null where exact), width, exact_bytes, seconds, warnings[].
[[nodiscard]] nlohmann::json log_partition_json(const NetworkLogPartition& answer);
[[nodiscard]] std::string log_partition_text(const NetworkLogPartition& answer, std::size_t width);

}  // namespace poise
