/// Contrastive divergence on a GPU: weights, moments, data and chains are there, and an update is made of rows by their
/// numbers.
///
/// Chains are exact (cuda/rbm_gibbs_chains.hpp); probabilities and gradients are in single precision.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/rbm/rbm_weights.hpp"
#include <poise/types.hpp>

namespace poise {

class CudaRbmUpdates {
 public:
  /// Where the chains of an update begin.
  enum class Chains { at_data, kept };
  struct Options {
    Chains chains = Chains::at_data;
    std::uint64_t gibbs_steps = 1;
    std::size_t batch = 1;  ///< rows of an update at most, and the number of chains that are kept
    std::uint64_t seed = 1;
  };
  /// Of a step of Adam (adapt/adam.hpp).
  struct Adam {
    float scale;
    float second_correction;
    float first_fresh;  ///< 1 less the decays
    float second_fresh;
    float epsilon;
    float tiny;
  };
  /// Means over the rows of an update, before it.
  struct Metrics {
    double reconstruction_error = 0.0;
    double pseudo_log_likelihood = 0.0;
  };

  /// Throws an InputError where the GPU has too little memory. Numbers and chains are still to be set.
  CudaRbmUpdates(Index visible, Index hidden, const Options& options);
  ~CudaRbmUpdates();
  CudaRbmUpdates(const CudaRbmUpdates&) = delete;
  CudaRbmUpdates& operator=(const CudaRbmUpdates&) = delete;

  /// Row after row of zeros and ones, and the order in which updates take them.
  void set_data(std::span<const Value> data, std::span<const std::uint64_t> order);

  /// Makes update number `update`, counted from 1, of so many rows from place `first` of the order on.
  Metrics step(std::size_t first, std::size_t rows, std::uint64_t update, const Adam& adam);

  enum class Part : unsigned char { weights, first_moment, second_moment, gradient };
  /// Sizes of `numbers` are those of the RBM.
  void set(Part part, const RbmWeights& numbers);
  void get(Part part, RbmWeights& numbers) const;
  /// Row after row of zeros and ones.
  void set_chains(std::span<const Value> levels);
  [[nodiscard]] std::vector<Value> chains() const;

 private:
  struct OnDevice;
  Options options_;
  Index visible_;
  Index hidden_;
  std::unique_ptr<OnDevice> device_;
};

}  // namespace poise
