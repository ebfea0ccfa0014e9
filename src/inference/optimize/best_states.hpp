/// The best states of a search, each once, as the user sees them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <poise/optimize.hpp>

namespace poise {

class BestStates {
 public:
  explicit BestStates(std::size_t capacity) : capacity_(capacity) {}

  /// Gives whether the best of all has risen.
  bool add(double log_prob, std::span<const Value> state);
  [[nodiscard]] bool takes(double log_prob) const {
    return solutions_.size() < capacity_ || log_prob >= solutions_.back().objective;
  }
  [[nodiscard]] std::vector<Solution> take() { return std::move(solutions_); }

 private:
  std::size_t capacity_;
  std::vector<Solution> solutions_;
};

}  // namespace poise
