/// What proposals from gradients are drawn from, on all states of a few two-valued variables, and what follows for
/// steps.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include <poise/extend/learning/balancing_function.hpp>
#include "engines/common/gradient_law.hpp"

namespace poise::testing {

inline std::vector<BalancingFunction> gradient_functions(double level) {
  std::vector<BalancingFunction> out;
  using Kind = BalancingFunction::Kind;
  for (const Kind kind : {Kind::sqrt, Kind::barker, Kind::min, Kind::max}) out.emplace_back(kind, level);
  std::vector<double> phi;
  for (int k = 0; k < BalanceTable::kPoints; ++k) phi.push_back(level - 0.4 * std::log1p(BalanceTable::grid(k)));
  out.emplace_back(std::make_shared<const BalanceTable>(phi));
  return out;
}

/// Weights of single changes, or probabilities in units of 2^-32, of one state, against what its log ratios say. No
/// probability is over 1 - e^-4.
inline void expect_gradient_law(std::span<const std::uint64_t> found, cuda::GradientForm form,
                                const BalancingFunction& function, std::span<const double> log_ratios,
                                double tolerance) {
  double total = 0.0, expected_total = 0.0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    total += static_cast<double>(found[i]);
    expected_total += std::exp(function.log_g(log_ratios[i]));
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto parts = static_cast<double>(found[i]);
    const double u = log_ratios[i];
    if (form == cuda::GradientForm::single) {
      ASSERT_NEAR(parts / total, std::exp(function.log_g(u)) / expected_total, tolerance);
    } else if (form == cuda::GradientForm::relaxation) {
      const double rate = std::exp(function.level()) * (std::exp(function.log_g(u)) + std::exp(function.log_g(-u)));
      ASSERT_NEAR(parts * 0x1p-32, -std::expm1(-std::min(4.0, rate)) / (1.0 + std::exp(-u)), tolerance);
    } else {
      const double w = std::exp(function.log_g(u) - function.log_g(0.0) + function.level());
      ASSERT_NEAR(parts * 0x1p-32, std::min(w / (1.0 + w), -std::expm1(-4.0)), tolerance);
    }
  }
}

/// Where chains are expected after a step from one state.
struct ExpectedStep {
  std::vector<double> chains;  ///< at each state
  double accepted = 0.0;       ///< the mean acceptance probability, which is 0 where nothing would change
  double proposed = 0.0;       ///< the share of proposals that would change something
};

/// Transition probabilities from every state to every other, by what the device proposes from: [state][variable]. Steps
/// of single changes rest now and then; those of many are not local.
class GradientTransitions {
 public:
  GradientTransitions(std::span<const double> log_prob, std::span<const std::uint64_t> proposal, bool many)
      : log_prob_(log_prob), proposal_(proposal), variables_(proposal.size() / log_prob.size()), many_(many) {}

  [[nodiscard]] ExpectedStep expected(std::size_t from, std::size_t chains) const {
    ExpectedStep out{std::vector<double>(log_prob_.size(), 0.0)};
    double left = 1.0;
    const auto n = static_cast<double>(variables_);
    const double awake = many_ ? 1.0 : n / (n + 1.0);
    for (std::size_t to = 0; to < log_prob_.size(); ++to) {
      if (to == from) continue;
      const double q = std::exp(log_proposal(from, to)), moved = q * acceptance(from, to);
      out.proposed += q;
      out.accepted += moved;
      out.chains[to] = static_cast<double>(chains) * awake * moved;
      left -= awake * moved;
    }
    out.chains[from] = static_cast<double>(chains) * std::max(0.0, left);
    return out;
  }

 private:
  [[nodiscard]] double log_proposal(std::size_t from, std::size_t to) const {
    const std::span<const std::uint64_t> row = proposal_.subspan(from * variables_, variables_);
    const std::size_t changed = from ^ to;
    if (!many_) {
      if (std::popcount(changed) != 1) return -std::numeric_limits<double>::infinity();
      double total = 0.0;
      for (const std::uint64_t weight : row) total += static_cast<double>(weight);
      return std::log(static_cast<double>(row[static_cast<std::size_t>(std::countr_zero(changed))]) / total);
    }
    double sum = 0.0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const double p = static_cast<double>(row[i]) * 0x1p-32;
      sum += (changed >> i & 1) != 0 ? std::log(p) : std::log1p(-p);
    }
    return sum;
  }
  [[nodiscard]] double acceptance(std::size_t from, std::size_t to) const {
    if (std::isinf(log_prob_[to])) return 0.0;
    if (std::isinf(log_proposal(from, to))) return 0.0;
    return std::exp(std::min(0.0, log_prob_[to] - log_prob_[from] + log_proposal(to, from) - log_proposal(from, to)));
  }

  std::span<const double> log_prob_;
  std::span<const std::uint64_t> proposal_;
  std::size_t variables_;
  bool many_;
};

}  // namespace poise::testing
