/// Ranks that see the same folder write the states of their own chains: what is stored is what one process stores.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "run/checkpoint.hpp"
#include "store/run_file.hpp"
#include "support/mpi_program.hpp"
#include "support/thread_ranks.hpp"

namespace poise::shared_store_test {

namespace fs = std::filesystem;
using testing_program::Arguments;
using testing_program::MostFiles;
using testing_program::MpiProgramTest;
using testing_program::Outcome;

/// Names and bytes of all files of a store that are part of its Zarr group, its root apart.
std::map<std::string, std::string> stored_bytes(const std::string& store) {
  std::map<std::string, std::string> found;
  for (const char* group : {"posterior", "sample_stats"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(store) / group)) {
      if (!entry.is_regular_file()) continue;
      found[fs::relative(entry.path(), store).string()] = testing_program::read_text(entry.path());
    }
  }
  return found;
}

/// Whether ranks find out that they see the same folder, for as long as this lives.
class Sharing {
 public:
  explicit Sharing(bool shared) { shared ? ::unsetenv("POISE_SHARED") : ::setenv("POISE_SHARED", "off", 1); }
  ~Sharing() { ::unsetenv("POISE_SHARED"); }
  Sharing(const Sharing&) = delete;
  Sharing& operator=(const Sharing&) = delete;
};

class SharedStore : public MpiProgramTest {
 protected:
  static RunOptions options_of(std::size_t draws) {
    RunOptions options;
    options.chains = 5;
    options.draws = draws;
    options.warmup = 20;
    options.seed = 3;
    options.threads = 1;
    return options;
  }

  struct Made {
    RunResult result;
    bool shares = false;
  };
  /// One rank's part of a run that goes on from a checkpoint where there is one, and leaves one.
  Made make(const std::string& name, const std::string& model, const RunOptions& options, Collective* ranks,
            Collective::To to = Collective::To::root) const {
    const Model of_spec = make_model(model);
    const std::string path = in_work(name);
    const bool is_root = ranks == nullptr || ranks->is_root();
    std::optional<Checkpoint> before;
    std::string note;
    if (is_root && fs::exists(path + "/zarr.json")) before = read_checkpoint(path, note);
    if (ranks != nullptr) {
      const bool resumes = ranks->of_root(before.has_value());
      const std::size_t draws = ranks->of_root(before ? before->draws : 0);
      if (resumes && !before) before = {nullptr, draws, false, ""};
    }
    const bool resumes = before.has_value();
    CheckpointOptions checkpoints;
    checkpoints.always = true;
    checkpoints.first = checkpoints.interval = std::chrono::milliseconds(5);
    CheckpointedSink sink(path, of_spec, options, checkpoints, {{"made", "here"}}, std::move(before), 0, ranks);
    RunHooks hooks{.sink = &sink, .collective = ranks, .draws_to = to};
    hooks.after_round = [&](const poise::Run& now) { sink.after_round(now); };
    poise::Run run(of_spec, parse_sampler("lb"), options, hooks);
    if (resumes) sink.load(run);
    run.warm_up();
    run.sample(options.draws - run.draws());
    sink.after_last_round(run, true);
    Made made{run.finish(), sink.takes_own_states()};
    if (is_root) sink.finish("{}");
    return made;
  }

  void expect_no_error(const std::vector<std::exception_ptr>& errors, const std::string& what) const {
    for (const std::exception_ptr& error : errors) EXPECT_EQ(testing::words_of(error), "") << what;
  }
  void clear(const std::string& name) const { fs::remove_all(in_work(name)); }

  void expect_bytes_of_one_process();
};

TEST_F(SharedStore, EachRankWritesWhatOneProcessWould) { expect_bytes_of_one_process(); }

TEST_F(SharedStore, EachRankWritesTheShardsThatOneProcessWould) {
  const MostFiles few(10);  // of three chunks of each chain two are in a file
  expect_bytes_of_one_process();
  EXPECT_FALSE(HasFailure());
}

