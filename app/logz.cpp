/// `poise logz`: the log of the partition function of a restricted Boltzmann machine.
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>

#include <fmt/format.h>

#include <poise/infer/log_partition.hpp>
#include <poise/report/report.hpp>
#include <poise/report/text.hpp>
#include <poise/spec.hpp>
#include <poise/target/rbm_weights.hpp>

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
  std::string model;
  std::string method = "auto";
  std::string chains;
  std::string temperatures;
  std::string seed;
  std::string threads;
  std::string json;
  bool strict = false;
  bool quiet = false;
};

LogPartitionOptions read_options(const LogzFlags& flags) {
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
  if (flags.model.empty()) problems.add("the model is missing, for example rbm:weights=rbm.safetensors");
  problems.throw_if_any();
  return options;
}

Rbm read_rbm_of(const Spec& spec) {
  if (spec.name != "rbm") {
    throw InputError(
        fmt::format("found model {}, expected a restricted Boltzmann machine, rbm:weights=FILE", quote(spec.text())));
  }
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

int logz(const LogzFlags& flags) {
  const LogPartitionOptions options = read_options(flags);
  check_outputs({{"--json", flags.json}});
  const Spec spec = parse_spec(flags.model);
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
  if (!flags.json.empty()) write_output(flags.json, json_text(log_partition_json(answer, spec.text())));
  if (flags.json != "-") {
    fmt::print("{}", log_partition_text(answer, spec.text(), table_width(stdout)));
  } else if (!flags.quiet) {
    fmt::print(stderr, "{}", log_partition_text(answer, spec.text(), table_width(stderr)));
  }
  if (answer.interrupted) return kInterrupted;
  return flags.strict && !answer.warnings().empty() ? kWarnings : kSuccess;
}

}  // namespace

Command add_logz(CLI::App& program) {
  const auto flags = std::make_shared<LogzFlags>();
  const LogPartitionOptions defaults;
  CLI::App* command = program.add_subcommand("logz", "Partition function of a restricted Boltzmann machine");
  const auto add = [&](const char* name, std::string& value, const std::string& help, const char* type) {
    command->add_option(name, value, help)->type_name(type);
  };
  add("model", flags->model, "Model: rbm:weights=FILE", "MODEL");
  add("--method", flags->method,
      fmt::format("ais, exact or both [auto: both where a side has at most {} units, else ais]", kMostEnumerated),
      "HOW");
  add("--chains", flags->chains, fmt::format("Annealed chains [{}]", defaults.chains), "N");
  add("--temperatures", flags->temperatures,
      fmt::format("Temperatures that each chain goes through [{}]", defaults.temperatures), "N");
  add("--seed", flags->seed, fmt::format("Seed of all random numbers [{}]", defaults.seed), "S");
  add("--threads", flags->threads, "Threads; the result does not depend on it [0: all cores]", "T");
  add("--json", flags->json, "Write the result as JSON; - is standard output", "FILE");
  command->add_flag("--strict", flags->strict, "Exit with 3 when there are warnings");
  command->add_flag("--quiet", flags->quiet, "Show no progress");
  command->footer(logz_footer());
  return {command, [flags] { return logz(*flags); }};
}

}  // namespace poise::app
