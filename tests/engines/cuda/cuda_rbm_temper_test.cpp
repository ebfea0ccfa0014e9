/// Tempering of RBMs on a GPU: heated draws, gains and steps of ladders, on the host, against those of the CPU; and on
/// a device, where there is one, runs, states that go on elsewhere, and the law.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include <poise/extend/engines/tempered_engine.hpp>
#include "engines/common/tempering/heat.hpp"
#include "engines/cuda/tempering/rbm_ladders.hpp"
#include "engines/rows.hpp"
#include "kernels/rbm_gibbs.hpp"
#include "support/cuda/host_rbm_ladders.hpp"
#include "support/cuda/on_gpu.hpp"
#include "support/small_rbms.hpp"

namespace poise::cuda_rbm_temper_test {

using namespace poise::testing;

Model model_of(const RbmWeights& weights) { return rbm_model("rbm", std::make_shared<const Rbm>(weights)); }

Rbm::Base base_of(const RbmWeights& weights) {
  return std::get<std::shared_ptr<const Rbm>>(make_heat(model_of(weights))->at(0.0))->offsets();
}

/// With rates of visible units, which the hot end has then, and hidden units are fitted to.
RbmWeights with_rates(RbmWeights weights) {
  Rng rng(4, 4);
  for (Index i = 0; i < weights.visible; ++i) weights.visible_rates.push_back(static_cast<float>(rng.uniform()));
  return weights;
}

struct Case {
  RbmWeights weights;
  double doubt;
};
std::vector<Case> cases() {
  return {{random_rbm(5, 3, 1.0, 1), 0.0},
          {random_rbm(100, 70, 0.2, 2), 0.0},
          {random_rbm(100, 70, 0.2, 2), 0.3},
          {random_rbm(100, 70, 0.2, 2), 1e4},
          {with_rates(random_rbm(64, 32, 1.0, 3)), 0.0},
          {bounded_rbm(90, 65, 30.0, 5), 0.0},
          {bounded_rbm(40, 300, 400.0, 6), 0.0},
          {random_rbm(300, 40, 0.0, 7), 0.0}};
}

/// Replicas at sixteen temperatures, each with the stream of its rung.
TEST(CudaRbmTemper, HeatedDrawsAreThoseOfTheCpu) {
  constexpr unsigned kRungs = HostRbmGibbs::kChains;
  const std::vector<double> betas = first_betas(kRungs);
  for (const auto& [weights, doubt] : cases()) {
    const Rbm target(weights);
    const Rbm::Base base = base_of(weights);
    HostRbmGibbs here(target, doubt, 77);
    here.heat(betas, base);
    for (unsigned r = 0; r < kRungs; ++r) here.set_row(r, {cuda::replica_stream(5, 3, kRungs - 1 - r), r});
    std::vector<Rbm> heated;
    std::vector<Rbm::State> states;
    std::vector<RbmGibbs> kernels;
    std::vector<RbmGibbs::Scratch> scratches;
    std::vector<Rng> rngs;
    for (unsigned r = 0; r < kRungs; ++r) {
      heated.push_back(target.heated(betas[r], base));
      states.push_back(heated[r].make_state(std::vector<Value>(weights.visible, 0)));
      kernels.emplace_back(heated[r]);
      scratches.emplace_back(heated[r]);
      rngs.push_back(make_rng(77, Stream::chain, 8 + (std::uint64_t{kRungs - 1 - r} << 32)));
    }
    for (int sweep = 0; sweep < 20; ++sweep) {
      here.sweep();
      for (unsigned r = 0; r < kRungs; ++r) {
        const RbmGibbs::Member one[] = {{&states[r], &scratches[r], &rngs[r]}};
        kernels[r].advance(heated[r], one, 1);
        ASSERT_EQ(here.levels(r), states[r].x) << weights.visible << " x " << weights.hidden << ", doubt " << doubt
                                               << ", sweep " << sweep << ", rung " << r;
      }
    }
  }
}

/// Where the hot end's biases and the model's pull apart as far as floats go.
TEST(CudaRbmTemper, BoundsAreNeverWrong) {
  Rng rng(3, 3);
  const auto uniform = [&](double most) { return (2.0 * rng.uniform() - 1.0) * most; };
  for (int trial = 0; trial < 200000; ++trial) {
    const cuda::GibbsRounded rounded{0, 0.01, {0.02 * rng.uniform(), 0.02 * rng.uniform()}};
    const double beta = rng.uniform(), offset = uniform(trial % 2 == 0 ? 100.0 : 8.0);
    // Near to where the unit is as often on as off, or anywhere.
    const double wanted = trial % 3 == 0 ? uniform(300.0) : -offset + uniform(12.0);
    const auto sum = static_cast<std::int32_t>(std::clamp(wanted / std::max(beta, 1e-3) / rounded.step, -1e8, 1e8));
    const double slack = beta * std::max(rounded.errors.low, rounded.errors.high);
    const long double a = static_cast<long double>(beta) * rounded.step * sum + offset;
    const long double least = 65536.0L / (1.0L + std::exp(-(a - slack)));
    const long double most = 65536.0L / (1.0L + std::exp(-(a + slack)));
    const double near = std::floor(static_cast<double>(least)) + std::floor(7.0 * rng.uniform()) - 3.0;
    const auto bits = static_cast<std::uint32_t>(std::clamp(near, 0.0, 65535.0));
    const cuda::GibbsDecision decision = cuda::decide(cuda::make_unit(rounded, {beta, offset}, 0.0), sum, bits);
    if (decision.on) {
      ASSERT_LE(bits + 1.0L, most) << trial;
    } else if (!decision.open) {
      ASSERT_GE(static_cast<long double>(bits), least) << trial;
    }
  }
}

void expect_near(double here, double there) { ASSERT_NEAR(here, there, 1e-11 * (1.0 + std::abs(there))); }

std::vector<Value> random_state(Index n, Rng& rng) {
  const double density = rng.uniform();
  std::vector<Value> x(n);
  for (Value& level : x) level = rng.uniform() < density ? 1 : 0;
  return x;
}

TEST(CudaRbmTemper, GainsAreThoseOfTheCpu) {
  const std::vector<double> betas = first_betas(16);
  Rng rng(6, 6);
  for (const RbmWeights& weights :
       {random_rbm(9, 6, 1.2, 5), with_rates(random_rbm(64, 32, 1.0, 3)), bounded_rbm(90, 65, 30.0, 5)}) {
    const Rbm target(weights);
    const Rbm::Base base = base_of(weights);
    for (int trial = 0; trial < 50; ++trial) {
      const std::vector<Value> x = random_state(weights.visible, rng);
      const Rbm::State state = target.make_state(x);
      for (std::uint32_t rung = 0; rung < 16; ++rung) {
        const cuda::ReplicaGain gain = gain_of(weights, base, x, cuda::neighbour_betas(betas.data(), 16, rung));
        const auto expected = [&](std::uint32_t from, std::uint32_t to) {
          return target.log_prob_change(state, betas[from], betas[to], base);
        };
        expect_near(gain.above, rung < 15 ? expected(rung, rung + 1) : 0.0);
        expect_near(gain.below, rung > 0 ? expected(rung - 1, rung) : 0.0);
      }
    }
  }
}

/// Cold replicas and swaps against those of the engine on the CPU, on the first ladder of temperatures.
TEST(CudaRbmTemper, StepsAreThoseOfTheCpu) {
  struct Steps {
    RbmWeights weights;
    std::uint64_t first_chain;
    std::uint64_t steps;
  };
  for (const auto& [weights, first_chain, steps] :
       {Steps{random_rbm(9, 6, 1.2, 5), 0, 400}, Steps{with_rates(random_rbm(64, 32, 0.5, 3)), 7, 60},
        Steps{bounded_rbm(90, 65, 30.0, 5), 0, 20}}) {
    constexpr std::size_t kLadders = 3, kRungs = HostRbmLadders::kRungs;
    EngineOptions options;
    options.seed = 5;
    options.first_chain = first_chain;
    Rng rng(9, 9);
    for (std::size_t c = 0; c < kLadders; ++c) options.starts.push_back(random_state(weights.visible, rng));
    options.reference = options.starts.front();
    const TunableEngine made = make_engine(model_of(weights), parse_sampler("temper"), options);
    Engine& engine = *made.engine;
    const std::vector<double> betas = dynamic_cast<const TemperedEngine&>(engine).betas();
    ASSERT_EQ(betas.size(), kRungs);
    const Rbm target(weights);
    HostRbmLadders host(target, base_of(weights), betas, {kLadders, options.seed, first_chain, 4});
    for (std::size_t c = 0; c < kLadders; ++c) host.set_levels(c, options.starts[c]);
    std::vector<Value> levels(kLadders * weights.visible);
    for (std::uint64_t step = 0; step < steps; ++step) {
      for (const ChainGroup& group : engine.share_out(1)) engine.advance(group, 1);
      host.step();
      engine.observe({0, kLadders}, {.levels = levels});
      for (std::size_t c = 0; c < kLadders; ++c) {
        const std::vector<Value> here = host.cold_levels(c);
        ASSERT_TRUE(std::equal(here.begin(), here.end(), levels.begin() + static_cast<std::ptrdiff_t>(c * here.size())))
            << "ladder " << c << ", step " << step;
      }
    }
    const std::optional<TemperingReport> report = engine.tempering();
    for (std::size_t pair = 0; pair + 1 < kRungs; ++pair) {
      double accepted = 0.0;
      for (std::size_t c = 0; c < kLadders; ++c) accepted += host.accepted(c, pair);
      const double tried = static_cast<double>(kLadders * ((steps + 1 - pair % 2) / 2));
      EXPECT_NEAR(accepted / tried, report->acceptance[pair], 1e-11);
    }
    EXPECT_EQ(host.round_trips(), report->round_trips);
  }
}

class OnGpuRbmTemper : public OnGpu {};

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
  ASSERT_EQ(here.trace.monitors.size(), there.trace.monitors.size());
  EXPECT_EQ(here.trace.acceptance_rate, there.trace.acceptance_rate);
  EXPECT_EQ(here.empirical_marginals, there.empirical_marginals);
  EXPECT_EQ(here.rao_blackwell, there.rao_blackwell);
  ASSERT_TRUE(here.tempering && there.tempering);
  EXPECT_EQ(here.tempering->betas, there.tempering->betas);
  EXPECT_EQ(here.tempering->steps, there.tempering->steps);
  EXPECT_EQ(here.tempering->round_trips, there.tempering->round_trips);
  ASSERT_EQ(here.tempering->acceptance.size(), there.tempering->acceptance.size());
  for (std::size_t k = 0; k < here.tempering->acceptance.size(); ++k) {
    EXPECT_NEAR(here.tempering->acceptance[k], there.tempering->acceptance[k], 1e-9);
  }
  EXPECT_NEAR(here.tempering->log_partition, there.tempering->log_partition,
              1e-9 * (1.0 + std::abs(there.tempering->log_partition)));
  ASSERT_EQ(here.tempering->paths.size(), there.tempering->paths.size());
  for (std::size_t k = 0; k < here.tempering->paths.size(); ++k) {
    EXPECT_EQ(here.tempering->paths.rung(k, 1), there.tempering->paths.rung(k, 1));
  }
}

