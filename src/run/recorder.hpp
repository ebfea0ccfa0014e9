/// Keeps the draws of a run in memory and hands them on block by block.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <poise/diagnose/diagnose.hpp>
#include <poise/run/ensemble.hpp>
#include <poise/run/run.hpp>

namespace poise {

/// Draws are recorded block by block; a block is a range of draws of all chains.
class Recorder {
 public:
  Recorder(const Model& model, const RunOptions& options) : layout_(model.layout), keep_(options.keep) {
    names_ = {"log_prob"};
    names_.insert(names_.end(), model.statistics.begin(), model.statistics.end());
    names_.emplace_back("hamming");
    series_.assign(names_.size(), std::vector<std::vector<double>>(options.chains));
    acceptance_.resize(options.chains);
    steps_.resize(options.chains);
    x_.resize(options.chains);
    if (keep_ == Keep::draws) levels_.assign(options.chains, std::vector<Value>(layout_.variables));
  }

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] std::size_t draws() const { return series_[0][0].size(); }

  /// Records the present state of a chain; chains may do so at the same time.
  void record(const Ensemble& ensemble, std::size_t c, double acceptance, std::uint64_t steps) {
    std::vector<double> statistics(names_.size() - 2);
    ensemble.statistics(c, statistics);
    series_[0][c].push_back(ensemble.log_prob(c));
    for (std::size_t k = 0; k < statistics.size(); ++k) series_[k + 1][c].push_back(statistics[k]);
    series_.back()[c].push_back(static_cast<double>(ensemble.distance(c)));
    acceptance_[c].push_back(acceptance);
    steps_[c].push_back(static_cast<std::int64_t>(steps));
    if (keep_ == Keep::draws) {
      std::vector<Value>& levels = levels_[c];
      ensemble.levels(c, levels);
      const std::size_t start = x_[c].size();
      x_[c].resize(start + levels.size());
      if (layout_.labels.empty()) {
        std::copy(levels.begin(), levels.end(), x_[c].begin() + static_cast<std::ptrdiff_t>(start));
      } else if (layout_.labels.size() == 2) {
        const int zero = layout_.labels[0], span = layout_.labels[1] - layout_.labels[0];
        for (std::size_t i = 0; i < levels.size(); ++i)
          x_[c][start + i] = static_cast<std::int8_t>(zero + span * levels[i]);
      } else {
        for (std::size_t i = 0; i < levels.size(); ++i) x_[c][start + i] = layout_.labels[levels[i]];
      }
    }
  }

  /// Drops what some chains have recorded beyond the draws that all have: chains stay equally long.
  void level_off() {
    std::size_t draws = std::numeric_limits<std::size_t>::max();
    for (const auto& values : series_[0]) draws = std::min(draws, values.size());
    for (auto& monitor : series_) {
      for (auto& values : monitor) values.resize(draws);
    }
    for (auto& values : acceptance_) values.resize(draws);
    for (auto& values : steps_) values.resize(draws);
    if (keep_ == Keep::draws) {
      for (auto& values : x_) values.resize(draws * layout_.variables);
    }
  }

  /// The draws since `first`, as a block for a sink.
  [[nodiscard]] DrawBlock block_since(std::size_t first) const {
    DrawBlock block;
    block.count = draws() - first;
    block.monitors.resize(names_.size());
    const auto tail = [](const auto& values, std::size_t from, auto& out) {
      out.insert(out.end(), values.begin() + static_cast<std::ptrdiff_t>(from), values.end());
    };
    for (std::size_t c = 0; c < x_.size(); ++c) {
      for (std::size_t k = 0; k < names_.size(); ++k) tail(series_[k][c], first, block.monitors[k]);
      tail(acceptance_[c], first, block.acceptance_rate);
      tail(steps_[c], first, block.n_steps);
      if (keep_ == Keep::draws) tail(x_[c], first * layout_.variables, block.x);
    }
    return block;
  }

  [[nodiscard]] double mean_acceptance() const {
    double sum = 0.0;
    for (const auto& chain : acceptance_) {
      for (const double rate : chain) sum += rate;
    }
    return draws() > 0 ? sum / static_cast<double>(draws() * acceptance_.size()) : 0.0;
  }

  [[nodiscard]] double ess_log_prob() const {
    std::vector<double> values;
    for (const auto& chain : series_[0]) values.insert(values.end(), chain.begin(), chain.end());
    return ess_mean({values.data(), series_[0].size(), draws()});
  }

  /// Hands everything over as a trace; the recorder is empty afterwards.
  [[nodiscard]] Trace take() {
    Trace trace;
    trace.chains = x_.size();
    trace.draws = draws();
    trace.monitor_names = names_;
    trace.monitors.resize(names_.size());
    for (std::size_t c = 0; c < x_.size(); ++c) {
      for (std::size_t k = 0; k < names_.size(); ++k) append(trace.monitors[k], series_[k][c]);
      append(trace.acceptance_rate, acceptance_[c]);
      append(trace.n_steps, steps_[c]);
      append(trace.x, x_[c]);
    }
    return trace;
  }

 private:
  template <class Values>
  static void append(Values& to, Values& from) {
    to.insert(to.end(), from.begin(), from.end());
    Values().swap(from);
  }

  const VariableLayout& layout_;
  Keep keep_;
  std::vector<std::string> names_;
  std::vector<std::vector<std::vector<double>>> series_;  // [monitor][chain][draw]
  std::vector<std::vector<double>> acceptance_;           // [chain][draw]
  std::vector<std::vector<std::int64_t>> steps_;
  std::vector<std::vector<std::int8_t>> x_;  // [chain][draw * variables + variable]
  std::vector<std::vector<Value>> levels_;   // a buffer per chain
};

}  // namespace poise
