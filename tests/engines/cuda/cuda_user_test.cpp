/// User targets on a GPU: how batches are written and read, everywhere; steps that keep the law, where there is a GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <poise/extend/engines/samplers.hpp>
#include "engines/cuda/gradient/user_batch.hpp"
#include "engines/rows.hpp"
#include "support/cuda/on_gpu.hpp"
#include "support/cuda/parity.hpp"
#include "support/device_table.hpp"
#include "support/gradient_transitions.hpp"
#include "support/input.hpp"

#include "engines/cuda/gradient/user_chains.hpp"

namespace poise::cuda_user_test {

using namespace poise::testing;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Labels, pairs, floats and doubles in every combination that matters.
std::vector<DeviceTableOptions> appearances() {
  return {{.variables = 7},
          {.variables = 6, .labels = {-1.0, 1.0}, .double_states = true, .double_answers = true},
          {.variables = 6, .labels = {3.0, -2.0}, .double_answers = true},
          {.variables = 5, .one_hot = true}};
}

TEST(UserBatch, GradientsAreThoseOfTheTargetOnTheCpu) {
  for (const DeviceTableOptions& options : appearances()) {
    const auto table = std::make_shared<DeviceTable>(options);
    const BatchTarget target(table->shape(), table);
    const Index n = options.variables;
    const cuda::UserShape shape{n, options.one_hot, target.shape().label(0), target.shape().label(1)};
    for (std::size_t s = 0; s < table->log_probs.size(); ++s) {
      const BatchTarget::State state = target.make_state(state_of_number(s, n));
      const BatchTarget::State* const pointer = &state;
      std::vector<double> log_ratios(n);
      double* const to = log_ratios.data();
      target.first_order_log_ratios(std::span(&pointer, 1), std::span<double* const>(&to, 1));
      std::vector<double> room(table->width(), kNan);
      for (Index i = 0; i < n; ++i) {
        const bool up = (s >> i & 1) != 0;
        bool finite = false;
        const float derivative = cuda::derivative_at(shape, {table->gradients[s].data(), true}, i, finite);
        EXPECT_TRUE(finite);
        EXPECT_NEAR(up ? -derivative : derivative, log_ratios[i], 1e-6);
        cuda::write_level(shape, {room.data(), true}, i, up);
      }
      for (std::size_t i = 0; i < n; ++i) {
        const Value level = state.x[i];
        if (options.one_hot) {
          EXPECT_EQ(room[2 * i + level], 1.0);
          EXPECT_EQ(room[2 * i + 1 - level], 0.0);
        } else {
          EXPECT_EQ(room[i], target.shape().label(level));
        }
      }
    }
  }
}

TEST(UserBatch, GradientsStayFinite) {
  const cuda::UserShape shape{4, false, 0.0, 1.0};
  const std::vector<double> gradient = {1e300, -1e300, kInfinity, kNan};
  bool finite = false;
  EXPECT_EQ(cuda::derivative_at(shape, {gradient.data(), true}, 0, finite), 1e30F);
  EXPECT_TRUE(finite);
  EXPECT_EQ(cuda::derivative_at(shape, {gradient.data(), true}, 1, finite), -1e30F);
  for (const std::size_t bad : {2, 3}) {
    EXPECT_EQ(cuda::derivative_at(shape, {gradient.data(), true}, bad, finite), 0.0F);
    EXPECT_FALSE(finite);
  }
}

TEST(UserBatch, FailuresAreThoseThatTheCpuRefuses) {
  using cuda::failure_of;
  EXPECT_EQ(failure_of(-3.0, true, 5), cuda::kNoFailure);
  EXPECT_EQ(failure_of(-kInfinity, true, 5), cuda::kNoFailure);
  EXPECT_EQ(failure_of(-kInfinity, false, 5), cuda::kNoFailure);
  EXPECT_EQ(failure_of(kNan, false, 5), 5U);
  EXPECT_EQ(failure_of(kInfinity, true, 5), (std::uint64_t{1} << 32) + 5);
  EXPECT_EQ(failure_of(1.0, false, 5), (std::uint64_t{2} << 32) + 5);
}

/// A target whose code is on the CPU.
class OnCpu : public BatchFunction {
 public:
  explicit OnCpu(bool gradient) : gradient_(gradient) {}
  void log_prob(std::span<const Value>, std::span<double> out) override { std::fill(out.begin(), out.end(), 0.0); }
  [[nodiscard]] bool has_gradient() const override { return gradient_; }

