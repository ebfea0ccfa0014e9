/// The program: finds the subcommand, runs it, and turns errors into one sentence and an exit code.
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include "exact/junction_tree.hpp"

#include "commands.hpp"
#include "help.hpp"
#include "output.hpp"
#include "ranks.hpp"
#include "terminal.hpp"

namespace poise::app {

namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

/// One line, also where the library lists several problems on lines of their own.
int complain(std::string sentence, int code) {
  replace_all(sentence, ":\n  - ", ": ");
  replace_all(sentence, "\n  - ", "; ");
  replace_all(sentence, "\n", " ");
  while (!sentence.empty() && sentence.back() == ' ') sentence.pop_back();
  if (sentence.empty() || std::string(".?!").find(sentence.back()) == std::string::npos) sentence += '.';
  fmt::print(stderr, "poise: {}\n", sentence);
  return code;
}

std::string did_you_mean_option(const std::string& word, const std::vector<std::string>& names) {
  const std::string nearest = nearest_name(word, names);
  return nearest.empty() ? "" : fmt::format(" (did you mean '--{}'?)", nearest);
}

/// The unexpected words as a sentence.
std::string unexpected(const CLI::App& command, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word.size() < 2 || word[0] != '-') continue;
    const std::string name = word.substr(0, word.find('='));
    std::vector<std::string> names;
    for (const CLI::Option* option : command.get_options()) {
      for (const std::string& known : option->get_lnames()) names.push_back(known);
    }
    const std::string bare =
        name.substr(name.find_first_not_of('-') == std::string::npos ? 0 : name.find_first_not_of('-'));
    const std::string called = command.get_parent() == nullptr ? "poise" : "poise " + command.get_name();
    return fmt::format("unknown option {}{}; '{} --help' lists the options", quote(name),
                       did_you_mean_option(bare, names), called);
  }
  return fmt::format("unexpected argument {}", quote(words.empty() ? "" : words.front()));
}

int run(int argc, char** argv) {
  CLI::App program("Poise samples from discrete distributions and tunes itself.", "poise");
  program.set_version_flag("--version", "poise " POISE_VERSION, "Show the version and exit");
  program.set_help_flag("-h,--help", "Show this help and exit");
  program.require_subcommand(0, 1);
  program.formatter(std::make_shared<HelpFormatter>(help_width()));
  program.footer(program_footer());
  const std::vector<Command> commands = {
      add_sample(program),    add_resume(program),      add_marginals(program), add_exact(program),
      add_info(program),      add_compare(program),     add_scan(program),      add_summary(program),
      add_report(program),    add_export(program),      add_mmd(program),       add_train(program),
      add_logz(program),      add_optimize(program),    add_select(program),    add_finemap(program),
      add_reproduce(program), add_explain(program),     add_devices(program),   add_help(program),
      add_version(program),   add_completions(program), add_man(program)};
  const auto chosen = [&]() -> const Command* {
    for (const Command& command : commands) {
      if (command.options->parsed()) return &command;
    }
    return nullptr;
  };
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& request) {  // --help or --version
    program.exit(request);
    return finish_stdout() ? kSuccess : kFailure;
  } catch (const CLI::ExtrasError&) {
    const Command* command = chosen();
    if (command != nullptr) return complain(unexpected(*command->options, command->options->remaining()), kBadInput);
    const std::vector<std::string> words = program.remaining();
    if (words.front().front() == '-') return complain(unexpected(program, words), kBadInput);
    return complain(unknown_command(program, words.front()), kBadInput);
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string found = error.what();
    const std::string option = found.substr(0, found.find(':'));
    const bool repeated = found.find("At Most") != std::string::npos;
    return complain(option + (repeated ? ": given more than once, expected once" : ": found nothing, expected a value"),
                    kBadInput);
  } catch (const CLI::ParseError& error) {
    return complain(error.what(), kBadInput);
  }
  const Command* command = chosen();
  if (command == nullptr) {
    fmt::print(stderr, "{}", program.help());
    return kBadInput;
  }
  if (ranks() != nullptr && command->ranks == Ranks::none) {
    throw InputError(fmt::format("poise {} is the work of one process: start it without mpirun or srun",
                                 command->options->get_name()));
  }
  if (!is_root() && command->ranks == Ranks::root) return kSuccess;
  const int code = command->run();
  return finish_stdout() ? code : complain("cannot write to standard output", kFailure);
}

/// Turns what goes wrong into a sentence and an exit code.
template <class Work>
int report_errors(Work&& work) {
  try {
    return work();
  } catch (const poise::InputError& error) {
    return complain(error.what(), kBadInput);
  } catch (const poise::ExactStopped&) {
    fmt::print(stderr, "\n");
    return complain("interrupted before there was anything to show", kInterrupted);
  } catch (const std::bad_alloc&) {
    return complain("there is not enough memory for this run; --keep monitors, fewer draws or fewer chains need less",
                    kFailure);
  } catch (const std::exception& error) {
    return complain(error.what(), kFailure);
  }
}

}  // namespace

}  // namespace poise::app

int main(int argc, char** argv) {
  using namespace poise::app;
  const int code = report_errors([&] {
    join_ranks();
    if (ranks() == nullptr) return run(argc, argv);
    int of_all = kSuccess;
    ranks()->together([&] { of_all = run(argc, argv); });
    return of_all;
  });
  leave_ranks();
  // A launcher that sees a rank end with an error kills the others, and the root may have something left to say.
  return is_root() ? code : kSuccess;
}
