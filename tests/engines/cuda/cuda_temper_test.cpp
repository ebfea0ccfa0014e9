/// Tempering on a GPU: a step of ladders, on the host, against that of the CPU; and on a device, where there is one,
/// runs, states that go on elsewhere, and the law.
#include <gtest/gtest.h>

#include <cmath>

#include <poise/extend/base/rng.hpp>
#include <poise/extend/check/exactness.hpp>
#include <poise/extend/engines/tuner.hpp>
#include <poise/sampler.hpp>
#include "engines/cpu/lanes/lane_layout.hpp"
#include "engines/cpu/tempering/tempered_lanes.hpp"
#include "engines/cuda/tempering/lane_ladders.hpp"
#include "models/ising/ising_model.hpp"
#include "support/cuda/host_ladders.hpp"
#include "support/cuda/on_gpu.hpp"
#include "support/lane_models.hpp"

namespace poise::cuda_temper_test {

using namespace poise::testing;

std::shared_ptr<const MarkovNetwork> target_of(const Network& network) {
  return std::make_shared<const MarkovNetwork>(network);
}

TEST(CudaLadderStep, RandomNumbersAreThoseOfStreams) {
  Rng rng = make_rng(7, Stream::swaps, 3);
  const cuda::UniformStream stream{7, static_cast<std::uint64_t>(Stream::swaps) + 3, 5};
  for (int k = 0; k < 5; ++k) (void)rng.uniform();
  for (std::uint64_t k = 0; k < 200; ++k) {
    Rng moved = make_rng(7, Stream::swaps, 3);
    moved.move_to(5 + k);
    EXPECT_EQ(moved.position(), rng.position());
    const double expected = rng.uniform();
    EXPECT_EQ(cuda::uniform_at(stream, k), expected);
    EXPECT_EQ(moved.uniform(), expected);
    EXPECT_EQ(moved.position(), rng.position());
  }
}

struct HostCase {
  std::size_t ladders = 4;
  std::uint64_t first_chain = 0;
  float margin = 0.0F;  ///< of distrust in floats
  std::uint64_t steps = 60;
};

/// States of cold replicas, conditionals, swaps and components against those of the engine on the CPU.
template <class T>
void expect_steps_of_the_cpu(const std::shared_ptr<const T>& target, const HostCase& one) {
  EngineOptions options;
  options.seed = 5;
  options.first_chain = one.first_chain;
  Rng rng(9, 9);
  for (std::size_t c = 0; c < one.ladders; ++c) options.starts.push_back(possible_state(*target, rng));
  options.reference = options.starts.front();
  const TunableEngine made = make_tempered_lanes(target, lane_source(target), options);
  Engine& engine = *made.engine;
  const LaneModel model(lane_source(target), LaneZeros::soft);
  const std::vector<double> betas = dynamic_cast<const TemperedEngine&>(engine).betas();
  HostLadders host(*target, model, betas, {one.ladders, options.seed, one.first_chain});
  if (one.margin > 0.0F) host.distrust(one.margin);
  for (std::size_t c = 0; c < one.ladders; ++c) host.set_levels(c, options.starts[c]);
  const ChainGroup all{0, one.ladders};
  for (const ChainGroup& group : engine.share_out(1)) engine.start_marginals(group, true);
  host.reset_sums();
  std::vector<Value> levels(one.ladders * target->num_variables());
  for (std::uint64_t step = 0; step < one.steps; ++step) {
    for (const ChainGroup& group : engine.share_out(1)) engine.advance(group, 1);
    host.step();
    engine.observe(all, {.levels = levels});
    for (std::size_t c = 0; c < one.ladders; ++c) {
      const std::vector<Value> here = host.cold_levels(c);
      for (Index i = 0; i < here.size(); ++i) {
        if (target->cardinality(i) == 1) continue;  // observed
        ASSERT_EQ(here[i], levels[c * here.size() + i]) << "ladder " << c << ", step " << step << ", variable " << i;
      }
    }
  }
  const std::optional<TemperingReport> report = engine.tempering();
  for (std::size_t pair = 0; pair + 1 < betas.size(); ++pair) {
    double accepted = 0.0;
    for (std::size_t c = 0; c < one.ladders; ++c) accepted += host.accepted(c, pair);
    const double tried = static_cast<double>(one.ladders * ((one.steps + 1 - pair % 2) / 2));
    EXPECT_NEAR(accepted / tried, report->acceptance[pair], 1e-12);
  }
  for (std::size_t c = 0; c < one.ladders; ++c) {
    const RaoBlackwell expected = engine.rao_blackwell(c);
    for (std::size_t k = 0; k + 1 < model.variables().size(); ++k) {
      const LaneModel::Variable& variable = model.variables()[k];
      const double allowed = static_cast<double>(one.steps) *
                             (4.0 * (0.5 * variable.spread + variable.margin + 0x1p-21) + 255.0 * 0x1p-23);
      for (Index v = 1; v < variable.levels; ++v) {
        ASSERT_NEAR(host.sum(variable.entry + v - 1, c), expected.sums[model.entries()[variable.variable] + v - 1],
                    allowed);
      }
    }
  }
}

TEST(CudaLadderStep, DrawsAreThoseOfTheCpu) {
  for (const std::size_t ladders : {1U, 2U, 5U}) {
    SCOPED_TRACE(ladders);
    for (const Index levels : {2U, 3U, 7U, 12U}) {
      expect_steps_of_the_cpu(target_of(chain_network(20, levels, 0.0, levels)), {ladders});
      expect_steps_of_the_cpu(target_of(chain_network(20, levels, 0.1, levels)), {ladders, 7});
    }
    expect_steps_of_the_cpu(target_of(mixed_network_with_evidence(0.2, 4)), {ladders});
    expect_steps_of_the_cpu(target_of(hub_network(0.2, 5)), {ladders, 40});
    expect_steps_of_the_cpu(full_graph(12, 0.5, 6), {ladders});
  }
  expect_steps_of_the_cpu(target_of(uneven_network(1.0, 0.02, 2)), {2, 0, 0.0F, 20});
}

TEST(CudaLadderStep, IsExactWhereFloatsAreCoarse) {
  for (const double scale : {20.0, 1e3, 1e6}) expect_steps_of_the_cpu(full_graph(12, scale, 6), {2});
  expect_steps_of_the_cpu(target_of(uneven_network(20.0, 0.0, 2)), {1, 0, 0.0F, 10});
}

/// Integers settle what floats are not asked for: always, and often.
TEST(CudaLadderStep, IntegersSettleTheSame) {
  for (const float margin : {2.0F, 0.05F}) {
    for (const Index levels : {2U, 3U, 12U}) {
      expect_steps_of_the_cpu(target_of(chain_network(20, levels, 0.1, levels)), {2, 0, margin});
    }
    expect_steps_of_the_cpu(target_of(mixed_network_with_evidence(0.3, 4)), {2, 0, margin});
    expect_steps_of_the_cpu(full_graph(12, 0.5, 6), {2, 0, margin});
  }
}

/// States of a sparse network differ in several components, so exchange is not idle in these tests.
TEST(CudaLadderStep, ComponentsAreFound) {
  const auto target = target_of(chain_network(30, 2, 0.0, 3));
  const LaneModel model(lane_source(target), LaneZeros::soft);
  HostLadders host(*target, model, first_betas(32), {4, 5, 0});
  for (int step = 0; step < 64; ++step) host.step();
  EXPECT_GT(host.components(), 2U * 64U);
}

class CudaTemper : public OnGpu {};

Model model_with(const Network& network) { return network_model(std::make_shared<const Network>(network)); }
Model lattice_model(const char* spec) { return ising_model(make_ising(parse_spec(spec))); }

/// On a ring, everybody beside the next two.
Model ring_model(Index n) {
  IsingModel ising;
  ising.variables = n;
  ising.name = "ring";
  ising.field = random_field(n, 1.0, 2);
  Rng rng(2, 1);
  for (Index i = 0; i < n; ++i) {
    for (Index away = 1; away <= 2; ++away) ising.edges.push_back({i, (i + away) % n, 2.0 * rng.uniform() - 1.0});
  }
  return ising_model(std::move(ising));
}

struct TemperedModel {
  std::string name;
  Model model;
  std::string sampler;
};

std::vector<TemperedModel> tempered_models() {
  return {{"two levels", model_with(chain_network(30, 2, 0.0, 1)), "temper:collapse=0"},
          {"three levels, zeros", model_with(chain_network(30, 3, 0.1, 2)), "temper:collapse=0"},
          {"twelve levels", model_with(chain_network(12, 12, 0.1, 2)), "temper:collapse=0,of=gibbs"},
          {"evidence", model_with(mixed_network_with_evidence(0.2, 4)), "temper:collapse=0"},
          {"summed out", model_with(chain_network(40, 2, 0.0, 7)), "temper:collapse=2"},
          {"potts", make_model("potts:size=5,levels=3,coupling=0.7"), "temper:collapse=0"},
          {"ring", ring_model(50), "temper"},
          {"lattice", lattice_model("ising:size=7x9,lambda=0.4,mu=1,sigma=2"), "temper"},
          {"lattice without fields", lattice_model("ising:size=6x6,lambda=0.5"), "temper:of=gibbs"}};
}

/// Long enough that the ladder is spaced anew twice.
RunOptions tempered_run(Device device, std::size_t chains) {
  RunOptions options = short_run_on(device, chains);
  options.warmup = 60;
  options.thin = 3;
  options.rao_blackwell = true;
  return options;
}

void expect_same(const RunResult& here, const RunResult& there) {
  EXPECT_EQ(here.trace.x, there.trace.x);
  EXPECT_EQ(here.trace.monitors, there.trace.monitors);
  EXPECT_EQ(here.trace.acceptance_rate, there.trace.acceptance_rate);
  EXPECT_EQ(here.empirical_marginals, there.empirical_marginals);
  ASSERT_EQ(here.rao_blackwell.size(), there.rao_blackwell.size());
  for (std::size_t k = 0; k < here.rao_blackwell.size(); ++k) {
    EXPECT_NEAR(here.rao_blackwell[k], there.rao_blackwell[k], 1e-5);
  }
  ASSERT_TRUE(here.tempering && there.tempering);
  EXPECT_EQ(here.tempering->betas, there.tempering->betas);
  EXPECT_EQ(here.tempering->steps, there.tempering->steps);
  EXPECT_EQ(here.tempering->round_trips, there.tempering->round_trips);
  EXPECT_EQ(here.tempering->components, there.tempering->components);
  ASSERT_EQ(here.tempering->acceptance.size(), there.tempering->acceptance.size());
  for (std::size_t k = 0; k < here.tempering->acceptance.size(); ++k) {
    EXPECT_NEAR(here.tempering->acceptance[k], there.tempering->acceptance[k], 1e-9);
  }
  // Infinite where states of neighbouring rungs do not overlap, as in runs of a few steps.
  const bool is_known = std::isfinite(here.tempering->log_partition);
  ASSERT_EQ(is_known, std::isfinite(there.tempering->log_partition));
  if (is_known) EXPECT_NEAR(here.tempering->log_partition, there.tempering->log_partition, 1e-6);
  ASSERT_EQ(here.tempering->paths.size(), there.tempering->paths.size());
  for (std::size_t k = 0; k < here.tempering->paths.size(); ++k) {
    EXPECT_EQ(here.tempering->paths.rung(k, 1), there.tempering->paths.rung(k, 1));
  }
}

TEST_F(CudaTemper, RunsAreThoseOfTheCpu) {
  for (const TemperedModel& one : tempered_models()) {
    for (const auto& [chains, first] :
         {std::pair(1U, 0U), std::pair(2U, 36U), std::pair(7U, 0U), std::pair(70U, 36U)}) {
      SCOPED_TRACE(one.name + ", " + std::to_string(chains) + ", " + std::to_string(first));
      RunOptions cpu = tempered_run(Device::cpu, chains), cuda = tempered_run(Device::cuda, chains);
      cpu.first_chain = cuda.first_chain = first;
      const Sampler sampler = parse_sampler(one.sampler);
      expect_same(run(one.model, sampler, cpu), run(one.model, sampler, cuda));
    }
  }
}

/// Bytes of counts are full after 255 steps.
TEST_F(CudaTemper, ManyStepsAreThoseOfTheCpu) {
  for (const TemperedModel& one : tempered_models()) {
    SCOPED_TRACE(one.name);
    RunOptions cpu = tempered_run(Device::cpu, 3), cuda = tempered_run(Device::cuda, 3);
    cpu.warmup = cuda.warmup = 5;
    cpu.thin = cuda.thin = 50;
    const Sampler sampler = parse_sampler(one.sampler);
    expect_same(run(one.model, sampler, cpu), run(one.model, sampler, cuda));
  }
}

/// Sums of many draws are made on the device, batch by batch; paths of replicas get their points meanwhile, as many as
/// they have room for and more.
TEST_F(CudaTemper, RecordedNumbersAreThoseOfTheCpu) {
  for (const TemperedModel& one : tempered_models()) {
    SCOPED_TRACE(one.name);
    const Sampler sampler = parse_sampler(one.sampler);
    for (const auto& [draws, thin] : {std::pair(600U, 1U), std::pair(131U, 3U)}) {
      RunOptions cpu = tempered_run(Device::cpu, 5), cuda = tempered_run(Device::cuda, 5);
      cpu.keep = cuda.keep = Keep::monitors;
      cpu.rao_blackwell = cuda.rao_blackwell = false;  // which takes draws one by one
      cpu.draws = cuda.draws = draws;
      cpu.thin = cuda.thin = thin;
      expect_same(run(one.model, sampler, cpu), run(one.model, sampler, cuda));
    }
  }
}

/// More variables than a multiprocessor has room for.
TEST_F(CudaTemper, LargeModelsAreThoseOfTheCpu) {
  const Model model = ring_model(70000);
  RunOptions cpu = tempered_run(Device::cpu, 2), cuda = tempered_run(Device::cuda, 2);
  cpu.warmup = cuda.warmup = 2;
  cpu.draws = cuda.draws = 2;
  cpu.thin = cuda.thin = 2;
  expect_same(run(model, parse_sampler("temper"), cpu), run(model, parse_sampler("temper"), cuda));
}

TEST_F(CudaTemper, GoesOnFromAState) {
  for (const TemperedModel& one : tempered_models()) {
    SCOPED_TRACE(one.name);
    const Sampler sampler = parse_sampler(one.sampler);
    RunOptions cpu = tempered_run(Device::cpu, 3), cuda = tempered_run(Device::cuda, 3);
    cpu.warmup = cuda.warmup = 7;
    cpu.thin = cuda.thin = 30;
    const RunResult whole = run(one.model, sampler, cpu);
    for (const auto& [from, to] : {std::pair(cpu, cuda), std::pair(cuda, cpu), std::pair(cuda, cuda)}) {
      poise::Run first(one.model, sampler, from);
      first.warm_up();
      first.sample(5);
      poise::Run second(one.model, sampler, to);
      second.load(first.save());
      second.sample(7);
      expect_same(whole, second.finish());
    }
  }
}

/// Ladders do not depend on how many others there are, but for the two that exchange components and the temperatures
/// that all have found together.
TEST_F(CudaTemper, DrawsDependOnSeedAndChain) {
  for (const TemperedModel& one : tempered_models()) {
    SCOPED_TRACE(one.name);
    RunOptions options = tempered_run(Device::cuda, 40);
    const auto states_of = [&] {
      poise::Run run(one.model, parse_sampler(one.sampler), options);
      run.advance(40);
      return run.states();
    };
    const std::vector<Value> whole = states_of();
    options.first_chain = 36;
    options.chains = 4;
    const std::vector<Value> part = states_of();
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.end() - static_cast<std::ptrdiff_t>(part.size())));
  }
}

