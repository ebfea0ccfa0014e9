/// Block Gibbs on RBMs, many chains at a time, against the exact rule for one unit after the other.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include <poise/extend/base/rng.hpp>
#include "kernels/rbm_gibbs.hpp"
#include "support/small_rbms.hpp"

namespace poise::rbm_gibbs_test {

using namespace poise::testing;

using Levels = std::vector<Value>;

/// sigmoid(bias + sum of weights) of a unit of either layer, by the definition.
long double on_probability(const RbmWeights& weights, RbmLayer::Side side, Index unit, const Levels& given) {
  const bool hidden = side == RbmLayer::Side::hidden;
  long double a = (hidden ? weights.hidden_bias : weights.visible_bias)[unit];
  for (Index k = 0; k < given.size(); ++k) {
    if (given[k] != 0) a += weights.weights[hidden ? unit * weights.visible + k : k * weights.visible + unit];
  }
  return 1.0L / (1.0L + std::exp(-a));
}

/// One step of the rule u < sigmoid(a), from the same random bits: sixteen of the stream and 36 by their place in it.
Levels plain_step(const RbmWeights& weights, const Levels& x, Rng& rng) {
  const std::size_t hidden_bits = RbmLayer::padded(weights.hidden);
  const std::size_t words = (hidden_bits + RbmLayer::padded(weights.visible)) / 4;
  std::vector<std::uint64_t> random((words + Rng::kBatch - 1) / Rng::kBatch * Rng::kBatch);
  rng.fill(random);
  const std::uint64_t first = 4 * (rng.position() - random.size());
  const auto uniform = [&](std::size_t offset, Index unit) {
    const std::size_t k = offset + RbmLayer::place(unit);
    const std::uint64_t place = first + k;
    const std::uint64_t stream = rng.stream() + static_cast<std::uint64_t>(Stream::further_digits);
    const auto block = philox({static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(place >> 32),
                               static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)},
                              {static_cast<std::uint32_t>(rng.seed()), static_cast<std::uint32_t>(rng.seed() >> 32)});
    const std::uint64_t digits =
        (random[k / 4] >> 16 * (k % 4) & 0xffff) << 36 | (std::uint64_t{block[0]} << 32 | block[1]) >> 28;
    return std::ldexp(static_cast<long double>(digits), -52);
  };
  Levels hidden(weights.hidden);
  for (Index j = 0; j < weights.hidden; ++j) {
    hidden[j] = uniform(0, j) < on_probability(weights, RbmLayer::Side::hidden, j, x) ? 1 : 0;
  }
  Levels after(weights.visible);
  for (Index i = 0; i < weights.visible; ++i) {
    after[i] = uniform(hidden_bits, i) < on_probability(weights, RbmLayer::Side::visible, i, hidden) ? 1 : 0;
  }
  return after;
}

/// A group of chains with all that a kernel needs.
struct Group {
  Group(const Rbm& target, std::size_t count, std::uint64_t first_chain) {
    for (std::size_t c = 0; c < count; ++c) {
      states.push_back(std::make_unique<Rbm::State>(target.make_state(Levels(target.num_variables(), 0))));
      scratches.push_back(std::make_unique<RbmGibbs::Scratch>(target));
      rngs.push_back(std::make_unique<Rng>(77, first_chain + c));
      members.push_back({states[c].get(), scratches[c].get(), rngs[c].get()});
    }
  }
  std::vector<std::unique_ptr<Rbm::State>> states;
  std::vector<std::unique_ptr<RbmGibbs::Scratch>> scratches;
  std::vector<std::unique_ptr<Rng>> rngs;
  std::vector<RbmGibbs::Member> members;
};

