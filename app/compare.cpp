/// `poise compare`: several samplers on one model with the same budget.
#include <memory>
#include <string_view>

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

constexpr const char* kDefaultSamplers = "lsb,lb:g=sqrt,lb:g=barker,lb:g=min,lb:g=max,gibbs";

struct CompareFlags {
  RunFlags run;
  std::vector<std::string> lists;
  std::vector<std::string> single;
  std::string json;
  std::string plot;
  bool strict = false;
  bool quiet = false;
};

/// Splits at commas, but a part that is a setting (key=value without a name and a colon) belongs to the sampler before
/// it: "lsb2:net=monotone,blocks=5,gibbs" are two.
std::vector<std::string> split_samplers(std::string_view list) {
  std::vector<std::string> names;
  while (true) {
    const std::size_t end = std::min(list.find(','), list.size());
    const std::string_view part = list.substr(0, end);
    const bool is_setting = part.substr(0, part.find(':')).find('=') != std::string_view::npos;
    if (is_setting && !names.empty()) {
      names.back() += fmt::format(",{}", part);
    } else {
      names.emplace_back(part);
    }
    if (end == list.size()) return names;
    list.remove_prefix(end + 1);
  }
}

std::vector<Sampler> read_samplers(const CompareFlags& flags) {
  std::vector<std::string> names;
  std::vector<std::string> lists = flags.lists;
  if (lists.empty() && flags.single.empty()) lists.emplace_back(kDefaultSamplers);
  for (const std::string& list : lists) {
    for (std::string& name : split_samplers(list)) names.push_back(std::move(name));
  }
  names.insert(names.end(), flags.single.begin(), flags.single.end());
  std::vector<Sampler> samplers;
  samplers.reserve(names.size());
  for (const std::string& name : names) samplers.push_back(parse_sampler(name));
  return samplers;
}

int compare(const CompareFlags& flags) {
  Problems problems;
  RunOptions options;
  flags.run.options.read(options, problems);
  if (flags.run.model.model.empty()) problems.add("the model is missing, for example ising:case=4");
  problems.throw_if_any();
  options.keep = Keep::monitors;
  const std::vector<Sampler> samplers = read_samplers(flags);
  const Model model = read_model(flags.run, options);
  options.check(model);
  check_outputs({{"--json", flags.json}, {"--plot", flags.plot}});

  const std::atomic<bool>& stop = stop_on_interrupt();
  std::vector<Report> reports;
  bool warned = false;
  for (const Sampler& sampler : samplers) {
    const std::string title = fmt::format("{} ({} of {})", sampler.name, reports.size() + 1, samplers.size());
    ProgressDisplay display(progress_style(flags.quiet), title);
    const RunResult result =
        run(model, sampler, options,
            {.progress = [&](const Progress& progress) { display.update(progress); }, .stop = &stop});
    display.end(result.interrupted);
    if (reports.empty()) {
      for (const std::string& note : result.notes) fmt::print(stderr, "note: {}\n", note);
    }
    if (result.interrupted && result.trace.draws == 0) break;
    reports.push_back(make_report(result));
    warned = warned || !reports.back().warnings.empty();
    if (stop) break;
  }
  if (progress_style(flags.quiet) == ProgressStyle::live) fmt::print(stderr, "\n");
  if (!flags.json.empty()) write_output(flags.json, json_text(comparison_json(reports)));
  if (!flags.plot.empty()) write_output(flags.plot, comparison_plot(reports));
  if (flags.json != "-") {
    fmt::print("{}", comparison_text(reports, table_width(stdout)));
  } else if (!flags.quiet) {
    fmt::print(stderr, "{}", comparison_text(reports, table_width(stderr)));
  }
  if (stop) return kInterrupted;
  return flags.strict && warned ? kWarnings : kSuccess;
}

}  // namespace

Command add_compare(CLI::App& program) {
  const auto flags = std::make_shared<CompareFlags>();
  CLI::App* command = program.add_subcommand("compare", "Compare samplers on a model, with the same budget for each");
  declare(*command, flags->run.model);
  flags->run.options.declare(*command, RunOptions(),
                             {"chains", "warmup", "draws", "thin", "seed", "threads", "device", "seconds", "init"});
  command->add_option("--samplers", flags->lists, fmt::format("Samplers, a comma between [{}]", kDefaultSamplers))
      ->type_name("LIST")
      ->allow_extra_args(false);
  command->add_option("--sampler", flags->single, "One more sampler; may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command->add_option("--json", flags->json, "Write the reports as JSON; - is standard output")->type_name("FILE");
  command->add_option("--plot", flags->plot, "Effective samples a second as bars")->type_name("FILE.svg");
  command->add_flag("--strict", flags->strict, "Exit with 3 when there are warnings");
  command->add_flag("--quiet", flags->quiet, "Show no progress");
  command->footer(compare_footer());
  return {command, [flags] { return compare(*flags); }};
}

}  // namespace poise::app
