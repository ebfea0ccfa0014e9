/// The subcommands: each declares its options when it is added, and does its work when it is chosen.
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

namespace poise::app {

struct Command {
  CLI::App* options;
  std::function<int()> run;  ///< gives the exit code
};

Command add_sample(CLI::App& program);
Command add_compare(CLI::App& program);
Command add_summary(CLI::App& program);

}  // namespace poise::app