TEST(RbmGibbs, IsTheExactRuleBitByBit) {
  struct Case {
    RbmWeights weights;
    double doubt;
    int steps;
  };
  const Case cases[] = {
      {random_rbm(5, 3, 1.0, 1), 0.0, 2000},     {random_rbm(100, 70, 0.2, 2), 0.0, 200},
      {random_rbm(100, 70, 0.2, 2), 0.3, 60},    {random_rbm(100, 70, 0.2, 2), 1e4, 20},
      {random_rbm(64, 32, 2.0, 3), 0.0, 200},    {random_rbm(33, 129, 0.05, 4), 0.0, 200},
      {bounded_rbm(90, 65, 30.0, 5), 0.0, 200},  {bounded_rbm(90, 65, 30.0, 5), 5.0, 60},
      {bounded_rbm(40, 300, 400.0, 6), 0.0, 60}, {random_rbm(300, 40, 0.0, 7), 0.0, 60},
  };
  for (const auto& [weights, doubt, steps] : cases) {
    const Rbm target(weights);
    const RbmGibbs kernel(target, doubt);
    Group group(target, 7, 0);
    std::vector<Levels> plain(7, Levels(weights.visible, 0));
    std::vector<Rng> rngs;
    for (std::uint64_t c = 0; c < 7; ++c) rngs.emplace_back(77, c);
    for (int step = 0; step < steps; ++step) {
      kernel.advance(target, group.members, 1);
      for (std::size_t c = 0; c < 7; ++c) {
        plain[c] = plain_step(weights, plain[c], rngs[c]);
        ASSERT_EQ(group.states[c]->x, plain[c])
            << weights.visible << " x " << weights.hidden << ", doubt " << doubt << ", step " << step;
      }
    }
  }
}

/// Random bits next to the threshold, where a bound that is too narrow would show.
TEST(RbmGibbs, BoundsAreNeverWrong) {
  for (const double scale : {0.05, 0.5, 5.0, 50.0}) {
    const RbmWeights weights = bounded_rbm(97, 130, scale, 11);
    const Rbm target(weights);
    Rng rng(3, 3);
    for (const auto side : {RbmLayer::Side::hidden, RbmLayer::Side::visible}) {
      const RbmLayer layer(target, side, 0.0);
      const Index inputs = side == RbmLayer::Side::hidden ? 97 : 130;
      for (int trial = 0; trial < 300; ++trial) {
        Levels levels(inputs);
        const double density = rng.uniform();
        for (Value& level : levels) level = rng.uniform() < density ? 1 : 0;
        RbmUnits given(inputs);
        given.take(levels);
        given.list();
        std::vector<long double> thresholds;
        std::vector<std::uint16_t> random(RbmLayer::padded(layer.num_units()), 0);
        for (Index unit = 0; unit < layer.num_units(); ++unit) {
          thresholds.push_back(65536.0L * on_probability(weights, side, unit, levels));
          const double near = std::floor(static_cast<double>(thresholds[unit])) + std::floor(7.0 * rng.uniform()) - 3.0;
          random[RbmLayer::place(unit)] = static_cast<std::uint16_t>(std::clamp(near, 0.0, 65535.0));
        }
        std::vector<std::uint64_t> words(RbmLayer::padded(layer.num_units()) / 4);
        for (std::size_t k = 0; k < random.size(); ++k) words[k / 4] |= std::uint64_t{random[k]} << 16 * (k % 4);
        std::vector<std::uint64_t> on((layer.num_units() + 63) / 64), open(on.size());
        std::vector<std::uint32_t> counts(RbmLayer::padded(layer.num_units()));
        const RbmLayer::Lane lane = {&given, words.data(), on.data(), open.data(), counts.data()};
        layer.draw({&lane, 1});
        for (Index unit = 0; unit < layer.num_units(); ++unit) {
          const bool is_on = (on[unit / 64] >> unit % 64 & 1U) != 0;
          ASSERT_EQ(counts[unit], is_on ? 1U : 0U);
          if ((open[unit / 64] >> unit % 64 & 1U) != 0) {
            ASSERT_FALSE(is_on);
          } else if (is_on) {
            ASSERT_LE(random[RbmLayer::place(unit)] + 1.0L, thresholds[unit]);
          } else {
            ASSERT_GE(static_cast<long double>(random[RbmLayer::place(unit)]), thresholds[unit]);
          }
        }
      }
    }
  }
}

