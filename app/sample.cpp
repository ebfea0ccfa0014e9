/// `poise sample`: runs chains and leaves a summary, and files where they were asked for.
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include <poise/image.hpp>
#include <poise/report.hpp>
#include <poise/plot.hpp>
#include "report/tempering.hpp"
#include "report/text.hpp"

#include "run/checkpoint.hpp"
#include <poise/extend/base/spec.hpp>

#include "checkpoint_flags.hpp"
#include "commands.hpp"
#include "exit_codes.hpp"
#include "help.hpp"
#include "interrupt.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "ranks.hpp"
#include "run_flags.hpp"
#include "terminal.hpp"
#include "train.hpp"

namespace poise::app {

namespace {

struct SampleFlags {
  RunFlags run;
  std::string sampler = "auto";
  std::string keep = "draws";
  std::string memory;
  std::string first_chain;
  std::string out;
  std::string json;
  std::string images;
  std::string plot;
  CheckpointFlags checkpoints;
  bool strict = false;
  bool quiet = false;
};

struct ResumeFlags {
  std::string path;
  std::string draws;
  std::string threads;
  std::string device;
  bool strict = false;
  bool quiet = false;
};

/// The words of a command that a checkpoint keeps: with their names, empty where they were not given.
template <class Flags, class Visit>
void for_each_word(Flags& flags, Visit&& visit) {
  visit("model", flags.run.model.model);
  visit("field", flags.run.model.field);
  visit("evidence", flags.run.model.evidence);
  visit("chains", flags.run.chains);
  visit("warmup", flags.run.warmup);
  visit("draws", flags.run.draws);
  visit("thin", flags.run.thin);
  visit("seed", flags.run.seed);
  visit("threads", flags.run.threads);
  visit("seconds", flags.run.seconds);
  visit("init", flags.run.init);
  visit("sampler", flags.sampler);
  visit("keep", flags.keep);
  visit("device", flags.run.device);
  visit("memory", flags.memory);
  visit("first_chain", flags.first_chain);
  visit("json", flags.json);
  visit("images", flags.images);
  visit("plot", flags.plot);
  visit("checkpoint_every", flags.checkpoints.every);
}

/// The files that a model is read from, whatever its kind: everything that its words name and that is a file.
std::vector<std::string> input_files(const SampleFlags& flags) {
  std::vector<std::string> names = {flags.run.model.model, flags.run.model.field, flags.run.model.evidence,
                                    flags.run.init};
  try {
    for (const auto& [key, value] : parse_spec(flags.run.model.model).settings) names.push_back(value);
  } catch (const InputError&) {
    // A path need not be a spec.
  }
  std::vector<std::string> files;
  for (const std::string& name : names) {
    std::error_code ignored;
    if (!name.empty() && std::filesystem::is_regular_file(name, ignored)) files.push_back(name);
  }
  return files;
}

nlohmann::json command_of(const SampleFlags& flags) {
  nlohmann::json words = nlohmann::json::object();
  for_each_word(flags, [&](const char* name, const std::string& word) { words[name] = word; });
  nlohmann::json files = nlohmann::json::array();
  for (const std::string& file : input_files(flags)) files.push_back(file_fingerprint(file));
  std::error_code ignored;
  return {{"program", "poise sample"},
          {"words", words},
          {"files", files},
          {"folder", std::filesystem::current_path(ignored).string()}};
}

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

/// Without a file the states serve the summary of the variables alone; it is left out where they do not fit.
void keep_what_fits(const Model& model, RunOptions& options) {
  const double states =
      static_cast<double>(options.chains) * static_cast<double>(options.draws) *
      (static_cast<double>(model.layout.variables) + 8.0 * (4.0 + static_cast<double>(model.statistics.size())));
  if (options.keep != Keep::draws || options.seconds > 0.0 || states <= options.memory) return;
  options.keep = Keep::monitors;
  if (!is_root()) return;
  fmt::print(stderr,
             "note: the states of all draws take {}, more than --memory, and are not kept, so the variables one by "
             "one will not be diagnosed; --out FILE.nc keeps them\n",
             text::bytes(states));
}

NetcdfOptions file_shape(const Model& model, const RunOptions& options) {
  NetcdfOptions shape;
  shape.chains = options.chains;
  shape.draws = options.seconds > 0 ? 0 : options.draws;
  shape.variables = options.keep == Keep::draws ? model.layout.variables : 0;
  for (const Index levels : model.layout.cardinalities) shape.levels = std::max<std::size_t>(shape.levels, levels);
  shape.monitors = model.statistics.size() + 2;  // log_prob before them, hamming behind
  shape.threads = options.threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : options.threads;
  return shape;
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

int sample(const SampleFlags& flags, std::optional<Checkpoint> resumed = std::nullopt) {
  Problems problems;
  const CheckpointOptions checkpoints = read_checkpoint_options(flags.checkpoints, flags.out, problems);
  RunOptions options = read_options(flags.run, problems);
  read_integer(flags.first_chain, "--first-chain", 0, std::int64_t{1} << 40, options.first_chain, problems);
  if (flags.keep == "monitors") {
    options.keep = Keep::monitors;
  } else if (flags.keep != "draws") {
    problems.add(fmt::format("--keep: found {}, expected draws or monitors", quote(flags.keep)));
  }
  double gibibytes = 1.0;
  read_positive(flags.memory, "--memory", gibibytes, problems);
  options.memory = gibibytes * kGibibyte;
  problems.throw_if_any();
  const Sampler sampler = parse_sampler(flags.sampler);
  const Model model = read_model(flags.run, options);
  if (flags.out.empty()) keep_what_fits(model, options);
  options.check(model, !flags.out.empty());
  check_pictures(flags, model, sampler, options);
  if (flags.out == "-") throw InputError("--out: a NetCDF file cannot be written to standard output; give it a name");
  if (is_root()) {
    check_outputs({{"--out", flags.out}, {"--json", flags.json}, {"--images", flags.images}, {"--plot", flags.plot}});
  }
  const bool resumes = resumed.has_value();
  std::optional<CheckpointedSink> sink;
  SampleFlags decided = flags;  // so that whoever goes on with the run need not decide again
  if (options.device == Device::automatic) {
    decided.run.device = device_of_run(model, sampler, options) == Device::cuda ? "cuda" : "cpu";
  }
  if (!flags.out.empty() && is_root()) {
    const NetcdfOptions shape = file_shape(model, options);
    sink.emplace(flags.out, shape, draw_shape(model.layout, shape.chains, shape.monitors, shape.variables > 0),
                 checkpoints, command_of(decided), std::move(resumed));
  }

  if (ranks() != nullptr && checkpoints.enabled) {
    ranks()->say_on_loss(fmt::format("'poise resume {}' goes on from the last checkpoint, if there is one", flags.out));
  }
  ProgressDisplay display(progress_style(flags.quiet));
  CheckpointedSink* const file = sink ? &*sink : nullptr;
  RunHooks hooks{.sink = file, .stop = &stop_on_interrupt(), .collective = ranks()};
  if (is_root()) hooks.progress = [&](const Progress& progress) { display.update(progress); };
  if (!flags.out.empty()) hooks.after_round = [&](const Run& now) { CheckpointedSink::after_round(file, now); };
  Run run(model, sampler, options, hooks);
  if (resumes) {
    CheckpointedSink::load(file, run);
    if (!flags.quiet) fmt::print(stderr, "resumed with {} draws of each chain\n", run.draws());
  }
  run.warm_up();
  const bool by_clock = options.seconds > 0.0;
  const std::size_t wanted = by_clock ? std::numeric_limits<std::size_t>::max() : options.draws;
  run.sample(wanted - std::min(wanted, run.draws()));
  if (!flags.out.empty()) CheckpointedSink::after_last_round(file, run, !run.stopped());
  const RunResult result = run.finish();
  if (!is_root()) return kSuccess;
  display.end(result.interrupted);
  for (const std::string& note : result.notes) fmt::print(stderr, "note: {}\n", note);
  if (sink) {
    for (const std::string& note : sink->notes()) fmt::print(stderr, "note: {}\n", note);
  }

  if (sink) sink->close_draws();
  const FileReportOptions reading{.memory = options.memory, .threads = options.threads};
  const Report report = sink ? make_report(result, flags.out, reading) : make_report(result);
  const std::string json = json_text(report_json(report));
  if (sink) sink->finish(json);
  write_files(flags, model, result, json);
  if (flags.json != "-") {
    fmt::print("{}", report_text(report, table_width(stdout)));
  } else if (!flags.quiet) {
    fmt::print(stderr, "{}", report_text(report, table_width(stderr)));
  }
  if (result.interrupted) {
    if (sink && checkpoints.enabled && sink->notes().empty() && !flags.quiet) {
      fmt::print(stderr, "'poise resume {}' goes on with it\n", flags.out);
    }
    return kInterrupted;
  }
  return flags.strict && !report.warnings.empty() ? kWarnings : kSuccess;
}

/// Read by the root; the others need no state yet, nor a file system that has the file.
Checkpoint checkpoint_of_run(const std::string& path) {
  Checkpoint found;
  if (is_root()) {
    std::string note;
    found = read_checkpoint(path, note);
    if (!note.empty()) fmt::print(stderr, "note: {}\n", note);
  }
  if (ranks() == nullptr) return found;
  found.command = nlohmann::json::parse(ranks()->of_root(found.command.dump()));
  found.draws = ranks()->of_root(found.draws);
  found.finished = ranks()->of_root(found.finished);
  return found;
}

int resume_training(const ResumeFlags& flags, Checkpoint checkpoint) {
  if (ranks() != nullptr) throw InputError("training is the work of one process: start it without mpirun or srun");
  if (!flags.draws.empty()) throw InputError(fmt::format("--draws: {} is a training, which has none", flags.path));
  if (!flags.device.empty()) throw InputError("--device: a training goes on where it was begun");
  return go_on_training({flags.path, flags.threads, flags.quiet}, std::move(checkpoint));
}

int resume(const ResumeFlags& flags) {
  if (flags.path.empty()) throw InputError("the file is missing; 'poise sample --out run.nc' makes one");
  Checkpoint checkpoint = checkpoint_of_run(flags.path);
  SampleFlags again;
  again.out = std::filesystem::absolute(flags.path).lexically_normal().string();
  std::error_code ignored;
  try {
    if (checkpoint.command.at("program") == kTrainProgram) return resume_training(flags, std::move(checkpoint));
    if (checkpoint.command.at("program") != "poise sample") {
      throw InputError(fmt::format("{} was begun by {}, which goes on with it too", flags.path,
                                   checkpoint.command.at("program").get<std::string>()));
    }
    const nlohmann::json& words = checkpoint.command.at("words");
    for_each_word(again, [&](const char* name, std::string& word) { word = words.value(name, word); });
    // Files are named as they were when the run began, from the folder of that time where it is still there.
    std::filesystem::current_path(checkpoint.command.at("folder").get<std::string>(), ignored);
    for (const nlohmann::json& file : checkpoint.command.at("files")) check_fingerprint(file);
  } catch (const nlohmann::json::exception&) {
    throw InputError(fmt::format("{} is damaged", checkpoint_path(flags.path)));
  }
  again.checkpoints.always = true;
  again.strict = flags.strict;
  again.quiet = flags.quiet;
  if (!flags.threads.empty()) again.run.threads = flags.threads;
  if (!flags.device.empty()) again.run.device = flags.device;
  if (!flags.draws.empty()) {
    if (!again.run.seconds.empty()) throw InputError("--draws: the run was asked for so many seconds, not for draws");
    Problems problems;
    std::uint64_t draws = 0;
    read_integer(flags.draws, "--draws", 1, 1'000'000'000, draws, problems);
    problems.throw_if_any();
    if (draws < checkpoint.draws) {
      throw InputError(fmt::format("--draws: found {}, but {} has {} draws of each chain already", draws, flags.path,
                                   checkpoint.draws));
    }
    again.run.draws = flags.draws;
  } else if (is_root() && checkpoint.finished && !std::filesystem::exists(journal_path(flags.path), ignored)) {
    // With a journal the file of the draws may not be whole yet.
    throw InputError(fmt::format("the run at {} is finished: it has {} draws of each chain; --draws N makes it longer",
                                 flags.path, checkpoint.draws));
  }
  return sample(again, std::move(checkpoint));
}

}  // namespace

Command add_sample(CLI::App& program) {
  const auto flags = std::make_shared<SampleFlags>();
  CLI::App* command = program.add_subcommand("sample", "Sample from a model and summarise the draws");
  declare(*command, flags->run);
  command->add_option("--sampler", flags->sampler, "Sampler; listed below, with the models [auto]")->type_name("NAME");
  command->add_option("--keep", flags->keep, "What is kept: draws, or monitors only [draws]")->type_name("WHAT");
  command
      ->add_option("--memory", flags->memory,
                   "GiB that draws may take; with --out the rest is in the file only, and diagnosed from there [1]")
      ->type_name("GIB");
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
  declare(*command, flags->checkpoints);
  command->add_flag("--strict", flags->strict, "Exit with 3 when there are warnings");
  command->add_flag("--quiet", flags->quiet, "Show no progress");
  command->footer(sample_footer());
  return {command, [flags] { return sample(*flags); }, Ranks::all};
}

Command add_resume(CLI::App& program) {
  const auto flags = std::make_shared<ResumeFlags>();
  CLI::App* command =
      program.add_subcommand("resume", "Go on with a run that was killed or interrupted, or make it longer");
  command->add_option("run", flags->path, "File given to --out of 'poise sample' or 'poise train'")->type_name("FILE");
  command->add_option("--draws", flags->draws, "Recorded draws per chain in all [as the run was asked for]")
      ->type_name("N");
  command->add_option("--threads", flags->threads, "Threads; the draws do not depend on it [as before]")
      ->type_name("T");
  command
      ->add_option("--device", flags->device,
                   "Where chains run: cpu or cuda, where both have the same draws, see docs/gpu.md [as before]")
      ->type_name("NAME");
  command->add_flag("--strict", flags->strict, "Exit with 3 when there are warnings");
  command->add_flag("--quiet", flags->quiet, "Show no progress");
  command->footer(resume_footer());
  return {command, [flags] { return resume(*flags); }, Ranks::all};
}

}  // namespace poise::app
