/// Chains as bits, on a GPU: the chains of engines/cpu/bits/bit_tile.hpp with a thread for every variable of a
/// colour and 32 chains or, where chains are few, with words of 32 variables of one chain.
///
/// Random words, probabilities and their comparison are those of the CPU, all in integers, so the states are the
/// same bit by bit.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <poise/extend/engines/engine.hpp>
#include "engines/cpu/bits/bit_tables.hpp"
#include "engines/cpu/bits/bit_tile.hpp"

namespace poise {

namespace cuda {
class BitCounts;
}

/// Sums of a state that observables follow from, by position: terms as they lie in memory.
struct CudaSpinTerms {
  std::vector<std::int64_t> fields;                 ///< of each position; empty where all are 0
  std::vector<std::array<std::uint32_t, 2>> edges;  ///< positions
  std::vector<std::int64_t> weights;                ///< of edges; empty where all are 1
  std::vector<std::uint8_t> reference;
};

/// Sums over the states of all chains of a tile.
struct CudaSpinSums {
  std::span<const std::int64_t> up;         ///< variables
  std::span<const std::int64_t> fields;     ///< weights of variables that are up
  std::span<const std::int64_t> edges;      ///< weights of edges whose ends differ
  std::span<const std::int64_t> different;  ///< variables that are not as in the reference
};

class CudaBitTile {
 public:
  using Totals = BitTotals;

  /// The chains first_chain + group.first and so on; numbers are those of the run. Throws an InputError where the GPU
  /// has too little memory.
  CudaBitTile(std::shared_ptr<const BitTables> tables, std::shared_ptr<const CudaSpinTerms> terms, ChainGroup group,
              std::uint64_t seed, std::uint64_t first_chain);
  ~CudaBitTile();
  CudaBitTile(CudaBitTile&&) noexcept;
  CudaBitTile& operator=(CudaBitTile&&) noexcept;

  [[nodiscard]] ChainGroup group() const { return group_; }
  [[nodiscard]] std::uint64_t sweeps() const { return sweeps_; }
  [[nodiscard]] TileProgress progress() const { return {sweeps_, counting_ ? 1U : 0U, 0}; }
  /// Counts start anew.
  void set_progress(const TileProgress& progress);

  /// Counts levels once `reset_counts` was called. Returns when the sweeps are made.
  void sweep(std::uint64_t sweeps);
  void reset_counts();
  [[nodiscard]] bool counts() const { return counting_; }

  // One chain of the run; other threads may set and get other chains at the same time, while none sweeps.
  void set_levels(std::size_t chain, std::span<const Value> levels);
  void get_levels(std::size_t chain, std::span<Value> levels) const;
  void set_totals(std::size_t chain, const BitTotals& totals);
  [[nodiscard]] BitTotals get_totals(std::size_t chain) const;
  void get_counts(std::size_t chain, std::span<std::uint64_t> counts) const;

  /// Good until the next ones are asked for.
  [[nodiscard]] CudaSpinSums sums() const;
  /// The same `draws` times, each after so many sweeps: calls use(draw, sums), on any thread and in any order.
  void sweep_and_sum(std::uint64_t sweeps, std::size_t draws,
                     const std::function<void(std::size_t draw, const CudaSpinSums& sums)>& use);
  /// Chain after chain.
  void get_all_levels(std::span<Value> levels) const;

 private:
  struct OnDevice;
  void start_sweeps(std::uint64_t sweeps);
  /// Where states are counted.
  [[nodiscard]] cuda::BitCounts* counts_if_any() const;
  [[nodiscard]] std::size_t lane(std::size_t chain) const { return first_chain_ + chain - first_lane_; }

  std::shared_ptr<const BitTables> tables_;
  ChainGroup group_{};
  std::uint64_t first_chain_ = 0;
  std::uint64_t first_lane_ = 0;  // number of the chain that the first bit is
  bool counting_ = false;
  std::uint64_t sweeps_ = 0;
  std::unique_ptr<OnDevice> device_;
};

class CudaBitChains {
 public:
  using Totals = BitTotals;
  /// Chains up to which this is faster than words of 32 chains.
  static constexpr std::size_t kMost = 5;

  /// As those of CudaBitTile.
  CudaBitChains(const std::shared_ptr<const BitTables>& tables, const std::shared_ptr<const CudaSpinTerms>& terms,
                ChainGroup group, std::uint64_t seed, std::uint64_t first_chain);
  ~CudaBitChains();
  CudaBitChains(CudaBitChains&&) noexcept;
  CudaBitChains& operator=(CudaBitChains&&) noexcept;

  [[nodiscard]] ChainGroup group() const { return group_; }
  [[nodiscard]] std::uint64_t sweeps() const { return sweeps_; }
  [[nodiscard]] TileProgress progress() const { return {sweeps_, counting_ ? 1U : 0U, 0}; }
  void set_progress(const TileProgress& progress);

  void sweep(std::uint64_t sweeps);
  void reset_counts();
  [[nodiscard]] bool counts() const { return counting_; }

  void set_levels(std::size_t chain, std::span<const Value> levels);
  void get_levels(std::size_t chain, std::span<Value> levels) const;
  void set_totals(std::size_t chain, const BitTotals& totals);
  [[nodiscard]] BitTotals get_totals(std::size_t chain) const;
  void get_counts(std::size_t chain, std::span<std::uint64_t> counts) const;

  [[nodiscard]] CudaSpinSums sums() const;
  void sweep_and_sum(std::uint64_t sweeps, std::size_t draws,
                     const std::function<void(std::size_t draw, const CudaSpinSums& sums)>& use);
  void get_all_levels(std::span<Value> levels) const;

 private:
  struct OnDevice;
  void start_sweeps(std::uint64_t sweeps);

  ChainGroup group_{};
  bool counting_ = false;
  std::uint64_t sweeps_ = 0;
  std::unique_ptr<OnDevice> device_;
};

}  // namespace poise
