/// Scans: ranges, points that depend on nothing else, and files that continue.
#include "inference/scan.hpp"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/markup.hpp"

namespace poise::scan_test {

ScanOptions options_of(const std::string& model, const std::string& range) {
  ScanOptions options{.model = model, .files = {}, .range = read_scan_range(range), .sampler = "gibbs", .run = {}};
  options.run.draws = 60;
  options.run.warmup = 20;
  return options;
}

TEST(Scan, RangesAreRead) {
  const ScanRange range = read_scan_range("beta=0.1..0.5:5");
  EXPECT_EQ(range.key, "beta");
  EXPECT_EQ(range.values, (std::vector<double>{0.1, 0.2, 0.3, 0.4, 0.5}));
  EXPECT_EQ(read_scan_range("x=3,1,2,1").values, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(read_scan_range("x=-1e-3..1e-3:3").values, (std::vector<double>{-1e-3, 0, 1e-3}));
  EXPECT_EQ(read_scan_range("x=0.38..0.5:13").values[1], 0.39);
  for (const char* wrong : {"", "beta", "=1", "b=", "b=1..2", "b=2..1:3", "b=1..2:1", "b=1..2:x", "b=1,,2", "b=1..1:2",
                            "b=nan", "b=1..inf:3", "b=1..2:1000000"}) {
    EXPECT_THROW((void)read_scan_range(wrong), InputError) << wrong;
  }
}

TEST(Scan, APointDependsOnItsValueAlone) {
  ScanOptions options = options_of("ising:size=4", "lambda=0.1..0.4:4");
  options.run.threads = 1;
  const std::vector<ScanPoint> all = scan(options, {}, {});
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].rows.front().name, "energy");
  EXPECT_GT(all[0].rows.front().value, all[3].rows.front().value);
  ScanOptions one = options_of("ising:size=4", "lambda=0.3");
  const std::vector<ScanPoint> alone = scan(one, {}, {});
  EXPECT_EQ(alone[0].rows.front().value, all[2].rows.front().value);
  options.run.threads = 3;
  const std::vector<ScanPoint> together = scan(options, {}, {});
  for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(together[k].rows[4].value, all[k].rows[4].value);
  EXPECT_NE(all[0].rows.front().value, all[1].rows.front().value);
}

TEST(Scan, WhatIsKnownIsNotMadeAgain) {
  const ScanOptions options = options_of("potts:size=4,levels=3", "coupling=0.5,1");
  std::size_t written = 0;
  const std::vector<ScanPoint> points =
      scan(options, {}, {.finished = [&](const std::vector<ScanPoint>& found) { written = found.size(); }});
  EXPECT_EQ(written, 2U);
  const nlohmann::json json = nlohmann::json::parse(scan_json(options, points).dump());
  const std::vector<ScanPoint> again = read_scan(json, options, "scan.json");
  EXPECT_EQ(scan_json(options, again), json);
  ScanOptions more = options_of("potts:size=4,levels=3", "coupling=0.5,0.7,1");
  std::size_t made = 0;
  const std::vector<ScanPoint> longer =
      scan(more, read_scan(json, more, "scan.json"), {.finished = [&](const std::vector<ScanPoint>&) { ++made; }});
  EXPECT_EQ(made, 1U);
  EXPECT_EQ(longer.size(), 3U);
  ScanOptions other = options;
  other.run.seed = 2;
  EXPECT_THROW((void)read_scan(json, other, "scan.json"), InputError);
  EXPECT_THROW((void)read_scan(nlohmann::json(3), options, "scan.json"), InputError);
  nlohmann::json damaged = json;
  damaged["points"][0].erase("value");
  EXPECT_THROW((void)read_scan(damaged, options, "scan.json"), InputError);
}

TEST(Scan, IsShownAsTableAndPicture) {
  const ScanOptions options = options_of("bernoulli:size=8", "mu=-1,0,1");
  const std::vector<ScanPoint> points = scan(options, {}, {});
  EXPECT_TRUE(testing::is_well_formed(scan_plot(options, points)));
  EXPECT_TRUE(testing::is_well_formed(scan_plot(options, {})));
  const std::string csv = scan_csv(options, points);
  EXPECT_EQ(testing::count(csv, "\n"), 4U);
  EXPECT_TRUE(csv.starts_with("mu,log_prob,log_prob_error,log_prob_tau,")) << csv;
  EXPECT_NE(scan_text(options, points, 100).find("log_prob"), std::string::npos);
}

TEST(Scan, ModelsThatCannotBeMadeAreRefusedAtOnce) {
  EXPECT_THROW((void)scan(options_of("ising:size=4", "lamda=0.1,0.2"), {}, {}), InputError);
  EXPECT_THROW((void)scan(options_of("potts:size=4", "levels=2,2.5"), {}, {}), InputError);
  EXPECT_THROW((void)scan(options_of("none:size=4", "levels=2,3"), {}, {}), InputError);
}

}  // namespace poise::scan_test
