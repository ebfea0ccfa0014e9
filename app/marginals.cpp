/// `poise marginals` and `poise exact`: the probability of every level of every variable.
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include <poise/marginals.hpp>
#include <poise/network.hpp>

#include "commands.hpp"
#include "exit_codes.hpp"
#include "help.hpp"
#include "interrupt.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "ranks.hpp"
#include "run_flags.hpp"
#include "terminal.hpp"

namespace poise::app {

namespace {

constexpr std::size_t kShown = 40;  // variables in the table

struct MarginalsFlags {
  ModelFlags model;
  std::string method = "auto";
  std::string sampler = MarginalsOptions().sampler;
  std::string seconds;
  std::string memory;
  std::string chains;
  std::string device;
  std::string seed;
  std::string threads;
  std::string out;
  std::string json;
  std::string truth;
  bool strict = false;
  bool quiet = false;
};

MarginalsOptions read_options(const MarginalsFlags& flags) {
  Problems problems;
  MarginalsOptions options;
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
  if (!flags.seconds.empty()) read_positive(flags.seconds, "--seconds", options.seconds.emplace(0.0), problems);
  read_integer(flags.chains, "--chains", 1, 1'000'000, options.chains, problems);
  read_device(flags.device, options.device, problems);
  if (options.method == Method::exact && options.device == Device::cuda) {
    problems.add("--device: exact inference runs on the CPU; leave --device or --method exact out");
  }
  read_integer(flags.seed, "--seed", 0, std::numeric_limits<std::int64_t>::max(), options.seed, problems);
  std::uint64_t threads = options.threads;
  read_integer(flags.threads, "--threads", 0, 1'000'000, threads, problems);
  options.threads = static_cast<unsigned>(threads);
  if (flags.model.model.empty()) problems.add("the model is missing, for example net.uai");
  problems.throw_if_any();
  parse_sampler(flags.sampler);
  options.sampler = flags.sampler;
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

int marginals(const MarginalsFlags& flags) {
  const auto started = std::chrono::steady_clock::now();
  MarginalsOptions options = read_options(flags);
  if (is_root()) check_outputs({{"--out", flags.out}, {"--json", flags.json}});
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
  std::FILE* const screen = flags.out == "-" || flags.json == "-" ? stderr : stdout;
  text = marginals_text(answer, *network, table_width(screen), kShown);
  if (truth) {
    const double error = mean_absolute_error(answer.marginals, *truth);
    json["mean_absolute_error"] = error;
    text += fmt::format("\nmean absolute error against {}: {:.3g}\n", flags.truth, error);
  }
  if (!flags.out.empty()) write_output(flags.out, mar_text(answer.marginals));
  if (!flags.json.empty()) write_output(flags.json, json_text(json));
  if (screen == stdout || !flags.quiet) fmt::print(screen, "{}", text);
  if (answer.interrupted) return kInterrupted;
  return flags.strict && !answer.warnings().empty() ? kWarnings : kSuccess;
}

void declare_outputs(CLI::App& command, MarginalsFlags& flags) {
  command.add_option("--memory", flags.memory, "GiB that the tables of exact inference may take [4]")->type_name("GIB");
  command.add_option("--out", flags.out, "Write the marginals in the UAI format; - is standard output")
      ->type_name("FILE.MAR");
  command.add_option("--json", flags.json, "Write everything as JSON; - is standard output")->type_name("FILE");
  command.add_option("--truth", flags.truth, "Marginals to compare with: shows the mean absolute error")
      ->type_name("FILE.MAR");
}

}  // namespace

Command add_marginals(CLI::App& program) {
  const auto flags = std::make_shared<MarginalsFlags>();
  const MarginalsOptions defaults;
  CLI::App* command = program.add_subcommand("marginals", "Marginals of a network, exact or by sampling");
  declare(*command, flags->model);
  command
      ->add_option("--method", flags->method,
                   "auto, exact or sample [auto: exact where it fits the memory and the time]")
      ->type_name("HOW");
  command
      ->add_option("--seconds", flags->seconds,
                   "Time for everything, from planning to sampling [10 where the answer is sampled; exact inference up "
                   "to 600, or 3600 with --method exact]")
      ->type_name("S");
  command->add_option("--sampler", flags->sampler, "Sampler [auto: the best per second, by the clock, of a pilot run]")
      ->type_name("NAME");
  command
      ->add_option("--chains", flags->chains,
                   "Chains [32 with gibbs, which moves them together, up to 1024 on a GPU, 4 with other samplers]")
      ->type_name("N");
  command
      ->add_option("--device", flags->device,
                   "Where chains of gibbs, or of temper where it is asked for, run: cpu, cuda (a GPU; 'poise devices' "
                   "lists them), or auto: a GPU where it "
                   "is faster [cpu]")
      ->type_name("DEVICE");
  command->add_option("--seed", flags->seed, fmt::format("Seed of all random numbers [{}]", defaults.seed))
      ->type_name("S");
  command->add_option("--threads", flags->threads, "Threads [0: all cores]")->type_name("T");
  declare_outputs(*command, *flags);
  command->add_flag("--strict", flags->strict, "Exit with 3 when there are warnings");
  command->add_flag("--quiet", flags->quiet, "Show no progress");
  command->footer(marginals_footer());
  return {command, [flags] { return marginals(*flags); }, Ranks::all};
}

Command add_exact(CLI::App& program) {
  const auto flags = std::make_shared<MarginalsFlags>();
  flags->method = "exact";
  CLI::App* command = program.add_subcommand("exact", "Exact marginals and partition function of a network");
  declare(*command, flags->model);
  command->add_option("--seconds", flags->seconds, "Refuse what would take one core longer; bounds planning too [3600]")
      ->type_name("S");
  command->add_option("--threads", flags->threads, "Threads [0: all cores]; results are the same")->type_name("T");
  declare_outputs(*command, *flags);
  command->add_flag("--quiet", flags->quiet, "Show no progress");
  command->footer(exact_footer());
  return {command, [flags] { return marginals(*flags); }, Ranks::all};
}

}  // namespace poise::app
