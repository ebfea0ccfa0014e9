/// Block Gibbs of RBMs on a GPU has the draws of the CPU, bit by bit. What its kernels compute is tried on the host as
/// well; the rest is skipped where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include <poise/extend/base/archive.hpp>
#include "engines/common/saved_rbm_chain.hpp"
#include "engines/cuda/rbm/rbm_gibbs_chains.hpp"
#include "engines/rows.hpp"
#include "kernels/rbm_gibbs.hpp"
#include "support/cuda/host_rbm_gibbs.hpp"
#include "support/cuda/on_gpu.hpp"
#include "support/small_rbms.hpp"

namespace poise::cuda_rbm_gibbs_test {

using namespace poise::testing;

class OnGpuRbmGibbs : public OnGpu {};

Model model_of(const RbmWeights& weights) { return rbm_model("rbm", std::make_shared<const Rbm>(weights)); }

struct Case {
  RbmWeights weights;
  double doubt;
};
/// Numbers of units on either side of those that kernels take together; weights of all sizes; much and little doubt.
std::vector<Case> cases() {
  return {
      {random_rbm(5, 3, 1.0, 1), 0.0},     {random_rbm(100, 70, 0.2, 2), 0.0},  {random_rbm(100, 70, 0.2, 2), 0.3},
      {random_rbm(100, 70, 0.2, 2), 1e4},  {random_rbm(64, 32, 2.0, 3), 0.0},   {random_rbm(33, 129, 0.05, 4), 0.0},
      {bounded_rbm(90, 65, 30.0, 5), 0.0}, {bounded_rbm(90, 65, 30.0, 5), 5.0}, {bounded_rbm(40, 300, 400.0, 6), 0.0},
      {random_rbm(300, 40, 0.0, 7), 0.0},  {random_rbm(128, 256, 0.1, 8), 0.0}, {random_rbm(784, 500, 0.1, 9), 0.0}};
}

/// The same chains on the CPU.
class CpuChains {
 public:
  CpuChains(const Rbm& target, std::size_t count, std::uint64_t seed, std::uint64_t first_chain)
      : target_(target), kernel_(target) {
    for (std::size_t c = 0; c < count; ++c) {
      states_.push_back(target.make_state(std::vector<Value>(target.num_variables(), 0)));
      scratches_.emplace_back(target);
      rngs_.push_back(make_rng(seed, Stream::chain, first_chain + c));
    }
  }
  void advance(std::uint64_t steps) {
    for (std::size_t first = 0; first < states_.size(); first += RbmGibbs::kChainsTogether) {
      std::vector<RbmGibbs::Member> group;
      for (std::size_t c = first; c < std::min(states_.size(), first + RbmGibbs::kChainsTogether); ++c) {
        group.push_back({&states_[c], &scratches_[c], &rngs_[c]});
      }
      kernel_.advance(target_, group, steps);
    }
  }
  [[nodiscard]] const Rbm::State& state(std::size_t chain) const { return states_[chain]; }

 private:
  const Rbm& target_;
  RbmGibbs kernel_;
  std::vector<Rbm::State> states_;
  std::vector<RbmGibbs::Scratch> scratches_;
  std::vector<Rng> rngs_;
};

TEST(CudaRbmGibbs, KernelsHaveTheDrawsOfTheCpu) {
  for (const auto& [weights, doubt] : cases()) {
    const Rbm target(weights);
    HostRbmGibbs here(target, doubt, 77);
    CpuChains there(target, HostRbmGibbs::kChains, 77, 0);
    const int sweeps = weights.weights.size() > 100000 ? 2 : 20;
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      here.sweep();
      there.advance(1);
      for (unsigned c = 0; c < HostRbmGibbs::kChains; ++c) {
        ASSERT_EQ(here.levels(c), there.state(c).x)
            << weights.visible << " x " << weights.hidden << ", doubt " << doubt << ", sweep " << sweep;
      }
    }
  }
}

