/// `poise explain`: what a kind of warning means, how sure it is, and what to do.
#include <memory>
#include <string>

#include <fmt/format.h>

#include <poise/diagnose.hpp>

#include "commands.hpp"

namespace poise::app {

Command add_explain(CLI::App& program) {
  CLI::App* command = program.add_subcommand("explain", "What a kind of warning means, how sure it is, and what to do");
  const auto code = std::make_shared<std::string>();
  command->add_option("code", *code, "Code of the warning: rhat, ess, stuck, ...; without it, all codes")
      ->type_name("CODE");
  command->footer(
      "Warnings of a report name their code below; JSON has it as \"code\", Python as fit.warnings[0].code.\n\n"
      "Examples:\n"
      "  poise explain\n"
      "  poise explain rhat");
  return {command,
          [code] {
            if (code->empty()) {
              for (const std::string& one : warning_codes()) {
                const std::string page = explanation(one);
                fmt::print("{}\n", page.substr(0, page.find('\n')));
              }
            } else {
              fmt::print("{}", explanation(*code));
            }
            return static_cast<int>(kSuccess);
          },
          Ranks::root};
}

}  // namespace poise::app
