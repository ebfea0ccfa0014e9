/// What steps that change many variables do to each of them, and its gradient.
///
/// Variable i changes by the move m with probability F_m, taken as q_m times A, the acceptance of a change. A proposal
/// counts by the changes c that it makes, so that F has the right sum over all moves: A = E[c a] / Q, with a the
/// acceptance of a proposal, from a few of them drawn at the state, and Q = E[c], the sum of all q. One that changes
/// nothing, which cannot be refused, does not count at all. Both factors of F are differentiated. q_m depends on phi
/// at one |u| only: under relaxation d log q_m = tau s / (e^(tau s) - 1) d phi. For a let R be the ratio that is
/// compared with 1: d E[c a] is the mean of c a d log q(x|y) over proposals with R < 1 (a q(y|x) is then p(y)/p(x)
/// q(x|y)) and of c d log q(y|x) over the others. The mean of d log q(y|x) over all proposals is 0, so b times it can
/// be taken away, with b the mean of c a over the other proposals: without it the gradient of forty changes would drown
/// in noise.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include <poise/extend/kernels/factorised_proposal.hpp>
#include <poise/extend/kernels/path_proposal.hpp>
#include <poise/extend/learning/transition_gradient.hpp>

namespace poise {

inline constexpr int kManyProbes = 2;

/// d log(1 - e^-rate) / d log rate; beyond the largest rate nothing changes.
POISE_INLINE Doubles8 gradient_of_relaxation(const Doubles8& rate) {
  const Doubles8 still = exp8(-1.0 * rate);
  const Doubles8 gradient = rate * still / max8(broadcast8(1e-300), 1.0 - still);
  const Doubles8 inside = select8(less8(broadcast8(kMostRate), rate), Doubles8{}, gradient);
  return select8(less8(rate, broadcast8(1e-9)), broadcast8(1.0), inside);
}

/// By variable: the |u| that its law depends on, and d log q / d phi there.
struct LawGradient {
  std::vector<double> sizes;
  std::vector<double> by_phi;
};

template <class Real>
[[nodiscard]] double stay_prob(const FactorisedLaw<Real>& law, const VariableMoves& variables, Index i) {
  if (!variables.binary) return law.stay_probs[i];
  if (variables.moves(i) == 0) return 1.0;
  const double minor = law.minor[variables.first[i]];
  return std::signbit(minor) ? -minor : 1.0 - minor;
}

template <class Real>
[[nodiscard]] double move_prob(const FactorisedLaw<Real>& law, const VariableMoves& variables, Index move) {
  if (!variables.binary) return law.move_probs[move];
  const double minor = law.minor[move];
  return std::signbit(minor) ? 1.0 + minor : minor;
}

template <Target T>
LawGradient law_gradient(const FactorisedProposal<T>& kernel, const VariableMoves& variables,
                         const typename FactorisedProposal<T>::Law& law) {
  using Law = typename FactorisedProposal<T>::Law;
  LawGradient out;
  const std::size_t padded = Law::padded(variables.variables());
  out.sizes.assign(padded, 0.0);
  out.by_phi.assign(padded, 0.0);
  if (kernel.form() == FactorisedForm::langevin) {
    // Only its level is learned: with all weights of changes times the same factor, d log q is the probability to stay.
    // Where that is the least there is, nothing changes.
    constexpr double least = 1.000001 / (1.0 + kMostOdds);
    for (Index i = 0; i < variables.variables(); ++i) {
      const double stay = stay_prob(law, variables, i);
      out.by_phi[i] = stay > least ? stay : 0.0;
    }
    return out;
  }
  for (Index i = 0; i < variables.variables(); ++i) {
    const auto first = law.log_ratios.begin() + variables.first[i];
    const auto last = law.log_ratios.begin() + variables.first[i + 1];
    double size = 0.0;
    if (last - first == 1) {
      size = std::abs(*first);
    } else if (last != first) {
      const double most = std::max(0.0, static_cast<double>(*std::max_element(first, last)));
      double all = std::exp(-most);
      for (auto u = first; u != last; ++u) all += std::exp(*u - most);
      size = std::abs(std::log(std::max(all - 1.0, 1e-260)));
    }
    out.sizes[i] = std::min(size, Law::kSteepest);
  }
  const BalancingFunction& function = kernel.function();
  hot([&out, &function, padded] {
    for (std::size_t k = 0; k < padded; k += 8) {
      const Doubles8 size = load8(out.sizes.data() + k);
      const Doubles8 rate = function.weights(size, -function.level()) * (1.0 + exp8(-1.0 * size));
      store8(out.by_phi.data() + k, gradient_of_relaxation(rate));
    }
  });
  return out;
}

/// Adds weight * d log g / d phi at |u| = size to the grid; of a fixed function all that can change is its level.
inline void deposit(const BalancingFunction& function, double size, double weight, std::span<double> out) {
  if (function.table() != nullptr) {
    function.table()->add_gradient(size, weight, out);
  } else {
    out[0] += weight;
  }
}

template <Target T>
void transition_gradient(const FactorisedProposal<T>& kernel, const T& target, const typename T::State& state,
                         typename FactorisedProposal<T>::Scratch& scratch, Rng& rng,
                         const TransitionGradientOptions& options, TransitionGradient& out) {
  const VariableMoves& variables = scratch.variables;
  const BalancingFunction& function = kernel.function();
  reserve_entries(target, options, out);
  out.many = true;
  out.log_prob = scratch.log_prob;
  out.accept_gradient.assign(BalanceTable::kPoints, 0.0);
  const LawGradient here = law_gradient(kernel, variables, scratch.here);
  // Adds weight * d log of the probability of what a probe does, or of its way back.
  std::vector<std::uint8_t> changes(variables.variables());
  const auto add_score = [&](const auto& law, const LawGradient& gradient, double weight, std::span<double> to) {
    for (Index i = 0; i < variables.variables(); ++i) {
      const double stay = stay_prob(law, variables, i);
      const double by_size = changes[i] != 0 ? 1.0 : -(1.0 - stay) / std::max(stay, 1e-300);
      deposit(function, gradient.sizes[i], weight * gradient.by_phi[i] * by_size, to);
    }
  };
  double accept[kManyProbes], count[kManyProbes];
  std::vector<double> forth[kManyProbes], back[kManyProbes];
  for (int k = 0; k < kManyProbes; ++k) {
    accept[k] = kernel.probe(target, state, scratch, rng);
    count[k] = static_cast<double>(scratch.moves.size());
    std::fill(changes.begin(), changes.end(), std::uint8_t{0});
    for (const Move& move : scratch.moves) changes[move.variable] = 1;
    forth[k].assign(BalanceTable::kPoints, 0.0);
    back[k].assign(BalanceTable::kPoints, 0.0);
    add_score(scratch.here, here, 1.0, forth[k]);
    if (accept[k] > 0.0 && accept[k] < 1.0) {
      add_score(scratch.there, law_gradient(kernel, variables, scratch.there), 1.0, back[k]);
    }
  }
  double sum = 0.0, expected = 0.0;  // of c a over the proposals, and Q
  for (int k = 0; k < kManyProbes; ++k) sum += count[k] * accept[k];
  for (Index i = 0; i < variables.variables(); ++i) expected += 1.0 - stay_prob(scratch.here, variables, i);
  expected = std::max(expected, 1e-300);
  const double mean = sum / kManyProbes / expected;
  for (int k = 0; k < kManyProbes; ++k) {
    const double others = (sum - count[k] * accept[k]) / (kManyProbes - 1);
    const double by_forth = (accept[k] >= 1.0 ? count[k] : 0.0) - others;
    const double share = 1.0 / (kManyProbes * expected);
    for (std::size_t p = 0; p < out.accept_gradient.size(); ++p) {
      out.accept_gradient[p] += share * (by_forth * forth[k][p] + count[k] * accept[k] * back[k][p]);
    }
  }
  for (Index i = 0; i < variables.variables(); ++i) {
    const double change = 1.0 - stay_prob(scratch.here, variables, i);
    deposit(function, here.sizes[i], -mean * change * here.by_phi[i] / expected, out.accept_gradient);
  }
  const Index stride = (variables.variables() + options.max_variables - 1) / options.max_variables;
  out.sizes.clear();
  out.by_phi.clear();
  for_each_looked_at(target, options, out, [&](Index position, Index first, Index end) {
    out.sizes.push_back(here.sizes[position * stride]);
    out.by_phi.push_back(here.by_phi[position * stride]);
    for (Index move = first; move < end; ++move) {
      out.entries.push_back({move, position, target.move_at(state, move).value, scratch.here.log_ratios[move], mean,
                             mean * move_prob(scratch.here, variables, move)});
    }
  });
}

/// Paths: variable i is on one of R draws with about q_i = 1 - e^(-R W_i/Z), W_i the weight of its moves. The length of
/// a path is uniform up to 2R - 1, so R dA/dR = a(2R - 1) - A with a(r) the acceptance of paths of length r.
template <Target T>
void transition_gradient(const PathProposal<T>& kernel, const T& target, const typename T::State& state,
                         typename PathProposal<T>::Scratch& scratch, Rng& rng, const TransitionGradientOptions& options,
                         TransitionGradient& out) {
  const Index longest = kernel.longest(scratch);
  reserve_entries(target, options, out);
  out.many = true;
  out.log_prob = scratch.log_prob;
  out.accept_gradient.assign(BalanceTable::kPoints, 0.0);
  const double at_end = kernel.probe(target, state, scratch, rng, longest);
  const auto length = static_cast<Index>(rng.uniform() * longest) + 1;
  const double accept = kernel.probe(target, state, scratch, rng, length);
  out.accept_gradient[0] = at_end - accept;
  const double mean = accept;
  const auto radius = static_cast<double>(kernel.radius());
  const double work = PathProposal<T>::element_work(target.num_moves()) * radius;
  out.work_slope = MemoisingTarget<T> ? 0.0 : work / (1.0 + work);
  out.sizes.clear();
  out.by_phi.clear();
  const WeighedMoves& here = scratch.here;
  for_each_looked_at(target, options, out, [&](Index position, Index first, Index last) {
    double weight = 0.0;
    for (Index move = first; move < last; ++move) weight += here.weights[move];
    const double rate = weight > 0.0 ? radius * weight / here.total : 0.0;
    const double change = -std::expm1(-rate);
    out.sizes.push_back(0.0);
    out.by_phi.push_back(rate > 1e-9 ? rate * std::exp(-rate) / change : 1.0);
    for (Index move = first; move < last; ++move) {
      const double prob = weight > 0.0 ? change * here.weights[move] / weight : 0.0;
      out.entries.push_back(
          {move, position, target.move_at(state, move).value, here.log_ratios[move], mean, mean * prob});
    }
  });
}

/// The same for all kernels that change many variables.
template <class K>
void add_many_gradient(const K& kernel, const TransitionGradient& gradient, std::span<const double> coefficients,
                       std::span<double> out) {
  double by_acceptance = coefficients[gradient.entries.size()];
  for (std::size_t k = 0; k < gradient.entries.size(); ++k) {
    const TransitionGradient::Entry& entry = gradient.entries[k];
    if (entry.accept_prob > 0.0) by_acceptance += coefficients[k] * entry.transition / entry.accept_prob;
    deposit(kernel.function(), gradient.sizes[entry.position],
            coefficients[k] * entry.transition * gradient.by_phi[entry.position], out);
  }
  for (std::size_t p = 0; p < out.size(); ++p) out[p] += by_acceptance * gradient.accept_gradient[p];
}

template <Target T>
void add_gradient(const FactorisedProposal<T>& kernel, const T&, const typename T::State&,
                  typename FactorisedProposal<T>::Scratch&, const TransitionGradient& gradient,
                  std::span<const double> coefficients, std::span<double> out) {
  add_many_gradient(kernel, gradient, coefficients, out);
}

template <Target T>
void add_gradient(const PathProposal<T>& kernel, const T&, const typename T::State&, typename PathProposal<T>::Scratch&,
                  const TransitionGradient& gradient, std::span<const double> coefficients, std::span<double> out) {
  add_many_gradient(kernel, gradient, coefficients, out);
}

}  // namespace poise
