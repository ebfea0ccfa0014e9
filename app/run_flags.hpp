/// The options that `sample` and `compare` share, from words to RunOptions.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <poise/run/run.hpp>

namespace poise::app {

/// Problems of a command line, to be reported all at once.
class Problems {
 public:
  void add(std::string sentence) { found_.push_back(std::move(sentence)); }
  /// Throws an InputError with everything found so far.
  void throw_if_any() const;

 private:
  std::vector<std::string> found_;
};

/// Options as they were given; empty where they were not.
struct RunFlags {
  std::string model;
  std::string field;
  std::string chains;
  std::string warmup;
  std::string draws;
  std::string thin;
  std::string seed;
  std::string threads;
  std::string seconds;
  std::string init;
};

void declare(CLI::App& command, RunFlags& flags);

/// What the flags say, the initial state apart; problems are noted.
[[nodiscard]] RunOptions read_options(const RunFlags& flags, Problems& problems);

/// A whole number in a range, or what was there before when the flag was not given.
template <class Integer>
void read_integer(const std::string& text, const char* option, std::int64_t min, std::int64_t max, Integer& out,
                  Problems& problems);

/// The model, and where its chains begin (`--init`): a file is read for the variables of the model.
[[nodiscard]] Model read_model(const RunFlags& flags, RunOptions& options);

}  // namespace poise::app
