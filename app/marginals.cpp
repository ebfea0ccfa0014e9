/// `poise marginals` and `poise exact`: the probability of every level of every variable.
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include <poise/marginals.hpp>
#include <poise/network.hpp>

#include "commands.hpp"
#include "help.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "ranks.hpp"
#include "run_flags.hpp"
#include "terminal.hpp"

namespace poise::app {

namespace {

constexpr std::size_t kShown = 40;  // variables in the table
constexpr std::size_t kDrawn = 60;  // bars in the picture, about

struct MarginalsFlags {
  ModelFlags model;
  OptionFlags options;
  std::string out;
  std::string json;
  std::string plot;
  std::string csv;
  std::string truth;
  bool strict = false;
  bool quiet = false;
};

MarginalsOptions read_options(const MarginalsFlags& flags, MarginalsOptions options) {
  Problems problems;
  flags.options.read(options, problems);
  if (options.method == Method::exact && options.device == Device::cuda) {
    problems.add("--device: exact inference runs on the CPU; leave --device or --method exact out");
  }
  if (flags.model.model.empty()) problems.add("the model is missing, for example net.uai");
  problems.throw_if_any();
  (void)parse_sampler(options.sampler);
  return options;
}

/// Progress of one run after another.
class Displays {
 public:
  explicit Displays(ProgressStyle style) : style_(style) {}

  void update(const std::string& title, const Progress& progress) {
    if (!display_) display_.emplace(style_, title);
    display_->update(progress);
  }
  void end(bool interrupted) {
    if (display_) display_->end(interrupted);
    display_.reset();
  }

 private:
  ProgressStyle style_;
  std::optional<ProgressDisplay> display_;
};

Marginals read_truth(const std::string& path, const Network& network) {
  Marginals truth = read_mar(path);
  const Marginals shape(network.cardinalities);
  if (truth.start != shape.start) {
    throw InputError(
        fmt::format("--truth: {} has the marginals of another model: its variables and levels differ", path));
  }
  return truth;
}

int marginals(const MarginalsFlags& flags, const MarginalsOptions& defaults) {
  const auto started = std::chrono::steady_clock::now();
  MarginalsOptions options = read_options(flags, defaults);
  if (is_root()) {
    check_outputs({{"--out", flags.out}, {"--json", flags.json}, {"--csv", flags.csv}, {"--plot", flags.plot}});
  }
  const auto network =
      std::make_shared<const Network>(make_network(flags.model.model, {flags.model.field, flags.model.evidence}));
  std::optional<Marginals> truth;
  if (!flags.truth.empty()) truth = read_truth(flags.truth, *network);

  options.elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  Displays displays(progress_style(flags.quiet));
  const bool counts = progress_style(flags.quiet) == ProgressStyle::live;  // exact inference, on a terminal
  MarginalsHooks hooks{.progress = {},
                       .end = [&](const std::string&, bool interrupted) { displays.end(interrupted); },
                       .exact_progress =
                           [&](double part) {
                             if (counts) fmt::print(stderr, "\rexact inference {:3.0f} %", 100.0 * part);
                           },
                       .stop = &stop_on_interrupt(),
                       .collective = ranks()};
  if (is_root()) {
    hooks.progress = [&](const std::string& title, const Progress& progress) { displays.update(title, progress); };
  }
  const MarginalsAnswer answer = find_marginals(network, options, hooks);
  if (!is_root()) return kSuccess;
  if (counts && answer.method == Method::exact) fmt::print(stderr, "\r                     \r");
  if (answer.interrupted && (!answer.report || answer.report->draws == 0)) {
    fmt::print(stderr, "poise: interrupted before the first draw, so there are no marginals.\n");
    return kInterrupted;
  }
  nlohmann::json json = marginals_json(answer, *network);
  std::string text;
  std::FILE* const screen = flags.out == "-" || flags.json == "-" || flags.csv == "-" ? stderr : stdout;
  text = marginals_text(answer, *network, table_width(screen), kShown);
  if (truth) {
    const double error = mean_absolute_error(answer.marginals, *truth);
    json["mean_absolute_error"] = error;
    text += fmt::format("\nmean absolute error against {}: {:.3g}\n", flags.truth, error);
  }
  if (!flags.out.empty()) write_output(flags.out, mar_text(answer.marginals));
  if (!flags.json.empty()) write_output(flags.json, json_text(json));
  if (!flags.csv.empty()) write_output(flags.csv, marginals_csv(answer, *network));
  if (!flags.plot.empty()) write_output(flags.plot, marginals_plot(answer, *network, kDrawn));
  if (screen == stdout || !flags.quiet) fmt::print(screen, "{}", text);
  if (answer.interrupted) return kInterrupted;
  return flags.strict && !answer.warnings().empty() ? kWarnings : kSuccess;
}

void declare_outputs(CLI::App& command, MarginalsFlags& flags) {
  command.add_option("--out", flags.out, "Write the marginals in the UAI format; - is standard output")
      ->type_name("FILE.MAR");
  command.add_option("--json", flags.json, "Write everything as JSON; - is standard output")->type_name("FILE");
  command
      .add_option("--csv", flags.csv,
                  "Write the marginals as CSV, or the joint probabilities of --query; - is standard output")
      ->type_name("FILE.csv");
  command.add_option("--plot", flags.plot, "Draw the probabilities as bars with their errors")->type_name("FILE.svg");
  command.add_option("--truth", flags.truth, "Marginals to compare with: shows the mean absolute error")
      ->type_name("FILE.MAR");
}

}  // namespace

Command add_marginals(CLI::App& program) {
  const auto flags = std::make_shared<MarginalsFlags>();
  const MarginalsOptions defaults;
  CLI::App* command = program.add_subcommand("marginals", "Marginals of a network, exact or by sampling");
  declare(*command, flags->model);
  flags->options.declare(*command, defaults);
  declare_outputs(*command, *flags);
  command->add_flag("--strict", flags->strict, "Exit with 3 when there are warnings");
  command->add_flag("--quiet", flags->quiet, "Show no progress");
  command->footer(marginals_footer());
  return {command, [flags, defaults] { return marginals(*flags, defaults); }, Ranks::all};
}

Command add_exact(CLI::App& program) {
  const auto flags = std::make_shared<MarginalsFlags>();
  MarginalsOptions defaults;
  defaults.method = Method::exact;
  CLI::App* command = program.add_subcommand("exact", "Exact marginals and partition function of a network");
  declare(*command, flags->model);
  flags->options.declare(*command, defaults, {"query", "memory", "threads"});
  flags->options.declare(*command, defaults, {"seconds"}, "3600; refuses what would take one core longer");
  declare_outputs(*command, *flags);
  command->add_flag("--quiet", flags->quiet, "Show no progress");
  command->footer(exact_footer());
  return {command, [flags, defaults] { return marginals(*flags, defaults); }, Ranks::all};
}

}  // namespace poise::app