std::vector<RbmWeights> tempered_rbms() {
  return {random_rbm(9, 6, 1.2, 5), random_rbm(50, 30, 0.4, 12), with_rates(random_rbm(130, 70, 0.5, 3)),
          bounded_rbm(90, 65, 4.0, 5)};
}

/// Numbers of ladders for which kernels cut replicas in every way that they do.
TEST_F(OnGpuRbmTemper, RunsAreThoseOfTheCpu) {
  for (const RbmWeights& weights : tempered_rbms()) {
    const Model model = model_of(weights);
    for (const std::size_t chains : {1U, 2U, 7U, 70U, 200U}) {
      const std::uint64_t first = chains % 2 == 0 ? 36 : 0;
      SCOPED_TRACE(std::to_string(weights.visible) + ", ladders " + std::to_string(chains));
      RunOptions cpu = tempered_run(Device::cpu, chains), cuda = tempered_run(Device::cuda, chains);
      cpu.first_chain = cuda.first_chain = first;
      expect_same(run(model, parse_sampler("temper"), cpu), run(model, parse_sampler("temper"), cuda));
    }
  }
}

TEST_F(OnGpuRbmTemper, ManyStepsAreThoseOfTheCpu) {
  const Model model = model_of(random_rbm(50, 30, 0.4, 12));
  RunOptions cpu = tempered_run(Device::cpu, 4), cuda = tempered_run(Device::cuda, 4);
  cpu.thin = cuda.thin = 100;
  expect_same(run(model, parse_sampler("temper"), cpu), run(model, parse_sampler("temper:of=rbm-gibbs"), cuda));
}

