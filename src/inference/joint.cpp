/// The joint distribution of a few variables.
#include "inference/joint.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/text.hpp"

namespace poise {

namespace {

constexpr std::size_t kMostEntries = 100'000;

/// The level of a label.
Value level_of(const VariableLayout& layout, std::int8_t label) {
  if (layout.labels.empty()) return static_cast<Value>(label);
  const auto found = std::find(layout.labels.begin(), layout.labels.end(), label);
  return static_cast<Value>(found - layout.labels.begin());
}

}  // namespace

JointQuery::JointQuery(std::shared_ptr<const Network> network, std::vector<Index> variables)
    : network_(std::move(network)), variables_(std::move(variables)), tied_(*network_) {
  double entries = 1.0;
  for (const Index i : variables_) entries *= network_->cardinalities[i];
  if (entries > static_cast<double>(kMostEntries)) {
    throw InputError(fmt::format("query: the joint table of {} has {} entries, expected at most {}",
                                 text::plural(variables_.size(), "variable"), text::count(entries), kMostEntries));
  }
  size_ = static_cast<std::size_t>(entries);
  for (const Index i : variables_) {
    if (network_->is_observed(i)) continue;
    free_.push_back(i);
    levels_ *= network_->cardinalities[i];
  }
  const Index joint = network_->num_variables();
  tied_.cardinalities.push_back(static_cast<Index>(levels_));
  if (!tied_.names.empty()) tied_.names.emplace_back("query");
  if (!tied_.level_names.empty()) tied_.level_names.emplace_back();
  if (!tied_.observed.empty()) tied_.observed.push_back(Network::kFree);
  tied_.rows = tied_.columns = 0;
  tied_.sides.clear();
  std::size_t stride = levels_;
  for (const Index i : free_) {
    const std::size_t levels = network_->cardinalities[i];
    stride /= levels;
    std::vector<double> table(levels * levels_, 0.0);
    for (std::size_t level = 0; level < levels_; ++level) table[(level / stride % levels) * levels_ + level] = 1.0;
    tied_.add_factor(std::vector<Index>{i, joint}, table);
  }
}

Joint JointQuery::empty() const {
  Joint joint{variables_, std::vector<double>(size_, 0.0), {}};
  return joint;
}

std::size_t JointQuery::entry_of(std::size_t level) const {
  std::size_t entry = 0;
  std::size_t rest = levels_;
  for (const Index i : variables_) {
    const std::size_t levels = network_->cardinalities[i];
    std::size_t own = 0;
    if (network_->is_observed(i)) {
      own = network_->observed[i];
    } else {
      rest /= levels;
      own = level / rest % levels;
    }
    entry = entry * levels + own;
  }
  return entry;
}

bool JointQuery::is_among(std::span<const Index> variables) const {
  const auto is_there = [&](Index i) { return std::binary_search(variables.begin(), variables.end(), i); };
  return variables.empty() || std::all_of(free_.begin(), free_.end(), is_there);
}

Joint JointQuery::take_from(Marginals& marginals) const {
  Joint joint = empty();
  const std::span<const double> found = marginals.of(joint_variable());
  for (std::size_t level = 0; level < levels_; ++level) {
    joint.probabilities[entry_of(level)] = levels_ == 1 ? 1.0 : found[level];
  }
  marginals.values.resize(marginals.start[joint_variable()]);
  marginals.start.pop_back();
  return joint;
}

Joint JointQuery::from_draws(const RunResult& result, std::span<const double> effective_draws,
                             std::span<const Index> variables) const {
  Joint joint = empty();
  joint.mcse.assign(size_, 0.0);
  const Trace& trace = result.trace;
  if (trace.x.empty()) {
    std::fill(joint.probabilities.begin(), joint.probabilities.end(), std::nan(""));
    std::fill(joint.mcse.begin(), joint.mcse.end(), std::nan(""));
    return joint;
  }
  std::vector<std::size_t> columns;  // of the free variables, in the draws
  const auto all = static_cast<double>(trace.chains * trace.all_draws());
  double effective = all;
  for (const Index i : free_) {
    const auto place = std::lower_bound(variables.begin(), variables.end(), i) - variables.begin();
    columns.push_back(variables.empty() ? i : static_cast<std::size_t>(place));
    effective = std::min(effective, effective_draws[columns.back()]);
  }
  const std::size_t draws = trace.chains * trace.draws;
  std::vector<std::uint32_t> levels(draws);
  for (std::size_t d = 0; d < draws; ++d) {
    std::size_t level = 0;
    for (std::size_t k = 0; k < free_.size(); ++k) {
      const std::int8_t label = trace.x.label(d, columns[k]);
      level = level * network_->cardinalities[free_[k]] + level_of(result.layout, label);
    }
    levels[d] = static_cast<std::uint32_t>(level);
  }
  std::vector<std::size_t> visits(levels_, 0);
  for (const std::uint32_t level : levels) ++visits[level];
  std::vector<double> indicator(draws);
  for (std::size_t level = 0; level < levels_; ++level) {
    const std::size_t entry = entry_of(level);
    const double mean = static_cast<double>(visits[level]) / static_cast<double>(draws);
    double error = 0.0;
    if (visits[level] > 0 && visits[level] < draws) {
      for (std::size_t d = 0; d < draws; ++d) indicator[d] = levels[d] == level ? 1.0 : 0.0;
      error = mcse_mean({indicator.data(), trace.chains, trace.draws});
      if (std::isnan(error)) error = std::sqrt(mean * (1.0 - mean) / effective);
    }
    joint.probabilities[entry] = mean;
    const bool certain = levels_ == 1;
    joint.mcse[entry] = certain ? 0.0 : with_few_visits(error, std::min(mean, 1.0 - mean) * effective, effective);
  }
  return joint;
}

}  // namespace poise
