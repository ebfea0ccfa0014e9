/// Ladders: swaps in turn, round trips, spacing by rejections, ratios of normalising constants.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include <poise/extend/engines/ladder.hpp>

namespace poise::ladder_test {

TEST(Ladder, SwapsOfLikelyPairsAreCertainAndOthersMetropolis) {
  EXPECT_EQ(swap_probability(2.0, 1.0), 1.0);
  EXPECT_EQ(swap_probability(1.0, 1.0), 1.0);
  EXPECT_DOUBLE_EQ(swap_probability(1.0, 2.5), std::exp(-1.5));
  const double impossible = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(swap_probability(impossible, 1.0), 0.0);
}

/// Where every swap is accepted a replica never turns round on its way: a round trip takes twice as many steps as there
/// are rungs.
TEST(Ladder, ReplicasKeepTheirDirection) {
  constexpr std::size_t kRungs = 5;
  Ladder ladder(kRungs);
  Rng rng(1, 1);
  constexpr std::uint64_t kSteps = 1000;
  std::uint64_t swaps = 0;
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    ladder.swap(
        step, rng, [](std::size_t, std::size_t) { return 0.0; }, [&](std::size_t) { ++swaps; });
    for (std::size_t k = 0; k < kRungs; ++k) ASSERT_EQ(ladder.rung_of(ladder.replica_at(k)), k);
  }
  EXPECT_EQ(swaps, kSteps / 2 * (kRungs - 1));
  // All five replicas go round, each in ten steps, once it has been at the cold end.
  EXPECT_NEAR(static_cast<double>(ladder.round_trips()), kSteps * kRungs / (2.0 * kRungs), kRungs);
  for (const double rejection : ladder.counts().rejections()) EXPECT_EQ(rejection, 0.0);
  EXPECT_EQ(ladder.paths().rung(0, 0), ladder.paths().rung(10, 0));
  ladder.restart_counts(std::vector<double>(kRungs - 1, 0.0));
  EXPECT_EQ(ladder.round_trips(), 0U);
  EXPECT_EQ(ladder.counts().rejections(), std::vector<double>(kRungs - 1, 1.0));
}

TEST(Ladder, RejectedSwapsAreCounted) {
  Ladder ladder(3);
  Rng rng(2, 1);
  // Replica 1 gains more than the others everywhere: what is at the rung below is refused with 1 - e^-1.
  const auto gain = [](std::size_t, std::size_t replica) { return replica == 1 ? 1.0 : 0.0; };
  ladder.swap(0, rng, gain, [](std::size_t) {});
  EXPECT_DOUBLE_EQ(ladder.counts().rejections()[0], 1.0 - std::exp(-1.0));
  EXPECT_EQ(ladder.counts().tried, (std::vector<std::uint64_t>{1, 0}));
}

TEST(Ladder, IsSpacedByRejections) {
  const std::vector<double> betas = {0.0, 0.25, 0.5, 0.75, 1.0};
  const std::vector<double> even(4, 0.3);
  const std::vector<double> same = equal_rejection(betas, even, 5);
  for (std::size_t k = 0; k < 5; ++k) EXPECT_NEAR(same[k], betas[k], 1e-12);
  // All of the barrier lies between 0.5 and 0.75: so do the rungs inside.
  const std::vector<double> narrow = equal_rejection(betas, std::vector<double>{0.0, 0.0, 0.9, 0.0}, 8);
  EXPECT_EQ(narrow.front(), 0.0);
  EXPECT_EQ(narrow.back(), 1.0);
  for (std::size_t k = 1; k < 8; ++k) {
    EXPECT_GT(narrow[k], narrow[k - 1]);
    if (k < 7) {
      EXPECT_GT(narrow[k], 0.499);
      EXPECT_LT(narrow[k], 0.751);
    }
  }
  // Nothing is ever rejected: still a ladder.
  const std::vector<double> free = equal_rejection(betas, std::vector<double>(4, 0.0), 3);
  EXPECT_NEAR(free[1], 0.5, 1e-9);
}

TEST(Ladder, LengthFollowsTheBarrier) {
  EXPECT_DOUBLE_EQ(barrier_of(std::vector<double>{0.5, 0.25, 0.125}), 0.875);
  EXPECT_EQ(rungs_for(0.0), 2U);
  EXPECT_EQ(rungs_for(7.4), 17U);
}

TEST(Ladder, FirstBetasRiseFromNothingToOne) {
  const std::vector<double> betas = first_betas(16);
  EXPECT_EQ(betas.front(), 0.0);
  EXPECT_EQ(betas.back(), 1.0);
  for (std::size_t k = 1; k < betas.size(); ++k) EXPECT_GT(betas[k], betas[k - 1]);
}

/// With states in exact proportion the ratio is exact, whatever the guess.
TEST(Ladder, BridgesGiveTheRatioOfNormalisingConstants) {
  const std::vector<double> weights = {1.0, 2.0, 3.0, 2.0};  // above; below all are 1
  for (const double guess : {-1.0, 0.0, std::log(2.0), 5.0}) {
    BridgeSums sums({guess});
    for (const double weight : weights) {
      sums.add_below(0, std::log(weight));
      for (int k = 0; k < static_cast<int>(weight); ++k) sums.add_above(0, std::log(weight));
    }
    EXPECT_NEAR(sums.log_ratios()[0], std::log(8.0 / 4.0), 1e-12);
  }
  EXPECT_EQ(BridgeSums({0.7}).log_ratios()[0], 0.7);
}

}  // namespace poise::ladder_test
