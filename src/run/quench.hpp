/// States in modes that random states do not lead to: those of chains that were cooled and warmed again.
///
/// Beside a first-order transition all chains from uniform states stay in the disordered phase and agree, whatever the
/// other phase has. Cold chains leave it; from there temperatures rise in steps, so that domains can grow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <poise/model.hpp>

namespace poise {

struct QuenchOptions {
  std::size_t chains = 1;
  std::uint64_t seed = 1;
  std::uint64_t first_chain = 0;  ///< the number of the first of them
  double seconds = 0.0;           ///< the most that they may take; 0: no limit
};

/// The last states of chains that were cooled, one after the other. Empty where the model has no such chains: they are
/// those of Ising models, of networks, and of user code, which is called on the CPU.
[[nodiscard]] std::vector<Value> quenched_states(const Model& model, const QuenchOptions& options);

/// Updates of single variables that one of these chains takes.
[[nodiscard]] std::uint64_t cost_of_quenched(const Model& model);

/// Where these chains are at evenly spaced points of some sweeps of the model itself.
struct WarmedPaths {
  std::size_t chains = 0;  ///< none where there are no such chains
  std::size_t points = 0;
  Index variables = 0;
  std::vector<Value> levels;     ///< ((chain * points) + point) * variables + variable
  std::vector<double> log_prob;  ///< chain * points + point

  [[nodiscard]] std::span<const Value> at(std::size_t chain, std::size_t point) const {
    return std::span(levels).subspan((chain * points + point) * variables, variables);
  }
};
/// At least one sweep lies between two points.
[[nodiscard]] WarmedPaths warmed_paths(const Model& model, const QuenchOptions& options, std::uint64_t sweeps,
                                       std::size_t points);

}  // namespace poise
