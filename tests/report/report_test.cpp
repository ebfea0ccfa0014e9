/// Warnings in reports and in comparisons of samplers: their JSON, and one line for each cause.
#include <gtest/gtest.h>

#include <poise/report.hpp>
#include "report/draws_report.hpp"

namespace poise::report_test {

Report report_of(const std::string& sampler, std::vector<Warning> warnings) {
  Report report;
  report.model = "a model";
  report.sampler = sampler;
  report.chains = 4;
  report.draws = 1000;
  report.thin = 1;
  report.monitors.push_back({"log_prob", {0.0, 1.0, 0.1, 100.0, 100.0, 1.0, 900, SeriesStatus::ok}});
  report.warnings = std::move(warnings);
  return report;
}

TEST(ReportWarnings, AreCodesAndMessagesInJson) {
  const nlohmann::json json = report_json(report_of("gibbs", {{"ess", "Few draws", "--draws 10"}, {"new", "Odd"}}));
  EXPECT_EQ(json.at("warnings"), (nlohmann::json{{{"code", "ess"}, {"message", "Few draws; try --draws 10"}},
                                                 {{"code", "new"}, {"message", "Odd"}}}));
  EXPECT_NE(report_text(report_of("gibbs", {{"ess", "Few draws", "--draws 10"}})).find("\nwarning: Few draws; try"),
            std::string::npos);
}

TEST(ReportWarnings, AComparisonHasOneLineForEachCause) {
  const std::vector<Report> reports{report_of("gibbs", {{"rhat", "R-hat is 2", "--sampler temper"}}),
                                    report_of("lb:g=min", {}),
                                    report_of("lsb", {{"rhat", "R-hat is 1.1", "--draws 4000"}, {"ess", "Few", "x"}})};
  const std::string text = comparison_text(reports);
  EXPECT_NE(text.find("\ngibbs !"), std::string::npos) << text;
  EXPECT_EQ(text.find("lb:g=min !"), std::string::npos) << text;
  EXPECT_NE(text.find("\nlsb !"), std::string::npos) << text;
  EXPECT_NE(text.find("\nwarning: Chains disagree for gibbs, lsb; try --sampler temper\n"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\nwarning: lsb: Few; try x\nmore:    poise explain rhat, poise explain ess\n")) << text;
}

/// The row of a sampler says what it does: it is not advised.
TEST(ReportWarnings, AComparisonDoesNotAdviseWhatItShows) {
  const Warning rhat{"rhat", "R-hat is 2", "--sampler temper"};
  std::vector<Report> reports{report_of("gibbs", {rhat}), report_of("lsb", {rhat}), report_of("temper:rungs=9", {})};
  std::string text = comparison_text(reports);
  EXPECT_NE(text.find("\nwarning: Chains disagree for gibbs, lsb\n"), std::string::npos) << text;
  for (Report& report : reports) report.draws = 100;
  reports[2].warnings = {{"ess", "Few", "--draws 300"}};
  text = comparison_text(reports);
  EXPECT_NE(text.find("\nwarning: Chains disagree for gibbs, lsb; try --draws 400\n"), std::string::npos) << text;
}

TEST(ReportWarnings, CausesThatSamplersShareAreWords) {
  for (const char* code : {"rhat", "ess", "stuck", "unvisited", "local_gain", "modes", "disagreement", "ladder"}) {
    const std::vector<Report> reports{report_of("gibbs", {{code, "A", ""}}), report_of("lsb", {{code, "B", ""}})};
    const std::string text = comparison_text(reports);
    EXPECT_EQ(text.find(std::string("warning: ") + code), std::string::npos) << text;
    EXPECT_NE(text.find(" for gibbs, lsb"), std::string::npos) << text;
  }
}

TEST(ReportWarnings, FollowTheBudgetAndTheSampler) {
  Report report = report_of("temper", {});
  report.monitors[0].summary.ess = 40;
  report.seconds = 2;
  add_warnings(report, true);
  ASSERT_EQ(report.warnings.size(), 1U);
  EXPECT_EQ(report.warnings[0].code, "ess");
  EXPECT_EQ(report.warnings[0].next, "--seconds 20");
  report.warnings.clear();
  report.independent = true;
  add_warnings(report, false);
  ASSERT_EQ(report.warnings.size(), 1U);
  EXPECT_EQ(report.warnings[0].code, "interrupted");
}

}  // namespace poise::report_test
