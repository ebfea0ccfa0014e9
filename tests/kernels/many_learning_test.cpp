/// Learning where steps change many variables: gradients against differences, and what tuning finds.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>

#include <poise/extend/learning/balancing_function.hpp>
#include <poise/extend/learning/learned_function.hpp>
#include <poise/extend/learning/learning_objective.hpp>
#include <poise/extend/learning/transition_gradient.hpp>
#include <poise/extend/learning/transition_gradient_many.hpp>
#include <poise/run.hpp>
#include "support/enumerate.hpp"
#include "support/exactness.hpp"
#include "support/small_rbms.hpp"
#include "support/small_targets.hpp"

namespace poise::many_learning_test {

using namespace poise::testing;

/// A function by its level and its slope at |u| = 1.
BalancingFunction bent(double level, double slope) {
  std::vector<double> phi(BalanceTable::kPoints);
  for (int k = 0; k < BalanceTable::kPoints; ++k) phi[k] = level + slope * std::min(BalanceTable::grid(k), 4.0);
  return BalancingFunction(std::make_shared<const BalanceTable>(phi));
}

/// The sum of c_m q_m times the exact acceptance of a change.
template <class T>
double weighted_transitions(const T& target, const FactorisedProposal<T>& kernel, const typename T::State& state,
                            const std::vector<double>& c) {
  typename FactorisedProposal<T>::Scratch scratch(target);
  kernel.prepare(target, state, scratch);
  double by_proposal = 0.0, accepted = 0.0, proposed = 0.0;
  for (Index m = 0; m < target.num_moves(); ++m) by_proposal += c[m] * move_prob(scratch.here, scratch.variables, m);
  for (const Levels& to : all_states(target)) {
    const auto proposal = kernel.evaluate(target, state, scratch, to);
    double changes = 0.0;
    for (Index i = 0; i < target.num_variables(); ++i) changes += to[i] != target.level(state, i) ? 1.0 : 0.0;
    accepted += changes * proposal.prob * proposal.accept_prob;
    proposed += changes * proposal.prob;
  }
  return by_proposal * accepted / proposed;
}

/// The mean of many estimates, in the directions `directions` of phi, against differences of what they estimate.
template <class T>
void expect_gradient(const T& target, FactorisedForm form, Ratios ratios, bool table) {
  Levels x(target.num_variables(), 0);
  x[1] = 1;
  const auto state = target.make_state(x);
  std::vector<double> c(target.num_moves());
  for (std::size_t m = 0; m < c.size(); ++m) c[m] = std::sin(1.0 + 2.0 * static_cast<double>(m));
  const auto kernel_at = [&](double level, double slope) {
    return FactorisedProposal<T>(
        form, table ? bent(level, slope) : BalancingFunction(BalancingFunction::Kind::barker, level), ratios);
  };
  const double level = -0.7, slope = -0.1;
  const FactorisedProposal<T> kernel = kernel_at(level, slope);
  typename FactorisedProposal<T>::Scratch scratch(target);
  kernel.prepare(target, state, scratch);
  Rng rng(3, 3);
  constexpr int kRounds = 20000;
  std::vector<double> coefficients = c;
  coefficients.push_back(0.0);
  double sums[2] = {}, squares[2] = {};
  for (int round = 0; round < kRounds; ++round) {
    TransitionGradient gradient;
    transition_gradient(kernel, target, state, scratch, rng, {}, gradient);
    std::vector<double> out(BalanceTable::kPoints, 0.0);
    add_gradient(kernel, target, state, scratch, gradient, coefficients, out);
    double by_level = 0.0, by_slope = 0.0;
    for (int k = 0; k < BalanceTable::kPoints; ++k) {
      by_level += out[k];
      by_slope += out[k] * std::min(BalanceTable::grid(k), 4.0);
    }
    const double both[] = {by_level, by_slope};
    for (int d = 0; d < 2; ++d) {
      sums[d] += both[d];
      squares[d] += both[d] * both[d];
    }
  }
  // Laws in floats are off by 2^-24 or so, which the difference divides by 2h; the difference itself is off by h^2/6
  // third derivatives of order 1.
  const bool floats = std::is_same_v<typename FactorisedProposal<T>::Real, float>;
  const double h = floats ? 3e-3 : 1e-5;
  const double rounding = floats ? 0x1p-23 / (2 * h) + h * h / 6 : 1e-7;
  for (int d = 0; d < (table ? 2 : 1); ++d) {
    const double up =
        weighted_transitions(target, kernel_at(level + (d == 0 ? h : 0), slope + (d == 1 ? h : 0)), state, c);
    const double down =
        weighted_transitions(target, kernel_at(level - (d == 0 ? h : 0), slope - (d == 1 ? h : 0)), state, c);
    const double mean = sums[d] / kRounds;
    const double error = std::sqrt((squares[d] / kRounds - mean * mean) / kRounds);
    EXPECT_NEAR(mean, (up - down) / (2 * h), 6.0 * error + rounding) << "direction " << d;
  }
}

TEST(ManyLearning, GradientIsThatOfTransitionProbabilities) {
  const Rbm rbm(random_rbm(6, 5, 1.5, 3));
  for (const bool table : {true, false}) {
    expect_gradient(rbm, FactorisedForm::relaxation, Ratios::first_order, table);
    expect_gradient(small_categorical(), FactorisedForm::relaxation, Ratios::exact, table);
  }
  expect_gradient(rbm, FactorisedForm::langevin, Ratios::first_order, false);
  expect_gradient(small_categorical(), FactorisedForm::langevin, Ratios::exact, false);
}

/// The coefficients of the entropy are its derivatives by q at fixed A and by A.
TEST(ManyLearning, CoefficientsOfTheEntropyAreItsDerivatives) {
  const std::vector<double> q = {0.3, 0.2, 0.4, 0.05};
  const auto chain = [&](double accept, const std::vector<double>& probs) {
    TransitionGradient out;
    out.many = true;
    for (Index m = 0; m < 4; ++m) {
      // Variable 0 has two moves, the others one each.
      out.entries.push_back(
          {m, m == 0 ? 0 : m - 1, static_cast<Value>(m == 1 ? 2 : 1), 0.0, accept, accept * probs[m]});
    }
    return out;
  };
  LearningObjective objective(LearningObjectiveKind::entropy);
  const auto value = [&](double accept, const std::vector<double>& probs) {
    const TransitionGradient all[] = {chain(accept, probs)};
    objective.observe(all);
    return objective.value(all);
  };
  const double accept = 0.6;
  std::vector<double> coefficients;
  value(accept, q);
  objective.coefficients(chain(accept, q), coefficients);
  constexpr double h = 1e-6;
  double by_acceptance = coefficients.back();
  for (std::size_t m = 0; m < 4; ++m) {
    std::vector<double> up = q, down = q;
    up[m] += h;
    down[m] -= h;
    EXPECT_NEAR(coefficients[m] * accept, (value(accept, up) - value(accept, down)) / (2 * h), 1e-6);
    by_acceptance += coefficients[m] * q[m];
  }
  EXPECT_NEAR(by_acceptance, (value(accept + h, q) - value(accept - h, q)) / (2 * h), 1e-6);
}

TEST(ManyLearning, ALevelIsOneParameterMore) {
  LevelledFunction function(std::make_unique<SplineFunction>());
  for (std::size_t k = 0; k < function.parameters().size(); ++k) {
    function.parameters()[k] = 0.1 * static_cast<double>(k) - 0.2;
  }
  const BalancingFunction frozen = function.function();
  EXPECT_NEAR(frozen.level(), function.level(), 1e-15);
  std::vector<double> weights(BalanceTable::kPoints), gradient(function.parameters().size(), 0.0);
  for (std::size_t k = 0; k < weights.size(); ++k) weights[k] = std::cos(static_cast<double>(k));
  function.backward(balance_grid(), weights, gradient);
  const auto sum = [&] {
    std::vector<double> phi(BalanceTable::kPoints);
    function.phi(balance_grid(), phi);
    double total = 0.0;
    for (std::size_t k = 0; k < phi.size(); ++k) total += weights[k] * phi[k];
    return total;
  };
  for (std::size_t k = 0; k < gradient.size(); ++k) {
    constexpr double h = 1e-6;
    function.parameters()[k] += h;
    const double up = sum();
    function.parameters()[k] -= 2 * h;
    const double down = sum();
    function.parameters()[k] += h;
    EXPECT_NEAR(gradient[k], (up - down) / (2 * h), 1e-5) << k;
  }
  const LevelledFunction fixed(BalancingFunction::Kind::min);
  EXPECT_EQ(fixed.function().kind(), BalancingFunction::Kind::min);
}

RunResult run(const Model& model, const std::string& sampler, std::size_t draws = 2000) {
  RunOptions options;
  options.chains = 8;
  options.draws = draws;
  options.warmup = 600;
  options.thin = 1;
  options.threads = 1;
  return poise::run(model, parse_sampler(sampler), options);
}

double acceptance(const RunResult& result) {
  double sum = 0.0;
  for (const double rate : result.trace.acceptance_rate)
    sum += rate / static_cast<double>(result.trace.acceptance_rate.size());
  return sum;
}

TEST(ManyLearning, AcceptanceIsTunedToWhatWasAskedFor) {
  const Model model = make_model("ising:size=20,lambda=0.4,mu=0.5,sigma=1");
  for (const char* name : {"dlmc:", "dlmc:g=barker,", "dmala:", "pas:"}) {
    EXPECT_NEAR(acceptance(run(model, std::string(name) + "tune=acceptance")), 0.574, 0.07) << name;
  }
  EXPECT_NEAR(acceptance(run(model, "dlmc:tune=acceptance,target=0.8")), 0.8, 0.07);
}

TEST(ManyLearning, IndependentVariablesAreDrawnAnewAtEveryStep) {
  const Model model = make_model("ising:size=10,lambda=0,mu=0.5,sigma=1");
  // But for local steps that change nothing, one in 32 at most.
  for (const char* name : {"dlmc", "dlsb"}) EXPECT_NEAR(acceptance(run(model, name)), 1.0, 1.0 / 32) << name;
}

}  // namespace poise::many_learning_test