/// Where biases of the hot end pull the other way than the weights, as far as they may.
TEST(RbmGibbs, HotEndsOfAnyBiasAreExact) {
  const Rbm cold(bounded_rbm(90, 65, 30.0, 5));
  Rng rng(1, 1);
  Rbm::Base base;
  for (Index i = 0; i < 90; ++i) base.visible.push_back(200.0 * (rng.uniform() - 0.5));
  for (Index j = 0; j < 65; ++j) base.hidden.push_back(200.0 * (rng.uniform() - 0.5));
  for (const double beta : {0.0, 0.2, 0.5, 0.9}) {
    const Rbm target = cold.heated(beta, base);
    Group quick(target, 16, 0), exact(target, 16, 0);
    for (int step = 0; step < 20; ++step) {
      RbmGibbs(target).advance(target, quick.members, 1);
      RbmGibbs(target, 1e6).advance(target, exact.members, 1);
      for (std::size_t c = 0; c < 16; ++c) ASSERT_EQ(quick.states[c]->x, exact.states[c]->x) << beta;
    }
  }
}

/// The exact rule is for few units only: that is where the speed comes from.
TEST(RbmGibbs, FewUnitsAreLeftOpen) {
  const RbmWeights weights = random_rbm(784, 250, 0.15, 3);
  const Rbm target(weights);
  const RbmLayer layer(target, RbmLayer::Side::hidden, 0.0);
  Rng rng(5, 5);
  RbmUnits given(784);
  std::size_t left_open = 0;
  for (int trial = 0; trial < 100; ++trial) {
    Levels levels(784);
    for (Value& level : levels) level = rng.uniform() < 0.3 ? 1 : 0;
    given.take(levels);
    given.list();
    std::vector<std::uint64_t> random((RbmLayer::padded(layer.num_units()) / 4 + Rng::kBatch - 1) / Rng::kBatch *
                                      Rng::kBatch);
    rng.fill(random);
    std::vector<std::uint64_t> on(4), open(4);
    std::vector<std::uint32_t> counts(RbmLayer::padded(layer.num_units()));
    const RbmLayer::Lane lane = {&given, random.data(), on.data(), open.data(), counts.data()};
    layer.draw({&lane, 1});
    for_each_unit(open, [&](Index) { ++left_open; });
  }
  EXPECT_LT(left_open, 250U);  // one in a hundred
}

TEST(RbmGibbs, ChainsDependNeitherOnCompanyNorOnHowStepsAreCut) {
  const Rbm target(random_rbm(70, 40, 0.3, 8));
  const RbmGibbs kernel(target);
  Group together(target, 16, 0);
  kernel.advance(target, together.members, 25);
  for (const std::size_t c : {0U, 5U, 15U}) {
    Group alone(target, 1, c);
    std::vector<std::uint32_t> counts(70, 0);
    for (int step = 0; step < 25; ++step) {
      const StepInfo info = kernel.step(target, *alone.states[0], *alone.scratches[0], *alone.rngs[0]);
      ASSERT_EQ(info.moves, alone.scratches[0]->changed.size());
      for (Index i = 0; i < 70; ++i) counts[i] += alone.states[0]->x[i];
    }
    EXPECT_EQ(alone.states[0]->x, together.states[c]->x);
    EXPECT_EQ(alone.states[0]->units, together.states[c]->units);
    EXPECT_EQ(alone.states[0]->bias_units, together.states[c]->bias_units);
    EXPECT_EQ(alone.states[0]->on, target.make_state(together.states[c]->x).on);
    EXPECT_TRUE(std::equal(counts.begin(), counts.end(), together.scratches[c]->counts.begin()));
  }
}

TEST(RbmUnits, ListWhicheverAreFewer) {
  Rng rng(1, 2);
  for (const Index units : {1U, 63U, 64U, 65U, 200U}) {
    for (const double density : {0.0, 0.2, 0.8, 1.0}) {
      Levels levels(units);
      for (Value& level : levels) level = rng.uniform() < density ? 1 : 0;
      RbmUnits all(units);
      all.take(levels);
      all.list();
      Levels back(units);
      all.give(back);
      EXPECT_EQ(back, levels);
      std::vector<Index> expected;
      for (Index k = 0; k < units; ++k) {
        if ((levels[k] != 0) != all.lists_off()) expected.push_back(k);
      }
      EXPECT_TRUE(std::ranges::equal(all.listed(), expected));
      EXPECT_LE(2 * all.listed().size(), units);
    }
  }
}

}  // namespace poise::rbm_gibbs_test
