/// Sorting, ranks and normal scores, bit for bit the order that R sees.
#include "diagnose/ranking.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <boost/math/distributions/normal.hpp>

namespace poise::diagnose_detail {

double NormalScores::operator()(std::size_t twice_rank) {
  using Policy = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
  const std::size_t mirrored = 2 * (size_ + 1) - twice_rank;
  double& score = lower_[std::min(twice_rank, mirrored)];
  if (score == unknown) {
    const double rank = 0.5 * static_cast<double>(std::min(twice_rank, mirrored));
    score = boost::math::quantile(boost::math::normal_distribution<double, Policy>(),
                                  (rank - 0.375) / (static_cast<double>(size_) + 0.25));
  }
  return twice_rank > mirrored ? -score : score;
}

Ranking::Ranking(ChainsView series)
    : chains_(series.chains), draws_(series.draws), normal_score_(series.chains * (series.draws / 2) * 2) {
  sorted_.reserve(series.size());
  for (std::size_t i = 0; i < series.size(); ++i) sorted_.push_back({series.data[i], i});
  std::sort(sorted_.begin(), sorted_.end(), [](const Draw& a, const Draw& b) { return a.value < b.value; });
}

double Ranking::quantile(double probability) const {
  const double index = static_cast<double>(sorted_.size() - 1) * probability;
  const double below = std::floor(index);
  const double low = sorted_[static_cast<std::size_t>(below)].value;
  const double high = sorted_[static_cast<std::size_t>(std::ceil(index))].value;
  if (index == below || low == high) return low;
  // R counts from 1, and its weight carries the rounding of that sum: indicators of x <= Q must not depend on it.
  const double weight = (1 + index) - (1 + below);
  return (1 - weight) * low + weight * high;
}

double Ranking::median() const {
  const std::size_t middle = sorted_.size() / 2;
  const double high = sorted_[middle].value;
  if (sorted_.size() % 2 == 1) return high;
  return static_cast<double>((static_cast<long double>(sorted_[middle - 1].value) + high) / 2);
}

ScoredChains Ranking::bulk() { return score(sorted_); }

ScoredChains Ranking::folded() {
  const double center = median();
  if (!std::isfinite(center)) return {};
  // The distance grows away from the center on both sides, so that merging the two sides sorts it.
  const auto split_point =
      std::partition_point(sorted_.begin(), sorted_.end(), [center](const Draw& draw) { return draw.value < center; });
  std::vector<Draw> ascending;
  ascending.reserve(sorted_.size());
  auto right = split_point;
  auto left = std::make_reverse_iterator(split_point);
  while (right != sorted_.end() || left != sorted_.rend()) {
    const bool take_right = left == sorted_.rend() || (right != sorted_.end() && std::abs(right->value - center) <=
                                                                                     std::abs(left->value - center));
    const Draw& next = take_right ? *right++ : *left++;
    ascending.push_back({std::abs(next.value - center), next.position});
  }
  return score(ascending);
}

ScoredChains Ranking::score(const std::vector<Draw>& ascending) {
  const std::size_t half = draws_ / 2;
  const std::size_t split_size = 2 * half * chains_;
  ScoredChains result;
  result.scores.resize(split_size);
  const std::size_t dropped = draws_ % 2 == 1 ? half : draws_;  // the middle draw of an odd chain
  std::size_t ranked = 0;
  for (std::size_t first = 0; first < ascending.size();) {
    std::size_t last = first;
    std::size_t tied = 0;
    for (; last < ascending.size() && ascending[last].value == ascending[first].value; ++last) {
      if (ascending[last].position % draws_ != dropped) ++tied;
    }
    const double score = tied == 0 ? 0 : normal_score_(2 * ranked + tied + 1);
    for (; first < last; ++first) {
      const std::size_t chain = ascending[first].position / draws_;
      const std::size_t draw = ascending[first].position % draws_;
      if (draw == dropped) continue;
      result.scores[2 * half * chain + (draw < half ? draw : draw - (draws_ - 2 * half))] = score;
    }
    ranked += tied;
  }
  result.chains.length = half;
  for (std::size_t start = 0; half > 0 && start < split_size; start += half) {
    result.chains.starts.push_back(result.scores.data() + start);
  }
  return result;
}

}  // namespace poise::diagnose_detail
