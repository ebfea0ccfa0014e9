/// Whether z scores and correlations belong together.
///
/// Where no variant has an effect, z ~ N(0, R), and with effects the z score of a variant still follows from those of
/// its neighbours where correlations are high. R of another sample, or an allele that is coded the other way round,
/// show in z scores that the others make impossible. With R_s = (1 - s) R + s I and Omega its inverse, z_i given the
/// others is normal with mean z_i - (Omega z)_i / Omega_ii and variance 1 / Omega_ii. s, how far R is from the truth,
/// is the most likely one; where alleles are flipped it is large, so that what is flipped is looked for at a smaller
/// one too.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "inference/select/selection_parts.hpp"
#include "models/selection/cholesky.hpp"

namespace poise {

namespace {

struct Given {
  std::vector<double> expected;  // z as of the others
  std::vector<double> error;
  double log_likelihood = 0.0;
};

std::optional<Given> look(const DenseCrossProducts& r, const std::vector<double>& z, double shrinkage, bool in_full) {
  const std::optional<LowerTriangle> l = cholesky(r, shrinkage, 0.0);
  if (!l) return std::nullopt;
  Given out;
  const std::vector<double> white = solve_lower(*l, z);
  for (Index i = 0; i < r.size(); ++i) out.log_likelihood -= std::log(l->row(i)[i]) + 0.5 * white[i] * white[i];
  if (!in_full) return out;
  const LowerTriangle inverse = inverse_of(*l);
  std::vector<double> precision(z.size(), 0.0);  // diagonal of Omega
  std::vector<double> weighed(z.size(), 0.0);    // Omega z
  for (Index k = 0; k < r.size(); ++k) {
    const double* const row = inverse.row(k);
    for (Index i = 0; i <= k; ++i) {
      precision[i] += row[i] * row[i];
      weighed[i] += row[i] * white[k];
    }
  }
  for (std::size_t i = 0; i < z.size(); ++i) {
    out.expected.push_back(z[i] - weighed[i] / precision[i]);
    out.error.push_back(1.0 / std::sqrt(precision[i]));
  }
  return out;
}

}  // namespace

void add_inconsistencies(const SelectionProblem& problem, std::vector<Warning>& warnings) {
  if (!problem.correlations || problem.correlations->size() > kMostFactored) return;
  const DenseCrossProducts& r = *problem.correlations;
  const std::vector<double>& z = problem.summary.z;
  constexpr double kLeast = 1e-3;  // below it a flip of one sign cannot be told from rounding
  double best = kLeast;
  double highest = kMinusInfinity;
  for (const double shrinkage : {kLeast, 0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 0.9}) {
    const std::optional<Given> given = look(r, z, shrinkage, false);
    if (!given || given->log_likelihood <= highest) continue;
    highest = given->log_likelihood;
    best = shrinkage;
  }
  const std::optional<Given> given = look(r, z, best, true);
  if (!given) return;
  // By chance one of p normal numbers is beyond sqrt(2 log p); far beyond that is none of them.
  const double beyond = std::sqrt(2.0 * std::log(std::max<double>(2.0, r.size()))) + 3.0;
  constexpr double kSure = 5.0;  // log likelihood that a flip gains, beyond log p
  std::vector<std::string> flipped;
  std::vector<std::pair<double, std::string>> odd;
  for (std::size_t i = 0; i < z.size(); ++i) {
    const double apart = (z[i] - given->expected[i]) / given->error[i];
    const double mirrored = (-z[i] - given->expected[i]) / given->error[i];
    const double gain = 0.5 * (apart * apart - mirrored * mirrored);
    if (gain > kSure + std::log(static_cast<double>(z.size())) && std::abs(z[i]) > 2.0) {
      flipped.push_back(
          fmt::format("{} (z {:.3g}, the others say {:.3g})", problem.names[i], z[i], given->expected[i]));
    } else if (std::abs(apart) > beyond) {
      odd.emplace_back(-std::abs(apart), fmt::format("{} (z {:.3g}, the others say {:.3g} +- {:.2g})", problem.names[i],
                                                     z[i], given->expected[i], given->error[i]));
    }
  }
  if (!flipped.empty()) {
    warnings.push_back(
        {"flipped",
         fmt::format("{} to have alleles in {} that are the other way round in R: {}",
                     flipped.size() == 1 ? "One variant seems" : fmt::format("{} variants seem", flipped.size()),
                     problem.summary.source, some_of(flipped)),
         "the sign of its z reversed, or without it"});
  }
  if (!odd.empty()) {
    std::sort(odd.begin(), odd.end());
    std::vector<std::string> names;
    for (const auto& [size, name] : odd) names.push_back(name);
    warnings.push_back({"inconsistent",
                        fmt::format("z scores and R do not belong together at {} of {} variants: {}", names.size(),
                                    z.size(), some_of(names)),
                        "correlations from the sample that z scores come from"});
  } else if (best >= 0.1 && flipped.empty()) {
    warnings.push_back(
        {"inconsistent",
         fmt::format("z scores and R seem to be from different samples: as if {:.0f} % of R were noise", 100.0 * best),
         "correlations from the sample that z scores come from"});
  }
}

}  // namespace poise
