/// Inserts states into a short list in the order of their values.
#include "inference/optimize/solution_pool.hpp"

#include <algorithm>

namespace poise {

bool SolutionPool::add(std::int64_t value, std::span<const Spin> spins, std::uint64_t count) {
  if (!takes(value)) return false;
  Entry entry{value, count, {spins.begin(), spins.end()}};
  if (form_) entry.value = form_(value, entry.spins);
  const auto below = std::partition_point(entries_.begin(), entries_.end(),
                                          [&](const Entry& other) { return other.value >= entry.value; });
  const auto known = std::find_if(entries_.begin(), below, [&](const Entry& other) {
    return other.value == entry.value && other.spins == entry.spins;
  });
  if (known != below) {
    known->count += count;
    return false;
  }
  if (entries_.size() == capacity_ && below == entries_.end()) return false;
  const bool rises = entries_.empty() || entry.value > entries_.front().value;
  entries_.insert(below, std::move(entry));
  if (entries_.size() > capacity_) entries_.pop_back();
  return rises;
}

}  // namespace poise
