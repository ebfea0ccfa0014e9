/// `poise summary` and `poise report`: the table of a stored run, and a page of it.
#include <filesystem>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <poise/report.hpp>

#include "commands.hpp"
#include "help.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "run_flags.hpp"
#include "terminal.hpp"

namespace poise::app {

namespace {

struct SummaryFlags {
  std::string path;
  std::string json;
  std::string memory;
  bool strict = false;
};

int summary(const SummaryFlags& flags) {
  if (flags.path.empty()) throw InputError("the run is missing; 'poise sample --out run.zarr' makes one");
  check_outputs({{"--json", flags.json}});
  Problems problems;
  double gibibytes = 1.0;
  read_positive(flags.memory, "--memory", gibibytes, problems);
  problems.throw_if_any();
  const Report report = [&] {
    const WaitingLine line(progress_style(false), "diagnosing");
    return make_report(flags.path, {.memory = gibibytes * kGibibyte});
  }();
  if (!flags.json.empty()) write_output(flags.json, json_text(report_json(report)));
  if (flags.json != "-") fmt::print("{}", report_text(report, table_width(stdout)));
  return flags.strict && !report.warnings.empty() ? kWarnings : kSuccess;
}

struct ReportFlags {
  std::string path;
  std::string out;
  std::string plot;
  std::string memory;
};

/// run.zarr to run.html.
std::string page_of(std::string run) {
  while (run.size() > 1 && run.back() == '/') run.pop_back();
  return std::filesystem::path(run).replace_extension(".html").string();
}

int report(const ReportFlags& flags) {
  if (flags.path.empty()) throw InputError("the run is missing; 'poise sample --out run.zarr' makes one");
  const std::string out = flags.out.empty() ? page_of(flags.path) : flags.out;
  check_outputs({{"--out", out}, {"--plot", flags.plot}});
  Problems problems;
  double gibibytes = 1.0;
  read_positive(flags.memory, "--memory", gibibytes, problems);
  problems.throw_if_any();
  Trace trace;
  const Report found = [&] {
    const WaitingLine line(progress_style(false), "diagnosing");
    return make_report(flags.path, {.memory = gibibytes * kGibibyte}, trace);
  }();
  write_output(out, report_html(found, trace));
  if (!flags.plot.empty()) write_output(flags.plot, run_plot(found, trace));
  if (out != "-" && flags.plot != "-") fmt::print("{}\n", out);
  return kSuccess;
}

}  // namespace

Command add_report(CLI::App& program) {
  const auto flags = std::make_shared<ReportFlags>();
  CLI::App* command = program.add_subcommand("report", "Make one page of a stored run: warnings, tables, pictures");
  command->add_option("run", flags->path, "What 'poise sample --out' wrote")->type_name("RUN");
  command->add_option("--out", flags->out, "The page; - is standard output [the name of the run with .html]")
      ->type_name("FILE.html");
  command->add_option("--plot", flags->plot, "The pictures alone")->type_name("FILE.svg");
  command->add_option("--memory", flags->memory, "GiB that reading and diagnosing may take, however long the file [1]")
      ->type_name("GIB");
  command->footer(report_footer());
  return {command, [flags] { return report(*flags); }, Ranks::root};
}

Command add_summary(CLI::App& program) {
  const auto flags = std::make_shared<SummaryFlags>();
  CLI::App* command = program.add_subcommand("summary", "Summarise a stored run");
  command->add_option("run", flags->path, "What 'poise sample --out' wrote")->type_name("RUN");
  command->add_option("--json", flags->json, "Write the report as JSON; - is standard output")->type_name("FILE");
  command->add_option("--memory", flags->memory, "GiB that reading and diagnosing may take, however long the file [1]")
      ->type_name("GIB");
  command->add_flag("--strict", flags->strict, "Exit with 3 when there are warnings");
  command->footer(summary_footer());
  return {command, [flags] { return summary(*flags); }, Ranks::root};
}

}  // namespace poise::app
