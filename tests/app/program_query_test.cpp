/// Evidence and queries on the command line.
#include <cmath>

#include <nlohmann/json.hpp>

#include "support/program.hpp"

namespace poise::testing_program::program_query_test {

using nlohmann::json;

/// Rain, a sprinkler that is used less when it rains, wet grass.
constexpr const char* kGrass = R"(network grass { }
variable Rain { type discrete [ 2 ] { yes, no }; }
variable Sprinkler { type discrete [ 2 ] { on, off }; }
variable Grass { type discrete [ 2 ] { wet, dry }; }
probability ( Rain ) { table 0.2, 0.8; }
probability ( Sprinkler | Rain ) { (yes) 0.01, 0.99; (no) 0.4, 0.6; }
probability ( Grass | Rain, Sprinkler ) {
  (yes, on) 0.99, 0.01; (yes, off) 0.8, 0.2; (no, on) 0.9, 0.1; (no, off) 0.0, 1.0;
}
)";

/// P(Rain = r, Sprinkler = s, Grass = wet) by hand.
double wet(int r, int s) {
  const double sprinkler[2][2] = {{0.01, 0.99}, {0.4, 0.6}};
  const double grass[2][2] = {{0.99, 0.8}, {0.9, 0.0}};
  return (r == 0 ? 0.2 : 0.8) * sprinkler[r][s] * grass[r][s];
}

double wet() { return wet(0, 0) + wet(0, 1) + wet(1, 0) + wet(1, 1); }

class QueryProgram : public ProgramTest {
 protected:
  QueryProgram() { write_text(work() / "grass.bif", kGrass); }

  json answer(const Arguments& more) {
    Arguments all = {"marginals", "grass.bif", "--json", "-", "--quiet"};
    all.insert(all.end(), more.begin(), more.end());
    const Outcome outcome = run(all);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out);
  }
};

TEST_F(QueryProgram, EvidenceIsTypedOrAFileAndTheFileWins) {
  const json typed = answer({"--evidence", "Grass=wet, Sprinkler = on"});
  EXPECT_NEAR(typed.at("variables")[0].at("probabilities")[0].get<double>(), wet(0, 0) / (wet(0, 0) + wet(1, 0)),
              1e-12);
  EXPECT_NEAR(typed.at("evidence_probability").get<double>(), wet(0, 0) + wet(1, 0), 1e-12);
  EXPECT_NEAR(answer({"--evidence", "2=0,x[1]=0"}).at("evidence_probability").get<double>(), wet(0, 0) + wet(1, 0),
              1e-12);
  write_text(work() / "Grass=dry", "Grass = wet\n");
  EXPECT_NEAR(answer({"--evidence", "Grass=dry"}).at("evidence_probability").get<double>(), wet(), 1e-12);
  EXPECT_FALSE(answer({}).contains("evidence_probability"));
}

TEST_F(QueryProgram, EvidenceThatIsWrongIsNamed) {
  const auto refusal = [&](const std::string& evidence) {
    const Outcome outcome = run({"exact", "grass.bif", "--evidence", evidence, "--json", "out.json"});
    EXPECT_EQ(outcome.code, 2) << evidence;
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  EXPECT_NE(refusal("Gras=wet").find("did you mean 'Grass'?"), std::string::npos) << refusal("Gras=wet");
  EXPECT_NE(refusal("Grass=damp").find("expected a level of Grass"), std::string::npos);
  EXPECT_NE(refusal("Grass=wet,Grass=dry").find("expected level wet as before"), std::string::npos);
  EXPECT_NE(refusal("Grass=wet,,Rain=yes").find("between two commas"), std::string::npos);
  EXPECT_NE(refusal("missing.evid").find("missing.evid"), std::string::npos);
  EXPECT_EQ(files(), (std::set<std::string>{"grass.bif"}));
}

TEST_F(QueryProgram, AJointDistributionIsExact) {
  const json joint = answer({"--evidence", "Grass=wet", "--query", "Sprinkler,Grass,Rain"}).at("joint");
  EXPECT_EQ(joint.at("variables"), (json{"Sprinkler", "Grass", "Rain"}));
  ASSERT_EQ(joint.at("probabilities").size(), 8U);
  for (int s = 0; s < 2; ++s) {
    for (int g = 0; g < 2; ++g) {
      for (int r = 0; r < 2; ++r) {
        EXPECT_NEAR(joint.at("probabilities")[static_cast<std::size_t>(4 * s + 2 * g + r)].get<double>(),
                    g == 0 ? wet(r, s) / wet() : 0.0, 1e-12);
      }
    }
  }
  EXPECT_FALSE(joint.contains("mcse"));
  const Outcome table = run({"exact", "grass.bif", "--evidence", "Grass=wet", "--query", "Sprinkler,Rain"});
  EXPECT_NE(table.out.find("P(evidence) = 0.4484"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("probability"), std::string::npos) << table.out;
  const Outcome csv = run({"exact", "grass.bif", "--query", "Rain,Sprinkler", "--csv", "-", "--quiet"});
  EXPECT_EQ(csv.out.substr(0, csv.out.find('\n')), "Rain,Sprinkler,probability,mcse");
  EXPECT_NE(csv.out.find("yes,on,0.002"), std::string::npos) << csv.out;
  EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), '\n'), 5);
}