 private:
  bool gradient_;
};

TEST(UserTargets, SayWhyTheyDoNotRunOnAGpu) {
  if (!engine_table().gpu) GTEST_SKIP() << "this build is without CUDA";
  const auto why = [](const std::vector<Index>& cardinalities, bool gradient, const char* sampler) {
    const Model model = callback_model("mine", {cardinalities, {}}, std::make_shared<OnCpu>(gradient), {});
    return why_not(Device::cuda, model, parse_sampler(sampler));
  };
  EXPECT_EQ(why({2, 2}, true, "gibbs"),
            "the samplers that do on such models are 'gwg', 'flsb', 'flsb1', 'flsb2', 'dlmc', 'dlsb', 'dmala'");
  EXPECT_EQ(why({2, 2}, true, "lb:g=sqrt"), why({2, 2}, true, "gibbs"));
  EXPECT_EQ(why({2, 4}, true, "gwg"), "variable 1 has 4 levels, and there all must have two");
  EXPECT_EQ(why({2, 2}, false, "dlmc"), "the target has no gradient of log p, which this sampler needs");
  EXPECT_EQ(why({2, 2}, true, "dlmc"), "its code works on the CPU");
  EXPECT_EQ(why(std::vector<Index>(70000, 2), true, "dlmc"),
            "the target has 70000 variables, and there it may have 65536");
}

class OnGpuUser : public OnGpu {};

TEST(UserBatch, LevelsAreTheBitsOfWords) {
  const std::vector<std::uint32_t> words = {0x80f01234U, 0xdeadbeefU, 0x00000005U};
  for (const std::size_t count : {1, 7, 8, 33, 64, 67}) {
    std::vector<Value> levels(count, 9);
    cuda::unpack_bits(words, levels);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(levels[i], words[i / 32] >> i % 32 & 1U) << i;
  }
}

std::unique_ptr<CudaUserChains> chains_of(const DeviceTable& table, CudaGradientForm form, std::size_t chains,
                                          std::uint64_t seed) {
  std::string why;
  using Appearance = CudaUserChains::Appearance;
  return std::make_unique<CudaUserChains>(table.device_function(why), table.shape(),
                                          table.one_hot() ? Appearance::one_hot : Appearance::labels,
                                          CudaGradientOptions{.form = form, .chains = chains, .seed = seed});
}

/// What proposals are drawn from is the law of the CPU; one step of many chains, counted, has the probabilities that
/// follow.
TEST_F(OnGpuUser, StepsHaveTheirProbabilities) {
  for (const DeviceTableOptions& options : appearances()) {
    const DeviceTable table(options);
    const Index n = options.variables;
    const std::size_t states = table.log_probs.size();
    for (const CudaGradientForm form :
         {CudaGradientForm::single, CudaGradientForm::relaxation, CudaGradientForm::langevin}) {
      const bool many = form != CudaGradientForm::single;
      for (const BalancingFunction& function : gradient_functions(many ? -0.7 : 0.0)) {
        SCOPED_TRACE(std::to_string(n) + ' ' + std::to_string(static_cast<int>(form)) + ' ' +
                     std::to_string(static_cast<int>(function.kind())));
        const auto here = chains_of(table, form, states, 1);
        here->set_function(function);
        for (std::size_t s = 0; s < states; ++s) here->set_levels(s, state_of_number(s, n));
        const std::vector<std::uint64_t> law = here->law();
        const std::vector<double> log_prob = here->log_prob();
        for (std::size_t s = 0; s < states; ++s) {
          ASSERT_EQ(log_prob[s], table.log_probs[s]);
          std::vector<double> log_ratios = table.derivatives[s];
          for (Index i = 0; i < n; ++i) log_ratios[i] *= (s >> i & 1) != 0 ? -1.0 : 1.0;
          // Tables are linear between their points in log g there, in g on the CPU.
          expect_gradient_law(std::span(law).subspan(s * n, n), form, function, log_ratios, 5e-4);
        }
        const GradientTransitions transitions(log_prob, law, many);
        constexpr std::size_t kChains = 100000;
        for (const std::size_t from : {std::size_t{0}, states / 3, states - 1}) {
          const auto step = chains_of(table, form, kChains, 17 + from);
          step->set_function(function);
          for (std::size_t c = 0; c < kChains; ++c) step->set_levels(c, state_of_number(from, n));
          step->advance(1);
          std::vector<double> count(states, 0.0);
          std::vector<Value> x(n);
          for (std::size_t c = 0; c < kChains; ++c) {
            step->get_levels(c, x);
            ++count[number_of_state(x)];
          }
          const ExpectedStep expected = transitions.expected(from, kChains);
          EXPECT_LT(std::abs(deviation(count, expected.chains)), 6.0) << from;
          double summed = 0.0;
          for (const double a : step->accepted()) summed += a;
          EXPECT_NEAR(summed / kChains, expected.accepted, 0.01);
          ProposalCounts proposals;
          for (const ProposalCounts& one : step->proposals()) proposals += one;
          EXPECT_NEAR(proposals.count / kChains, expected.proposed, 3.0 / std::sqrt(kChains));
          EXPECT_NEAR(proposals.accepted, summed, 1e-6);
        }
      }
    }
  }
}

/// A local step of chains that have made 31 others, counted, has its probabilities; acceptance counts it, and proposals
/// do not.
TEST_F(OnGpuUser, LocalStepsHaveTheirProbabilities) {
  for (const DeviceTableOptions& options : appearances()) {
    const DeviceTable table(options);
    const Index n = options.variables;
    const std::size_t states = table.log_probs.size();
    constexpr std::size_t kChains = 100000;
    for (const std::size_t from : {std::size_t{0}, states / 3, states - 1}) {
      const auto step = chains_of(table, CudaGradientForm::relaxation, kChains, 29 + from);
      step->set_function(BalancingFunction(BalancingFunction::Kind::sqrt, -1.0));
      step->set_steps(cuda::kLocalEvery - 1);
      for (std::size_t c = 0; c < kChains; ++c) step->set_levels(c, state_of_number(from, n));
      step->advance(1);
      std::vector<double> count(states, 0.0), expected(states, 0.0);
      std::vector<Value> x(n);
      for (std::size_t c = 0; c < kChains; ++c) {
        step->get_levels(c, x);
        ++count[number_of_state(x)];
      }
      expected[from] = kChains;
      for (Index i = 0; i < n; ++i) {
        const std::size_t other = from ^ std::size_t{1} << i;
        expected[other] = kChains * std::exp(std::min(0.0, table.log_probs[other] - table.log_probs[from])) / n;
        expected[from] -= expected[other];
      }
      EXPECT_LT(std::abs(deviation(count, expected)), 6.0) << from;
      double summed = 0.0;
      for (const double a : step->accepted()) summed += a;
      EXPECT_NEAR(summed / kChains, 1.0 - expected[from] / kChains, 0.01);
      for (const ProposalCounts& one : step->proposals()) ASSERT_NEAR(one.accepted, 0.0, 1e-12);
    }
  }
}

/// log p of two variables that gain 2 J by being alike, and a free one, with exact differences for a gradient.
std::shared_ptr<DeviceTable> dimer(double coupling) {
  const auto log_p = [=](std::size_t s) {
    return ((s & 1U) == (s >> 1U & 1U) ? coupling : -coupling) + ((s & 4U) != 0 ? 0.7 : -0.7);
  };
  const auto spoil = [=](std::size_t s, double& log_prob, std::vector<double>& gradient) {
    log_prob = log_p(s);
    for (std::size_t i = 0; i < 3; ++i) {
      gradient[i] = log_p(s | std::size_t{1} << i) - log_p(s & ~(std::size_t{1} << i));
    }
  };
  return std::make_shared<DeviceTable>(
      DeviceTableOptions{.variables = 3, .double_states = true, .double_answers = true, .spoil = spoil});
}

/// Two variables that disagree would both change at every step, however strongly they are coupled.
TEST_F(OnGpuUser, VariablesThatChaseEachOtherMeet) {
  constexpr std::size_t kChains = 2000;
  for (const double coupling : {6.0, 12.0, 30.0, 500.0}) {
    const auto table = dimer(coupling);
    for (const CudaGradientForm form : {CudaGradientForm::relaxation, CudaGradientForm::langevin}) {
      for (const double level : {-3.0, 0.0, 5.0}) {
        const auto chains = chains_of(*table, form, kChains, 3);
        chains->set_function(BalancingFunction(BalancingFunction::Kind::sqrt, level));
        for (std::size_t c = 0; c < kChains; ++c) chains->set_levels(c, std::vector<Value>{0, 1, 0});
        chains->advance(500);
        // They meet after 28 steps on average, at most: all have after 500, and hardly any has parted again.
        double apart = 0.0;
        for (const double log_prob : chains->log_prob()) apart += log_prob < 0.0 ? 1.0 : 0.0;
        EXPECT_LE(apart, 3.0) << coupling << ' ' << static_cast<int>(form) << ' ' << level;
      }
    }
  }
}

/// A whole run of the same: the mean of log p is right, and acceptance is the share of steps that change the state.
TEST_F(OnGpuUser, RunsOfADimerAreRight) {
  const double coupling = 6.0;
  const auto table = dimer(coupling);
  const std::vector<double> probability = table->probabilities();
  double mean = 0.0;
  for (std::size_t s = 0; s < probability.size(); ++s) mean += probability[s] * table->log_probs[s];
  for (const char* sampler : {"dlmc", "dlsb", "dmala", "dlmc:tau=4", "gwg"}) {
    RunOptions options = short_run_on(Device::cuda, 200);
    options.start = Start::given;
    options.given = {0, 1, 0};
    options.warmup = 300;
    options.draws = 1000;
    if (std::string(sampler) != "gwg") options.thin = 1;
    const RunResult result = run(model_of(table), parse_sampler(sampler), options);
    double sum = 0.0, accepted = 0.0;
    for (const double log_prob : result.trace.monitors[0]) sum += log_prob;
    const std::size_t count = result.trace.monitors[0].size();
    // The free variable has a standard deviation of 0.53 and is drawn anew every few steps.
    EXPECT_NEAR(sum / static_cast<double>(count), mean, 0.03) << sampler;
    if (std::string(sampler) == "gwg") continue;  // a sweep is several steps
    std::size_t changes = 0;
    const States& x = result.trace.x;
    for (std::size_t k = 0; k < result.trace.acceptance_rate.size(); ++k) {
      if (k % result.trace.draws == 0) continue;
      accepted += result.trace.acceptance_rate[k];
      const States::Iterator draw = x.begin() + static_cast<std::ptrdiff_t>(3 * k);
      if (!std::equal(draw, draw + 3, draw - 3)) ++changes;
    }
    EXPECT_NEAR(accepted, static_cast<double>(changes), 6.0 * std::sqrt(accepted) + 1.0) << sampler;
  }
}

TEST_F(OnGpuUser, ParityIsNotThatOfSteps) {
  const auto flatten = [](std::size_t, double& log_prob, std::vector<double>& gradient) {
    log_prob = 0.0;
    gradient.assign(gradient.size(), 0.0);
  };
  for (const Index n : {1U, 2U, 9U, 10U}) {
    const auto table = std::make_shared<DeviceTable>(DeviceTableOptions{.variables = n, .spoil = flatten});
    expect_parity_of_a_sweep(model_of(table), "gwg");
  }
}

/// What is kept after steps, and what is recorded, is what the table says of the states.
TEST_F(OnGpuUser, KeepsWhatBelongsToItsStates) {
  for (const DeviceTableOptions& options : appearances()) {
    const DeviceTable table(options);
    const auto chains = chains_of(table, CudaGradientForm::relaxation, 300, 3);
    chains->set_function(BalancingFunction(BalancingFunction::Kind::sqrt, -1.0));
    for (std::size_t c = 0; c < 300; ++c) chains->set_levels(c, state_of_number(c % 32, options.variables));
    chains->set_reference(state_of_number(5, options.variables));
    for (const std::uint64_t steps : {1, 2, 17}) {
      const CudaUserChains::Records recorded =
          steps == 2 ? chains->advance_and_record(1, 3) : chains->advance_and_record(steps, 1);
      const std::size_t last = recorded.log_prob.size() - 300;
      const std::vector<std::uint64_t> law = chains->law();
      std::vector<Value> x(options.variables);
      const auto again = chains_of(table, CudaGradientForm::relaxation, 300, 3);
      again->set_function(BalancingFunction(BalancingFunction::Kind::sqrt, -1.0));
      for (std::size_t c = 0; c < 300; ++c) {
        chains->get_levels(c, x);
        again->set_levels(c, x);
        EXPECT_EQ(recorded.log_prob[last + c], table.log_probs[number_of_state(x)]);
        EXPECT_EQ(recorded.different[last + c], std::popcount(number_of_state(x) ^ 5U));
        std::vector<Value> unpacked(options.variables);
        cuda::unpack_bits(std::span(recorded.words).subspan((last + c) * recorded.row, recorded.row), unpacked);
        EXPECT_EQ(unpacked, x);
      }
      EXPECT_EQ(std::vector<double>(recorded.accepted.end() - 300, recorded.accepted.end()), chains->accepted());
      EXPECT_EQ(law, again->law());
    }
    EXPECT_EQ(chains->steps(), 21U);
  }
}

/// With a warp or a block for each chain.
TEST_F(OnGpuUser, ChainsDoNotDependOnTheirCompany) {
  const DeviceTable table({.variables = 13});
  for (const CudaGradientForm form : {CudaGradientForm::single, CudaGradientForm::relaxation}) {
    const auto states_of = [&](std::size_t chains, std::uint64_t first) {
      std::string why;
      CudaUserChains some(table.device_function(why), table.shape(), CudaUserChains::Appearance::labels,
                          {.form = form, .chains = chains, .seed = 7, .first_chain = first});
      some.set_function(BalancingFunction(BalancingFunction::Kind::sqrt, -1.0));
      for (std::size_t c = 0; c < chains; ++c) some.set_levels(c, state_of_number((first + c) * 37 % 8192, 13));
      some.advance(60);
      some.advance(60);
      std::vector<Value> all(chains * 13);
      for (std::size_t c = 0; c < chains; ++c) some.get_levels(c, std::span(all).subspan(c * 13, 13));
      return all;
    };
    const std::vector<Value> many = states_of(2500, 0);
    for (const auto& [chains, first] : {std::pair<std::size_t, std::uint64_t>{1, 0}, {16, 5}, {70, 0}, {700, 1800}}) {
      const std::vector<Value> few = states_of(chains, first);
      EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin() + static_cast<std::ptrdiff_t>(first * 13))) << chains;
    }
  }
}

