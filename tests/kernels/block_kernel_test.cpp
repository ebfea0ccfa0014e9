/// Blocks of variables: log ratios of all their configurations on RBMs, the order of walks, and what is too large.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include <poise/extend/kernels/block_balanced.hpp>
#include <poise/extend/kernels/block_gibbs.hpp>
#include "support/enumerate.hpp"
#include "support/small_rbms.hpp"
#include "support/table_target.hpp"

namespace poise::block_kernel_test {

using namespace poise::testing;

/// All configurations of a block against log p of the whole state. That is a sum of some thousand numbers to about 1e4,
/// each addition off by 1e-12 at most: 1e-8 for the difference of two.
void expect_block_ratios(const Rbm& target, const Levels& x, std::size_t size) {
  const auto state = target.make_state(x);
  const double here = plain_log_prob(target.weights(), x);
  BlockScratch<Rbm> scratch(target);
  for (Index i = 0; i < size; ++i) scratch.block.push_back(i);
  std::vector<double> log_ratios;
  std::vector<double> expected;
  Levels now = x;
  std::vector<int> direction(size);
  target.block_log_ratios(state, scratch.block, scratch.memory, log_ratios, [&](auto&& change, auto&& take) {
    const auto weigh = [&] {
      take();
      expected.push_back(plain_log_prob(target.weights(), now) - here);
    };
    walk_all(std::vector<Index>(size, 2), std::span(now).first(size), direction, change, weigh);
  });
  ASSERT_EQ(log_ratios.size(), std::size_t{1} << size);
  for (std::size_t k = 0; k < log_ratios.size(); ++k) ASSERT_NEAR(log_ratios[k], expected[k], 1e-8) << k;
}

/// Ten flips of 0.2 take each of 500 factors to e^2: their product fits no double.
TEST(Rbm, RatiosOfABlockAreThoseOfTheDefinition) {
  RbmWeights weights;
  weights.visible = 784;
  weights.hidden = 500;
  weights.weights.assign(std::size_t{784} * 500, 0.2F);
  weights.visible_bias.assign(784, -50.0F);
  weights.hidden_bias.assign(500, -76.0F);
  for (const Value level : {0, 1}) {
    Levels x(784);
    for (Index i = 0; i < 784; ++i) x[i] = i < 10 ? level : i % 2;
    expect_block_ratios(Rbm(weights), x, 10);
  }
}

TEST(Rbm, RatiosOfABlockOfHugeWeightsAreThoseOfTheDefinition) {
  for (const double scale : {5.0, 15.0, 30.0}) {
    RbmWeights weights = random_rbm(12, 21, scale, 8);
    for (float& weight : weights.weights) weight = std::min(std::abs(weight), 75.0F);
    for (const Value level : {0, 1}) expect_block_ratios(Rbm(weights), Levels(12, level), 12);
  }
}

/// A flat target with no table behind it.
class FlatTarget : public TableTarget {
 public:
  explicit FlatTarget(std::vector<Index> cardinalities) : TableTarget(std::move(cardinalities), {}) {}
  [[nodiscard]] State make_state(std::span<const Value> x) const { return {{x.begin(), x.end()}, 0.0}; }
  [[nodiscard]] double log_ratio(const State&, Move) const { return 0.0; }
  void apply(State& state, Move move) const { state.x[move.variable] = move.value; }
};

template <class K>
std::string refusal_of(std::vector<Index> cardinalities, const K& kernel) {
  const FlatTarget target(std::move(cardinalities));
  const auto state = target.make_state(Levels(target.num_variables(), 0));
  typename K::Scratch scratch(target);
  try {
    kernel.prepare(target, state, scratch);
  } catch (const InputError& error) {
    return error.what();
  }
  EXPECT_LE(scratch.weights.capacity(), kMostConfigurations);
  return "none";
}

TEST(BlockKernels, RefuseMoreConfigurationsThanTheyCanWeigh) {
  const std::vector<Index> binary(2000, 2);
  const std::vector<Index> ternary(40, 3);
  EXPECT_EQ(refusal_of(binary, BlockGibbs<FlatTarget>(20)), "none");
  EXPECT_EQ(refusal_of(binary, BlockGibbs<FlatTarget>(21)),
            "found 2097152 configurations of a block of 21 variables, expected at most 1048576 to weigh in one step: "
            "block=20 would fit");
  EXPECT_EQ(refusal_of(ternary, BlockGibbs<FlatTarget>(20)),
            "found 3486784401 configurations of a block of 20 variables, expected at most 1048576 to weigh in one "
            "step: block=12 would fit");
  EXPECT_EQ(refusal_of({3, 2, 2, 1, 40}, BlockGibbs<FlatTarget>(20)), "none");  // 480 configurations in all
  EXPECT_EQ(refusal_of(binary, HammingBall<FlatTarget>(1000, 2)), "none");
  EXPECT_EQ(refusal_of(binary, HammingBall<FlatTarget>(1000, 10)),
            "found 2.66e+23 configurations within radius 10 in a block of 1000 variables, expected at most 1048576 to "
            "weigh in one step: block=1000,radius=2 or block=21,radius=10 would fit");
  EXPECT_EQ(refusal_of(std::vector<Index>(5, 2), HammingBall<FlatTarget>(1000, 10)), "none");
}

/// The number of a configuration leads to the one that the walk takes at that place.
TEST(BlockKernels, NumbersOfConfigurationsAreThoseOfTheWalks) {
  const std::vector<Index> cardinalities = {2, 4, 3, 2};
  const std::vector<Value> start = {1, 2, 0, 1};
  std::vector<Value> now = start;
  std::vector<Value> found(4);
  std::vector<int> direction(4);
  std::size_t number = 0;
  walk_all(
      cardinalities, now, direction, [](std::size_t, Value) {},
      [&] {
        ASSERT_EQ(gray_number(cardinalities, now), number);
        gray_code(cardinalities, number++, found);
        ASSERT_EQ(found, now);
      });
  EXPECT_EQ(number, 48U);
  for (const unsigned radius : {1U, 2U, 3U, 4U, 7U}) {
    std::vector<std::size_t> sizes;
    const std::size_t size = ball_size(cardinalities, radius, sizes);
    now = start;
    number = 0;
    walk_ball(
        cardinalities, start, radius, [&](std::size_t k, Value level) { now[k] = level; },
        [&] {
          found = start;
          ball_member(cardinalities, number++, radius, sizes, found);
          ASSERT_EQ(found, now);
        });
    EXPECT_EQ(number, size);
  }
}

}  // namespace poise::block_kernel_test