void SharedStore::expect_bytes_of_one_process() {
  for (const char* model : {"ising:size=5x7,lambda=0.3", "potts:size=4,levels=3,coupling=0.5"}) {
    const RunOptions options = options_of(700);
    const RunResult whole = make("one.zarr", model, options, nullptr).result;
    EXPECT_EQ(
        fs::exists(in_work("one.zarr/posterior/x/c.4.2.0.0")) || fs::exists(in_work("one.zarr/posterior/x/c.4.2.0")),
        std::getenv("POISE_MOST_FILES") == nullptr);
    for (const bool shared : {true, false}) {
      const Sharing sharing(shared);
      for (const int size : {2, 3, 7}) {
        for (const Collective::To to : {Collective::To::root, Collective::To::all}) {
          const std::string what = fmt::format("{} on {}, {}", model, size, shared ? "shared" : "not shared");
          expect_no_error(
              testing::on_ranks(size,
                                [&](Collective& ranks) {
                                  const Made mine = make("many.zarr", model, options, &ranks, to);
                                  EXPECT_EQ(mine.shares, shared) << what;
                                  EXPECT_EQ(mine.result.trace.monitors, whole.trace.monitors) << what;
                                  const bool has_states = to == Collective::To::all || (ranks.is_root() && !shared);
                                  EXPECT_EQ(mine.result.trace.x, has_states ? whole.trace.x : States()) << what;
                                }),
              what);
          EXPECT_EQ(stored_bytes(in_work("many.zarr")), stored_bytes(in_work("one.zarr"))) << what;
          EXPECT_EQ(read_run(in_work("many.zarr")).trace.x, whole.trace.x) << what;
          for (int rank = 0; rank < size; ++rank) {
            EXPECT_FALSE(fs::exists(in_work(fmt::format("many.zarr/.poise/rank.{}", rank))));
          }
          clear("many.zarr");
          if (HasFailure()) return;
        }
      }
    }
    clear("one.zarr");
  }
}

TEST_F(SharedStore, RunsGoOnWithOtherRanksSharedOrNot) {
  const char* const model = "ising:size=5x7,lambda=0.3";
  make("one.zarr", model, options_of(900), nullptr);
  const std::vector<std::vector<std::pair<int, bool>>> lives = {{{7, true}, {2, true}, {1, true}, {3, false}},
                                                                {{2, false}, {3, true}, {7, true}, {2, true}},
                                                                {{1, true}, {2, true}, {2, true}, {7, true}}};
  for (const auto& one : lives) {
    std::size_t draws = 0;
    for (const auto& [size, shared] : one) {
      draws += 225;  // which is no whole chunk
      const Sharing sharing(shared);
      const std::string what = fmt::format("to {} draws on {}", draws, size);
      expect_no_error(
          testing::on_ranks(size, [&](Collective& ranks) { make("run.zarr", model, options_of(draws), &ranks); }),
          what);
      ASSERT_EQ(read_run(in_work("run.zarr")).trace.draws, draws) << what;
    }
    EXPECT_EQ(stored_bytes(in_work("run.zarr")), stored_bytes(in_work("one.zarr")));
    clear("run.zarr");
    if (HasFailure()) return;
  }
}

/// A run that is made longer keeps the number of chunks that its files have.
TEST_F(SharedStore, LongerRunsKeepTheirShards) {
  const char* const model = "ising:size=5x7,lambda=0.3";
  const RunResult whole = make("one.zarr", model, options_of(2400), nullptr).result;
  const MostFiles few(10);
  const std::vector<std::vector<std::pair<int, bool>>> lives = {{{7, true}, {2, true}, {1, true}, {3, false}},
                                                                {{1, true}, {3, false}, {7, true}, {2, true}}};
  for (const auto& one : lives) {
    std::size_t draws = 0;
    for (const auto& [size, shared] : one) {
      draws += 600;  // which is no whole chunk
      const Sharing sharing(shared);
      const std::string what = fmt::format("to {} draws on {}", draws, size);
      expect_no_error(
          testing::on_ranks(size, [&](Collective& ranks) { make("run.zarr", model, options_of(draws), &ranks); }),
          what);
      ASSERT_EQ(read_run(in_work("run.zarr")).trace.draws, draws) << what;
    }
    const Trace found = read_run(in_work("run.zarr")).trace;
    EXPECT_EQ(found.x, whole.trace.x);
    EXPECT_EQ(found.monitors, whole.trace.monitors);
    EXPECT_TRUE(fs::exists(in_work("run.zarr/posterior/x/c.4.4.0.0")));  // of ten chunks, two in each
    EXPECT_FALSE(fs::exists(in_work("run.zarr/posterior/x/c.4.5.0.0")));
    clear("run.zarr");
    if (HasFailure()) return;
  }
}