TEST_F(OnGpuUser, StepsKeepTheLaw) {
  const auto table = std::make_shared<DeviceTable>(DeviceTableOptions{.variables = 8, .labels = {-1.0, 1.0}});
  const std::vector<double> probability = table->probabilities();
  for (const char* sampler : {"gwg", "gwg:g=barker", "dlmc:tau=0.5", "dlmc:g=max,tau=0.2", "dlmc:tau=3",
                              "dmala:alpha=0.4", "dmala:alpha=9"}) {
    const std::vector<double> count = counts_after(model_of(table), parse_sampler(sampler), probability, 40);
    std::vector<double> expected = probability;
    for (double& e : expected) e *= 200000.0;
    EXPECT_LT(std::abs(deviation(count, expected)), 6.0) << sampler;
  }
}

/// Where some states have no probability, and the gradient there is NaN: chains begin elsewhere and never go there.
TEST_F(OnGpuUser, StatesWithoutProbabilityAreNotVisited) {
  const auto spoil = [](std::size_t state, double& log_prob, std::vector<double>& gradient) {
    if (std::popcount(state) <= 4) return;
    log_prob = -kInfinity;
    gradient.assign(gradient.size(), kNan);
  };
  const auto table = std::make_shared<DeviceTable>(DeviceTableOptions{.variables = 8, .spoil = spoil});
  const std::vector<double> probability = table->probabilities();
  for (const char* sampler : {"gwg", "dlmc:tau=0.5"}) {
    const std::vector<double> count = counts_after(model_of(table), parse_sampler(sampler), probability, 40);
    std::vector<double> expected = probability;
    for (double& e : expected) e *= 200000.0;
    EXPECT_LT(deviation(count, expected), 6.0) << sampler;
    const RunResult result = run(model_of(table), parse_sampler(sampler), short_run_on(Device::cuda, 50));
    for (const double log_prob : result.trace.monitors[0]) EXPECT_GT(log_prob, -kInfinity);
  }
}

