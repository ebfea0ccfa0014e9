/// Models for chains across lanes, and how a block of them is compared with one on the CPU.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "engines/cpu/lanes/lane_layout.hpp"
#include "engines/cpu/lanes/lane_tile.hpp"
#include "support/small_networks.hpp"
#include "support/small_targets.hpp"

namespace poise::testing {

/// A network in which variable i is in a factor with each of the next two, and in one of four with some further on.
inline Network chain_network(Index variables, Index levels, double zeros, std::uint64_t seed) {
  RandomNetwork recipe;
  recipe.cardinalities.assign(variables, levels);
  for (Index i = 0; i < variables; ++i) {
    recipe.scopes.push_back({i, (i + 1) % variables});
    if (i % 2 == 0) recipe.scopes.push_back({(i + 2) % variables, i});
    if (i % 5 == 0 && levels < 10 && variables > 11) {
      recipe.scopes.push_back({i, (i + 3) % variables, (i + 7) % variables, (i + 11) % variables});
    }
  }
  recipe.spread = 1.2;
  recipe.zeros = zeros;
  recipe.seed = seed;
  return recipe.make();
}

/// Levels from one to twelve, tables over few and over many variables: one of them has places of 18 bits.
inline Network uneven_network(double spread, double zeros, std::uint64_t seed) {
  RandomNetwork recipe;
  recipe.cardinalities = {2, 2, 3, 2, 2, 4, 2, 5, 2, 2, 1, 2, 3, 2, 9, 12, 2, 2, 2, 2, 7, 2, 2, 2};
  recipe.scopes = {{0, 1},      {1, 2},
                   {2, 3, 5},   {4, 0, 3},
                   {5, 7},      {11, 13, 0, 6, 9, 1},
                   {7, 2},      {12, 5},
                   {12, 13},    {10, 11, 8},
                   {9},         {14, 15},
                   {15, 16, 0}, {14},
                   {20, 2},     {0, 1, 3, 4, 6, 8, 9, 11, 13, 16, 17, 18, 19, 21, 22, 23, 7}};
  recipe.spread = spread;
  recipe.zeros = zeros;
  recipe.seed = seed;
  return recipe.make();
}

/// A graph in which everybody has all the others as neighbours.
inline std::shared_ptr<const GraphIsing> full_graph(Index n, double scale, std::uint64_t seed) {
  Rng rng(seed, 1);
  std::vector<Edge> edges;
  for (Index i = 0; i < n; ++i) {
    for (Index j = i + 1; j < n; ++j) edges.push_back({i, j, scale * (2.0 * rng.uniform() - 1.0)});
  }
  return std::make_shared<const GraphIsing>(random_field(n, scale, seed), edges);
}

/// A state of positive probability, for networks whose first state is one.
template <class T>
std::vector<Value> possible_state(const T& target, Rng& rng) {
  std::vector<Value> x(target.num_variables());
  for (int attempt = 0; attempt < 200; ++attempt) {
    for (Index i = 0; i < x.size(); ++i) x[i] = static_cast<Value>(rng.uniform() * target.cardinality(i));
    if (target.log_prob(target.make_state(x)) > -std::numeric_limits<double>::infinity()) return x;
  }
  return std::vector<Value>(x.size(), 0);
}

/// Blocks of the CPU that have the chains of a group.
class LaneBlocks {
 public:
  LaneBlocks(const std::shared_ptr<const LaneModel>& model, ChainGroup group, std::uint64_t seed,
             std::uint64_t first_chain) {
    for (std::size_t done = 0; done < group.count; done += kTogether) {
      blocks_.emplace_back(model, ChainGroup{group.first + done, std::min(kTogether, group.count - done)}, seed,
                           first_chain);
    }
    first_ = group.first;
  }
  LaneTile& of(std::size_t chain) { return blocks_[(chain - first_) / kTogether]; }
  std::vector<LaneTile>& all() { return blocks_; }

 private:
  static constexpr std::size_t kTogether = 40;
  std::size_t first_ = 0;
  std::vector<LaneTile> blocks_;
};

/// The draws of a block are those of the CPU, and so are its counts; its conditionals are as near as floats come.
template <class T, class Block>
void expect_draws_of_the_cpu(const T& target, const std::shared_ptr<const LaneModel>& model, Block& block,
                             std::uint64_t first_chain, std::uint64_t seed) {
  const ChainGroup group = block.group();
  LaneBlocks expected(model, group, seed, first_chain);
  Rng rng(9, 9);
  for (std::size_t c = group.first; c < group.first + group.count; ++c) {
    const std::vector<Value> start = possible_state(target, rng);
    block.set_levels(c, start);
    expected.of(c).set_levels(c, start);
  }
  const auto expect_same_levels = [&] {
    std::vector<Value> here(target.num_variables()), there(here);
    for (std::size_t c = group.first; c < group.first + group.count; ++c) {
      expected.of(c).get_levels(c, here);
      block.get_levels(c, there);
      ASSERT_EQ(here, there) << "chain " << c << ", sweep " << block.sweeps();
    }
  };
  const auto sweep = [&](std::uint64_t sweeps) {
    for (LaneTile& one : expected.all()) one.sweep(sweeps);
    block.sweep(sweeps);
  };
  sweep(1);
  expect_same_levels();
  sweep(3);
  expect_same_levels();
  for (LaneTile& one : expected.all()) one.reset_counts(), one.reset_sums();
  block.reset_counts();
  block.reset_sums();
  sweep(300);  // bytes are full after 255
  expect_same_levels();
  std::vector<std::uint64_t> here(model->num_entries()), there(here);
  std::vector<double> sums_here(here.size()), sums_there(here.size());
  std::vector<double> allowed(here.size());
  for (std::size_t k = 0; k + 1 < model->variables().size(); ++k) {
    const LaneModel::Variable& variable = model->variables()[k];
    for (Index v = 1; v < variable.levels; ++v) {
      // Both may be off by as much as floats may be in one sweep, and by what sums of 255 floats round.
      allowed[model->entries()[variable.variable] + v - 1] =
          300.0 * (4.0 * (0.5 * variable.spread + variable.margin + 0x1p-21) + 255.0 * 0x1p-23);
    }
  }
  for (std::size_t c = group.first; c < group.first + group.count; ++c) {
    expected.of(c).get_counts(c, here);
    block.get_counts(c, there);
    ASSERT_EQ(here, there) << "chain " << c;
    expected.of(c).get_sums(c, sums_here);
    block.get_sums(c, sums_there);
    for (std::size_t e = 0; e < here.size(); ++e) ASSERT_NEAR(sums_here[e], sums_there[e], allowed[e]);
  }
}

}  // namespace poise::testing
