/// `poise sample` and `poise resume`: run chains and leave a summary, and files where they were asked for.
#include <cstdio>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include <poise/image.hpp>
#include <poise/plot.hpp>
#include <poise/report.hpp>
#include <poise/session.hpp>
#include "report/text.hpp"
#include "run/checkpoint.hpp"

#include "commands.hpp"
#include "help.hpp"
#include "optimize.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "ranks.hpp"
#include "run_flags.hpp"
#include "terminal.hpp"
#include "train.hpp"

namespace poise::app {

namespace {

/// What is written and shown besides the file of the draws.
struct Outputs {
  std::string json = {};
  std::string images = {};
  std::string plot = {};
  std::string report = {};
  std::string observe = "all";
  std::string best = {};
  std::string csv = {};
  bool strict = false;
  bool quiet = false;
};

struct SampleFlags {
  RunFlags run;
  std::string sampler = "auto";
  std::string out;
  Outputs outputs;
  CheckpointFlags checkpoints;
};

struct ResumeFlags {
  std::string path;
  OptionFlags options;
  bool strict = false;
  bool quiet = false;
};

void check_pictures(const Outputs& outputs, const Model& model, const RunOptions& options) {
  if (!outputs.images.empty()) {
    if (!model.layout.is_lattice()) {
      throw InputError("--images: only lattices can be shown as a picture, and this model is not one");
    }
    if (options.keep != Keep::draws)
      throw InputError("--images: a draw is shown, so it cannot go with --keep monitors");
  }
  if (!outputs.csv.empty() && options.keep != Keep::draws) {
    throw InputError("--csv: the states of draws are written, so it cannot go with --keep monitors");
  }
}

/// Without a file the states serve the summary of the variables alone; it is left out where they do not fit.
void keep_what_fits(const Model& model, RunOptions& options) {
  const double states = static_cast<double>(options.chains) * static_cast<double>(options.draws) *
                        (static_cast<double>(States(model.layout).row_bytes()) +
                         8.0 * (4.0 + static_cast<double>(model.statistics.size())));
  if (options.keep != Keep::draws || options.seconds > 0.0 || states <= options.memory) return;
  options.keep = Keep::monitors;
  if (!is_root()) return;
  fmt::print(stderr,
             "note: the states of all draws take {}, more than --memory, and are not kept, so the variables one by "
             "one will not be diagnosed; --out RUN.zarr keeps them\n",
             text::bytes(states));
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
    const std::size_t first = k * draws / shown;
    Grid grid{layout.rows, layout.columns, std::vector<double>(layout.variables)};
    for (std::size_t i = 0; i < layout.variables; ++i) grid.values[i] = result.trace.x.label(first, i);
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
  const std::size_t last = result.trace.draws - 1;
  for (std::size_t i = 0; i < variables; ++i) {
    draw[i] = result.trace.x.label(last, i) == result.layout.label(1) ? 1 : -1;
    mean[i] = 2 * result.empirical_marginals[i] - 1;
  }
  return segmentation_panels(result.layout.rows, result.layout.columns, observed, draw, mean);
}

void write_files(const Outputs& outputs, const Model& model, const RunResult& result, const Report& report) {
  if (!outputs.json.empty()) write_output(outputs.json, json_text(report_json(report)));
  if (!outputs.report.empty()) write_output(outputs.report, report_html(report, result.trace));
  if (result.trace.draws == 0) return;  // the report says so
  if (!outputs.best.empty() && result.best && result.best->state.empty()) {
    fmt::print(stderr, "note: the best state was not written: with --keep monitors a GPU does not hand it on\n");
  } else if (!outputs.best.empty() && result.best) {
    write_output(outputs.best, best_state_text(*result.best, result.layout, outputs.best));
  }
  if (!outputs.csv.empty() && result.trace.x.empty()) {
    fmt::print(stderr,
               "note: no CSV was written: the states of the draws are not in memory; a larger --memory holds them\n");
  } else if (!outputs.csv.empty()) {
    write_output(outputs.csv, draws_csv(result.trace, result.layout));
  }
  if (!outputs.images.empty() && result.trace.x.empty()) {
    fmt::print(stderr, "note: no picture was made: the states are in the file only\n");
  } else if (!outputs.images.empty()) {
    write_image(outputs.images, model.observed.empty() ? draw_sheet(result) : draw_images(model, result));
  }
  if (!outputs.plot.empty()) write_output(outputs.plot, run_plot(report, result.trace));
}

/// Runs it and shows what came of it; gives the exit code.
int drive(const Model& model, const SessionOptions& options, const Outputs& outputs,
          const std::shared_ptr<Checkpoint>& resumed = nullptr) {
  check_pictures(outputs, model, options.run);
  Report none;
  keep_observables(none, outputs.observe);
  if (options.out == "-") throw InputError("--out: a run cannot be stored on standard output; give it a name");
  if (is_root()) {
    check_outputs({{"--out", options.out, true},
                   {"--json", outputs.json},
                   {"--images", outputs.images},
                   {"--plot", outputs.plot},
                   {"--report", outputs.report},
                   {"--best", outputs.best},
                   {"--csv", outputs.csv}});
  }
  ProgressDisplay display(progress_style(outputs.quiet));
  RunHooks hooks{.stop = &stop_on_interrupt(), .collective = ranks()};
  if (is_root()) hooks.progress = [&](const Progress& progress) { display.update(progress); };
  Session session(model, options, hooks, resumed);
  session.run([&](std::size_t draws) {
    if (resumed && !outputs.quiet) fmt::print(stderr, "resumed with {} draws of each chain\n", draws);
  });
  if (!is_root()) return kSuccess;
  const RunResult& result = session.result();
  display.end(result.interrupted);
  for (const std::string& note : result.notes) fmt::print(stderr, "note: {}\n", note);
  Report report = [&] {
    const WaitingLine line(progress_style(outputs.quiet), "diagnosing");
    return session.finish();
  }();
  keep_observables(report, outputs.observe);
  write_files(outputs, model, result, report);
  if (outputs.json != "-" && outputs.best != "-" && outputs.csv != "-") {
    fmt::print("{}", report_text(report, table_width(stdout)));
  } else if (!outputs.quiet) {
    fmt::print(stderr, "{}", report_text(report, table_width(stderr)));
  }
  if (result.interrupted) return kInterrupted;
  return outputs.strict && !report.warnings.empty() ? kWarnings : kSuccess;
}

int sample(const SampleFlags& flags) {
  Problems problems;
  const ModelFlags& named = flags.run.model;
  SessionOptions options{.source = {named.model, {}, {named.field, named.evidence}},
                         .sampler = flags.sampler,
                         .checkpoints = read_checkpoint_options(flags.checkpoints, flags.out, problems),
                         .out = flags.out,
                         .outputs = {{"json", flags.outputs.json},
                                     {"images", flags.outputs.images},
                                     {"plot", flags.outputs.plot},
                                     {"report", flags.outputs.report},
                                     {"observe", flags.outputs.observe},
                                     {"best", flags.outputs.best},
                                     {"csv", flags.outputs.csv}}};
  options.run.memory = kGibibyte;
  flags.run.options.read(options.run, problems);
  if (named.model.empty()) problems.add("the model is missing, for example ising:case=4");
  problems.throw_if_any();
  (void)parse_sampler(flags.sampler);
  const Model model = read_model(flags.run, options.run);
  if (flags.out.empty()) keep_what_fits(model, options.run);
  options.run.check(model, !flags.out.empty());
  return drive(model, options, flags.outputs);
}

int resume_training(const ResumeFlags& flags, unsigned threads, Checkpoint checkpoint) {
  if (ranks() != nullptr) throw InputError("training is the work of one process: start it without mpirun or srun");
  if (!flags.options.word("draws").empty()) {
    throw InputError(fmt::format("--draws: {} is a training, which has none", flags.path));
  }
  if (!flags.options.word("device").empty()) throw InputError("--device: a training is resumed where it was begun");
  TrainAgain again{.path = flags.path, .quiet = flags.quiet};
  if (!flags.options.word("threads").empty()) again.threads = threads;
  return continue_training(again, std::move(checkpoint));
}

int resume_search(const ResumeFlags& flags, unsigned threads, Checkpoint checkpoint) {
  if (ranks() != nullptr) throw InputError("a search is the work of one process: start it without mpirun or srun");
  for (const char* name : {"draws", "device"}) {
    if (flags.options.word(name).empty()) continue;
    throw InputError(fmt::format("--{}: {} is a search for the best state, which has none", name, flags.path));
  }
  OptimizeAgain again{.path = flags.path, .quiet = flags.quiet};
  if (!flags.options.word("threads").empty()) again.threads = threads;
  return continue_optimizing(again, std::move(checkpoint));
}

int resume(const ResumeFlags& flags) {
  if (flags.path.empty()) throw InputError("the file is missing; 'poise sample --out run.zarr' makes one");
  StoredSession stored = read_session(flags.path, ranks());
  if (!stored.note.empty()) fmt::print(stderr, "note: {}\n", stored.note);
  Problems problems;
  RunOptions given = stored.options.run;
  flags.options.read(given, problems);
  problems.throw_if_any();
  if (stored.program == kTrainProgram) return resume_training(flags, given.threads, std::move(*stored.checkpoint));
  if (stored.program == kOptimizeProgram) return resume_search(flags, given.threads, std::move(*stored.checkpoint));
  stored.ask_for(flags.options.word("draws").empty() ? std::nullopt : std::optional(given.draws));
  stored.options.run.threads = given.threads;
  stored.options.run.device = given.device;
  Outputs outputs{.strict = flags.strict, .quiet = flags.quiet};
  const auto path_of = [&](const char* name) {
    const std::string path = stored.options.outputs[name];
    return path == "-" ? path : path_from(stored, path);
  };
  outputs.json = path_of("json");
  outputs.images = path_of("images");
  outputs.plot = path_of("plot");
  outputs.report = path_of("report");
  if (stored.options.outputs.contains("observe")) outputs.observe = stored.options.outputs["observe"];
  outputs.best = path_of("best");
  outputs.csv = path_of("csv");
  return drive(stored.make_model(), stored.options, outputs, stored.checkpoint);
}

}  // namespace

Command add_sample(CLI::App& program) {
  const auto flags = std::make_shared<SampleFlags>();
  CLI::App* command = program.add_subcommand("sample", "Sample from a model and summarise the draws");
  declare(*command, flags->run.model);
  RunOptions defaults;
  defaults.memory = kGibibyte;
  flags->run.options.declare(*command, defaults);
  command->add_option("--sampler", flags->sampler, "Sampler; listed below, with the models [auto]")->type_name("NAME");
  command
      ->add_option("--out", flags->out,
                   "Store the draws in this folder, a Zarr store that ArviZ opens and 'poise resume' continues")
      ->type_name("RUN.zarr");
  command->add_option("--json", flags->outputs.json, "Write the report as JSON; - is standard output")
      ->type_name("FILE");
  command
      ->add_option(
          "--images", flags->outputs.images,
          "Picture of a lattice: the noisy image, one draw and the mean, or a sheet of draws; PNG, PPM or PGM by "
          "the ending")
      ->type_name("FILE.png");
  command
      ->add_option("--plot", flags->outputs.plot,
                   "Traces, rank histograms, autocorrelations, and the learned function or the ladder of temper")
      ->type_name("FILE.svg");
  command
      ->add_option("--observe", flags->outputs.observe,
                   "Observables of spin models that are reported, a comma between, or none [all]")
      ->type_name("LIST");
  command->add_option("--report", flags->outputs.report, "One page with warnings, tables and pictures")
      ->type_name("FILE.html");
  command
      ->add_option(
          "--best", flags->outputs.best,
          "Write the state of the best draw: labels, as --init reads them, or lines name = level; the UAI format "
          "where FILE ends in .MPE; - is standard output")
      ->type_name("FILE");
  command
      ->add_option("--csv", flags->outputs.csv,
                   "Write the draws as CSV: chain, draw, log_prob and every variable by name; - is standard output")
      ->type_name("FILE.csv");
  declare(*command, flags->checkpoints);
  command->add_flag("--strict", flags->outputs.strict, "Exit with 3 when there are warnings");
  command->add_flag("--quiet", flags->outputs.quiet, "Show no progress");
  command->footer(sample_footer());
  return {command, [flags] { return sample(*flags); }, Ranks::all};
}

Command add_resume(CLI::App& program) {
  const auto flags = std::make_shared<ResumeFlags>();
  CLI::App* command =
      program.add_subcommand("resume", "Resume a run that was killed or interrupted, or make it longer");
  command->add_option("run", flags->path, "File of 'poise sample --out', 'poise train --out' or Python's out=")
      ->type_name("FILE");
  flags->options.declare(*command, RunOptions(), {"draws", "threads", "device"}, "as before");
  command->add_flag("--strict", flags->strict, "Exit with 3 when there are warnings");
  command->add_flag("--quiet", flags->quiet, "Show no progress");
  command->footer(resume_footer());
  return {command, [flags] { return resume(*flags); }, Ranks::all};
}

}  // namespace poise::app
