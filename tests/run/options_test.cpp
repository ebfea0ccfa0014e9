/// The options of a run: what follows from their description, and what is recorded of them.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include <poise/log_partition.hpp>
#include <poise/marginals.hpp>
#include <poise/run.hpp>
#include "base/options.hpp"

namespace poise::options_test {

RunOptions unusual_options() {
  RunOptions options;
  options.chains = 7;
  options.warmup = 0;
  options.draws = 11;
  options.thin = 3;
  options.seed = ~std::uint64_t{0};
  options.threads = 2;
  options.seconds = 0.1;
  options.keep = Keep::monitors;
  options.memory = 12345678.0;
  options.start = Start::given;
  options.device = Device::cuda;
  options.first_chain = 5;
  return options;
}

TEST(Options, SurviveJsonBitwise) {
  const RunOptions options = unusual_options();
  RunOptions read;
  read_options_json(nlohmann::json::parse(options_json(options).dump()), read);
  EXPECT_EQ(options_json(read), options_json(options));
  EXPECT_EQ(read.warmup, std::optional<std::size_t>(0));
  EXPECT_EQ(read.seed, options.seed);
  EXPECT_EQ(read.seconds, options.seconds);
  EXPECT_EQ(read.memory, options.memory);
  EXPECT_EQ(read.start, Start::given);
  RunOptions unset;
  unset.warmup = 3;
  read_options_json(options_json(RunOptions()), unset);
  EXPECT_FALSE(unset.warmup.has_value());
  CheckpointOptions checkpoints;
  checkpoints.always = true;
  checkpoints.interval = std::chrono::duration<double>(0.02);
  CheckpointOptions read_checkpoints;
  read_options_json(options_json(checkpoints), read_checkpoints);
  EXPECT_EQ(read_checkpoints.interval, checkpoints.interval);
  EXPECT_TRUE(read_checkpoints.always);
}

/// Words as they are typed: each kind of value has one sentence for what is wrong with it.
TEST(Options, AreReadFromWords) {
  std::string problems;
  RunOptions options;
  const auto read = [&](const std::string& name, const std::string& word) {
    problems.clear();
    OptionVisitor set([&](const Option& option, OptionKind kind, OptionValue& value) {
      if (option.name != name) return false;
      problems = read_text(option, kind, word, value);
      return problems.empty();
    });
    options.describe(set);
    return problems;
  };
  EXPECT_EQ(read("chains", "12"), "");
  EXPECT_EQ(options.chains, 12U);
  EXPECT_EQ(read("chains", "0"), "found '0', expected a whole number of at least 1");
  EXPECT_EQ(read("chains", "-1"), "found '-1', expected a whole number of at least 1");
  EXPECT_EQ(read("chains", "9999999999"), "found '9999999999', expected a whole number of at most 2147483648");
  EXPECT_EQ(read("seconds", "2.5s"), "");
  EXPECT_EQ(options.seconds, 2.5);
  EXPECT_EQ(read("seconds", "s"), "found 's', expected a positive number");
  EXPECT_EQ(read("device", "gpu"), "found 'gpu', expected cpu, cuda or auto");
  EXPECT_EQ(read("init", "given"), "found 'given', expected uniform, zeros or dispersed");
  EXPECT_EQ(read("keep", "monitors"), "");
  EXPECT_EQ(options.keep, Keep::monitors);
}

TEST(Options, OfOneStructHaveNamesOfTheirOwnAndHelp) {
  const auto check = [](auto options) {
    std::set<std::string> names;
    OptionVisitor look([&](const Option& option, OptionKind kind, const OptionValue&) {
      EXPECT_TRUE(names.insert(option.name).second) << option.name;
      EXPECT_EQ(kind == OptionKind::choice, !option.choices.empty()) << option.name;
      return false;
    });
    options.describe(look);
    EXPECT_GE(names.size(), 2U);
  };
  check(RunOptions());
  check(CheckpointOptions());
  check(MarginalsOptions());
  check(LogPartitionOptions());
  check(NetworkLogPartitionOptions());
}

TEST(Options, TheSettingsOfARunSayWhereAndHowItWasMade) {
  const Model model = make_model("ising:size=3,lambda=0.2");
  RunOptions options;
  options.draws = 5;
  options.warmup = 2;
  options.keep = Keep::monitors;
  options.start = Start::given;
  options.given.assign(9, 1);
  const nlohmann::json settings = settings_json(run(model, parse_sampler("lb"), options));
  EXPECT_EQ(settings["device"], "cpu");
  EXPECT_EQ(settings["init"], "given");
  EXPECT_EQ(settings["keep"], "monitors");
  EXPECT_EQ(settings["draws"], 5);
  EXPECT_EQ(settings["warmup"], 2);
  EXPECT_EQ(settings["sampler"], "lb");
  EXPECT_FALSE(settings.contains("memory"));
  options.device = Device::automatic;
  options.start = Start::dispersed;
  options.given.clear();
  const nlohmann::json chosen = settings_json(run(model, parse_sampler("lb"), options));
  EXPECT_TRUE(chosen["device"] == "cpu" || chosen["device"] == "cuda") << chosen;
  EXPECT_EQ(chosen["init"], "dispersed");
}

/// A state is of one run: what decides its draws must be the same, and how the work is done need not.
TEST(Options, TheFingerprintFollowsFromThem) {
  const Model model = make_model("ising:size=3,lambda=0.2");
  const auto state_of = [&](const RunOptions& options) {
    return poise::Run(model, parse_sampler("gibbs"), options).save();
  };
  const auto loads = [&](const RunOptions& options, const std::string& state) {
    poise::Run saved(model, parse_sampler("gibbs"), options);
    try {
      saved.load(state);
      return true;
    } catch (const std::runtime_error&) {
      return false;
    }
  };
  RunOptions options;
  options.draws = 10;
  const std::string state = state_of(options);
  RunOptions other = options;
  other.threads = 1;
  other.draws = 20;
  other.memory = 1e9;
  EXPECT_TRUE(loads(other, state));
  for (const char* name : {"chains", "thin", "seed", "first_chain", "keep"}) {
    RunOptions changed = options;
    read_options_json({{name, std::string(name) == "keep" ? nlohmann::json("monitors") : nlohmann::json(2)}}, changed);
    EXPECT_FALSE(loads(changed, state)) << name;
  }
}

}  // namespace poise::options_test