/// What swaps are decided by, of all states, to the last digit.
template <class T>
void expect_energies(const std::shared_ptr<const T>& target, CudaLogSums log_sums) {
  constexpr std::size_t kRungs = 16;
  auto model = std::make_shared<CudaLaneModel>();
  model->model = std::make_shared<const LaneModel>(lane_source(target), LaneZeros::soft);
  model->exact = exact_tables(*target, *model->model);
  CudaLaneLadders::Options options;
  options.ladders = 9;
  options.lanes_apart = 64;
  model->log_sums = log_sums;
  options.first_neighbour.assign(model->model->variables().size(), 0);
  CudaLaneLadders ladders(model, options);
  ladders.set_rungs(std::vector<LaneHeat>(kRungs), std::vector<CudaRungStep>(kRungs - 1));
  const LaneEnergy<T> energy(*target, *model->model);
  Rng rng(3, 3);
  std::vector<LaneTile> blocks;
  for (std::size_t c = 0; c < options.ladders; ++c) {
    blocks.emplace_back(model->model, ChainGroup{0, kRungs}, 1, 0);
    for (std::size_t r = 0; r < kRungs; ++r) {
      std::vector<Value> x(target->num_variables());
      for (Index i = 0; i < x.size(); ++i) x[i] = static_cast<Value>(rng.uniform() * target->cardinality(i));
      blocks.back().set_levels(r, x);
      ladders.set_levels(c, r, x);
    }
  }
  const CudaLaneLadders::Energies there = ladders.energies();
  for (std::size_t c = 0; c < options.ladders; ++c) {
    LaneEnergies here;
    energy.sum(blocks[c], here);
    for (std::size_t r = 0; r < kRungs; ++r) {
      EXPECT_EQ(there.log_weight[c * kRungs + r], here.log_weight[r]);
      EXPECT_EQ(there.zeros[c * kRungs + r], here.zeros[r]);
    }
  }
}

