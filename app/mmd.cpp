/// `poise mmd`: how far apart the draws of two stored runs are, and whether that is more than chance.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <poise/mmd.hpp>
#include <poise/report.hpp>
#include "report/text.hpp"
#include "store/run_file.hpp"

#include "commands.hpp"
#include "help.hpp"
#include "output.hpp"
#include "run_flags.hpp"
#include "terminal.hpp"

namespace poise::app {

namespace {

constexpr std::size_t kDraws = 1000;         // of each run
constexpr std::int64_t kMostDraws = 10'000;  // of each run: the kernel of twice as many pooled takes 800 MB
constexpr std::size_t kTooFew = 50;

struct MmdFlags {
  std::vector<std::string> paths;
  std::string draws;
  std::string permutations;
  std::string seed;
  std::string threads;
  std::string json;
  bool correlated = false;
};

/// How many draws to take, and whether they must be near independent.
struct Choice {
  std::uint64_t most = kDraws;
  bool correlated = false;
};

/// What is compared of one run.
struct Sample {
  std::string path;
  VariableLayout layout;
  std::size_t chains = 0;
  std::size_t stored = 0;  // draws in all chains
  Thinning thinning;
  std::size_t used = 0;
  std::vector<std::int8_t> x;
};

Sample read_sample(const std::string& path, const Choice& choice) {
  StoredRun run = read_run(path);
  const Trace& trace = run.trace;
  if (trace.chains * trace.draws == 0) throw InputError(fmt::format("{} holds no draws yet", path));
  if (trace.x.empty()) {
    throw InputError(
        fmt::format("{} holds monitors only, expected draws: 'poise sample' without --keep monitors", path));
  }
  Sample sample;
  sample.path = path;
  sample.chains = trace.chains;
  sample.stored = trace.chains * trace.draws;
  const DrawsView draws = draws_view(trace.x, trace.chains, trace.draws);
  std::vector<ChainsView> monitors;
  for (const auto& series : trace.monitors) monitors.push_back({series.data(), trace.chains, trace.draws});
  sample.thinning = find_thinning(draws, monitors);
  sample.used = std::min<std::size_t>(choice.correlated ? sample.stored : sample.thinning.draws, choice.most);
  sample.x = evenly_spaced(draws, sample.used);
  sample.layout = std::move(run.layout);
  return sample;
}

/// What levels are called, 0, 1, ... where nothing is said.
std::vector<int> labels_of(const VariableLayout& layout) {
  std::vector<int> labels(layout.labels.begin(), layout.labels.end());
  Index levels = 2;
  for (const Index cardinality : layout.cardinalities) levels = std::max(levels, cardinality);
  for (Index level = 0; layout.labels.empty() && level < levels; ++level) labels.push_back(static_cast<int>(level));
  return labels;
}

/// Throws unless the variables of both are the same: equal labels must mean equal things.
void check_same_variables(const Sample& a, const Sample& b) {
  const auto differ = [&](const std::string& in_a, const std::string& in_b) {
    throw InputError(fmt::format("{} has {}, but {} has {}", a.path, in_a, b.path, in_b));
  };
  const VariableLayout& in_a = a.layout;
  const VariableLayout& in_b = b.layout;
  if (in_a.variables != in_b.variables) {
    differ(text::plural(in_a.variables, "variable"), std::to_string(in_b.variables));
  }
  for (Index i = 0; i < in_a.variables; ++i) {
    if (in_a.cardinality(i) != in_b.cardinality(i)) {
      differ(fmt::format("{} for variable {}", text::plural(in_a.cardinality(i), "level"), i),
             std::to_string(in_b.cardinality(i)));
    }
  }
  if (in_a.is_lattice() && in_b.is_lattice() && in_a.rows != in_b.rows) {
    differ(fmt::format("a lattice of {} x {}", in_a.rows, in_a.columns),
           fmt::format("{} x {}", in_b.rows, in_b.columns));
  }
  const std::vector<int> labels_a = labels_of(in_a);
  const std::vector<int> labels_b = labels_of(in_b);
  if (labels_a != labels_b) {
    differ(fmt::format("the labels {}", fmt::join(labels_a, ", ")), fmt::format("{}", fmt::join(labels_b, ", ")));
  }
  if (!in_a.names.empty() && !in_b.names.empty() && in_a.names != in_b.names) {
    const auto [first, second] = std::mismatch(in_a.names.begin(), in_a.names.end(), in_b.names.begin());
    differ(fmt::format("a variable {} named {}", first - in_a.names.begin(), quote(*first)), quote(*second));
  }
  if (!in_a.level_names.empty() && !in_b.level_names.empty() && in_a.level_names != in_b.level_names) {
    const auto [first, second] =
        std::mismatch(in_a.level_names.begin(), in_a.level_names.end(), in_b.level_names.begin());
    differ(fmt::format("levels {} for variable {}", fmt::join(*first, ", "), first - in_a.level_names.begin()),
           fmt::format("{}", fmt::join(*second, ", ")));
  }
}

std::vector<Warning> warnings_of(const Sample& a, const Sample& b, const MmdResult& result) {
  std::vector<Warning> warnings;
  for (const Sample* sample : {&a, &b}) {
    const std::size_t independent = std::min(sample->used, sample->thinning.draws);
    if (independent >= kTooFew) continue;
    warnings.push_back(
        {"short",
         fmt::format(
             "{} of {}: too few to tell, whatever the p-value; take more, from a longer run or one that mixes better",
             independent == 1 ? "One draw counts" : fmt::format("{} draws count", independent), sample->path)});
  }
  if (result.permutations > 0 && (a.used > a.thinning.draws || b.used > b.thinning.draws)) {
    warnings.push_back({"dependent", "More draws were used than are near independent: the p-value is too small."});
  }
  if (result.v_statistic == 0.0 && a.x.size() > a.layout.variables) {
    warnings.push_back(
        {"same_draws",
         "Both samples hold the same draws: one file twice, or runs with one seed, which are not independent."});
  }
  return warnings;
}

nlohmann::json sample_json(const Sample& sample) {
  return {{"file", sample.path},
          {"chains", sample.chains},
          {"draws", sample.stored},
          {"ess", sample.thinning.effective},
          {"independent", sample.thinning.draws},
          {"used", sample.used}};
}

/// JSON has no NaN and no infinity.
nlohmann::json finite(double value) { return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr); }

void print(const Sample& a, const Sample& b, const MmdResult& result, const std::vector<Warning>& warnings) {
  const std::size_t width = table_width(stdout);
  const auto row = [&](const char* title, const std::string& words) {
    fmt::print("{}", text::wrap(words, title, width));
  };
  const auto of = [](const Sample& sample) {
    return fmt::format("{}: {} of {} used, evenly spaced; {} near independent (effective size {})", sample.path,
                       sample.used, text::plural(sample.stored, "draw"), sample.thinning.draws,
                       text::count(sample.thinning.effective));
  };
  row("first       ", of(a));
  row("second      ", of(b));
  row("kernel      ", fmt::format("exp(-d/{}), d the number of variables that differ", result.variables));
  row("MMD^2       ", fmt::format("{} over all pairs (V), {} without bias (U)", text::number(result.v_statistic),
                                  text::number(result.u_statistic)));
  row("MMD         ",
      fmt::format("{}, log10 {}", text::number(result.mmd()),
                  result.v_statistic > 0.0 ? fmt::format("{:.3f}", result.log10_mmd()) : std::string("-infinity")));
  if (result.permutations > 0) {
    row("p-value     ", fmt::format("{}: {} of {} random splits of the pooled draws are as far apart or farther",
                                    text::number(result.p_value, 3), result.as_far, result.permutations));
  }
  fmt::print("{}", text::warnings(warnings, width));
}

int compare_draws(const MmdFlags& flags) {
  Problems problems;
  MmdOptions options;
  options.threads = 0;
  Choice choice;
  choice.correlated = flags.correlated;
  std::uint64_t threads = options.threads;
  read_integer(flags.draws, "--draws", 1, kMostDraws, choice.most, problems);
  read_integer(flags.permutations, "--permutations", 0, 10'000'000, options.permutations, problems);
  read_integer(flags.seed, "--seed", 0, std::numeric_limits<std::int64_t>::max(), options.seed, problems);
  read_integer(flags.threads, "--threads", 0, 1'000'000, threads, problems);
  options.threads = static_cast<unsigned>(threads);
  if (flags.paths.size() != 2) {
    problems.add(fmt::format("found {}, expected two; 'poise sample --out a.zarr' makes one",
                             text::plural(flags.paths.size(), "run")));
  }
  problems.throw_if_any();
  check_outputs({{"--json", flags.json}});

  const Sample a = read_sample(flags.paths[0], choice);
  const Sample b = read_sample(flags.paths[1], choice);
  check_same_variables(a, b);
  const MmdResult result = mmd(a.x, b.x, a.layout.variables, options);
  const std::vector<Warning> warnings = warnings_of(a, b, result);
  if (!flags.json.empty()) {
    write_output(flags.json, json_text({{"version", POISE_VERSION},
                                        {"variables", result.variables},
                                        {"samples", {sample_json(a), sample_json(b)}},
                                        {"mmd2_v", result.v_statistic},
                                        {"mmd2_u", finite(result.u_statistic)},
                                        {"mmd", result.mmd()},
                                        {"log10_mmd", finite(result.log10_mmd())},
                                        {"permutations", result.permutations},
                                        {"as_far", result.as_far},
                                        {"p_value", finite(result.p_value)},
                                        {"seed", options.seed},
                                        {"warnings", warnings}}));
  }
  if (flags.json != "-") print(a, b, result, warnings);
  return kSuccess;
}

}  // namespace

Command add_mmd(CLI::App& program) {
  const auto flags = std::make_shared<MmdFlags>();
  const MmdOptions defaults;
  CLI::App* command = program.add_subcommand("mmd", "How far apart the draws of two stored runs are, and a test");
  command->add_option("runs", flags->paths, "What 'poise sample --out' wrote")->type_name("A B");
  command->add_option("--draws", flags->draws, fmt::format("Most draws of each run [{}]", kDraws))->type_name("N");
  command
      ->add_option("--permutations", flags->permutations,
                   fmt::format("Permutations of the test, 0 for none [{}]", defaults.permutations))
      ->type_name("N");
  command->add_option("--seed", flags->seed, fmt::format("Seed of the permutations [{}]", defaults.seed))
      ->type_name("S");
  command->add_option("--threads", flags->threads, "Threads; the result does not depend on it [0: all cores]")
      ->type_name("T");
  command->add_option("--json", flags->json, "Write the result as JSON; - is standard output")->type_name("FILE");
  command->add_flag("--correlated", flags->correlated, "Take --draws draws even where they are not near independent");
  command->footer(mmd_footer());
  return {command, [flags] { return compare_draws(*flags); }};
}

}  // namespace poise::app
