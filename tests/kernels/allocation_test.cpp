/// Steps take no memory: what they need is there after `prepare`. Hot loops must not allocate, for they must not throw.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include <poise/extend/kernels/block_balanced.hpp>
#include <poise/extend/kernels/block_gibbs.hpp>
#include <poise/extend/kernels/factorised_proposal.hpp>
#include <poise/extend/kernels/gibbs.hpp>
#include <poise/extend/kernels/informed_proposal.hpp>
#include <poise/extend/kernels/locally_balanced.hpp>
#include <poise/extend/kernels/path_proposal.hpp>
#include "engines/cpu/bits/ising_bits.hpp"
#include "engines/cpu/lanes/lane_layout.hpp"
#include "kernels/rbm_gibbs.hpp"
#include "kernels/weighted_gibbs.hpp"
#include "models/network/markov_network.hpp"
#include "support/selection_cases.hpp"
#include "support/small_networks.hpp"
#include "support/small_rbms.hpp"
#include "support/small_targets.hpp"

#if !defined(POISE_SANITIZED)

namespace {
thread_local std::size_t allocations = 0;
}

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace poise::allocation_test {

using namespace poise::testing;

template <class T, class K>
std::size_t allocations_of_steps(const T& target, const K& kernel) {
  auto state = target.make_state(std::vector<Value>(target.num_variables(), 0));
  typename K::Scratch scratch(target);
  Rng rng(1, 1);
  kernel.prepare(target, state, scratch);
  const std::size_t before = allocations;
  for (int step = 0; step < 100; ++step) kernel.step(target, state, scratch, rng);
  return allocations - before;
}

std::vector<Value> with(std::vector<Value> x, Index j) {
  x[j] = 1;
  return x;
}

TEST(Allocation, SweepsOfBitsTakeNoMemory) {
  const auto lattice = std::make_shared<const LatticeIsing>(6, 6, Boundary::torus, 0.4, random_field(36, 1.0, 1));
  const auto tables = std::make_shared<const BitTables>(bit_model(lattice));
  for (const std::size_t chains : {1U, 20U, 130U, 512U}) {
    BitTile block(tables, {0, chains}, 1, 0);
    block.reset_counts();
    const std::size_t before = allocations;
    block.sweep(100);
    EXPECT_EQ(allocations - before, 0U);
  }
}

TEST(Allocation, SweepsOfLanesTakeNoMemory) {
  const auto network = std::make_shared<const MarkovNetwork>(mixed_network(0.2, 2));
  const auto model = std::make_shared<const LaneModel>(lane_source(network));
  for (const std::size_t chains : {1U, 20U, 64U}) {
    LaneTile block(model, {0, chains}, 1, 0);
    block.reset_counts();
    block.reset_sums();
    const std::size_t before = allocations;
    block.sweep(100000);
    EXPECT_EQ(allocations - before, 0U);
  }
}

TEST(Allocation, StepsTakeNoMemory) {
  const LatticeIsing lattice(6, 6, Boundary::torus, 0.4, random_field(36, 1.0, 1));
  EXPECT_EQ(allocations_of_steps(lattice, LocallyBalanced<LatticeIsing>()), 0U);
  EXPECT_EQ(allocations_of_steps(lattice, BlockGibbs<LatticeIsing>(4)), 0U);
  EXPECT_EQ(allocations_of_steps(lattice, HammingBall<LatticeIsing>(9, 2)), 0U);
  const MarkovNetwork network(mixed_network(0.2, 2));
  EXPECT_EQ(allocations_of_steps(network, Gibbs<MarkovNetwork>()), 0U);
  EXPECT_EQ(allocations_of_steps(network, BlockGibbs<MarkovNetwork>(2)), 0U);
  EXPECT_EQ(allocations_of_steps(network, LocallyBalanced<MarkovNetwork>()), 0U);
  for (const double scale : {0.5, 20.0}) {  // of the latter, products of a block's factors leave the range of doubles
    const Rbm rbm(random_rbm(12, 21, scale, 8));
    EXPECT_EQ(allocations_of_steps(rbm, BlockGibbs<Rbm>(6)), 0U);
    EXPECT_EQ(allocations_of_steps(rbm, HammingBall<Rbm>(6, 2)), 0U);
    EXPECT_EQ(allocations_of_steps(rbm, BlockBalanced<Rbm>(BalancingFunction(), 6)), 0U);
    EXPECT_EQ(allocations_of_steps(rbm, RbmGibbs(rbm)), 0U);
  }
}

/// Room grows when more variables are included than ever before, and is kept, also where a state is computed anew.
TEST(Allocation, FlipsOfSelectionTakeNoMemory) {
  for (const SelectionCase& one : selection_cases()) {
    if (one.prior.slab_variances.size() > 1) continue;
    const SelectionTarget target(make_case(one, 7)->law);
    const WeightedGibbs kernel(5.0);
    SelectionTarget::State state = target.make_state(std::vector<Value>(7, 0));
    for (const Index j : target.law().forced()) state = target.make_state(with(state.x, j));
    WeightedGibbs::Scratch scratch(target);
    Rng rng(1, 1);
    kernel.prepare(target, state, scratch);
    for (int step = 0; step < 2000; ++step) kernel.step(target, state, scratch, rng);
    const std::size_t before = allocations;
    const std::uint64_t flips = scratch.evals.changes;
    for (int step = 0; step < 1000; ++step) kernel.step(target, state, scratch, rng);
    constexpr std::size_t kGrowth = 8;
    EXPECT_LE(allocations - before, kGrowth) << one.name;
    EXPECT_GT(scratch.evals.changes - flips, 2048U) << one.name;  // twice as many as until a state is computed anew
  }
}

template <class T>
void expect_no_allocations_of_many_changes(const T& target, Ratios ratios) {
  const BalancingFunction function(BalancingFunction::Kind::sqrt, -0.5);
  for (const FactorisedForm form : {FactorisedForm::relaxation, FactorisedForm::langevin}) {
    EXPECT_EQ(allocations_of_steps(target, FactorisedProposal<T>(form, function, ratios)), 0U);
  }
  EXPECT_EQ(allocations_of_steps(target, PathProposal<T>(function.with_level(1.0), ratios)), 0U);
  EXPECT_EQ(allocations_of_steps(target, InformedProposal<T>(function, ratios)), 0U);
}

TEST(Allocation, NeitherDoManyChangesAStep) {
  expect_no_allocations_of_many_changes(LatticeIsing(6, 6, Boundary::torus, 0.4, random_field(36, 1.0, 1)),
                                        Ratios::exact);
  expect_no_allocations_of_many_changes(MarkovNetwork(mixed_network(0.2, 2)), Ratios::exact);
  const Rbm rbm(random_rbm(12, 21, 0.5, 8));  // the first exact ratio that is asked for makes its table
  expect_no_allocations_of_many_changes(rbm, Ratios::exact);
  expect_no_allocations_of_many_changes(rbm, Ratios::first_order);
}

/// Ratios so steep that Z(x') is summed over all moves in the log domain.
TEST(Allocation, NeitherDoTotalsOutOfRange) {
  const GraphIsing target({999.8656357558876, 0.8474337369372327, 0.763774618976614, 0.3},
                          std::vector<Edge>{{0, 1, 1000.0}, {0, 2, 1000.0}});
  const LocallyBalanced<GraphIsing> kernel{BalancingFunction()};
  auto state = target.make_state(std::vector<Value>{1, 0, 0, 0});
  LocallyBalanced<GraphIsing>::Scratch scratch(target);
  kernel.prepare(target, state, scratch);
  const std::size_t before = allocations;
  bool out_of_range = false;
  for (Index move = 0; move < 4; ++move) {
    out_of_range = out_of_range || !kernel.evaluate(target, state, scratch, move).in_range;
  }
  EXPECT_TRUE(out_of_range);
  EXPECT_EQ(allocations, before);
}

}  // namespace poise::allocation_test

#endif
