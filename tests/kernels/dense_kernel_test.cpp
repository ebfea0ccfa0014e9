/// RBMs as targets, and the transition matrices of dense and block kernels on them and on categorical targets.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include <poise/extend/kernels/block_gibbs.hpp>
#include <poise/extend/kernels/informed_proposal.hpp>
#include "kernels/rbm_gibbs.hpp"
#include "models/network/markov_network.hpp"
#include "support/dense_exactness.hpp"
#include "support/exactness.hpp"
#include "support/faults.hpp"
#include "support/plain.hpp"
#include "support/rough_target.hpp"
#include "support/small_networks.hpp"
#include "support/small_rbms.hpp"
#include "support/table_target.hpp"

namespace poise::dense_kernel_test {

using namespace poise::testing;

static_assert(GradientTarget<Rbm>);
static_assert(BlockTarget<Rbm>);

Rbm small_rbm() { return Rbm(random_rbm(6, 4, 1.2, 1)); }
Rbm steep_rbm() { return Rbm(random_rbm(5, 11, 8.0, 2)); }

TEST(Rbm, LogProbAndRatiosAreThoseOfTheDefinition) {
  for (const auto& weights : {random_rbm(6, 4, 1.2, 1), random_rbm(5, 11, 8.0, 2), random_rbm(3, 300, 0.5, 3)}) {
    const Rbm target(weights);
    for (const Levels& x : all_states(target)) {
      const auto state = target.make_state(x);
      const double log_p = plain_log_prob(weights, x);
      ASSERT_NEAR(target.log_prob(state), log_p, 1e-10);
      std::vector<double> ratios(target.num_moves());
      target.log_ratios(state, ratios);
      for (Index i = 0; i < target.num_moves(); ++i) {
        Levels after = x;
        after[i] = static_cast<Value>(1 - after[i]);
        const double exact = plain_log_prob(weights, after) - log_p;
        ASSERT_NEAR(target.log_ratio(state, target.move_at(state, i)), exact, 1e-10);
        ASSERT_NEAR(ratios[i], exact, 1e-10);
      }
    }
  }
}

TEST(Rbm, NothingDrifts) {
  const Rbm target = small_rbm();
  auto state = target.make_state(Levels(6, 0));
  Rng rng(5, 5);
  for (int step = 0; step < 100000; ++step) {
    target.apply(state, target.move_at(state, static_cast<Index>(rng.uniform() * 6)));
  }
  const auto fresh = target.make_state(state.x);
  EXPECT_EQ(state.units, fresh.units);
  EXPECT_EQ(state.on, fresh.on);
  EXPECT_EQ(target.log_prob(state), target.log_prob(fresh));
}

TEST(Rbm, FirstOrderRatiosAreTheGradientAndDoNotDependOnCompany) {
  const RbmWeights weights = random_rbm(20, 13, 0.7, 4);
  const Rbm target(weights);
  std::vector<Rbm::State> states;
  Rng rng(1, 1);
  for (int c = 0; c < 19; ++c) {
    Levels x(20);
    for (Value& level : x) level = rng.uniform() < 0.5 ? 1 : 0;
    states.push_back(target.make_state(x));
  }
  std::vector<const Rbm::State*> all;
  std::vector<std::vector<double>> together(19, std::vector<double>(20));
  std::vector<double*> out;
  for (int c = 0; c < 19; ++c) {
    all.push_back(&states[c]);
    out.push_back(together[c].data());
  }
  target.first_order_log_ratios(all, out);
  for (int c = 0; c < 19; ++c) {
    std::vector<double> alone(20);
    const Rbm::State* one[] = {&states[c]};
    double* place[] = {alone.data()};
    target.first_order_log_ratios(one, place);
    EXPECT_EQ(alone, together[c]);
    for (Index i = 0; i < 20; ++i) {
      double slope = weights.visible_bias[i];
      for (Index j = 0; j < 13; ++j) slope += states[c].on[j] * weights.weights[j * 20 + i];
      EXPECT_NEAR(alone[i], states[c].x[i] != 0 ? -slope : slope, 1e-5);
    }
  }
}

TEST(Rbm, RefusesWhatItCannotHold) {
  RbmWeights weights = random_rbm(3, 2, 1.0, 1);
  weights.weights[0] = NAN;
  EXPECT_THROW(Rbm{weights}, InputError);
  weights.weights[0] = 1e6F;
  EXPECT_THROW(Rbm{weights}, InputError);
  weights.weights.pop_back();
  EXPECT_THROW(Rbm{weights}, InputError);
}

TEST(Exactness, GradientSamplersOnRbm) { expect_dense_balance(small_rbm(), Ratios::first_order); }
TEST(Exactness, GradientSamplersOnSteepRbm) { expect_dense_balance(steep_rbm(), Ratios::first_order); }
TEST(Exactness, ExactRatiosOnRbm) { expect_dense_balance(small_rbm(), Ratios::exact); }
TEST(Exactness, GradientSamplersOnCategorical) {
  expect_dense_balance(RoughTarget(TableTarget::random({3, 2, 1, 4, 2}, 3.0, 5)), Ratios::first_order);
}
TEST(Exactness, GradientSamplersWithZeros) {
  expect_dense_balance(RoughTarget(TableTarget::random({2, 3, 2, 3}, 2.0, 6, 8)), Ratios::first_order);
}

/// The plain kernel reads the same random numbers, so it must make the same chain, as far as floats and doubles agree.
TEST(PlainKernel, MakesTheSameChainOnRbm) {
  const Rbm target(random_rbm(30, 17, 0.4, 2));
  for (const auto function : {BalancingFunction::Kind::sqrt, BalancingFunction::Kind::barker}) {
    const InformedProposal<Rbm> fast(BalancingFunction(function), Ratios::first_order);
    const PlainGradient plain{BalancingFunction(function)};
    auto a = target.make_state(Levels(30, 0));
    auto b = a;
    InformedProposal<Rbm>::Scratch fast_scratch(target);
    PlainGradient::Scratch plain_scratch(target);
    fast.prepare(target, a, fast_scratch);
    Rng fast_rng(4, 4);
    Rng plain_rng(4, 4);
    for (int step = 0; step < 2000; ++step) {
      const StepInfo one = fast.step(target, a, fast_scratch, fast_rng);
      const StepInfo other = plain.step(target, b, plain_scratch, plain_rng);
      ASSERT_NEAR(one.accept_prob, other.accept_prob, 1e-5) << "at step " << step;
      ASSERT_EQ(a.x, b.x) << "at step " << step;
    }
  }
}

TEST(Exactness, BlockGibbsOnRbm) {
  for (const Index size : {1U, 2U, 4U, 6U}) expect_block_gibbs_invariant(small_rbm(), size);
  expect_block_gibbs_invariant(steep_rbm(), 3);
}
TEST(Exactness, BlockGibbsOnCategorical) {
  for (const Index size : {1U, 2U, 3U}) {
    expect_block_gibbs_invariant(TableTarget::random({3, 2, 1, 4, 2}, 3.0, 5), size);
    expect_block_gibbs_invariant(TableTarget::random({2, 3, 2, 3}, 2.0, 6, 8), size);
    expect_block_gibbs_invariant(MarkovNetwork(mixed_network(0.2, 2)), size);
    expect_block_gibbs_invariant(MarkovNetwork(mixed_network_with_evidence(0.1, 2)), 2);
  }
}
TEST(Exactness, BlockBalancedOnRbm) {
  for (const Index size : {1U, 2U, 4U, 6U}) expect_block_balanced_invariant(small_rbm(), size);
  expect_block_balanced_invariant(steep_rbm(), 3);
}
TEST(Exactness, BlockBalancedOnCategorical) {
  for (const Index size : {1U, 2U, 3U}) {
    expect_block_balanced_invariant(TableTarget::random({3, 2, 1, 4, 2}, 3.0, 5), size);
    expect_block_balanced_invariant(TableTarget::random({2, 3, 2, 3}, 2.0, 6, 8), size);
    expect_block_balanced_invariant(MarkovNetwork(mixed_network(0.2, 2)), size);
    expect_block_balanced_invariant(MarkovNetwork(mixed_network_with_evidence(0.1, 2)), 2);
  }
}
TEST(Exactness, HammingBallOnRbm) {
  for (const unsigned radius : {1U, 2U, 3U}) expect_ball_invariant(small_rbm(), 4, radius);
}
TEST(Exactness, HammingBallOnCategorical) {
  for (const unsigned radius : {1U, 2U}) {
    expect_ball_invariant(TableTarget::random({3, 2, 1, 4, 2}, 3.0, 5), 3, radius);
    expect_ball_invariant(MarkovNetwork(mixed_network(0.2, 2)), 3, radius);
  }
}

TEST(HammingBall, CountsItsEvaluationsTruly) {
  const Rbm target(random_rbm(12, 3, 1.0, 1));
  const std::size_t sizes[] = {11, 56, 176};
  for (const unsigned radius : {1U, 2U, 3U}) {
    auto state = target.make_state(Levels(12, 0));
    BlockScratch<Rbm> scratch(target);
    Rng rng(1, 1);
    HammingBall<Rbm>(10, radius).step(target, state, scratch, rng);
    EXPECT_EQ(scratch.evals.ratio, sizes[radius - 1]);
  }
}

TEST(Range, DenseAndBlockKernelsFindIllegalNumbers) {
  for (const double illegal : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    for (const std::size_t where : {0U, 1U, 3U, 7U}) {  // the start, and one, two and three flips from it
      const TableTarget table = flat_but_for({2, 2, 2}, where, illegal);
      const RoughTarget rough{table};
      for (const auto& [name, balance] : all_balances()) {
        EXPECT_TRUE(finds_fault(table, InformedProposal<TableTarget>(balance))) << name << where << illegal;
        EXPECT_TRUE(finds_fault(rough, InformedProposal<RoughTarget>(balance, Ratios::first_order)))
            << name << where << illegal;
      }
      for (const Index size : {1U, 2U, 3U}) {
        EXPECT_TRUE(finds_fault(table, BlockGibbs<TableTarget>(size))) << size << where << illegal;
        EXPECT_TRUE(finds_fault(table, HammingBall<TableTarget>(size, 1))) << size << where << illegal;
        EXPECT_TRUE(finds_fault(table, BlockBalanced<TableTarget>(BalancingFunction(), size)))
            << size << where << illegal;
      }
    }
  }
}

/// A target whose log p is sound and whose ratios are not.
class BrokenRatios : public TableTarget {
 public:
  BrokenRatios(std::vector<Index> cardinalities, double ratio)
      : TableTarget(flat_but_for(std::move(cardinalities), 0, 0.0)), ratio_(ratio) {}
  [[nodiscard]] double log_ratio(const State&, Move) const { return ratio_; }

