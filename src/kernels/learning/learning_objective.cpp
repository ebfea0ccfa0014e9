/// The learning criteria; docs/method.md derives them.
#include <poise/extend/learning/learning_objective.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <poise/extend/base/math.hpp>

#include <poise/extend/learning/learned_function.hpp>
namespace poise {

namespace {

constexpr double kTiny = 1e-300;

/// How much of the past the running averages of `variance` keep: about this many rounds.
constexpr double kMemory = 64.0;

/// Probability of staying, 1 - sum T, with the sum scaled up from the variables looked at.
double stay_probability(const TransitionGradient& chain) {
  double moved = 0.0;
  for (const auto& entry : chain.entries) moved += entry.transition;
  return std::max(1.0 - chain.scale * moved, 1e-12);
}

/// What many independent changes add to the entropy of a step: A sum_i h_i + h(A), h_i the entropy of what variable i
/// does and A the mean acceptance. Calls visit(first, last, stay) with the entries of each variable.
template <class Visit>
void for_each_variable(const TransitionGradient& chain, double accept, Visit&& visit) {
  const auto& entries = chain.entries;
  for (std::size_t first = 0; first < entries.size();) {
    double change = 0.0;
    std::size_t last = first;
    while (last < entries.size() && entries[last].position == entries[first].position) {
      change += entries[last++].transition / accept;
    }
    visit(first, last, std::max(1.0 - change, kTiny));
    first = last;
  }
}

double mean_acceptance(const TransitionGradient& chain) {
  constexpr double kEdge = 1e-6;
  return chain.entries.empty() ? kEdge : std::clamp(chain.entries[0].accept_prob, kEdge, 1.0 - kEdge);
}

double log_term(double x) { return x > 0.0 ? x * std::log(x) : 0.0; }

}  // namespace

TransitionGradientOptions LearningObjective::needs() const {
  TransitionGradientOptions options;
  options.all_moves = kind_ != LearningObjectiveKind::mi_bound;
  options.sampled_moves = kind_ == LearningObjectiveKind::mi || kind_ == LearningObjectiveKind::mi_bound;
  return options;
}

void LearningObjective::observe(std::span<const TransitionGradient> chains) {
  num_chains_ = static_cast<double>(chains.size());
  largest_log_prob_ = -std::numeric_limits<double>::infinity();
  for (const TransitionGradient& chain : chains) largest_log_prob_ = std::max(largest_log_prob_, chain.log_prob);
  if (kind_ == LearningObjectiveKind::variance) observe_variance(chains);
}

void LearningObjective::observe_variance(std::span<const TransitionGradient> chains) {
  const std::size_t variables = chains[0].entries.empty() ? 0 : chains[0].entries.back().position + std::size_t{1};
  change_rate_.resize(variables, 0.0);
  marginal_.resize(variables);
  ++rounds_;
  const double fresh = std::max(1.0 / static_cast<double>(rounds_), 1.0 / kMemory);
  const double share = fresh / num_chains_;
  for (double& rate : change_rate_) rate *= 1.0 - fresh;
  for (auto& probabilities : marginal_) {
    for (double& p : probabilities) p *= 1.0 - fresh;
  }
  std::vector<double> conditional;
  for (const TransitionGradient& chain : chains) {
    const auto& entries = chain.entries;
    for (std::size_t first = 0; first < entries.size();) {
      // The conditional distribution of one variable given the rest: its present level has log weight 0.
      std::size_t last = first;
      double largest = 0.0;
      while (last < entries.size() && entries[last].position == entries[first].position) {
        largest = std::max(largest, entries[last++].log_ratio);
      }
      const std::size_t levels = last - first + 1;
      conditional.assign(levels, std::exp(-largest));
      for (std::size_t k = first; k < last; ++k)
        conditional[entries[k].value] = std::exp(entries[k].log_ratio - largest);
      double sum = 0.0;
      for (const double weight : conditional) sum += weight;
      const Index i = entries[first].position;
      marginal_[i].resize(levels, 0.0);
      for (std::size_t k = 0; k < levels; ++k) marginal_[i][k] += share * conditional[k] / sum;
      for (std::size_t k = first; k < last; ++k) change_rate_[i] += share * entries[k].transition;
      first = last;
    }
  }

  // V_1 = sum v^2/F and V_h = sum Var(log p) v/F with v = 1 - sum_k p_k^2.
  std::vector<double> plain(variables, 0.0), weighted(variables, 0.0);
  double plain_sum = 0.0, weighted_sum = 0.0;
  for (std::size_t i = 0; i < variables; ++i) {
    if (change_rate_[i] <= kTiny) continue;
    double same = 0.0, mean_log = 0.0, mean_square_log = 0.0;
    for (const double p : marginal_[i]) {
      const double log_p = std::log(std::max(p, kTiny));
      same += p * p;
      mean_log += p * log_p;
      mean_square_log += p * log_p * log_p;
    }
    const double spread = std::max(1.0 - same, 0.0);
    plain[i] = spread * spread;
    weighted[i] = std::max(mean_square_log - mean_log * mean_log, 0.0) * spread;
    plain_sum += plain[i] / change_rate_[i];
    weighted_sum += weighted[i] / change_rate_[i];
  }
  // Without a field V_h vanishes up to noise and says nothing; then V_1 counts alone.
  const bool both = weighted_sum > 1e-6 * plain_sum;
  rate_gradient_.assign(variables, 0.0);
  for (std::size_t i = 0; i < variables; ++i) {
    if (change_rate_[i] <= kTiny || plain_sum <= 0.0) continue;
    const double square = change_rate_[i] * change_rate_[i];
    rate_gradient_[i] =
        both ? -0.5 * (plain[i] / plain_sum + weighted[i] / weighted_sum) / square : -(plain[i] / plain_sum) / square;
  }
  value_ = both ? 0.5 * (std::log(plain_sum) + std::log(weighted_sum)) : std::log(std::max(plain_sum, kTiny));
}

void LearningObjective::coefficients(const TransitionGradient& chain, std::vector<double>& out) const {
  out.assign(chain.entries.size() + chain.sampled.size() + (chain.many ? 1 : 0), 0.0);
  const std::size_t n = chain.entries.size();
  switch (kind_) {
    case LearningObjectiveKind::variance:
      for (std::size_t k = 0; k < n; ++k) out[k] = rate_gradient_[chain.entries[k].position] / num_chains_;
      return;
    case LearningObjectiveKind::entropy: {
      if (chain.many) {
        // dH = A sum_i dh_i + dA (sum_i h_i + log((1 - A)/A)), and dh_i = sum_k dq_ik log(stay_i/q_ik).
        const double accept = mean_acceptance(chain);
        const double share = chain.scale / num_chains_;
        out.back() = -std::log((1.0 - accept) / accept) / num_chains_;
        for_each_variable(chain, accept, [&](std::size_t first, std::size_t last, double stay) {
          for (std::size_t k = first; k < last; ++k) {
            const double change = std::max(chain.entries[k].transition / accept, kTiny);
            out[k] = share * (std::log(change) - std::log(stay));
          }
          out.back() += share * std::log(stay);
        });
        return;
      }
      const double log_stay = std::log(stay_probability(chain));
      for (std::size_t k = 0; k < n; ++k) {
        const double log_move = std::log(std::max(chain.entries[k].transition, kTiny));
        out[k] = chain.scale * (log_move - log_stay) / num_chains_;
      }
      return;
    }
    case LearningObjectiveKind::mi:
    case LearningObjectiveKind::mi_bound: {
      // With theta_0 = theta, Q/Q_2 = 1 and its gradient is d log Q; the term T log(T/p') then has gradient
      // (p/Q) (log(T/p') + 1) dT for the sampled proposal.
      const double log_p = relative_log_prob(chain);
      const double weight = std::exp(log_p) / num_chains_;
      const auto& proposed = chain.sampled[0];
      if (proposed.transition > kTiny) {
        const double log_term_after = std::log(proposed.transition) - (log_p + proposed.log_ratio);
        out[n] = weight * proposed.accept_prob / proposed.transition * (log_term_after + 1.0);
      }
      if (kind_ == LearningObjectiveKind::mi) {
        const double by_stay = weight * (std::log(stay_probability(chain)) - log_p + 1.0);
        for (std::size_t k = 0; k < n; ++k) out[k] = -chain.scale * by_stay;
      } else {
        const double rest = 1.0 - chain.sampled[1].transition;
        out[n + 1] = -(2.0 * eta() * rest - std::exp(log_p) * (std::log(eta()) + 1.0)) / num_chains_;
      }
      return;
    }
  }
}

double LearningObjective::value(std::span<const TransitionGradient> chains) const {
  if (kind_ == LearningObjectiveKind::variance) return value_;
  double sum = 0.0;
  for (const TransitionGradient& chain : chains) {
    if (kind_ == LearningObjectiveKind::entropy && chain.many) {
      const double accept = mean_acceptance(chain);
      double entropy = -log_term(accept) - log_term(1.0 - accept);
      for_each_variable(chain, accept, [&](std::size_t first, std::size_t last, double stay) {
        entropy -= chain.scale * accept * log_term(stay);
        for (std::size_t k = first; k < last; ++k) {
          entropy -= chain.scale * accept * log_term(chain.entries[k].transition / accept);
        }
      });
      sum -= entropy / num_chains_;
      continue;
    }
    if (kind_ == LearningObjectiveKind::entropy) {
      double entropy = -log_term(stay_probability(chain));
      for (const auto& entry : chain.entries) entropy -= chain.scale * log_term(entry.transition);
      sum -= entropy / num_chains_;
      continue;
    }
    const double log_p = relative_log_prob(chain);
    const auto& proposed = chain.sampled[0];
    double term = 0.0;
    if (proposed.transition > kTiny) {
      term += std::exp(log_p) * proposed.accept_prob * (std::log(proposed.transition) - (log_p + proposed.log_ratio));
    }
    if (kind_ == LearningObjectiveKind::mi) {
      const double stay = stay_probability(chain);
      term += std::exp(log_p) * stay * (std::log(stay) - log_p);
    } else {
      const double rest = 1.0 - chain.sampled[1].transition;
      term += rest * (eta() * rest - std::exp(log_p) * (std::log(eta()) + 1.0));
    }
    sum += term / num_chains_;
  }
  return sum;
}

double LearningObjective::eta() const { return softplus(raw_eta_); }

double LearningObjective::raw_eta_gradient(std::span<const TransitionGradient> chains) const {
  if (kind_ != LearningObjectiveKind::mi_bound) return 0.0;
  double gradient = 0.0;
  for (const TransitionGradient& chain : chains) {
    const double rest = 1.0 - chain.sampled[1].transition;
    gradient += rest * (rest - std::exp(relative_log_prob(chain)) / eta()) / num_chains_;
  }
  return gradient / (1.0 + std::exp(-raw_eta_));
}

}  // namespace poise