TEST_F(OnGpuRbmTemper, LargeRbmsAreThoseOfTheCpu) {
  const Model model = model_of(random_rbm(784, 500, 0.1, 9));
  RunOptions cpu = tempered_run(Device::cpu, 5), cuda = tempered_run(Device::cuda, 5);
  cpu.warmup = cuda.warmup = 20;
  cpu.thin = cuda.thin = 1;
  cpu.rao_blackwell = cuda.rao_blackwell = false;
  expect_same(run(model, parse_sampler("temper"), cpu), run(model, parse_sampler("temper"), cuda));
}

TEST_F(OnGpuRbmTemper, GoesOnFromAState) {
  for (const RbmWeights& weights : tempered_rbms()) {
    const Model model = model_of(weights);
    const Sampler sampler = parse_sampler("temper");
    RunOptions cpu = tempered_run(Device::cpu, 6), cuda = tempered_run(Device::cuda, 6);
    const RunResult whole = run(model, sampler, cpu);
    for (const auto& [from, to] : {std::pair(cpu, cuda), std::pair(cuda, cpu), std::pair(cuda, cuda)}) {
      poise::Run first(model, sampler, from);
      first.warm_up();
      first.sample(5);
      poise::Run second(model, sampler, to);
      second.load(first.save());
      second.sample(7);
      expect_same(whole, second.finish());
    }
  }
}

