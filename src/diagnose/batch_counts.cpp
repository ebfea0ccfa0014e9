/// Counting labels, and what the counts of batches tell.
#include "diagnose/batch_counts.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <poise/extend/base/hot.hpp>
#include "diagnose/effective_size.hpp"

namespace poise::diagnose_detail {
namespace {

/// Of a half-chain; of each of many fewer are enough.
constexpr std::size_t kBatches = 16;
constexpr std::size_t kBatchesOfMany = 8;
constexpr std::size_t kManyChains = 64;
/// Half-chains whose batches tell how these are correlated.
constexpr std::size_t kCorrelated = 128;
/// Batches of which one adds a degree of freedom to an estimated variance of means: they are correlated.
constexpr double kBatchesPerDegree = 3.0;
/// Rows that are counted in bytes.
constexpr std::size_t kMostRows = 255;
/// Values of labels that are known before all draws are looked at.
constexpr std::size_t kFirstRows = 16;

/// Means of the batches of all half-chains about the means of these.
class BatchDeviations {
 public:
  BatchDeviations(std::span<const std::uint32_t> ones, std::size_t chains, const BatchCuts& cuts)
      : halves_(std::min(2 * chains, kCorrelated)), batches_(cuts.batches()), values_(2 * chains * batches_) {
    double sum = 0.0, squares = 0.0, deviations = 0.0, correlated = 0.0;
    for (std::size_t h = 0; h < 2 * chains; ++h) {
      const auto of_half = ones.subspan(h / 2 * cuts.slots() + cuts.first_slot(h % 2), batches_);
      double mean = 0.0;
      for (std::size_t b = 0; b < batches_; ++b) {
        values_[h * batches_ + b] = of_half[b] / static_cast<double>(cuts.length());
        mean += values_[h * batches_ + b] / static_cast<double>(batches_);
      }
      for (std::size_t b = 0; b < batches_; ++b) {
        double& value = values_[h * batches_ + b];
        value -= mean;
        deviations += value * value;
        if (h < halves_) correlated += value * value;
      }
      sum += mean;
      squares += mean * mean;
    }
    const auto m = static_cast<double>(2 * chains);
    if (correlated > 0.0) scale_ = deviations * static_cast<double>(halves_) / (m * correlated);
    variance_of_means_ = std::max(0.0, (squares - sum * sum / m) / (m - 1));
  }

  [[nodiscard]] double variance_of_means() const { return variance_of_means_; }
  /// The autocovariance at a lag, as `effective_size` wants it.
  double operator()(std::size_t lag) {
    while (lags_.size() <= lag) {
      const std::size_t t = lags_.size();
      double sum = 0.0;
      for (std::size_t h = 0; h < halves_; ++h) {
        const double* x = values_.data() + h * batches_;
        for (std::size_t b = 0; b + t < batches_; ++b) sum += x[b] * x[b + t];
      }
      lags_.push_back(scale_ * sum / static_cast<double>(halves_ * batches_));
    }
    return lags_[lag];
  }

 private:
  std::size_t halves_;
  std::size_t batches_;
  std::vector<double> values_;
  std::vector<double> lags_;
  double variance_of_means_ = 0.0;
  double scale_ = 1.0;  // from the variance of these half-chains to that of all
};

/// Labels that are seen in these rows of these variables.
std::array<bool, 256> labels_in(DrawsView draws, std::size_t first, std::size_t variables, std::size_t rows) {
  std::array<bool, 256> seen{};
  for (std::size_t chain = 0; chain < draws.chains; ++chain) {
    for (std::size_t row = 0; row < std::min(rows, draws.draws); ++row) {
      const std::int8_t* x = draws.data + (chain * draws.draws + row) * draws.variables + first;
      for (std::size_t i = 0; i < variables; ++i) seen[static_cast<std::size_t>(x[i] + 128)] = true;
    }
  }
  return seen;
}

/// What was counted of one label.
struct LabelCounts {
  std::int8_t label = 0;
  std::vector<std::uint32_t> ones;         // [chain][slot][variable]
  std::vector<std::uint64_t> totals;       // [variable]
  std::vector<std::uint64_t> transitions;  // [variable]
  std::vector<std::uint8_t> before;        // whether variables had the label one draw ago
};

/// Counts a label in up to `kMostRows` rows of `stride` values: how many variables have it, and how many changed.
struct ByteCounts {
  std::vector<std::uint8_t> ones, changes;

