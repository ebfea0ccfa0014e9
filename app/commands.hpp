/// The subcommands: each declares its options when it is added, and does its work when it is chosen.
#pragma once

#include <functional>
#include <string>

#include <CLI/CLI.hpp>

namespace poise::app {

/// What the program tells the shell.
enum ExitCode : int {
  kSuccess = 0,
  kFailure = 1,       ///< something went wrong while running
  kBadInput = 2,      ///< bad usage or input; nothing was written
  kWarnings = 3,      ///< there were warnings, under --strict
  kInterrupted = 130  ///< Ctrl-C; what was drawn until then is kept
};

/// Where several ranks are started together: who does the work.
enum class Ranks { none, root, all };

struct Command {
  CLI::App* options;
  std::function<int()> run;   ///< gives the exit code
  Ranks ranks = Ranks::none;  ///< `none` refuses to be started by several
};

Command add_sample(CLI::App& program);
Command add_resume(CLI::App& program);
Command add_compare(CLI::App& program);
Command add_scan(CLI::App& program);
Command add_summary(CLI::App& program);
Command add_report(CLI::App& program);
Command add_export(CLI::App& program);
Command add_mmd(CLI::App& program);
Command add_marginals(CLI::App& program);
Command add_exact(CLI::App& program);
Command add_select(CLI::App& program);
Command add_finemap(CLI::App& program);
Command add_info(CLI::App& program);
Command add_explain(CLI::App& program);
Command add_devices(CLI::App& program);
Command add_train(CLI::App& program);
Command add_logz(CLI::App& program);
Command add_optimize(CLI::App& program);
Command add_reproduce(CLI::App& program);
// These look at all commands that were added before them.
Command add_help(CLI::App& program);
Command add_version(CLI::App& program);
Command add_completions(CLI::App& program);
Command add_man(CLI::App& program);

/// "unknown command 'x' (did you mean 'y'?); commands are ..."
[[nodiscard]] std::string unknown_command(const CLI::App& program, const std::string& word);

}  // namespace poise::app
