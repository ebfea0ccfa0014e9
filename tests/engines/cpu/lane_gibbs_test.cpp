/// Gibbs with chains across lanes: the conditionals it draws from, the draws against an exact scalar sweep, how far
/// floats are off, and what a chain depends on.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include <poise/extend/check/exactness.hpp>
#include <poise/extend/engines/samplers.hpp>
#include <poise/run.hpp>
#include "engines/common/keyed_words.hpp"
#include "engines/cpu/lanes/lane_layout.hpp"
#include "engines/cpu/lanes/lane_tile.hpp"
#include "exact/junction_tree.hpp"
#include "support/small_networks.hpp"
#include "support/small_targets.hpp"

namespace poise::lane_gibbs_test {

using namespace poise::testing;

using Networks = std::shared_ptr<const MarkovNetwork>;

Networks target_of(const Network& network) { return std::make_shared<const MarkovNetwork>(network); }

/// Levels from one to five, factors of up to eight variables, tables for every way of looking up; steep where `spread`
/// is large.
Network wide_network(double spread, double zeros, std::uint64_t seed) {
  RandomNetwork recipe;
  recipe.cardinalities = {2, 2, 3, 2, 2, 4, 2, 5, 2, 2, 1, 2, 3, 2};
  recipe.scopes = {
      {0, 1},  {1, 2},   {2, 3, 5},   {4, 0, 3}, {5, 7}, {0, 1, 3, 4, 6, 8, 9}, {11, 13, 0, 6, 9, 1}, {7, 2},
      {12, 5}, {12, 13}, {10, 11, 8}, {9},       {5},    {13, 3, 4, 8, 11}};
  recipe.spread = spread;
  recipe.zeros = zeros;
  recipe.seed = seed;
  return recipe.make();
}

/// A graph too dense for chains as bits.
std::shared_ptr<const GraphIsing> graph(Index n, double scale, std::uint64_t seed) {
  Rng rng(seed, 1);
  std::vector<Edge> edges;
  for (Index i = 0; i < n; ++i) {
    for (Index j = i + 1; j < n; ++j) edges.push_back({i, j, scale * (2.0 * rng.uniform() - 1.0)});
  }
  return std::make_shared<const GraphIsing>(random_field(n, scale, seed), edges);
}

template <class T>
std::shared_ptr<const LaneModel> model_of(const std::shared_ptr<const T>& target) {
  return std::make_shared<const LaneModel>(lane_source(target));
}

/// Thresholds of a variable in one state.
std::vector<std::uint64_t> thresholds_of(const LaneModel& model, const LaneModel::Variable& variable,
                                         const std::vector<Value>& x) {
  std::vector<Index> same(x.size());
  std::iota(same.begin(), same.end(), Index{0});
  std::vector<std::uint64_t> thresholds(variable.levels - 1);
  model.thresholds(variable.variable, {x.data(), 1, same.data()}, {}, thresholds);
  return thresholds;
}

double probability(const std::vector<std::uint64_t>& thresholds, Index level) {
  const double above = level == 0 ? 0.0 : static_cast<double>(thresholds[level - 1]);
  const double up_to = level < thresholds.size() ? static_cast<double>(thresholds[level]) : 0x1p53;
  return (up_to - above) * 0x1p-53;
}

/// The product of the single-site kernels that the thresholds say, in their order, leaves the law alone.
template <class T>
void expect_leaves_the_law(const std::shared_ptr<const T>& target) {
  const auto model = model_of(target);
  const StateSpace space = enumerate_states(*target);
  std::vector<double> mass = space.probabilities;
  for (std::size_t k = 0; k + 1 < model->variables().size(); ++k) {
    const LaneModel::Variable& variable = model->variables()[k];
    std::vector<double> next(space.size(), 0.0);
    for (std::size_t s = 0; s < space.size(); ++s) {
      if (mass[s] == 0.0) continue;
      const std::vector<std::uint64_t> thresholds = thresholds_of(*model, variable, space.states[s]);
      for (Index level = 0; level < variable.levels; ++level) {
        const double step = probability(thresholds, level);
        std::vector<Value> after = space.states[s];
        after[variable.variable] = static_cast<Value>(level);
        if (step > 0.0) next[space.number(after)] += mass[s] * step;
      }
    }
    // Each update alone leaves it alone, and so is reversible: it draws from a conditional.
    for (std::size_t s = 0; s < space.size(); ++s) EXPECT_NEAR(next[s], space.probabilities[s], 1e-14);
    mass = std::move(next);
  }
}

TEST(LaneGibbs, LeavesTheLawAlone) {
  for (const double zeros : {0.0, 0.3}) {
    expect_leaves_the_law(target_of(mixed_network(zeros, 3)));
    expect_leaves_the_law(target_of(mixed_network_with_evidence(zeros, 4)));
    expect_leaves_the_law(target_of(hub_network(zeros, 5)));
  }
  expect_leaves_the_law(std::make_shared<const GraphIsing>(small_graph()));
  expect_leaves_the_law(graph(9, 1.0, 3));
  expect_leaves_the_law(graph(9, 40.0, 4));
}

/// The random number of a chain for an update, 53 digits of it.
std::uint64_t number_of(std::uint64_t seed, std::uint64_t chain, std::uint64_t update) {
  const WordKey key = word_key(seed, Stream::lanes, chain / 2);
  std::uint64_t number = 0;
  for (unsigned k = 0; k < 2; ++k) {
    const std::uint64_t word = keyed_word(key.first, key.second, (update * 2 + k) * kWordStep);
    number = number << 32 | (word >> (chain % 2 * 32) & 0xffffffff);
  }
  return number >> 11;
}

/// One chain, one variable after the other, all in integers; and what was added up on the way.
struct ScalarChain {
  void sweep(const LaneModel& model, std::uint64_t seed, std::uint64_t chain, std::uint64_t sweep) {
    counts.resize(model.num_entries(), 0);
    sums.resize(model.num_entries(), 0.0);
    for (std::size_t k = 0; k + 1 < model.variables().size(); ++k) {
      const LaneModel::Variable& variable = model.variables()[k];
      const std::vector<std::uint64_t> thresholds = thresholds_of(model, variable, x);
      const std::uint64_t drawn = number_of(seed, chain, sweep * model.num_variables() + variable.variable);
      Value level = 0;
      while (level < thresholds.size() && drawn >= thresholds[level]) ++level;
      x[variable.variable] = level;
      const Index entry = model.entries()[variable.variable];
      for (Index v = 1; v < variable.levels; ++v) {
        counts[entry + v - 1] += level == v ? 1 : 0;
        sums[entry + v - 1] += probability(thresholds, v);
        const double error = std::min(sums[entry + v - 1], 1.0 - sums[entry + v - 1]) * variable.spread;
        allowed.resize(model.num_entries(), 0.0);
        allowed[entry + v - 1] = (variable.levels == 2 ? 1.0 : 2.0) * (error + variable.margin);  // of both ends
      }
    }
  }
  std::vector<Value> x;
  std::vector<std::uint64_t> counts;
  std::vector<double> sums;
  std::vector<double> allowed;  // errors of the probabilities of the last sweep
};

/// A state of positive probability for networks whose first state is one.
template <class T>
std::vector<Value> some_state(const std::shared_ptr<const T>& target, Rng& rng) {
  std::vector<Value> x(target->num_variables());
  for (int attempt = 0; attempt < 200; ++attempt) {
    for (Index i = 0; i < x.size(); ++i) x[i] = static_cast<Value>(rng.uniform() * target->cardinality(i));
    if (target->log_prob(target->make_state(x)) > -std::numeric_limits<double>::infinity()) return x;
  }
  return std::vector<Value>(x.size(), 0);
}

template <class T>
void expect_exact_sweeps(const std::shared_ptr<const T>& target, ChainGroup group, std::uint64_t first_chain,
                         std::uint64_t sweeps = 3) {
  const auto model = model_of(target);
  LaneTile block(model, group, 5, first_chain);
  const Index n = target->num_variables();
  std::vector<ScalarChain> expected(group.count);
  Rng rng(9, 9);
  for (std::size_t c = 0; c < group.count; ++c) {
    expected[c].x = some_state(target, rng);
    block.set_levels(group.first + c, expected[c].x);
  }
  block.reset_counts();
  for (std::uint64_t sweep = 0; sweep < sweeps; ++sweep) {
    block.reset_sums();
    block.sweep(1);
    std::vector<Value> all(group.count * n), one(n);
    block.get_all_levels(all);
    for (std::size_t c = 0; c < group.count; ++c) {
      expected[c].sums.assign(model->num_entries(), 0.0);
      expected[c].sweep(*model, 5, first_chain + group.first + c, sweep);
      block.get_levels(group.first + c, one);
      ASSERT_EQ(one, expected[c].x) << "chain " << c << ", sweep " << sweep;
      ASSERT_TRUE(std::equal(one.begin(), one.end(), all.begin() + static_cast<std::ptrdiff_t>(c * n)));
      std::vector<double> sums(model->num_entries());
      block.get_sums(group.first + c, sums);
      for (std::size_t e = 0; e < sums.size(); ++e) {
        ASSERT_NEAR(sums[e], expected[c].sums[e], expected[c].allowed[e]) << "entry " << e;
      }
    }
  }
  for (std::size_t c = 0; c < group.count; ++c) {
    std::vector<std::uint64_t> counts(model->num_entries());
    block.get_counts(group.first + c, counts);
    EXPECT_EQ(counts, expected[c].counts);
  }
}

/// The same where nothing but levels is wanted, which saves one or two chains some exponentials.
template <class T>
void expect_exact_levels(const std::shared_ptr<const T>& target, std::size_t chains) {
  const auto model = model_of(target);
  LaneTile block(model, {0, chains}, 5, 0);
  std::vector<ScalarChain> expected(chains);
  Rng rng(9, 9);
  for (std::size_t c = 0; c < chains; ++c) {
    expected[c].x = some_state(target, rng);
    block.set_levels(c, expected[c].x);
  }
  std::vector<Value> one(target->num_variables());
  for (std::uint64_t sweep = 0; sweep < 200; ++sweep) {
    block.sweep(1);
    for (std::size_t c = 0; c < chains; ++c) {
      expected[c].sweep(*model, 5, c, sweep);
      block.get_levels(c, one);
      ASSERT_EQ(one, expected[c].x) << "chain " << c << ", sweep " << sweep;
    }
  }
}

TEST(LaneGibbs, IsExactWhereOnlyLevelsAreWanted) {
  for (const std::size_t chains : {1U, 2U, 5U}) {
    for (const double spread : {1.0, 20.0, 200.0}) {
      expect_exact_levels(target_of(wide_network(spread, 0.0, 2)), chains);
      expect_exact_levels(target_of(wide_network(spread, 0.05, 3)), chains);
    }
    for (const double scale : {0.5, 20.0, 1e3, 1e6, 1e12}) expect_exact_levels(graph(12, scale, 6), chains);
  }
}

TEST(LaneGibbs, IsAnExactSweepOfEveryChain) {
  for (const std::size_t chains : {1U, 2U, 3U, 9U, 16U, 17U, 40U, 64U}) {
    SCOPED_TRACE(chains);
    expect_exact_sweeps(target_of(wide_network(1.5, 0.0, 2)), {0, chains}, 0);
    expect_exact_sweeps(target_of(wide_network(1.5, 0.05, 3)), {0, chains}, 0);
    expect_exact_sweeps(target_of(mixed_network_with_evidence(0.2, 4)), {0, chains}, 0);
    expect_exact_sweeps(graph(12, 0.5, 6), {0, chains}, 0);
  }
  expect_exact_sweeps(target_of(wide_network(1.0, 0.0, 5)), {7, 13}, 40);  // across two vectors
  expect_exact_sweeps(target_of(wide_network(1.0, 0.0, 5)), {1, 2}, 40);   // halves of two words
  expect_exact_sweeps(target_of(wide_network(1.0, 0.0, 5)), {3, 5}, 40);   // half a vector
}

/// Where logarithms are large, floats are sure of little, and what they are not sure of is right all the same.
TEST(LaneGibbs, IsExactWhereFloatsAreCoarse) {
  for (const double spread : {20.0, 200.0}) {
    expect_exact_sweeps(target_of(wide_network(spread, 0.0, 2)), {0, 40}, 0, 20);
    expect_exact_sweeps(target_of(wide_network(spread, 0.05, 2)), {0, 2}, 0, 20);
  }
  EXPECT_LT(model_of(graph(12, 1e3, 6))->variables()[0].margin, 1e-5);
  EXPECT_GT(model_of(graph(12, 1e6, 6))->variables()[0].margin, 1.0);
  for (const double scale : {1e3, 1e6, 1e12}) {
    expect_exact_sweeps(graph(12, scale, 6), {0, 20}, 0, 20);
    expect_exact_sweeps(graph(12, scale, 6), {0, 1}, 0, 20);
  }
}

/// Bounds that are too small would show here before they show in draws.
TEST(LaneGibbs, FloatsAreAsGoodAsTheySay) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    expect_exact_sweeps(target_of(wide_network(0.2 * static_cast<double>(seed), 0.0, seed)), {0, 64}, 0, 2);
  }
}

