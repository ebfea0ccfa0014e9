/// Standard errors of averages over chains, from batch means and their autocorrelations.
#include <algorithm>
#include <cmath>
#include <vector>

#include <poise/diagnose.hpp>
#include "diagnose/effective_size.hpp"

namespace poise {

double standard_error(std::span<const BatchMeans> chains, std::size_t first, std::size_t count) {
  const std::size_t m = chains.size();
  std::size_t n = m == 0 ? 0 : chains.front().size();
  for (const BatchMeans& chain : chains) n = std::min(n, chain.size());
  if (m * n < 2) return diagnose_detail::undefined;
  std::vector<double> deviations;  // [chain][batch], from the mean of the chain
  std::vector<double> means;
  for (const BatchMeans& chain : chains) {
    double sum = 0.0;
    for (std::size_t b = 0; b < n; ++b) {
      double& of_batch = deviations.emplace_back(0.0);
      for (std::size_t k = first; k < first + count; ++k) of_batch += chain.mean(b, k);
      sum += of_batch;
    }
    means.push_back(sum / static_cast<double>(n));
    for (std::size_t b = 0; b < n; ++b) deviations[deviations.size() - n + b] -= means.back();
  }
  const auto lag = [&](std::size_t t) {
    double sum = 0.0;
    for (std::size_t c = 0; c < m; ++c) {
      for (std::size_t b = 0; b + t < n; ++b) sum += deviations[c * n + b] * deviations[c * n + b + t];
    }
    return sum / static_cast<double>(m * n);
  };
  double center = 0.0;
  for (const double mean : means) center += mean / static_cast<double>(m);
  double between = 0.0;
  for (const double mean : means) between += (mean - center) * (mean - center);
  if (m > 1) between /= static_cast<double>(m - 1);
  const double variance = lag(0) + between;
  if (!(variance > 0.0)) return variance;
  // Chains that disagree are worth one batch each, and so are those with too few batches to see their correlation.
  const auto fewest = static_cast<double>(m);
  if (n < diagnose_detail::fewest_draws && m > 1) return std::sqrt(between / fewest);
  const double effective = n < 3 ? fewest : diagnose_detail::effective_size(m, n, between, lag);
  return std::sqrt(variance / std::max(fewest, effective));
}

}  // namespace poise
