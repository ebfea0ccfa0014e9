/// Columns of numbers, chain by chain, and those of other ranks.
#include "run/recorder.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include <poise/diagnose.hpp>
#include <poise/extend/engines/engine.hpp>
#include "store/label_bits.hpp"

namespace poise {

/// Rows of the block that belong to chains of other ranks come from there.
void Recorder::share(const Division& division, Collective::To to) {
  const ChainGroup all{0, chains()};
  const ChainGroup own = division.own();
  const std::size_t count = block_.count;
  // One message has the monitors, acceptance and number of steps of each chain, and where acceptance stands.
  const std::size_t width = count * (names_.size() + 2) + 1;
  std::vector<double> numbers(chains() * width);
  for (std::size_t c = own.first; c < own.first + own.count; ++c) {
    auto next = numbers.begin() + static_cast<std::ptrdiff_t>(c * width);
    const auto add = [&](const auto& rows) {
      next = std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(c * count), count, next);
    };
    for (const auto& monitor : block_.monitors) add(monitor);
    add(block_.acceptance_rate);
    add(block_.n_steps);
    *next = accepted_[c];
  }
  division.gather(std::span(numbers), all, width);
  for (std::size_t c = 0; c < chains(); ++c) {
    auto next = numbers.begin() + static_cast<std::ptrdiff_t>(c * width);
    const auto take = [&](auto& rows) {
      std::copy_n(next, count, rows.begin() + static_cast<std::ptrdiff_t>(c * count));
      next += static_cast<std::ptrdiff_t>(count);
    };
    for (auto& monitor : block_.monitors) take(monitor);
    take(block_.acceptance_rate);
    take(block_.n_steps);
    accepted_[c] = *next;
  }
  if (keep_ != Keep::draws) return;
  if (states_stay_ && !(to == Collective::To::all && holds_states_)) return;
  division.gather(block_.x.bytes(), all, count * block_.x.row_bytes(), to);
}

namespace {

/// Values of log p, all chains together, that the effective sample size of a run under way is estimated from: enough
/// for two digits, and a few milliseconds' work.
constexpr std::size_t kRecentValues = std::size_t{1} << 16;

/// Of the states that observers look at together.
constexpr std::size_t kObservedBytes = std::size_t{16} << 20;

/// More would wait for memory.
constexpr unsigned kMostThreads = 16;

template <class Values>
void append(Values& to, Values& from) {
  to.insert(to.end(), from.begin(), from.end());
  Values().swap(from);
}

/// Makes rows of `before` entries rows of their first `after`.
template <class Values>
void shorten_rows(Values& values, std::size_t rows, std::size_t before, std::size_t after) {
  for (std::size_t row = 1; row < rows; ++row) {
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(row * before), after,
                values.begin() + static_cast<std::ptrdiff_t>(row * after));
  }
  values.resize(rows * after);
}

template <class Values>
void keep_every_second(Values& values) {
  for (std::size_t k = 0; 2 * k < values.size(); ++k) values[k] = values[2 * k];
  values.resize((values.size() + 1) / 2);
}

}  // namespace

double bytes_per_draw(const Model& model, Keep keep) {
  // log p, the distance, the model's own statistics, acceptance and the number of steps: eight bytes each.
  const double numbers = 8.0 * (4.0 + static_cast<double>(model.statistics.size()));
  return numbers + (keep == Keep::draws ? static_cast<double>(States(model.layout).row_bytes()) : 0.0);
}