TEST(LaneGibbs, TotalsOfLongRunsMoveBetweenBlocks) {
  const auto target = target_of(mixed_network(0.2, 2));
  const auto model = model_of(target);
  LaneTile whole(model, {0, 5}, 3, 0);
  whole.sweep(7);
  whole.reset_counts();
  whole.reset_sums();
  LaneTile first(model, {0, 5}, 3, 0);
  first.set_progress(whole.progress());
  std::vector<Value> levels(target->num_variables());
  for (std::size_t c = 0; c < 5; ++c) {
    whole.get_levels(c, levels);
    first.set_levels(c, levels);
  }
  whole.sweep(700);
  first.sweep(301);
  LaneTile one(model, {0, 2}, 3, 0), other(model, {2, 3}, 3, 0);
  for (LaneTile* part : {&one, &other}) {
    part->set_progress(first.progress());
    for (std::size_t c = part->group().first; c < part->group().first + part->group().count; ++c) {
      first.get_levels(c, levels);
      part->set_levels(c, levels);
      part->set_totals(c, first.get_totals(c));
    }
    part->sweep(399);
    for (std::size_t c = part->group().first; c < part->group().first + part->group().count; ++c) {
      const LaneTotals totals = part->get_totals(c), expected = whole.get_totals(c);
      EXPECT_EQ(totals.counts, expected.counts);
      EXPECT_EQ(totals.sums, expected.sums);
      EXPECT_EQ(totals.recent, expected.recent);
    }
  }
}

