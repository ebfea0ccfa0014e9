/// Contrastive divergence on a GPU: its gradient against enumeration, what it learns against the CPU, and states that
/// go on. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include "inference/train/rbm_trainer.hpp"
#include "support/cuda/on_gpu.hpp"
#include "support/rbm_training.hpp"

namespace poise::cuda_rbm_trainer_test {

using namespace poise::testing;

class OnGpuRbmTrainer : public OnGpu {};

TEST_F(OnGpuRbmTrainer, CdFollowsItsExpectedGradient) {
  const RbmWeights rbm = random_rbm(4, 3, 1.5, 5);
  const Enumerated enumerated(rbm);
  const std::size_t chains = 40'000;
  const std::vector<Value> data = repeated(kPatterns, 4, chains / kPatterns.size());
  for (const std::uint64_t k : {1, 3}) {
    RbmTrainer trainer(rbm, {.gibbs_steps = k, .batch = chains, .rate = kFrozen, .device = Device::cuda});
    const RbmMetrics metrics = trainer.step(data);
    ASSERT_EQ(trainer.weights(), rbm);
    std::vector<double> law = law_of(kPatterns, enumerated.states);
    for (std::uint64_t step = 0; step < k; ++step) law = enumerated.after_step(law);
    expect_gradient(trainer.gradient(), enumerated, law, chains);
    const RbmMetrics expected = trainer.evaluate(data);  // on the CPU
    EXPECT_NEAR(metrics.reconstruction_error, expected.reconstruction_error, 1e-5);
    // Both are of drawn pixels, whose numbers spread by about 4.
    EXPECT_NEAR(metrics.pseudo_log_likelihood, expected.pseudo_log_likelihood, 6 * 4 * std::sqrt(2.0 / chains));
  }
}

TEST_F(OnGpuRbmTrainer, PcdComesToTheGradientOfTheLikelihood) {
  const RbmWeights rbm = random_rbm(4, 3, 1.5, 5);
  const Enumerated enumerated(rbm);
  const std::size_t chains = 40'000;
  RbmTrainer trainer(
      rbm, {.method = Divergence::pcd, .gibbs_steps = 6, .batch = chains, .rate = kFrozen, .device = Device::cuda});
  const std::vector<Value> data = repeated(kPatterns, 4, 1);
  for (int step = 0; step < 10; ++step) static_cast<void>(trainer.step(data));
  expect_gradient(trainer.gradient(), enumerated, enumerated.law(), chains);
}

/// One update of an RBM that is larger than a tile: data without chance, so that all but the chains' part is the CPU's.
TEST_F(OnGpuRbmTrainer, UpdatesAsTheCpuDoes) {
  constexpr Index kVisible = 150, kHidden = 70;
  // Visible units that are on or off for certain make chains that always do the same.
  RbmWeights rbm = random_rbm(kVisible, kHidden, 0.05, 3);
  for (Index i = 0; i < kVisible; ++i) rbm.visible_bias[i] = i % 3 == 0 ? 70.0F : -70.0F;
  const std::vector<Value> data = random_data(std::size_t{kVisible} * 37, 0.4);
  RbmTrainer here(rbm, {.gibbs_steps = 2, .batch = 40, .rate = 0.01, .device = Device::cuda});
  RbmTrainer there(rbm, {.gibbs_steps = 2, .batch = 40, .rate = 0.01});
  for (int update = 0; update < 3; ++update) {
    const RbmMetrics mine = here.step(data);
    const RbmMetrics theirs = there.step(data);
    EXPECT_NEAR(mine.reconstruction_error, theirs.reconstruction_error, 1e-4);
    const std::vector<double> found = flat(here.gradient()), expected = flat(there.gradient());
    for (std::size_t k = 0; k < found.size(); ++k) ASSERT_NEAR(found[k], expected[k], 1e-5) << k;
    const std::vector<double> learned = flat(here.weights()), wanted = flat(there.weights());
    for (std::size_t k = 0; k < found.size(); ++k) {
      // Where gradients nearly vanish, Adam follows their sign.
      if (std::abs(expected[k]) < 1e-3) continue;
      ASSERT_NEAR(learned[k], wanted[k], 1e-4) << k;
    }
  }
}

TEST_F(OnGpuRbmTrainer, TheLikelihoodRises) {
  const std::vector<double> truth = noisy_rows();
  const std::vector<Value> data = draw_noisy_rows(truth, 2000);
  for (const Divergence method : {Divergence::cd, Divergence::pcd}) {
    const RbmWeights start = initial_rbm(9, 3, data, 1);
    const double independent = divergence(truth, start);
    // Some hidden units are idle after 45 epochs; from ten seeds on the CPU none is after 90.
    RbmTrainer trainer(
        start, {.method = method, .gibbs_steps = 5, .batch = 100, .rate = 0.02, .seed = 1, .device = Device::cuda});
    for (int epoch = 0; epoch < 90; ++epoch) EXPECT_EQ(trainer.epoch(data).rows, 2000U);
    EXPECT_LT(divergence(truth, trainer.weights()), independent / 10);
  }
}

/// After every batch of two epochs, also where one of them is over.
TEST_F(OnGpuRbmTrainer, ASavedTrainingGoesOnBitByBit) {
  for (const Divergence method : {Divergence::cd, Divergence::pcd}) {
    const std::vector<Value> data = random_data(83 * 90, 0.4);
    const RbmTrainerOptions options{.method = method, .gibbs_steps = 2, .batch = 16, .seed = 3, .device = Device::cuda};
    const RbmWeights start = initial_rbm(83, 21, data, 2);
    RbmTrainer whole(start, options);
    std::vector<std::string> saved;
    const RbmTrainerHooks hooks{.progress = [&](const RbmProgress&) { saved.push_back(whole.save()); }};
    for (int k = 0; k < 2; ++k) static_cast<void>(whole.epoch(data, hooks));
    ASSERT_EQ(saved.size(), 12U);
    for (std::size_t k = 0; k < saved.size(); ++k) {
      RbmTrainer other(start, options);
      other.load(saved[k]);
      static_cast<void>(other.epoch(data));
      if (k < 6) static_cast<void>(other.epoch(data));
      EXPECT_EQ(other.weights(), whole.weights()) << k;
    }
    // The CPU goes on from it too, with random numbers of its own.
    RbmTrainerOptions on_cpu = options;
    on_cpu.device = Device::cpu;
    RbmTrainer other(start, on_cpu);
    other.load(saved[3]);
    EXPECT_EQ(other.epoch(data).rows, 90U);
  }
}

TEST_F(OnGpuRbmTrainer, StopsAfterABatch) {
  const std::vector<Value> data = random_data(std::size_t{100} * 6, 0.5);
  std::atomic<bool> stop{false};
  RbmTrainer trainer(initial_rbm(6, 2, data, 1), {.gibbs_steps = 1, .batch = 30, .device = Device::cuda});
  const RbmTrainerHooks hooks{.progress = [&](const RbmProgress& progress) { stop = progress.batch == 2; },
                              .stop = &stop};
  const RbmEpoch epoch = trainer.epoch(data, hooks);
  EXPECT_TRUE(epoch.interrupted);
  EXPECT_EQ(epoch.rows, 60U);
}

/// Where there is none, a sentence.
TEST(RbmTrainerTest, ADeviceThatIsNotThereIsRefused) {
  if (has_gpu()) GTEST_SKIP() << "there is one";
  const RbmWeights rbm = random_rbm(4, 3, 1.5, 5);
  EXPECT_THROW(RbmTrainer(rbm, {.device = Device::cuda}), InputError);
  EXPECT_EQ(RbmTrainer(rbm, {.device = Device::automatic}).device(), Device::cpu);
}

}  // namespace poise::cuda_rbm_trainer_test
