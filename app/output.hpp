/// Files and standard output: tried before the work begins, written whole or not at all.
#pragma once

#include <string>
#include <vector>

namespace poise::app {

/// Where results go: an option and the path given with it; an empty path stands for no output.
struct Output {
  std::string option;
  std::string path;
  bool is_folder = false;  ///< the store of a run, which says itself what is in its way
};

/// Throws an InputError that says which of the paths cannot be written, or are the same, and why. "-" is standard
/// output and may be given once. Leaves no trace in the file system.
void check_outputs(const std::vector<Output>& outputs);

/// Writes to standard output for "-"; otherwise beside the path, then renames, so that the path never holds half of it.
/// Pipes and devices are written to as they are.
void write_output(const std::string& path, const std::string& content);

/// Flushes standard output; false when something could not be written.
[[nodiscard]] bool finish_stdout();

}  // namespace poise::app