template <class T>
void expect_same_observables(const std::shared_ptr<const T>& target, std::size_t chains) {
  EngineOptions options;
  const Index n = target->num_variables();
  Rng rng(4, 4);
  for (std::size_t c = 0; c < chains; ++c) options.starts.push_back(some_state(target, rng));
  options.reference.resize(n);
  for (Index i = 0; i < n; ++i) options.reference[i] = static_cast<Value>(i % 2);
  const std::unique_ptr<Engine> engine = make_lane_engine(target, lane_source(target), options).engine;
  for (const ChainGroup& group : engine->share_out(2)) engine->advance(group, 4);
  const std::size_t statistic_count = engine->traits().statistics;
  std::vector<double> log_prob(chains), statistics(chains * statistic_count);
  std::vector<std::int64_t> distance(chains);
  std::vector<Value> levels(chains * n);
  engine->observe({0, chains},
                  {.log_prob = log_prob, .statistics = statistics, .distance = distance, .levels = levels});
  for (std::size_t c = 0; c < chains; ++c) {
    const std::span<const Value> x(levels.data() + c * n, n);
    const auto state = target->make_state(x);
    EXPECT_EQ(log_prob[c], target->log_prob(state));
    std::vector<double> own(statistic_count);
    target->statistics(state, own);
    EXPECT_TRUE(std::equal(own.begin(), own.end(), statistics.begin() + static_cast<std::ptrdiff_t>(c * own.size())));
    std::int64_t different = 0;
    for (Index i = 0; i < n; ++i) different += x[i] != options.reference[i] ? 1 : 0;
    EXPECT_EQ(distance[c], different);
  }
}