Recorder::Recorder(const Model& model, const RunOptions& options, const Holding& holding)
    : layout_(model.layout),
      keep_(options.keep),
      hands_on_(holding.hands_on),
      has_states_(holding.has_states),
      states_stay_(holding.states_stay),
      observes_bits_(holding.gives_bits && States(model.layout).has_bits()),
      memory_(holding.memory),
      statistics_of_model_(model.statistics.size()),
      log_constant_(model.log_constant),
      bytes_numbers_(bytes_per_draw(model, Keep::monitors) + 8.0 * static_cast<double>(holding.observers.size())),
      holds_states_(options.keep == Keep::draws),
      observers_(holding.observers),
      observed_(model.layout),
      threads_(std::clamp(holding.threads, 1U, kMostThreads)) {
  const std::size_t chains = options.chains;
  names_ = {"log_prob"};
  names_.insert(names_.end(), model.statistics.begin(), model.statistics.end());
  for (const Observer& observer : observers_) {
    if (observer.name == "hamming" || std::find(names_.begin(), names_.end(), observer.name) != names_.end()) {
      throw InputError(fmt::format("observe: '{}' is the name of a monitor that there is already", observer.name));
    }
    names_.push_back(observer.name);
  }
  names_.emplace_back("hamming");
  const auto objective = std::find(names_.begin() + 1, names_.end(), model.objective);
  if (objective != names_.end()) {
    objective_ = static_cast<std::size_t>(objective - names_.begin());
    maximise_ = model.maximise;
  }
  series_.assign(names_.size(), std::vector<std::vector<double>>(chains));
  acceptance_.resize(chains);
  steps_.resize(chains);
  x_.assign(chains, States(layout_));
  block_.x = States(layout_);
  accepted_.resize(chains);
  accepted_sum_.resize(chains);
  best_.resize(chains);
  recent_.resize(chains);
  filled_.resize(chains);
  make_room(chains);
}

void Recorder::begin(const Engine& engine) { observe_all(engine, {0, chains()}, {.accepted = accepted_}); }

void Recorder::expect(std::size_t draws) {
  const double numbers = static_cast<double>(draws) * static_cast<double>(chains()) * bytes_numbers_;
  const double states =
      static_cast<double>(draws) * static_cast<double>(chains()) * static_cast<double>(block_.x.row_bytes());
  if (holds_states_ && numbers + states > memory_) forget_states();
  if (numbers > memory_ || stride_ > 1) return;
  for (std::size_t c = 0; c < chains(); ++c) {
    for (auto& monitor : series_) monitor[c].reserve(draws);
    acceptance_[c].reserve(draws);
    steps_[c].reserve(draws);
    if (holds_states_ && has_states_) x_[c].reserve(draws);
  }
}

void Recorder::begin_block(std::size_t draws) {
  const std::size_t rows = chains() * draws;
  block_.count = draws;
  block_.monitors.resize(names_.size());
  for (auto& monitor : block_.monitors) monitor.resize(rows);
  block_.acceptance_rate.resize(rows);
  block_.n_steps.resize(rows);
  if (keep_ != Keep::draws) block_.x.clear();
  if (records_states()) block_states().resize(rows);
  std::fill(filled_.begin(), filled_.end(), 0);
}

void Recorder::make_room(std::size_t rows) {
  if (log_prob_.size() >= rows) return;
  log_prob_.resize(rows);
  statistics_.resize(rows * statistics_of_model_);
  distance_.resize(rows);
  accepted_now_.resize(rows);
  if (!records_states()) return;
  if (observes_bits_) {
    bits_.resize(rows * block_.x.row_bytes());
  } else {
    levels_.resize(rows * layout_.variables);
  }
}

Observables Recorder::room_for(std::size_t first, std::size_t rows) {
  const auto slice = [&](auto& values, std::size_t width) {
    return std::span(values).subspan(first * width, rows * width);
  };
  Observables out;
  out.log_prob = slice(log_prob_, 1);
  out.statistics = slice(statistics_, statistics_of_model_);
  out.distance = slice(distance_, 1);
  out.accepted = slice(accepted_now_, 1);
  if (!records_states()) return out;
  if (observes_bits_) {
    out.bits = slice(bits_, block_.x.row_bytes());
  } else {
    out.levels = slice(levels_, layout_.variables);
  }
  return out;
}