TEST_F(OnGpuUser, GoesOnFromAState) {
  const Model model = model_of(std::make_shared<DeviceTable>(DeviceTableOptions{.variables = 11}));
  for (const char* spec : {"gwg", "dlmc", "dlmc:tau=0.3", "flsb", "dlsb", "dmala"}) {
    const Sampler sampler = parse_sampler(spec);
    RunOptions options = short_run_on(Device::cuda, 20);
    options.warmup = 30;
    options.thin = 3;
    options.rao_blackwell = true;
    const RunResult whole = run(model, sampler, options);
    poise::Run first(model, sampler, options);
    first.warm_up();
    first.sample(5);
    poise::Run second(model, sampler, options);
    second.load(first.save());
    second.sample(7);
    const RunResult resumed = second.finish();
    EXPECT_EQ(whole.trace.x, resumed.trace.x) << spec;
    EXPECT_EQ(whole.trace.monitors, resumed.trace.monitors) << spec;
    EXPECT_EQ(whole.empirical_marginals, resumed.empirical_marginals) << spec;
  }
}

TEST_F(OnGpuUser, MarginalsAreThoseOfTheSteps) {
  const auto table = std::make_shared<DeviceTable>(DeviceTableOptions{.variables = 10});
  const std::vector<double> probability = table->probabilities();
  std::vector<double> exact(10, 0.0);
  for (std::size_t s = 0; s < probability.size(); ++s) {
    for (Index i = 0; i < 10; ++i) exact[i] += (s >> i & 1) != 0 ? probability[s] : 0.0;
  }
  for (const char* spec : {"gwg", "flsb", "flsb1", "flsb2", "dlmc", "dlsb", "dmala"}) {
    RunOptions options = short_run_on(Device::cuda, 500);
    options.warmup = 100;
    options.draws = 400;
    options.keep = Keep::monitors;
    const RunResult result = run(model_of(table), parse_sampler(spec), options);
    for (Index i = 0; i < 10; ++i) EXPECT_NEAR(result.empirical_marginals[i], exact[i], 0.015) << spec << ' ' << i;
    EXPECT_GT(result.acceptance_rate, 0.2) << spec;
  }
}

