/// Steps as a GPU makes them, on the host: what proposals are drawn from, rests and local steps leave the distribution
/// alone and are those of the CPU's kernels.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>

#include <poise/extend/kernels/factorised_proposal.hpp>
#include "engines/common/gradient_law.hpp"
#include "engines/common/step_guards.hpp"
#include "models/rbm/rbm.hpp"
#include "support/flip_graphs.hpp"
#include "support/flip_probabilities.hpp"
#include "support/gradient_transitions.hpp"
#include "support/many_exactness.hpp"
#include "support/small_rbms.hpp"
#include "support/steps.hpp"

namespace poise::step_guards_test {

using namespace poise::testing;
using cuda::GradientForm;

static_assert(cuda::kMostRate == kMostRate && cuda::kMostOdds == kMostOdds && cuda::kLocalEvery == kLocalEvery);

TEST(StepGuards, BoundsAreOneNumber) {
  EXPECT_NEAR(cuda::kMostOdds, std::expm1(cuda::kMostRate), 1e-12);
  EXPECT_NEAR(cuda::kLogMostOdds, std::log(cuda::kMostOdds), 1e-15);
}

/// A chain rests at one level in m + 1, however acceptable the change; and moves at the others as it would.
TEST(StepGuards, RestsAreOneMoveMore) {
  constexpr std::uint64_t kLevels = 1U << 16U;
  for (const std::uint32_t moves : {1U, 2U, 7U, 100U}) {
    const double stretch = cuda::rest_stretch(moves);
    for (const double ratio : {0.0, 0.01, 0.5, 1.0, 3.0, 1e300, HUGE_VAL}) {
      double below = 0.0;
      for (std::uint64_t k = 0; k < kLevels; ++k) {
        const double level = cuda::level_of((2 * k + 1) << 47U);
        if (cuda::resting_level(level, stretch) < ratio) below += 1.0 / kLevels;
      }
      EXPECT_NEAR(below, std::min(1.0, ratio) * moves / (moves + 1.0), 1.5 / kLevels) << moves << ' ' << ratio;
    }
  }
  EXPECT_EQ(cuda::rest_stretch(0), 2.0);
}

TEST(StepGuards, OneStepInThirtyTwoIsLocal) {
  std::uint64_t local = 0;
  for (std::uint64_t step = 0; step < 200; ++step) {
    EXPECT_EQ(cuda::local_steps_before(step), local);
    EXPECT_EQ(cuda::steps_to_local(step) == 0, cuda::is_local_step(step));
    EXPECT_TRUE(cuda::is_local_step(step + cuda::steps_to_local(step)));
    if (cuda::is_local_step(step)) ++local;
  }
  EXPECT_EQ(local, 6U);
  for (const std::uint32_t n : {1U, 31U, 32U, 64U, 784U, 65536U}) {
    EXPECT_EQ(cuda::local_tries(n), std::max(1U, n / 64U));
    EXPECT_LE(cuda::local_tries(n), (n + 3) / 4 + 1);  // as many as a step has calls of the generator
    EXPECT_EQ(cuda::one_of(n, 0), 0U);
    EXPECT_EQ(cuda::one_of(n, 0xffffffffU), n - 1);
  }
}

/// Single flips on graphs: the matrix of whole steps is that of the CPU's kernel with its rests, and steps follow it.
TEST(StepGuards, FlipsThatRestAreThoseOfTheCpu) {
  for (const IsingModel& model : small_flip_graphs()) {
    SCOPED_TRACE(model.name);
    const auto target = target_of(model);
    const Index n = model.variables;
    const StateSpace space = enumerate_states(*target);
    for (const auto& [name, function] : all_balances()) {
      SCOPED_TRACE(name);
      const StepProbabilities step = on_host(*target, function);
      TransitionMatrix matrix(space.size(), std::vector<double>(space.size(), 0.0));
      for (std::size_t s = 0; s < space.size(); ++s) {
        matrix[s][s] = 1.0;
        for (Index i = 0; i < n; ++i) {
          const double prob = step.proposal[s * n + i] * step.acceptance[s * n + i] / cuda::rest_stretch(n);
          matrix[s][s ^ std::size_t{1} << i] = prob;
          matrix[s][s] -= prob;
        }
      }
      EXPECT_LE(detailed_balance_error(matrix, space), 1e-12);
      const LocallyBalanced<GraphIsing> kernel(function);
      const TransitionMatrix expected = with_rests(transition_matrix(kernel, *target, space), n);
      for (std::size_t s = 0; s < space.size(); ++s) {
        for (std::size_t t = 0; t < space.size(); ++t) ASSERT_NEAR(matrix[s][t], expected[s][t], 1e-12);
      }
      if (function.kind() != BalancingFunction::Kind::sqrt) continue;
      constexpr std::size_t kSteps = 20000;
      std::vector<double> count(space.size(), 0.0), wanted = matrix[space.size() / 3];
      for (std::size_t c = 0; c < kSteps; ++c) {
        HostGraphChain chain(*target, function, space.states[space.size() / 3]);
        chain.step(9, c, 5);
        std::size_t end = 0;
        for (Index i = 0; i < n; ++i) end |= std::size_t{chain.level(i)} << i;
        ++count[end];
      }
      for (double& w : wanted) w *= kSteps;
      EXPECT_LT(std::abs(deviation(count, wanted)), 6.0);
    }
  }
}

/// What proposals of a state are drawn from, by the device's code: weights, or probabilities in units of 2^-32.
struct HostLaw {
  HostLaw(GradientForm form, const BalancingFunction& function) {
    law.form = form;
    law.function = static_cast<cuda::GradientFunction>(function.kind());
    law.log_length = static_cast<float>(function.level());
    law.length = static_cast<float>(std::exp(function.level()));
    if (const BalanceTable* table = function.table()) {
      std::copy(table->phi().begin(), table->phi().end(), phi.begin());
      law.phi_step = static_cast<float>(BalanceTable::kStep);
      law.tail_gradient = (phi[BalanceTable::kCells] - phi[BalanceTable::kCells - 1]) / law.phi_step;
    }
    law.phi = phi.data();
  }
  HostLaw(const HostLaw&) = delete;
  HostLaw& operator=(const HostLaw&) = delete;

