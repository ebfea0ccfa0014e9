/// Pictures of a run and its page: what they show of traces whose properties are known.
#include "report/run_pictures.hpp"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <poise/extend/base/rng.hpp>
#include <poise/report.hpp>
#include <poise/run.hpp>
#include "support/markup.hpp"

namespace poise::run_pictures_test {

using testing::count;
using testing::is_well_formed;

Trace trace_of(std::size_t chains, std::size_t draws) {
  Trace trace;
  trace.chains = chains;
  trace.draws = draws;
  trace.monitor_names = {"log_prob"};
  Rng rng(1, 2);
  std::vector<double> values;
  for (std::size_t k = 0; k < chains * draws; ++k) values.push_back(rng.uniform());
  trace.monitors = {std::move(values)};
  return trace;
}

/// Heights of the histogram of every chain, as they are in the second panel.
std::vector<double> y_of_lines(const std::string& svg) {
  std::vector<double> out;
  for (std::size_t at = svg.find("<path d=\"M"); at != std::string::npos; at = svg.find("<path d=\"M", at + 1)) {
    out.push_back(std::stod(svg.substr(svg.find(' ', at + 10))));
  }
  return out;
}

TEST(RunPictures, AreWellFormedWhateverTheValues) {
  Trace trace = trace_of(3, 50);
  const double inf = std::numeric_limits<double>::infinity();
  for (const double value : {0.0, std::nan(""), inf, -inf, 1e300}) {
    for (std::size_t k = 0; k < 60; ++k) trace.monitors[0][k] = value;
    const std::string svg = run_plot({}, trace);
    EXPECT_TRUE(is_well_formed(svg)) << value;
    EXPECT_EQ(count(svg, "<svg"), count(svg, "</svg>"));
  }
  EXPECT_TRUE(is_well_formed(run_plot({}, {}))) << "no draws";
  EXPECT_TRUE(is_well_formed(run_plot({}, trace_of(1, 4))));
}

TEST(RunPictures, AnExcursionOfOneDrawIsSeen) {
  Trace trace = trace_of(2, 100'000);
  const std::vector<HtmlFigure> calm = run_figures({}, trace);
  trace.monitors[0][70'707] = 9.0;
  const std::vector<HtmlFigure> figures = run_figures({}, trace);
  ASSERT_EQ(figures.size(), 1U);
  ASSERT_EQ(figures[0].panels.size(), 3U);
  EXPECT_EQ(calm[0].panels[0].find(">8<"), std::string::npos);
  EXPECT_NE(figures[0].panels[0].find(">8<"), std::string::npos) << "the axis reaches the excursion";
  EXPECT_LT(figures[0].panels[0].size(), 60'000U) << "the size of a picture does not grow with the draws";
}

TEST(RunPictures, ChainsThatAgreeHaveEvenRanks) {
  Trace trace = trace_of(2, 1000);
  // Equal values in both chains: each has the same share of every rank.
  std::copy_n(trace.monitors[0].begin(), 1000, trace.monitors[0].begin() + 1000);
  for (double& value : trace.monitors[0]) value = std::floor(4 * value);
  const std::vector<double> even = y_of_lines(run_figures({}, trace)[0].panels[1]);
  ASSERT_EQ(even.size(), 3U) << "two chains and the line at 1";
  EXPECT_NEAR(even[0], even[1], 0.02);
  for (std::size_t k = 0; k < 1000; ++k) trace.monitors[0][k] += 10.0;
  const std::vector<double> apart = y_of_lines(run_figures({}, trace)[0].panels[1]);
  EXPECT_GT(std::abs(apart[0] - apart[1]), 50.0) << "one chain has all the high ranks";
}

TEST(RunPictures, APageNeedsNoOtherFile) {
  const Model model = make_model("ising:size=8,lambda=0.2");
  RunOptions options;
  options.chains = 3;
  options.warmup = 50;
  options.draws = 60;
  const RunResult result = run(model, parse_sampler("lsb"), options);
  Report report = make_report(result);
  report.model = "<b>a & b</b>";
  report.warnings = {{"rhat", "Chains <disagree>", "--sampler temper"}};
  const std::string page = report_html(report, result.trace);
  for (const char* part :
       {"<!doctype html>", "&lt;b&gt;a &amp; b&lt;/b&gt;", "Chains &lt;disagree&gt;", "<code>--sampler temper</code>",
        "log_prob", "magnetization", "balancing function", "x[7, 7]", "The mean of every site"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(page.find("<b>a & b"), std::string::npos);
  EXPECT_EQ(page.find("src=\"http"), std::string::npos);
  EXPECT_EQ(count(page, "href=\"http"), 0U);
  for (const char* tag : {"table", "figure", "svg", "dl", "ul", "main"}) {
    EXPECT_EQ(count(page, std::string("<") + tag + ">") + count(page, std::string("<") + tag + " "),
              count(page, std::string("</") + tag + ">"))
        << tag;
  }
}

TEST(RunPictures, ALargeTableHasTheRowsThatMixWorst) {
  Report report;
  report.draws = 10;
  report.variables.emplace();
  for (Index i = 0; i < 3000; ++i) {
    report.variables->rows.push_back({.mean = 0,
                                      .mcse = 0,
                                      .ess = 3000.0 - i,
                                      .r_hat = 1,
                                      .transitions = 5,
                                      .variable = i,
                                      .level = {},
                                      .status = SeriesStatus::ok});
  }
  const std::string page = report_html(report, {});
  EXPECT_NE(page.find("The 1000 of 3000 rows"), std::string::npos);
  EXPECT_NE(page.find("<td>x[2999]</td>"), std::string::npos);
  EXPECT_EQ(page.find("<td>x[0]</td>"), std::string::npos);
}

}  // namespace poise::run_pictures_test
