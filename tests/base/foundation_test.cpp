/// Random numbers, exp and the weight tree.
#include <gtest/gtest.h>

#include <cmath>

#include <poise/extend/base/math.hpp>
#include <poise/extend/base/rng.hpp>
#include <poise/extend/base/weight_tree.hpp>

namespace poise::foundation_test {

// Known answers of Philox 4x32-10 from the Random123 distribution.
TEST(Philox, KnownAnswers) {
  using Block = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}), (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Rng, StreamIsPhiloxInTheDocumentedOrder) {
  const std::uint64_t seed = 0x123456789abcdef0, stream = 0xfedcba9876543210;
  Rng rng(seed, stream);
  for (std::uint64_t batch = 0; batch < 3; ++batch) {
    for (unsigned k = 0; k < Rng::kBatch; ++k) {
      const std::uint64_t block = batch * Rng::kBlocks + k % Rng::kBlocks;
      const auto words = philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                                 static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)},
                                {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
      const unsigned first = k < Rng::kBlocks ? 0 : 2;
      const std::uint64_t bits = std::uint64_t{words[first]} << 32 | words[first + 1];
      EXPECT_EQ(rng.uniform(), static_cast<double>(bits >> 12) * 0x1p-52);
      EXPECT_EQ(rng.position(), batch * Rng::kBatch + k + 1);
    }
  }
}

TEST(Rng, EightAtATimeStartAtAMultipleOfEight) {
  Rng one(3, 4), eight(3, 4);
  eight.uniform();
  const Doubles8 v = eight.uniform8();
  for (int skip = 0; skip < 8; ++skip) one.uniform();
  for (int lane = 0; lane < 8; ++lane) EXPECT_EQ(v[lane], one.uniform());
}

TEST(Exp8, TwoUnitsInTheLastPlace) {
  Rng rng(1, 1);
  for (int k = 0; k < 20000; ++k) {
    const double x = k < 10000 ? 1400.0 * rng.uniform() - 700.0 : 2.0 * rng.uniform() - 1.0;
    const double exact = std::exp(x);
    EXPECT_LE(std::abs(exp8(broadcast8(x))[3] - exact), 4.5e-16 * exact) << x;
  }
}

TEST(Exp8, Ends) {
  EXPECT_EQ(exp8(broadcast8(0.0))[0], 1.0);
  EXPECT_EQ(exp8(broadcast8(-709.0))[0], 0.0);
  EXPECT_EQ(exp8(broadcast8(-INFINITY))[0], 0.0);
  EXPECT_GT(exp8(broadcast8(-707.0))[0], 0.0);
  EXPECT_TRUE(std::isfinite(exp8(broadcast8(1e9))[0]));
  EXPECT_GT(exp8(broadcast8(1e9))[0], 1e307);
}

class WeightTreeSizes : public ::testing::TestWithParam<Index> {};

TEST_P(WeightTreeSizes, SelectsAndUpdatesLikeALinearScan) {
  const Index n = GetParam();
  Rng rng(n, 0);
  WeightTree tree(n);
  std::vector<double> weights(n);
  for (double& w : weights) w = rng.uniform() < 0.3 ? 0.0 : static_cast<double>(static_cast<int>(rng.uniform() * 1000));
  weights[n / 2] = 1.0;
  std::copy(weights.begin(), weights.end(), tree.weights().begin());
  tree.rebuild();
  // Integer weights: every sum is exact, whatever its order.
  for (int round = 0; round < 50; ++round) {
    double total = 0.0;
    for (const double w : weights) total += w;
    ASSERT_EQ(tree.total(), total);
    for (int k = 0; k < 20; ++k) {
      const double target = std::floor(rng.uniform() * total);
      Index expected = 0;
      double before = 0.0;
      while (before + weights[expected] <= target) before += weights[expected++];
      ASSERT_EQ(tree.select(target), expected);
    }
    Index changed[5];
    double fresh[5];
    for (int k = 0; k < 5; ++k) {
      changed[k] = static_cast<Index>(rng.uniform() * n);
      fresh[k] = std::floor(rng.uniform() * 100);
    }
    tree.update(changed, fresh, 5);
    for (int k = 0; k < 5; ++k) weights[changed[k]] = fresh[k];
    if (n == 1) tree.update(changed, &(fresh[0] = 1.0), 1), weights[0] = 1.0;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, WeightTreeSizes, ::testing::Values(1, 2, 15, 16, 17, 255, 256, 257, 900, 5000, 70000));

TEST(WeightTree, NeverSelectsAZeroWeight) {
  WeightTree tree(40);
  auto w = tree.weights();
  w[3] = 1e-3;
  w[20] = 1.0 / 3.0;
  tree.rebuild();
  EXPECT_EQ(tree.select(0.0), 3U);
  EXPECT_EQ(tree.select(tree.total()), 20U);  // rounding may give the total itself
  EXPECT_EQ(tree.select(std::nextafter(tree.total(), 2.0)), 20U);
}

}  // namespace poise::foundation_test
