/// Learning: every gradient against finite differences, every optimiser and function on a problem with a known answer.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include <poise/extend/learning/learned_function.hpp>
#include <poise/extend/learning/learner.hpp>
#include <poise/extend/learning/transition_gradient_single.hpp>
#include "support/small_targets.hpp"

namespace poise::adapt_test {

using namespace poise::testing;

std::vector<std::pair<std::string, std::unique_ptr<LearnedFunction>>> all_functions(double spread) {
  std::vector<std::pair<std::string, std::unique_ptr<LearnedFunction>>> functions;
  functions.emplace_back("mixture", std::make_unique<MixtureFunction>());
  functions.emplace_back("spline", std::make_unique<SplineFunction>());
  functions.emplace_back("mlp", std::make_unique<MlpFunction>());
  functions.emplace_back("monotone", std::make_unique<MonotoneFunction>(5, 4));
  Rng rng(23, 0);
  for (auto& [name, function] : functions) {
    for (double& parameter : function->parameters()) parameter += spread * rng.normal();
  }
  return functions;
}

TEST(LearnedFunction, BackwardMatchesFiniteDifferences) {
  const std::vector<double> points = {0.0, 0.4, 1.3, 3.0, 7.7, 20.0, 31.0};
  const std::vector<double> weights = {0.3, -1.0, 0.7, 1.1, -0.4, 0.2, 0.5};
  const double h = 1e-6;
  for (auto& [name, function] : all_functions(0.7)) {
    std::vector<double> gradient(function->parameters().size(), 0.0), values(points.size());
    function->backward(points, weights, gradient);
    const auto dot = [&, &function = function] {
      function->phi(points, values);
      double sum = 0.0;
      for (std::size_t k = 0; k < points.size(); ++k) sum += weights[k] * values[k];
      return sum;
    };
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      double& parameter = function->parameters()[i];
      const double kept = parameter;
      parameter = kept + h;
      const double above = dot();
      parameter = kept - h;
      const double below = dot();
      parameter = kept;
      EXPECT_NEAR(gradient[i], (above - below) / (2 * h), 1e-6) << name << " " << i;
    }
  }
}

TEST(SlopePenalty, GradientMatchesFiniteDifferences) {
  Rng rng(2, 2);
  std::vector<double> phi(BalanceTable::kPoints), gradient(BalanceTable::kPoints, 0.0), ignored = gradient;
  for (int k = 1; k < BalanceTable::kPoints; ++k) phi[k] = phi[k - 1] + 0.2 * (rng.uniform() - 0.4);
  slope_penalty(phi, 0.3, gradient);
  for (int k = 0; k < BalanceTable::kPoints; k += 8) {
    const double kept = phi[k], h = 1e-6;
    phi[k] = kept + h;
    const double above = slope_penalty(phi, 0.3, ignored);
    phi[k] = kept - h;
    const double below = slope_penalty(phi, 0.3, ignored);
    phi[k] = kept;
    EXPECT_NEAR(gradient[k], (above - below) / (2 * h), 1e-8);
  }
}

TEST(LearnedFunction, SplineIsMonotoneWhateverItsParameters) {
  Rng rng(3, 3);
  for (int trial = 0; trial < 50; ++trial) {
    SplineFunction function;
    for (double& parameter : function.parameters()) parameter = 5.0 * rng.normal();
    const auto table = function.freeze();
    // Between grid points e^phi is linear: off by at most (h/2)^2 / 8 = 5e-4 where |phi'| <= 1/2, h = 1/8.
    for (double u = -40.0; u < 40.0; u += 0.37) EXPECT_LE(table->log_g(u), table->log_g(u + 0.37) + 1e-3);
  }
}

TEST(LearnedFunction, TablesAreBalancedToTheLastBitOfPhi) {
  for (auto& [name, function] : all_functions(1.0)) {
    const auto table = function->freeze();
    std::vector<double> phi(BalanceTable::kPoints);
    function->phi(balance_grid(), phi);
    for (double u = 0.01; u < 60.0; u += 0.73) {
      EXPECT_NEAR(table->log_g(u), u + table->log_g(-u), 1e-13 * (1.0 + u)) << name;
      // The vectorised weights are the same function.
      const BalancingFunction balance(table);
      EXPECT_NEAR(std::log(balance.weights(broadcast8(u), 0.5)[2]), table->log_g(u) - 0.5, 1e-12 * (1.0 + u)) << name;
    }
    for (int k = 0; k < BalanceTable::kPoints; k += 16) {
      EXPECT_NEAR(table->log_g(BalanceTable::grid(k)) - 0.5 * BalanceTable::grid(k), phi[k] - phi[0], 1e-12) << name;
    }
  }
}