TEST_F(QueryProgram, AJointDistributionIsSampledWithErrors) {
  const json joint = answer({"--query", "Rain,Grass", "--method", "sample", "--seconds", "0.5"}).at("joint");
  const double dry[2] = {0.2 - wet(0, 0) - wet(0, 1), 0.8 - wet(1, 0) - wet(1, 1)};
  for (int r = 0; r < 2; ++r) {
    const double truth[2] = {wet(r, 0) + wet(r, 1), dry[r]};
    for (int g = 0; g < 2; ++g) {
      const auto k = static_cast<std::size_t>(2 * r + g);
      const double error = joint.at("mcse")[k].get<double>();
      EXPECT_GT(error, 0.0);
      EXPECT_LT(error, 0.05);
      EXPECT_NEAR(joint.at("probabilities")[k].get<double>(), truth[g], 6.0 * error);
    }
  }
}

TEST_F(QueryProgram, QueriesThatAreWrongAreNamed) {
  const auto refusal = [&](const std::string& query) {
    const Outcome outcome = run({"marginals", "grass.bif", "--query", query});
    EXPECT_EQ(outcome.code, 2) << query;
    return outcome.err;
  };
  EXPECT_NE(refusal("Rian").find("did you mean 'Rain'?"), std::string::npos) << refusal("Rian");
  EXPECT_NE(refusal("Rain,Rain").find("expected it once"), std::string::npos);
  const Outcome large =
      run({"exact", "ising:size=6,coupling=0.2", "--query", "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"});
  EXPECT_EQ(large.code, 2);
  EXPECT_NE(large.err.find("expected at most 100000"), std::string::npos) << large.err;
}

TEST_F(QueryProgram, MarginalsAsCsvAndLogZ) {
  const Outcome csv = run({"marginals", "grass.bif", "--csv", "m.csv", "--quiet"});
  ASSERT_EQ(csv.code, 0) << csv.err;
  const std::string text = read_text(work() / "m.csv");
  EXPECT_EQ(text.substr(0, text.find('\n')), "variable,level,probability,mcse");
  EXPECT_NE(text.find("Rain,yes,0.2"), std::string::npos) << text;
  const Outcome logz = run({"logz", "grass.bif", "--evidence", "Grass=wet"});
  EXPECT_NE(logz.out.find("P(evidence) = 0.4484"), std::string::npos) << logz.out;
}

TEST_F(QueryProgram, ARunWithTypedEvidenceIsResumed) {
  const Arguments arguments = {"sample", "grass.bif", "--evidence", "Grass=wet", "--sampler", "gibbs", "--quiet"};
  Arguments whole = arguments;
  whole.insert(whole.end(), {"--draws", "60", "--out", "whole.zarr"});
  ASSERT_EQ(run(whole).code, 0);
  Arguments part = arguments;
  part.insert(part.end(), {"--draws", "20", "--out", "part.zarr", "--checkpoint"});
  ASSERT_EQ(run(part).code, 0);
  const Outcome resumed = run({"resume", "part.zarr", "--draws", "60", "--quiet"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(read_run(in_work("part.zarr")).trace.x, read_run(in_work("whole.zarr")).trace.x);
}

}  // namespace poise::testing_program::program_query_test
