/// Contrastive divergence on a GPU, as training sees it: weights, moments, data and chains are there, and an update is
/// made of rows by their numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <poise/types.hpp>
#include "models/rbm/rbm_weights.hpp"

namespace poise {

class RbmUpdates {
 public:
  /// Where the chains of an update begin.
  enum class Chains { at_data, kept };
  struct Options {
    Chains chains = Chains::at_data;
    std::uint64_t gibbs_steps = 1;
    std::size_t batch = 1;  ///< rows of an update at most, and the number of chains that are kept
    std::uint64_t seed = 1;
  };
  /// Numbers of a step of Adam (poise/extend/learning/adam.hpp).
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

  virtual ~RbmUpdates() = default;

  /// Row after row of zeros and ones, and the order in which updates take them.
  virtual void set_data(std::span<const Value> data, std::span<const std::uint64_t> order) = 0;

  /// Makes update number `update`, counted from 1, of so many rows from offset `first` of the order on.
  virtual Metrics step(std::size_t first, std::size_t rows, std::uint64_t update, const Adam& adam) = 0;

  enum class Part : unsigned char { weights, first_moment, second_moment, gradient };
  /// Sizes of `numbers` are those of the RBM.
  virtual void set(Part part, const RbmWeights& numbers) = 0;
  virtual void get(Part part, RbmWeights& numbers) const = 0;
  /// Row after row of zeros and ones.
  virtual void set_chains(std::span<const Value> levels) = 0;
  [[nodiscard]] virtual std::vector<Value> chains() const = 0;
};

}  // namespace poise