TEST(LaneGibbs, ObservesWhatTheTargetSays) {
  for (const std::size_t chains : {1U, 5U, 20U, 100U}) {
    expect_same_observables(target_of(wide_network(1.5, 0.05, 2)), chains);
    expect_same_observables(target_of(mixed_network_with_evidence(0.1, 2)), chains);
    expect_same_observables(graph(15, 0.3, 2), chains);
    expect_same_observables(target_of(make_network("potts:size=5,levels=3,coupling=0.8")), chains);
  }
}

/// A chain depends on its seed and number alone.
TEST(LaneGibbs, ChainsAreTheSameInAnyCompany) {
  const Model model = network_model(std::make_shared<const Network>(wide_network(1.0, 0.05, 7)));
  RunOptions options;
  options.chains = 70;
  options.draws = 5;
  options.warmup = 3;
  options.threads = 1;
  options.rao_blackwell = true;
  const RunResult all = run(model, parse_sampler("gibbs"), options);
  for (const unsigned threads : {2U, 3U}) {
    options.threads = threads;
    const RunResult shared = run(model, parse_sampler("gibbs"), options);
    EXPECT_EQ(shared.trace.x, all.trace.x);
    EXPECT_EQ(shared.rao_blackwell, all.rao_blackwell);
    EXPECT_EQ(shared.empirical_marginals, all.empirical_marginals);
  }
  const std::size_t length = all.trace.x.size() / 70;
  for (const std::size_t first : {0U, 13U, 69U}) {
    options.chains = 1;
    options.first_chain = first;
    const RunResult alone = run(model, parse_sampler("gibbs"), options);
    const auto begin = all.trace.x.begin() + static_cast<std::ptrdiff_t>(first * length);
    EXPECT_TRUE(std::equal(alone.trace.x.begin(), alone.trace.x.end(), begin));
  }
}

