/// Chains across the lanes of a GPU: the update itself, on the host, against that of the CPU, draw by draw; what is
/// planned; and on a device, where there is one, draws, counts, the law, states that go on elsewhere.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include <poise/extend/check/exactness.hpp>
#include "engines/common/exact_tables.hpp"
#include "engines/cuda/lanes/lane_kernels.hpp"
#include "engines/cuda/lanes/lane_tile.hpp"
#include "models/ising/ising_model.hpp"
#include "support/cuda/cuda_lane_models.hpp"
#include "support/cuda/host_lanes.hpp"
#include "support/cuda/on_gpu.hpp"
#include "support/lane_models.hpp"

namespace poise::cuda_lanes_test {

using namespace poise::testing;

template <class T>
void expect_host_draws(const std::shared_ptr<const T>& target, ChainGroup group, std::uint64_t first_chain,
                       float margin = 0.0F) {
  const auto model = model_of(target);
  HostBlock block(*target, *model, group, first_chain);
  if (margin > 0.0F) block.distrust(margin);
  expect_draws_of_the_cpu(*target, model, block, first_chain, HostBlock::kSeed);
}

TEST(CudaLaneUpdate, DrawsAreThoseOfTheCpu) {
  for (const std::size_t chains : {1U, 2U, 7U, 41U}) {
    SCOPED_TRACE(chains);
    for (const Index levels : {2U, 3U, 7U, 12U}) {
      expect_host_draws(target_of(chain_network(20, levels, 0.0, levels)), {0, chains}, 0);
      expect_host_draws(target_of(chain_network(20, levels, 0.1, levels)), {0, chains}, 0);
    }
    expect_host_draws(target_of(mixed_network_with_evidence(0.2, 4)), {0, chains}, 0);
    expect_host_draws(full_graph(12, 0.5, 6), {0, chains}, 0);
  }
  expect_host_draws(target_of(hub_network(0.2, 5)), {3, 6}, 40);
  expect_host_draws(full_graph(12, 0.5, 6), {2, 5}, 37);
}

TEST(CudaLaneUpdate, TablesMayBeLarge) {
  expect_host_draws(target_of(uneven_network(1.0, 0.0, 2)), {0, 5}, 0);
  expect_host_draws(target_of(uneven_network(1.5, 0.02, 3)), {1, 4}, 2);
}

/// Where logarithms are large, floats are sure of little, and what they are not sure of is right all the same.
TEST(CudaLaneUpdate, IsExactWhereFloatsAreCoarse) {
  for (const double scale : {20.0, 1e3, 1e6, 1e12}) expect_host_draws(full_graph(12, scale, 6), {0, 9}, 0);
  for (const double spread : {20.0, 200.0}) expect_host_draws(target_of(uneven_network(spread, 0.0, 2)), {0, 3}, 0);
}

/// Integers settle what floats are not asked for: always, and often.
TEST(CudaLaneUpdate, IntegersSettleTheSame) {
  for (const float margin : {2.0F, 0.05F}) {
    for (const Index levels : {2U, 3U, 7U, 12U}) {
      expect_host_draws(target_of(chain_network(20, levels, 0.1, levels)), {0, 5}, 0, margin);
    }
    expect_host_draws(target_of(mixed_network_with_evidence(0.3, 4)), {0, 5}, 0, margin);
    expect_host_draws(full_graph(12, 0.5, 6), {0, 5}, 0, margin);
  }
}

template <class T>
double log_prob_by(const T& target, const LaneModel& model, const ExactTables& exact, const std::vector<Value>& x) {
  std::vector<Value> at(x.size());
  for (Index i = 0; i < x.size(); ++i) at[model.position(i)] = x[i];
  double sum = 0.0;
  std::int64_t integers = 0;
  for (const ExactFactor& factor : exact.factors) {
    std::size_t entry = factor.first_entry;
    for (std::uint32_t s = factor.first_site; s < factor.end_site; ++s) {
      entry += std::size_t{exact.sites[s].stride} * at[exact.sites[s].position];
    }
    sum += static_cast<double>(exact.values[entry]);
    integers += exact.values[entry];
  }
  if constexpr (requires { target.log_prob_of(sum); }) return target.log_prob_of(sum);
  return exact.unit * static_cast<double>(integers);
}

/// The numbers of the target to the last digit, as they are recorded.
TEST(CudaLaneUpdate, LogProbIsSummedFromTheTables) {
  Rng rng(3, 4);
  const auto expect_same = [&](const auto& target) {
    const auto model = model_of(target);
    const ExactTables exact = exact_tables(*target, *model);
    for (int k = 0; k < 50; ++k) {
      const std::vector<Value> x = possible_state(*target, rng);
      EXPECT_EQ(log_prob_by(*target, *model, exact, x), target->log_prob(target->make_state(x)));
    }
  };
  expect_same(target_of(chain_network(20, 3, 0.1, 1)));
  expect_same(target_of(mixed_network_with_evidence(0.2, 4)));
  expect_same(full_graph(12, 0.5, 6));
}

TEST(CudaLaneUpdate, ColoursAreApart) {
  for (const Index levels : {2U, 3U}) {
    const auto target = target_of(chain_network(30, levels, 0.0, 1));
    const auto model = model_of(target);
    const LaneImage image(*model);
    ASSERT_EQ(image.colours.front(), 0U);
    ASSERT_EQ(image.colours.back(), image.variables.size());
    for (std::size_t c = 0; c + 1 < image.colours.size(); ++c) {
      ASSERT_LT(image.colours[c], image.colours[c + 1]);
      const auto is_inside = [&](std::uint32_t k) { return k >= image.colours[c] && k < image.colours[c + 1]; };
      for (std::uint32_t k = image.colours[c]; k < image.colours[c + 1]; ++k) {
        const ImageVariable& variable = image.variables[k];
        for (std::uint32_t p = variable.first_pair; p < variable.end_pair; ++p) {
          EXPECT_FALSE(is_inside(image.pairs[p].position));
        }
        for (std::uint32_t t = variable.first_term; t < variable.end_term; ++t) {
          for (std::uint32_t o = image.terms[t].first_others; o < image.terms[t].end_others; ++o) {
            for (const std::uint32_t position : image.others[o].position) EXPECT_FALSE(is_inside(position));
          }
        }
      }
    }
  }
}

cuda::DeviceShape hopper() { return {132, 227 * 1024, 228 * 1024}; }

TEST(CudaLanePlan, ChainsStayOnMultiprocessorsWhereTheyFit) {
  const cuda::LaneShape small{.pairs = 8448, .rows = 200, .image_bytes = 30000, .colours = {0, 30, 60, 80, 95, 100}};
  const cuda::LanePlan many = cuda::plan_lanes(small, hopper());
  EXPECT_TRUE(many.resident);
  EXPECT_TRUE(many.image_in_shared);
  EXPECT_EQ(many.pairs, 32U);
  EXPECT_EQ(many.threads, 512U);
  EXPECT_LE(many.shared_bytes, hopper().shared_per_block);
  cuda::LaneShape few = small;
  few.pairs = 132 * 4;
  EXPECT_TRUE(cuda::plan_lanes(few, hopper()).resident);
  EXPECT_LT(cuda::plan_lanes(few, hopper()).microseconds, many.microseconds);
}

TEST(CudaLanePlan, HugeModelsAreSpreadOut) {
  const cuda::LaneShape huge{
      .pairs = 2112, .rows = 1000000, .image_bytes = 200000000, .colours = {0, 400000, 700000, 1000000}};
  const cuda::LanePlan plan = cuda::plan_lanes(huge, hopper());
  EXPECT_FALSE(plan.resident);
  EXPECT_EQ(plan.pairs, 32U);
  cuda::LaneShape one = huge;
  one.pairs = 1;
  EXPECT_EQ(cuda::plan_lanes(one, hopper()).pairs, 1U);
  cuda::LaneShape crowd = huge;
  crowd.pairs = 4000000;
  EXPECT_LE(crowd.pairs / cuda::plan_lanes(crowd, hopper()).pairs, 65535U);
  EXPECT_FALSE(cuda::plan_resident(huge, hopper(), 2, false).resident);
}

class CudaLanes : public OnGpu {};

template <class T>
void expect_device_draws(const std::shared_ptr<const T>& target, ChainGroup group, std::uint64_t first_chain) {
  const auto model = on_device(target);
  for (const auto placement :
       {CudaLaneTile::Placement::automatic, CudaLaneTile::Placement::resident, CudaLaneTile::Placement::spread}) {
    SCOPED_TRACE(static_cast<int>(placement));
    CudaLaneTile block(model, group, 11, first_chain, placement);
    expect_draws_of_the_cpu(*target, model->model, block, first_chain, 11);
  }
}

TEST_F(CudaLanes, DrawsAreThoseOfTheCpu) {
  for (const std::size_t chains : {1U, 2U, 7U, 33U, 129U, 700U}) {
    SCOPED_TRACE(chains);
    for (const Index levels : {2U, 3U, 7U, 12U}) {
      expect_device_draws(target_of(chain_network(20, levels, 0.0, levels)), {0, chains}, 0);
      expect_device_draws(target_of(chain_network(20, levels, 0.1, levels)), {0, chains}, 37);
    }
    expect_device_draws(target_of(mixed_network_with_evidence(0.2, 4)), {0, chains}, 0);
    expect_device_draws(full_graph(12, 0.5, 6), {0, chains}, 3);
  }
  expect_device_draws(target_of(uneven_network(1.0, 0.0, 2)), {0, 50}, 0);
  expect_device_draws(target_of(uneven_network(1.5, 0.02, 3)), {1, 49}, 2);
  expect_device_draws(target_of(chain_network(600, 2, 0.0, 8)), {0, 300}, 0);
  expect_device_draws(target_of(chain_network(600, 4, 0.0, 8)), {0, 100}, 1);
}

TEST_F(CudaLanes, IsExactWhereFloatsAreCoarse) {
  for (const double scale : {20.0, 1e3, 1e6}) expect_device_draws(full_graph(12, scale, 6), {0, 70}, 0);
  expect_device_draws(target_of(uneven_network(20.0, 0.0, 2)), {0, 30}, 0);
}

TEST_F(CudaLanes, RunsAreThoseOfTheCpu) {
  for (const Model& model : models()) {
    for (const std::size_t chains : {1U, 5U, 100U}) {
      for (const std::uint64_t first : {0U, 37U}) {
        SCOPED_TRACE(model.name + ", " + std::to_string(chains) + ", " + std::to_string(first));
        RunOptions cpu = short_run_on(Device::cpu, chains), cuda = short_run_on(Device::cuda, chains);
        cpu.first_chain = cuda.first_chain = first;
        cpu.rao_blackwell = cuda.rao_blackwell = true;
        cpu.thin = cuda.thin = 50;
        const RunResult here = run(model, parse_sampler("gibbs"), cpu);
        expect_same(here, run(model, parse_sampler("gibbs"), cuda));
      }
    }
  }
}

TEST_F(CudaLanes, GoesOnFromAState) {
  const Sampler gibbs = parse_sampler("gibbs");
  for (const Model& model : models()) {
    RunOptions cpu = short_run_on(Device::cpu, 35), cuda = short_run_on(Device::cuda, 35);
    cpu.thin = cuda.thin = 60;
    cpu.rao_blackwell = cuda.rao_blackwell = true;
    for (const auto& [from, to] : {std::pair(cpu, cuda), std::pair(cuda, cpu), std::pair(cuda, cuda)}) {
      poise::Run first(model, gibbs, from);
      first.warm_up();
      first.sample(5);
      poise::Run second(model, gibbs, to);
      second.load(first.save());
      second.sample(7);
      expect_same(run(model, gibbs, cpu), second.finish());
    }
  }
}

/// A chain does not depend on how many others there are.
TEST_F(CudaLanes, DrawsDependOnSeedAndChain) {
  for (const Model& model : models()) {
    RunOptions options = short_run_on(Device::cuda, 9);
    const RunResult whole = run(model, parse_sampler("gibbs"), options);
    options.first_chain = 6;
    options.chains = 3;
    const RunResult part = run(model, parse_sampler("gibbs"), options);
    EXPECT_TRUE(std::equal(part.trace.x.begin(), part.trace.x.end(),
                           whole.trace.x.end() - static_cast<std::ptrdiff_t>(part.trace.x.size())));
  }
}

/// Chains that begin with draws from the distribution stay there.
TEST_F(CudaLanes, SweepsKeepTheLaw) {
  constexpr std::size_t chains = 200000;
  for (const Network& network : {mixed_network(0.0, 3), mixed_network(0.3, 3), mixed_network_with_evidence(0.2, 4),
                                 hub_network(0.0, 5), chain_network(8, 2, 0.0, 3)}) {
    const auto target = target_of(network);
    const StateSpace space = enumerate_states(*target);
    const Index n = target->num_variables();
    const auto model = on_device(target);
    CudaLaneTile block(model, {0, chains}, 3, 0);
    Rng rng(11, 2);
    for (std::size_t c = 0; c < chains; ++c) {
      double rest = rng.uniform();
      std::size_t s = 0;
      while (s + 1 < space.size() && rest >= space.probabilities[s]) rest -= space.probabilities[s++];
      block.set_levels(c, space.states[s]);
    }
    block.sweep(7);
    std::vector<Value> states(chains * n);
    block.get_all_levels(states);
    std::vector<double> count(space.size(), 0.0);
    for (std::size_t c = 0; c < chains; ++c) {
      const auto begin = states.begin() + static_cast<std::ptrdiff_t>(c * n);
      ++count[space.number(std::vector<Value>(begin, begin + n))];
    }
    double chi_square = 0.0, cells = 0.0, expected_rest = 0.0, count_rest = 0.0;
    for (std::size_t s = 0; s < count.size(); ++s) {
      const double expected = space.probabilities[s] * chains;
      if (expected == 0.0) EXPECT_EQ(count[s], 0.0);
      if (expected < 10.0) {
        expected_rest += expected;
        count_rest += count[s];
        continue;
      }
      chi_square += (count[s] - expected) * (count[s] - expected) / expected;
      ++cells;
    }
    if (expected_rest > 0.0) {
      chi_square += (count_rest - expected_rest) * (count_rest - expected_rest) / expected_rest;
      ++cells;
    }
    EXPECT_LT((chi_square - cells) / std::sqrt(2.0 * cells), 6.0);
  }
}

/// What the kernel takes for the conditionals, against exact ones.
TEST_F(CudaLanes, ConditionalsAreExact) {
  for (const Network& network : {mixed_network(0.3, 3), chain_network(8, 2, 0.0, 3), chain_network(6, 3, 0.1, 3)}) {
    const auto target = target_of(network);
    const auto model = on_device(target);
    const LaneModel& lanes = *model->model;
    const StateSpace space = enumerate_states(*target);
    std::vector<Index> same(target->num_variables());
    std::iota(same.begin(), same.end(), Index{0});
    const LaneModel::Variable& variable = lanes.variables()[0];  // the first: the others are as they were
    CudaLaneTile block(model, {0, space.size()}, 3, 0);
    for (std::size_t s = 0; s < space.size(); ++s) block.set_levels(s, space.states[s]);
    block.reset_sums();
    block.sweep(1);
    std::vector<double> sums(lanes.num_entries());
    std::vector<std::uint64_t> thresholds(variable.levels - 1);
    for (std::size_t s = 0; s < space.size(); ++s) {
      if (space.probabilities[s] == 0.0) continue;
      lanes.thresholds(variable.variable, {space.states[s].data(), 1, same.data()}, {}, thresholds);
      block.get_sums(s, sums);
      for (Index v = 1; v < variable.levels; ++v) {
        const double up_to = v < thresholds.size() ? static_cast<double>(thresholds[v]) : 0x1p53;
        const double exact = (up_to - static_cast<double>(thresholds[v - 1])) * 0x1p-53;
        EXPECT_NEAR(sums[lanes.entries()[variable.variable] + v - 1], exact,
                    2.0 * (0.5 * variable.spread + variable.margin + 0x1p-21));
      }
    }
  }
}

TEST_F(CudaLanes, TooManyChainsAreASentence) {
  const auto model = on_device(target_of(chain_network(2000, 2, 0.0, 1)));
  EXPECT_THROW(CudaLaneTile(model, {0, std::size_t{1} << 30}, 1, 0), InputError);
}

TEST_F(CudaLanes, RefusesOtherSamplers) {
  const RunOptions options = short_run_on(Device::cuda, 4);
  EXPECT_THROW(poise::Run(models()[0], parse_sampler("lb"), options), InputError);
  EXPECT_THROW(poise::Run(models()[0], parse_sampler("gibbs:block=2"), options), InputError);
}

}  // namespace poise::cuda_lanes_test
