/// What --help says beyond the list of options.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace poise::app {

/// Usage in the words of the documentation: the one positional first, by the name of its kind.
class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::size_t width) : width_(width) { column_width(26); }
  std::string make_usage(const CLI::App* command, std::string name) const override;
  std::string make_positionals(const CLI::App* command) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_description(const CLI::App* command) const override;
  std::string make_footer(const CLI::App* command) const override;

 private:
  std::size_t width_;  // of lines
};

/// The name of the one positional, such as MODEL; empty where a command has none.
[[nodiscard]] std::string positional_of(const CLI::App& command);

/// Text with its paragraphs and lists broken anew: lines that begin with a blank stay lines, and examples stay whole.
[[nodiscard]] std::string reflow(const std::string& text, std::size_t width);

std::string program_footer();
std::string sample_footer();
std::string resume_footer();
std::string compare_footer();
std::string summary_footer();
std::string scan_footer();
std::string report_footer();
std::string export_footer();
std::string mmd_footer();
std::string marginals_footer();
std::string exact_footer();
std::string select_footer();
std::string finemap_footer();
std::string info_footer();
std::string train_footer();
std::string logz_footer();
std::string optimize_footer();
std::string reproduce_footer();
std::string completions_footer();
std::string man_footer();

}  // namespace poise::app
