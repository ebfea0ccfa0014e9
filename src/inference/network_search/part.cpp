/// Bucket elimination of a part: tables are read where they lie, rows are worked through as in junction trees.
#include "inference/network_search/part.hpp"

#include <algorithm>

namespace poise::network_search {

namespace {

/// A row that stays in the nearest cache with the others of its bucket.
constexpr std::size_t kLongestRow = 512;
constexpr std::size_t kMostHeld = 16384;

}  // namespace

Part::Part(const LogNetwork& network)
    : network_(network),
      order_(network),
      choice_(network.size()),
      taken_(network.num_factors(), 0),
      member_(network.size(), 0) {}

double Part::maximise(std::span<const Choice> part, const PartLimits& limits, std::span<Value> x, Rng& rng) {
  order_.find(part, limits, rng);
  if (order_.size() == 0) return order_.looks();
  for (const Choice& choice : part) choice_[choice.variable] = choice;
  const double effort = order_.looks() + collect(x);
  read_back(x, rng);
  return effort;
}

/// The tables that meet where a variable is eliminated: factors that no earlier one has taken, and messages.
void Part::gather(std::size_t place, std::span<const Value> x) {
  const Index v = order_.variable(place);
  const std::span<const Index> later = order_.later(place);
  member_[v] = 0;
  for (Index k = 0; k < later.size(); ++k) member_[later[k]] = k + 1;
  for (const LogNetwork::Link& link : network_.links(v)) {
    if (taken_[link.factor] == call_) continue;
    taken_[link.factor] = call_;
    const std::span<const Index> scope = network_.scope(link.factor);
    const std::span<const std::size_t> strides = network_.strides(link.factor);
    Entry entry{kFactor, network_.table(link.factor), digits_.size()};
    for (std::size_t k = 0; k < scope.size(); ++k) {
      const Index i = scope[k];
      if (order_.place_of(i) == PartOrder::kNone) {
        entry.table += strides[k] * x[i];
        continue;
      }
      const auto stride = static_cast<std::ptrdiff_t>(strides[k]);
      entry.table += stride * choice_[i].first;
      digits_.push_back({member_[i], static_cast<std::size_t>(stride * choice_[i].step)});
    }
    entries_.push_back(entry);
  }
  for (Index child = first_child_[place]; child != PartOrder::kNone; child = next_child_[child]) {
    entries_.push_back({child, nullptr, digits_.size()});
    std::size_t stride = 1;
    const std::span<const Index> message = order_.later(child);
    for (std::size_t k = message.size(); k-- > 0;) {
      digits_.push_back({member_[message[k]], stride});
      stride *= choice_[message[k]].levels;
    }
  }
}

double Part::collect(std::span<const Value> x) {
  const std::size_t count = order_.size();
  ++call_;
  entries_.clear();
  digits_.clear();
  entry_start_.assign(1, 0);
  first_child_.assign(count, PartOrder::kNone);
  next_child_.assign(count, PartOrder::kNone);
  message_start_.assign(1, 0);
  for (std::size_t place = 0; place < count; ++place) {
    std::size_t size = 1;
    for (const Index i : order_.later(place)) size *= choice_[i].levels;
    message_start_.push_back(message_start_.back() + size);
  }
  if (messages_.size() < message_start_.back()) messages_.resize(message_start_.back());
  double effort = 0.0;
  for (std::size_t place = 0; place < count; ++place) {
    const std::span<const Index> later = order_.later(place);
    gather(place, x);
    const std::size_t first = entry_start_.back();
    entry_start_.push_back(entries_.size());
    levels_.assign(1, choice_[order_.variable(place)].levels);
    for (const Index i : later) levels_.push_back(choice_[i].levels);
    std::size_t row = 1;
    std::size_t in_row = 0;
    for (; in_row < later.size(); ++in_row) {
      const std::size_t longer = row * levels_[levels_.size() - 1 - in_row];
      if (row > 1 && (longer > kLongestRow || longer * levels_[0] > kMostHeld)) break;
      row = longer;
    }
    sources_.clear();
    for (std::size_t e = first; e < entries_.size(); ++e) {
      const std::size_t end = e + 1 < entries_.size() ? entries_[e + 1].digits : digits_.size();
      const Entry& entry = entries_[e];
      sources_.push_back({entry.message == kFactor ? entry.table : messages_.data() + message_start_[entry.message],
                          std::span(digits_).subspan(entry.digits, end - entry.digits)});
    }
    double* const message = messages_.data() + message_start_[place];
    pass_.prepare({.levels = levels_, .summed = 1, .in_row = in_row}, sources_);
    for (bool more = pass_.open(sources_); more; more = pass_.next()) {
      pass_.collect(message + pass_.offset(), Reduction::max);
    }
    const auto size = static_cast<double>(message_start_[place + 1] - message_start_[place]);
    effort += size * levels_[0] * static_cast<double>(sources_.size());
    if (later.empty()) continue;
    const Index parent = order_.place_of(later.front());
    next_child_[place] = first_child_[parent];
    first_child_[parent] = static_cast<Index>(place);
  }
  return effort;
}

void Part::read_back(std::span<Value> x, Rng& rng) {
  for (std::size_t place = order_.size(); place-- > 0;) {
    const Choice& choice = choice_[order_.variable(place)];
    const std::span<const Index> later = order_.later(place);
    values_.assign(choice.levels, 0.0);
    levels_.assign(1, 0);
    for (const Index i : later) {
      levels_.push_back(static_cast<Index>((static_cast<std::ptrdiff_t>(x[i]) - choice_[i].first) / choice_[i].step));
    }
    for (std::size_t e = entry_start_[place]; e < entry_start_[place + 1]; ++e) {
      const Entry& entry = entries_[e];
      const std::size_t end = e + 1 < entries_.size() ? entries_[e + 1].digits : digits_.size();
      const double* from = entry.message == kFactor ? entry.table : messages_.data() + message_start_[entry.message];
      std::ptrdiff_t own = 0;
      for (std::size_t d = entry.digits; d < end; ++d) {
        const auto stride = static_cast<std::ptrdiff_t>(digits_[d].stride);
        if (digits_[d].member == 0) own = stride;
        from += stride * levels_[digits_[d].member];
      }
      for (Index k = 0; k < choice.levels; ++k) values_[k] += from[own * k];
    }
    const double best = *std::max_element(values_.begin(), values_.end());
    Index chosen = 0;
    double ties = 0.0;
    for (Index k = 0; k < choice.levels; ++k) {
      if (values_[k] < best - network_.rounding()) continue;
      ties += 1.0;
      if (ties == 1.0 || rng.uniform() * ties < 1.0) chosen = k;
    }
    x[choice.variable] = static_cast<Value>(choice.first + choice.step * chosen);
  }
}

}  // namespace poise::network_search
