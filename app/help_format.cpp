/// How help is laid out: columns and paragraphs, broken at the width of the terminal.
#include <algorithm>

#include <fmt/format.h>

#include "report/text.hpp"

#include "help.hpp"

namespace poise::app {

namespace {

/// Two columns, the second broken at `width`.
std::string entry(const std::string& name, const std::string& words, std::size_t column, std::size_t width) {
  const std::string left = "  " + name;
  std::string out;
  std::string first = fmt::format("{:<{}}", left, column);
  if (left.size() + 1 >= column) {
    out = left + '\n';
    first = std::string(column, ' ');
  }
  return out + text::wrap(words, first, std::max(width, column + 20));
}

/// A line of a list: what follows two blanks in a row stays in its column.
std::string list_line(const std::string& line, std::size_t width) {
  const std::size_t start = line.find_first_not_of(' ');
  const bool is_example = line.compare(start, 6, "poise ") == 0 || line.compare(start, 7, "mpirun ") == 0;
  if (is_example || line.size() <= width) return line + '\n';
  std::size_t column = line.find("  ", start);
  column = column == std::string::npos ? column : line.find_first_not_of(' ', column);
  if (column == std::string::npos || column > width / 2) column = start;
  return text::wrap(line.substr(column), line.substr(0, column), width);
}

}  // namespace

std::string reflow(const std::string& text, std::size_t width) {
  std::string out;
  std::string paragraph;
  const auto flush = [&] {
    if (!paragraph.empty()) out += text::wrap(paragraph, "", width);
    paragraph.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (!line.empty() && line.front() != ' ') {
      paragraph += (paragraph.empty() ? "" : " ") + line;
      if (line.back() != ':') continue;
    }
    flush();
    if (line.empty()) out += '\n';
    if (!line.empty() && line.front() == ' ') out += list_line(line, width);
  }
  flush();
  return out;
}

std::string positional_of(const CLI::App& command) {
  const auto positionals = command.get_options([](const CLI::Option* option) { return option->get_positional(); });
  return positionals.empty() ? "" : positionals.front()->get_type_name();
}

std::string HelpFormatter::make_usage(const CLI::App* command, std::string) const {
  if (command->get_parent() == nullptr) return "Usage: poise COMMAND [OPTIONS]\n";
  const std::string what = positional_of(*command);
  return fmt::format("Usage: poise {} {}[OPTIONS]\n", command->get_name(), what.empty() ? "" : what + " ");
}

std::string HelpFormatter::make_positionals(const CLI::App*) const { return ""; }

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  return entry(make_option_name(option, is_positional) + make_option_opts(option), option->get_description(),
               get_column_width(), width_);
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  return entry(command->get_name(), command->get_description(), get_column_width(), width_);
}

std::string HelpFormatter::make_description(const CLI::App* command) const {
  return text::wrap(command->get_description(), "", width_);
}

std::string HelpFormatter::make_footer(const CLI::App* command) const { return reflow(command->get_footer(), width_); }

}  // namespace poise::app
