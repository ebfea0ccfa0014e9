/// The program as several ranks, started by mpirun: one file, one summary, one exit code, and the draws of one process.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "models/rbm/rbm_weights.hpp"
#include "run/checkpoint.hpp"
#include "support/mpi_program.hpp"
#include "support/small_rbms.hpp"

namespace poise::mpi_test {

using testing_program::Arguments;
using testing_program::MpiProgramTest;
using testing_program::Outcome;

class Mpi : public MpiProgramTest {
 protected:
  void SetUp() override {
    if (!has_launcher()) GTEST_SKIP() << "there is no mpirun";
  }

  static Arguments sample(const std::string& model, const std::string& sampler, const std::string& draws,
                          const std::string& out, const Arguments& more = {}) {
    Arguments words = {"sample", model,   "--sampler", sampler,    "--draws", draws,    "--seed",
                       "5",      "--out", out,         "--chains", "5",       "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Outcome run_on(int ranks, const Arguments& arguments) {
    use_ranks(ranks);
    return run(arguments);
  }

  void expect_same_draws(const std::string& found, const std::string& expected, const std::string& what) const {
    const StoredRun a = read_run(in_work(found));
    const StoredRun b = read_run(in_work(expected));
    ASSERT_EQ(a.trace.draws, b.trace.draws) << what;
    EXPECT_EQ(a.trace.x, b.trace.x) << what;
    EXPECT_EQ(a.trace.monitors, b.trace.monitors) << what;
    EXPECT_EQ(a.trace.acceptance_rate, b.trace.acceptance_rate) << what;
    EXPECT_EQ(a.settings["sampler"], b.settings["sampler"]) << what;
    EXPECT_EQ(a.results["evals"], b.results["evals"]) << what;
  }
  /// Of three ranks; longer than any test waits.
  static Arguments endless_run(const std::string& sampler, const Arguments& more = {}) {
    Arguments words = {"--warmup", "50"};
    words.insert(words.end(), more.begin(), more.end());
    return sample("ising:size=12,lambda=0.3,mu=0.5,sigma=1", sampler, "100000000", "run.zarr", words);
  }
  /// Makes a run that has ended a little longer, on two ranks: it must have the draws of one that nothing happened to.
  void expect_that_it_resumes(const std::string& sampler) {
    ASSERT_TRUE(has_checkpoint("run.zarr")) << sampler;
    std::string note;
    const std::string draws = std::to_string(read_checkpoint(in_work("run.zarr"), note).draws + 200);
    const Outcome resumed = run_on(2, {"resume", "run.zarr", "--draws", draws, "--quiet"});
    ASSERT_EQ(resumed.code, 0) << sampler << resumed.err;
    Arguments alone = endless_run(sampler);
    std::replace(alone.begin(), alone.end(), std::string("100000000"), draws);
    std::replace(alone.begin(), alone.end(), std::string("run.zarr"), std::string("all.zarr"));
    ASSERT_EQ(run_on(1, alone).code, 0);
    expect_same_draws("run.zarr", "all.zarr", sampler);
    clear("run.zarr");
    clear("all.zarr");
  }
  [[nodiscard]] bool exists(const std::string& name) const { return std::filesystem::exists(work() / name); }
  void clear(const std::string& name) const { std::filesystem::remove_all(in_work(name)); }
};

TEST_F(Mpi, SelectionGivesTheAnswerOfOneProcess) {
  Rng rng(4, 1);
  std::string table = "y,a,b,c\n";
  for (int row = 0; row < 60; ++row) {
    const double a = rng.normal();
    table += std::to_string(0.4 * a + rng.normal()) + "," + std::to_string(a) + "," +
             std::to_string(0.7 * a + rng.normal()) + "," + std::to_string(rng.normal()) + "\n";
  }
  testing_program::write_text(in_work("data.csv"), table);
  testing_program::write_text(in_work("locus.z"), "rsid z\nrs1 5\nrs2 4\nrs3 0.5\n");
  testing_program::write_text(in_work("locus.ld"), "1 0.8 0\n0.8 1 0\n0 0 1\n");
  testing_program::write_text(in_work("all.master"),
                              "z;ld;snp;config;cred;n_samples\nlocus.z;locus.ld;a.snp;a.config;a.cred;1000\n"
                              "locus.z;locus.ld;b.snp;b.config;b.cred;500\n");
  const Arguments select = {"select", "data.csv", "--response", "y", "--draws", "200", "--quiet", "--out"};
  for (const char* sampler : {"wtgs", "lsb", "temper"}) {
    Arguments words = select;
    words.insert(words.end(), {"one.tsv", "--sampler", sampler});
    ASSERT_EQ(run_on(1, words).code, 0) << sampler;
    for (const int ranks : {2, 5}) {
      words[select.size()] = "many.tsv";
      const Outcome outcome = run_on(ranks, words);
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      EXPECT_EQ(testing_program::read_text(in_work("many.tsv")), testing_program::read_text(in_work("one.tsv")))
          << sampler << " on " << ranks;
    }
  }
  const Arguments finemap = {"finemap", "--master", "all.master", "--draws", "200", "--quiet"};
  ASSERT_EQ(run_on(1, finemap).code, 0);
  const std::string alone = testing_program::read_text(in_work("b.snp"));
  const Outcome outcome = run_on(2, finemap);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(testing_program::read_text(in_work("b.snp")), alone);
  const Outcome refused = run_on(2, {"select", "data.csv", "--response", "z", "--quiet"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("is no column"), std::string::npos) << refused.err;
}

TEST_F(Mpi, FilesAreThoseOfOneProcess) {
  write_rbm(in_work("rbm.safetensors"), testing::random_rbm(40, 20, 0.4, 3));
  const std::vector<std::pair<std::string, std::string>> cases = {{"ising:size=12,lambda=0.3", "gibbs"},
                                                                  {"ising:size=12,lambda=0.3,mu=0.5,sigma=1", "lsb"},
                                                                  {"rbm:weights=rbm.safetensors", "flsb"},
                                                                  {"rbm:weights=rbm.safetensors", "dlsb"},
                                                                  {"potts:size=6,levels=3,coupling=0.8", "temper"},
                                                                  {"ising:size=10,lambda=0.4", "wolff"},
                                                                  {"ising:size=12,lambda=0.2", "auto"}};
  for (const auto& [model, sampler] : cases) {
    ASSERT_EQ(run_on(1, sample(model, sampler, "200", "one.zarr")).code, 0);
    for (const int ranks : {2, 3, 7}) {
      const std::string what = model + " " + sampler + " on " + std::to_string(ranks);
      const Outcome outcome = run_on(ranks, sample(model, sampler, "200", "many.zarr"));
      ASSERT_EQ(outcome.code, 0) << what << outcome.err;
      expect_same_draws("many.zarr", "one.zarr", what);
      EXPECT_EQ(count(outcome.out, "\nmonitor "), 1) << outcome.out;
      EXPECT_FALSE(has_checkpoint("many.zarr")) << "of a short run";
      clear("many.zarr");
    }
    clear("one.zarr");
  }
}

TEST_F(Mpi, RunsGoOnWithOtherRanks) {
  for (const char* sampler : {"lsb", "temper"}) {
    const std::string model = "ising:size=8,lambda=0.3,mu=0.5,sigma=1";
    ASSERT_EQ(run_on(7, sample(model, sampler, "100", "run.zarr", {"--checkpoint"})).code, 0);
    ASSERT_EQ(run_on(2, {"resume", "run.zarr", "--draws", "150", "--quiet"}).code, 0);
    ASSERT_EQ(run_on(1, {"resume", "run.zarr", "--draws", "200", "--quiet"}).code, 0);
    ASSERT_EQ(run_on(7, {"resume", "run.zarr", "--draws", "250", "--quiet"}).code, 0);
    ASSERT_EQ(run_on(1, sample(model, sampler, "250", "all.zarr")).code, 0);
    expect_same_draws("run.zarr", "all.zarr", sampler);
    const Outcome finished = run_on(3, {"resume", "run.zarr"});
    EXPECT_EQ(finished.code, 2);
    EXPECT_EQ(count(finished.err, "is finished: it has 250 draws"), 1) << finished.err;
    clear("run.zarr");
    clear("all.zarr");
  }
}

TEST_F(Mpi, ARankThatDiesEndsTheRunAndTheCheckpointStands) {
  for (const std::size_t victim : {0U, 1U, 2U}) {
    use_ranks(3);
    start(endless_run("lsb", {"--checkpoint-every", "0.05"}));
    wait_until("second checkpoint", [&] { return exists("run.zarr/.poise/previous.json"); });
    const std::vector<pid_t> ranks = ranks_of_child();
    ASSERT_EQ(ranks.size(), 3U);
    ::kill(ranks[victim], SIGKILL);
    const Outcome outcome = wait();
    EXPECT_GT(outcome.code, 0) << "the launcher ended by itself";
    EXPECT_NE(outcome.err.find("Killed"), std::string::npos) << outcome.err;
    EXPECT_EQ(count(outcome.err, "poise: rank "), 1) << outcome.err;
    EXPECT_EQ(
        count(outcome.err,
              " of this run was killed, and the run ends with it; 'poise resume run.zarr' continues from the last "
              "checkpoint, if there is one.\n"),
        1)
        << outcome.err;
    expect_that_it_resumes("lsb");
  }
}

TEST_F(Mpi, ASignalToTheLauncherLeavesACheckpoint) {
  for (const int signal : {SIGTERM, SIGINT}) {
    use_ranks(3);
    start(endless_run("gibbs"));
    wait_for_draws(in_work("run.zarr"));
    EXPECT_TRUE(has_checkpoint("run.zarr")) << "before it is needed: the launcher kills ranks that take a second";
    ::kill(child_, signal);
    const Outcome outcome = wait();
    EXPECT_GT(outcome.code, 0);
    expect_that_it_resumes("gibbs");
  }
}

/// As batch systems do that send signals to the processes themselves, and again through the launcher.
TEST_F(Mpi, ASignalToOneRankStopsAll) {
  use_ranks(3);
  start(sample("ising:size=12,lambda=0.3", "lsb", "1000000", "run.zarr"));
  wait_for_draws(in_work("run.zarr"));
  const std::vector<pid_t> ranks = ranks_of_child();
  ASSERT_EQ(ranks.size(), 3U);
  for (int times = 0; times < 2; ++times) ::kill(ranks[1], SIGTERM);
  const Outcome outcome = wait();
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_TRUE(has_checkpoint("run.zarr"));
  EXPECT_EQ(read_run(in_work("run.zarr")).results["interrupted"], true);
}

TEST_F(Mpi, WhatIsWrongIsSaidOnce) {
  const std::vector<std::pair<Arguments, std::string>> cases = {
      {{"sample", "ising:size=0"}, "poise: "},
      {{"sample", "missing.uai"}, "poise: "},
      {{"sample", "ising:size=4", "--chains", "none"}, "poise: --chains: found 'none'"},
      {{"sample", "ising:size=4", "--out", "missing/run.zarr"}, "poise: "},
      {{"resume", "missing.zarr"}, "poise: missing.zarr has no checkpoint"},
      {{"compare", "ising:size=4"},
       "poise: poise compare is the work of one process: start it without mpirun or srun."},
      {{"sample", "ising:size=4", "--bad-option"}, "poise: unknown option '--bad-option'"}};
  for (const auto& [words, sentence] : cases) {
    const Outcome outcome = run_on(3, words);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(count(outcome.err, sentence), 1) << outcome.err;
    EXPECT_EQ(count(outcome.err, "poise: "), count(sentence, "poise: ")) << outcome.err;
  }
  const Outcome help = run_on(3, {"--version"});
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(count(help.out, "poise "), 1) << help.out;
  const Outcome info = run_on(2, {"info", "potts:size=3,levels=3,coupling=0.5"});
  EXPECT_EQ(info.code, 0) << info.err;
  EXPECT_EQ(info.out, run_on(1, {"info", "potts:size=3,levels=3,coupling=0.5"}).out);
}

/// What a launcher leaves in the environment, for as long as this lives.
class Environment {
 public:
  Environment(std::string name, const char* value) : name_(std::move(name)) { ::setenv(name_.c_str(), value, 1); }
  ~Environment() { ::unsetenv(name_.c_str()); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::string name_;
};

TEST_F(Mpi, RanksThatKnowNothingOfEachOtherAreRefused) {
  const Arguments words = {"sample", "ising:size=4", "--draws", "10", "--quiet"};
  {
    // As if it had been built without: the library that speaks MPI is not there.
    program_ = in_work("alone");
    std::filesystem::copy_file(POISE_PROGRAM, program_);
    const Environment size("OMPI_COMM_WORLD_SIZE", "3");
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(
        outcome.err,
        "poise: mpirun has started 3 ranks, but this poise was built without MPI: they would all make the same run "
        "(POISE_MPI=off lets them, each with files of its own).\n");
    const Environment off("POISE_MPI", "off");
    EXPECT_EQ(run(words).code, 0);
  }
  program_ = POISE_PROGRAM;
  const Environment tasks("SLURM_STEP_NUM_TASKS", "4");
  const Outcome outcome = run(words);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("srun has started 4 ranks, but MPI knows of 1"), std::string::npos) << outcome.err;
}

}  // namespace poise::mpi_test
