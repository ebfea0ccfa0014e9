/// Whether z scores, correlations and the sample size belong together.
///
/// R of another sample, an allele that is coded the other way round, or a wrong n show in z scores that their
/// neighbours make impossible. The sample size counts where z scores are large: then z sqrt((n-1) / (z^2 + n - 2)),
/// the correlation with y in units of its error, is linear in the effects, and z itself is not. How far R is from the
/// truth (s of `Kriging`) is the most likely value, and another n is named where R is exact and that far more likely.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "inference/select/kriging.hpp"
#include "inference/select/selection_parts.hpp"

namespace poise {

namespace {

constexpr double kLeastShrinkage = 1e-3;  // below it, rounding of R and z would count
constexpr double kFarFromR = 0.1;         // s from which R is said to be of another sample
constexpr double kSurely = 10.0;          // log likelihood that makes sure of s, and twice that of n
/// Where not all variants are looked at, those within so many places of large z scores, up to so many in all.
constexpr Index kBeside = 64;
constexpr std::size_t kMostWatched = 1000;

/// z scores that are linear in the effects; the same without n.
std::vector<double> adjusted(const std::vector<double>& z, const std::optional<double>& n) {
  std::vector<double> out = z;
  if (!n) return out;
  for (double& one : out) one *= std::sqrt((*n - 1.0) / (one * one + *n - 2.0));
  return out;
}

/// log of the derivative of adjusted scores, so that densities with different n compare.
double log_jacobian(const std::vector<double>& z, double n) {
  double sum = 0.0;
  for (const double one : z) sum += 0.5 * std::log(n - 1.0) + std::log(n - 2.0) - 1.5 * std::log(one * one + n - 2.0);
  return sum;
}

/// The variants that are looked at: all where R is at hand, else those around the largest z scores.
std::vector<Index> watched(const SelectionProblem& problem) {
  const std::vector<double>& z = problem.summary.z;
  std::vector<Index> all(z.size());
  std::iota(all.begin(), all.end(), Index{0});
  if (problem.correlations && all.size() <= kMostFactored) return all;
  std::vector<Index> by_size = all;
  std::stable_sort(by_size.begin(), by_size.end(), [&](Index a, Index b) { return std::abs(z[a]) > std::abs(z[b]); });
  std::vector<char> in(z.size(), 0);
  std::size_t count = 0;
  for (const Index peak : by_size) {
    if (in[peak] != 0) continue;
    const Index end = static_cast<Index>(std::min<std::size_t>(z.size(), std::size_t{peak} + kBeside + 1));
    for (Index j = peak - std::min(peak, kBeside); j < end && count < kMostWatched; ++j) {
      count += in[j] == 0 ? 1 : 0;
      in[j] = 1;
    }
    if (count >= kMostWatched) break;
  }
  std::erase_if(all, [&](Index j) { return in[j] == 0; });
  return all;
}

DenseCrossProducts correlations_of(const SelectionProblem& problem, const std::vector<Index>& variants) {
  const auto p = static_cast<Index>(variants.size());
  DenseCrossProducts r(p);
  const double scale = 1.0 / problem.law->products().diagonal().front();
  for (Index k = 0; k < p; ++k) {
    const CrossColumn column = problem.law->products().column(variants[k]);
    for (Index j = 0; j < p; ++j) r.row(k)[j] = j == k ? 1.0 : scale * column.at(variants[j]);
  }
  r.finish();
  return r;
}

struct Verdict {
  double possible = 1.0;  ///< the least shrinkage that makes R positive definite
  double shrinkage = 0.0;
  KrigingFit fit;
  double gain_over_least = 0.0;    // of the log likelihood, by R being that far from the truth
  std::optional<double> better_n;  // where another sample size is far more likely
};

Verdict judge(const DenseCrossProducts& r, const std::vector<double>& z, const std::optional<double>& n) {
  std::vector<double> others;
  for (const double factor : {0.1, 0.3, 3.0, 10.0}) {
    if (n && factor * *n > 3.0) others.push_back(factor * *n);
  }
  Verdict best;
  best.fit.log_likelihood = kMinusInfinity;
  double at_least = kMinusInfinity;
  double possible = 1.0;
  std::vector<double> of_others(others.size(), kMinusInfinity);
  for (const double shrinkage : {kLeastShrinkage, 0.01, 0.03, 0.1, 0.3, 0.6}) {
    const std::optional<Kriging> kriging = Kriging::make(r, shrinkage);
    if (!kriging) continue;
    possible = std::min(possible, shrinkage);
    KrigingFit fit = kriging->fit(adjusted(z, n));
    if (at_least == kMinusInfinity) at_least = fit.log_likelihood;
    // Another n is told from R of another sample where it makes R fit as it is.
    for (std::size_t k = 0; k < others.size() && shrinkage == kLeastShrinkage; ++k) {
      of_others[k] = kriging->fit(adjusted(z, others[k])).log_likelihood;
    }
    if (fit.log_likelihood > best.fit.log_likelihood) best = {1.0, shrinkage, std::move(fit), 0.0, {}};
  }
  best.possible = possible;
  if (possible == 1.0) return best;
  best.gain_over_least = best.fit.log_likelihood - at_least;
  double most = n ? best.fit.log_likelihood + log_jacobian(z, *n) + 2.0 * kSurely : 0.0;
  for (std::size_t k = 0; k < others.size(); ++k) {
    const double here = of_others[k] + log_jacobian(z, others[k]);
    if (!(here > most)) continue;
    most = here;
    best.better_n = others[k];
  }
  return best;
}

}  // namespace

void add_inconsistencies(const SelectionProblem& problem, std::vector<Warning>& warnings) {
  if (problem.summary.z.empty()) return;
  const std::vector<Index> variants = watched(problem);
  const bool all = variants.size() == problem.summary.z.size() && problem.correlations;
  std::optional<DenseCrossProducts> some;
  if (!all) some.emplace(correlations_of(problem, variants));
  std::vector<double> z;
  for (const Index j : variants) z.push_back(problem.summary.z[j]);
  const Verdict verdict = judge(some ? *some : *problem.correlations, z, problem.summary.n);
  if (verdict.possible > kLeastShrinkage) {
    const std::string how = verdict.possible < 1.0 ? fmt::format("it would be when shrunk by {:g}", verdict.possible)
                                                   : std::string("and far from it");
    warnings.push_back({"correlations",
                        fmt::format("R is not positive semidefinite at the {} variants around the largest z scores, so "
                                    "no data can have it; {}",
                                    variants.size(), how),
                        "correlations that are not cut off, or only between blocks"});
  }
  if (verdict.possible == 1.0) return;
  const KrigingFit& fit = verdict.fit;
  const std::vector<double> scores = adjusted(z, problem.summary.n);
  const auto expected = [&](Index i) {
    return scores[i] == 0.0 ? fit.expected[i] : fit.expected[i] * z[i] / scores[i];
  };
  std::vector<std::string> flipped;
  for (const Index i : fit.flipped) {
    flipped.push_back(
        fmt::format("{} (z {:.3g}, the others say {:.3g})", problem.names[variants[i]], z[i], expected(i)));
  }
  if (!flipped.empty()) {
    warnings.push_back(
        {"flipped",
         fmt::format("{} to have alleles in {} that are the other way round in R: {}",
                     flipped.size() == 1 ? "One variant seems" : fmt::format("{} variants seem", flipped.size()),
                     problem.summary.source, some_of(flipped)),
         "the sign of its z reversed, or without it"});
  }
  if (verdict.better_n) {
    warnings.push_back({"sample_size",
                        fmt::format("z scores and R do not go with a sample size of {:.6g}: one about {:.0f} fits far "
                                    "better",
                                    *problem.summary.n, *verdict.better_n),
                        "the sample size that z scores come from"});
  }
  // By chance one of p normal numbers is beyond sqrt(2 log p); far beyond that is none of them.
  const double beyond = std::sqrt(2.0 * std::log(std::max<double>(2.0, static_cast<double>(z.size())))) + 3.0;
  std::vector<std::pair<double, std::string>> odd;
  for (Index i = 0; i < z.size(); ++i) {
    const double apart = std::abs(fit.z[i] - fit.expected[i]) / fit.error[i];
    if (!(apart > beyond) || std::find(fit.effects.begin(), fit.effects.end(), i) != fit.effects.end()) continue;
    odd.emplace_back(-apart, fmt::format("{} (z {:.3g}, the others say {:.3g} +- {:.2g})", problem.names[variants[i]],
                                         z[i], expected(i), fit.error[i]));
  }
  if (!odd.empty()) {
    std::sort(odd.begin(), odd.end());
    std::vector<std::string> names;
    for (const auto& [size, name] : odd) names.push_back(name);
    warnings.push_back({"inconsistent",
                        fmt::format("z scores and R do not belong together at {} of {} variants: {}", names.size(),
                                    z.size(), some_of(names)),
                        "correlations from the sample that z scores come from"});
  } else if (verdict.shrinkage >= kFarFromR && verdict.gain_over_least > kSurely && !verdict.better_n) {
    warnings.push_back({"inconsistent",
                        fmt::format("z scores and R seem to be from different samples: as if {:.0f} % of R were noise",
                                    100.0 * verdict.shrinkage),
                        "correlations from the sample that z scores come from"});
  }
}

}  // namespace poise