TEST(LaneGibbs, MarginalsAreThoseOfTheNetwork) {
  const auto network = std::make_shared<const Network>(wide_network(1.0, 0.0, 11));
  RunOptions options;
  options.chains = 64;
  options.draws = 2000;
  options.keep = Keep::monitors;
  options.rao_blackwell = true;
  const RunResult result = run(network_model(network), parse_sampler("gibbs"), options);
  const Marginals exact = JunctionTree(*network, plan_elimination(*network), {}).marginals();
  std::size_t entry = 0;
  for (Index i = 0; i < network->num_variables(); ++i) {
    for (Index level = 1; level < network->cardinalities[i]; ++level, ++entry) {
      const double error = 6.0 * result.rao_blackwell_mcse[entry] + 1e-5;
      EXPECT_NEAR(result.rao_blackwell[entry], exact.of(i)[level], error);
      EXPECT_NEAR(result.empirical_marginals[entry], exact.of(i)[level], 2.0 * error + 5e-3);
    }
  }
}

TEST(LaneGibbs, NothingIsAveragedBeforeItIsAskedFor) {
  const auto target = target_of(mixed_network(0.0, 2));
  EngineOptions options;
  options.starts.assign(3, std::vector<Value>(target->num_variables(), 0));
  options.reference = options.starts[0];
  const std::unique_ptr<Engine> engine = make_lane_engine(target, lane_source(target), options).engine;
  EXPECT_TRUE(engine->rao_blackwell(1).sums.empty());
  for (const ChainGroup& group : engine->share_out(1)) engine->start_marginals(group, true);
  EXPECT_EQ(engine->rao_blackwell(1).sums.size(), target->num_moves());
}

TEST(LaneGibbs, DenseModelsKeepTheirSums) {
  EXPECT_TRUE(LaneModel::fits(lane_source(graph(30, 1.0, 1))));
  EXPECT_FALSE(LaneModel::fits(lane_source(graph(80, 1.0, 1))));
}

TEST(LaneGibbs, GroupsCoverAllChainsOnce) {
  for (const std::size_t chains : {1U, 2U, 15U, 16U, 17U, 64U, 100U, 513U}) {
    for (const std::uint64_t first : {0U, 5U, 640U}) {
      for (const unsigned threads : {1U, 2U, 7U}) {
        std::size_t next = 0;
        for (const ChainGroup& group : LaneLayout<GraphIsing>::group(chains, first, threads)) {
          EXPECT_EQ(group.first, next);
          EXPECT_GT(group.count, 0U);
          EXPECT_LE((first + group.first + group.count - 1) / 16 - (first + group.first) / 16, 3U);
          next += group.count;
        }
        EXPECT_EQ(next, chains);
      }
    }
  }
}

}  // namespace poise::lane_gibbs_test
