/// `poise logz`: the log of the partition function of a model.
#include <chrono>
#include <cstdio>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include <poise/log_partition.hpp>
#include <poise/network.hpp>
#include <poise/report.hpp>
#include "models/rbm/rbm.hpp"
#include "models/rbm/rbm_weights.hpp"
#include "report/text.hpp"

#include "commands.hpp"
#include "exit_codes.hpp"
#include "help.hpp"
#include "interrupt.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "run_flags.hpp"
#include "terminal.hpp"

namespace poise::app {

namespace {

struct LogzFlags {
  ModelFlags model;
  std::string method = "auto";
  std::string memory;
  std::string chains;
  std::string temperatures;
  std::string seconds;
  std::string seed;
  std::string threads;
  std::string out;
  std::string json;
  bool strict = false;
  bool quiet = false;
};

/// Options that the kind of model has no use for.
void refuse(std::initializer_list<std::pair<const char*, const std::string*>> given, const char* why,
            Problems& problems) {
  for (const auto& [option, value] : given) {
    if (!value->empty()) problems.add(fmt::format("{}: {}", option, why));
  }
}

LogPartitionOptions read_rbm_options(const LogzFlags& flags) {
  Problems problems;
  LogPartitionOptions options;
  if (flags.method == "ais") {
    options.method = LogPartitionMethod::ais;
  } else if (flags.method == "exact") {
    options.method = LogPartitionMethod::exact;
  } else if (flags.method == "both") {
    options.method = LogPartitionMethod::both;
  } else if (flags.method != "auto") {
    problems.add(fmt::format("--method: found {}, expected auto, ais, exact or both", quote(flags.method)));
  }
  read_integer(flags.chains, "--chains", 2, 1'000'000, options.chains, problems);
  read_integer(flags.temperatures, "--temperatures", 1, 1'000'000'000, options.temperatures, problems);
  read_integer(flags.seed, "--seed", 0, std::numeric_limits<std::int64_t>::max(), options.seed, problems);
  std::uint64_t threads = options.threads;
  read_integer(flags.threads, "--threads", 0, 1'000'000, threads, problems);
  options.threads = static_cast<unsigned>(threads);
  refuse({{"--memory", &flags.memory},
          {"--seconds", &flags.seconds},
          {"--evidence", &flags.model.evidence},
          {"--field", &flags.model.field}},
         "it is of no use for an RBM", problems);
  problems.throw_if_any();
  return options;
}

NetworkLogPartitionOptions read_network_options(const LogzFlags& flags) {
  Problems problems;
  NetworkLogPartitionOptions options;
  if (flags.method == "exact") {
    options.method = Method::exact;
  } else if (flags.method == "sample") {
    options.method = Method::sample;
  } else if (flags.method != "auto") {
    problems.add(fmt::format("--method: found {}, expected auto, exact or sample", quote(flags.method)));
  }
  double gibibytes = options.memory_limit / kGibibyte;
  read_positive(flags.memory, "--memory", gibibytes, problems);
  options.memory_limit = gibibytes * kGibibyte;
  read_positive(flags.seconds, "--seconds", options.seconds, problems);
  read_integer(flags.chains, "--chains", 1, 1'000'000, options.chains, problems);
  read_integer(flags.seed, "--seed", 0, std::numeric_limits<std::int64_t>::max(), options.seed, problems);
  std::uint64_t threads = options.threads;
  read_integer(flags.threads, "--threads", 0, 1'000'000, threads, problems);
  options.threads = static_cast<unsigned>(threads);
  refuse({{"--temperatures", &flags.temperatures}}, "only RBMs are annealed, and the model is none", problems);
  problems.throw_if_any();
  return options;
}

Rbm read_rbm_of(const Spec& spec) {
  SpecReader reader(spec, "model");
  const std::string file = reader.text("weights", "");
  if (file.empty()) reader.problem("no key 'weights' in model 'rbm', expected rbm:weights=FILE");
  reader.finish({"weights"});
  return Rbm(read_rbm(file));
}

/// One line: drawn anew on a terminal, a new one now and then otherwise.
class LogzDisplay {
 public:
  explicit LogzDisplay(ProgressStyle style) : style_(style) {}

  void update(const char* what, double part) {
    if (style_ == ProgressStyle::none) return;
    const auto now = Clock::now();
    if (what_ != what) {
      what_ = what;
      begun_ = now;
    } else if (style_ == ProgressStyle::lines && now - shown_ < std::chrono::seconds(2)) {
      return;
    }
    shown_ = now;
    const double seconds = std::chrono::duration<double>(now - begun_).count();
    const std::string left = seconds > 0.5 && part > 0.0
                                 ? fmt::format("  {} left", text::duration(seconds * (1.0 - part) / part))
                                 : std::string();
    const bool live = style_ == ProgressStyle::live;
    fmt::print(stderr, "{}{:<11} {:3.0f} %{}{}", live ? "\r" : "", what, 100.0 * part, left, live ? "\033[K" : "\n");
    std::fflush(stderr);
  }
  void end() const {
    if (style_ == ProgressStyle::live && what_ != nullptr) fmt::print(stderr, "\r\033[K");
  }

 private:
  using Clock = std::chrono::steady_clock;
  ProgressStyle style_;
  const char* what_ = nullptr;
  Clock::time_point begun_;
  Clock::time_point shown_;
};

/// The answer as the flags want it; whatever goes to standard output pushes the text to standard error.
void show(const LogzFlags& flags, double log_partition, const nlohmann::json& json, const std::string& text) {
  if (!flags.out.empty()) write_output(flags.out, pr_text(log_partition));
  if (!flags.json.empty()) write_output(flags.json, json_text(json));
  const bool taken = flags.out == "-" || flags.json == "-";
  if (!taken || !flags.quiet) fmt::print(taken ? stderr : stdout, "{}", text);
}

std::size_t width_of(const LogzFlags& flags) {
  return table_width(flags.out == "-" || flags.json == "-" ? stderr : stdout);
}

int logz_of_rbm(const LogzFlags& flags) {
  const LogPartitionOptions options = read_rbm_options(flags);
  const Spec spec = parse_spec(flags.model.model);
  const Rbm rbm = read_rbm_of(spec);
  const std::atomic<bool>& stop = stop_on_interrupt();
  LogzDisplay display(progress_style(flags.quiet));
  const LogPartition answer = find_log_partition(
      rbm, options, {.progress = [&](const char* what, double part) { display.update(what, part); }, .stop = &stop});
  display.end();
  if (!answer.annealed && !answer.exact) {
    fmt::print(stderr, "poise: interrupted before the first chains were through, so there is nothing to show.\n");
    return kInterrupted;
  }
  show(flags, answer.exact ? answer.exact->value : answer.annealed->value, log_partition_json(answer, spec.text()),
       log_partition_text(answer, spec.text(), width_of(flags)));
  if (answer.interrupted) return kInterrupted;
  return flags.strict && !answer.warnings().empty() ? kWarnings : kSuccess;
}

int logz_of_model(const LogzFlags& flags) {
  const NetworkLogPartitionOptions options = read_network_options(flags);
  const ModelFiles files{flags.model.field, flags.model.evidence};
  LogzDisplay display(progress_style(flags.quiet));
  std::optional<ProgressDisplay> tempering;
  const NetworkLogPartitionHooks hooks{.progress = [&](double part) { display.update("exact", part); },
                                       .tempering =
                                           [&](const Progress& progress) {
                                             if (!tempering) tempering.emplace(progress_style(flags.quiet), "temper");
                                             tempering->update(progress);
                                           },
                                       .stop = &stop_on_interrupt()};
  const NetworkLogPartition answer = has_network(flags.model.model)
                                         ? find_log_partition(make_network(flags.model.model, files), options, hooks)
                                         : find_log_partition(make_model(flags.model.model, files), options, hooks);
  display.end();
  if (tempering) tempering->end(answer.interrupted);
  show(flags, answer.value, log_partition_json(answer), log_partition_text(answer, width_of(flags)));
  if (answer.interrupted) return kInterrupted;
  return flags.strict && answer.report && !answer.report->warnings.empty() ? kWarnings : kSuccess;
}

int logz(const LogzFlags& flags) {
  if (flags.model.model.empty()) {
    throw InputError("the model is missing, for example net.uai or rbm:weights=rbm.safetensors");
  }
  check_outputs({{"--out", flags.out}, {"--json", flags.json}});
  return parse_spec(flags.model.model).name == "rbm" ? logz_of_rbm(flags) : logz_of_model(flags);
}

}  // namespace

Command add_logz(CLI::App& program) {
  const auto flags = std::make_shared<LogzFlags>();
  const LogPartitionOptions defaults;
  CLI::App* command =
      program.add_subcommand("logz", "Partition function of a model: exact where it fits, else by tempering");
  declare(*command, flags->model);
  const auto add = [&](const char* name, std::string& value, const std::string& help, const char* type) {
    command->add_option(name, value, help)->type_name(type);
  };
  add("--method", flags->method,
      fmt::format("exact or sample, of an RBM ais, exact or both [auto: exact where it fits, else sample; of an RBM "
                  "both where a side has at most {} units, else ais]",
                  kMostEnumerated),
      "HOW");
  add("--memory", flags->memory, "GiB that the tables of exact inference may take [4]", "GIB");
  add("--seconds", flags->seconds, "Time for tempering, where exact inference does not fit [10]", "S");
  add("--chains", flags->chains, fmt::format("Ladders [4], or annealed chains of an RBM [{}]", defaults.chains), "N");
  add("--temperatures", flags->temperatures,
      fmt::format("Temperatures that each chain goes through [{}]", defaults.temperatures), "N");
  add("--seed", flags->seed, fmt::format("Seed of all random numbers [{}]", defaults.seed), "S");
  add("--threads", flags->threads, "Threads; the result does not depend on it [0: all cores]", "T");
  add("--out", flags->out, "Write log10 Z in the UAI format (PR); - is standard output", "FILE.PR");
  add("--json", flags->json, "Write the result as JSON; - is standard output", "FILE");
  command->add_flag("--strict", flags->strict, "Exit with 3 when there are warnings");
  command->add_flag("--quiet", flags->quiet, "Show no progress");
  command->footer(logz_footer());
  return {command, [flags] { return logz(*flags); }};
}

}  // namespace poise::app