  void add(const std::int8_t* x, std::size_t rows, std::size_t stride, std::size_t variables, std::int8_t label,
           std::uint8_t* before) {
    std::fill(ones.begin(), ones.end(), std::uint8_t{0});
    std::fill(changes.begin(), changes.end(), std::uint8_t{0});
    std::uint8_t* const one = ones.data();
    std::uint8_t* const change = changes.data();
    hot<InstructionSet::avx2>([=] {
      for (std::size_t row = 0; row < rows; ++row) {
        const std::int8_t* const here = x + row * stride;
        for (std::size_t i = 0; i < variables; ++i) {
          const auto is = static_cast<std::uint8_t>(here[i] == label ? 1 : 0);
          one[i] = static_cast<std::uint8_t>(one[i] + is);
          change[i] = static_cast<std::uint8_t>(change[i] + (is ^ before[i]));
          before[i] = is;
        }
      }
    });
  }
};

std::vector<LabelCounts> count_labels(DrawsView draws, const BatchCuts& cuts, std::size_t first, std::size_t variables,
                                      const std::array<bool, 256>& labels) {
  std::vector<LabelCounts> counts;
  for (int label = -128; label < 128; ++label) {
    if (!labels[static_cast<std::size_t>(label + 128)]) continue;
    LabelCounts& one = counts.emplace_back();
    one.label = static_cast<std::int8_t>(label);
    one.ones.assign(variables * draws.chains * cuts.slots(), 0);
    one.totals.assign(variables, 0);
    one.transitions.assign(variables, 0);
    one.before.assign(variables, 0);
  }
  ByteCounts bytes{std::vector<std::uint8_t>(variables), std::vector<std::uint8_t>(variables)};
  for (std::size_t chain = 0; chain < draws.chains; ++chain) {
    const std::int8_t* const of_chain = draws.data + chain * draws.draws * draws.variables + first;
    for (LabelCounts& one : counts) {
      for (std::size_t i = 0; i < variables; ++i) one.before[i] = of_chain[i] == one.label ? 1 : 0;
    }
    for (std::size_t slot = 0; slot < cuts.slots(); ++slot) {
      for (std::size_t row = cuts.begin(slot); row < cuts.end(slot); row += kMostRows) {
        const std::size_t rows = std::min(kMostRows, cuts.end(slot) - row);
        for (LabelCounts& one : counts) {
          bytes.add(of_chain + row * draws.variables, rows, draws.variables, variables, one.label, one.before.data());
          std::uint32_t* const ones = one.ones.data() + (chain * cuts.slots() + slot) * variables;
          for (std::size_t i = 0; i < variables; ++i) {
            ones[i] += bytes.ones[i];
            one.totals[i] += bytes.ones[i];
            one.transitions[i] += bytes.changes[i];
          }
        }
      }
    }
  }
  return counts;
}

}  // namespace

BatchCuts::BatchCuts(std::size_t draws, std::size_t chains)
    : half_(draws / 2),
      batches_(std::clamp<std::size_t>(half_, 1, chains < kManyChains ? kBatches : kBatchesOfMany)),
      length_(std::max<std::size_t>(half_ / batches_, 1)) {
  for (const std::size_t from : {std::size_t{0}, draws - half_}) {
    for (std::size_t b = 0; b <= batches_; ++b) ends_.push_back(std::min(from + b * length_, draws));
    if (from == 0) ends_.push_back(half_);
  }
  ends_.push_back(draws);
}

VariableRow estimated_row(std::span<const std::uint32_t> ones, std::uint64_t transitions, std::size_t chains,
                          const BatchCuts& cuts) {
  VariableRow row{};
  const std::size_t draws = cuts.end(cuts.slots() - 1), m = 2 * chains;
  const auto n = static_cast<double>(cuts.half());
  const auto total = static_cast<double>(chains * draws);
  double all = 0.0, within = 0.0, sum = 0.0, squares = 0.0;
  for (const std::uint32_t count : ones) all += count;
  for (std::size_t h = 0; h < m; ++h) {
    double k = 0.0;
    for (std::size_t b = 0; b <= cuts.batches(); ++b) k += ones[h / 2 * cuts.slots() + cuts.first_slot(h % 2) + b];
    within += k * (n - k) / (n * (n - 1)) / static_cast<double>(m);
    sum += k;
    squares += k * k;
  }
  const auto halves = static_cast<double>(m);
  const double between = std::max(0.0, (halves * squares - sum * sum) / (halves * (halves - 1) * n * n));
  row.mean = all / total;
  row.transitions = transitions;
  row.status = status_of(chains, draws, transitions);
  row.r_hat = split_r_hat(cuts.half(), between, within);
  row.ess = row.mcse = undefined;
  row.is_estimate = true;
  if (cuts.batches() < 3 || cuts.half() < 2) return row;
  const double variance = all * (total - all) / (total * (total - 1));
  const double most = total * std::log10(total);
  const auto batches = static_cast<double>(cuts.batches());
  BatchDeviations lags(ones, chains, cuts);
  const double spread = lags(0) + lags.variance_of_means();
  const double worth = spread > 0.0 ? effective_size(m, cuts.batches(), lags.variance_of_means(), lags) : 1.0;
  row.ess = spread > 0.0 ? std::min(most, variance * worth / spread) : most;
  row.mcse = std::sqrt(variance / row.ess);
  if (!(row.r_hat > r_hat_limit)) return row;
  // As for lags of draws, in units of batches; their number bounds what the estimate is worth.
  const double within_batches = lags(0) * batches / (batches - 1);
  const double stationary =
      within_batches > 0.0
          ? within * effective_if_stationary(m, cuts.batches(), lags.variance_of_means(), lags) / within_batches
          : halves;
  row.chance = chance_of_r_hat(m, cuts.half(), row.r_hat, std::min(most, stationary),
                               halves * (batches - 1) / kBatchesPerDegree);
  return row;
}

VariableRow estimated_row(const BitChains& series, const BatchCuts& cuts) {
  std::vector<std::uint32_t> ones(series.chains() * cuts.slots());
  for (std::size_t chain = 0; chain < series.chains(); ++chain) {
    series.count(chain, cuts.ends(), std::span(ones).subspan(chain * cuts.slots(), cuts.slots()));
  }
  return estimated_row(ones, series.transitions(), series.chains(), cuts);
}

void label_row(VariableRow& row, std::int8_t low, std::int8_t high) {
  const double width = static_cast<double>(high) - low;
  row.mean = low + width * row.mean;
  row.mcse *= width;
}

std::vector<VariableRow> estimated_rows(DrawsView draws, const BatchCuts& cuts, std::size_t first,
                                        std::size_t variables) {
  const std::uint64_t total = draws.chains * draws.draws;
  std::vector<LabelCounts> counts =
      count_labels(draws, cuts, first, variables, labels_in(draws, first, variables, kFirstRows));
  const auto counted = [&](std::size_t i) {
    std::uint64_t sum = 0;
    for (const LabelCounts& one : counts) sum += one.totals[i];
    return sum;
  };
  for (std::size_t i = 0; i < variables; ++i) {
    if (counted(i) == total) continue;
    counts = count_labels(draws, cuts, first, variables, labels_in(draws, first, variables, draws.draws));
    break;
  }
  std::vector<VariableRow> rows;
  std::vector<std::uint32_t> ones(draws.chains * cuts.slots());  // of one series
  for (std::size_t i = 0; i < variables; ++i) {
    std::vector<const LabelCounts*> seen;
    for (const LabelCounts& one : counts) {
      if (one.totals[i] > 0) seen.push_back(&one);
    }
    const auto variable = static_cast<Index>(first + i);
    if (seen.size() == 1) {
      rows.push_back(constant_row(variable, seen[0]->label));
      continue;
    }
    const bool two = seen.size() == 2;
    for (std::size_t k = two ? 1 : 0; k < seen.size(); ++k) {
      for (std::size_t slot = 0; slot < ones.size(); ++slot) ones[slot] = seen[k]->ones[slot * variables + i];
      VariableRow row = estimated_row(ones, seen[k]->transitions[i], draws.chains, cuts);
      row.variable = variable;
      if (two) {
        label_row(row, seen[0]->label, seen[1]->label);
      } else {
        row.level = seen[k]->label;
      }
      rows.push_back(row);
    }
  }
  return rows;
}

VariableRow constant_row(Index variable, std::int8_t label) {
  return {static_cast<double>(label), undefined, undefined, undefined, 0, variable, {}, SeriesStatus::constant};
}

}  // namespace poise::diagnose_detail
