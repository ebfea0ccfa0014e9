/// Draws of ranks, put together.
#include "recorder.hpp"

#include <algorithm>

namespace poise {

void Recorder::share(const Division& division, Collective::To to) {
  const std::size_t chains = x_.size();
  const ChainGroup all{0, chains};
  const ChainGroup own = division.own();
  const auto is_own = [&](std::size_t c) { return c >= own.first && c < own.first + own.count; };
  // Chains that were broken off inside a round are not equally long.
  std::vector<std::uint64_t> draws(chains);
  for (std::size_t c = own.first; c < own.first + own.count; ++c) draws[c] = series_[0][c].size();
  division.gather(std::span(draws), all, 1);
  const std::size_t common = *std::min_element(draws.begin(), draws.end());
  const std::size_t fresh = common - shared_;

  // Of each chain what is new of the monitors, of acceptance and of the number of steps, and where acceptance stands.
  const std::size_t width = fresh * (names_.size() + 2) + 1;
  std::vector<double> numbers(chains * width);
  for (std::size_t c = own.first; c < own.first + own.count; ++c) {
    auto to_fill = numbers.begin() + static_cast<std::ptrdiff_t>(c * width);
    const auto add = [&](const auto& values) {
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(shared_);
      to_fill = std::copy(first, first + static_cast<std::ptrdiff_t>(fresh), to_fill);
    };
    for (const auto& monitor : series_) add(monitor[c]);
    add(acceptance_[c]);
    add(steps_[c]);
    *to_fill = accepted_[c];
  }
  division.gather(std::span(numbers), all, width);
  for (std::size_t c = 0; c < chains; ++c) {
    auto next = numbers.begin() + static_cast<std::ptrdiff_t>(c * width);
    const auto take = [&](auto& values) {
      const auto last = next + static_cast<std::ptrdiff_t>(fresh);
      values.resize(shared_);
      values.insert(values.end(), next, last);
      next = last;
    };
    for (auto& monitor : series_) take(monitor[c]);
    take(acceptance_[c]);
    take(steps_[c]);
    accepted_[c] = *next;
  }

  if (keep_ == Keep::draws) {
    const std::size_t bytes = fresh * layout_.variables;
    const std::size_t held = (shared_ - forgotten_) * layout_.variables;
    std::vector<std::int8_t> states(chains * bytes);
    for (std::size_t c = own.first; c < own.first + own.count; ++c) {
      const auto first = x_[c].begin() + static_cast<std::ptrdiff_t>(held);
      std::copy(first, first + static_cast<std::ptrdiff_t>(bytes),
                states.begin() + static_cast<std::ptrdiff_t>(c * bytes));
      x_[c].resize(held + bytes);
    }
    division.gather(std::span(states), all, bytes, to);
    const bool holds = to == Collective::To::all || division.collective().is_root();
    for (std::size_t c = 0; c < chains && holds; ++c) {
      if (is_own(c)) continue;
      const auto first = states.begin() + static_cast<std::ptrdiff_t>(c * bytes);
      x_[c].insert(x_[c].end(), first, first + static_cast<std::ptrdiff_t>(bytes));
    }
    if (!holds) forget_states();
  }
  shared_ = common;
}

}  // namespace poise
