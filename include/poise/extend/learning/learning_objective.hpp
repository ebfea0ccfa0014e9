/// What a learned balancing function is judged by: four criteria, each as its gradient in the transition probabilities.
///
/// variance  the mean-field asymptotic variance of averages, (log V_1 + log V_h)/2 with V_c = sum_i w_i / F_i: F_i is
/// the
///           probability per step that variable i changes, w_i comes from its marginal (default).
/// entropy   minus the entropy rate of the chain: the mutual information of consecutive states up to a constant.
///           Of steps that change many variables, with the mean acceptance in place of every one's own.
/// mi        Theorem 1(a) of the LSB paper: the same quantity, estimated with weights p(x) and one sampled proposal.
/// mi-bound  Theorem 1(b): its bound with a learned eta and one uniform move; what the paper used.
///
/// In the last two p is taken relative to its largest value among the chains, so that adding a constant to log p
/// changes nothing; Q_1 = pi uniform + (1 - pi) point mass and Q_2 = the proposal at the present parameters, as in the
/// paper.
#pragma once

#include <span>
#include <vector>

#include <poise/extend/learning/transition_gradient.hpp>
#include <poise/sampler.hpp>

namespace poise {

class LearningObjective {
 public:
  static constexpr double kUniformShare = 1e-8;  ///< pi of Q_1

  explicit LearningObjective(LearningObjectiveKind kind) : kind_(kind) {}

  [[nodiscard]] LearningObjectiveKind kind() const { return kind_; }
  [[nodiscard]] TransitionGradientOptions needs() const;

  /// Takes in the states of all chains at one time, before `coefficients` is asked for any of them.
  void observe(std::span<const TransitionGradient> chains);

  /// d objective / d T for the entries and sampled moves of one chain; the objective is to be minimised.
  void coefficients(const TransitionGradient& chain, std::vector<double>& out) const;

  /// The criterion itself at the states last observed (for progress and tests); `variance` uses its running averages.
  [[nodiscard]] double value(std::span<const TransitionGradient> chains) const;

  /// eta of mi-bound, kept positive as softplus(raw).
  [[nodiscard]] double eta() const;
  [[nodiscard]] double& raw_eta() { return raw_eta_; }
  [[nodiscard]] double raw_eta_gradient(std::span<const TransitionGradient> chains) const;

  template <class A>
  void archive(A& archive) {
    archive(raw_eta_, num_chains_, largest_log_prob_, rounds_, change_rate_, marginal_, rate_gradient_, value_);
  }

 private:
  void observe_variance(std::span<const TransitionGradient> chains);
  [[nodiscard]] double relative_log_prob(const TransitionGradient& chain) const {
    return chain.log_prob - largest_log_prob_;
  }

  LearningObjectiveKind kind_;
  double raw_eta_ = 0.5413248546129181;  // eta = 1
  double num_chains_ = 1.0;
  double largest_log_prob_ = 0.0;

  // variance: running averages over rounds and chains, by variable looked at.
  std::size_t rounds_ = 0;
  std::vector<double> change_rate_;            // F_i
  std::vector<std::vector<double>> marginal_;  // p_ik
  std::vector<double> rate_gradient_;          // d objective / d F_i
  double value_ = 0.0;
};

}  // namespace poise