TEST_F(CudaTemper, EnergiesAreThoseOfTheCpu) {
  expect_energies(target_of(chain_network(30, 3, 0.2, 2)), CudaLogSums::in_order);
  expect_energies(target_of(mixed_network_with_evidence(0.3, 4)), CudaLogSums::in_order);
  expect_energies(full_graph(12, 0.5, 6), CudaLogSums::in_integers);
}

/// Cold replicas of many ladders after some steps, against all states.
template <class T>
void expect_law(const T& target, const Model& model, const std::string& sampler) {
  SCOPED_TRACE(model.name + ", " + sampler);
  constexpr std::size_t chains = 20000;
  const Index n = target.num_variables();
  const StateSpace space = enumerate_states(target);
  RunOptions options = short_run_on(Device::cuda, chains);
  options.keep = Keep::monitors;
  options.warmup = 0;
  poise::Run run(model, parse_sampler(sampler), options);
  run.advance(200);
  const std::vector<Value> states = run.states();
  std::vector<double> count(space.size(), 0.0), expected;
  for (std::size_t c = 0; c < chains; ++c) {
    std::vector<Value> x(n, 0);
    for (Index i = 0; i < n; ++i) {
      if (target.cardinality(i) > 1) x[i] = states[c * n + i];  // not observed
    }
    ++count[space.number(x)];
  }
  for (std::size_t s = 0; s < space.size(); ++s) {
    expected.push_back(space.probabilities[s] * chains);
    if (expected.back() == 0.0) EXPECT_EQ(count[s], 0.0);
  }
  EXPECT_LT(deviation(count, expected), 6.0);
}

