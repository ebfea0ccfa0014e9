/// Inserts states into a short list in the order of their values.
#include "inference/optimize/solution_pool.hpp"

#include <algorithm>

namespace poise {

bool SolutionPool::add(std::int64_t value, std::span<const Spin> spins, std::uint64_t count) {
  if (!takes(value)) return false;
  const int sign = symmetric_ && !spins.empty() && spins.front() < 0 ? -1 : 1;
  const auto same = [&](const Entry& entry) {
    return entry.value == value && std::equal(spins.begin(), spins.end(), entry.spins.begin(),
                                              [sign](Spin a, Spin b) { return sign * a == b; });
  };
  const auto below =
      std::partition_point(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.value >= value; });
  const auto known = std::find_if(entries_.begin(), below, same);
  if (known != below) {
    known->count += count;
    return false;
  }
  if (entries_.size() == capacity_ && below == entries_.end()) return false;
  const bool rises = entries_.empty() || value > entries_.front().value;
  Entry entry{value, count, {spins.begin(), spins.end()}};
  for (Spin& spin : entry.spins) spin = static_cast<Spin>(sign * spin);
  entries_.insert(below, std::move(entry));
  if (entries_.size() > capacity_) entries_.pop_back();
  return rises;
}

}  // namespace poise
