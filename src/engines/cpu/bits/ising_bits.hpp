/// Ising models with chains as bits: their conditionals, and log p and magnetization from sums over a tile.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engines/cpu/bits/bit_sums.hpp"
#include "engines/cpu/bits/bit_tables.hpp"
#include "engines/cpu/bits/bit_tile.hpp"
#include "engines/cpu/tile_engine.hpp"
#include "models/ising/graph_ising.hpp"
#include "models/ising/lattice_ising.hpp"

namespace poise {

template <SpinGraph T>
[[nodiscard]] BitModel bit_model(const std::shared_ptr<const T>& target);

/// Sums of a state of spins: over sites, over sites with weights, over edges with weights.
class SpinSums {
 public:
  using Edge = SpinTerms::Edge;

  /// Terms by position. Weights of edges that are all alike are counted, others added one by one.
  explicit SpinSums(SpinTerms terms);

  struct Sums {
    std::vector<std::int64_t> spins;   ///< of each chain
    std::vector<std::int64_t> fields;  ///< with weights
    std::vector<std::int64_t> edges;   ///< products of spins, with weights
  };
  [[nodiscard]] Sums sums(const BitView& view) const;

 private:
  BitTerms sites_;
  std::vector<std::int64_t> fields_;
  std::int64_t sum_of_fields_ = 0;
  bool has_fields_ = false;
  BitTerms edges_;
  std::vector<std::int64_t> weights_;  // of the edges; empty where they are alike
  std::int64_t weight_ = 0;            // of each then
  std::int64_t sum_of_weights_ = 0;
};

/// Chains of Ising models as bits.
template <class T>
class BitLayout {
 public:
  using Tile = BitTile;
  static constexpr std::size_t kMostChains = 64 * BitTile::kMostWords;
  static constexpr bool kRaoBlackwellises = false;

  BitLayout(const std::shared_ptr<const T>& target, BitModel model);
  void set_reference(std::span<const Value> reference);
  /// How a run's chains are shared out in tiles: by whole words where there are enough of them for all threads.
  [[nodiscard]] static std::vector<ChainGroup> group(std::size_t chains, std::uint64_t first_chain, unsigned threads) {
    return group_words(chains, first_chain, threads, {64, BitTile::kMostWords});
  }
  [[nodiscard]] BitTile make_tile(ChainGroup group, std::uint64_t seed, std::uint64_t first_chain) const {
    return {tables_, group, seed, first_chain};
  }
  /// log p, statistics, distance and levels of all chains of a tile.
  void observe(const T& target, const BitTile& tile, const Observables& out) const;

 private:
  std::shared_ptr<const BitTables> tables_;
  SpinSums sums_;
  std::vector<std::uint64_t> reference_;  // by position, all ones or all zeros
};

}  // namespace poise
