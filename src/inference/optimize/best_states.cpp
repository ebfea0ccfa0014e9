/// Inserts states into a short list in the order of log p.
#include "inference/optimize/best_states.hpp"

#include <algorithm>

namespace poise {

bool BestStates::add(double log_prob, std::span<const Value> state) {
  if (!takes(log_prob)) return false;
  const auto same = std::find_if(solutions_.begin(), solutions_.end(), [&](const Solution& solution) {
    return solution.objective == log_prob && std::equal(state.begin(), state.end(), solution.state.begin());
  });
  if (same != solutions_.end()) {
    ++same->count;
    return false;
  }
  const auto place = std::find_if(solutions_.begin(), solutions_.end(),
                                  [&](const Solution& solution) { return solution.objective < log_prob; });
  if (place == solutions_.end() && solutions_.size() == capacity_) return false;
  const bool rises = place == solutions_.begin();
  solutions_.insert(place, {log_prob, {state.begin(), state.end()}, 1});
  if (solutions_.size() > capacity_) solutions_.pop_back();
  return rises;
}

}  // namespace poise
