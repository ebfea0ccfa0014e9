/// Laws of flips in floats against those in doubles, and what they are made of.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <poise/extend/kernels/factorised_proposal.hpp>
#include "models/rbm/rbm.hpp"
#include "support/many_exactness.hpp"
#include "support/small_rbms.hpp"

namespace poise::flip_law_test {

using namespace poise::testing;

constexpr double kNever = -std::numeric_limits<double>::infinity();

TEST(Lanes16, ExponentialsAreThoseOfTheLibrary) {
  for (float x = -87.0F; x < 87.0F; x += 0.0371F) {
    Floats16 scale, rest;
    exp_parts16(all16(x), scale, rest);
    EXPECT_NEAR(scale.high[3] * (1.0 + rest.high[3]) / std::exp(static_cast<double>(x)), 1.0, 5e-7) << x;
  }
  for (const float x : {-1e-6F, -3e-9F, 1e-5F}) {
    Floats16 scale, rest;
    exp_parts16(all16(x), scale, rest);
    EXPECT_EQ(scale.low[0], 1.0F);
    EXPECT_NEAR(rest.low[0] / std::expm1(static_cast<double>(x)), 1.0, 5e-7) << x;
  }
}

TEST(Rng, WordsAreThoseOfItsBlocks) {
  const std::uint64_t seed = 0x9876543212345678, stream = 0xfedcba9876543210;
  Rng rng(seed, stream);
  std::vector<std::uint64_t> words(3 * Rng::kBatch);
  static_cast<void>(rng.uniform());  // the batch that this comes from is left
  rng.fill(words);
  const auto half = [](std::uint64_t value, unsigned shift) { return static_cast<std::uint32_t>(value >> shift); };
  for (std::size_t k = 0; k < words.size(); ++k) {
    const std::uint64_t block = Rng::kBlocks * (1 + k / Rng::kBatch) + k % Rng::kBlocks;
    const auto made =
        philox({half(block, 0), half(block, 32), half(stream, 0), half(stream, 32)}, {half(seed, 0), half(seed, 32)});
    const std::size_t first = k % Rng::kBatch < Rng::kBlocks ? 0 : 2;
    ASSERT_EQ(words[k], std::uint64_t{made[first + 1]} << 32 | made[first]) << k;
  }
  Rng other(seed, stream);
  for (unsigned k = 0; k < 4 * Rng::kBatch; ++k) static_cast<void>(other.uniform());
  EXPECT_EQ(rng.uniform(), other.uniform());
}

/// The laws of the same log ratios in floats and in doubles.
struct BothLaws {
  BothLaws(FactorisedForm form, const BalancingFunction& function, const std::vector<double>& log_ratios) {
    const Rbm target(random_rbm(static_cast<Index>(log_ratios.size()), 2, 1.0, 1));
    const VariableMoves moves(target);
    narrow.resize(moves);
    wide.resize(moves);
    std::copy(log_ratios.begin(), log_ratios.end(), wide.log_ratios.begin());
    std::copy(log_ratios.begin(), log_ratios.end(), narrow.log_ratios.begin());
    const FactorisedRule rule(form, function);
    legal = rule.fill(narrow, moves);
    EXPECT_EQ(legal, rule.fill(wide, moves));
  }
  FactorisedLaw<float> narrow;
  FactorisedLaw<double> wide;
  bool legal = false;
};

/// A float has an error of 2^-24 = 6e-8; a dozen operations and an exponent of up to 32 make it 3e-6 of tau s, of which
/// e^(-tau s) has up to 64 times that. Of e^-64 and less nothing is asked.
TEST(FlipLaw, FloatsAreAsGoodAsTheyCanBe) {
  std::vector<double> log_ratios = {kNever, -60.0, 60.0, 0.0};
  for (double u = -40.0; u < 40.0; u += 0.173) log_ratios.push_back(static_cast<float>(u));
  for (const FactorisedForm form : kForms) {
    for (const double level : {-12.0, -2.0, 0.3}) {
      for (const auto& [name, balance] : all_balances()) {
        const BothLaws laws(form, at_level(balance, level), log_ratios);
        ASSERT_TRUE(laws.legal);
        for (std::size_t k = 0; k < laws.wide.minor.size(); ++k) {
          const double narrow = laws.narrow.minor[k], wide = laws.wide.minor[k];
          // Where both probabilities are about a half either may be the smaller one.
          const double same = std::signbit(narrow) == std::signbit(wide) ? narrow : std::copysign(1.0, wide) - narrow;
          EXPECT_NEAR(same, wide, 2e-4 * std::abs(wide) + 1e-27) << name << ", " << laws.wide.log_ratios[k];
          const bool never = k >= log_ratios.size() || log_ratios[k] == kNever;
          EXPECT_EQ(narrow == 0.0, never);
        }
      }
    }
  }
}

TEST(FlipLaw, IllegalRatiosAreSeen) {
  for (const double bad : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    for (const FactorisedForm form : kForms) {
      EXPECT_FALSE(BothLaws(form, BalancingFunction(), {0.0, bad, 1.0}).legal);
    }
  }
}

/// Digits of a random number that leave a variable undecided are followed by more, each variable by its own digits.
TEST(FlipLaw, UndecidedDigitsAreFollowedByMore) {
  const auto rare = static_cast<float>(0.75 * 0x1p-16);
  std::vector<float> minor(2 * kFlipsTogether, 0.0F);
  const std::size_t odd_ones[] = {0, 5, 17, 31, 32, 48, 63};
  for (const std::size_t k : odd_ones) minor[k] = k % 2 == 0 ? rare : -rare;
  std::vector<std::int32_t> flips(minor.size());
  const std::vector<std::uint64_t> words(minor.size() / 4, 0);
  Rng rng(1, 2);
  int rarely = 0;
  constexpr int kDraws = 50000;
  for (int draw = 0; draw < kDraws; ++draw) {
    FlipDraws::draw<float>(minor, words.data(), flips.data(), rng);
    for (const std::size_t k : odd_ones) rarely += (flips[k] != 0) == (k % 2 == 0) ? 1 : 0;
    for (std::size_t k = 1; k < 5; ++k) ASSERT_EQ(flips[k], 0);
  }
  const double mean = 7 * kDraws * 0.75;
  EXPECT_NEAR(rarely, mean, 6.0 * std::sqrt(mean * 0.25));
}

/// Sixteen bits alone: what is drawn agrees with the same digits looked at one by one, and is listed.
TEST(FlipLaw, DigitsDecideAboutTheirOwnVariables) {
  Rng rng(4, 4);
  std::vector<float> narrow(3 * kFlipsTogether);
  for (float& one : narrow) one = static_cast<float>(rng.uniform() - 0.5);
  const std::vector<double> wide(narrow.begin(), narrow.end());
  std::vector<std::int32_t> flips(narrow.size());
  std::vector<std::int64_t> wide_flips(narrow.size());
  std::vector<std::uint64_t> words(Rng::kBatch);
  std::vector<int> changes(narrow.size()), wide_changes(narrow.size());
  constexpr int kDraws = 20000;
  for (int draw = 0; draw < kDraws; ++draw) {
    rng.fill(words);
    FlipDraws::draw<float>(narrow, words.data(), flips.data(), rng);
    FlipDraws::draw<double>(wide, words.data(), wide_flips.data(), rng);
    for (std::size_t k = 0; k < narrow.size(); ++k) {
      changes[k] += flips[k] != 0 ? 1 : 0;
      wide_changes[k] += wide_flips[k] != 0 ? 1 : 0;
      ASSERT_EQ(bits_of_flips(flips.data() + k / 32 * 32) >> (k % 32) & 1, flips[k] != 0 ? 1U : 0U);
      ASSERT_EQ(bits_of_flips(wide_flips.data() + k / 32 * 32) >> (k % 32) & 1, wide_flips[k] != 0 ? 1U : 0U);
    }
    double log = 0.0;
    for (std::size_t k = 0; k < narrow.size(); ++k) {
      const double change = narrow[k] < 0.0F ? 1.0 + wide[k] : wide[k];
      log += std::log(flips[k] != 0 ? change : 1.0 - change);
    }
    ASSERT_NEAR(log_prob_of_flips<float>(narrow, flips.data()), log, 1e-11);
  }
  for (std::size_t k = 0; k < narrow.size(); ++k) {
    const double prob = narrow[k] < 0.0F ? 1.0 + wide[k] : wide[k];
    const double error = 6.0 * std::sqrt(kDraws * prob * (1.0 - prob)) + 1.0;
    EXPECT_NEAR(changes[k], kDraws * prob, error);
    EXPECT_NEAR(wide_changes[k], kDraws * prob, error);
  }
}

TEST(Rbm, FirstOrderRatiosInFloatsAreThoseInDoubles) {
  for (const Index visible : {7U, 40U, 53U}) {
    const Rbm cold(random_rbm(visible, 21, 0.7, 3));
    const Rbm rbm = cold.heated(0.6, {std::vector<double>(visible, 0.3), std::vector<double>(21, -0.2)});
    Rng rng(2, 2);
    std::vector<Rbm::State> states;
    for (int c = 0; c < 19; ++c) {
      std::vector<Value> x(visible);
      for (Value& level : x) level = rng.uniform() < 0.5 ? 1 : 0;
      states.push_back(rbm.make_state(x));
    }
    const float untouched = -77.0F;
    std::vector<std::vector<float>> narrow(states.size(), std::vector<float>(visible + 1, untouched));
    std::vector<std::vector<double>> wide(states.size(), std::vector<double>(visible));
    std::vector<const Rbm::State*> all;
    std::vector<float*> narrow_out;
    std::vector<double*> wide_out;
    for (std::size_t c = 0; c < states.size(); ++c) {
      all.push_back(&states[c]);
      narrow_out.push_back(narrow[c].data());
      wide_out.push_back(wide[c].data());
    }
    rbm.first_order_log_ratios(all, std::span<float* const>(narrow_out));
    rbm.first_order_log_ratios(all, std::span<double* const>(wide_out));
    std::vector<float> alone(visible + 1, untouched);
    float* alone_out[] = {alone.data()};
    for (std::size_t c = 0; c < states.size(); ++c) {
      rbm.first_order_log_ratios(std::span(all).subspan(c, 1), std::span<float* const>(alone_out));
      EXPECT_EQ(alone, narrow[c]);
      EXPECT_EQ(alone.back(), untouched);
      for (Index i = 0; i < visible; ++i) EXPECT_NEAR(narrow[c][i], wide[c][i], 1e-5);
    }
  }
}

}  // namespace poise::flip_law_test
