/// Chains of a user target on a GPU: states, gradients, proposals and acceptance stay on the device, where user code
/// computes log p for all chains in one call a step.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engines/cuda/gradient/gradient_chains.hpp"
#include <poise/extend/models/batch_function.hpp>

namespace poise {

class CudaUserChains : public CudaGradientChains {
 public:
  /// How the function sees a variable: as the label of its level, or as a pair of numbers with a one at the level.
  enum class Appearance { labels, one_hot };

  /// Variables are those of the shape, of two levels each; the options need not say how many. Throws an InputError
  /// where the GPU has too little memory.
  CudaUserChains(std::shared_ptr<DeviceFunction> function, const BatchShape& shape, Appearance appearance,
                 CudaGradientOptions options);
  ~CudaUserChains();

  /// Has log p and gradients of states that were set computed, if any were, and says so. Throws an InputError where the
  /// function gave a number that is none.
  bool prepare() const;
  /// Returns when the steps are made. What the function throws leaves the chains where they are.
  void advance(std::uint64_t steps);

  /// What is recorded of some draws, [draw][chain].
  struct Records {
    std::vector<double> log_prob;
    std::vector<double> accepted;         ///< acceptance probabilities, summed
    std::vector<std::int64_t> different;  ///< variables that are not as in the reference
    std::vector<std::uint32_t> words;     ///< of states, for `unpack`
    std::size_t row = 0;                  ///< words of a state
  };
  /// So many steps for each of some draws, which wait on the device until all are made.
  [[nodiscard]] Records advance_and_record(std::uint64_t steps, std::size_t draws);
  /// Records the present states.
  [[nodiscard]] Records record() const;
  [[nodiscard]] std::vector<double> log_prob() const;

  /// What a step from the present states is made of, for tests: of [chain][variable], weights, or probabilities in
  /// units of 2^-32.
  [[nodiscard]] std::vector<std::uint64_t> law() const;

 private:
  struct OnDevice;
  void upload_states() const;
  template <class Work>
  void make_steps(Work&& work);

  std::unique_ptr<OnDevice> device_;
};

}  // namespace poise
