/// Flags from words to options: those that follow from a description, of models, and of checkpoints.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <poise/run.hpp>
#include "base/options.hpp"

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

/// Words that an option may be given, for completion: those of a description, or said here.
void note_choices(const CLI::Option* option, std::vector<std::string> words);
[[nodiscard]] const std::vector<std::string>& choices_of(const CLI::Option* option);

/// Options as they were given; empty where they were not.
struct ModelFlags {
  std::string model;
  std::string field;
  std::string evidence;
};

/// Flags of an options struct, which follow from its description.
class OptionFlags {
 public:
  /// Declares those of `names`, or all. `otherwise` replaces what help says of values that are not given.
  template <class Options>
  void declare(CLI::App& command, Options defaults, const std::vector<std::string>& names = {},
               const std::string& otherwise = "") {
    OptionVisitor add([&](const Option& option, OptionKind kind, const OptionValue& value) {
      const bool wanted = names.empty() || std::find(names.begin(), names.end(), option.name) != names.end();
      if (wanted) add_flag(command, option, kind, otherwise.empty() ? default_text(option, kind, value) : otherwise);
      return false;
    });
    defaults.describe(add);
  }
  /// Sets what was given. A word that is none of the choices is left to the caller where values can be given otherwise.
  template <class Options>
  void read(Options& options, Problems& problems) const {
    OptionVisitor set([&](const Option& option, OptionKind kind, OptionValue& value) {
      if (word(option.name).empty()) return false;
      const std::string wrong = read_text(option, kind, word(option.name), value);
      if (!wrong.empty() && option.stored_only == nullptr) problems.add(flag_of(option) + ": " + wrong);
      return wrong.empty();
    });
    options.describe(set);
  }
  /// What was typed; empty where nothing was.
  [[nodiscard]] std::string word(const std::string& name) const {
    const auto found = words_.find(name);
    return found == words_.end() ? "" : found->second;
  }

 private:
  void add_flag(CLI::App& command, const Option& option, OptionKind kind, const std::string& otherwise);

  std::map<std::string, std::string> words_;
};

struct RunFlags {
  ModelFlags model;
  OptionFlags options;
};

struct CheckpointFlags {
  OptionFlags options;
  bool never = false;
};

void declare(CLI::App& command, ModelFlags& flags);
void declare(CLI::App& command, CheckpointFlags& flags);

/// `out` is where the work goes; without it there are no checkpoints. Problems are noted.
[[nodiscard]] CheckpointOptions read_checkpoint_options(const CheckpointFlags& flags, const std::string& out,
                                                        Problems& problems);

/// A positive number; what was there before when the flag was not given.
void read_positive(const std::string& text, const char* option, double& out, Problems& problems);

/// A whole number in a range, or what was there before when the flag was not given.
template <class Integer>
void read_integer(const std::string& text, const char* option, std::int64_t min, std::int64_t max, Integer& out,
                  Problems& problems);

/// The model, and where its chains begin (`--init`): a file is read for the variables of the model.
[[nodiscard]] Model read_model(const RunFlags& flags, RunOptions& options);

}  // namespace poise::app