TEST(BalanceTable, GradientMatchesFiniteDifferences) {
  Rng rng(4, 4);
  std::vector<double> phi(BalanceTable::kPoints);
  for (int k = 1; k < BalanceTable::kPoints; ++k) phi[k] = phi[k - 1] + 0.1 * (rng.uniform() - 0.5);
  for (const double u : {-0.07, 0.5, 3.33, -17.2, 31.99, 32.0, 45.0, -200.0}) {
    std::vector<double> gradient(BalanceTable::kPoints, 0.0);
    BalanceTable(phi).add_gradient(u, 1.0, gradient);
    for (int k = 1; k < BalanceTable::kPoints; ++k) {  // phi(0) is the reference
      const double h = 1e-6;
      std::vector<double> above = phi, below = phi;
      above[k] += h;
      below[k] -= h;
      ASSERT_NEAR(gradient[k], (BalanceTable(above).log_g(u) - BalanceTable(below).log_g(u)) / (2 * h), 1e-6) << u;
    }
  }
}

TEST(Fit, EveryRuleCanStartFromSqrt) {
  for (auto& [name, function] : all_functions(0.0))
    EXPECT_LT(fit(*function, BalancingFunction::Kind::sqrt, 2000), 0.25) << name;
  MonotoneFunction monotone;
  EXPECT_LT(fit(monotone, BalancingFunction::Kind::max, 2000), 0.1);
  SplineFunction spline;
  EXPECT_LT(fit(spline, BalancingFunction::Kind::barker, 5000), 0.05);
}

/// An objective as a function of the function's parameters, for a fixed set of states and fixed sampled moves.
class Problem {
 public:
  Problem(LearnedFunction& function, LearningObjectiveKind kind) : function_(function), kind_(kind) {
    Rng rng(31, 0);
    for (int c = 0; c < 3; ++c) {
      std::vector<Value> x(target_.num_variables());
      for (Index i = 0; i < x.size(); ++i) x[i] = static_cast<Value>(rng.uniform() * target_.cardinality(i));
      states_.push_back(target_.make_state(x));
      proposed_.push_back(static_cast<Index>(rng.uniform() * target_.num_moves()));
      uniform_.push_back(static_cast<Index>(rng.uniform() * target_.num_moves()));
    }
    linearize_at_present();
    for (const auto& chain : chains_) {
      reference_.push_back(kind_ == LearningObjectiveKind::mi || kind_ == LearningObjectiveKind::mi_bound
                               ? chain.sampled[0].transition / chain.sampled[0].accept_prob
                               : 0.0);
    }
  }

  /// The criterion written out from its definition; Q_2 = Q at the reference parameters.
  double value() {
    linearize_at_present();
    LearningObjective objective(kind_);
    objective.raw_eta() = raw_eta_;
    objective.observe(chains_);
    if (kind_ == LearningObjectiveKind::variance || kind_ == LearningObjectiveKind::entropy)
      return objective.value(chains_);
    double largest = -INFINITY;
    for (const auto& chain : chains_) largest = std::max(largest, chain.log_prob);
    double sum = 0.0;
    for (std::size_t c = 0; c < chains_.size(); ++c) {
      const auto& chain = chains_[c];
      const double p = std::exp(chain.log_prob - largest);
      const auto& proposal = chain.sampled[0];
      const double after = p * std::exp(proposal.log_ratio);
      sum += p * proposal.transition / reference_[c] * std::log(proposal.transition / after);
      if (kind_ == LearningObjectiveKind::mi) {
        double stay = 1.0;
        for (const auto& entry : chain.entries) stay -= entry.transition;
        sum += p * stay * std::log(stay / p);
      } else {
        const double eta = std::log1p(std::exp(raw_eta_)), rest = 1.0 - chain.sampled[1].transition;
        sum += rest * (eta * rest - p * (std::log(eta) + 1.0));
      }
    }
    return sum / static_cast<double>(chains_.size());
  }

  std::vector<double> gradient() {
    linearize_at_present();
    LearningObjective objective(kind_);
    objective.raw_eta() = raw_eta_;
    objective.observe(chains_);
    std::vector<double> by_phi(BalanceTable::kPoints, 0.0), coefficients;
    for (std::size_t c = 0; c < chains_.size(); ++c) {
      Scratch scratch(target_);
      kernel_.prepare(target_, states_[c], scratch);
      objective.coefficients(chains_[c], coefficients);
      add_gradient(kernel_, target_, states_[c], scratch, chains_[c], coefficients, by_phi);
    }
    std::vector<double> out(function_.parameters().size(), 0.0);
    function_.backward(balance_grid(), by_phi, out);
    eta_gradient_ = objective.raw_eta_gradient(chains_);
    return out;
  }

