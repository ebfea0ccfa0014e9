/// The partition function of a network: exact where a junction tree fits, from tempering elsewhere and for other
/// models.
///
/// Z is the sum of the product of all factors over all states that agree with the evidence. Of a Bayesian network it is
/// the probability of the evidence.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include <poise/marginals.hpp>

namespace poise {

struct NetworkLogPartitionOptions {
  /// Automatic is exact where that fits the memory and takes no more than ten minutes, else sampling.
  Method method = Method::automatic;
  double memory_limit = MarginalsOptions().memory_limit;  ///< bytes that the tables of exact inference may take
  double seconds = 10.0;                                  ///< for tempering, if it comes to that
  std::size_t chains = 4;                                 ///< ladders of it
  std::uint64_t seed = 1;
  unsigned threads = 0;
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
  double seconds = 0.0;               ///< in all
  std::optional<Report> report = {};  ///< of the tempered run
  bool interrupted = false;

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

/// Of a model that is no network, by tempering alone. Throws InputError where it cannot be tempered, or the hot end of
/// its ladder has no known constant.
[[nodiscard]] NetworkLogPartition find_log_partition(const Model& model, const NetworkLogPartitionOptions& options,
                                                     const NetworkLogPartitionHooks& hooks = {});

/// Keys: version, model, variables, observed, method (exact or sample), reason, log_partition, log10_partition, mcse
/// (null where exact), width, exact_bytes, seconds, interrupted, warnings[], report{} (when sampled).
[[nodiscard]] nlohmann::json log_partition_json(const NetworkLogPartition& answer);
[[nodiscard]] std::string log_partition_text(const NetworkLogPartition& answer, std::size_t width);

}  // namespace poise