void Recorder::record(const Engine& engine, ChainGroup group, std::uint64_t steps) {
  const Observables out = room_for(group.first, group.count);
  engine.observe(group, out);
  fill(group, group.first, {&out, 1}, steps);
  const std::size_t chain = find_best(group, group.first, {&out, 1});
  if (chain == chains() || records_states()) return;
  std::vector<Value>& levels = best_[group.first].levels;
  levels.resize(layout_.variables);
  engine.observe({chain, 1}, {.levels = levels});
}

void Recorder::advance_and_record(Engine& engine, ChainGroup group, std::uint64_t steps, std::size_t draws) {
  std::size_t at_once = std::min(draws, engine.traits().draws_at_once);
  if (records_states()) {  // states take more room than all else
    constexpr std::size_t kBytes = std::size_t{64} << 20;
    at_once = std::min(at_once, kBytes / std::max<std::size_t>(1, group.count * layout_.variables));
  }
  if (at_once <= 1) {
    for (std::size_t draw = 0; draw < draws; ++draw) {
      engine.advance(group, steps);
      record(engine, group, steps);
    }
    return;
  }
  // Chains of which many draws are made at once are in one group, so no other thread uses the buffers.
  if (group.count != own_chains(engine).count) throw std::logic_error("many draws are made of all chains at once");
  make_room(at_once * group.count);
  std::vector<Observables> wanted;
  for (std::size_t k = 0; k < at_once; ++k) wanted.push_back(room_for(k * group.count, group.count));
  for (std::size_t done = 0; done < draws; done += at_once) {
    const auto some = std::span<const Observables>(wanted).first(std::min(at_once, draws - done));
    engine.advance_and_observe(group, steps, some);
    for_each_chain(group, some.size(), [&](ChainGroup tile) {
      fill(tile, group.first, some, steps);
      (void)find_best(tile, group.first, some);
    });
  }
}

/// On several threads, where there is much to do, `draws` numbers of each chain or a few times as many.
void Recorder::for_each_chain(ChainGroup group, std::size_t draws, const std::function<void(ChainGroup)>& work) {
  constexpr std::size_t kTile = 64;                    // chains whose numbers are in the cache together
  constexpr std::size_t kMuch = std::size_t{1} << 17;  // numbers; others are dealt with before a thread wakes up
  const std::size_t tiles = (group.count + kTile - 1) / kTile;
  if (group.count * draws < kMuch || tiles == 1 || threads_ == 1) return work(group);
  if (!pool_) pool_ = std::make_unique<ThreadPool>(threads_);
  pool_->for_each(tiles, [&](std::size_t tile) {
    const std::size_t first = tile * kTile;
    work({group.first + first, std::min(kTile, group.count - first)});
  });
}

/// The next rows of the block, of each chain of a group. What was observed begins with chain `first`.
void Recorder::fill(ChainGroup group, std::size_t first, std::span<const Observables> draws, std::uint64_t steps) {
  const std::size_t own = statistics_of_model_;
  for (std::size_t c = group.first; c < group.first + group.count; ++c) {
    const std::size_t k = c - first;
    std::size_t at = c * block_.count + filled_[c];
    filled_[c] += draws.size();
    for (const Observables& draw : draws) {
      block_.monitors[0][at] = draw.log_prob[k] + log_constant_;
      for (std::size_t m = 0; m < own; ++m) block_.monitors[m + 1][at] = draw.statistics[k * own + m];
      block_.monitors.back()[at] = static_cast<double>(draw.distance[k]);
      block_.acceptance_rate[at] = (draw.accepted[k] - accepted_[c]) / static_cast<double>(steps);
      accepted_[c] = draw.accepted[k];
      block_.n_steps[at] = static_cast<std::int64_t>(steps);
      if (records_states()) fill_state(draw, k, block_states().row(at));
      ++at;
    }
  }
}

