/// The best states that a search has found, each once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "inference/optimize/spin_problem.hpp"

namespace poise {

/// Changes a state to the one that stands for all that are the same to the user, and gives the value of that.
using StandardForm = std::function<std::int64_t(std::int64_t value, std::span<Spin> spins)>;

class SolutionPool {
 public:
  struct Entry {
    std::int64_t value = 0;
    std::uint64_t count = 0;  ///< how often the search arrived there
    std::vector<Spin> spins;

    template <class A>
    void archive(A& archive) {
      archive(value, count, spins);
    }
  };

  /// Keeps so many states of different forms. Without a form no two states are the same.
  explicit SolutionPool(std::size_t capacity, StandardForm form = {}) : capacity_(capacity), form_(std::move(form)) {}

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  /// Best first; among equals the one that came first.
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] const Entry& best() const { return entries_.front(); }
  /// Whether a state of this value would be kept or counted.
  [[nodiscard]] bool takes(std::int64_t value) const {
    return entries_.size() < capacity_ || value >= entries_.back().value;
  }
  /// Gives whether the best value has risen.
  bool add(std::int64_t value, std::span<const Spin> spins, std::uint64_t count = 1);

  template <class A>
  void archive(A& archive) {
    archive(entries_);
  }

 private:
  std::size_t capacity_;
  StandardForm form_;
  std::vector<Entry> entries_;
};

}  // namespace poise
