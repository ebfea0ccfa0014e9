/// Finds the partition function of a network, and puts it into words.
#include <poise/infer/network_log_partition.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include <poise/network/collapse.hpp>
#include <poise/report/text.hpp>

namespace poise {

namespace {

using nlohmann::json;

std::string cost_of(const EliminationPlan& plan) {
  return plan.complete
             ? fmt::format("exact inference takes {} of tables (induced width {})", text::bytes(plan.bytes), plan.width)
             : fmt::format("exact inference takes more than {} of tables (induced width {} or more)",
                           text::bytes(plan.bytes), plan.width);
}

/// What is done where exact inference does not fit. There is no estimate by sampling, so this refuses.
[[noreturn]] void sample_log_partition(const EliminationPlan& plan, const NetworkLogPartitionOptions& options) {
  const bool too_large = !plan.complete || plan.bytes > options.memory_limit;
  throw InputError(
      fmt::format("{}, {}: the partition function is out of reach; observe more variables{}", cost_of(plan),
                  too_large ? fmt::format("over the limit of {}", text::bytes(options.memory_limit))
                            : fmt::format("which fit, but looks at {} entries", text::number(plan.operations, 3)),
                  too_large ? ", or allow more memory" : ", or ask for the exact method if it may take hours"));
}

/// What has to be summed out in earnest. Variables whose level follows from zeros, those in one factor alone and what
/// has a sum of 1 go beforehand: that makes no table larger, and of Bayesian networks it may leave far smaller ones.
struct Reduced {
  double log_constant = 0.0;
  Network network;
};

Reduced reduce(const Network& network, double memory_limit) {
  constexpr Index most_levels = 128;  // that can be drawn again, as Collapse does
  if (std::any_of(network.cardinalities.begin(), network.cardinalities.end(),
                  [](Index levels) { return levels > most_levels; })) {
    return {0.0, network};
  }
  const Collapse collapse(network, {.most_entries = 1, .memory_limit = memory_limit});
  return {collapse.log_constant(), collapse.core()};
}

double exact_log_partition(const Network& network, const EliminationPlan& plan,
                           const NetworkLogPartitionOptions& options, const NetworkLogPartitionHooks& hooks) {
  const auto progress = [&](double part_done) {
    if (hooks.progress) hooks.progress(part_done);
    return hooks.stop == nullptr || !hooks.stop->load();
  };
  return JunctionTree(network, plan, {.memory_limit = options.memory_limit, .progress = progress}).log_partition();
}

}  // namespace

double NetworkLogPartition::log10() const { return value / std::numbers::ln10; }

NetworkLogPartition find_log_partition(const Network& network, const NetworkLogPartitionOptions& options,
                                       const NetworkLogPartitionHooks& hooks) {
  const auto started = std::chrono::steady_clock::now();
  NetworkLogPartition answer;
  answer.model = network.name;
  answer.variables = network.num_variables();
  for (Index i = 0; i < answer.variables; ++i) answer.observed += network.is_observed(i) ? 1 : 0;
  const Reduced reduced = reduce(network, options.memory_limit);
  const EliminationPlan plan = plan_elimination(reduced.network);
  answer.width = plan.width;
  answer.bytes = plan.bytes;
  answer.reason = options.method == Method::exact
                      ? fmt::format("it was asked for; {}", cost_of(plan))
                      : fmt::format("{}, within the limit of {}", cost_of(plan), text::bytes(options.memory_limit));
  const bool exact = plan.bytes <= options.memory_limit && plan.complete &&
                     (options.method == Method::exact || fits(plan, options.memory_limit));
  if (!exact) sample_log_partition(plan, options);
  answer.value = reduced.log_constant + exact_log_partition(reduced.network, plan, options, hooks);
  answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return answer;
}

json log_partition_json(const NetworkLogPartition& answer) {
  return {{"version", POISE_VERSION},
          {"model", answer.model},
          {"variables", answer.variables},
          {"observed", answer.observed},
          {"method", answer.method == Method::exact ? "exact" : "sample"},
          {"reason", answer.reason},
          {"log_partition", answer.value},
          {"log10_partition", answer.log10()},
          {"mcse", answer.error ? json(*answer.error) : json(nullptr)},
          {"width", answer.width},
          {"exact_bytes", answer.bytes},
          {"seconds", answer.seconds},
          {"warnings", json::array()}};
}

std::string log_partition_text(const NetworkLogPartition& answer, std::size_t width) {
  std::string out = text::wrap(answer.model, "model       ", width);
  out += text::wrap(answer.observed > 0 ? fmt::format("{}, {} of them observed", answer.variables, answer.observed)
                                        : fmt::format("{}", answer.variables),
                    "variables   ", width);
  const bool exact = answer.method == Method::exact;
  out += text::wrap(fmt::format("{}: {}", exact ? "exact" : "sampling", answer.reason), "method      ", width);
  out += text::wrap(text::duration(answer.seconds), "time        ", width) + '\n';
  text::Table table({"method", "log Z", "log10 Z", "mcse"});
  const double error = answer.error.value_or(0.0);
  const auto number = [](double value, double its_error) {
    return its_error > 0.0 ? text::mean(value, its_error) : fmt::format("{:.8f}", value);
  };
  table.add({exact ? "exact" : "sample", number(answer.value, error),
             number(answer.log10(), error / std::numbers::ln10), exact ? "-" : text::number(error, 2)});
  return out + table.text(width);
}

}  // namespace poise