void Recorder::fill_state(const Observables& draw, std::size_t k, std::span<std::uint8_t> to) const {
  if (!draw.bits.empty()) {
    const auto bits = draw.bits.subspan(k * to.size(), to.size());
    std::copy(bits.begin(), bits.end(), to.begin());
    return;
  }
  const std::span<const Value> levels = draw.levels.subspan(k * layout_.variables, layout_.variables);
  if (block_.x.has_bits()) {
    pack_labels({reinterpret_cast<const std::int8_t*>(levels.data()), levels.size()}, 0, 1, to.data());
  } else {
    write_labels(levels, reinterpret_cast<std::int8_t*>(to.data()));
  }
}

void Recorder::write_labels(std::span<const Value> levels, std::int8_t* to) const {
  if (layout_.labels.empty()) {
    std::copy(levels.begin(), levels.end(), to);
  } else if (layout_.labels.size() == 2) {
    const int zero = layout_.labels[0];
    const int span = layout_.labels[1] - layout_.labels[0];
    for (std::size_t i = 0; i < levels.size(); ++i) to[i] = static_cast<std::int8_t>(zero + span * levels[i]);
  } else {
    for (std::size_t i = 0; i < levels.size(); ++i) to[i] = layout_.labels[levels[i]];
  }
}

const DrawBatch& Recorder::end_block(const Division* division, Collective::To to) {
  // Chains that were broken off inside a round are not equally long.
  if (division != nullptr) division->gather(std::span(filled_), {0, chains()}, 1);
  const std::size_t before = block_.count;
  const std::size_t after = *std::min_element(filled_.begin(), filled_.end());
  if (after < before) {
    for (auto& monitor : block_.monitors) shorten_rows(monitor, chains(), before, after);
    shorten_rows(block_.acceptance_rate, chains(), before, after);
    shorten_rows(block_.n_steps, chains(), before, after);
    if (records_states()) {
      States& states = block_states();
      for (std::size_t c = 1; c < chains() && after > 0; ++c) {
        const auto rows = states.bytes().subspan(c * before * states.row_bytes(), after * states.row_bytes());
        std::copy(rows.begin(), rows.end(), states.row(c * after).data());
      }
      states.resize(chains() * after);
    }
    block_.count = after;
  }
  observe_block(division != nullptr ? division->own() : ChainGroup{0, chains()});
  if (division != nullptr) share(*division, to);
  take(block_);
  std::fill(filled_.begin(), filled_.end(), 0);
  return block_;
}

void Recorder::observe_block(ChainGroup own) {
  const std::size_t rows = own.count * block_.count;
  if (rows == 0 || observers_.empty()) return;
  const std::size_t first = own.first * block_.count;
  const std::size_t width = layout_.variables;
  const std::size_t most = std::max<std::size_t>(1, kObservedBytes / std::max<std::size_t>(1, width));
  for (std::size_t done = 0; done < rows; done += most) {
    const std::size_t some = std::min(most, rows - done);
    labels_.resize(some * width);
    for (std::size_t row = 0; row < some; ++row) {
      block_states().unpack(first + done + row, std::span(labels_).subspan(row * width, width));
    }
    for (std::size_t k = 0; k < observers_.size(); ++k) {
      const auto values = std::span(block_.monitors[1 + statistics_of_model_ + k]).subspan(first + done, some);
      observers_[k].values(labels_, some, values);
    }
  }
}

void Recorder::take(const DrawBatch& block) {
  if (block.count == 0) return;
  if (block.x.empty() && has_states_) holds_states_ = false;
  for_each_chain({0, chains()}, block.count, [&](ChainGroup group) {
    add_sums(block, group);
    add_series(block, group);
  });
  draws_ += block.count;
  stay_within_memory();
}

