/// `poise reproduce`: the experiments of the LSB paper, as published or made fair, those of the DISCS benchmark, and
/// one on variable selection.
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include "report/text.hpp"
#include "studies/reproduce.hpp"

#include "commands.hpp"
#include "help.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "run_flags.hpp"
#include "terminal.hpp"

namespace poise::app {

namespace {

struct ReproduceFlags {
  std::string experiment;
  std::string protocol = "fair";
  std::string data;
  std::string out;
  std::string seed;
  std::string threads;
  bool quick = false;
  bool quiet = false;
};

ReproduceOptions read_options(const ReproduceFlags& flags) {
  Problems problems;
  ReproduceOptions options;
  if (flags.experiment == "ising") {
    options.experiment = Experiment::ising;
  } else if (flags.experiment == "rbm") {
    options.experiment = Experiment::rbm;
  } else if (flags.experiment == "uai") {
    options.experiment = Experiment::uai;
  } else if (flags.experiment == "discs") {
    options.experiment = Experiment::discs;
  } else if (flags.experiment == "select") {
    options.experiment = Experiment::select;
  } else if (flags.experiment.empty()) {
    problems.add("the experiment is missing, expected ising, rbm, uai, discs or select");
  } else {
    problems.add(fmt::format("found {}, expected the experiment, which is ising, rbm, uai, discs or select",
                             quote(flags.experiment)));
  }
  if (flags.protocol != "fair" && flags.protocol != "published") {
    problems.add(fmt::format("--protocol: found {}, expected fair or published", quote(flags.protocol)));
  }
  options.protocol = flags.protocol == "published" ? Protocol::published : Protocol::fair;
  options.effort = flags.quick ? Effort::quick : Effort::full;
  read_integer(flags.seed, "--seed", 0, std::numeric_limits<std::int64_t>::max(), options.seed, problems);
  std::uint64_t threads = options.threads;
  read_integer(flags.threads, "--threads", 0, 4096, threads, problems);
  options.threads = static_cast<unsigned>(threads);
  problems.throw_if_any();
  options.data = flags.data;
  options.out = flags.out.empty() ? "reproduce-" + flags.experiment : flags.out;
  if (std::filesystem::exists(options.out) && !std::filesystem::is_directory(options.out)) {
    throw InputError(fmt::format("--out: {} is a file, expected a directory", options.out));
  }
  return options;
}

std::string progress_text(const ReproduceProgress& progress) {
  const std::size_t computed = progress.done - progress.reused;
  const double left = computed == 0 ? 0.0
                                    : progress.seconds / static_cast<double>(computed) *
                                          static_cast<double>(progress.total - progress.done);
  std::string line = fmt::format("{} of {} parts", progress.done, progress.total);
  if (progress.reused > 0) line += fmt::format(", {} from before", progress.reused);
  if (!progress.part.empty()) line += fmt::format("  {}  {}", progress.part, text::duration(progress.seconds));
  if (left > 0.0) line += fmt::format(", about {} left", text::duration(left));
  return line;
}

std::string outcome_text(const ReproduceOutcome& outcome, std::size_t width) {
  std::string out;
  for (const Verdict& verdict : outcome.verdicts) {
    const char* mark = verdict.holds == Verdict::Holds::yes  ? "holds  "
                       : verdict.holds == Verdict::Holds::no ? "fails  "
                                                             : "open   ";
    out += text::wrap(verdict.claim, mark, width);
    out += text::wrap(verdict.evidence, "       ", width);
  }
  const std::string reused = outcome.reused > 0 ? fmt::format(", {} of them from before", outcome.reused) : "";
  return out + fmt::format("\n{}: {}{}, {}\n", outcome.report, text::plural(outcome.parts, "part"), reused,
                           text::duration(outcome.seconds));
}

int reproduce(const ReproduceFlags& flags) {
  const ReproduceOptions options = read_options(flags);
  const std::atomic<bool>& stop = stop_on_interrupt();
  ProgressLine line(progress_style(flags.quiet));
  const ReproduceOutcome outcome = poise::reproduce(
      options,
      {.progress = [&](const ReproduceProgress& progress) { line.show(progress_text(progress)); }, .stop = &stop});
  line.end();
  if (outcome.interrupted) {
    if (!flags.quiet) fmt::print(stderr, "interrupted; the same command continues from what is finished\n");
    return kInterrupted;
  }
  fmt::print("{}", outcome_text(outcome, table_width(stdout)));
  return kSuccess;
}

}  // namespace

Command add_reproduce(CLI::App& program) {
  const auto flags = std::make_shared<ReproduceFlags>();
  CLI::App* command = program.add_subcommand(
      "reproduce", "Run the experiments of the LSB paper, of DISCS and on variable selection, and report what holds");
  const auto add = [&](const char* name, std::string& value, const std::string& help, const char* type) {
    return command->add_option(name, value, help)->type_name(type);
  };
  note_choices(add("experiment", flags->experiment, "ising, rbm, uai, discs or select", "EXPERIMENT"),
               {"ising", "rbm", "uai", "discs", "select"});
  add("--protocol", flags->protocol, "fair, or published: the settings of the paper's code, quirks included [fair]",
      "HOW");
  add("--data", flags->data,
      "Directory with MNIST's files (rbm, discs), BN_1.uai and BN_8.uai (uai), or .npz files (select)", "DIR");
  add("--out", flags->out, "Directory for report, tables and figures [reproduce-EXPERIMENT]", "DIR");
  add("--seed", flags->seed, "Seed of all random numbers [1]", "S");
  add("--threads", flags->threads, "Threads; numbers do not depend on it, times do [0: all cores]", "T");
  command->add_flag("--quick", flags->quick, "Fewer chains and steps: under a minute, to see that it works");
  command->add_flag("--quiet", flags->quiet, "Show no progress");
  command->footer(reproduce_footer());
  return {command, [flags] { return reproduce(*flags); }};
}

}  // namespace poise::app