TEST_F(OnGpuRbmTemper, DrawsDependOnSeedAndChain) {
  const Model model = model_of(random_rbm(50, 30, 0.4, 12));
  RunOptions options = tempered_run(Device::cuda, 300);
  options.warmup = 0;
  const RunResult whole = run(model, parse_sampler("temper"), options);
  options.first_chain = 297;
  options.chains = 3;
  const RunResult part = run(model, parse_sampler("temper"), options);
  EXPECT_TRUE(std::equal(part.trace.x.begin(), part.trace.x.end(),
                         whole.trace.x.end() - static_cast<std::ptrdiff_t>(part.trace.x.size())));
}

/// What swaps are decided by, of all states at all rungs, in blocks of all sizes.
TEST_F(OnGpuRbmTemper, GainsAreThoseOfTheCpu) {
  constexpr std::size_t kRungs = 16;
  for (const RbmWeights& weights : {random_rbm(9, 6, 1.2, 5), random_rbm(9, 700, 0.3, 5)}) {
    const Rbm target(weights);
    const Rbm::Base base = base_of(weights);
    const std::vector<double> betas = first_betas(kRungs);
    for (const std::size_t count : {200U, 512U}) {
      CudaRbmLadders ladders(target, base, {.ladders = count});
      ladders.set_rungs({betas, std::vector<double>(kRungs - 1, 0.0), 0});
      for (std::size_t s = 0; s < count; ++s) {
        for (std::size_t r = 0; r < kRungs; ++r) ladders.set_levels(s, r, state_of_number(s, 9));
      }
      const CudaRbmLadders::Gains gains = ladders.gains();
      for (std::size_t s = 0; s < count; ++s) {
        const Rbm::State state = target.make_state(state_of_number(s, 9));
        const auto expected = [&](std::size_t from, std::size_t to) {
          return target.log_prob_change(state, betas[from], betas[to], base);
        };
        for (std::size_t r = 0; r < kRungs; ++r) {
          expect_near(gains.above[s * kRungs + r], r + 1 < kRungs ? expected(r, r + 1) : 0.0);
          expect_near(gains.below[s * kRungs + r], r > 0 ? expected(r - 1, r) : 0.0);
        }
      }
    }
  }
}

/// However many units are decided exactly.
TEST_F(OnGpuRbmTemper, DoubtChangesNoDraw) {
  std::vector<RbmWeights> rbms = tempered_rbms();
  rbms.push_back(bounded_rbm(90, 65, 30.0, 5));
  for (const RbmWeights& weights : rbms) {
    const Rbm target(weights);
    const std::vector<double> betas = first_betas(20);
    std::vector<std::vector<Value>> cold[2];
    for (const int doubting : {0, 1}) {
      CudaRbmLadders ladders(target, base_of(weights),
                             {.ladders = 9, .seed = 3, .sweeps = 4, .doubt = doubting == 0 ? 0.0 : 1e4});
      ladders.set_rungs({betas, std::vector<double>(betas.size() - 1, 0.0), 0});
      ladders.advance(0, 25);
      for (std::size_t c = 0; c < 9; ++c) {
        cold[doubting].emplace_back(weights.visible);
        ladders.get_cold_levels(c, cold[doubting].back());
      }
    }
    EXPECT_EQ(cold[0], cold[1]);
  }
}

/// Cold replicas of many ladders, against all states.
TEST_F(OnGpuRbmTemper, ColdStatesHaveTheLawOfTheModel) {
  constexpr std::size_t kLadders = 20000;
  const RbmWeights weights = random_rbm(9, 6, 1.2, 5);
  std::vector<double> expected, count(512, 0.0);
  double sum = 0.0;
  for (std::size_t s = 0; s < 512; ++s) {
    expected.push_back(std::exp(plain_log_prob(weights, state_of_number(s, 9))));
    sum += expected.back();
  }
  for (double& states : expected) states *= kLadders / sum;
  RunOptions options = short_run_on(Device::cuda, kLadders);
  options.keep = Keep::monitors;
  options.warmup = 0;
  poise::Run run(model_of(weights), parse_sampler("temper"), options);
  run.advance(60);
  const std::vector<Value> states = run.states();
  for (std::size_t c = 0; c < kLadders; ++c) ++count[number_of_state(std::span(states).subspan(c * 9, 9))];
  EXPECT_LT(std::abs(deviation(count, expected)), 6.0);
}

TEST_F(OnGpuRbmTemper, RefusesWhatDoesNotRunThere) {
  const Model model = model_of(random_rbm(9, 6, 1.2, 5));
  EXPECT_THROW(poise::Run(model, parse_sampler("temper:of=gwg"), short_run_on(Device::cuda, 4)), InputError);
}

}  // namespace poise::cuda_rbm_temper_test
