/// Reading the options that `sample` and `compare` share.
#include "run_flags.hpp"

#include <cmath>
#include <limits>

#include <unistd.h>

#include <fmt/format.h>

#include "base/file.hpp"
#include <poise/extend/base/spec.hpp>
#include "models/ising/ising_model.hpp"

namespace poise::app {

namespace {

/// More of anything makes no sense, and products of two such numbers still fit.
constexpr std::int64_t kMost = 1'000'000'000;

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

template <class Integer>
void read_integer(const std::string& text, const char* option, std::int64_t min, std::int64_t max, Integer& out,
                  Problems& problems) {
  if (text.empty()) return;
  const auto value = parse_integer(text);
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
  command.add_option("--evidence", flags.evidence, "Observed variables of a network (UAI evidence, or name = level)")
      ->type_name("FILE");
}

void declare(CLI::App& command, RunFlags& flags) {
  const RunOptions defaults;
  declare(command, flags.model);
  command.add_option("--chains", flags.chains, fmt::format("Chains [{}]", defaults.chains))->type_name("N");
  command
      .add_option(
          "--warmup", flags.warmup,
          "Draws' worth of steps before the first draw [1000 sweeps; the later half only while learning goes on]")
      ->type_name("N");
  command.add_option("--draws", flags.draws, fmt::format("Recorded draws per chain [{}]", defaults.draws))
      ->type_name("N");
  command.add_option("--thin", flags.thin, "Steps per draw [one sweep]")->type_name("K");
  command.add_option("--seed", flags.seed, fmt::format("Seed of all random numbers [{}]", defaults.seed))
      ->type_name("S");
  command
      .add_option("--threads", flags.threads,
                  "Threads; the draws do not depend on it [0: all cores, or a rank's share of them]")
      ->type_name("T");
  command
      .add_option("--device", flags.device,
                  "Where chains run: cpu, cuda (a GPU; 'poise devices' lists them), or auto: a GPU where it is faster "
                  "[cpu]")
      ->type_name("DEVICE");
  command.add_option("--seconds", flags.seconds, "This long in all, warm-up included, instead of --draws")
      ->type_name("S");
  command
      .add_option(
          "--init", flags.init,
          "Where chains begin: uniform, zeros, dispersed (random, lowest, highest and mirrored levels in turn) or a "
          "file with one value per variable [uniform]")
      ->type_name("HOW");
}

void read_device(const std::string& text, Device& device, Problems& problems) {
  if (text == "cuda") {
    device = Device::cuda;
  } else if (text == "auto") {
    device = Device::automatic;
  } else if (!text.empty() && text != "cpu") {
    problems.add(fmt::format("--device: found {}, expected cpu, cuda or auto", quote(text)));
  }
}

RunOptions read_options(const RunFlags& flags, Problems& problems) {
  RunOptions options;
  read_integer(flags.chains, "--chains", 1, 1'000'000, options.chains, problems);
  if (!flags.warmup.empty()) {
    read_integer(flags.warmup, "--warmup", 0, kMost, options.warmup.emplace(0), problems);
  }
  read_integer(flags.draws, "--draws", 1, kMost, options.draws, problems);
  read_integer(flags.thin, "--thin", 1, kMost, options.thin, problems);
  read_integer(flags.seed, "--seed", 0, std::numeric_limits<std::int64_t>::max(), options.seed, problems);
  std::uint64_t threads = options.threads;
  read_integer(flags.threads, "--threads", 0, kMost, threads, problems);
  options.threads = static_cast<unsigned>(threads);
  read_device(flags.device, options.device, problems);
  read_positive(flags.seconds, "--seconds", options.seconds, problems);
  if (flags.model.model.empty()) problems.add("the model is missing, for example ising:case=4");
  return options;
}

Model read_model(const RunFlags& flags, RunOptions& options) {
  Model model = make_model(flags.model.model, {flags.model.field, flags.model.evidence});
  if (flags.init == "zeros") {
    options.start = Start::zeros;
  } else if (flags.init == "dispersed") {
    options.start = Start::dispersed;
  } else if (!flags.init.empty() && flags.init != "uniform") {
    if (::access(flags.init.c_str(), F_OK) != 0) {
      const std::string nearest = nearest_name(flags.init, {"uniform", "zeros", "dispersed"});
      throw InputError(fmt::format("--init: found {}, expected uniform, zeros, dispersed or a file that exists{}",
                                   quote(flags.init),
                                   nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest)));
    }
    options.start = Start::given;
    options.given = read_state(flags.init, model);
  }
  return model;
}

}  // namespace poise::app
