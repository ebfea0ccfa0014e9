/// Frequencies of levels against the exact marginals of small parts.
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <poise/model.hpp>
#include <poise/network.hpp>
#include <poise/report.hpp>
#include <poise/run.hpp>
#include <poise/sampler.hpp>
#include "diagnose/model_checks.hpp"

namespace poise::exact_checks_test {

std::shared_ptr<const Network> shared(Network network) { return std::make_shared<const Network>(std::move(network)); }

/// A state that differs from the others in several variables holds 0.3 of the probability and is hardly ever found.
Network far_corner() {
  Network network;
  network.name = "corner";
  network.cardinalities = {2, 2, 2, 2};
  std::vector<double> table(16, 1e-6);
  table[0] = 1.0;
  table[1] = table[2] = table[4] = 0.4;
  table[15] = 0.95;
  network.add_factor(std::vector<Index>{0, 1, 2, 3}, table);
  return network;
}

// No level was never drawn, and chains without the corner agree.
TEST(Exact, FrequenciesAreComparedWithMarginals) {
  ModelChecks checks;
  const std::vector<double> frequencies = {0.001, 0.18, 0.18, 0.18};
  add_exact_checks(network_model(shared(far_corner())), frequencies, 4000, checks);
  EXPECT_TRUE(checks.solved);
  ASSERT_EQ(checks.off.size(), 8U);
  EXPECT_EQ(checks.off[0].variable, 0U);
  EXPECT_EQ(checks.off[0].level, 1);
  EXPECT_EQ(checks.off[0].frequency, 0.001);
  EXPECT_NEAR(checks.off[0].probability, 0.95 / 3.15, 1e-4);
  VariablesSummary variables;
  variables.variables = 4;
  const auto judge = [&](double ess) {
    variables.rows.clear();
    for (Index i = 0; i < 4; ++i) {
      VariableRow row{};
      row.variable = i;
      row.ess = ess;
      variables.rows.push_back(row);
    }
    const RunFacts facts{.chains = 4, .draws = 1000, .crossing = crossing_sampler(checks, "gibbs")};
    return exact_warnings(checks, {{}, variables, {}, facts});
  };
  const std::vector<Warning> found = judge(400.0);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].code, "disagreement");
  EXPECT_EQ(found[0].next, "--sampler exact");
  EXPECT_NE(found[0].text.find("x[0] = 1 (and 7 more) was drawn with frequency 0.001"), std::string::npos)
      << found[0].text;
  // Errors as large as the difference say that little is known.
  std::erase_if(checks.off, [](const ModelChecks::Off& one) { return one.variable == 0; });
  EXPECT_TRUE(judge(20.0).empty());
}

TEST(Exact, PartsOfAWideModelAreCompared) {
  Network network = far_corner();
  network.cardinalities.resize(34, 2);
  for (Index i = 4; i < 34; ++i) {
    for (Index j = 4; j < i; ++j) network.add_factor(std::vector<Index>{j, i}, std::vector<double>{1.02, 1, 1, 1.02});
  }
  RunOptions options;
  options.start = Start::zeros;
  const RunResult result = run(network_model(shared(network)), parse_sampler("gibbs"), options);
  EXPECT_FALSE(result.checks.solved);
  const Report report = make_report(result);
  ASSERT_EQ(report.warnings.size(), 1U);
  EXPECT_EQ(report.warnings[0].code, "disagreement");
  EXPECT_EQ(report.warnings[0].next, "--sampler temper");
  const nlohmann::json off = report_json(report)["checks"]["off"];
  ASSERT_EQ(off.size(), 4U * report.checks.off.size());
  EXPECT_EQ(off[0], report.checks.off[0].variable);
  EXPECT_EQ(off[3], report.checks.off[0].probability);
  const RunResult right = run(network_model(shared(network)), parse_sampler("temper"), options);
  EXPECT_TRUE(make_report(right).warnings.empty());
}

}  // namespace poise::exact_checks_test