 private:
  double ratio_;
};

TEST(Range, BlockKernelsDoNotPassOverABrokenRatio) {
  for (const double illegal : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const BrokenRatios target({2, 2, 2}, illegal);
    EXPECT_TRUE(finds_fault(target, BlockGibbs<BrokenRatios>(2)));
    EXPECT_TRUE(finds_fault(target, HammingBall<BrokenRatios>(2, 1)));
    EXPECT_TRUE(finds_fault(target, BlockBalanced<BrokenRatios>(BalancingFunction(), 2)));
  }
}

TEST(Range, DenseKernelsKeepAnIsolatedState) {
  std::vector<double> log_p(8, -std::numeric_limits<double>::infinity());
  log_p[0] = log_p[7] = 0.0;
  const TableTarget target({2, 2, 2}, log_p);
  for (const auto& [name, balance] : all_balances()) {
    SCOPED_TRACE(name);
    expect_stays(target, InformedProposal<TableTarget>(balance));
    expect_stays(RoughTarget(target), InformedProposal<RoughTarget>(balance, Ratios::first_order));
  }
  expect_stays(target, BlockGibbs<TableTarget>(2));
  expect_stays(target, HammingBall<TableTarget>(2, 1));
  expect_stays(target, BlockBalanced<TableTarget>(BalancingFunction(), 2));
}

/// K(x, x') = sum over hidden states of P(h | x) P(x' | h).
void expect_rbm_gibbs_invariant(const Rbm& target) {
  const auto states = all_states(target);
  const auto p = probabilities(target, states);
  const Index visible = target.num_variables();
  const Index hidden = target.num_hidden();
  std::vector<double> after(states.size(), 0.0);
  std::vector<double> activations(visible);
  for (std::uint64_t h = 0; h < std::uint64_t{1} << hidden; ++h) {
    for (Index i = 0; i < visible; ++i) activations[i] = target.visible_activation(i, {&h, 1});
    double mass = 0.0;
    for (std::size_t s = 0; s < states.size(); ++s) {
      RbmUnits x(visible);
      x.take(states[s]);
      double prob = p[s];
      for (Index j = 0; j < hidden; ++j) {
        const double activation = target.hidden_activation(j, x.bits());
        prob /= 1.0 + std::exp((h >> j & 1U) != 0 ? -activation : activation);
      }
      mass += prob;
    }
    for (std::size_t t = 0; t < states.size(); ++t) {
      double prob = mass;
      for (Index i = 0; i < visible; ++i) prob /= 1.0 + std::exp(states[t][i] != 0 ? -activations[i] : activations[i]);
      after[t] += prob;
    }
  }
  for (std::size_t t = 0; t < states.size(); ++t) EXPECT_NEAR(after[t], p[t], 1e-12);
}
TEST(Exactness, RbmGibbs) {
  expect_rbm_gibbs_invariant(small_rbm());
  expect_rbm_gibbs_invariant(steep_rbm());
}

TEST(Law, DenseAndBlockKernelsKeepIt) {
  const Rbm rbm(random_rbm(4, 3, 1.0, 7));
  expect_law_kept(rbm, InformedProposal<Rbm>(BalancingFunction(), Ratios::first_order), 5);
  expect_law_kept(rbm, InformedProposal<Rbm>(BalancingFunction(BalancingFunction::Kind::barker), Ratios::exact), 5);
  expect_law_kept(rbm, BlockGibbs<Rbm>(2), 3);
  expect_law_kept(rbm, HammingBall<Rbm>(3, 2), 3);
  expect_law_kept(rbm, BlockBalanced<Rbm>(BalancingFunction(BalancingFunction::Kind::barker), 2), 3);
  expect_law_kept(rbm, RbmGibbs(rbm), 2);
  const TableTarget table = TableTarget::random({3, 2, 3}, 1.0, 5);
  expect_law_kept(table, BlockGibbs<TableTarget>(2), 3);
  expect_law_kept(table, HammingBall<TableTarget>(2, 1), 3);
  expect_law_kept(table, BlockBalanced<TableTarget>(BalancingFunction(), 2), 3);
  expect_law_kept(table, InformedProposal<TableTarget>(BalancingFunction()), 5);
}

}  // namespace poise::dense_kernel_test
