/// Scans: ranges, points that depend on nothing else, and files that continue.
#include "inference/scan.hpp"

#include <array>
#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/bytes.hpp"
#include "support/markup.hpp"

namespace poise::scan_test {

ScanOptions options_of(const std::string& model, const std::string& range) {
  ScanOptions options{.model = model, .files = {}, .range = read_scan_range(range), .sampler = "gibbs", .run = {}};
  options.exchange = "no";
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

/// Energy per site, |m| and m^2 of the 4x4 torus at an inverse temperature, by enumeration.
std::array<double, 3> enumerated(double beta) {
  double z = 0.0;
  std::array<double, 3> sums{};
  for (unsigned x = 0; x < 1U << 16; ++x) {
    const auto spin = [&](unsigned row, unsigned column) {
      return (x >> (row % 4 * 4 + column % 4) & 1U) != 0 ? 1.0 : -1.0;
    };
    double energy = 0.0, m = 0.0;
    for (unsigned row = 0; row < 4; ++row) {
      for (unsigned column = 0; column < 4; ++column) {
        energy -= spin(row, column) * (spin(row + 1, column) + spin(row, column + 1));
        m += spin(row, column) / 16;
      }
    }
    const double weight = std::exp(-beta * energy);
    z += weight;
    sums[0] += weight * energy / 16;
    sums[1] += weight * std::abs(m);
    sums[2] += weight * m * m;
  }
  for (double& sum : sums) sum /= z;
  return sums;
}

ScanOptions exchange_of(const std::string& model, const std::string& range) {
  ScanOptions options = options_of(model, range);
  options.exchange = "yes";
  options.run.draws = 4000;
  options.run.warmup = 200;
  return options;
}

TEST(Scan, AReplicaExchangeHasTheLawOfEveryPoint) {
  for (const char* sampler : {"gibbs", "sw", "lb:g=sqrt"}) {
    for (const char* range : {"beta=0,0.2,0.45,0.6", "T=1.8,2.2,3"}) {
      ScanOptions options = exchange_of("ising:size=4", range);
      options.sampler = sampler;
      for (const ScanPoint& point : scan(options, {}, {})) {
        const std::array<double, 3> truth = enumerated(options.range.key == "T" ? 1 / point.value : point.value);
        if (point.value == 0.0) continue;  // there is no energy to speak of
        for (std::size_t k = 0; k < truth.size(); ++k) {
          EXPECT_NEAR(point.rows[k].value, truth[k], 4.5 * point.rows[k].error + 1e-12)
              << sampler << " " << range << " " << point.value << " " << point.rows[k].name;
        }
      }
    }
  }
}

TEST(Scan, NeighboursOfAReplicaExchangeAreCorrelated) {
  const ScanOptions options = exchange_of("potts:size=6,levels=3", "coupling=0.5,0.6,0.7,0.8");
  const std::vector<ScanPoint> points = scan(options, {}, {});
  ASSERT_EQ(points.size(), 4U);
  for (std::size_t k = 0; k < 4; ++k) {
    ASSERT_EQ(points[k].correlations.size(), points[k].rows.size());
    EXPECT_EQ(points[k].correlations[0][k], 1.0);
    for (std::size_t other = 0; other < 4; ++other) {
      EXPECT_EQ(points[k].correlations[0][other], points[other].correlations[0][k]);
    }
    if (k == 3) continue;
    EXPECT_GT(points[k].acceptance, 0.3);
    EXPECT_GT(points[k].correlations[0][k + 1], 0.02);
  }
  const nlohmann::json json = nlohmann::json::parse(scan_json(options, points).dump());
  EXPECT_TRUE(json["exchange"].get<bool>());
  EXPECT_EQ(scan_json(options, read_scan(json, options, "scan.json")), json);
  EXPECT_NE(scan_text(options, points, 100).find("errors are correlated"), std::string::npos);
  EXPECT_NE(scan_csv(options, points).find("energy_correlation_with_next"), std::string::npos);
}

TEST(Scan, AReplicaExchangeDoesNotDependOnThreads) {
  ScanOptions options = exchange_of("ising:size=40", "T=2,2.05,2.1");
  options.run.draws = 40;
  options.run.threads = 1;
  const nlohmann::json one = scan_json(options, scan(options, {}, {}))["points"];
  options.run.threads = 3;
  const nlohmann::json many = scan_json(options, scan(options, {}, {}))["points"];
  for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(one[k]["observables"], many[k]["observables"]);
}

TEST(Scan, AReplicaExchangeContinuesWhereItWasStopped) {
  const ScanOptions options = exchange_of("ising:size=8", "T=2,2.3,2.6");
  const nlohmann::json whole = scan_json(options, scan(options, {}, {}))["points"];
  const testing::TemporaryFolder folder;
  const std::string path = folder.file("scan.json");
  std::atomic<bool> stop{false};
  const std::vector<ScanPoint> part =
      scan(options, {},
           {.sampling = [&](const Progress& now) { stop = now.phase == Phase::sample && now.done > 0; },
            .state = path,
            .stop = &stop});
  const bool was_stopped = part.empty() || !part[0].warnings.empty();
  const nlohmann::json again = scan_json(options, scan(options, part, {.state = path}))["points"];
  EXPECT_TRUE(was_stopped);
  for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(again[k]["observables"], whole[k]["observables"]);
}

TEST(Scan, WhereItDoesNotMultiplyLogPPointsAreIndependent) {
  ScanOptions options = exchange_of("ising:size=4,mu=1", "coupling=0.1,0.2");
  EXPECT_THROW((void)scan(options, {}, {}), InputError);
  options.exchange = "auto";
  std::string how;
  const std::vector<ScanPoint> points = scan(options, {}, {.how = [&](const std::string& told) { how = told; }});
  EXPECT_TRUE(points[0].correlations.empty());
  EXPECT_NE(how.find("does not multiply log p"), std::string::npos) << how;
  options = exchange_of("ising:size=4,mu=1", "beta=0.1,0.2");  // multiplies the field too
  options.run.draws = 20;
  EXPECT_FALSE(scan(options, {}, {})[0].correlations.empty());
}

TEST(Scan, AnotherNameOfTheKeyIsReplaced) {
  ScanOptions options = options_of("ising:size=4,lambda=0.3", "coupling=0.1,0.2");
  EXPECT_EQ(scan(options, {}, {}).size(), 2U);
  options = options_of("ising:size=4,beta=0.3", "T=2,3");
  EXPECT_EQ(scan(options, {}, {}).size(), 2U);
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