void Recorder::add_series(const DrawBatch& block, ChainGroup group) {
  const std::size_t first = (stride_ - draws_ % stride_) % stride_;
  const auto add = [&](const auto& from, std::size_t chain, auto& to) {
    const auto row = from.begin() + static_cast<std::ptrdiff_t>(chain * block.count);
    if (stride_ == 1) {
      to.insert(to.end(), row, row + static_cast<std::ptrdiff_t>(block.count));
      return;
    }
    for (std::size_t draw = first; draw < block.count; draw += stride_) {
      to.push_back(row[static_cast<std::ptrdiff_t>(draw)]);
    }
  };
  for (std::size_t c = group.first; c < group.first + group.count; ++c) {
    for (std::size_t k = 0; k < names_.size(); ++k) add(block.monitors[k], c, series_[k][c]);
    add(block.acceptance_rate, c, acceptance_[c]);
    add(block.n_steps, c, steps_[c]);
    if (!holds_states_ || !has_states_) continue;
    x_[c].append(block.x, c * block.count, block.count);
  }
}

void Recorder::add_sums(const DrawBatch& block, ChainGroup group) {
  const std::size_t most_recent = std::max<std::size_t>(kRecentValues / chains(), 64);
  for (std::size_t c = group.first; c < group.first + group.count; ++c) {
    const auto row = [&](const std::vector<double>& values) {
      return std::span(values).subspan(c * block.count, block.count);
    };
    for (const double rate : row(block.acceptance_rate)) accepted_sum_[c] += rate;
    const auto log_prob = row(block.monitors[0]);
    recent_[c].insert(recent_[c].end(), log_prob.begin(), log_prob.end());
    if (recent_[c].size() > 2 * most_recent) recent_[c].erase(recent_[c].begin(), recent_[c].end() - most_recent);
  }
}

double Recorder::held_bytes() const {
  const auto held = static_cast<double>(series_[0][0].size() * chains());
  return held * (bytes_numbers_ + (holds_states_ ? static_cast<double>(block_.x.row_bytes()) : 0.0));
}

void Recorder::stay_within_memory() {
  if (holds_states_ && held_bytes() > memory_) forget_states();
  while (held_bytes() > memory_ && series_[0][0].size() > 2) drop_every_second();
}

void Recorder::forget_states() {
  holds_states_ = false;
  if (!hands_on_) keep_ = Keep::monitors;
  for (States& states : x_) states.clear();
}

void Recorder::drop_every_second() {
  for (auto& monitor : series_) {
    for (auto& values : monitor) keep_every_second(values);
  }
  for (auto& values : acceptance_) keep_every_second(values);
  for (auto& values : steps_) keep_every_second(values);
  stride_ *= 2;
}

double Recorder::mean_acceptance() const {
  double sum = 0.0;
  for (const double chain : accepted_sum_) sum += chain;
  return draws_ > 0 ? sum / static_cast<double>(draws_ * chains()) : 0.0;
}

double Recorder::ess_log_prob() const {
  std::vector<double> values;
  for (const auto& chain : recent_) values.insert(values.end(), chain.begin(), chain.end());
  const std::size_t length = recent_[0].size();
  if (length == 0) return ess_mean({values.data(), chains(), 0});
  return ess_mean({values.data(), chains(), length}) * static_cast<double>(draws_) / static_cast<double>(length);
}

Trace Recorder::take() {
  Trace trace;
  trace.chains = chains();
  trace.draws = series_[0][0].size();
  trace.stride = stride_;
  trace.dropped = draws_ - trace.draws;
  trace.monitor_names = names_;
  trace.monitors.resize(names_.size());
  trace.x = std::move(x_[0]);
  trace.x.reserve(trace.x.rows() * chains());
  for (std::size_t c = 0; c < chains(); ++c) {
    for (std::size_t k = 0; k < names_.size(); ++k) append(trace.monitors[k], series_[k][c]);
    append(trace.acceptance_rate, acceptance_[c]);
    append(trace.n_steps, steps_[c]);
    if (c > 0) trace.x.append(x_[c], 0, x_[c].rows());
    x_[c] = States(layout_);
  }
  draws_ = 0;
  stride_ = 1;
  std::fill(accepted_sum_.begin(), accepted_sum_.end(), 0.0);
  for (auto& values : recent_) values.clear();
  best_.assign(best_.size(), {});
  return trace;
}

}  // namespace poise
