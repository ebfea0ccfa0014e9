/// Runs that are killed at random times, interrupted, refused disk space or made longer: their draws are those of runs
/// to which nothing happened.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <random>

#include <sys/prctl.h>
#include <sys/wait.h>

#include <fmt/format.h>

#include "models/rbm/rbm_weights.hpp"
#include "run/checkpoint.hpp"
#include "support/mpi_program.hpp"
#include "support/small_rbms.hpp"

namespace poise::resume_test {

using testing_program::Arguments;
using testing_program::MostFiles;
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
    std::string thin = {};
    std::string warmup = {};
    std::string program = POISE_PROGRAM;
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
  /// With a target of the user's, and a pilot that takes a while.
  [[nodiscard]] std::vector<Case> cases_to_kill() const {
    std::vector<Case> all = cases();
    all.back() = {"potts:size=10,levels=3,coupling=1.1", "auto", "8000", ""};
    all.push_back({"a ring of coins", "gwg", "3000", "", "", POISE_USER_TARGET});
    return all;
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
    const StoredRun a = read_run(in_work(found));
    const StoredRun b = read_run(in_work(expected));
    ASSERT_EQ(a.trace.draws, b.trace.draws);
    EXPECT_EQ(a.trace.x, b.trace.x);
    EXPECT_EQ(a.trace.monitors, b.trace.monitors);
    EXPECT_EQ(a.trace.acceptance_rate, b.trace.acceptance_rate);
    EXPECT_EQ(a.trace.n_steps, b.trace.n_steps);
    EXPECT_EQ(a.settings["sampler"], b.settings["sampler"]);
  }
  [[nodiscard]] bool exists(const std::string& name) const { return std::filesystem::exists(work() / name); }
  void clear(const std::string& name) const { std::filesystem::remove_all(in_work(name)); }
  static constexpr const char* kOften = "0.02";

