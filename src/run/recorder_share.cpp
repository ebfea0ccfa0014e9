/// Draws of ranks, put together.
#include "run/recorder.hpp"

#include <algorithm>

#include "store/journal.hpp"

namespace poise {

/// Rows of the block that belong to chains of other ranks come from there.
void Recorder::share(const Division& division, Collective::To to) {
  const ChainGroup all{0, chains()};
  const ChainGroup own = division.own();
  const std::size_t count = block_.count;
  // Of each chain the monitors, acceptance and the number of steps, and where acceptance stands: one message.
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
  if (!packs_) return division.gather(std::span(block_.x), all, count * layout_.variables, to);
  division.gather(std::span(block_.bits), all, count * bits_width(), to);
  if (to == Collective::To::root && !division.collective().is_root()) return;
  for (std::size_t row = 0; row < chains() * count; ++row) {
    const std::size_t chain = row / count;
    if (chain >= own.first && chain < own.first + own.count) continue;
    unpack_labels(block_.bits.data() + row * bits_width(), layout_.label(0), layout_.label(1),
                  std::span(block_.x).subspan(row * layout_.variables, layout_.variables));
  }
}

}  // namespace poise
