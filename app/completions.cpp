/// `poise completions`: what the shell completes, from the descriptions of commands and options.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include <poise/model.hpp>
#include <poise/sampler.hpp>

#include "commands.hpp"
#include "help.hpp"
#include "output.hpp"
#include "run_flags.hpp"

namespace poise::app {

namespace {

/// What may follow an option, or stand in place of a positional.
struct Values {
  bool any = true;  ///< takes one at all
  std::vector<std::string> words;
  bool files = false;
  bool folders = false;
};

struct Word {
  std::string name;  ///< with its dashes
  std::string help;
  Values values;
};

struct CommandWords {
  std::string name;
  std::string help;
  std::vector<Word> options;
  Values positional;
};

template <class Rows>
std::vector<std::string> names(const Rows& rows, const char* behind = "") {
  std::vector<std::string> out;
  for (const auto& row : rows) out.push_back(row.name + std::string(behind));
  return out;
}

Values values_of(const CLI::Option& option, const CLI::App& program) {
  Values values;
  values.any = option.get_type_size() != 0;
  const std::string type = option.get_type_name();
  values.files = type.starts_with("FILE") || type == "MODEL" || type == "WHAT";
  values.folders = type == "DIR";
  values.words = choices_of(&option);
  if (type == "MODEL") values.words = names(model_help(), ":");
  if (option.check_lname("sampler") || option.check_lname("samplers")) values.words = names(sampler_help());
  if (type == "COMMAND") {
    for (const CLI::App* command : program.get_subcommands({})) values.words.push_back(command->get_name());
  }
  return values;
}

std::vector<CommandWords> words_of(const CLI::App& program) {
  std::vector<CommandWords> out;
  for (const CLI::App* command : program.get_subcommands({})) {
    CommandWords words{command->get_name(), command->get_description(), {}, Values{.any = false, .words = {}}};
    for (const CLI::Option* option : command->get_options()) {
      const Values values = values_of(*option, program);
      if (option->get_positional()) {
        words.positional = values;
        continue;
      }
      for (const std::string& name : option->get_lnames()) {
        words.options.push_back({"--" + name, option->get_description(), values});
      }
    }
    out.push_back(std::move(words));
  }
  return out;
}

/// In single quotes of a shell.
std::string shell_quoted(const std::string& words) {
  std::string out = "'";
  for (const char c : words) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

// ---- bash

/// Fills COMPREPLY with what matches the present word.
std::string bash_values(const Values& values) {
  std::string out;
  if (!values.words.empty()) {
    out += fmt::format("COMPREPLY+=($(compgen -W {} -- \"$word\")); ", shell_quoted(joined(values.words)));
    if (values.words.front().ends_with(':')) out += "compopt -o nospace; ";
  }
  if (values.files) out += "compopt -o filenames; COMPREPLY+=($(compgen -f -- \"$word\")); ";
  if (values.folders) out += "compopt -o filenames; COMPREPLY+=($(compgen -d -- \"$word\")); ";
  return out.empty() ? ": " : out;
}

std::string bash(const std::vector<CommandWords>& commands) {
  std::string list;
  std::string cases;
  for (const CommandWords& command : commands) {
    list += command.name + ' ';
    std::string options;
    std::string of_options;
    for (const Word& option : command.options) {
      options += option.name + ' ';
      if (option.values.any) of_options += fmt::format("        {}) {};;\n", option.name, bash_values(option.values));
    }
    cases += fmt::format(
        "    {})\n      case $before in\n{}        *)\n          if [[ $word == -* ]]; then\n            "
        "COMPREPLY=($(compgen -W {} -- \"$word\"))\n          else\n            {}\n          fi;;\n      esac;;\n",
        command.name, of_options, shell_quoted(options), bash_values(command.positional));
  }
  return fmt::format(R"(# Completion of poise for bash. Written by 'poise completions bash'.
_poise() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
  COMPREPLY=()
  if [[ $COMP_CWORD -eq 1 ]]; then
    COMPREPLY=($(compgen -W {} -- "$word"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{}  esac
}}
complete -F _poise poise
)",
                     shell_quoted(list + "--help --version"), cases);
}

// ---- zsh

/// Help in a spec of _arguments: colons and brackets have a meaning there.
std::string zsh_text(const std::string& words) {
  std::string out;
  for (const char c : words) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_action(const Values& values) {
  std::string words;
  for (const std::string& word : values.words) words += (words.empty() ? "" : " ") + zsh_text(word);
  if (!words.empty() && values.files) return "{_alternative \"values:value:(" + words + ")\" \"files:file:_files\"}";
  if (!words.empty()) return "(" + words + ")";
  if (values.folders) return "_files -/";
  return values.files ? "_files" : "";
}

std::string zsh(const std::vector<CommandWords>& commands) {
  std::string list;
  std::string cases;
  for (const CommandWords& command : commands) {
    list += "      " + shell_quoted(command.name + ":" + zsh_text(command.help)) + '\n';
    cases += fmt::format("    {})\n      _arguments", command.name);
    for (const Word& option : command.options) {
      const std::string value = option.values.any ? ":value:" + zsh_action(option.values) : "";
      cases += " \\\n        " + shell_quoted(fmt::format("{}[{}]{}", option.name, zsh_text(option.help), value));
    }
    if (command.positional.any) cases += " \\\n        " + shell_quoted("1:argument:" + zsh_action(command.positional));
    cases += ";;\n";
  }
  return fmt::format(R"(#compdef poise
# Completion of poise for zsh. Written by 'poise completions zsh'.
_poise() {{
  local -a commands
  if (( CURRENT == 2 )); then
    commands=(
{}    )
    _describe 'command' commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{}  esac
}}
if [[ $funcstack[1] == _poise ]]; then
  _poise "$@"
else
  compdef _poise poise
fi
)",
                     list, cases);
}

// ---- fish

/// fish has two escapes inside single quotes.
std::string fish_quoted(const std::string& words) {
  std::string out = "'";
  for (const char c : words) out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out + "'";
}

std::string fish_values(const Values& values) {
  std::string out;
  if (!values.words.empty()) out += " -a " + fish_quoted(joined(values.words));
  if (values.folders) out += " -a '(__fish_complete_directories)'";
  return out + (values.files ? " -F" : "");
}

std::string fish(const std::vector<CommandWords>& commands) {
  std::string out = "# Completion of poise for fish. Written by 'poise completions fish'.\ncomplete -c poise -f\n";
  for (const CommandWords& command : commands) {
    out += fmt::format("complete -c poise -n __fish_use_subcommand -a {} -d {}\n", command.name,
                       fish_quoted(command.help));
  }
  for (const CommandWords& command : commands) {
    const std::string begin = fmt::format("complete -c poise -n '__fish_seen_subcommand_from {}'", command.name);
    if (command.positional.any) out += begin + fish_values(command.positional) + '\n';
    for (const Word& option : command.options) {
      out += fmt::format("{} -l {} -d {}{}{}\n", begin, option.name.substr(2), fish_quoted(option.help),
                         option.values.any ? " -r" : "", option.values.any ? fish_values(option.values) : "");
    }
  }
  return out;
}

int completions(const CLI::App& program, const std::string& shell) {
  const std::vector<CommandWords> commands = words_of(program);
  if (shell == "bash") {
    write_output("-", bash(commands));
  } else if (shell == "zsh") {
    write_output("-", zsh(commands));
  } else if (shell == "fish") {
    write_output("-", fish(commands));
  } else {
    throw InputError(shell.empty()
                         ? "the shell is missing, expected bash, zsh or fish"
                         : fmt::format("found {}, expected the shell, which is bash, zsh or fish", quote(shell)));
  }
  return kSuccess;
}

}  // namespace

Command add_completions(CLI::App& program) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* command =
      program.add_subcommand("completions", "Write what a shell needs to complete commands and options");
  CLI::Option* option = command->add_option("shell", *shell, "bash, zsh or fish")->type_name("SHELL");
  note_choices(option, {"bash", "zsh", "fish"});
  command->footer(completions_footer());
  return {command, [shell, &program] { return completions(program, *shell); }};
}

}  // namespace poise::app
