/// What chains of two-valued variables count on the device: acceptance, and steps at which variables are up.
///
/// A chain adds to a variable's count when it changes: the number of the step where it goes down, less that where it
/// goes up, counted from the beginning. So a step costs one addition at most; what is up at the end is made up for by
/// whoever asks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <poise/types.hpp>

#include "call.hpp"

namespace poise::cuda {

class ChainCounts {
 public:
  ChainCounts(std::size_t chains, std::size_t variables) : chains_(chains), variables_(variables), accepted_(chains) {
    accepted_.clear();
  }

  [[nodiscard]] double* accepted_on_device() const { return accepted_.data(); }
  /// Null before counting begins.
  [[nodiscard]] std::int64_t* up_on_device() const { return up_.data(); }
  [[nodiscard]] std::uint64_t counted_from() const { return counted_from_; }

  /// Acceptance probabilities of each chain, summed.
  [[nodiscard]] std::vector<double> accepted() const {
    std::vector<double> out(chains_);
    accepted_.download(out);
    return out;
  }
  [[nodiscard]] double accepted(std::size_t chain) const {
    double out = 0.0;
    check(cudaMemcpy(&out, accepted_.data() + chain, sizeof out, cudaMemcpyDeviceToHost), "data were copied from it");
    return out;
  }
  void set_accepted(std::size_t chain, double accepted) {
    accepted_.upload(std::span<const double>(&accepted, 1), chain);
  }

  /// Counts from a step on. What is up then goes up at step 0: nothing to add.
  void start(std::uint64_t step) {
    if (up_.empty()) up_ = Array<std::int64_t>(chains_ * variables_);
    up_.clear();
    counted_from_ = step;
  }

  /// Steps of a chain at which each variable was up, if it has these levels at a step.
  [[nodiscard]] std::vector<std::int64_t> up(std::size_t chain, std::span<const Value> levels,
                                             std::uint64_t step) const {
    std::vector<std::int64_t> counts(variables_);
    check(cudaMemcpy(counts.data(), up_.data() + chain * variables_, variables_ * sizeof(std::int64_t),
                     cudaMemcpyDeviceToHost),
          "counts were copied from it");
    const auto since = static_cast<std::int64_t>(step - counted_from_);
    for (std::size_t i = 0; i < variables_; ++i) counts[i] += levels[i] != 0 ? since : 0;
    return counts;
  }
  void set_up(std::size_t chain, std::span<const std::int64_t> counts, std::span<const Value> levels,
              std::uint64_t step) {
    std::vector<std::int64_t> stored(counts.begin(), counts.end());
    const auto since = static_cast<std::int64_t>(step - counted_from_);
    for (std::size_t i = 0; i < variables_; ++i) stored[i] -= levels[i] != 0 ? since : 0;
    up_.upload(stored, chain * variables_);
  }

 private:
  std::size_t chains_;
  std::size_t variables_;
  std::uint64_t counted_from_ = 0;
  Array<double> accepted_;
  Array<std::int64_t> up_;
};

}  // namespace poise::cuda
