/// `poise scan`: one model at several values of a parameter.
#include <memory>

#include <fmt/format.h>

#include "base/file.hpp"
#include "inference/scan.hpp"

#include "commands.hpp"
#include "help.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "ranks.hpp"
#include "run_flags.hpp"
#include "terminal.hpp"

namespace poise::app {

namespace {

struct ScanFlags {
  RunFlags run;
  std::string over;
  std::string sampler = "auto";
  std::string exchange = "auto";
  std::string json;
  std::string csv;
  std::string plot;
  bool strict = false;
  bool quiet = false;
};

/// The points that an earlier run of the same scan has left in its file; the root reads it.
std::vector<ScanPoint> known_points(const std::string& path, const ScanOptions& options) {
  if (path.empty() || path == "-" || is_special(path)) return {};
  std::string content;
  try {
    if (is_root()) content = read_file(path);
  } catch (const FileError&) {
  }
  if (ranks() != nullptr) content = ranks()->of_root(content);
  if (content.empty()) return {};
  const auto json = nlohmann::json::parse(content, nullptr, false);
  return read_scan(json, options, path);
}

int scan_command(const ScanFlags& flags) {
  Problems problems;
  ScanOptions options{.model = flags.run.model.model,
                      .files = {flags.run.model.field, flags.run.model.evidence},
                      .range = {},
                      .sampler = flags.sampler,
                      .run = {},
                      .exchange = flags.exchange};
  flags.run.options.read(options.run, problems);
  if (options.model.empty()) problems.add("the model is missing, for example ising:size=64");
  if (flags.exchange != "yes" && flags.exchange != "no" && flags.exchange != "auto") {
    problems.add(fmt::format("--exchange: found '{}', expected yes, no or auto", flags.exchange));
  }
  if (flags.over.empty()) problems.add("--over is missing: what is varied, for example --over beta=0.38..0.50:13");
  problems.throw_if_any();
  options.range = read_scan_range(flags.over);
  (void)parse_sampler(options.sampler);
  check_outputs({{"--json", flags.json}, {"--csv", flags.csv}, {"--plot", flags.plot}});
  const std::vector<ScanPoint> known = known_points(flags.json, options);
  const std::atomic<bool>& stop = stop_on_interrupt();
  ProgressLine line(progress_style(flags.quiet));
  ProgressDisplay display(progress_style(flags.quiet));
  const bool keeps = !flags.json.empty() && flags.json != "-" && !is_special(flags.json);
  std::string how;
  const std::vector<ScanPoint> points =
      scan(options, known,
           {.progress =
                [&](std::size_t done, std::size_t total) {
                  if (line.is_due() || done == total) line.show(fmt::format("{} of {} points", done, total));
                },
            .sampling = [&](const Progress& now) { display.update(now); },
            .how = [&](const std::string& told) { how = told; },
            .state = keeps ? flags.json : "",
            .finished =
                [&](const std::vector<ScanPoint>& found) {
                  if (keeps && is_root()) write_atomically(flags.json, json_text(scan_json(options, found)));
                },
            .stop = &stop,
            .collective = ranks()});
  line.end();
  display.end(stop);
  if (!is_root()) return kSuccess;
  if (!flags.json.empty()) write_output(flags.json, json_text(scan_json(options, points)));
  if (!flags.csv.empty()) write_output(flags.csv, scan_csv(options, points));
  if (!flags.plot.empty()) write_output(flags.plot, scan_plot(options, points));
  const bool is_taken = flags.json == "-" || flags.csv == "-" || flags.plot == "-";
  if (!is_taken) fmt::print("{}\n{}", how, scan_text(options, points, table_width(stdout)));
  if (stop) {
    if (keeps && !flags.quiet) fmt::print(stderr, "the same command continues it: {} has what was made\n", flags.json);
    return kInterrupted;
  }
  const bool warned =
      std::any_of(points.begin(), points.end(), [](const ScanPoint& point) { return !point.warnings.empty(); });
  return flags.strict && warned ? kWarnings : kSuccess;
}

}  // namespace

Command add_scan(CLI::App& program) {
  const auto flags = std::make_shared<ScanFlags>();
  CLI::App* command = program.add_subcommand("scan", "Sample a model at several values of a parameter");
  declare(*command, flags->run.model);
  command->add_option("--over", flags->over, "What is varied: KEY=FROM..TO:COUNT, or KEY=VALUE,VALUE,...")
      ->type_name("RANGE")
      ->allow_extra_args(false);
  command->add_option("--sampler", flags->sampler, "The sampler [auto]")->type_name("NAME");
  note_choices(command
                   ->add_option("--exchange", flags->exchange,
                                "One replica exchange for all points: yes, no, or auto, where the parameter multiplies "
                                "log p [auto]")
                   ->type_name("HOW"),
               {"yes", "no", "auto"});
  flags->run.options.declare(*command, RunOptions(),
                             {"chains", "warmup", "draws", "thin", "seed", "threads", "device", "seconds", "init"});
  command->add_option("--json", flags->json, "Write all points as JSON, after each of them; - is standard output")
      ->type_name("FILE");
  command->add_option("--csv", flags->csv, "Write a row for each value")->type_name("FILE");
  command->add_option("--plot", flags->plot, "Draw every observable with its errors as SVG")->type_name("FILE.svg");
  command->add_flag("--strict", flags->strict, "Exit with 3 when there are warnings");
  command->add_flag("--quiet", flags->quiet, "Show no progress");
  command->footer(scan_footer());
  return {command, [flags] { return scan_command(*flags); }, Ranks::all};
}

}  // namespace poise::app