  [[nodiscard]] std::vector<std::uint64_t> operator()(std::span<const double> log_ratios) const {
    switch (law.function) {
      case cuda::GradientFunction::sqrt: return parts<cuda::GradientFunction::sqrt>(log_ratios);
      case cuda::GradientFunction::barker: return parts<cuda::GradientFunction::barker>(log_ratios);
      case cuda::GradientFunction::min: return parts<cuda::GradientFunction::min>(log_ratios);
      case cuda::GradientFunction::max: return parts<cuda::GradientFunction::max>(log_ratios);
      case cuda::GradientFunction::table: break;
    }
    return parts<cuda::GradientFunction::table>(log_ratios);
  }

 private:
  template <cuda::GradientFunction function>
  [[nodiscard]] std::vector<std::uint64_t> parts(std::span<const double> log_ratios) const {
    float most = -3e38F;
    for (const double u : log_ratios) most = std::max(most, cuda::log_g<function>(law, static_cast<float>(u)));
    std::vector<std::uint64_t> out;
    for (const double u : log_ratios) {
      const auto narrow = static_cast<float>(u);
      out.push_back(law.form == GradientForm::single ? cuda::weight(cuda::log_g<function>(law, narrow), most)
                                                     : cuda::chance<function>(law, narrow));
    }
    return out;
  }

