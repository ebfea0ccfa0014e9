/// Chains of a restricted Boltzmann machine on a GPU: proposals from gradients of log p, of one change or of many.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engines/cuda/gradient/gradient_chains.hpp"
#include "models/rbm/rbm_weights.hpp"

namespace poise {

class CudaRbmChains : public CudaGradientChains {
 public:
  /// Throws an InputError where the GPU has too little memory.
  CudaRbmChains(const RbmWeights& weights, CudaGradientForm form, std::size_t chains, std::uint64_t seed,
                std::uint64_t first_chain);
  ~CudaRbmChains();

  void set_function(const BalancingFunction& function);
  void start_counting();

  /// Returns when the steps are made.
  void advance(std::uint64_t steps);

  struct Sums {
    std::vector<double> log_prob;
    std::vector<std::int64_t> on;
    std::vector<std::int64_t> different;  ///< units that are not as in the reference
  };
  [[nodiscard]] Sums sums() const;

  /// What a step from the present states is made of, for tests.
  struct Law {
    std::vector<double> log_prob;         ///< of each chain, as acceptances have it
    std::vector<std::uint64_t> proposal;  ///< [chain][unit]: weights, or probabilities in units of 2^-32
  };
  [[nodiscard]] Law law() const;

 private:
  struct OnDevice;
  void prepare() const;

  std::unique_ptr<OnDevice> device_;
};

}  // namespace poise
