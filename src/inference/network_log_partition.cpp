/// Log Z of a network by the junction tree, as a number and as text.
#include <poise/log_partition.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "exact/collapse.hpp"
#include "exact/exact_inference.hpp"
#include "report/tempering.hpp"
#include "report/text.hpp"

namespace poise {

namespace {

using nlohmann::json;

/// log Z from the ladders of a tempered run.
void temper(const Model& model, const NetworkLogPartitionOptions& options, const NetworkLogPartitionHooks& hooks,
            NetworkLogPartition& answer) {
  RunOptions run_options;
  run_options.chains = options.chains;
  run_options.seconds = options.seconds;
  run_options.seed = options.seed;
  run_options.threads = options.threads;
  run_options.keep = Keep::monitors;
  run_options.start = Start::dispersed;
  const RunResult result =
      run(model, parse_sampler("temper"), run_options, {.progress = hooks.tempering, .stop = hooks.stop});
  if (!result.tempering || !std::isfinite(result.tempering->log_partition)) {
    throw InputError("the partition function of this model cannot be had: that of its hot end is not known");
  }
  answer.method = Method::sample;
  answer.value = result.tempering->log_partition;
  answer.error = result.tempering->log_partition_error;
  answer.report = make_report(result);
  answer.interrupted = result.interrupted;
}

[[noreturn]] void refuse(const ExactPlan& plan, const NetworkLogPartitionOptions& options) {
  const bool too_large = !plan.fits(options.memory_limit);
  throw InputError(fmt::format("exact inference would take {}, {}; observe more variables{}, or let it be sampled",
                               exact_cost(plan),
                               too_large ? fmt::format("over the limit of {}", text::bytes(options.memory_limit))
                                         : fmt::format("about {} on one core", text::duration(plan.seconds())),
                               too_large ? ", or allow more memory" : ""));
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

double exact_log_partition(const Network& network, const ExactPlan& plan, const NetworkLogPartitionOptions& options,
                           const NetworkLogPartitionHooks& hooks) {
  const auto progress = [&](double part_done) {
    if (hooks.progress) hooks.progress(part_done);
    return hooks.stop == nullptr || !hooks.stop->load();
  };
  ExactOptions exact;
  exact.memory_limit = options.memory_limit;
  exact.threads = options.threads;
  exact.progress = progress;
  return solve_exact(network, plan, exact).log_partition;
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
  answer.bayesian = network.bayesian;
  const Reduced reduced = reduce(network, options.memory_limit);
  const ExactPlan plan = plan_exact(reduced.network, {.memory_limit = options.memory_limit});
  answer.width = plan.tree.width;
  answer.bytes = plan.tree.bytes;
  const bool exact =
      options.method == Method::exact || (options.method == Method::automatic && fits(plan, options.memory_limit));
  if (exact) {
    if (!plan.fits(options.memory_limit)) refuse(plan, options);
    answer.reason =
        fmt::format("{} takes {}", options.method == Method::exact ? "as requested, it" : "it", exact_cost(plan));
    answer.value = reduced.log_constant + exact_log_partition(reduced.network, plan, options, hooks);
  } else {
    answer.reason =
        fmt::format("{}; exact inference would take {}",
                    options.method == Method::sample ? "sampling was requested" : "by tempering", exact_cost(plan));
    temper(network_model(std::make_shared<const Network>(network)), options, hooks, answer);
  }
  answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return answer;
}

NetworkLogPartition find_log_partition(const Model& model, const NetworkLogPartitionOptions& options,
                                       const NetworkLogPartitionHooks& hooks) {
  const auto started = std::chrono::steady_clock::now();
  NetworkLogPartition answer;
  answer.model = model.name;
  answer.variables = model.layout.variables;
  answer.reason = "by tempering: the model is no network, or too strong for tables";
  if (options.method == Method::exact) {
    throw InputError("exact inference takes networks only, and this model is none, or too strong for tables");
  }
  temper(model, options, hooks, answer);
  answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return answer;
}

json log_partition_json(const NetworkLogPartition& answer) {
  json out = {{"version", POISE_VERSION},
              {"model", answer.model},
              {"variables", answer.variables},
              {"observed", answer.observed},
              {"method", answer.method == Method::exact ? "exact" : "sample"},
              {"reason", answer.reason},
              {"log_partition", answer.value},
              {"log10_partition", answer.log10()},
              {"mcse", answer.error && std::isfinite(*answer.error) ? json(*answer.error) : json(nullptr)},
              {"width", answer.width},
              {"exact_bytes", answer.bytes},
              {"seconds", answer.seconds},
              {"interrupted", answer.interrupted},
              {"warnings", answer.report ? answer.report->warnings : std::vector<Warning>{}}};
  if (answer.bayesian && answer.observed > 0) {
    const double probability = std::exp(answer.value);
    out["evidence_probability"] = probability > 0.0 ? json(probability) : json(nullptr);  // beyond doubles
  }
  if (answer.report) out["report"] = report_json(*answer.report);
  return out;
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
    if (std::isnan(its_error)) return fmt::format("{:.1f}", value);
    return its_error > 0.0 ? text::mean(value, its_error) : fmt::format("{:.8f}", value);
  };
  table.add({exact ? "exact" : "sample", number(answer.value, error),
             number(answer.log10(), error / std::numbers::ln10),
             exact               ? "-"
             : std::isnan(error) ? "unknown: one chain"
                                 : text::number(error, 2)});
  out += table.text(width);
  if (answer.bayesian && answer.observed > 0)
    out += fmt::format("\nP(evidence) = {}\n", text::probability(answer.value));
  if (!answer.report) return out;
  if (answer.report->tempering) out += '\n' + tempering_text(*answer.report->tempering, width);
  return out + text::warnings(answer.report->warnings, width);
}

}  // namespace poise