TEST_F(SharedStore, RanksThatSeeAnotherFolderLeaveTheWritingToTheRoot) {
  expect_no_error(testing::on_ranks(3,
                                    [&](Collective& ranks) {
                                      // The last rank has a folder of the same kind, but of its own.
                                      const std::string mine = in_work(ranks.rank() == 2 ? "there.zarr" : "here.zarr");
                                      fs::create_directories(mine + "/.poise");
                                      std::optional<Lock> held;
                                      EXPECT_FALSE(zarr::share_folder(mine, ranks, held));
                                      EXPECT_FALSE(held);
                                    }),
                  "two folders");
  EXPECT_TRUE(fs::is_empty(in_work("here.zarr/.poise")));
  EXPECT_TRUE(fs::is_empty(in_work("there.zarr/.poise")));
}

TEST_F(SharedStore, NoOtherProgramTakesAFolderWhoseRanksAreLeft) {
  fs::create_directories(in_work("run.zarr/.poise"));
  {
    const Lock left(zarr::rank_path(in_work("run.zarr"), 3));
    EXPECT_THROW(zarr::Folder(in_work("run.zarr")), InputError);
  }
  testing_program::write_text(zarr::rank_path(in_work("run.zarr"), 3), "");  // of a rank that was killed
  const zarr::Folder taken(in_work("run.zarr"));
  EXPECT_FALSE(fs::exists(zarr::rank_path(in_work("run.zarr"), 3)));
}

