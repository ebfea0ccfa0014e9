/// States in modes that random states do not lead to: those of chains that were cooled and warmed again.
///
/// Beside a first-order transition all chains from uniform states stay in the disordered phase and agree, whatever the
/// other phase has. Cold chains leave it; from there temperatures rise in steps, so that domains can grow.
#pragma once

#include <cstddef>
#include <cstdint>
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

/// Where these chains are after some sweeps of the model itself, with log p.
struct WarmedStates {
  std::vector<Value> levels;
  std::vector<double> log_prob;  ///< of each chain; none where there are no such chains
};
[[nodiscard]] WarmedStates warmed_states(const Model& model, const QuenchOptions& options);
/// Updates of single variables that a chain of `warmed_states` takes.
[[nodiscard]] std::uint64_t cost_of_warmed(const Model& model);

}  // namespace poise