  double raw_eta_ = 0.3;
  double eta_gradient_ = 0.0;

 private:
  using Kernel = LocallyBalanced<TableTarget>;
  using Scratch = Kernel::Scratch;

  void linearize_at_present() {
    kernel_ = Kernel(BalancingFunction(function_.freeze()));
    chains_.resize(states_.size());
    TransitionGradientOptions options = LearningObjective(kind_).needs();
    const bool sampled = options.sampled_moves;
    options.sampled_moves = false;
    for (std::size_t c = 0; c < states_.size(); ++c) {
      Scratch scratch(target_);
      kernel_.prepare(target_, states_[c], scratch);
      Rng rng(1, 1);
      transition_gradient(kernel_, target_, states_[c], scratch, rng, options, chains_[c]);
      if (!sampled) continue;
      for (const Index move : {proposed_[c], uniform_[c]}) {
        const auto proposal = kernel_.evaluate(target_, states_[c], scratch, move);
        const Move change = target_.move_at(states_[c], move);
        chains_[c].sampled.push_back({move, 0, change.value, target_.log_ratio(states_[c], change),
                                      proposal.accept_prob, proposal.prob * proposal.accept_prob});
      }
    }
  }

  LearnedFunction& function_;
  LearningObjectiveKind kind_;
  TableTarget target_ = TableTarget::random({2, 3, 2, 2, 4}, 4.0, 41);
  Kernel kernel_;
  std::vector<TableTarget::State> states_;
  std::vector<Index> proposed_, uniform_;
  std::vector<TransitionGradient> chains_;
  std::vector<double> reference_;
};

TEST(LearningObjective, GradientsMatchFiniteDifferences) {
  for (const LearningObjectiveKind kind : {LearningObjectiveKind::variance, LearningObjectiveKind::entropy,
                                           LearningObjectiveKind::mi, LearningObjectiveKind::mi_bound}) {
    for (auto& [name, function] : all_functions(0.5)) {
      Problem problem(*function, kind);
      const std::vector<double> gradient = problem.gradient();
      const double h = 1e-5;
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        double& parameter = function->parameters()[i];
        const double kept = parameter;
        parameter = kept + h;
        const double above = problem.value();
        parameter = kept - h;
        const double below = problem.value();
        parameter = kept;
        EXPECT_NEAR(gradient[i], (above - below) / (2 * h), 2e-6 * (1.0 + std::abs(gradient[i])))
            << name << " objective " << static_cast<int>(kind) << " parameter " << i;
      }
      if (kind == LearningObjectiveKind::mi_bound) {
        const double kept = problem.raw_eta_;
        problem.raw_eta_ = kept + h;
        const double above = problem.value();
        problem.raw_eta_ = kept - h;
        const double below = problem.value();
        problem.raw_eta_ = kept;
        EXPECT_NEAR(problem.eta_gradient_, (above - below) / (2 * h), 1e-7);
      }
    }
  }
}

TEST(LearningObjective, ConstantAddedToLogPChangesNothing) {
  for (const LearningObjectiveKind kind : {LearningObjectiveKind::mi, LearningObjectiveKind::mi_bound}) {
    std::vector<TransitionGradient> chains(2);
    for (int c = 0; c < 2; ++c) {
      chains[c].log_prob = c * 0.7;
      chains[c].entries = {{0, 0, 1, 0.3, 0.9, 0.2}};
      chains[c].sampled = {{0, 0, 1, 0.3, 0.9, 0.2}, {1, 0, 1, -0.3, 0.8, 0.1}};
    }
    LearningObjective plain(kind), shifted(kind);
    plain.observe(chains);
    std::vector<double> a, b;
    plain.coefficients(chains[1], a);
    for (auto& chain : chains) chain.log_prob += 4096.0;
    shifted.observe(chains);
    shifted.coefficients(chains[1], b);
    for (std::size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], b[k], 1e-10);
  }
}

TEST(Optimizer, BothFindTheMinimumOfABowl) {
  for (const OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::sgd}) {
    std::vector<double> x = {3.0, -2.0};
    Optimizer optimizer(kind, 0.02, 2);
    for (int step = 0; step < 3000; ++step) {
      const std::vector<double> gradient = {2.0 * (x[0] - 1.0), 0.5 * (x[1] + 0.5)};
      optimizer.step(x, gradient, 1.0 - step / 3000.0);
    }
    EXPECT_NEAR(x[0], 1.0, 1e-3);
    EXPECT_NEAR(x[1], -0.5, 1e-3);
  }
}

}  // namespace poise::adapt_test
