/// `poise optimize`: the best state of a model.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include <poise/model.hpp>
#include <poise/network.hpp>
#include <poise/optimize.hpp>
#include <poise/report.hpp>
#include "base/file.hpp"
#include "base/state_file.hpp"
#include "report/text.hpp"

#include "commands.hpp"
#include "help.hpp"
#include "optimize.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "run_flags.hpp"
#include "terminal.hpp"
#include "work_checkpoints.hpp"

namespace poise::app {

namespace {

/// All that a search was asked for.
struct Wanted {
  ModelFlags model;
  OptimizeOptions options;
  CheckpointOptions checkpoints;
  std::string init;
  std::string fix;
  std::string out;
  std::string json;
  std::string plot;
  bool quiet = false;
};

struct OptimizeFlags {
  Wanted wanted;
  OptionFlags options;
  CheckpointFlags checkpoints;
  std::string target;
};

Wanted read_flags(const OptimizeFlags& flags) {
  Problems problems;
  Wanted wanted = flags.wanted;
  flags.options.read(wanted.options, problems);
  wanted.checkpoints = read_checkpoint_options(flags.checkpoints, wanted.out, problems);
  if (!flags.target.empty()) {
    wanted.options.target = parse_real(flags.target);
    if (!wanted.options.target) {
      problems.add(fmt::format("--target: found {}, expected a number", quote(flags.target)));
    }
  }
  if (wanted.model.model.empty()) problems.add("the model is missing, for example maxcut:file=graph.mc");
  problems.throw_if_any();
  return wanted;
}

std::string read_named(const char* flag, const std::string& path) {
  try {
    return read_file(path);
  } catch (const FileError& error) {
    throw InputError(fmt::format("{}: cannot read {}: {}", flag, path, error.reason));
  }
}

/// The UAI format of a most probable state, by the ending of a file.
bool is_mpe(const std::string& path) {
  const std::string ending = std::filesystem::path(path).extension().string();
  return ending == ".MPE" || ending == ".MAP" || ending == ".mpe" || ending == ".map";
}

OptimizeStart read_start(const Wanted& wanted, const VariableLayout& layout) {
  OptimizeStart start;
  if (!wanted.init.empty()) {
    const std::string content = read_named("--init", wanted.init);
    if (is_mpe(wanted.init)) {
      start.states = {parse_mpe(content, wanted.init)};
    } else {
      start.states = parse_states(content, wanted.init, layout);
    }
  }
  if (!wanted.fix.empty()) start.fixed = parse_fixed(read_named("--fix", wanted.fix), wanted.fix, layout);
  return start;
}

nlohmann::json command_of(const Wanted& wanted) {
  nlohmann::json options = options_json(wanted.options);
  if (wanted.options.target) options["target"] = *wanted.options.target;
  nlohmann::json files = nlohmann::json::array();
  for (const std::string& path : {wanted.model.field, wanted.model.evidence, wanted.init, wanted.fix}) {
    files.push_back(path);
  }
  std::error_code ignored;
  return {{"program", kOptimizeProgram},
          {"options", std::move(options)},
          {"checkpoints", options_json(wanted.checkpoints)},
          {"model", wanted.model.model},
          {"files", std::move(files)},
          {"json", wanted.json},
          {"plot", wanted.plot},
          {"folder", std::filesystem::current_path(ignored).string()}};
}

void write_results(const Wanted& wanted, const OptimizeAnswer& answer, const VariableLayout& layout) {
  if (!wanted.out.empty()) {
    write_output(wanted.out, is_mpe(wanted.out) ? mpe_text(answer.best().state) : states_text(answer, layout));
  }
  if (!wanted.json.empty()) write_output(wanted.json, json_text(optimize_json(answer, layout)));
  if (!wanted.plot.empty()) write_output(wanted.plot, optimize_plot(answer));
  const bool taken = wanted.out == "-" || wanted.json == "-" || wanted.plot == "-";
  if (taken && wanted.quiet) return;
  std::FILE* stream = taken ? stderr : stdout;
  fmt::print(stream, "{}", optimize_text(answer, layout, table_width(stream)));
}

int optimize(const Wanted& wanted, const std::optional<Checkpoint>& resumed = std::nullopt) {
  check_outputs({{"--out", wanted.out}, {"--json", wanted.json}, {"--plot", wanted.plot}});
  const Model model = make_model(wanted.model.model, {wanted.model.field, wanted.model.evidence});
  OptimizeStart start = read_start(wanted, model.layout);
  if (resumed) start.resumed = resumed->state;
  // Without a file there is nothing beside which a checkpoint could be.
  CheckpointOptions checkpoint_options = wanted.checkpoints;
  checkpoint_options.enabled = checkpoint_options.enabled && !wanted.out.empty() && wanted.out != "-";
  WorkCheckpoints checkpoints(wanted.out, "search", checkpoint_options, command_of(wanted), resumed.has_value());
  ProgressLine line(progress_style(wanted.quiet));
  std::string state;
  const std::atomic<bool>& stop = stop_on_interrupt();
  OptimizeHooks hooks;
  hooks.stop = &stop;
  hooks.progress = [&](const Improvement& best, double done) {
    if (!line.is_due()) return;
    line.show(fmt::format("{:3.0f} %  best {:.10g}, found after {}", 100.0 * done, best.objective,
                          text::duration(best.seconds)));
  };
  hooks.after_round = [&](const std::function<std::string()>& save) {
    if (checkpoints.is_due()) {
      checkpoints.save(save());
    } else if (stop && checkpoint_options.enabled) {
      state = save();
    }
  };
  const OptimizeAnswer answer = find_best(model, wanted.options, start, hooks);
  line.end();
  write_results(wanted, answer, model.layout);
  if (!answer.interrupted) {
    checkpoints.remove();
    return kSuccess;
  }
  if (!state.empty()) checkpoints.save(std::move(state));
  if (checkpoint_options.enabled && checkpoints.is_saved() && !wanted.quiet) {
    fmt::print(stderr, "'poise resume {}' continues it\n", wanted.out);
  }
  return kInterrupted;
}

}  // namespace

int continue_optimizing(const OptimizeAgain& words, Checkpoint checkpoint) {
  Wanted wanted;
  wanted.out = std::filesystem::absolute(words.path).lexically_normal().string();
  wanted.quiet = words.quiet;
  const nlohmann::json& command = checkpoint.command;
  try {
    read_options_json(command.at("options"), wanted.options);
    if (command.at("options").contains("target"))
      wanted.options.target = command.at("options").at("target").get<double>();
    read_options_json(command.at("checkpoints"), wanted.checkpoints);
    wanted.model = {command.at("model"), command.at("files").at(0), command.at("files").at(1)};
    wanted.init = command.at("files").at(2);
    wanted.fix = command.at("files").at(3);
    wanted.json = command.at("json");
    wanted.plot = command.at("plot");
    // Files are named as they were when it began, from the folder of that time where it is still there.
    std::error_code ignored;
    std::filesystem::current_path(command.at("folder").get<std::string>(), ignored);
  } catch (const nlohmann::json::exception&) {
    throw InputError(fmt::format("{} is damaged", checkpoint_path(words.path)));
  }
  wanted.checkpoints.always = true;
  if (words.threads) wanted.options.threads = *words.threads;
  return optimize(wanted, checkpoint);
}

Command add_optimize(CLI::App& program) {
  const auto flags = std::make_shared<OptimizeFlags>();
  CLI::App* command =
      program.add_subcommand("optimize", "Best state of a model: proved where it can be, else by search");
  Wanted& wanted = flags->wanted;
  declare(*command, wanted.model);
  const auto add = [&](const char* name, std::string& value, const char* help, const char* type) {
    command->add_option(name, value, help)->type_name(type);
  };
  flags->options.declare(*command, OptimizeOptions());
  add("--target", flags->target, "Stop as soon as the objective is at least as good", "V");
  add("--init", wanted.init, "States to start from, as --out writes them", "FILE");
  add("--fix", wanted.fix, "Variables that keep a level: lines 'variable label', the variable by name or number from 0",
      "FILE");
  add("--out", wanted.out,
      "Write the best states, one a line, or the best in the format of UAI where FILE ends in .MPE; - is standard "
      "output",
      "FILE");
  add("--json", wanted.json, "Write the result as JSON; - is standard output", "FILE");
  add("--plot", wanted.plot, "Draw the objective over time as SVG; - is standard output", "FILE");
  declare(*command, flags->checkpoints);
  command->add_flag("--quiet", wanted.quiet, "Show no progress");
  command->footer(optimize_footer());
  return {command, [flags] { return optimize(read_flags(*flags)); }};
}

}  // namespace poise::app
