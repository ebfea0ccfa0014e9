/// Runs that are killed at random times, interrupted, refused disk space or made longer: their draws are those of runs
/// to which nothing happened.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <random>

#include <poise/run/checkpoint.hpp>
#include <poise/target/rbm_weights.hpp>
#include "support/mpi_program.hpp"
#include "support/small_rbms.hpp"

namespace poise {
namespace {

using testing_program::Arguments;
using testing_program::MpiProgramTest;
using testing_program::Outcome;
using testing_program::read_text;
using testing_program::write_text;

class Resume : public MpiProgramTest {
 protected:
  struct Case {
    std::string model;
    std::string sampler;
    std::string draws;
    std::string thin = "";
    std::string warmup = "";
  };

  [[nodiscard]] std::vector<Case> cases() const {
    const std::string rbm = in_work("rbm.safetensors");
    write_rbm(rbm, testing::random_rbm(40, 20, 0.4, 3));
    return {{"ising:size=12,lambda=0.3", "gibbs", "6000", "40"},
            {"ising:size=12,lambda=0.3,mu=0.5,sigma=1", "lsb", "3000", ""},
            {"rbm:weights=" + rbm, "flsb", "2000", ""},
            {"potts:size=6,levels=3,coupling=0.8", "temper", "1500", ""},
            {"ising:size=10,lambda=0.4", "wolff", "6000", ""},
            {"ising:size=12,lambda=0.2", "auto", "6000", ""}};
  }

