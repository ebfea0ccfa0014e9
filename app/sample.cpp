/// `poise sample`: runs chains and leaves a summary, and files where they were asked for.
#include <cstdio>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include <poise/image/png.hpp>
#include <poise/report/report.hpp>
#include <poise/report/svg_plot.hpp>
#include <poise/report/tempering.hpp>

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

struct SampleFlags {
  RunFlags run;
  std::string sampler = "auto";
  std::string keep = "draws";
  std::string first_chain;
  std::string out;
  std::string json;
  std::string images;
  std::string plot;
  bool strict = false;
  bool quiet = false;
};

void check_pictures(const SampleFlags& flags, const Model& model, const Sampler& sampler, const RunOptions& options) {
  if (!flags.images.empty()) {
    if (!model.layout.is_lattice()) {
      throw InputError("--images: only lattices can be shown as a picture, and this model is not one");
    }
    if (options.keep != Keep::draws)
      throw InputError("--images: a draw is shown, so it cannot go with --keep monitors");
  }
  if (!flags.plot.empty() && sampler.name == "auto") {
    throw InputError(
        "--plot: it shows a learned balancing function or a ladder of temperatures, and auto may choose a sampler "
        "without; name one, such as --sampler lsb or temper");
  }
  if (!flags.plot.empty() && !sampler.learns() && !sampler.tempers()) {
    throw InputError(
        fmt::format("--plot: it shows a learned balancing function or a ladder of temperatures, and the sampler '{}' "
                    "has none; temper does, and so do lsb, lsb1, lsb2 and their first-order forms",
                    sampler.name));
  }
}

std::unique_ptr<NetcdfSink> make_sink(const std::string& path, const Model& model, const RunOptions& options) {
  if (path.empty()) return nullptr;
  NetcdfOptions shape;
  shape.chains = options.chains;
  shape.draws = options.seconds > 0 ? 0 : options.draws;
  shape.variables = options.keep == Keep::draws ? model.layout.variables : 0;
  for (const Index levels : model.layout.cardinalities) shape.levels = std::max<std::size_t>(shape.levels, levels);
  shape.monitors = model.statistics.size() + 2;  // log_prob before them, hamming behind
  return std::make_unique<NetcdfSink>(path, shape);
}

/// Up to a hundred draws, evenly spaced over all chains.
Image draw_sheet(const RunResult& result) {
  const std::size_t draws = result.trace.chains * result.trace.draws;
  const std::size_t shown = std::min<std::size_t>(100, draws);
  const VariableLayout& layout = result.layout;
  Index levels = 2;
  for (Index i = 0; i < layout.variables; ++i) levels = std::max(levels, layout.cardinality(i));
  const std::size_t zoom = std::max<std::size_t>(1, 56 / std::max(layout.rows, layout.columns));
  std::vector<Image> pictures;
  for (std::size_t k = 0; k < shown; ++k) {
    const std::size_t first = k * draws / shown * layout.variables;
    Grid grid{layout.rows, layout.columns, std::vector<double>(layout.variables)};
    for (std::size_t i = 0; i < layout.variables; ++i) grid.values[i] = result.trace.x[first + i];
    pictures.push_back(enlarge(paint(grid, layout.label(0), layout.label(static_cast<Value>(levels - 1))), zoom));
  }
  return contact_sheet(pictures, 10);
}

/// The noisy image, the last draw of the first chain, and the mean over all steps of all chains.
Image draw_images(const Model& model, const RunResult& result) {
  const std::size_t variables = result.layout.variables;
  std::vector<double> observed = model.observed;
  observed.resize(variables, 0.0);
  std::vector<std::int8_t> draw(variables);
  std::vector<double> mean(variables);
  const std::size_t last = (result.trace.draws - 1) * variables;
  for (std::size_t i = 0; i < variables; ++i) {
    draw[i] = result.trace.x[last + i] == result.layout.label(1) ? 1 : -1;
    mean[i] = 2 * result.empirical_marginals[i] - 1;
  }
  return segmentation_panels(result.layout.rows, result.layout.columns, observed, draw, mean);
}

