/// What chains of two-valued variables count on the device: acceptance, and steps at which variables are up.
///
/// A chain adds to a variable's count when it changes: the number of the step where it goes down, less that where it
/// goes up, counted from the beginning. So a step costs one addition at most; what is up at the end is made up for by
/// whoever asks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <poise/types.hpp>

#include "engines/cuda/common/call.hpp"
#include "engines/cuda/flips/flip_chains.hpp"

namespace poise::cuda {

struct CountsView {
  double* accepted;
  std::int64_t* up;  ///< [chain][variable]; null where nothing is counted
  std::uint64_t counted_from;
};

/// Those of different chains may be handled by different threads at the same time, while the device does not add to
/// them. They come to the host by many chains: to ask for a million one by one would take longer than to count them.
class ChainCounts {
 public:
  ChainCounts(std::size_t chains, std::size_t variables) : chains_(chains), variables_(variables), accepted_(chains) {
    accepted_.clear();
  }

  /// For the device to add to: what the host has is old then.
  [[nodiscard]] CountsView for_device() {
    const std::lock_guard lock(mutex_);
    forget();
    return {accepted_.data(), up_.data(), counted_from_};
  }

  /// Acceptance probabilities of each chain, summed.
  [[nodiscard]] std::vector<double> accepted() const {
    std::vector<double> out(chains_);
    accepted_.download(out);
    return out;
  }
  [[nodiscard]] double accepted(std::size_t chain) const {
    const std::lock_guard lock(mutex_);
    if (accepted_here_.empty()) accepted_here_ = accepted();
    return accepted_here_[chain];
  }
  void set_accepted(std::size_t chain, double accepted) {
    const std::lock_guard lock(mutex_);
    if (!accepted_here_.empty()) accepted_here_[chain] = accepted;
    accepted_.upload(std::span<const double>(&accepted, 1), chain);
  }

  /// Counts from a step on. What is up then goes up at step 0: nothing to add.
  void start(std::uint64_t step) {
    const std::lock_guard lock(mutex_);
    forget();
    if (up_.empty()) up_ = Array<std::int64_t>(chains_ * variables_);
    up_.clear();
    counted_from_ = step;
  }
  [[nodiscard]] bool is_counting() const { return !up_.empty(); }

  /// Steps of a chain at which each variable was up, if it has these levels at a step.
  [[nodiscard]] std::vector<std::int64_t> up(std::size_t chain, std::span<const Value> levels,
                                             std::uint64_t step) const {
    const std::lock_guard lock(mutex_);
    if (!is_here(chain)) fetch(chain);
    const auto begin = up_here_.begin() + static_cast<std::ptrdiff_t>((chain - first_here_) * variables_);
    std::vector<std::int64_t> counts(begin, begin + static_cast<std::ptrdiff_t>(variables_));
    const auto since = static_cast<std::int64_t>(step - counted_from_);
    for (std::size_t i = 0; i < variables_; ++i) counts[i] += levels[i] != 0 ? since : 0;
    return counts;
  }
  void set_up(std::size_t chain, std::span<const std::int64_t> counts, std::span<const Value> levels,
              std::uint64_t step) {
    const std::lock_guard lock(mutex_);
    std::vector<std::int64_t> stored(counts.begin(), counts.end());
    const auto since = static_cast<std::int64_t>(step - counted_from_);
    for (std::size_t i = 0; i < variables_; ++i) stored[i] -= levels[i] != 0 ? since : 0;
    up_.upload(stored, chain * variables_);
    if (!is_here(chain)) return;
    std::copy(stored.begin(), stored.end(),
              up_here_.begin() + static_cast<std::ptrdiff_t>((chain - first_here_) * variables_));
  }

 private:
  void forget() {
    accepted_here_.clear();
    up_here_.clear();
  }
  [[nodiscard]] bool is_here(std::size_t chain) const {
    return chain >= first_here_ && (chain - first_here_ + 1) * variables_ <= up_here_.size();
  }
  /// Counts of a chain and of those after it.
  void fetch(std::size_t chain) const {
    constexpr std::size_t kTogether = std::size_t{8} << 20;  // counts
    const std::size_t some = std::clamp<std::size_t>(kTogether / variables_, 1, chains_ - chain);
    std::vector<std::int64_t> counts(some * variables_);
    check(cudaMemcpy(counts.data(), up_.data() + chain * variables_, counts.size() * sizeof(std::int64_t),
                     cudaMemcpyDeviceToHost),
          "counts were copied from it");
    up_here_ = std::move(counts);
    first_here_ = chain;
  }

  std::size_t chains_;
  std::size_t variables_;
  std::uint64_t counted_from_ = 0;
  Array<double> accepted_;
  Array<std::int64_t> up_;
  mutable std::mutex mutex_;
  mutable std::vector<double> accepted_here_;  // empty where they are old
  mutable std::size_t first_here_ = 0;         // chain
  mutable std::vector<std::int64_t> up_here_;
};

}  // namespace poise::cuda

namespace poise {

template <class Array, class Launch>
CudaCountedChains::Sums CudaCountedChains::find_sums(const Array& summed, Launch&& launch) const {
  std::int64_t* const to = summed.data();
  launch(cuda::FlipSums{to, to + chains_, to + 2 * chains_, to + 3 * chains_});
  cuda::check_launch("states were summed");
  std::vector<std::int64_t> all(4 * chains_);
  summed.download(all);
  const auto part = [&](std::size_t number) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(number * chains_);
    return std::vector<std::int64_t>(begin, begin + static_cast<std::ptrdiff_t>(chains_));
  };
  return {part(0), part(1), part(2), part(3)};
}

}  // namespace poise
