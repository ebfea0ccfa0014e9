/// Means of many series over batches of draws, whose spread tells the error of the overall mean.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace poise {

/// Between 16 and 32 batches, however long the run: when there are 32, neighbours are joined and batches become twice
/// as long. A batch should be far longer than the memory of the chain; that is so once a run is long enough to be used.
class BatchMeans {
 public:
  static constexpr std::size_t kMost = 32;

  /// Whether draw number `draw` (from 1) ends a batch.
  [[nodiscard]] bool ends_at(std::uint64_t draw) const { return draw % draws_per_batch_ == 0; }

  /// `sums` of `count` values up to draw number `draw`. Draws that do not end a batch are passed over.
  void add(std::uint64_t draw, std::span<const double> sums, std::uint64_t count) {
    if (!ends_at(draw)) return;
    Batch batch{std::vector<double>(sums.begin(), sums.end()), count};
    batches_.push_back(std::move(batch));
    if (batches_.size() < kMost) return;
    for (std::size_t k = 0; k < kMost / 2; ++k) std::swap(batches_[k], batches_[2 * k + 1]);
    batches_.resize(kMost / 2);
    draws_per_batch_ *= 2;
  }

  [[nodiscard]] std::size_t size() const { return batches_.size(); }

  template <class A>
  void archive(A& archive) {
    archive(batches_, draws_per_batch_);
  }

  /// Mean of series `k` over batch `b`.
  [[nodiscard]] double mean(std::size_t b, std::size_t k) const {
    const double before = b == 0 ? 0.0 : batches_[b - 1].sums[k];
    const std::uint64_t earlier = b == 0 ? 0 : batches_[b - 1].count;
    return (batches_[b].sums[k] - before) / static_cast<double>(batches_[b].count - earlier);
  }

 private:
  struct Batch {
    std::vector<double> sums;  // from the start of the run to the end of the batch
    std::uint64_t count;

    template <class A>
    void archive(A& archive) {
      archive(sums, count);
    }
  };
  std::vector<Batch> batches_;
  std::uint64_t draws_per_batch_ = 1;
};

/// Mean of series `k` over the later half of a chain's batches, and its standard error by their spread alone: small
/// where the chain has settled, wherever that is. NaN with fewer than four batches there.
struct SettledMean {
  double mean;
  double error;
};
[[nodiscard]] inline SettledMean settled_mean(const BatchMeans& chain, std::size_t k) {
  const std::size_t first = chain.size() / 2;
  const auto count = static_cast<double>(chain.size() - first);
  if (count < 4) return {std::nan(""), std::nan("")};
  double mean = 0.0;
  for (std::size_t b = first; b < chain.size(); ++b) mean += chain.mean(b, k) / count;
  double square = 0.0;
  for (std::size_t b = first; b < chain.size(); ++b) square += (chain.mean(b, k) - mean) * (chain.mean(b, k) - mean);
  return {mean, std::sqrt(square / (count - 1.0) / count)};
}

/// Standard error of the mean of series `k` over all chains: from the spread of all batches, or from that of the chains
/// where it is larger, for chains that disagree are worth one batch each. NaN with fewer than two of either.
[[nodiscard]] inline double standard_error(std::span<const BatchMeans> chains, std::size_t k) {
  const auto error = [](const std::vector<double>& means) {
    if (means.size() < 2) return std::nan("");
    double mean = 0.0;
    for (const double m : means) mean += m / static_cast<double>(means.size());
    double square = 0.0;
    for (const double m : means) square += (m - mean) * (m - mean);
    return std::sqrt(square / static_cast<double>(means.size() - 1) / static_cast<double>(means.size()));
  };
  std::vector<double> all;
  std::vector<double> of_chains;
  for (const BatchMeans& chain : chains) {
    double sum = 0.0;
    for (std::size_t b = 0; b < chain.size(); ++b) {
      all.push_back(chain.mean(b, k));
      sum += all.back();
    }
    if (chain.size() > 0) of_chains.push_back(sum / static_cast<double>(chain.size()));
  }
  const double by_batches = error(all);
  const double by_chains = error(of_chains);
  return std::isnan(by_chains) || by_batches > by_chains ? by_batches : by_chains;
}

}  // namespace poise