  static Arguments sample(const Case& c, const std::string& out, const Arguments& more = {}) {
    Arguments words = {"sample", c.model, "--sampler", c.sampler, "--draws",  c.draws, "--seed",
                       "5",      "--out", out,         "--quiet", "--chains", "3"};
    if (!c.thin.empty()) words.insert(words.end(), {"--thin", c.thin});
    if (!c.warmup.empty()) words.insert(words.end(), {"--warmup", c.warmup});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  void expect_same_draws(const std::string& found, const std::string& expected) const {
    const StoredRun a = read_netcdf(in_work(found));
    const StoredRun b = read_netcdf(in_work(expected));
    ASSERT_EQ(a.trace.draws, b.trace.draws);
    EXPECT_EQ(a.trace.x, b.trace.x);
    EXPECT_EQ(a.trace.monitors, b.trace.monitors);
    EXPECT_EQ(a.trace.acceptance_rate, b.trace.acceptance_rate);
    EXPECT_EQ(a.trace.n_steps, b.trace.n_steps);
    EXPECT_EQ(a.settings["sampler"], b.settings["sampler"]);
  }
  [[nodiscard]] bool exists(const std::string& name) const { return std::filesystem::exists(work() / name); }
  void clear(const std::string& name) const {
    for (const char* end : {"", ".checkpoint", ".checkpoint.old", ".draws"})
      std::filesystem::remove(in_work(name + end));
  }
  Outcome kill_all() {
    ::kill(child_, SIGKILL);
    return wait();
  }
  /// Any of them; the launcher itself where none has been started yet.
  Outcome kill_rank(std::mt19937& random) {
    const std::vector<pid_t> ranks = ranks_of_child();
    if (ranks.empty()) {
      ::kill(child_, SIGTERM);
    } else {
      ::kill(ranks[random() % ranks.size()], SIGKILL);
    }
    return wait();
  }

  /// Goes on until the run is finished, also where there is nothing to go on from. Gives the last outcome.
  Outcome to_the_end(const Case& c, const std::string& name) {
    const Outcome resumed = run({"resume", name, "--quiet"});
    if (resumed.code != 2) return resumed;
    EXPECT_TRUE(resumed.err.find("no checkpoint") != std::string::npos ||
                resumed.err.find("finished") != std::string::npos)
        << resumed.err;
    if (resumed.err.find("finished") != std::string::npos) return {0, "", ""};
    return run(sample(c, name));
  }
};

TEST_F(Resume, KilledAtAnyTimeEndsAsIfNothingHadHappened) {
  const char* asked = std::getenv("POISE_KILLS");
  const int kills = asked != nullptr ? std::atoi(asked) : 40;
  std::mt19937 random(asked != nullptr ? std::random_device()() : 1);
  const std::vector<Case> all = cases();
  std::vector<double> seconds;
  for (std::size_t k = 0; k < all.size(); ++k) {
    const auto begun = std::chrono::steady_clock::now();
    ASSERT_EQ(run(sample(all[k], std::to_string(k) + ".nc")).code, 0);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
  }
  constexpr std::array<int, 4> kRanks = {1, 2, 1, 7};
  int killed = 0;
  int killed_ranks = 0;
  int runs = 0;
  while (killed < kills) {
    const std::size_t k = static_cast<std::size_t>(runs++) % all.size();
    SCOPED_TRACE(all[k].model + " " + all[k].sampler);
    clear("run.nc");
    bool begun = false;
    for (int lives = 0; lives < 4 && killed < kills; ++lives) {
      // A life on one rank, or on several: of these it is one that is killed.
      const int ranks = has_launcher() ? kRanks[static_cast<std::size_t>(lives + runs) % kRanks.size()] : 1;
      use_ranks(ranks);
      start(begun ? Arguments{"resume", "run.nc", "--quiet"}
                  : sample(all[k], "run.nc", {"--checkpoint-every", "0.05"}));
      const double start_up = ranks > 1 ? std::uniform_real_distribution<>(0.0, 3.0)(random) : 0.0;
      std::this_thread::sleep_for(
          std::chrono::duration<double>(start_up + seconds[k] * std::uniform_real_distribution<>(0.0, 0.9)(random)));
      const Outcome outcome = ranks > 1 ? kill_rank(random) : kill_all();
      use_ranks(1);
      if (outcome.code == 0) break;  // it was faster
      ++killed;
      if (ranks > 1) ++killed_ranks;
      begun = exists("run.nc.checkpoint") || exists("run.nc.checkpoint.old");
    }
    const Outcome outcome = to_the_end(all[k], "run.nc");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_FALSE(exists("run.nc.draws"));
    expect_same_draws("run.nc", std::to_string(k) + ".nc");
    if (HasFailure()) return;
  }
  std::printf("%d kills in %d runs, %d of them of one of several ranks: all ended with the same draws\n", killed, runs,
              killed_ranks);
}

TEST_F(Resume, InterruptedRunsGoOn) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const Case c = {"ising:size=12,lambda=0.3", "lsb", "20000", ""};
    clear("run.nc");
    clear("all.nc");
    start(sample(c, "run.nc"));
    wait_for_draws(in_work("run.nc"));
    ::kill(child_, signal);
    const Outcome outcome = wait();
    ASSERT_EQ(outcome.code, 130) << outcome.err;
    ASSERT_TRUE(exists("run.nc.checkpoint"));
    EXPECT_FALSE(exists("run.nc.draws"));
    EXPECT_EQ(read_netcdf(in_work("run.nc")).results["interrupted"], true);
    const Outcome again = run(sample(c, "run.nc"));
    EXPECT_EQ(again.code, 2);
    EXPECT_NE(again.err.find("has an unfinished run: 'poise resume run.nc' goes on with it"), std::string::npos);
    ASSERT_EQ(run({"resume", "run.nc", "--quiet"}).code, 0);
    ASSERT_EQ(run(sample(c, "all.nc", {"--threads", "1"})).code, 0);
    expect_same_draws("run.nc", "all.nc");
  }
}

/// What was saved in the warm-up stays when sampling begins, and an earlier run's does not come back.
TEST_F(Resume, CheckpointsOfTheWarmUpStay) {
  const Case c = {"ising:size=12,lambda=0.3", "lsb", "100", ""};
  ASSERT_EQ(run(sample(c, "run.nc", {"--checkpoint"})).code, 0);
  start(sample({c.model, c.sampler, "1000000", ""}, "run.nc", {"--checkpoint-every", "0.02"}));
  std::string note;
  Checkpoint last;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  do {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    try {
      last = read_checkpoint(in_work("run.nc"), note);
    } catch (const InputError&) {  // the earlier one is gone, the first one is not there yet
    }
  } while (last.draws < 200 && std::chrono::steady_clock::now() < deadline);
  ::kill(child_, SIGKILL);
  wait();
  last = read_checkpoint(in_work("run.nc"), note);
  EXPECT_FALSE(last.finished);
  EXPECT_GE(last.draws, 200U);
  EXPECT_EQ(last.command["words"]["draws"], "1000000");
  std::filesystem::remove(in_work("run.nc.checkpoint"));
  if (exists("run.nc.checkpoint.old")) EXPECT_FALSE(read_checkpoint(in_work("run.nc"), note).finished);
}

TEST_F(Resume, FinishedRunsAreMadeLonger) {
  for (const Case& c : cases()) {
    if (c.sampler == "auto") continue;  // which looks at how many draws are asked for
    SCOPED_TRACE(c.model + " " + c.sampler);
    clear("run.nc");
    clear("all.nc");
    Case first = c;
    first.draws = "300";
    Case longer = c;
    longer.draws = "700";
    ASSERT_EQ(run(sample(first, "run.nc", {"--checkpoint"})).code, 0);
    const Outcome nothing = run({"resume", "run.nc"});
    EXPECT_EQ(nothing.code, 2);
    EXPECT_NE(nothing.err.find("is finished: it has 300 draws of each chain; --draws N makes it longer"),
              std::string::npos);
    const Outcome fewer = run({"resume", "run.nc", "--draws", "200"});
    EXPECT_EQ(fewer.code, 2);
    EXPECT_NE(fewer.err.find("has 300 draws of each chain already"), std::string::npos);
    ASSERT_EQ(run({"resume", "run.nc", "--draws", "500", "--quiet"}).code, 0);
    ASSERT_EQ(run({"resume", "run.nc", "--draws", "700", "--quiet", "--threads", "1"}).code, 0);
    ASSERT_EQ(run(sample(longer, "all.nc")).code, 0);
    expect_same_draws("run.nc", "all.nc");
  }
}

TEST_F(Resume, ChangedModelsAreRefused) {
  const std::string rbm = in_work("rbm.safetensors");
  write_rbm(rbm, testing::random_rbm(10, 5, 0.4, 3));
  const Case c = {"rbm:weights=rbm.safetensors", "gwg", "100", ""};
  ASSERT_EQ(run(sample(c, "run.nc", {"--checkpoint"})).code, 0);
  write_rbm(rbm, testing::random_rbm(10, 5, 0.4, 4));
  const Outcome outcome = run({"resume", "run.nc", "--draws", "200"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("rbm.safetensors has changed since the run began"), std::string::npos) << outcome.err;
  std::filesystem::remove(rbm);
  EXPECT_EQ(run({"resume", "run.nc", "--draws", "200"}).code, 2);
}

TEST_F(Resume, ShortRunsLeaveNothingAndWordsAreChecked) {
  const Case c = {"ising:size=4", "gibbs", "10", ""};
  ASSERT_EQ(run(sample(c, "run.nc")).code, 0);
  EXPECT_EQ(files(), std::set<std::string>{"run.nc"});
  EXPECT_EQ(run({"resume", "run.nc"}).code, 2);
  EXPECT_EQ(run({"resume"}).code, 2);
  EXPECT_EQ(run({"resume", "none.nc"}).code, 2);
  EXPECT_EQ(run({"sample", "ising:size=4", "--checkpoint"}).code, 2);
  EXPECT_EQ(run(sample(c, "run.nc", {"--checkpoint", "--no-checkpoint"})).code, 2);
  EXPECT_EQ(run(sample(c, "run.nc", {"--checkpoint-every", "soon"})).code, 2);
  ASSERT_EQ(run(sample(c, "run.nc", {"--checkpoint"})).code, 0);
  EXPECT_EQ(files(), (std::set<std::string>{"run.nc", "run.nc.checkpoint"}));
}

#ifndef POISE_SANITIZED
/// Every call that writes, syncs, renames or removes a file of a checkpoint fails once, is torn once, and is the last
/// one once.
TEST_F(Resume, WhateverCallFailsTheDrawsAreTheSame) {
  const Case c = {"ising:size=8,lambda=0.3", "lb", "150", "", "10"};
  ASSERT_EQ(run(sample(c, "all.nc")).code, 0);
  for (const char* how : {"fail", "tear", "kill"}) {
    int call = 1;
    for (;; ++call) {
      SCOPED_TRACE(std::to_string(call) + ":" + how);
      clear("run.nc");
      std::filesystem::remove(in_work("triggered"));
      ::setenv("LD_PRELOAD", POISE_SHIM, 1);
      ::setenv("POISE_FAULT", (std::to_string(call) + ":" + how).c_str(), 1);
      const Outcome outcome = run(sample(c, "run.nc", {"--checkpoint-every", "0.001"}));
      ::unsetenv("LD_PRELOAD");
      ::unsetenv("POISE_FAULT");
      if (!exists("triggered")) {
        ASSERT_EQ(outcome.code, 0);
        break;
      }
      if (std::string(how) != "fail") {
        EXPECT_EQ(outcome.code, -1);
      } else if (outcome.code != 0) {
        EXPECT_NE(outcome.err.find("No space left on device"), std::string::npos) << outcome.err;
      }
      std::filesystem::remove(in_work("triggered"));
      if (outcome.code != 0) {
        const Outcome end = to_the_end(c, "run.nc");
        ASSERT_EQ(end.code, 0) << end.err;
      }
      expect_same_draws("run.nc", "all.nc");
      if (HasFailure()) return;
    }
    EXPECT_GT(call, 8);
  }
}
#endif

}  // namespace
}  // namespace poise
