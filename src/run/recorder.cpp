/// Columns of numbers, chain by chain.
#include "recorder.hpp"

#include <algorithm>
#include <limits>

#include <poise/diagnose/diagnose.hpp>

namespace poise {

namespace {

template <class Values>
void append(Values& to, Values& from) {
  to.insert(to.end(), from.begin(), from.end());
  Values().swap(from);
}

}  // namespace

double bytes_per_draw(const Model& model, Keep keep) {
  // log p, the distance, the model's own statistics, acceptance and the number of steps: eight bytes each.
  const double numbers = 8.0 * (4.0 + static_cast<double>(model.statistics.size()));
  return numbers + (keep == Keep::draws ? static_cast<double>(model.layout.variables) : 0.0);
}

Recorder::Recorder(const Model& model, const RunOptions& options) : layout_(model.layout), keep_(options.keep) {
  const std::size_t chains = options.chains;
  names_ = {"log_prob"};
  names_.insert(names_.end(), model.statistics.begin(), model.statistics.end());
  names_.emplace_back("hamming");
  series_.assign(names_.size(), std::vector<std::vector<double>>(chains));
  acceptance_.resize(chains);
  steps_.resize(chains);
  x_.resize(chains);
  accepted_.resize(chains);
  log_prob_.resize(chains);
  statistics_.resize(chains * model.statistics.size());
  distance_.resize(chains);
  accepted_now_.resize(chains);
  if (keep_ == Keep::draws) levels_.resize(chains * layout_.variables);
}

void Recorder::begin(const Engine& engine) { observe_all(engine, {0, accepted_.size()}, {.accepted = accepted_}); }

void Recorder::reserve(std::size_t draws) {
  for (std::size_t c = 0; c < x_.size(); ++c) {
    const std::size_t total = series_[0][c].size() + draws;
    for (auto& monitor : series_) monitor[c].reserve(total);
    acceptance_[c].reserve(total);
    steps_[c].reserve(total);
    if (keep_ == Keep::draws) x_[c].reserve(total * layout_.variables);
  }
}

void Recorder::record(const Engine& engine, ChainGroup group, std::uint64_t steps) {
  const std::size_t own = names_.size() - 2;
  const auto part = [&](auto& values, std::size_t width) {
    return std::span(values).subspan(group.first * width, group.count * width);
  };
  Observables out;
  out.log_prob = part(log_prob_, 1);
  out.statistics = part(statistics_, own);
  out.distance = part(distance_, 1);
  out.accepted = part(accepted_now_, 1);
  if (keep_ == Keep::draws) out.levels = part(levels_, layout_.variables);
  engine.observe(group, out);
  for (std::size_t c = group.first; c < group.first + group.count; ++c) {
    series_[0][c].push_back(log_prob_[c]);
    for (std::size_t k = 0; k < own; ++k) series_[k + 1][c].push_back(statistics_[c * own + k]);
    series_.back()[c].push_back(static_cast<double>(distance_[c]));
    acceptance_[c].push_back((accepted_now_[c] - accepted_[c]) / static_cast<double>(steps));
    accepted_[c] = accepted_now_[c];
    steps_[c].push_back(static_cast<std::int64_t>(steps));
    if (keep_ == Keep::draws) append_states(c);
  }
}

void Recorder::append_states(std::size_t chain) {
  const std::span<const Value> levels(levels_.data() + chain * layout_.variables, layout_.variables);
  std::vector<std::int8_t>& x = x_[chain];
  const std::size_t start = x.size();
  x.resize(start + levels.size());
  if (layout_.labels.empty()) {
    std::copy(levels.begin(), levels.end(), x.begin() + static_cast<std::ptrdiff_t>(start));
  } else if (layout_.labels.size() == 2) {
    const int zero = layout_.labels[0];
    const int span = layout_.labels[1] - layout_.labels[0];
    for (std::size_t i = 0; i < levels.size(); ++i) x[start + i] = static_cast<std::int8_t>(zero + span * levels[i]);
  } else {
    for (std::size_t i = 0; i < levels.size(); ++i) x[start + i] = layout_.labels[levels[i]];
  }
}

void Recorder::level_off() {
  std::size_t draws = std::numeric_limits<std::size_t>::max();
  for (const auto& values : series_[0]) draws = std::min(draws, values.size());
  for (auto& monitor : series_) {
    for (auto& values : monitor) values.resize(draws);
  }
  for (auto& values : acceptance_) values.resize(draws);
  for (auto& values : steps_) values.resize(draws);
  if (keep_ == Keep::draws) {
    for (auto& values : x_) values.resize((draws - forgotten_) * layout_.variables);
  }
}

DrawBlock Recorder::block_since(std::size_t first) const {
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
    if (keep_ == Keep::draws) tail(x_[c], (first - forgotten_) * layout_.variables, block.x);
  }
  return block;
}

void Recorder::take(const DrawBlock& block, bool states) {
  const auto add = [&](const auto& from, std::size_t chain, std::size_t width, auto& to) {
    const auto first = from.begin() + static_cast<std::ptrdiff_t>(chain * block.count * width);
    to.insert(to.end(), first, first + static_cast<std::ptrdiff_t>(block.count * width));
  };
  for (std::size_t c = 0; c < x_.size(); ++c) {
    for (std::size_t k = 0; k < names_.size(); ++k) add(block.monitors[k], c, 1, series_[k][c]);
    add(block.acceptance_rate, c, 1, acceptance_[c]);
    add(block.n_steps, c, 1, steps_[c]);
    if (keep_ == Keep::draws && states) add(block.x, c, layout_.variables, x_[c]);
  }
  if (!states) forgotten_ = draws();
  shared_ = draws();
}

void Recorder::forget_states() {
  forgotten_ = draws();
  for (auto& values : x_) values.clear();
}

double Recorder::mean_acceptance() const {
  double sum = 0.0;
  for (const auto& chain : acceptance_) {
    for (const double rate : chain) sum += rate;
  }
  return draws() > 0 ? sum / static_cast<double>(draws() * acceptance_.size()) : 0.0;
}

double Recorder::ess_log_prob() const {
  std::vector<double> values;
  for (const auto& chain : series_[0]) values.insert(values.end(), chain.begin(), chain.end());
  return ess_mean({values.data(), series_[0].size(), draws()});
}

Trace Recorder::take() {
  Trace trace;
  trace.chains = x_.size();
  trace.draws = draws();
  trace.monitor_names = names_;
  trace.monitors.resize(names_.size());
  const bool states = holds_states();
  for (std::size_t c = 0; c < x_.size(); ++c) {
    for (std::size_t k = 0; k < names_.size(); ++k) append(trace.monitors[k], series_[k][c]);
    append(trace.acceptance_rate, acceptance_[c]);
    append(trace.n_steps, steps_[c]);
    if (states) append(trace.x, x_[c]);
  }
  forgotten_ = 0;
  shared_ = 0;
  return trace;
}

}  // namespace poise
