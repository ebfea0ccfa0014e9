/// A chain of block Gibbs as the CPU saves it (EngineOf), from what a GPU has of it, and back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <poise/extend/base/archive.hpp>
#include <poise/extend/kernels/step.hpp>
#include "models/rbm/rbm.hpp"

namespace poise {

/// Whose chain it is.
struct RbmChainOf {
  const Rbm& target;
  std::span<const Value> reference;
  std::uint64_t seed;
  std::uint64_t number;  ///< of its random stream
};

struct SavedRbmChain {
  std::vector<Value> levels = {};
  std::uint64_t steps = 0;
  std::uint64_t counted_from = 0;  ///< steps
  /// Steps since then at which units were on; empty where none were counted.
  std::vector<std::uint64_t> up_counts = {};
  std::uint64_t placed = 0;  ///< times that it was put at a state
  RaoBlackwell rao_blackwell = {};
};

void save_rbm_chain(const RbmChainOf& of, const SavedRbmChain& chain, Saver& out);
/// Throws std::runtime_error where it is none of this RBM's.
[[nodiscard]] SavedRbmChain load_rbm_chain(const RbmChainOf& of, Loader& in);

}  // namespace poise
