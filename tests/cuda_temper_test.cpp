/// Tempering on a GPU: a step of ladders, on the host, against that of the CPU; and on a device, where there is one,
/// runs, states that go on elsewhere, and the law.
#include <gtest/gtest.h>

#include <cmath>

#include <poise/check/enumerate.hpp>
#include <poise/network/junction_tree.hpp>
#include <poise/run/lane_layout.hpp>
#include <poise/run/tempered_lanes.hpp>
#include <poise/streams.hpp>
#include <poise/target/ising_model.hpp>
#include "support/host_ladders.hpp"
#include "support/lane_models.hpp"
#include "support/on_gpu.hpp"

namespace poise {
namespace {

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

}  // namespace
}  // namespace poise
