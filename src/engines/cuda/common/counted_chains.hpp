/// Chains of two-valued variables on a GPU, and what is counted of them there: acceptance, and steps at which variables
/// are up.
///
/// A chain adds to a variable's count when it changes: the number of the step where it goes down, less that where it
/// goes up, counted from the beginning. So a step costs one addition at most; what is up at the end is made up for by
/// callers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include <poise/types.hpp>
#include "engines/cuda/common/call.hpp"

namespace poise {

/// Counts of different chains may be handled by different threads at the same time, while the device does not add to
/// them. They come to the host by many chains: to ask for a million one by one would take longer than to count them.
class CudaCountedChains {
 public:
  CudaCountedChains(const CudaCountedChains&) = delete;
  CudaCountedChains& operator=(const CudaCountedChains&) = delete;

  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  void set_steps(std::uint64_t steps) { steps_ = steps; }

  // One chain; other threads may set and get other chains at the same time, while none advances.
  virtual void set_levels(std::size_t chain, std::span<const Value> levels) = 0;
  virtual void get_levels(std::size_t chain, std::span<Value> levels) const = 0;

  /// Acceptance probabilities of each chain, summed.
  [[nodiscard]] std::vector<double> accepted() const { return accepted_.download(); }
  [[nodiscard]] double accepted(std::size_t chain) const {
    const std::lock_guard lock(mutex_);
    if (accepted_here_.empty()) accepted_here_ = accepted();
    return accepted_here_[chain];
  }
  void set_accepted(std::size_t chain, double accepted) {
    const std::lock_guard lock(mutex_);
    if (!accepted_here_.empty()) accepted_here_[chain] = accepted;
    accepted_.upload({&accepted, 1}, chain);
  }

  /// Counts steps at which variables are up, from here on. What is up now goes up at step 0: nothing to add.
  void start_counting() {
    const std::lock_guard lock(mutex_);
    forget();
    if (up_.empty()) up_ = cuda::Array<std::int64_t>(chains_ * variables_);
    up_.clear();
    counted_from_ = steps_;
  }
  [[nodiscard]] bool counts() const { return !up_.empty(); }
  /// Steps of a chain at which each variable was up since then, and what they are to be from here on; none where
  /// nothing is counted.
  [[nodiscard]] std::vector<std::int64_t> up_counts(std::size_t chain) const {
    if (!counts()) return {};
    const std::vector<std::int64_t> since = since_up(chain);
    const std::lock_guard lock(mutex_);
    if (!is_here(chain)) fetch(chain);
    std::vector<std::int64_t> counts(here(chain), here(chain) + variables_);
    for (Index i = 0; i < variables_; ++i) counts[i] += since[i];
    return counts;
  }
  void set_up_counts(std::size_t chain, std::span<const std::int64_t> counts) {
    std::vector<std::int64_t> stored = since_up(chain);
    const std::lock_guard lock(mutex_);
    for (Index i = 0; i < variables_; ++i) stored[i] = counts[i] - stored[i];
    up_.upload(stored, chain * variables_);
    if (is_here(chain)) std::copy(stored.begin(), stored.end(), here(chain));
  }

 protected:
  CudaCountedChains(std::size_t chains, Index variables)
      : chains_(chains), variables_(variables), accepted_(cuda::zeros<double>(chains)) {}
  virtual ~CudaCountedChains() = default;

  struct Counts {
    double* accepted;
    std::int64_t* up;  ///< [chain][variable]; null where nothing is counted
    std::uint64_t counted_from;
  };
  /// For the device to add to: what the host has is old then.
  [[nodiscard]] Counts counts_on_device() const {
    const std::lock_guard lock(mutex_);
    forget();
    return {accepted_.data(), up_.data(), counted_from_};
  }

  std::size_t chains_;
  Index variables_;
  std::uint64_t steps_ = 0;

 private:
  /// What counts of a chain lack: of each variable that is up, the steps since counting began.
  [[nodiscard]] std::vector<std::int64_t> since_up(std::size_t chain) const {
    std::vector<Value> levels(variables_);
    get_levels(chain, levels);
    std::vector<std::int64_t> since(variables_, 0);
    for (Index i = 0; i < variables_; ++i) {
      if (levels[i] != 0) since[i] = static_cast<std::int64_t>(steps_ - counted_from_);
    }
    return since;
  }

  void forget() const {
    accepted_here_.clear();
    up_here_.clear();
  }
  [[nodiscard]] bool is_here(std::size_t chain) const {
    return chain >= first_here_ && (chain - first_here_ + 1) * variables_ <= up_here_.size();
  }
  [[nodiscard]] std::int64_t* here(std::size_t chain) const {
    return up_here_.data() + (chain - first_here_) * variables_;
  }
  /// Counts of a chain and of those after it.
  void fetch(std::size_t chain) const {
    constexpr std::size_t kTogether = std::size_t{8} << 20;  // counts
    const std::size_t some = std::clamp<std::size_t>(kTogether / variables_, 1, chains_ - chain);
    up_here_ = up_.download(chain * variables_, some * variables_);
    first_here_ = chain;
  }

  std::uint64_t counted_from_ = 0;
  cuda::Array<double> accepted_;
  cuda::Array<std::int64_t> up_;
  mutable std::mutex mutex_;
  mutable std::vector<double> accepted_here_;  // empty where they are old
  mutable std::size_t first_here_ = 0;         // chain
  mutable std::vector<std::int64_t> up_here_;
};

}  // namespace poise
