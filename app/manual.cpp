/// `poise help`, `poise version` and `poise man`: what the descriptions of commands and options say, as text and as
/// pages of the manual.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>

#include "commands.hpp"
#include "help.hpp"
#include "output.hpp"
#include "run_flags.hpp"

namespace poise::app {

namespace {

std::vector<std::string> names_of_commands(const CLI::App& program) {
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

const CLI::App& find_command(const CLI::App& program, const std::string& name) {
  for (const CLI::App* command : program.get_subcommands({})) {
    if (command->get_name() == name) return *command;
  }
  throw InputError(unknown_command(program, name));
}

// ---- pages

/// Text for troff: its own characters are escaped, and no line is taken for a request.
std::string roff(const std::string& words) {
  std::string out;
  for (const char c : words) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
      out += c;
    }
  }
  return out;
}

/// Paragraphs are filled; lines that begin with a blank stay as they are.
std::string roff_of_footer(const std::string& text) {
  std::string out;
  bool as_is = false;
  const auto fill = [&](bool filled) {
    if (as_is == filled) out += filled ? ".fi\n" : ".nf\n";
    as_is = !filled;
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.empty()) {
      fill(true);
      out += ".PP\n";
      continue;
    }
    fill(line.front() != ' ');
    out += roff(line) + '\n';
  }
  fill(true);
  return out;
}

std::string roff_of_options(const CLI::App& command) {
  std::string out;
  for (const CLI::Option* option : command.get_options([](const CLI::Option* one) { return one->nonpositional(); })) {
    out += fmt::format(".TP\n\\fB{}\\fR", roff(option->get_name(false, true)));
    if (option->get_type_size() != 0) out += fmt::format(" \\fI{}\\fR", roff(option->get_type_name()));
    out += '\n' + roff(option->get_description()) + '\n';
  }
  return out;
}

/// The page of the program, or of one of its commands.
std::string page(const CLI::App& command) {
  const CLI::App* program = command.get_parent();
  const std::string title = program == nullptr ? "poise" : "poise-" + command.get_name();
  std::string upper = title;
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  std::string description = command.get_description();
  if (description.ends_with('.')) description.pop_back();
  std::string out = fmt::format(".TH {} 1 \"\" \"Poise {}\" \"Poise\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n",
                                roff(upper), POISE_VERSION, roff(title), roff(description));
  if (program == nullptr) {
    out += "\\fBpoise\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.SH COMMANDS\n";
    for (const CLI::App* one : command.get_subcommands({})) {
      out += fmt::format(".TP\n\\fBpoise\\-{}\\fR(1)\n{}\n", roff(one->get_name()), roff(one->get_description()));
    }
  } else {
    const std::string what = positional_of(command);
    out += fmt::format("\\fBpoise {}\\fR {}[\\fIOPTIONS\\fR]\n", roff(command.get_name()),
                       what.empty() ? "" : "\\fI" + roff(what) + "\\fR ");
  }
  out += ".SH OPTIONS\n" + roff_of_options(command);
  if (!command.get_footer().empty()) out += ".SH DETAILS\n" + roff_of_footer(command.get_footer());
  return out + ".SH SEE ALSO\n" + (program == nullptr ? "\\fBpoise help\\fR \\fICOMMAND\\fR\n" : "\\fBpoise\\fR(1)\n");
}

struct ManFlags {
  std::string command;
  std::string out;
};

int man(const CLI::App& program, const ManFlags& flags) {
  if (flags.out.empty()) {
    write_output("-", page(flags.command.empty() ? program : find_command(program, flags.command)));
    return kSuccess;
  }
  if (!flags.command.empty()) throw InputError("--out: all pages are written, so it goes with no COMMAND");
  const std::filesystem::path folder = std::filesystem::path(flags.out) / "man1";
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw InputError(fmt::format("--out: cannot make {}: {}", folder.string(), failed.message()));
  write_output((folder / "poise.1").string(), page(program));
  for (const CLI::App* command : program.get_subcommands({})) {
    write_output((folder / fmt::format("poise-{}.1", command->get_name())).string(), page(*command));
  }
  return kSuccess;
}

}  // namespace

std::string unknown_command(const CLI::App& program, const std::string& word) {
  const std::vector<std::string> names = names_of_commands(program);
  return fmt::format("unknown command {}{}; commands are {}", quote(word), poise::did_you_mean(word, names),
                     fmt::join(names, ", "));
}

Command add_help(CLI::App& program) {
  const auto name = std::make_shared<std::string>();
  CLI::App* command = program.add_subcommand("help", "Show the help of a command, or this list");
  command->add_option("command", *name, "Command to show the help of")->type_name("COMMAND");
  return {command,
          [name, &program] {
            const CLI::App& what = name->empty() ? program : find_command(program, *name);
            write_output("-", program.get_formatter()->make_help(&what, "", CLI::AppFormatMode::Normal));
            return kSuccess;
          },
          Ranks::root};
}

Command add_version(CLI::App& program) {
  CLI::App* command = program.add_subcommand("version", "Show the version");
  return {command,
          [] {
            write_output("-", "poise " POISE_VERSION "\n");
            return kSuccess;
          },
          Ranks::root};
}

Command add_man(CLI::App& program) {
  const auto flags = std::make_shared<ManFlags>();
  CLI::App* command = program.add_subcommand("man", "Write pages of the manual");
  command->add_option("command", flags->command, "Command to write the page of")->type_name("COMMAND");
  command->add_option("--out", flags->out, "Write the pages of all commands into DIR/man1")->type_name("DIR");
  command->footer(man_footer());
  return {command, [flags, &program] { return man(program, *flags); }};
}

}  // namespace poise::app
