/// Networks on the command line: files in, marginals out, and what is said when something is wrong with either.
#include <cmath>

#include <nlohmann/json.hpp>

#include <poise/devices.hpp>
#include "support/program.hpp"

namespace poise::testing_program::program_network_test {

using nlohmann::json;

/// A burglar, an earthquake, an alarm; the neighbour may call.
constexpr const char* kAlarm = R"(network alarm { }
variable Burglar { type discrete [ 2 ] { yes, no }; }
variable Quake { type discrete [ 3 ] { none, light, strong }; }
variable Alarm { type discrete [ 2 ] { on, off }; }
variable Call { type discrete [ 2 ] { yes, no }; }
probability ( Burglar ) { table 0.1, 0.9; }
probability ( Quake ) { table 0.7, 0.2, 0.1; }
probability ( Alarm | Burglar, Quake ) {
  (yes, none) 0.9, 0.1; (yes, light) 0.92, 0.08; (yes, strong) 0.95, 0.05;
  (no, none) 0.05, 0.95; (no, light) 0.2, 0.8; (no, strong) 0.6, 0.4;
}
probability ( Call | Alarm ) { (on) 0.8, 0.2; (off) 0.1, 0.9; }
)";

/// Three variables that must be equal: two states, and no single change between them.
constexpr const char* kIslands = "MARKOV\n3\n2 2 2\n2\n2 0 1\n2 1 2\n4\n1 0 0 1\n4\n1 0 0 2\n";

class NetworkProgram : public ProgramTest {
 protected:
  NetworkProgram() {
    write_text(work() / "alarm.bif", kAlarm);
    write_text(work() / "call.evid", "Call = yes\n");
    write_text(work() / "islands.uai", kIslands);
  }
};

/// P(Burglar = yes | Call = yes) by hand.
double burglar_given_call() {
  const double quake[3] = {0.7, 0.2, 0.1};
  const double on[2][3] = {{0.9, 0.92, 0.95}, {0.05, 0.2, 0.6}};
  double joint[2] = {};
  for (int b = 0; b < 2; ++b) {
    for (int q = 0; q < 3; ++q) joint[b] += (b == 0 ? 0.1 : 0.9) * quake[q] * (on[b][q] * 0.8 + (1 - on[b][q]) * 0.1);
  }
  return joint[0] / (joint[0] + joint[1]);
}