TEST_F(CudaTemper, ColdStatesHaveTheLawOfTheModel) {
  for (const Network& network : {mixed_network(0.0, 3), mixed_network(0.3, 3), mixed_network_with_evidence(0.2, 4),
                                 hub_network(0.2, 5), chain_network(8, 2, 0.0, 3)}) {
    expect_law(*target_of(network), model_with(network), "temper:collapse=0");
  }
  const Model lattice = lattice_model("ising:size=3x3,lambda=0.5,mu=0.3,sigma=1");
  const LatticeIsing& target = *std::get<std::shared_ptr<const LatticeIsing>>(lattice.description);
  expect_law(target, lattice, "temper");
}

/// Flips are copied to the host for swaps, which takes its time.
TEST_F(CudaTemper, FlipsCanBeTempered) {
  const Model lattice = lattice_model("ising:size=3x3,lambda=0.5,mu=0.3,sigma=1");
  RunOptions options = tempered_run(Device::cuda, 200);
  options.rao_blackwell = false;
  options.draws = 100;
  const RunResult result = run(lattice, parse_sampler("temper:of=lb"), options);
  const LatticeIsing& target = *std::get<std::shared_ptr<const LatticeIsing>>(lattice.description);
  const StateSpace space = enumerate_states(target);
  for (Index i = 0; i < target.num_variables(); ++i) {
    double up = 0.0;
    for (std::size_t s = 0; s < space.size(); ++s) up += space.states[s][i] * space.probabilities[s];
    EXPECT_NEAR(result.empirical_marginals[i], up, 0.02);
  }
}

TEST_F(CudaTemper, RefusesWhatDoesNotRunThere) {
  const RunOptions options = short_run_on(Device::cuda, 4);
  const Model network = model_with(chain_network(30, 2, 0.0, 1));
  EXPECT_THROW(poise::Run(network, parse_sampler("temper:of=lb"), options), InputError);
  EXPECT_THROW(poise::Run(network, parse_sampler("temper:of=gibbs,block=2"), options), InputError);
}

}  // namespace poise::cuda_temper_test
