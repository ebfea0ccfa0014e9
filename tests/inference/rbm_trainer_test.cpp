/// Learning of restricted Boltzmann machines: the gradient against enumeration, the likelihood rises, threads do not
/// matter.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/file.hpp"
#include "inference/train/rbm_trainer.hpp"
#include "support/rbm_training.hpp"

namespace poise::rbm_trainer_test {

using namespace poise::testing;

TEST(RbmTrainerTest, CdFollowsItsExpectedGradient) {
  const RbmWeights rbm = random_rbm(4, 3, 1.5, 5);
  const Enumerated enumerated(rbm);
  const std::size_t chains = 40'000;
  const std::vector<Value> data = repeated(kPatterns, 4, chains / kPatterns.size());
  for (const std::uint64_t k : {1, 3}) {
    RbmTrainer trainer(rbm, {.gibbs_steps = k, .batch = chains, .rate = kFrozen});
    static_cast<void>(trainer.step(data));
    ASSERT_EQ(trainer.weights(), rbm);
    std::vector<double> law = law_of(kPatterns, enumerated.states);
    for (std::uint64_t step = 0; step < k; ++step) law = enumerated.after_step(law);
    expect_gradient(trainer.gradient(), enumerated, law, chains);
  }
}

/// What is learned is pinned: ctest runs this with every instruction set that the processor has.
TEST(RbmTrainerTest, WeightsAreTheSameOnEveryProcessor) {
  const std::vector<std::pair<Divergence, std::uint64_t>> pinned = {{Divergence::cd, 594503326755360511U},
                                                                    {Divergence::pcd, 1829696384872976132U}};
  constexpr Index visible = 45;
  const std::vector<Value> data = repeated(kPatterns, visible, 40);
  for (const auto& [method, expected] : pinned) {
    RbmTrainer trainer(initial_rbm(visible, 37, data, 1), {.method = method, .gibbs_steps = 3, .batch = 30});
    static_cast<void>(trainer.epoch(data));
    const RbmWeights& weights = trainer.weights();
    std::string bytes;
    for (const auto* values : {&weights.weights, &weights.visible_bias, &weights.hidden_bias}) {
      bytes.append(reinterpret_cast<const char*>(values->data()), values->size() * sizeof(float));
    }
    EXPECT_EQ(checksum(bytes), expected);
  }
}

/// Kept chains forget where they began, and their gradient is then that of the likelihood.
TEST(RbmTrainerTest, PcdComesToTheGradientOfTheLikelihood) {
  const RbmWeights rbm = random_rbm(4, 3, 1.5, 5);
  const Enumerated enumerated(rbm);
  std::vector<double> law = law_of({0}, enumerated.states);
  for (int step = 0; step < 60; ++step) law = enumerated.after_step(law);
  const std::vector<double> limit = enumerated.law();
  for (std::size_t v = 0; v < enumerated.states; ++v) ASSERT_NEAR(law[v], limit[v], 1e-6);  // 60 steps are enough
  const std::size_t chains = 40'000;
  RbmTrainer trainer(rbm, {.method = Divergence::pcd, .gibbs_steps = 6, .batch = chains, .rate = kFrozen});
  const std::vector<Value> data = repeated(kPatterns, 4, 1);
  for (int step = 0; step < 10; ++step) static_cast<void>(trainer.step(data));
  expect_gradient(trainer.gradient(), enumerated, limit, chains);
}

/// The mean over all pixels of log p(pixel | others) by enumeration; the estimate takes one pixel of each row.
TEST(RbmTrainerTest, PseudoLikelihoodAndErrorAreThoseOfTheMachine) {
  const RbmWeights rbm = random_rbm(4, 3, 1.5, 5);
  const Enumerated enumerated(rbm);
  const std::vector<double> law = enumerated.law();
  double mean = 0.0;
  double square = 0.0;
  double distance = 0.0;
  const double share = 1.0 / static_cast<double>(4 * kPatterns.size());
  for (const std::size_t v : kPatterns) {
    for (std::size_t i = 0; i < 4; ++i) {
      const double one = 4 * std::log(law[v] / (law[v] + law[v ^ (std::size_t{1} << i)]));
      mean += share * one;
      square += share * one * one;
      double a = rbm.visible_bias[i];
      for (std::size_t j = 0; j < 3; ++j) a += rbm.weights[j * 4 + i] * enumerated.hidden_on(v, j);
      distance += share * std::pow(Enumerated::bit(v, i) - sigmoid(a), 2);
    }
  }
  const std::size_t rows = 20'000;
  RbmTrainer trainer(rbm, {});
  const RbmMetrics metrics = trainer.evaluate(repeated(kPatterns, 4, rows / kPatterns.size()));
  EXPECT_NEAR(metrics.pseudo_log_likelihood, mean, 6 * std::sqrt((square - mean * mean) / rows));
  EXPECT_NEAR(metrics.reconstruction_error, distance, 1e-6);
}

TEST(RbmTrainerTest, TheLikelihoodRises) {
  const std::vector<double> truth = noisy_rows();
  const std::vector<Value> data = draw_noisy_rows(truth, 2000);
  for (const Divergence method : {Divergence::cd, Divergence::pcd}) {
    // From this seed every hidden unit finds a row of its own; from some, one of them is still idle after 45 epochs.
    const RbmWeights start = initial_rbm(9, 3, data, 1);
    RbmTrainer trainer(start, {.method = method, .gibbs_steps = 5, .batch = 100, .rate = 0.02, .seed = 1});
    const double independent = divergence(truth, start);
    const RbmMetrics first = trainer.evaluate(data);
    double before = independent;
    for (int part = 0; part < 3; ++part) {
      for (int epoch = 0; epoch < 15; ++epoch) {
        const RbmEpoch result = trainer.epoch(data);
        EXPECT_EQ(result.rows, 2000U);
        EXPECT_TRUE(std::isfinite(result.metrics.pseudo_log_likelihood));
      }
      const double after = divergence(truth, trainer.weights());
      EXPECT_LT(after, before) << part;
      before = after;
    }
    EXPECT_LT(before, independent / 10);
    const RbmMetrics last = trainer.evaluate(data);
    EXPECT_GT(last.pseudo_log_likelihood, first.pseudo_log_likelihood);
    EXPECT_LT(last.reconstruction_error, first.reconstruction_error);
  }
}

/// After every batch of two epochs, also where one of them is over.
TEST(RbmTrainerTest, ASavedTrainingGoesOnBitByBit) {
  for (const Divergence method : {Divergence::cd, Divergence::pcd}) {
    const std::vector<Value> data = random_data(83 * 90, 0.4);
    const RbmTrainerOptions options{.method = method, .gibbs_steps = 2, .batch = 16, .seed = 3};
    const RbmWeights start = initial_rbm(83, 21, data, 2);
    RbmTrainer whole(start, options);
    std::vector<std::string> saved;
    std::vector<RbmEpoch> epochs;
    const RbmTrainerHooks hooks{.progress = [&](const RbmProgress&) { saved.push_back(whole.save()); }};
    for (int k = 0; k < 2; ++k) epochs.push_back(whole.epoch(data, hooks));
    ASSERT_EQ(saved.size(), 12U);
    for (std::size_t k = 0; k < saved.size(); ++k) {
      RbmTrainer other(start, options);
      other.load(saved[k]);
      RbmEpoch last = other.epoch(data);
      EXPECT_EQ(last.metrics.pseudo_log_likelihood, epochs[k / 6].metrics.pseudo_log_likelihood);
      EXPECT_EQ(last.rows, 90U);
      if (k < 6) last = other.epoch(data);
      EXPECT_EQ(other.weights(), whole.weights()) << k;
    }
    RbmTrainer smaller(initial_rbm(83, 20, data, 2), options);
    EXPECT_THROW(smaller.load(saved[3]), std::runtime_error);
    EXPECT_THROW(smaller.load(saved[3].substr(0, 100)), std::runtime_error);
  }
}

TEST(RbmTrainerTest, ThreadsDoNotMatter) {
  const std::vector<Value> data = random_data(std::size_t{100} * 83, 0.3);
  for (const Divergence method : {Divergence::cd, Divergence::pcd}) {
    std::vector<RbmWeights> learned;
    for (const unsigned threads : {1U, 2U, 5U}) {
      RbmTrainer trainer(initial_rbm(83, 70, data, 2),
                         {.method = method, .gibbs_steps = 10, .rate = 0.01, .seed = 2, .threads = threads});
      static_cast<void>(trainer.epoch(data));
      static_cast<void>(trainer.evaluate(data));  // leaves no trace
      if (threads != 5) static_cast<void>(trainer.evaluate(data));
      static_cast<void>(trainer.epoch(data));
      learned.push_back(trainer.weights());
    }
    EXPECT_EQ(learned[0], learned[1]);
    EXPECT_EQ(learned[0], learned[2]);
  }
}

TEST(RbmTrainerTest, BeginsWithTheMeansOfTheData) {
  const std::vector<Value> data = {1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0, 0};
  const RbmWeights rbm = initial_rbm(3, 1000, data, 1);
  EXPECT_FLOAT_EQ(rbm.visible_bias[0], static_cast<float>(std::log(0.999 / 0.001)));
  EXPECT_FLOAT_EQ(rbm.visible_bias[1], static_cast<float>(-std::log(0.999 / 0.001)));
  EXPECT_FLOAT_EQ(rbm.visible_bias[2], 0.0F);
  double square = 0.0;
  for (const float weight : rbm.weights) square += static_cast<double>(weight) * weight / 3000.0;
  EXPECT_NEAR(square, 1e-4, 6 * 1e-4 * std::sqrt(2.0 / 3000.0));  // the variance of z^2 is 2
}

TEST(RbmTrainerTest, StopsAfterABatch) {
  const std::vector<Value> data = random_data(std::size_t{100} * 6, 0.5);
  std::atomic<bool> stop{false};
  RbmTrainer trainer(initial_rbm(6, 2, data, 1), {.gibbs_steps = 1, .batch = 30});
  std::vector<std::uint64_t> rows;
  const RbmTrainerHooks hooks{.progress =
                                  [&](const RbmProgress& progress) {
                                    EXPECT_EQ(progress.batches, 4U);
                                    rows.push_back(progress.rows);
                                    if (progress.batch == 2) stop = true;
                                  },
                              .stop = &stop};
  const RbmEpoch epoch = trainer.epoch(data, hooks);
  EXPECT_TRUE(epoch.interrupted);
  EXPECT_EQ(epoch.rows, 60U);
  EXPECT_EQ(rows, (std::vector<std::uint64_t>{30, 60}));
}

TEST(RbmTrainerTest, RefusesWhatItCannotLearnFrom) {
  const std::vector<Value> data = {0, 1, 1, 0, 2, 1};
  EXPECT_THROW(static_cast<void>(initial_rbm(4, 2, data, 1)), InputError);
  EXPECT_THROW(static_cast<void>(initial_rbm(3, 2, data, 1)), InputError);
  EXPECT_THROW(static_cast<void>(initial_rbm(3, 2, {}, 1)), InputError);
  RbmWeights odd = random_rbm(3, 2, 1.0, 5);
  RbmTrainer trainer(odd, {.batch = 1});
  EXPECT_THROW(trainer.step(std::vector<Value>{0, 1, 1, 0, 1, 1}), InputError);
  odd.weights.pop_back();
  EXPECT_THROW(RbmTrainer(odd, {}), InputError);
  try {
    RbmTrainerOptions{.gibbs_steps = 0, .batch = 0, .rate = std::nan("")}.check();
    FAIL();
  } catch (const InputError& error) {
    const std::string sentence = error.what();
    for (const char* part : {"0 steps", "batch of 0", "rate of nan"}) {
      EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
    }
  }
}

}  // namespace poise::rbm_trainer_test