TEST_F(NetworkProgram, ExactMarginalsWithEvidence) {
  const Outcome outcome =
      run({"exact", "alarm.bif", "--evidence", "call.evid", "--out", "alarm.MAR", "--json", "alarm.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json answer = json::parse(read_text(work() / "alarm.json"));
  EXPECT_EQ(answer.at("method"), "exact");
  EXPECT_NEAR(answer.at("variables")[0].at("probabilities")[0].get<double>(), burglar_given_call(), 1e-12);
  EXPECT_EQ(answer.at("variables")[0].at("levels")[0], "yes");
  EXPECT_EQ(answer.at("variables")[3].at("probabilities")[0], 1.0);
  EXPECT_TRUE(answer.at("variables")[3].at("observed").get<bool>());
  EXPECT_EQ(read_text(work() / "alarm.MAR").substr(0, 8), "MAR\n4 2 ");
  EXPECT_NE(outcome.out.find("Burglar"), std::string::npos);
  EXPECT_NE(outcome.out.find("log10 Z"), std::string::npos);
}

TEST_F(NetworkProgram, SampledMarginalsSayHowTheyWereFound) {
  ASSERT_EQ(run({"exact", "alarm.bif", "--evidence", "call.evid", "--out", "truth.MAR", "--quiet"}).code, 0);
  const Outcome outcome = run({"marginals", "alarm.bif", "--evidence", "call.evid", "--method", "sample", "--seconds",
                               "0.3", "--truth", "truth.MAR", "--json", "-", "--strict", "--quiet"});
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  const json answer = json::parse(outcome.out);
  EXPECT_EQ(answer.at("method"), "sample");
  EXPECT_GE(answer.at("pilots").size(), 2U);
  EXPECT_NE(answer.at("reason").get<std::string>().find("by the clock"), std::string::npos);
  EXPECT_LT(answer.at("mean_absolute_error").get<double>(), 0.01);
  EXPECT_EQ(answer.at("warnings").size(), 0U);
  for (const char* key : {"reason", "width", "exact_bytes", "sampler", "seconds", "report"}) {
    EXPECT_TRUE(answer.contains(key)) << key;
  }
  EXPECT_EQ(answer.at("variables")[1].at("mcse").size(), 3U);
  EXPECT_EQ(answer.at("variables")[1].at("counted").size(), 3U);
}

TEST_F(NetworkProgram, StuckChainsAreWarnedOfAndStrictExitsWithThree) {
  const Outcome sampled = run({"marginals", "islands.uai", "--method", "sample", "--sampler", "gibbs", "--seconds",
                               "0.1", "--strict", "--json", "out.json"});
  EXPECT_EQ(sampled.code, 3) << sampled.err;
  EXPECT_NE(sampled.out.find("warning:"), std::string::npos);
  const json warnings = json::parse(read_text(work() / "out.json")).at("warnings");
  ASSERT_FALSE(warnings.empty());
  EXPECT_EQ(warnings[0].at("code"), "stuck");
  EXPECT_TRUE(warnings[0].at("message").get<std::string>().ends_with("; try --sampler exact"));
  EXPECT_EQ(run({"sample", "islands.uai", "--sampler", "gibbs", "--draws", "50", "--strict", "--quiet"}).code, 3);
  EXPECT_EQ(run({"sample", "islands.uai", "--draws", "50", "--strict", "--quiet"}).code, 0) << "auto has exact draws";
  EXPECT_EQ(run({"sample", "islands.uai", "--sampler", "exact", "--draws", "500", "--strict", "--quiet"}).code, 0);
  EXPECT_EQ(run({"marginals", "islands.uai", "--strict"}).code, 0) << "exact inference has no islands";
  EXPECT_EQ(run({"marginals", "islands.uai", "--method", "sample", "--seconds", "0.5", "--strict"}).code, 0)
      << "hot replicas cross between islands";
}

TEST_F(NetworkProgram, NamesAreKeptInSummariesAndFiles) {
  const Outcome outcome = run({"sample", "alarm.bif", "--evidence", "call.evid", "--sampler", "gibbs", "--draws", "400",
                               "--out", "run.zarr", "--quiet"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* words : {"4, 1 of them observed", "Burglar = no", "Quake = strong", "Alarm = off"}) {
    EXPECT_NE(outcome.out.find(words), std::string::npos) << words << "\n" << outcome.out;
  }
  EXPECT_EQ(outcome.out.find("Call ="), std::string::npos) << "an observed variable has no row";
  const std::string again = run({"summary", "run.zarr"}).out;
  EXPECT_EQ(again, outcome.out);
  const StoredRun stored = read_run(in_work("run.zarr"));
  EXPECT_EQ(stored.layout.names.at(1), "Quake");
  EXPECT_EQ(stored.layout.level_names.at(1).at(2), "strong");
  EXPECT_EQ(stored.layout.observed, (std::vector<std::int16_t>{-1, -1, -1, 0}));
  EXPECT_EQ(stored.trace.x.at(3), 0);
}

TEST_F(NetworkProgram, InfoTellsSizeAndCost) {
  const Outcome outcome = run({"info", "alarm.bif", "--evidence", "call.evid"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* words : {"4, 1 observed", "2 to 3", "induced width", "exact inference: it fits"}) {
    EXPECT_NE(outcome.out.find(words), std::string::npos) << words << "\n" << outcome.out;
  }
  const json answer = json::parse(run({"info", "potts:size=40,levels=4", "--json", "-"}).out);
  EXPECT_EQ(answer.at("method"), "sample");
  EXPECT_EQ(answer.at("variables"), 1600);
  EXPECT_FALSE(answer.at("samplers").empty());
}

TEST_F(NetworkProgram, PottsAndIsingAreNetworksToo) {
  const json potts = json::parse(run({"exact", "potts:size=3x2,levels=3,boundary=open,field=1", "--json", "-"}).out);
  EXPECT_EQ(potts.at("variables").size(), 6U);
  EXPECT_GT(potts.at("variables")[0].at("probabilities")[0].get<double>(), 0.5);
  const Outcome sampled = run({"sample", "potts:size=8,levels=3,coupling=0.5", "--draws", "200", "--quiet"});
  EXPECT_EQ(sampled.code, 0) << sampled.err;
  EXPECT_NE(sampled.out.find("order"), std::string::npos);
  const json ising = json::parse(run({"exact", "ising:size=1x2,boundary=open,lambda=0.5", "--json", "-"}).out);
  EXPECT_NEAR(ising.at("log10_partition").get<double>(), std::log10(2 * std::exp(0.5) + 2 * std::exp(-0.5)), 1e-12);
}

TEST_F(NetworkProgram, CutsAndQuadraticFunctionsAreModels) {
  write_text(work() / "square.mc", "4 4\n1 2 1\n2 3 1\n3 4 1\n4 1 1\n");
  const Outcome cut = run({"sample", "square.mc", "--draws", "200", "--quiet"});
  EXPECT_EQ(cut.code, 0) << cut.err;
  EXPECT_NE(cut.out.find("cut"), std::string::npos);
  EXPECT_NE(cut.out.find("best        cut 4 (chain "), std::string::npos) << cut.out;
  write_text(work() / "one.coo", "0 0 -1\n0 1 2\n1 1 -0.5\n");
  const Outcome energy = run({"sample", "qubo:file=one.coo,beta=3", "--draws", "200", "--quiet"});
  EXPECT_EQ(energy.code, 0) << energy.err;
  EXPECT_NE(energy.out.find("best        energy -1 (chain "), std::string::npos) << energy.out;
  write_text(work() / "edge.mc", "2 1\n1 2 1\n");
  const double truth = std::log(2.0 + 2.0 * std::exp(1.0));
  const json exact = json::parse(run({"exact", "edge.mc", "--json", "-"}).out);
  EXPECT_NEAR(exact.at("log10_partition").get<double>(), truth / std::log(10.0), 1e-12);
  EXPECT_NEAR(json::parse(run({"logz", "edge.mc", "--json", "-"}).out).at("log_partition").get<double>(), truth, 1e-12);
  const json tempered =
      json::parse(run({"logz", "edge.mc", "--method", "sample", "--seconds", "0.2", "--json", "-"}).out);
  EXPECT_NEAR(tempered.at("log_partition").get<double>(), truth, 5.0 * tempered.at("mcse").get<double>());
  const json alone = json::parse(
      run({"logz", "ising:size=12", "--method", "sample", "--chains", "1", "--seconds", "0.1", "--json", "-"}).out);
  EXPECT_TRUE(alone.at("mcse").is_null());
  // Too strong for tables, not for tempering.
  write_text(work() / "strong.mc", "2 1\n1 2 1000\n");
  const json strong = json::parse(run({"logz", "strong.mc", "--seconds", "0.2", "--json", "-"}).out);
  EXPECT_EQ(strong.at("method"), "sample");
  EXPECT_NEAR(strong.at("log_partition").get<double>(), 1000.0 + std::log(2.0), 6.0 * strong.at("mcse").get<double>());
}

TEST_F(NetworkProgram, BadInputGetsASentence) {
  write_text(work() / "cut_short.uai", "MARKOV\n2\n2 2\n1\n2 0 1\n4\n0.1 0.2");
  write_text(work() / "impossible.uai", "MARKOV\n1\n2\n2\n1 0\n1 0\n2\n1 0\n2\n0 1\n");
  write_text(work() / "twice.evid", "2 0 0 0 1");
  write_text(work() / "far.evid", "1 7 0");
  const std::vector<std::pair<Arguments, std::vector<std::string>>> cases = {
      {{"exact", "missing.uai"}, {"missing.uai"}},
      {{"exact", "cut_short.uai"}, {"cut_short.uai, line 7", "ends"}},
      {{"sample", "cut_short.uai"}, {"cut_short.uai, line 7"}},
      {{"exact", "impossible.uai"}, {"no state has positive probability"}},
      {{"sample", "impossible.uai"}, {"no state has positive probability"}},
      {{"exact", "islands.uai", "--evidence", "far.evid"}, {"far.evid, line 1", "7"}},
      {{"exact", "islands.uai", "--evidence", "twice.evid"}, {"twice.evid"}},
      {{"exact", "alarm.bif", "--memory", "0.000001"}, {"induced width", "limit"}},
      {{"exact", "alarm.bif", "--memory", "none"}, {"--memory: found 'none'"}},
      {{"marginals", "alarm.bif", "--method", "guess"}, {"--method: found 'guess', expected auto, exact or sample"}},
      {{"marginals", "alarm.bif", "--truth", "alarm.bif"}, {"alarm.bif"}},
      {{"marginals", "alarm.bif", "--sampler", "gib"}, {"unknown sampler 'gib' (did you mean 'gibbs'?)"}},
      {{"marginals"}, {"the model is missing"}},
      {{"info", "maxcut"}, {"no key 'file'"}},
      {{"sample", "ising:case=4", "--sampler", "exact"}, {"induced width", "limit"}},
      {{"exact", "rbm:weights=x.npz"}, {"the model 'rbm' is no network"}},
      {{"marginals", "maxcut"}, {"no key 'file'"}},
      {{"sample", "islands.uai", "--field", "x.png"}, {"--field"}},
      {{"sample", "pots:size=3"}, {"did you mean 'potts'?", ".uai"}},
      {{"sample", "potts:levels=1,size=0"}, {"levels", "size"}},
  };
  for (const auto& [arguments, parts] : cases) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    for (const std::string& part : parts)
      EXPECT_NE(outcome.err.find(part), std::string::npos) << part << ": " << outcome.err;
  }
}

TEST_F(NetworkProgram, DevicesOfMarginals) {
  EXPECT_NE(run({"marginals", "alarm.bif", "--device", "gpu"}).err.find("expected cpu, cuda or auto"),
            std::string::npos);
  const Outcome exact = run({"marginals", "alarm.bif", "--device", "cuda", "--method", "exact"});
  EXPECT_EQ(exact.code, 2);
  EXPECT_NE(exact.err.find("exact inference runs on the CPU"), std::string::npos);
  const Outcome automatic =
      run({"marginals", "alarm.bif", "--device", "auto", "--method", "sample", "--seconds", "0.5"});
  EXPECT_EQ(automatic.code, 0) << automatic.err;
  std::string why;
  const Outcome sampled = run({"marginals", "alarm.bif", "--device", "cuda", "--method", "sample", "--seconds", "0.5"});
  EXPECT_EQ(sampled.code, cuda_devices(why).empty() ? 2 : 0) << sampled.err;
}

TEST_F(NetworkProgram, HelpOfTheCommandsHasExamples) {
  for (const char* command : {"marginals", "exact", "info"}) {
    const Outcome outcome = run({command, "--help"});
    EXPECT_EQ(outcome.code, 0);
    for (const char* word : {"Usage: poise", "Examples:", "--evidence"}) {
      EXPECT_NE(outcome.out.find(word), std::string::npos) << word;
    }
  }
}

TEST_F(NetworkProgram, InterruptedSamplingAnswersWithWhatItHas) {
  start({"marginals", "alarm.bif", "--method", "sample", "--seconds", "20", "--sampler", "gibbs", "--out", "part.MAR",
         "--json", "part.json"});
  wait_for_progress("\ngibbs", "sample");  // a pilot comes first
  ::kill(child_, SIGINT);
  const Outcome outcome = wait();
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_EQ(read_text(work() / "part.MAR").substr(0, 8), "MAR\n4 2 ");
  const json answer = json::parse(read_text(work() / "part.json"));
  EXPECT_TRUE(answer.at("interrupted").get<bool>());
  EXPECT_NE(answer.at("warnings").dump().find("interrupted"), std::string::npos);
  EXPECT_GT(answer.at("report").at("draws").get<int>(), 0);
}

TEST_F(NetworkProgram, InterruptedBeforeTheFirstDrawNothingIsWritten) {
  start(
      {"marginals", "alarm.bif", "--method", "sample", "--seconds", "600", "--sampler", "gibbs", "--out", "part.MAR"});
  wait_for_progress();
  ::kill(child_, SIGINT);
  const Outcome outcome = wait();
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_FALSE(files().contains("part.MAR"));
  EXPECT_NE(outcome.err.find("no marginals"), std::string::npos) << outcome.err;
}

}  // namespace poise::testing_program::program_network_test