/// The exact rule is for few units only, or it would take the time.
TEST(CudaRbmGibbs, KernelsLeaveFewUnitsOpen) {
  const Rbm target(random_rbm(784, 250, 0.15, 3));
  HostRbmGibbs here(target, 0.0, 3);
  for (int sweep = 0; sweep < 2; ++sweep) here.sweep();
  EXPECT_LT(here.settled(), 2U * HostRbmGibbs::kChains * (784 + 250) / 500);
}

/// Random bits next to the threshold, where a bound that is too narrow would show.
TEST(CudaRbmGibbs, BoundsAreNeverWrong) {
  Rng rng(3, 3);
  for (const double scale : {0.05, 0.5, 5.0, 50.0}) {
    const RbmWeights weights = bounded_rbm(97, 130, scale, 11);
    const cuda::RbmGibbsLayer layer(weights, RbmLayer::Side::hidden, 0.0);
    for (int trial = 0; trial < 200; ++trial) {
      const double density = rng.uniform();
      std::vector<Value> x(97);
      for (Value& level : x) level = rng.uniform() < density ? 1 : 0;
      for (Index unit = 0; unit < 130; ++unit) {
        std::int32_t sum = 0;
        long double a = weights.hidden_bias[unit];
        for (Index i = 0; i < 97; ++i) {
          if (x[i] == 0) continue;
          a += weights.weights[unit * 97 + i];
          const unsigned place = i % 32, byte = place / 8, t = place % 8 / 2, half = place % 2;
          const auto& from = layer.fragments()[(unit / 8 * layer.input_words() + i / 32) * 32 + unit % 8 * 4 + t];
          sum += 256 * static_cast<std::int8_t>(from.high[half] >> 8 * byte) +
                 static_cast<std::int8_t>(from.low[half] >> 8 * byte);
        }
        const long double threshold = 65536.0L / (1.0L + std::exp(-a));
        const double near = std::floor(static_cast<double>(threshold)) + std::floor(7.0 * rng.uniform()) - 3.0;
        const auto bits = static_cast<std::uint32_t>(std::clamp(near, 0.0, 65535.0));
        const cuda::GibbsDecision decision = cuda::decide(layer.bounds()[unit], sum, bits);
        if (decision.open) {
          ASSERT_FALSE(decision.on);
        } else if (decision.on) {
          ASSERT_LE(bits + 1.0L, threshold);
        } else {
          ASSERT_GE(static_cast<long double>(bits), threshold);
        }
      }
    }
  }
}

TEST(CudaRbmGibbs, ExponentialIsThatOfTheCpu) {
  Rng rng(8, 1);
  for (int k = 0; k < 100000; ++k) {
    const double x = (rng.uniform() - 0.5) * (k % 2 == 0 ? 1500.0 : 20.0);
    ASSERT_EQ(cuda::plain_exp(x), exp8(broadcast8(x))[0]) << x;
  }
}

/// Saved chains of a device have the random numbers that chains of the CPU would have.
TEST(CudaRbmGibbs, StreamsGoOnWhereStepsEnd) {
  for (const unsigned batches : {0U, 1U, 7U}) {
    Rng filled(5, 3), moved(5, 3);
    std::vector<std::uint64_t> random(Rng::kBatch);
    for (unsigned k = 0; k < batches; ++k) filled.fill(random);
    moved.go_to_batch(batches);
    EXPECT_EQ(moved.position(), std::uint64_t{batches} * Rng::kBatch);
    Saver one, other;
    one(filled);
    other(moved);
    EXPECT_EQ(one.take(), other.take());
    EXPECT_EQ(filled.uniform(), moved.uniform());
  }
}