/// Draws that wait on the device are those that are fetched one by one.
TEST_F(OnGpuUser, DrawsOfManyStepsAreTheSame) {
  const Model model =
      model_of(std::make_shared<DeviceTable>(DeviceTableOptions{.variables = 11, .labels = {-1.0, 1.0}}));
  for (const char* spec : {"gwg", "dlmc:tau=0.3"}) {
    RunOptions options = short_run_on(Device::cuda, 20);
    options.draws = 100;
    options.warmup = 0;
    const RunResult together = run(model, parse_sampler(spec), options);
    options.keep = Keep::monitors;
    const RunResult monitors = run(model, parse_sampler(spec), options);
    options.keep = Keep::draws;
    options.rao_blackwell = true;  // has them one by one
    const RunResult apart = run(model, parse_sampler(spec), options);
    EXPECT_EQ(together.trace.x, apart.trace.x) << spec;
    EXPECT_EQ(together.trace.monitors, apart.trace.monitors) << spec;
    EXPECT_EQ(together.trace.monitors, monitors.trace.monitors) << spec;
    EXPECT_EQ(together.trace.acceptance_rate, apart.trace.acceptance_rate) << spec;
  }
}

/// Mistakes of user code are those sentences that the CPU has, and errors of its own are handed on.
TEST_F(OnGpuUser, MistakesAreSentences) {
  const auto message = [](double log_p, double derivative) {
    const auto spoil = [=](std::size_t state, double& log_prob, std::vector<double>& gradient) {
      if (state < 200) return;
      if (log_p != 0.0) log_prob = log_p;
      if (derivative != 0.0) gradient[3] = derivative;
    };
    RunOptions options = short_run_on(Device::cuda, 64);
    options.start = Start::zeros;
    options.draws = 2000;
    const Model model = model_of(std::make_shared<DeviceTable>(DeviceTableOptions{.variables = 8, .spoil = spoil}));
    return refusal([&] { run(model, parse_sampler("dlmc:tau=0.5"), options); });
  };
  EXPECT_EQ(message(kNan, 0.0),
            "log_prob gave nan for a state that the chains looked at, expected a finite number or -inf");
  EXPECT_EQ(message(kInfinity, 0.0),
            "log_prob gave inf for a state that the chains looked at, expected a finite number or -inf");
  EXPECT_NE(message(0.0, kNan).find("is not finite, where log p is finite"), std::string::npos);

  const auto table = std::make_shared<DeviceTable>(DeviceTableOptions{.variables = 8});
  std::size_t calls = 0;
  table->before_call = [&] {
    if (++calls == 10) throw std::domain_error("the user's own error");
  };
  EXPECT_THROW(run(model_of(table), parse_sampler("dlmc:tau=0.5"), short_run_on(Device::cuda, 64)), std::domain_error);
  calls = 0;
  table->before_call = [&] {
    if (++calls == 50) throw RunStopped{};
  };
  RunOptions options = short_run_on(Device::cuda, 64);
  options.draws = 1000;
  options.thin = 1;
  const RunResult stopped = run(model_of(table), parse_sampler("dlmc:tau=0.5"), options);
  EXPECT_TRUE(stopped.interrupted);
  EXPECT_LT(stopped.trace.draws, 50U);
  EXPECT_GT(stopped.trace.draws, 10U);
}

TEST_F(OnGpuUser, RefusesWhatDoesNotRunThere) {
  const Model model = model_of(std::make_shared<DeviceTable>(DeviceTableOptions{.variables = 8}));
  for (const char* sampler : {"gibbs", "lb:g=sqrt", "pas", "temper:of=dlmc"}) {
    EXPECT_THROW(poise::Run(model, parse_sampler(sampler), short_run_on(Device::cuda, 4)), InputError) << sampler;
  }
  RunOptions options = short_run_on(Device::automatic, 4);
  EXPECT_EQ(poise::Run(model, parse_sampler("dlmc:tau=0.3"), options).options().device, Device::cuda);
  EXPECT_EQ(poise::Run(model, parse_sampler("gibbs"), options).options().device, Device::cpu);
}

}  // namespace poise::cuda_user_test
