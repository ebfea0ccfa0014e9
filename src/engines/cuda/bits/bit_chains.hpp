/// Few chains of Gibbs on two-valued variables on a GPU: a word has 32 variables of one chain.
///
/// Random numbers and states are those of CudaBitBlock and of the CPU (lanes/bit_block.hpp), bit by bit.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "engines/cuda/bits/bit_block.hpp"

namespace poise {

class CudaBitChains {
 public:
  using Totals = BitTotals;
  /// Chains up to which this is faster than words of 32 chains.
  static constexpr std::size_t kMost = 5;

  /// As those of CudaBitBlock.
  CudaBitChains(const std::shared_ptr<const BitTables>& tables, const std::shared_ptr<const CudaSpinTerms>& terms,
                ChainGroup group, std::uint64_t seed, std::uint64_t first_chain);
  ~CudaBitChains();
  CudaBitChains(CudaBitChains&&) noexcept;
  CudaBitChains& operator=(CudaBitChains&&) noexcept;

  [[nodiscard]] ChainGroup group() const { return group_; }
  [[nodiscard]] std::uint64_t sweeps() const { return sweeps_; }
  [[nodiscard]] BlockProgress progress() const { return {sweeps_, counting_ ? 1U : 0U, 0}; }
  void set_progress(const BlockProgress& progress);

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