/// What a device knows of a chain is enough for one of the CPU to go on with, at any temperature.
TEST(CudaRbmGibbs, SavedChainsAreThoseOfTheCpu) {
  const auto cold = std::make_shared<const Rbm>(random_rbm(50, 30, 0.4, 12));
  const Rbm::Base base{std::vector<double>(50, 0.3), std::vector<double>(30, -0.2)};
  for (const double beta : {1.0, 0.4}) {
    const auto target = beta == 1.0 ? cold : std::make_shared<const Rbm>(cold->heated(beta, base));
    EngineOptions options;
    options.seed = 3;
    options.first_chain = 4;
    options.starts.assign(2, std::vector<Value>(50, 1));
    options.reference = options.starts.front();
    const auto make = [&] { return make_engine(rbm_model("rbm", target), parse_sampler("rbm-gibbs"), options).engine; };
    const std::unique_ptr<Engine> first = make(), second = make();
    const ChainGroup all{0, 2};
    first->advance(all, 7);
    first->start_marginals(all, true);
    first->advance(all, 20);
    first->visit_marginals(all);
    for (std::size_t c = 0; c < 2; ++c) {
      const RbmChainOf of{*target, options.reference, options.seed, options.first_chain + c};
      Saver from_cpu, from_device;
      first->save_chain(c, from_cpu);
      const std::string bytes = from_cpu.take();
      Loader in(bytes);
      const SavedRbmChain chain = load_rbm_chain(of, in);
      EXPECT_TRUE(in.at_end());
      EXPECT_EQ(chain.steps, 27U);
      EXPECT_EQ(chain.counted_from, 7U);
      save_rbm_chain(of, chain, from_device);
      const std::string again = from_device.take();
      EXPECT_EQ(again.size(), bytes.size());
      Loader other(again);
      second->load_chain(c, other);
      EXPECT_TRUE(other.at_end());
    }
    std::vector<Value> levels[2] = {std::vector<Value>(100), std::vector<Value>(100)};
    std::vector<double> marginals[2] = {std::vector<double>(100), std::vector<double>(100)};
    std::vector<Evals> evals[2] = {std::vector<Evals>(2), std::vector<Evals>(2)};
    std::vector<double> accepted[2] = {std::vector<double>(2), std::vector<double>(2)};
    for (const int k : {0, 1}) {
      Engine& engine = k == 0 ? *first : *second;
      engine.advance(all, 30);
      engine.visit_marginals(all);
      engine.observe(
          all, {.accepted = accepted[k], .levels = levels[k], .empirical_marginals = marginals[k], .evals = evals[k]});
    }
    EXPECT_EQ(levels[0], levels[1]);
    EXPECT_EQ(marginals[0], marginals[1]);
    EXPECT_EQ(accepted[0], accepted[1]);
    for (std::size_t c = 0; c < 2; ++c) {
      EXPECT_EQ(evals[0][c].target, evals[1][c].target);
      EXPECT_EQ(evals[0][c].gradient, evals[1][c].gradient);
      EXPECT_EQ(first->rao_blackwell(c).sums, second->rao_blackwell(c).sums);
    }
  }
}

std::vector<Value> levels_of(const CudaRbmGibbsChains& chains, std::size_t chain, Index n) {
  std::vector<Value> x(n);
  chains.get_levels(chain, x);
  return x;
}

/// Of 1 to 3000 chains, which are all ways in which kernels cut them, in calls of a few sweeps and of many.
TEST_F(OnGpuRbmGibbs, HasTheDrawsOfTheCpu) {
  for (const auto& [weights, doubt] : cases()) {
    const Rbm target(weights);
    const bool large = weights.weights.size() > 100000;
    for (const std::size_t count : {1, 16, 70, 700, 3000}) {
      SCOPED_TRACE(std::to_string(weights.visible) + " x " + std::to_string(weights.hidden) + ", doubt " +
                   std::to_string(doubt) + ", chains " + std::to_string(count));
      constexpr std::uint64_t kFirst = 5;
      CudaRbmGibbsChains here(target, count, 77, kFirst, doubt);
      CpuChains there(target, count, 77, kFirst);
      for (const std::uint64_t steps : {1, 3, 40}) {
        if (steps > 3 && (large || count > 1000)) continue;
        here.advance(steps);
        there.advance(steps);
        for (std::size_t c = 0; c < count; ++c) {
          ASSERT_EQ(levels_of(here, c, weights.visible), there.state(c).x) << "chain " << c << ", steps " << steps;
        }
      }
      const CudaRbmGibbsChains::Sums sums = here.sums();
      for (std::size_t c = 0; c < count; ++c) {
        const double log_prob = target.log_prob(there.state(c));
        ASSERT_NEAR(sums.log_prob[c], log_prob, 1e-11 * (1.0 + std::abs(log_prob)));
        ASSERT_EQ(sums.on[c], there.state(c).count);
      }
    }
  }
}