class MpiStore : public SharedStore {
 protected:
  void SetUp() override {
    if (!has_launcher()) GTEST_SKIP() << "there is no mpirun";
  }
  static Arguments sample(const std::string& draws, const std::string& out, const Arguments& more = {}) {
    Arguments words = {"sample",    "ising:size=5x7,lambda=0.3",
                       "--sampler", "lb",
                       "--draws",   draws,
                       "--warmup",  "10",
                       "--seed",    "5",
                       "--out",     out,
                       "--chains",  "5",
                       "--quiet",   "--threads",
                       "1",         "--thin",
                       "2000"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  void strike_calls();
};

TEST_F(MpiStore, ProcessesFindOutWhetherTheyShareTheFolder) {
  const MostFiles any(1'000'000'000);  // as many as there are chunks, whatever number of draws is asked for
  ASSERT_EQ(run(sample("600", "one.zarr")).code, 0);
  for (const bool shared : {true, false}) {
    const Sharing sharing(shared);
    use_ranks(3);
    ASSERT_EQ(run(sample("600", "many.zarr")).code, 0);
    EXPECT_EQ(stored_bytes(in_work("many.zarr")), stored_bytes(in_work("one.zarr")));
    start(sample("100000000", "run.zarr"));
    wait_for_draws(in_work("run.zarr"));
    for (const int rank : {1, 2}) EXPECT_EQ(fs::exists(zarr::rank_path(in_work("run.zarr"), rank)), shared);
    const std::vector<pid_t> ranks = ranks_of_child();
    ASSERT_EQ(ranks.size(), 3U);
    ::kill(ranks[2], SIGTERM);
    const Outcome outcome = wait();
    EXPECT_EQ(outcome.code, 130) << outcome.err;
    const std::size_t draws = read_run(in_work("run.zarr")).trace.draws;
    use_ranks(1);
    ASSERT_EQ(run(sample(std::to_string(draws), "whole.zarr")).code, 0);
    EXPECT_EQ(stored_bytes(in_work("run.zarr")), stored_bytes(in_work("whole.zarr")));
    clear("run.zarr");
    clear("whole.zarr");
    clear("many.zarr");
  }
}

TEST_F(MpiStore, WhatIsMadeOfStatesIsThatOfOneProcess) {
  const Arguments files = {"--csv", "draws.csv", "--images", "draws.png"};
  ASSERT_EQ(run(sample("50", "run.zarr", files)).code, 0);
  const std::string csv = testing_program::read_text(in_work("draws.csv"));
  const std::string images = testing_program::read_text(in_work("draws.png"));
  const std::string variables = read_run(in_work("run.zarr")).results["variables"].dump();
  for (const char* name : {"run.zarr", "draws.csv", "draws.png"}) clear(name);
  use_ranks(2);
  ASSERT_EQ(run(sample("50", "run.zarr", files)).code, 0);
  EXPECT_EQ(testing_program::read_text(in_work("draws.csv")), csv);
  EXPECT_EQ(testing_program::read_text(in_work("draws.png")), images);
  EXPECT_EQ(read_run(in_work("run.zarr")).results["variables"].dump(), variables);
}

#ifndef POISE_SANITIZED
/// Calls that write, sync, rename or remove something of the store, at a rank that is not the root: one in so many
/// fails, is torn, or is the last one.
TEST_F(MpiStore, WhateverCallOfARankFailsTheDrawsAreTheSame) { strike_calls(); }

TEST_F(MpiStore, WhateverCallOfARankThatWritesShardsFailsTheDrawsAreTheSame) {
  const MostFiles few(10);
  strike_calls();
}

void MpiStore::strike_calls() {
  ASSERT_EQ(run(sample("600", "one.zarr")).code, 0);
  const int step = std::getenv("POISE_KILLS") == nullptr ? 61 : 1;
  int first = 1;
  for (const char* how : {"fail", "tear", "kill"}) {
    int struck = 0;
    for (int call = first++;; call += step, ++struck) {
      SCOPED_TRACE(fmt::format("{}:{}", call, how));
      clear("run.zarr");
      fs::remove(in_work("triggered"));
      use_ranks(2);
      launcher_.insert(launcher_.end(), {"-x", "LD_PRELOAD=" POISE_SHIM});
      ::setenv("POISE_FAULT", fmt::format("{}:{}", call, how).c_str(), 1);
      ::setenv("POISE_FAULT_RANK", "1", 1);
      const Outcome outcome = run(sample("600", "run.zarr", {"--checkpoint-every", "0.001"}));
      ::unsetenv("POISE_FAULT");
      ::unsetenv("POISE_FAULT_RANK");
      use_ranks(1);
      if (!fs::exists(in_work("triggered"))) {
        ASSERT_EQ(outcome.code, 0) << outcome.err;
        break;
      }
      if (std::string(how) != "fail") {
        EXPECT_GT(outcome.code, 0);
      } else if (outcome.code != 0) {
        int reasons = 0;
        for (const char* why : {"No space left on device", "Input/output error", "Too many open files"}) {
          reasons += count(outcome.err, why);
        }
        EXPECT_EQ(reasons, 1) << outcome.err;
      }
      if (outcome.code != 0) {
        use_ranks(has_checkpoint("run.zarr") && call % 2 == 0 ? 1 : 2);
        const bool begun = has_checkpoint("run.zarr");
        const Outcome end = run(begun ? Arguments{"resume", "run.zarr", "--quiet"} : sample("600", "run.zarr"));
        if (end.err.find("is finished") == std::string::npos) ASSERT_EQ(end.code, 0) << end.err;
      }
      EXPECT_EQ(stored_bytes(in_work("run.zarr")), stored_bytes(in_work("one.zarr")));
      if (HasFailure()) return;
    }
    EXPECT_GT(struck, 2);
  }
}
#endif

}  // namespace poise::shared_store_test
