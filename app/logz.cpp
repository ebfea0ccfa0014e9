/// `poise logz`: the log of the partition function of a model.
#include <chrono>
#include <cstdio>
#include <map>
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
#include "help.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "run_flags.hpp"
#include "terminal.hpp"

namespace poise::app {

namespace {

struct LogzFlags {
  ModelFlags model;
  OptionFlags options;
  std::string out;
  std::string json;
  bool strict = false;
  bool quiet = false;
};

/// What the flags say, and which of them the kind of model has no use for.
template <class Options>
Options read_options(const LogzFlags& flags, const std::vector<std::string>& useless, const char* why) {
  Problems problems;
  Options options;
  flags.options.read(options, problems);
  const std::map<std::string, std::string> files = {{"evidence", flags.model.evidence}, {"field", flags.model.field}};
  for (const std::string& name : useless) {
    const std::string word = files.contains(name) ? files.at(name) : flags.options.word(name);
    if (!word.empty()) problems.add(fmt::format("--{}: {}", name, why));
  }
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
  const auto options = read_options<LogPartitionOptions>(flags, {"memory", "seconds", "evidence", "field"},
                                                         "it is of no use for an RBM");
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
  const auto options = read_options<NetworkLogPartitionOptions>(flags, {"temperatures"},
                                                                "only RBMs are annealed, and the model is none");
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
  const std::optional<Network> network = find_network(flags.model.model, files);
  const NetworkLogPartition answer = network ? find_log_partition(*network, options, hooks)
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
  CLI::App* command =
      program.add_subcommand("logz", "Partition function of a model: exact where it fits, else by tempering");
  declare(*command, flags->model);
  const auto add = [&](const char* name, std::string& value, const std::string& help, const char* type) {
    command->add_option(name, value, help)->type_name(type);
  };
  flags->options.declare(*command, NetworkLogPartitionOptions());
  flags->options.declare(*command, LogPartitionOptions(), {"temperatures"});
  add("--out", flags->out, "Write log10 Z in the UAI format (PR); - is standard output", "FILE.PR");
  add("--json", flags->json, "Write the result as JSON; - is standard output", "FILE");
  command->add_flag("--strict", flags->strict, "Exit with 3 when there are warnings");
  command->add_flag("--quiet", flags->quiet, "Show no progress");
  command->footer(logz_footer());
  return {command, [flags] { return logz(*flags); }};
}

}  // namespace poise::app