  std::array<float, cuda::kPhiPoints> phi{};
  cuda::GradientLaw law{};
};

constexpr GradientForm kGradientForms[] = {GradientForm::single, GradientForm::relaxation, GradientForm::langevin};

/// However long steps are and however likely a change, no variable changes with a probability over 1 - e^-4, and each
/// with some.
TEST(StepGuards, ChancesAreBoundedAsOnTheCpu) {
  std::vector<double> log_ratios;
  for (double u = -30.0; u < 30.0; u += 0.217) log_ratios.push_back(static_cast<float>(u));
  for (const double u : {-1e30, -600.0, 600.0, 1e30}) log_ratios.push_back(u);
  for (const GradientForm form : {GradientForm::relaxation, GradientForm::langevin}) {
    for (const double level : {-12.0, -2.0, 0.3, 1.4, 6.0}) {
      for (const BalancingFunction& function : gradient_functions(level)) {
        SCOPED_TRACE(std::to_string(static_cast<int>(form)) + ' ' + std::to_string(static_cast<int>(function.kind())));
        const std::vector<std::uint64_t> found = HostLaw(form, function)(log_ratios);
        const std::size_t ordinary = log_ratios.size() - 4;
        expect_gradient_law(std::span(found).first(ordinary), form, function, std::span(log_ratios).first(ordinary),
                            1e-3);
        for (const std::uint64_t parts : found) {
          EXPECT_GE(parts, 1U);
          EXPECT_LE(static_cast<double>(parts) * 0x1p-32, -std::expm1(-4.0) + 1e-6);
        }
      }
    }
  }
}

/// Logarithms in units of 2^-32 are as good as floats are, whichever of both is the smaller probability.
TEST(StepGuards, LogarithmsOfChances) {
  for (std::uint64_t parts = 1; parts < 0xfffffff0U; parts = parts * 5 / 4 + 1) {
    const double p = static_cast<double>(parts) * 0x1p-32;
    for (const bool changes : {false, true}) {
      const double log = changes ? std::log(p) : std::log1p(-p);
      const float found = cuda::log_chance(static_cast<std::uint32_t>(parts), changes);
      EXPECT_NEAR(cuda::log_from_parts(cuda::log_in_parts(found)), log, 3e-7 * std::abs(log) + 0x1p-32) << parts;
    }
  }
}

/// Steps by the law of the device on an RBM whose first-order ratios are far from exact: steps that rest and local ones
/// are reversible, and a period of 32 steps leaves the distribution alone.
TEST(StepGuards, StepsLeaveTheDistributionAlone) {
  const Rbm target(random_rbm(6, 5, 1.5, 3));
  const Index n = target.num_variables();
  const StateSpace space = enumerate_states(target);
  std::vector<double> log_prob;
  std::vector<std::vector<double>> log_ratios;
  for (const std::vector<Value>& x : space.states) {
    const Rbm::State state = target.make_state(x);
    const Rbm::State* const pointer = &state;
    std::vector<double> of_state(n + 8);
    double* const to = of_state.data();
    target.first_order_log_ratios(std::span(&pointer, 1), std::span<double* const>(&to, 1));
    of_state.resize(n);
    log_ratios.push_back(of_state);
    log_prob.push_back(target.log_prob(state));
  }
  const TransitionMatrix local = local_matrix(target, space);
  EXPECT_LE(detailed_balance_error(local, space), 1e-12);
  for (const GradientForm form : kGradientForms) {
    const bool many = form != GradientForm::single;
    for (const double level : {-1.0, 2.5}) {
      for (const BalancingFunction& function : gradient_functions(many ? level : 0.0)) {
        SCOPED_TRACE(std::to_string(static_cast<int>(form)) + ' ' + std::to_string(static_cast<int>(function.kind())));
        const HostLaw law(form, function);
        std::vector<std::uint64_t> proposal;
        for (const std::vector<double>& of_state : log_ratios) {
          const std::vector<std::uint64_t> parts = law(of_state);
          proposal.insert(proposal.end(), parts.begin(), parts.end());
        }
        const GradientTransitions transitions(log_prob, proposal, many);
        TransitionMatrix step;
        for (std::size_t s = 0; s < space.size(); ++s) step.push_back(transitions.expected(s, 1).chains);
        EXPECT_LE(row_error(step, space), 1e-12);
        EXPECT_LE(detailed_balance_error(step, space), 1e-12);
        if (!many) continue;
        TransitionMatrix period = local;
        for (unsigned k = 1; k < cuda::kLocalEvery; ++k) period = product(step, period);
        EXPECT_LE(invariance_error(period, space), 1e-12);
      }
    }
  }
}

}  // namespace poise::step_guards_test
