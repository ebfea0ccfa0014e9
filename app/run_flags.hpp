/// The options that `sample` and `compare` share, from words to RunOptions.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <poise/run.hpp>

namespace poise::app {

inline constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;

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
struct ModelFlags {
  std::string model;
  std::string field;
  std::string evidence;
};

struct RunFlags {
  ModelFlags model;
  std::string chains;
  std::string warmup;
  std::string draws;
  std::string thin;
  std::string seed;
  std::string threads;
  std::string device;
  std::string seconds;
  std::string init;
};

void declare(CLI::App& command, ModelFlags& flags);
void declare(CLI::App& command, RunFlags& flags);

/// What the flags say, the initial state apart; problems are noted.
void read_device(const std::string& text, Device& device, Problems& problems);
[[nodiscard]] RunOptions read_options(const RunFlags& flags, Problems& problems);

/// A positive number; what was there before when the flag was not given.
void read_positive(const std::string& text, const char* option, double& out, Problems& problems);

/// A whole number in a range, or what was there before when the flag was not given.
template <class Integer>
void read_integer(const std::string& text, const char* option, std::int64_t min, std::int64_t max, Integer& out,
                  Problems& problems);

/// The model, and where its chains begin (`--init`): a file is read for the variables of the model.
[[nodiscard]] Model read_model(const RunFlags& flags, RunOptions& options);

}  // namespace poise::app
