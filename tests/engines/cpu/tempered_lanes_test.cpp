/// Tempering across lanes: heated conditionals, the sweeps of heated lanes against exact ones, swaps, exchange of
/// components, collapsed networks; and runs of all of it against exact inference.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>

#include <poise/extend/check/exactness.hpp>
#include <poise/report.hpp>
#include <poise/run.hpp>
#include "engines/common/components.hpp"
#include "engines/common/keyed_words.hpp"
#include "engines/cpu/lanes/lane_layout.hpp"
#include "engines/cpu/tempering/tempered_lanes.hpp"
#include "exact/junction_tree.hpp"
#include "report/tempering.hpp"
#include "support/small_networks.hpp"
#include "support/small_targets.hpp"

namespace poise::tempered_lanes_test {

using namespace poise::testing;

std::shared_ptr<const MarkovNetwork> target_of(const Network& network) {
  return std::make_shared<const MarkovNetwork>(network);
}

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

std::vector<std::shared_ptr<const MarkovNetwork>> networks() {
  std::vector<std::shared_ptr<const MarkovNetwork>> out;
  for (const double zeros : {0.0, 0.3}) {
    out.push_back(target_of(mixed_network(zeros, 3)));
    out.push_back(target_of(mixed_network_with_evidence(zeros, 4)));
    out.push_back(target_of(hub_network(zeros, 5)));
  }
  return out;
}

/// All states of a target, those without probability included.
template <class T>
std::vector<std::vector<Value>> all_states(const T& target) {
  std::vector<std::vector<Value>> out;
  std::vector<Value> x(target.num_variables(), 0);
  for (Index i = 0; i < x.size(); ++i) x[i] = target.level(target.make_state(x), i);  // observed ones
  const std::vector<Value> first = x;
  for (;;) {
    out.push_back(x);
    Index i = 0;
    for (; i < x.size(); ++i) {
      if (target.cardinality(i) == 1) continue;
      if (++x[i] < target.cardinality(i)) break;
      x[i] = 0;
    }
    if (i == x.size()) return out;
  }
}

/// What swaps know of each state.
template <class T>
LaneEnergies energies_of(const std::shared_ptr<const T>& target, const std::vector<std::vector<Value>>& states) {
  const auto model = std::make_shared<const LaneModel>(lane_source(target), LaneZeros::soft);
  const LaneEnergy<T> energy(*target, *model);
  LaneTile block(model, {0, 16}, 1, 0);
  LaneEnergies all;
  for (std::size_t first = 0; first < states.size(); first += 16) {
    for (std::size_t l = 0; l < 16; ++l) block.set_levels(l, states[std::min(first + l, states.size() - 1)]);
    LaneEnergies some;
    energy.sum(block, some);
    for (std::size_t l = 0; l < 16 && first + l < states.size(); ++l) {
      all.log_weight.push_back(some.log_weight[l]);
      all.zeros.push_back(some.zeros[l]);
    }
  }
  return all;
}

/// log p at a temperature, as swaps have it.
double heated(const LaneEnergies& energies, std::size_t state, const LaneHeat& heat) {
  if (energies.zeros[state] == 0.0) return heat.beta * energies.log_weight[state];
  return heat.beta * energies.log_weight[state] + energies.zeros[state] * heat.log_zero;
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const LaneHeat kHeats[] = {{0.0, 0.0}, {0.25, 5.0 * std::log1p(-0.25)}, {0.96875, -17.0}, {1.0, -kInfinity}};

TEST(TemperedLanes, EnergiesAreThoseOfTheTarget) {
  for (const auto& target : networks()) {
    const std::vector<std::vector<Value>> states = all_states(*target);
    const LaneEnergies energies = energies_of(target, states);
    for (std::size_t s = 0; s < states.size(); ++s) {
      const double log_prob = target->log_prob(target->make_state(states[s]));
      EXPECT_EQ(energies.zeros[s] > 0.0, log_prob == -kInfinity);
      if (energies.zeros[s] == 0.0) {
        EXPECT_NEAR(energies.log_weight[s] + target->log_prob_of(0.0), log_prob, 1e-12);
      }
    }
  }
  const auto graph = std::make_shared<const GraphIsing>(small_graph());
  const std::vector<std::vector<Value>> states = all_states(*graph);
  const LaneEnergies energies = energies_of(graph, states);
  for (std::size_t s = 0; s < states.size(); ++s) {
    EXPECT_NEAR(energies.log_weight[s], graph->log_prob(graph->make_state(states[s])), 1e-12);
  }
}

/// Every update of a heated lane draws from a conditional of the same law that swaps go by.
template <class T>
void expect_heated_conditionals(const std::shared_ptr<const T>& target) {
  const LaneModel model(lane_source(target), LaneZeros::soft);
  const std::vector<std::vector<Value>> states = all_states(*target);
  const LaneEnergies energies = energies_of(target, states);
  std::vector<Index> same(target->num_variables());
  std::iota(same.begin(), same.end(), Index{0});
  for (const LaneHeat& heat : kHeats) {
    for (std::size_t k = 0; k + 1 < model.variables().size(); ++k) {
      const LaneModel::Variable& variable = model.variables()[k];
      std::size_t stride = 1;  // between states that differ in this variable alone
      for (Index i = 0; i < variable.variable; ++i) stride *= target->cardinality(i);
      for (std::size_t s = 0; s < states.size(); ++s) {
        if (states[s][variable.variable] != 0) continue;
        double largest = -kInfinity;
        for (Index v = 0; v < variable.levels; ++v) largest = std::max(largest, heated(energies, s + v * stride, heat));
        if (largest == -kInfinity) continue;
        double total = 0.0;
        for (Index v = 0; v < variable.levels; ++v) total += std::exp(heated(energies, s + v * stride, heat) - largest);
        std::vector<std::uint64_t> thresholds(variable.levels - 1);
        model.thresholds(variable.variable, {states[s].data(), 1, same.data()}, heat, thresholds);
        double below = 0.0;
        for (Index v = 0; v + 1 < variable.levels; ++v) {
          below += std::exp(heated(energies, s + v * stride, heat) - largest) / total;
          ASSERT_NEAR(static_cast<double>(thresholds[v]) * 0x1p-53, below, 1e-12);
        }
      }
    }
  }
}

TEST(TemperedLanes, ConditionalsAreThoseOfTheHeatedLaw) {
  for (const auto& target : networks()) expect_heated_conditionals(target);
  expect_heated_conditionals(std::make_shared<const GraphIsing>(small_graph()));
}

/// Swaps leave the product of neighbouring laws alone: detailed balance, pair by pair of states.
TEST(TemperedLanes, SwapsLeaveTheProductAlone) {
  for (const auto& target : networks()) {
    const std::vector<std::vector<Value>> states = all_states(*target);
    if (states.size() > 200) continue;
    const LaneEnergies energies = energies_of(target, states);
    for (std::size_t pair = 0; pair + 1 < std::size(kHeats); ++pair) {
      const auto gain = [&](std::size_t s) {
        const double step = kHeats[pair + 1].beta - kHeats[pair].beta;
        const double zero = std::max(kHeats[pair + 1].log_zero, double{LaneModel::kZero}) - kHeats[pair].log_zero;
        return step * energies.log_weight[s] + zero * energies.zeros[s];
      };
      for (std::size_t x = 0; x < states.size(); ++x) {
        for (std::size_t y = 0; y < states.size(); ++y) {
          const double here = heated(energies, x, kHeats[pair]) + heated(energies, y, kHeats[pair + 1]);
          const double there = heated(energies, y, kHeats[pair]) + heated(energies, x, kHeats[pair + 1]);
          const double flow = std::exp(here) * swap_probability(gain(x), gain(y));
          const double back = std::exp(there) * swap_probability(gain(y), gain(x));
          ASSERT_NEAR(flow, back, 1e-12 * std::max(flow, back) + 1e-300);
        }
      }
    }
  }
}

/// p(x) p(y) stays what it is, whatever is exchanged, and what two states have in common stays where it is.
TEST(TemperedLanes, ExchangeLeavesTheProductAlone) {
  std::size_t most = 0;
  for (const auto& target : networks()) {
    const auto model = std::make_shared<const LaneModel>(lane_source(target), LaneZeros::soft);
    const ComponentExchange exchange(*model);
    LaneTile one(model, {0, 16}, 1, 0), other(model, {0, 32}, 1, 0);
    const std::vector<std::vector<Value>> states = all_states(*target);
    ComponentExchange::Scratch scratch;
    Rng rng(3, 3);
    for (std::size_t k = 0; k < 4000; ++k) {
      const std::vector<Value>& x =
          states[static_cast<std::size_t>(rng.uniform() * static_cast<double>(states.size()))];
      const std::vector<Value>& y =
          states[static_cast<std::size_t>(rng.uniform() * static_cast<double>(states.size()))];
      one.set_levels(3, x);
      other.set_levels(20, y);
      const std::size_t components = exchange.exchange({one, 3}, {other, 20}, rng, scratch);
      most = std::max(most, components);
      EXPECT_EQ(components == 0, x == y);
      std::vector<std::vector<Value>> all = {x, y, x, y};
      one.get_levels(3, all[2]);
      other.get_levels(20, all[3]);
      for (Index i = 0; i < x.size(); ++i) EXPECT_EQ(all[2][i] + all[3][i], x[i] + y[i]);
      const LaneEnergies energies = energies_of(target, all);
      EXPECT_NEAR(energies.log_weight[0] + energies.log_weight[1], energies.log_weight[2] + energies.log_weight[3],
                  1e-12);
      EXPECT_EQ(energies.zeros[0] + energies.zeros[1], energies.zeros[2] + energies.zeros[3]);
      // The same components on the way back, so it is as likely.
      LaneTile again(model, {0, 16}, 1, 0);
      again.set_levels(0, all[2]);
      again.set_levels(1, all[3]);
      EXPECT_EQ(exchange.exchange({again, 0}, {again, 1}, rng, scratch), components);
    }
  }
  EXPECT_GT(most, 1U);
}

std::uint64_t number_of(std::uint64_t seed, std::uint64_t chain, std::uint64_t update) {
  const WordKey key = word_key(seed, Stream::lanes, chain / 2);
  std::uint64_t number = 0;
  for (unsigned k = 0; k < 2; ++k) {
    const std::uint64_t word = keyed_word(key.first, key.second, (update * 2 + k) * kWordStep);
    number = number << 32 | (word >> (chain % 2 * 32) & 0xffffffff);
  }
  return number >> 11;
}

/// Lanes of a block at many temperatures, against sweeps one by one in integers.
template <class T>
void expect_exact_sweeps(const std::shared_ptr<const T>& target, std::size_t lanes, std::uint64_t sweeps) {
  const auto model = std::make_shared<const LaneModel>(lane_source(target), LaneZeros::soft);
  LaneTile block(model, {0, lanes}, 5, 64);
  std::vector<Index> same(target->num_variables());
  std::iota(same.begin(), same.end(), Index{0});
  std::vector<std::vector<Value>> expected(lanes, std::vector<Value>(target->num_variables(), 0));
  std::vector<LaneHeat> heats(lanes);
  Rng rng(9, 9);
  for (std::size_t l = 0; l < lanes; ++l) {
    const double beta = static_cast<double>(l) / static_cast<double>(lanes - 1);
    if (l + 1 < lanes) {
      heats[l] = {static_cast<float>(beta), static_cast<float>(std::max(5.0 * std::log1p(-beta), -60.0))};
    }
    for (Index i = 0; i < expected[l].size(); ++i) {
      if (l + 1 < lanes) expected[l][i] = static_cast<Value>(rng.uniform() * target->cardinality(i));
    }
    block.set_levels(l, expected[l]);
    block.heat(l, heats[l], l % 3 == 0);
  }
  for (std::uint64_t sweep = 0; sweep < sweeps; ++sweep) {
    block.reset_sums();
    block.sweep(1);
    for (std::size_t l = 0; l < lanes; ++l) {
      std::vector<double> sums(model->num_entries());
      block.get_sums(l, sums);
      for (std::size_t k = 0; k + 1 < model->variables().size(); ++k) {
        const LaneModel::Variable& variable = model->variables()[k];
        std::vector<std::uint64_t> thresholds(variable.levels - 1);
        model->thresholds(variable.variable, {expected[l].data(), 1, same.data()}, heats[l], thresholds);
        const std::uint64_t drawn = number_of(5, 64 + l, sweep * model->num_variables() + variable.variable);
        Value level = 0;
        while (level < thresholds.size() && drawn >= thresholds[level]) ++level;
        expected[l][variable.variable] = level;
        const double up = 1.0 - static_cast<double>(thresholds.back()) * 0x1p-53;  // of the highest level
        const double sum = sums[model->entries()[variable.variable] + variable.levels - 2];
        const double allowed = 2.0 * (variable.spread + variable.margin);
        ASSERT_NEAR(sum, l % 3 == 0 ? up : 0.0, l % 3 == 0 ? allowed : 0.0);
      }
      std::vector<Value> levels(target->num_variables());
      block.get_levels(l, levels);
      ASSERT_EQ(levels, expected[l]) << "lane " << l << ", sweep " << sweep;
    }
  }
}

TEST(TemperedLanes, SweepsAreExact) {
  for (const std::size_t lanes : {16U, 32U, 48U, 64U}) {
    for (const double spread : {1.0, 8.0, 60.0}) {
      for (const double zeros : {0.0, 0.2}) expect_exact_sweeps(target_of(wide_network(spread, zeros, 2)), lanes, 20);
    }
    expect_exact_sweeps(target_of(mixed_network_with_evidence(0.2, 4)), lanes, 20);
    expect_exact_sweeps(std::make_shared<const GraphIsing>(small_graph()), lanes, 20);
  }
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    expect_exact_sweeps(target_of(wide_network(0.4 * static_cast<double>(seed), 0.1, seed)), 64, 4);
  }
}

RunOptions ladders(std::size_t chains, std::size_t draws) {
  RunOptions options;
  options.chains = chains;
  options.draws = draws;
  options.rao_blackwell = true;
  options.keep = Keep::monitors;
  options.threads = 2;
  return options;
}

void expect_exact_marginals(const Network& network, const std::string& sampler) {
  SCOPED_TRACE(sampler);
  const auto shared = std::make_shared<const Network>(network);
  const RunResult result = run(network_model(shared), parse_sampler(sampler), ladders(4, 4000));
  const JunctionTree tree(network, plan_elimination(network), {});
  std::size_t entry = 0;
  for (Index i = 0; i < network.num_variables(); ++i) {
    for (Index level = 1; level < network.levels(i); ++level, ++entry) {
      const double error = 6.0 * result.rao_blackwell_mcse[entry] + 1e-5;
      EXPECT_NEAR(result.rao_blackwell[entry], tree.marginals().of(i)[level], error);
      EXPECT_NEAR(result.empirical_marginals[entry], tree.marginals().of(i)[level], 2.0 * error + 0.02);
    }
  }
  ASSERT_TRUE(result.tempering);
  const double error =
      std::isfinite(result.tempering->log_partition_error) ? result.tempering->log_partition_error : 0.0;
  EXPECT_NEAR(result.tempering->log_partition, tree.log_partition(), 8.0 * error + 1e-9);
}

TEST(TemperedLanes, MarginalsAndLogPartitionAreExact) {
  for (const char* sampler : {"temper:collapse=0", "temper:collapse=2", "temper:collapse=4", "temper"}) {
    expect_exact_marginals(wide_network(1.5, 0.0, 11), sampler);
    expect_exact_marginals(wide_network(1.5, 0.1, 12), sampler);
    expect_exact_marginals(mixed_network_with_evidence(0.2, 4), sampler);
    expect_exact_marginals(hub_network(0.2, 4), sampler);
  }
}

/// Two blocks of variables that must all agree, coupled so that one way is three times as likely: local moves never
/// leave the way they began with.
TEST(TemperedLanes, FindsModesThatLocalMovesDoNot) {
  Network network;
  network.cardinalities.assign(24, 2);
  const double alike[] = {1.0, 0.0, 0.0, 1.0};
  const double tilt[] = {1.0, 3.0};
  for (Index i = 0; i + 1 < 24; ++i) {
    const Index scope[] = {i, i + 1};
    network.add_factor(scope, alike);
  }
  const Index first[] = {0};
  network.add_factor(first, tilt);
  const auto shared = std::make_shared<const Network>(network);
  const RunResult result = run(network_model(shared), parse_sampler("temper:collapse=0"), ladders(4, 20000));
  for (const double up : result.rao_blackwell) EXPECT_NEAR(up, 0.75, 0.05);
}

TEST(TemperedLanes, ChainsDependOnNothingElse) {
  const Model model = network_model(std::make_shared<const Network>(wide_network(1.0, 0.05, 7)));
  for (const char* sampler : {"temper:collapse=0", "temper:collapse=3"}) {
    RunOptions options = ladders(5, 30);
    options.warmup = 200;
    options.keep = Keep::draws;
    options.threads = 1;
    const RunResult one = run(model, parse_sampler(sampler), options);
    for (const unsigned threads : {2U, 3U}) {
      options.threads = threads;
      const RunResult more = run(model, parse_sampler(sampler), options);
      EXPECT_EQ(more.trace.x, one.trace.x);
      EXPECT_EQ(more.rao_blackwell, one.rao_blackwell);
      EXPECT_EQ(more.tempering->betas, one.tempering->betas);
      EXPECT_EQ(more.tempering->log_partition, one.tempering->log_partition);
    }
  }
}

TEST(TemperedLanes, ReportsItsLadder) {
  const Model model = network_model(std::make_shared<const Network>(wide_network(1.5, 0.0, 11)));
  const RunResult result = run(model, parse_sampler("temper:collapse=0"), ladders(4, 2000));
  const Report report = make_report(result);
  ASSERT_TRUE(report.tempering);
  EXPECT_EQ(report.tempering->betas.front(), 0.0);
  EXPECT_EQ(report.tempering->betas.back(), 1.0);
  EXPECT_GT(report.tempering->round_trips, 0U);
  const std::string text = report_text(report);
  EXPECT_NE(text.find("ladders     16 rungs, barrier"), std::string::npos) << text;
  EXPECT_NE(text.find("log Z "), std::string::npos) << text;
  const nlohmann::json json = report_json(report).at("tempering");
  const std::optional<TemperingReport> again = read_tempering(json);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->betas, report.tempering->betas);
  EXPECT_EQ(again->acceptance, report.tempering->acceptance);
  EXPECT_EQ(again->log_partition, report.tempering->log_partition);
  EXPECT_EQ(tempering_json(*again), json);
  EXPECT_EQ(json.at("paths").at("rungs").size(), ReplicaPaths::kReplicas);
  EXPECT_EQ(tempering_plot(*again), tempering_plot(*report.tempering));
  nlohmann::json wrong = json;
  wrong["paths"]["rungs"][1][0] = again->betas.size();
  EXPECT_EQ(read_tempering(wrong)->paths.size(), 0U);
  wrong["paths"]["rungs"][1] = "none";
  EXPECT_EQ(read_tempering(wrong)->paths.size(), 0U);
  EXPECT_FALSE(read_tempering("nothing"));
  EXPECT_FALSE(read_tempering({{"betas", {0.0, 1.0}}, {"acceptance", "none"}}));
  EXPECT_TRUE(tempering_plot(*report.tempering).starts_with("<svg"));
  EXPECT_TRUE(tempering_warnings(*report.tempering, {}).empty());
  TemperingReport cut = *report.tempering;
  cut.acceptance[3] = 0.01;
  cut.round_trips = 0;
  EXPECT_EQ(tempering_warnings(cut, {.draws = 100, .warmup = 500}).at(0).next, "--warmup 2000");
  cut.acceptance = report.tempering->acceptance;
  EXPECT_EQ(tempering_warnings(cut, {.draws = 100}).at(0).next, "--draws 400");
  const TemperingReport nothing_left = *run(model, parse_sampler("temper:collapse=20"), ladders(2, 50)).tempering;
  EXPECT_EQ(nothing_left.betas.size(), 1U);
  EXPECT_NE(tempering_text(nothing_left, 100).find("draws are independent"), std::string::npos);
  EXPECT_TRUE(tempering_plot(nothing_left).starts_with("<svg"));
}

TEST(TemperedLanes, RefusesWhatItCannotTemper) {
  const auto sentence = [](const std::string& sampler) {
    try {
      parse_sampler(sampler);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(sentence("temper:of=auto").find("expected a sampler that makes steps"), std::string::npos);
  EXPECT_NE(sentence("temper:of=temper").find("expected a sampler that makes steps"), std::string::npos);
  EXPECT_NE(sentence("temper:of=gibs").find("did you mean 'gibbs'"), std::string::npos);
  EXPECT_NE(sentence("temper:collapse=99").find("collapse"), std::string::npos);
  EXPECT_NE(sentence("temper:g=sqrt").find('g'), std::string::npos);
}

}  // namespace poise::tempered_lanes_test