void write_files(const SampleFlags& flags, const Model& model, const RunResult& result, const std::string& json) {
  if (!flags.json.empty()) write_output(flags.json, json);
  if (result.trace.draws == 0) return;  // the report says so
  if (!flags.images.empty() && result.trace.x.empty()) {
    fmt::print(stderr, "note: no picture was made: the states are in the file only\n");
  } else if (!flags.images.empty()) {
    write_png(flags.images, model.observed.empty() ? draw_sheet(result) : draw_images(model, result));
  }
  if (!flags.plot.empty()) {
    write_output(flags.plot,
                 result.tempering ? tempering_plot(*result.tempering) : balance_plot(result.knots, result.log_phi));
  }
}

int sample(const SampleFlags& flags) {
  Problems problems;
  RunOptions options = read_options(flags.run, problems);
  read_integer(flags.first_chain, "--first-chain", 0, std::int64_t{1} << 40, options.first_chain, problems);
  if (flags.keep == "monitors") {
    options.keep = Keep::monitors;
  } else if (flags.keep != "draws") {
    problems.add(fmt::format("--keep: found {}, expected draws or monitors", quote(flags.keep)));
  }
  problems.throw_if_any();
  const Sampler sampler = parse_sampler(flags.sampler);
  const Model model = read_model(flags.run, options);
  options.check(model, !flags.out.empty());
  check_pictures(flags, model, sampler, options);
  if (flags.out == "-") throw InputError("--out: a NetCDF file cannot be written to standard output; give it a name");
  check_outputs({{"--out", flags.out}, {"--json", flags.json}, {"--images", flags.images}, {"--plot", flags.plot}});
  const std::unique_ptr<NetcdfSink> sink = make_sink(flags.out, model, options);

  ProgressDisplay display(progress_style(flags.quiet));
  const RunResult result = run(model, sampler, options,
                               {.progress = [&](const Progress& progress) { display.update(progress); },
                                .sink = sink.get(),
                                .stop = &stop_on_interrupt()});
  display.end(result.interrupted);
  for (const std::string& note : result.notes) fmt::print(stderr, "note: {}\n", note);

  const Report report = make_report(result);
  const std::string json = json_text(report_json(report));
  if (sink) sink->finish(json);
  write_files(flags, model, result, json);
  if (flags.json != "-") {
    fmt::print("{}", report_text(report, table_width(stdout)));
  } else if (!flags.quiet) {
    fmt::print(stderr, "{}", report_text(report, table_width(stderr)));
  }
  if (result.interrupted) return kInterrupted;
  return flags.strict && !report.warnings.empty() ? kWarnings : kSuccess;
}

}  // namespace

Command add_sample(CLI::App& program) {
  const auto flags = std::make_shared<SampleFlags>();
  CLI::App* command = program.add_subcommand("sample", "Sample from a model and summarise the draws");
  declare(*command, flags->run);
  command->add_option("--sampler", flags->sampler, "Sampler; listed below, with the models [auto]")->type_name("NAME");
  command->add_option("--keep", flags->keep, "What is kept: draws, or monitors only [draws]")->type_name("WHAT");
  command
      ->add_option("--first-chain", flags->first_chain,
                   "Number of the first chain: its random numbers are those of that chain of a longer run [0]")
      ->type_name("C");
  command->add_option("--out", flags->out, "Store the draws (NetCDF, opens with ArviZ)")->type_name("FILE.nc");
  command->add_option("--json", flags->json, "Write the report as JSON; - is standard output")->type_name("FILE");
  command
      ->add_option("--images", flags->images,
                   "Picture of a lattice: the noisy image, one draw and the mean, or a sheet of draws")
      ->type_name("FILE.png");
  command
      ->add_option("--plot", flags->plot,
                   "Plot of the learned balancing function, or of the ladder of temper: swaps and paths")
      ->type_name("FILE.svg");
  command->add_flag("--strict", flags->strict, "Exit with 3 when there are warnings");
  command->add_flag("--quiet", flags->quiet, "Show no progress");
  command->footer(sample_footer());
  return {command, [flags] { return sample(*flags); }};
}

}  // namespace poise::app