  /// Open MPI gives the other ranks a second or two to end, unless it is told otherwise.
  void use_ranks_that_are_killed(int ranks) {
    use_ranks(ranks);
    if (ranks > 1) launcher_.insert(launcher_.end(), {"--mca", "odls_base_sigkill_timeout", "0"});
  }
  Outcome kill_all() {
    ::kill(child_, SIGKILL);
    return wait();
  }
  /// The launcher may be gone before all of its ranks are, which then still hold their files.
  static void wait_for_orphans() {
    for (int look = 0; look < 6000; ++look) {
      const pid_t ended = ::waitpid(-1, nullptr, WNOHANG);
      if (ended < 0) return;
      if (ended == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    FAIL() << "a rank outlives its run";
  }
  [[nodiscard]] bool is_running() const {
    siginfo_t ended{};
    return ::waitid(P_PID, static_cast<id_t>(child_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0;
  }
  /// Any of them; the launcher itself where none has been started yet.
  Outcome kill_rank(std::mt19937& random) {
    const std::vector<pid_t> ranks = ranks_of_child();
    if (ranks.empty()) {
      ::kill(child_, SIGTERM);
    } else {
      ::kill(ranks[random() % ranks.size()], SIGKILL);
    }
    // A launcher may wait for a lock of its own for good while it ends (pmix_rte_finalize of Open MPI 4).
    constexpr int kLooks = 1200;
    for (int look = 0; look < kLooks && is_running(); ++look)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (is_running()) ::kill(child_, SIGKILL);
    Outcome outcome = wait();
    wait_for_orphans();
    return outcome;
  }

  /// Goes on until the run is finished, also where there is nothing to go on from. Gives the last outcome.
  Outcome to_the_end(const Case& c, const std::string& name) {
    Outcome resumed = run({"resume", name, "--quiet"});
    if (resumed.code != 2) return resumed;
    EXPECT_TRUE(resumed.err.find("no checkpoint") != std::string::npos ||
                resumed.err.find("finished") != std::string::npos)
        << resumed.err;
    if (resumed.err.find("finished") != std::string::npos) return {0, "", ""};
    return run(sample(c, name));
  }

  /// One call in so many.
  void strike_calls(const Case& c, int step);
};

/// Where runs were when they were killed, by the checkpoint that they left.
struct KillCount {
  int all = 0;
  int without_checkpoint = 0;
  int in_pilot = 0;
  int in_warmup = 0;
  int in_sampling = 0;
  std::map<int, int> by_ranks;
  std::map<std::string, int> by_sampler;

  void add(const std::string& path, const std::string& sampler, int ranks) {
    ++all;
    ++by_ranks[ranks];
    ++by_sampler[sampler];
    std::string note;
    try {
      const Checkpoint last = read_checkpoint(path, note);
      // The second byte of a state says whether its sampler is still being chosen.
      int& phase = last.draws > 0 ? in_sampling : last.state.size() > 1 && last.state[1] != 0 ? in_pilot : in_warmup;
      ++phase;
    } catch (const InputError&) {
      ++without_checkpoint;
    }
  }
  [[nodiscard]] std::string text() const {
    std::string out = std::to_string(all) + " kills: " + std::to_string(in_pilot) + " in a pilot, " +
                      std::to_string(in_warmup) + " in a warm-up, " + std::to_string(in_sampling) + " in sampling, " +
                      std::to_string(without_checkpoint) + " before the first checkpoint;";
    for (const auto& [ranks, count] : by_ranks) {
      out += " " + std::to_string(count) + " of " + std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks") + ",";
    }
    for (const auto& [sampler, count] : by_sampler) out += " " + std::to_string(count) + " of " + sampler + ",";
    out.pop_back();
    return out;
  }
};

/// Times to kill at are fractions of the time that a run takes on so many ranks, its start included.
TEST_F(Resume, KilledAtAnyTimeEndsAsIfNothingHadHappened) {
  const char* asked = std::getenv("POISE_KILLS");
  const int kills = asked != nullptr ? std::atoi(asked) : 40;
  std::mt19937 random(asked != nullptr ? std::random_device()() : 1);
  const std::vector<Case> all = cases_to_kill();
  const std::vector<int> numbers_of_ranks = has_launcher() ? std::vector{1, 2, 7} : std::vector{1};
  std::vector<std::map<int, double>> seconds(all.size());
  for (std::size_t k = 0; k < all.size(); ++k) {
    program_ = all[k].program;
    for (const int ranks : numbers_of_ranks) {
      use_ranks_that_are_killed(ranks);
      const std::string name = std::to_string(k) + (ranks == 1 ? ".zarr" : "-ranks.zarr");
      clear(name);
      const auto begun = std::chrono::steady_clock::now();
      ASSERT_EQ(run(sample(all[k], name, {"--checkpoint-every", kOften})).code, 0);
      seconds[k][ranks] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
      if (ranks > 1) expect_same_draws(name, std::to_string(k) + ".zarr");
    }
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans become children of this process
  KillCount killed;
  int runs = 0;
  const auto begun_at = std::chrono::steady_clock::now();
  while (killed.all < kills) {
    const std::size_t k = static_cast<std::size_t>(runs++) % all.size();
    SCOPED_TRACE(all[k].model + " " + all[k].sampler);
    program_ = all[k].program;
    clear("run.zarr");
    // In one run of three, files hold several chunks.
    std::optional<MostFiles> few;
    if (runs % 3 == 0) few.emplace(9);
    bool begun = false;
    for (int lives = 0; lives < 4 && killed.all < kills; ++lives) {
      // A life on one rank, or on several: of these it is one that is killed.
      const int ranks = numbers_of_ranks[static_cast<std::size_t>(lives + runs) % numbers_of_ranks.size()];
      use_ranks_that_are_killed(ranks);
      start(begun ? Arguments{"resume", "run.zarr", "--quiet"}
                  : sample(all[k], "run.zarr", {"--checkpoint-every", kOften}));
      // The pilot of auto is short: one life in two is to end in it. Of those of several ranks one in four is to end
      // while they are started, which takes longer than all the rest.
      const double latest = all[k].sampler == "auto" && lives % 2 == 0 ? 0.2 : 0.95;
      const double start_up = std::max(0.0, seconds[k][ranks] - seconds[k][1]);
      std::uniform_real_distribution<> fraction(0.0, 1.0);
      // Ranks write the chunks of their own chains or, in one life of four, leave that to the root.
      fraction(random) < 0.25 ? ::setenv("POISE_SHARED", "off", 1) : ::unsetenv("POISE_SHARED");
      const bool while_started = ranks > 1 && fraction(random) < 0.25;
      std::this_thread::sleep_for(std::chrono::duration<double>(
          while_started ? fraction(random) * start_up : start_up + fraction(random) * latest * seconds[k][1]));
      const Outcome outcome = ranks > 1 ? kill_rank(random) : kill_all();
      use_ranks(1);
      if (outcome.code == 0) {
        // It was faster, as after a time in which the machine was busy: the next life ends earlier.
        for (auto& [number, took] : seconds[k]) took *= 0.7;
        break;
      }
      killed.add(in_work("run.zarr"), all[k].sampler, ranks);
      if (asked != nullptr && killed.all % 50 == 0) {
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begun_at;
        std::printf("%d of %d kills, %.0f s\n", killed.all, kills, passed.count());
        std::fflush(stdout);
      }
      begun = has_checkpoint("run.zarr");
    }
    const Outcome outcome = to_the_end(all[k], "run.zarr");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(in_work("run.zarr"))) {
      EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
    }
    expect_same_draws("run.zarr", std::to_string(k) + ".zarr");
    if (HasFailure()) return;
  }
  ::unsetenv("POISE_SHARED");
  std::printf("%s; %d runs, all with the draws of runs to which nothing had happened\n", killed.text().c_str(), runs);
}

TEST_F(Resume, InterruptedRunsGoOn) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const Case c = {"ising:size=12,lambda=0.3", "lsb", "20000", ""};
    clear("run.zarr");
    clear("all.zarr");
    start(sample(c, "run.zarr"));
    wait_for_draws(in_work("run.zarr"));
    ::kill(child_, signal);
    const Outcome outcome = wait();
    ASSERT_EQ(outcome.code, 130) << outcome.err;
    ASSERT_TRUE(has_checkpoint("run.zarr"));
    EXPECT_EQ(read_run(in_work("run.zarr")).results["interrupted"], true);
    const Outcome again = run(sample(c, "run.zarr"));
    EXPECT_EQ(again.code, 2);
    EXPECT_NE(again.err.find("has an unfinished run: 'poise resume " + std::string("run.zarr") + "' continues it"),
              std::string::npos);
    ASSERT_EQ(run({"resume", "run.zarr", "--quiet"}).code, 0);
    ASSERT_EQ(run(sample(c, "all.zarr", {"--threads", "1"})).code, 0);
    expect_same_draws("run.zarr", "all.zarr");
  }
}

/// What was saved in the warm-up stays when sampling begins, and an earlier run's does not come back.
TEST_F(Resume, CheckpointsOfTheWarmUpStay) {
  const Case c = {"ising:size=12,lambda=0.3", "lsb", "100", ""};
  ASSERT_EQ(run(sample(c, "run.zarr", {"--checkpoint"})).code, 0);
  start(sample({c.model, c.sampler, "1000000", ""}, "run.zarr", {"--checkpoint-every", "0.02"}));
  std::string note;
  Checkpoint last;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  do {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    try {
      last = read_checkpoint(in_work("run.zarr"), note);
    } catch (const InputError&) {  // the earlier one is gone, the first one is not there yet
    }
  } while (last.draws < 200 && std::chrono::steady_clock::now() < deadline);
  ::kill(child_, SIGKILL);
  wait();
  last = read_checkpoint(in_work("run.zarr"), note);
  EXPECT_FALSE(last.finished);
  EXPECT_GE(last.draws, 200U);
  EXPECT_EQ(last.command["options"]["draws"], 1000000);
  std::filesystem::remove(in_work("run.zarr/zarr.json"));
  if (exists("run.zarr/.poise/previous.json")) EXPECT_FALSE(read_checkpoint(in_work("run.zarr"), note).finished);
}

TEST_F(Resume, FinishedRunsAreMadeLonger) {
  for (const Case& c : cases()) {
    if (c.sampler == "auto") continue;  // which looks at how many draws are asked for
    SCOPED_TRACE(c.model + " " + c.sampler);
    clear("run.zarr");
    clear("all.zarr");
    Case first = c;
    first.draws = "300";
    Case longer = c;
    longer.draws = "700";
    ASSERT_EQ(run(sample(first, "run.zarr", {"--checkpoint"})).code, 0);
    const Outcome nothing = run({"resume", "run.zarr"});
    EXPECT_EQ(nothing.code, 2);
    EXPECT_NE(nothing.err.find("is finished: it has 300 draws of each chain; --draws N makes it longer"),
              std::string::npos);
    const Outcome fewer = run({"resume", "run.zarr", "--draws", "200"});
    EXPECT_EQ(fewer.code, 2);
    EXPECT_NE(fewer.err.find("has 300 draws of each chain already"), std::string::npos);
    const Outcome elsewhere = run({"resume", "run.zarr", "--draws", "500", "--device", "gpu"});
    EXPECT_EQ(elsewhere.code, 2);
    EXPECT_NE(elsewhere.err.find("--device: found 'gpu', expected cpu, cuda or auto"), std::string::npos);
    ASSERT_EQ(run({"resume", "run.zarr", "--draws", "500", "--device", "cpu", "--quiet"}).code, 0);
    ASSERT_EQ(run({"resume", "run.zarr", "--draws", "700", "--quiet", "--threads", "1"}).code, 0);
    ASSERT_EQ(run(sample(longer, "all.zarr")).code, 0);
    expect_same_draws("run.zarr", "all.zarr");
  }
}

TEST_F(Resume, ChangedModelsAreRefused) {
  const std::string rbm = in_work("rbm.safetensors");
  write_rbm(rbm, testing::random_rbm(10, 5, 0.4, 3));
  const Case c = {"rbm:weights=rbm.safetensors", "gwg", "100", ""};
  ASSERT_EQ(run(sample(c, "run.zarr", {"--checkpoint"})).code, 0);
  write_rbm(rbm, testing::random_rbm(10, 5, 0.4, 4));
  const Outcome outcome = run({"resume", "run.zarr", "--draws", "200"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("rbm.safetensors has changed since the run began"), std::string::npos) << outcome.err;
  std::filesystem::remove(rbm);
  EXPECT_EQ(run({"resume", "run.zarr", "--draws", "200"}).code, 2);
}

TEST_F(Resume, ShortRunsLeaveNothingAndWordsAreChecked) {
  const Case c = {"ising:size=4", "gibbs", "10", ""};
  ASSERT_EQ(run(sample(c, "run.zarr")).code, 0);
  EXPECT_EQ(files(), std::set<std::string>{"run.zarr"});
  EXPECT_FALSE(has_checkpoint("run.zarr"));
  EXPECT_EQ(run({"resume", "run.zarr"}).code, 2);
  EXPECT_EQ(run({"resume"}).code, 2);
  EXPECT_EQ(run({"resume", "none.zarr"}).code, 2);
  EXPECT_EQ(run({"sample", "ising:size=4", "--checkpoint"}).code, 2);
  EXPECT_EQ(run(sample(c, "run.zarr", {"--checkpoint", "--no-checkpoint"})).code, 2);
  EXPECT_EQ(run(sample(c, "run.zarr", {"--checkpoint-every", "soon"})).code, 2);
  ASSERT_EQ(run(sample(c, "run.zarr", {"--checkpoint"})).code, 0);
  EXPECT_EQ(files(), std::set<std::string>{"run.zarr"});
  EXPECT_TRUE(has_checkpoint("run.zarr"));
}

#ifndef POISE_SANITIZED
/// Every call that writes, syncs, renames or removes a file of a store fails once, is torn
/// once, and is the last one once.
TEST_F(Resume, WhateverCallFailsTheDrawsAreTheSame) {
  strike_calls({"ising:size=8,lambda=0.3", "lb", "150", "", "10"}, 11);
}

/// Where files hold two chunks.
TEST_F(Resume, WhateverCallFailsTheDrawsInShardsAreTheSame) {
  const MostFiles few(6);
  strike_calls({"ising:size=5,lambda=0.3", "lb", "700", "", "10"}, 23);
}

void Resume::strike_calls(const Case& c, int step) {
  ASSERT_EQ(run(sample(c, "all.zarr")).code, 0);
  // A store is made by hundreds of calls: one in so many is struck, another one in each of three ways, and all where
  // there is time (make torture).
  if (std::getenv("POISE_KILLS") != nullptr) step = 1;
  int first = 1;
  std::map<std::string, int> struck;
  for (const char* how : {"fail", "tear", "kill"}) {
    int calls = 0;
    for (int call = first++;; call += step, ++calls) {
      SCOPED_TRACE(std::to_string(call) + ":" + how);
      clear("run.zarr");
      std::filesystem::remove(in_work("triggered"));
      ::setenv("LD_PRELOAD", POISE_SHIM, 1);
      ::setenv("POISE_FAULT", (std::to_string(call) + ":" + how).c_str(), 1);
      const Outcome outcome = run(sample(c, "run.zarr", {"--checkpoint-every", "0.001"}));
      ::unsetenv("LD_PRELOAD");
      ::unsetenv("POISE_FAULT");
      if (!exists("triggered")) {
        ASSERT_EQ(outcome.code, 0);
        break;
      }
      if (std::string(how) != "fail") {
        EXPECT_EQ(outcome.code, -1);
      } else if (outcome.code != 0) {
        const auto says = [&](const char* why) { return outcome.err.find(why) != std::string::npos; };
        EXPECT_TRUE(says("No space left on device") || says("Input/output error") || says("Too many open files"))
            << outcome.err;
      }
      ++struck[read_text(in_work("triggered"))];
      std::filesystem::remove(in_work("triggered"));
      if (outcome.code != 0) {
        const Outcome end = to_the_end(c, "run.zarr");
        ASSERT_EQ(end.code, 0) << end.err;
      }
      expect_same_draws("run.zarr", "all.zarr");
      if (HasFailure()) return;
    }
    EXPECT_GE(calls * step, 300);
  }
  std::string counts;
  for (const auto& [name, count] : struck) counts += fmt::format("{} {}, ", count, name);
  fmt::print("struck: {}each in one of three ways\n", counts);
  for (const char* name : {"open to write", "open", "write", "close", "fsync", "rename", "mkdir"}) {
    EXPECT_GT(struck[name], 0) << name;
  }
}
#endif

}  // namespace poise::resume_test