TEST_F(OnGpuRbmGibbs, CountsEverySweep) {
  const Rbm target(random_rbm(70, 40, 0.3, 8));
  constexpr std::size_t kChains = 37;
  for (const std::uint64_t steps : {1, 14, 15, 16, 100}) {
    CudaRbmGibbsChains here(target, kChains, 3, 0);
    CpuChains there(target, kChains, 3, 0);
    here.advance(4);
    there.advance(4);
    here.start_counting();
    std::vector<std::uint64_t> expected(kChains * 70, 0);
    for (std::uint64_t step = 0; step < steps; ++step) {
      there.advance(1);
      for (std::size_t c = 0; c < kChains; ++c) {
        for (Index i = 0; i < 70; ++i) expected[c * 70 + i] += there.state(c).x[i];
      }
    }
    here.advance(steps);
    for (std::size_t c = 0; c < kChains; ++c) {
      const std::vector<std::uint64_t> counts = here.up_counts(c);
      ASSERT_TRUE(std::equal(counts.begin(), counts.end(), expected.begin() + static_cast<std::ptrdiff_t>(c * 70)));
    }
  }
}

/// All states of a small RBM and their probabilities.
std::vector<double> probabilities(const RbmWeights& weights) {
  std::vector<double> probability;
  double sum = 0.0;
  for (std::size_t s = 0; s < std::size_t{1} << weights.visible; ++s) {
    probability.push_back(std::exp(plain_log_prob(weights, state_of_number(s, weights.visible))));
    sum += probability.back();
  }
  for (double& p : probability) p /= sum;
  return probability;
}

TEST_F(OnGpuRbmGibbs, KeepsTheDistribution) {
  const RbmWeights weights = random_rbm(9, 6, 1.2, 5);
  const std::vector<double> probability = probabilities(weights);
  std::vector<double> expected = probability;
  for (double& count : expected) count *= 200000.0;
  for (const std::uint64_t steps : {1, 20}) {
    const auto count = counts_after(model_of(weights), parse_sampler("rbm-gibbs"), probability, steps);
    EXPECT_LT(std::abs(deviation(count, expected)), 6.0) << steps;
  }
}

TEST_F(OnGpuRbmGibbs, RunsAreThoseOfTheCpu) {
  const Model model = model_of(random_rbm(50, 30, 0.4, 12));
  for (const std::size_t chains : {1U, 5U, 100U}) {
    RunOptions options = short_run_on(Device::cpu, chains);
    options.rao_blackwell = true;
    const RunResult there = run(model, parse_sampler("rbm-gibbs"), options);
    options.device = Device::cuda;
    const RunResult here = run(model, parse_sampler("rbm-gibbs"), options);
    EXPECT_EQ(here.trace.x, there.trace.x);
    EXPECT_EQ(here.empirical_marginals, there.empirical_marginals);
    EXPECT_EQ(here.rao_blackwell, there.rao_blackwell);
    ASSERT_EQ(here.trace.monitors.size(), there.trace.monitors.size());
  }
}

/// On either device, from either.
TEST_F(OnGpuRbmGibbs, SavedStatesGoOn) {
  const Model model = model_of(random_rbm(50, 30, 0.4, 12));
  const Sampler sampler = parse_sampler("rbm-gibbs");
  RunOptions options = short_run_on(Device::cpu, 40);
  options.rao_blackwell = true;
  const RunResult whole = run(model, sampler, options);
  for (const Device from : {Device::cpu, Device::cuda}) {
    for (const Device to : {Device::cpu, Device::cuda}) {
      options.device = from;
      poise::Run first(model, sampler, options);
      first.warm_up();
      first.sample(5);
      options.device = to;
      poise::Run second(model, sampler, options);
      second.load(first.save());
      second.sample(7);
      const RunResult resumed = second.finish();
      EXPECT_EQ(whole.trace.x, resumed.trace.x);
      EXPECT_EQ(whole.empirical_marginals, resumed.empirical_marginals);
    }
  }
}

}  // namespace poise::cuda_rbm_gibbs_test
