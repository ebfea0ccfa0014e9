/// The program as a user meets it: the real binary, its exit codes, what it prints and which files it leaves.
#include <algorithm>
#include <cmath>
#include <optional>

#include <nlohmann/json.hpp>

#include <poise/image.hpp>

#include "support/program.hpp"

namespace poise::testing_program::program_test {

using nlohmann::json;

TEST_F(ProgramTest, HelpNamesModelsSamplersAndExamples) {
  for (const Arguments& arguments :
       {Arguments{"--help"}, {"sample", "--help"}, {"compare", "--help"}, {"summary", "--help"}}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    for (const char* word : {"Usage: poise", "Examples:", "Exit codes:"}) {
      EXPECT_NE(outcome.out.find(word), std::string::npos) << word;
    }
  }
  const std::string help = run({"sample", "--help"}).out;
  for (const char* word :
       {"ising", "boundary=", "graph=", "lsb1", "gibbs", "objective=", "--first-chain", "--strict"}) {
    EXPECT_NE(help.find(word), std::string::npos) << word;
  }
  EXPECT_EQ(run({"--version"}).out, "poise " POISE_VERSION "\n");
  EXPECT_EQ(run({}).code, 2);
}

TEST_F(ProgramTest, WritesEverythingItWasAskedFor) {
  const Outcome outcome = run({"sample", "ising:size=16,image=shapes,field=gaussian,mu=1,sigma=1,lambda=0.4",
                               "--warmup", "100", "--draws", "60", "--sampler", "lsb", "--out", "run.zarr", "--json",
                               "run.json", "--images", "out.png", "--plot", "plots.svg", "--report", "run.html"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(files(), (std::set<std::string>{"run.zarr", "run.json", "out.png", "plots.svg", "run.html"}));
  EXPECT_NE(outcome.err.find("sample"), std::string::npos) << "progress goes to standard error";

  const json report = json::parse(read_text(work() / "run.json"));
  for (const char* key :
       {"version", "model",    "sampler", "seed",          "chains",       "warmup",          "draws",
        "thin",    "seconds",  "steps",   "evals",         "evals_warmup", "acceptance_rate", "monitors",
        "balance", "warnings", "notes",   "initial_steps", "warmup_steps", "interrupted",     "variables"}) {
    EXPECT_TRUE(report.contains(key)) << key;
  }
  for (const char* monitor : {"log_prob", "magnetization", "hamming"}) {
    for (const char* key : {"mean", "sd", "mcse", "ess", "ess_tail", "ess_per_second", "ess_per_eval", "ess_per_step",
                            "r_hat", "status"}) {
      EXPECT_TRUE(report["monitors"][monitor].contains(key)) << monitor << " " << key;
    }
  }
  for (const char* key : {"target", "ratio", "gradient", "balance"}) EXPECT_TRUE(report["evals"].contains(key)) << key;
  EXPECT_EQ(report["version"], POISE_VERSION);
  EXPECT_EQ(report["chains"], 4);
  EXPECT_EQ(report["draws"], 60);
  EXPECT_EQ(report["thin"], 256);
  EXPECT_EQ(report["steps"], 4 * 60 * 256);
  EXPECT_EQ(report["balance"]["knots"].size(), report["balance"]["log_phi"].size());
  const double ess = report["monitors"]["log_prob"]["ess"];
  EXPECT_NEAR(report["monitors"]["log_prob"]["ess_per_step"], ess / (4 * 60 * 256), 1e-12);

  const StoredRun stored = read_run(in_work("run.zarr"));
  EXPECT_EQ(stored.trace.draws, 60U);
  EXPECT_EQ(stored.trace.x.size(), 4U * 60 * 256);
  EXPECT_EQ(stored.results, report);
  EXPECT_GT(read_image(in_work("out.png")).width, 600U);
  EXPECT_NE(read_text(work() / "plots.svg").find("<svg"), std::string::npos);

  // The page of the stored run is that of the run.
  const Outcome page = run({"report", "run.zarr", "--out", "again.html", "--plot", "again.svg"});
  EXPECT_EQ(page.code, 0) << page.err;
  EXPECT_EQ(page.out, "again.html\n");
  EXPECT_EQ(read_text(work() / "again.html"), read_text(work() / "run.html"));
  EXPECT_EQ(read_text(work() / "again.svg"), read_text(work() / "plots.svg"));
  EXPECT_EQ(run({"report", "run.zarr", "--out", "-"}).out, read_text(work() / "run.html"));
}

TEST_F(ProgramTest, PicturesOfComparisonsAndMarginals) {
  const Outcome compared =
      run({"compare", "ising:size=4,lambda=0.2", "--samplers", "gibbs,lb", "--draws", "50", "--plot", "bars.svg"});
  EXPECT_EQ(compared.code, 0) << compared.err;
  EXPECT_NE(read_text(work() / "bars.svg").find(">gibbs<"), std::string::npos);
  const Outcome marginals =
      run({"marginals", "ising:size=4,lambda=0.2", "--plot", "p.svg", "--method", "sample", "--seconds", "0.2"});
  EXPECT_EQ(marginals.code, 0) << marginals.err;
  EXPECT_NE(read_text(work() / "p.svg").find("probability"), std::string::npos);
}

TEST_F(ProgramTest, SummaryOfTheFileIsTheTableOfTheRun) {
  for (const char* keep : {"draws", "monitors"}) {
    const Outcome sampled = run({"sample", "ising:case=3,size=12", "--warmup", "50", "--draws", "100", "--keep", keep,
                                 "--out", "run.zarr", "--json", "run.json", "--quiet"});
    ASSERT_EQ(sampled.code, 0) << sampled.err;
    EXPECT_EQ(sampled.err, "");
    const Outcome summary = run({"summary", "run.zarr", "--json", "summary.json"});
    EXPECT_EQ(summary.code, 0);
    EXPECT_EQ(summary.out, sampled.out);
    EXPECT_EQ(json::parse(read_text(work() / "summary.json")), json::parse(read_text(work() / "run.json")));
  }
}

TEST_F(ProgramTest, StandardOutputIsCleanForPipes) {
  const Outcome outcome = run({"sample", "ising:case=1,size=8", "--warmup", "20", "--draws", "50", "--json", "-"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(json::parse(outcome.out)["draws"], 50);
  EXPECT_NE(outcome.err.find("log_prob"), std::string::npos);
  EXPECT_EQ(run({"sample", "ising:case=1,size=8", "--warmup", "20", "--draws", "50", "--json", "-", "--quiet"}).err,
            "");
  EXPECT_TRUE(files().empty());
  start({"sample", "ising:case=1,size=8", "--draws", "50", "--quiet"}, "/dev/full");
  EXPECT_EQ(wait().code, 1);
}

TEST_F(ProgramTest, StrictTurnsWarningsIntoAnExitCode) {
  const Arguments few{"sample", "ising:case=4,size=8", "--sampler", "gibbs", "--warmup", "20", "--draws", "5",
                      "--quiet"};
  Arguments strict = few;
  strict.emplace_back("--strict");
  EXPECT_EQ(run(few).code, 0);
  const Outcome outcome = run(strict);
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.out.find("warning: "), std::string::npos);
}

TEST_F(ProgramTest, ConstantSeriesHaveNoPerfectScore) {
  const Outcome outcome =
      run({"sample", "ising:size=2,lambda=50", "--init", "zeros", "--draws", "100", "--json", "r.json", "--quiet"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("constant"), std::string::npos);
  const json monitor = json::parse(read_text(work() / "r.json"))["monitors"]["log_prob"];
  EXPECT_EQ(monitor["status"], "constant");
  EXPECT_TRUE(monitor["ess"].is_null());
  EXPECT_TRUE(monitor["r_hat"].is_null());
}

TEST_F(ProgramTest, TooManyThreadsAreClampedWithANote) {
  const Outcome outcome =
      run({"sample", "ising:size=4", "--draws", "20", "--chains", "2", "--threads", "1000", "--quiet"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.err.find("note: 1000 threads"), std::string::npos) << outcome.err;
}

const Arguments kLongRun{
    "sample", "ising:size=40,lambda=0.3", "--warmup", "20", "--draws", "1000000", "--chains", "2", "--out", "run.zarr"};

TEST_F(ProgramTest, InterruptKeepsWhatWasDrawn) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Arguments arguments = kLongRun;
    arguments.insert(arguments.end(), {"--json", "run.json"});
    start(arguments);
    wait_for_draws(in_work("run.zarr"));
    ::kill(child_, signal);
    const Outcome outcome = wait();
    EXPECT_EQ(outcome.code, 130) << outcome.err;
    EXPECT_NE(outcome.out.find("interrupted"), std::string::npos);
    const StoredRun stored = read_run(in_work("run.zarr"));
    EXPECT_GT(stored.trace.draws, 2U);
    const json report = json::parse(read_text(work() / "run.json"));
    EXPECT_EQ(report, stored.results);
    EXPECT_EQ(report["interrupted"], true);
    EXPECT_EQ(report["draws"], stored.trace.draws);
    const Outcome summary = run({"summary", "run.zarr"});
    EXPECT_EQ(summary.code, 0);
    EXPECT_EQ(summary.out, outcome.out);
    std::filesystem::remove_all(work() / "run.zarr");
  }
}

TEST_F(ProgramTest, InterruptBeforeTheFirstDrawLeavesAReadableFile) {
  for (const auto& [sampler, phase] : {std::pair{"lsb", "initial"}, std::pair{"auto", "initial"}}) {
    start({"sample", "ising:size=300", "--sampler", sampler, "--warmup", "100000", "--out", "run.zarr"});
    wait_for_progress("", phase);
    ::kill(child_, SIGINT);
    const Outcome outcome = wait();
    EXPECT_EQ(outcome.code, 130) << outcome.err;
    EXPECT_EQ(read_run(in_work("run.zarr")).trace.draws, 0U);
    EXPECT_EQ(run({"summary", "run.zarr"}).code, 0);
    EXPECT_EQ(run({"sample", "ising:size=3", "--out", "run.zarr"}).code, 2) << "over an unfinished run";
    std::filesystem::remove_all(work() / "run.zarr");
  }
}

TEST_F(ProgramTest, KilledRunLeavesAReadableFile) {
  start(kLongRun);
  wait_for_draws(in_work("run.zarr"));
  ::kill(child_, SIGKILL);
  wait();
  const StoredRun stored = read_run(in_work("run.zarr"));
  EXPECT_GT(stored.trace.draws, 2U);
  EXPECT_TRUE(stored.results.is_null());
  const Outcome summary = run({"summary", "run.zarr", "--json", "s.json"});
  EXPECT_EQ(summary.code, 0) << summary.err;
  EXPECT_NE(summary.out.find("killed"), std::string::npos);
  const json report = json::parse(read_text(work() / "s.json"));
  EXPECT_TRUE(report["seconds"]["sampling"].is_null());
  EXPECT_TRUE(report["evals"].is_null());
  EXPECT_TRUE(report["monitors"]["log_prob"]["ess"].is_number());
}

TEST_F(ProgramTest, ClockEndsSampling) {
  const Outcome outcome = run({"sample", "ising:size=10,lambda=0.3", "--warmup", "10", "--draws", "1", "--seconds",
                               "0.3", "--quiet", "--json", "-"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const json report = json::parse(outcome.out);
  EXPECT_GT(report["draws"], 10);
  // The limit is that of the whole run: making the chains and warm-up are part of it.
  EXPECT_GT(report["seconds"]["sampling"], 0.1);
  EXPECT_LT(report["seconds"]["sampling"].get<double>() + report["seconds"]["warmup"].get<double>(), 0.8);
  EXPECT_EQ(report["interrupted"], false);
}

TEST_F(ProgramTest, DrawsDoNotDependOnThreads) {
  for (const char* sampler : {"lsb", "gibbs"}) {
    std::optional<Trace> first;
    for (const char* threads : {"1", "2", "7"}) {
      ASSERT_EQ(run({"sample", "ising:case=3,size=10", "--sampler", sampler, "--chains", "7", "--warmup", "30",
                     "--draws", "40", "--threads", threads, "--out", "run.zarr", "--quiet"})
                    .code,
                0);
      const Trace trace = read_run(in_work("run.zarr")).trace;
      if (!first) first = trace;
      EXPECT_EQ(trace.x, first->x) << sampler << " with " << threads;
      EXPECT_EQ(trace.monitors, first->monitors) << sampler << " with " << threads;
    }
  }
}

TEST_F(ProgramTest, OneRunOfManyChainsIsManyRunsOfOne) {
  for (const char* sampler : {"lb:g=barker", "gibbs"}) {
    const auto sample = [&](const char* chains, const std::string& first) {
      EXPECT_EQ(run({"sample", "ising:case=3,size=10", "--sampler", sampler, "--chains", chains, "--first-chain", first,
                     "--warmup", "20", "--draws", "30", "--out", "run.zarr", "--quiet"})
                    .code,
                0);
      return read_run(in_work("run.zarr")).trace;
    };
    const Trace all = sample("3", "0");
    for (std::size_t chain = 0; chain < 3; ++chain) {
      const Trace one = sample("1", std::to_string(chain));
      const auto begin = all.x.begin() + static_cast<std::ptrdiff_t>(chain * one.x.size());
      ASSERT_EQ(one.x.size(), 30U * 100);
      EXPECT_TRUE(std::equal(one.x.begin(), one.x.end(), begin)) << sampler << ", chain " << chain;
    }
  }
}

TEST_F(ProgramTest, InitialStateComesFromAFile) {
  std::string labels;
  std::string levels;
  std::vector<std::int8_t> state;
  for (int i = 0; i < 25; ++i) {
    state.push_back(i % 3 == 0 ? 1 : -1);
    labels += state.back() > 0 ? "+1 " : "-1 ";
    levels += state.back() > 0 ? "1 " : "0 ";
  }
  write_text(work() / "labels.txt", labels);
  write_text(work() / "levels.txt", levels);
  std::vector<Trace> traces;
  for (const char* name : {"labels.txt", "levels.txt"}) {
    const Outcome outcome = run({"sample", "ising:size=5,lambda=0.1", "--sampler", "lb", "--init", name, "--warmup",
                                 "0", "--thin", "1", "--draws", "20", "--chains", "1", "--out", "run.zarr", "--quiet"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    traces.push_back(read_run(in_work("run.zarr")).trace);
  }
  EXPECT_EQ(traces[0].x, traces[1].x);
  int changed = 0;
  for (std::size_t i = 0; i < state.size(); ++i) changed += traces[0].x[i] != state[i];
  EXPECT_LE(changed, 1) << "one step changes one variable";
}

TEST_F(ProgramTest, CompareSetsSamplersSideBySide) {
  const Outcome outcome =
      run({"compare", "ising:case=1,size=8", "--samplers", "lsb,lsb2:net=monotone,blocks=2,units=2", "--sampler",
           "lb:g=min", "--sampler", "gibbs", "--warmup", "100", "--draws", "100", "--json", "c.json", "--quiet"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_NE(outcome.out.find('*'), std::string::npos) << "the best of a column is marked";
  const json results = json::parse(read_text(work() / "c.json"))["results"];
  const Arguments names{"lsb", "lsb2:net=monotone,blocks=2,units=2", "lb:g=min", "gibbs"};
  ASSERT_EQ(results.size(), names.size());
  for (std::size_t k = 0; k < names.size(); ++k) {
    EXPECT_EQ(results[k]["sampler"], names[k]);
    EXPECT_NE(outcome.out.find(names[k]), std::string::npos);
    EXPECT_FALSE(results[k].contains("variables")) << "compare keeps monitors only";
    EXPECT_GT(results[k]["evals"]["ratio"], 0);
    const double both = static_cast<double>(results[k]["monitors"]["log_prob"]["ess"]) *
                        static_cast<double>(results[k]["monitors"]["magnetization"]["ess"]);
    EXPECT_NEAR(results[k]["combined"]["ess"], std::sqrt(both), 1e-9 * both);
  }
  EXPECT_EQ(results[3]["steps"], 4 * 100) << "a step of gibbs is a sweep";
  EXPECT_EQ(results[3]["updates"], 4 * 100 * 64);
  EXPECT_TRUE(results[0].contains("balance"));
  EXPECT_FALSE(results[3].contains("balance"));
  EXPECT_EQ(files(), (std::set<std::string>{"c.json"}));

  const Outcome piped =
      run({"compare", "ising:size=4,lambda=0.1", "--samplers", "gibbs", "--draws", "50", "--json", "-"});
  EXPECT_EQ(json::parse(piped.out)["results"].size(), 1U);
}

}  // namespace poise::testing_program::program_test
