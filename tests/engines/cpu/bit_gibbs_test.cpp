/// Gibbs with chains as bits: the conditionals it draws from, the draws against a scalar sweep, and what a chain
/// depends on.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>

#include <poise/extend/check/exactness.hpp>
#include <poise/extend/engines/samplers.hpp>
#include "engines/common/keyed_words.hpp"
#include "engines/cpu/bits/bit_sums.hpp"
#include "engines/cpu/bits/bit_tile.hpp"
#include "engines/cpu/bits/ising_bits.hpp"
#include "support/small_targets.hpp"

namespace poise::bit_gibbs_test {

using namespace poise::testing;

std::shared_ptr<const LatticeIsing> lattice(Index rows, Index columns, Boundary boundary) {
  return std::make_shared<const LatticeIsing>(rows, columns, boundary, 0.45, random_field(rows * columns, 1.0, 12));
}

/// A graph in which nobody has more than `degree` neighbours, couplings of both signs.
std::shared_ptr<const GraphIsing> graph(Index n, Index degree, std::uint64_t seed) {
  Rng rng(seed, 1);
  std::vector<Edge> edges;
  std::vector<Index> degrees(n, 0);
  for (Index i = 0; i < n; ++i) {
    for (Index j = i + 1; j < n; ++j) {
      if (degrees[i] == degree || degrees[j] == degree || rng.uniform() < 0.4) continue;
      edges.push_back({i, j, 2.0 * rng.uniform() - 1.0});
      ++degrees[i], ++degrees[j];
    }
  }
  return std::make_shared<const GraphIsing>(random_field(n, 1.0, seed), edges);
}

double probability(std::uint64_t threshold) { return std::ldexp(static_cast<double>(threshold), -64); }

/// The product of the single-site kernels that the tables say, in their order.
TransitionMatrix sweep_matrix(const BitTables& tables, const StateSpace& space) {
  TransitionMatrix matrix(space.size(), std::vector<double>(space.size(), 0.0));
  for (std::size_t s = 0; s < space.size(); ++s) matrix[s][s] = 1.0;
  for (const BitTables::Run& run : tables.runs()) {
    for (std::size_t k = 0; k < run.count; ++k) {
      const Index i = run.variable[k];
      const std::vector<Index> blanket = tables.blanket(i);
      TransitionMatrix next(space.size(), std::vector<double>(space.size(), 0.0));
      for (std::size_t middle = 0; middle < space.size(); ++middle) {
        unsigned configuration = 0;
        for (std::size_t j = 0; j < blanket.size(); ++j) {
          configuration |= static_cast<unsigned>(space.states[middle][blanket[j]]) << j;
        }
        const double up = probability(tables.threshold(i, configuration));
        for (Value level = 0; level < 2; ++level) {
          std::vector<Value> after = space.states[middle];
          after[i] = level;
          const std::size_t end = space.number(after);
          for (std::size_t s = 0; s < space.size(); ++s) {
            next[s][end] += matrix[s][middle] * (level == 1 ? up : 1.0 - up);
          }
        }
      }
      matrix = std::move(next);
    }
  }
  return matrix;
}

template <class T>
void expect_leaves_the_law(const std::shared_ptr<const T>& target) {
  const BitTables tables(bit_model(target));
  const StateSpace space = enumerate_states(*target);
  const TransitionMatrix matrix = sweep_matrix(tables, space);
  for (std::size_t end = 0; end < space.size(); ++end) {
    double mass = 0.0;
    for (std::size_t s = 0; s < space.size(); ++s) mass += space.probabilities[s] * matrix[s][end];
    EXPECT_NEAR(mass, space.probabilities[end], 1e-14);
  }
}

TEST(BitGibbs, LeavesTheLawAlone) {
  expect_leaves_the_law(std::make_shared<const LatticeIsing>(small_torus()));
  expect_leaves_the_law(std::make_shared<const LatticeIsing>(small_open()));
  expect_leaves_the_law(std::make_shared<const LatticeIsing>(small_line()));
  expect_leaves_the_law(
      std::make_shared<const LatticeIsing>(2, 3, Boundary::open, 20.0, random_field(6, 30.0, 8)));  // steep
  for (const Index degree : {0U, 2U, 4U, 5U, 6U}) expect_leaves_the_law(graph(8, degree, 3 + degree));
}

TEST(BitGibbs, LargerBlanketsDoNotFit) {
  EXPECT_TRUE(BitTables::fits(bit_model(graph(9, 6, 1))));
  EXPECT_FALSE(BitTables::fits(bit_model(std::make_shared<const GraphIsing>(small_graph()))));
}

/// The random number of a chain for an update, all 64 digits of it.
std::uint64_t number_of(std::uint64_t seed, std::uint64_t chain, std::uint64_t update) {
  const WordKey key = word_key(seed, Stream::bits, chain / 16);
  std::uint64_t number = 0;
  for (unsigned digit = 0; digit < 64; ++digit) {
    const std::uint64_t word = keyed_word(key.first, key.second, (update * 16 + digit / 4) * kWordStep);
    number = 2 * number + (word >> (16 * (digit % 4) + chain % 16) & 1);
  }
  return number;
}

/// One chain, one variable after the other.
template <class T>
void sweep_scalar(const std::shared_ptr<const T>& target, std::uint64_t seed, std::uint64_t chain, std::uint64_t sweep,
                  std::vector<Value>& x) {
  const BitTables tables(bit_model(target));
  for (const BitTables::Run& run : tables.runs()) {
    for (std::size_t k = 0; k < run.count; ++k) {
      const Index i = run.variable[k];
      const std::vector<Index> blanket = tables.blanket(i);
      unsigned configuration = 0;
      for (std::size_t j = 0; j < blanket.size(); ++j) configuration |= static_cast<unsigned>(x[blanket[j]]) << j;
      x[i] = number_of(seed, chain, sweep * tables.variables() + i) < tables.threshold(i, configuration) ? 1 : 0;
    }
  }
}

template <class T>
void expect_scalar_sweeps(const std::shared_ptr<const T>& target, ChainGroup group, std::uint64_t first_chain) {
  const auto tables = std::make_shared<const BitTables>(bit_model(target));
  BitTile block(tables, group, 5, first_chain);
  const Index n = target->num_variables();
  std::vector<std::vector<Value>> expected;
  Rng rng(9, 9);
  for (std::size_t c = 0; c < group.count; ++c) {
    expected.emplace_back(n);
    for (Value& level : expected.back()) level = rng.uniform() < 0.5 ? 1 : 0;
    block.set_levels(group.first + c, expected.back());
  }
  for (std::uint64_t sweep = 0; sweep < 3; ++sweep) {
    block.sweep(1);
    std::vector<Value> all(group.count * n), one(n);
    block.get_all_levels(all);
    for (std::size_t c = 0; c < group.count; ++c) {
      sweep_scalar(target, 5, first_chain + group.first + c, sweep, expected[c]);
      block.get_levels(group.first + c, one);
      ASSERT_EQ(one, expected[c]) << "chain " << c << ", sweep " << sweep;
      ASSERT_TRUE(std::equal(one.begin(), one.end(), all.begin() + static_cast<std::ptrdiff_t>(c * n)));
    }
  }
}

TEST(BitGibbs, IsAScalarSweepOfEveryChain) {
  for (const std::size_t chains : {1U, 3U, 16U, 17U, 64U, 70U, 129U, 300U, 512U}) {
    SCOPED_TRACE(chains);
    expect_scalar_sweeps(lattice(3, 5, Boundary::open), {0, chains}, 0);
    expect_scalar_sweeps(graph(11, 6, 4), {0, chains}, 0);
  }
  expect_scalar_sweeps(lattice(4, 5, Boundary::torus), {7, 13}, 40);  // across two words
  expect_scalar_sweeps(lattice(5, 5, Boundary::torus), {3, 9}, 17);   // odd sides
  expect_scalar_sweeps(lattice(1, 1, Boundary::open), {0, 20}, 0);
  for (const double coupling : {0.0, 30.0, 200.0}) {  // odds of the last have no product in doubles
    expect_scalar_sweeps(
        std::make_shared<const LatticeIsing>(5, 5, Boundary::open, coupling, random_field(25, coupling, 3)), {0, 7}, 0);
  }
  expect_scalar_sweeps(lattice(9, 16, Boundary::torus), {0, 5}, 0);
  for (const Index degree : {3U, 4U, 5U}) expect_scalar_sweeps(graph(40, degree, 6), {0, 40}, 0);
}

TEST(BitGibbs, WhatIsImpossibleStaysImpossible) {
  BitModel model;
  model.variables = 2;
  model.blanket = [](Index) { return std::vector<Index>{}; };
  model.log_odds = [](Index i, unsigned) { return i == 0 ? -40.0 : std::numeric_limits<double>::infinity(); };
  EXPECT_EQ(BitTables(model).threshold(0, 0), static_cast<std::uint64_t>(std::ldexp(1.0 / (1.0 + std::exp(40.0)), 64)));
  EXPECT_EQ(BitTables(model).threshold(1, 0), ~std::uint64_t{0});
  model.log_odds = [](Index, unsigned) { return -std::numeric_limits<double>::infinity(); };
  EXPECT_EQ(BitTables(model).threshold(0, 0), 0U);
}

// One update in billions needs more than the tabled digits; here every variable has, of one chain, a probability that
// agrees with its random number in the first forty or so.
TEST(BitGibbs, DigitsBeyondTheTabledOnesDecideRightly) {
  constexpr Index kVariables = 300;
  for (const std::size_t chains : {1U, 15U, 16U, 40U, 100U, 512U}) {
    const std::uint64_t chain = chains - 1;
    BitModel model;
    model.variables = kVariables;
    model.adds_up = chains % 2 == 0;
    model.blanket = [](Index) { return std::vector<Index>{}; };
    model.log_odds = [chain](Index i, unsigned) {
      const double p = probability(number_of(5, chain, i)) * (1.0 + (static_cast<double>(i % 3) - 1.0) * 0x1p-45);
      return std::log(p) - std::log1p(-p);
    };
    const auto tables = std::make_shared<const BitTables>(model);
    BitTile block(tables, {0, chains}, 5, 0);
    block.sweep(1);
    std::vector<Value> levels(kVariables);
    block.get_levels(chain, levels);
    int undecided = 0, up = 0;
    for (Index i = 0; i < kVariables; ++i) {
      const std::uint64_t number = number_of(5, chain, i), threshold = tables->threshold(i, 0);
      undecided += number >> 32 == threshold >> 32 ? 1 : 0;
      up += levels[i];
      ASSERT_EQ(levels[i], number < threshold ? 1 : 0) << "variable " << i << ", " << chains << " chains";
    }
    EXPECT_GT(undecided, 250);
    EXPECT_GT(up, 50);
    EXPECT_LT(up, 250);
  }
}

TEST(BitGibbs, CountsAreNotCutShort) {
  UpCounts counts(1, 1, 0, 1, true);
  counts.reset();
  const std::uint64_t state = 1;
  const std::vector<std::uint64_t> large = {(std::uint64_t{1} << 40) + 3};
  counts.set(0, large);
  for (int k = 0; k < 600; ++k) counts.add(&state);
  std::vector<std::uint64_t> found(1);
  counts.collect(0, found);
  EXPECT_EQ(found[0], large[0] + 600);
}

TEST(BitGibbs, CountsLevelsOfLongRuns) {
  const auto target = lattice(3, 4, Boundary::open);
  const auto tables = std::make_shared<const BitTables>(bit_model(target));
  for (const std::size_t chains : {2U, 90U}) {
    BitTile block(tables, {0, chains}, 1, 0);
    block.sweep(3);
    block.reset_counts();
    std::vector<std::vector<std::uint64_t>> expected(chains, std::vector<std::uint64_t>(12, 0));
    std::vector<Value> levels(12);
    for (int sweep = 0; sweep < 700; ++sweep) {
      block.sweep(1);
      for (std::size_t c = 0; c < chains; ++c) {
        block.get_levels(c, levels);
        for (Index i = 0; i < 12; ++i) expected[c][i] += levels[i];
      }
    }
    for (std::size_t c = 0; c < chains; ++c) {
      std::vector<std::uint64_t> counts(12);
      block.get_counts(c, counts);
      ASSERT_EQ(counts, expected[c]);
    }
    block.set_totals(1, {std::vector<std::uint64_t>(12, 5)});
    std::vector<std::uint64_t> counts(12);
    block.get_counts(1, counts);
    EXPECT_EQ(counts, std::vector<std::uint64_t>(12, 5));
    block.get_counts(0, counts);
    EXPECT_EQ(counts, expected[0]);
  }
}

template <class T>
void expect_same_observables(const std::shared_ptr<const T>& target, std::size_t chains) {
  EngineOptions options;
  const Index n = target->num_variables();
  options.starts.assign(chains, std::vector<Value>(n, 0));
  options.reference.resize(n);
  for (Index i = 0; i < n; ++i) options.reference[i] = static_cast<Value>(i % 2);
  TileEngine<T, BitLayout<T>> engine(target, BitLayout<T>(target, bit_model(target)), options);
  for (const ChainGroup& group : engine.share_out(2)) engine.advance(group, 4);
  std::vector<double> log_prob(chains), statistics(chains);
  std::vector<std::int64_t> distance(chains);
  std::vector<Value> levels(chains * n);
  engine.observe({0, chains}, {.log_prob = log_prob, .statistics = statistics, .distance = distance, .levels = levels});
  for (std::size_t c = 0; c < chains; ++c) {
    const std::span<const Value> x(levels.data() + c * n, n);
    const auto state = target->make_state(x);
    std::vector<double> own(1);
    target->statistics(state, own);
    EXPECT_EQ(log_prob[c], target->log_prob(state));
    EXPECT_EQ(statistics[c], own[0]);
    std::int64_t different = 0;
    for (Index i = 0; i < n; ++i) different += x[i] != options.reference[i] ? 1 : 0;
    EXPECT_EQ(distance[c], different);
  }
}

TEST(BitGibbs, ObservesWhatTheTargetSays) {
  for (const std::size_t chains : {1U, 5U, 100U, 600U}) {
    expect_same_observables(lattice(5, 7, Boundary::open), chains);
    expect_same_observables(std::make_shared<const LatticeIsing>(6, 6, Boundary::torus, 0.4, std::vector<double>(36)),
                            chains);
    expect_same_observables(graph(30, 5, 2), chains);
  }
}

/// Chi-square of bytes over all words of a few keys, and how often bits of neighbouring positions, digits and chains
/// agree.
TEST(BitGibbs, RandomWordsAreRandom) {
  constexpr std::uint64_t kWords = 1 << 16;
  std::vector<double> bytes(256, 0.0);
  double next = 0.0, other = 0.0, field = 0.0;
  for (std::uint64_t number = 0; number < 4; ++number) {
    const WordKey key = word_key(1, Stream::bits, number), beside = word_key(1, Stream::bits, number + 1);
    std::uint64_t last = 0;
    for (std::uint64_t position = 0; position < kWords; ++position) {
      const std::uint64_t word = keyed_word(key.first, key.second, position * kWordStep);
      for (unsigned k = 0; k < 8; ++k) ++bytes[word >> (8 * k) & 0xff];
      next += std::popcount(word ^ last);
      other += std::popcount(word ^ keyed_word(beside.first, beside.second, position * kWordStep));
      field += std::popcount(word ^ std::rotl(word, 16));
      last = word;
    }
  }
  const double total = 8.0 * 4 * kWords;
  double chi2 = 0.0;
  for (const double seen : bytes) chi2 += (seen - total / 256) * (seen - total / 256) / (total / 256);
  EXPECT_LT(std::abs(chi2 - 255.0), 6.0 * std::sqrt(2.0 * 255.0));
  const double bits = 64.0 * 4 * kWords;
  for (const double differing : {next, other}) EXPECT_LT(std::abs(differing - bits / 2), 6.0 * std::sqrt(bits) / 2);
  EXPECT_LT(std::abs(field - bits / 2), 9.0 * std::sqrt(bits) / 2);  // each pair of bits is seen twice
}

TEST(BitGibbs, GroupsCoverAllChainsOnce) {
  for (const std::size_t chains : {1U, 2U, 63U, 64U, 65U, 100U, 513U, 5000U}) {
    for (const std::uint64_t first : {0U, 5U, 640U}) {
      for (const unsigned threads : {1U, 2U, 7U}) {
        std::size_t next = 0;
        for (const ChainGroup& group : BitLayout<LatticeIsing>::group(chains, first, threads)) {
          EXPECT_EQ(group.first, next);
          EXPECT_GT(group.count, 0U);
          EXPECT_LE((first + group.first + group.count - 1) / 64 - (first + group.first) / 64, 7U);
          next += group.count;
        }
        EXPECT_EQ(next, chains);
      }
    }
  }
}

}  // namespace poise::bit_gibbs_test
