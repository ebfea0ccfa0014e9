/// How flags are declared and read, and states from files.
#include "run_flags.hpp"

#include <cmath>
#include <limits>

#include <unistd.h>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include "base/file.hpp"
#include "models/ising/ising_model.hpp"

namespace poise::app {

namespace {

std::string read_state_file(const std::string& path) {
  try {
    return read_file(path);
  } catch (const FileError& error) {
    throw InputError(fmt::format("--init: cannot read {}: {}", path, error.reason));
  }
}

std::vector<int> labels_of(const Model& model) {
  std::vector<int> labels(model.layout.labels.begin(), model.layout.labels.end());
  if (!labels.empty()) return labels;
  Index most = 2;
  for (const Index levels : model.layout.cardinalities) most = std::max(most, levels);
  for (Index level = 0; level < most; ++level) labels.push_back(static_cast<int>(level));
  return labels;
}

/// A state from a file: one value per variable, all of them labels (-1 and +1 for spins) or all of them levels (0, 1).
std::vector<Value> read_state(const std::string& path, const Model& model) {
  const std::string content = read_state_file(path);
  if (content.find_first_not_of(" \t\r\n") == std::string::npos) {
    throw InputError(fmt::format("--init: {} is empty; expected {} values", path, model.layout.variables));
  }
  const std::vector<double> values = parse_numbers(content, path);
  if (values.size() != model.layout.variables) {
    throw InputError(fmt::format("--init: {} has {} values, but the model has {} variables", path, values.size(),
                                 model.layout.variables));
  }
  const std::vector<int> labels = labels_of(model);
  const auto level_by_label = [&](double value) {
    const auto found = std::find(labels.begin(), labels.end(), value);
    return found == labels.end() ? -1 : static_cast<int>(found - labels.begin());
  };
  const auto level_by_number = [&](double value) {
    return value >= 0 && value < static_cast<double>(labels.size()) && value == std::floor(value)
               ? static_cast<int>(value)
               : -1;
  };
  const bool by_label = std::all_of(values.begin(), values.end(), [&](double v) { return level_by_label(v) >= 0; });
  std::vector<Value> state;
  state.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int level = by_label ? level_by_label(values[i]) : level_by_number(values[i]);
    if (level < 0) {
      const auto wrong = std::find_if(values.begin(), values.end(), [&](double v) { return level_by_label(v) < 0; });
      throw InputError(fmt::format("--init: value {} of {} is {}, expected one of {}{}", wrong - values.begin() + 1,
                                   path, *wrong, fmt::join(labels, ", "),
                                   model.layout.labels.empty() ? "" : ", or levels from 0 throughout"));
    }
    state.push_back(static_cast<Value>(level));
  }
  return state;
}

}  // namespace

void Problems::throw_if_any() const {
  if (!found_.empty()) throw InputError(fmt::format("{}", fmt::join(found_, "; ")));
}

namespace {

std::map<const CLI::Option*, std::vector<std::string>>& all_choices() {
  static std::map<const CLI::Option*, std::vector<std::string>> choices;
  return choices;
}

}  // namespace

void note_choices(const CLI::Option* option, std::vector<std::string> words) {
  if (!words.empty()) all_choices()[option] = std::move(words);
}

const std::vector<std::string>& choices_of(const CLI::Option* option) {
  static const std::vector<std::string> none;
  const auto found = all_choices().find(option);
  return found == all_choices().end() ? none : found->second;
}

template <class Integer>
void read_integer(const std::string& text, const char* option, std::int64_t min, std::int64_t max, Integer& out,
                  Problems& problems) {
  if (text.empty()) return;
  const auto value = parse_whole_number(text);
  if (value && *value >= min && *value <= max) {
    out = static_cast<Integer>(*value);
    return;
  }
  const bool open_ended = max == std::numeric_limits<std::int64_t>::max() || (value && *value < min);
  const std::string range = open_ended ? fmt::format("of at least {}", min) : fmt::format("from {} to {}", min, max);
  problems.add(fmt::format("{}: found {}, expected a whole number {}", option, quote(text), range));
}
template void read_integer(const std::string&, const char*, std::int64_t, std::int64_t, std::uint64_t&, Problems&);

void read_positive(const std::string& text, const char* option, double& out, Problems& problems) {
  if (text.empty()) return;
  const auto value = parse_real(text);
  if (value && *value > 0) {
    out = *value;
  } else {
    problems.add(fmt::format("{}: found {}, expected a positive number", option, quote(text)));
  }
}

void declare(CLI::App& command, ModelFlags& flags) {
  command.add_option("model", flags.model, "Model, such as ising:case=4 or net.uai")->type_name("MODEL");
  command.add_option("--field", flags.field, "Field of the model: a PNG or PGM image, or numbers as text")
      ->type_name("FILE");
  command
      .add_option(
          "--evidence", flags.evidence,
          "Observed variables of a network: a file (UAI evidence, or lines name = level), or xray=yes,dysp=yes; a "
          "file of that name wins")
      ->type_name("WHAT");
}

void declare(CLI::App& command, CheckpointFlags& flags) {
  flags.options.declare(command, CheckpointOptions());
  command.add_flag("--no-checkpoint", flags.never, "Write none");
}

CheckpointOptions read_checkpoint_options(const CheckpointFlags& flags, const std::string& out, Problems& problems) {
  CheckpointOptions options;
  flags.options.read(options, problems);
  options.enabled = !flags.never && !out.empty();
  options.always = options.always || !flags.options.word("checkpoint_every").empty();
  if (flags.never && options.always) {
    problems.add("--no-checkpoint cannot go with --checkpoint or --checkpoint-every");
  }
  if (out.empty() && options.always) {
    problems.add("--checkpoint: a run is resumed from its file, so it needs --out RUN.zarr");
  }
  if (options.always) options.first = {};  // before the first draw
  return options;
}

void OptionFlags::add_flag(CLI::App& command, const Option& option, OptionKind kind, const std::string& otherwise) {
  std::string& word = words_[option.name];
  const std::string help = otherwise.empty() ? option.help : fmt::format("{} [{}]", option.help, otherwise);
  if (kind == OptionKind::flag) {
    command.add_flag_callback(
        flag_of(option), [&word] { word = "yes"; }, help);
  } else {
    note_choices(command.add_option(flag_of(option), word, help)->type_name(option.value), option.choices);
  }
}

Model read_model(const RunFlags& flags, RunOptions& options) {
  Model model = make_model(flags.model.model, {flags.model.field, flags.model.evidence});
  const std::string init = flags.options.word("init");
  const std::vector<std::string> names = {"uniform", "zeros", "dispersed"};
  if (init.empty() || std::find(names.begin(), names.end(), init) != names.end()) return model;
  if (::access(init.c_str(), F_OK) != 0) {
    const std::string nearest = nearest_name(init, names);
    throw InputError(fmt::format("--init: found {}, expected uniform, zeros, dispersed or a file that exists{}",
                                 quote(init), nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest)));
  }
  options.start = Start::given;
  options.given = read_state(init, model);
  return model;
}

}  // namespace poise::app
