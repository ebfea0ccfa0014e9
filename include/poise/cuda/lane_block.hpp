/// Chains across lanes, on a GPU: the block of lanes/lane_block.hpp with a thread for every variable of a colour and
/// two chains.
///
/// Random words are those of the CPU, and floats decide only where they cannot be wrong, so the states are the same.
/// The rest, one update in a hundred thousand or so, is decided by the same integers and an exponential in doubles,
/// which may differ from the CPU's in the last digit: one update in 10^16 or so.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <poise/lanes/chain_group.hpp>
#include <poise/lanes/lane_block.hpp>
#include <poise/lanes/lane_image.hpp>
#include <poise/lanes/lane_model.hpp>

namespace poise {

/// What a block is made from.
struct CudaLaneModel {
  std::shared_ptr<const LaneModel> model;
  ExactTables exact;
  std::vector<Value> reference;  ///< by position
};

class CudaLaneBlock {
 public:
  using Totals = LaneTotals;

  /// Where levels are while chains move: in the memory of multiprocessors, for many sweeps at a time, or in that of the
  /// device, so that the variables of a colour may be anywhere. What is faster is chosen by default.
  enum class Placement { automatic, resident, spread };

  /// The chains first_chain + group.first and so on; numbers are those of the run. Throws an InputError where the GPU
  /// has too little memory.
  CudaLaneBlock(std::shared_ptr<const CudaLaneModel> model, ChainGroup group, std::uint64_t seed,
                std::uint64_t first_chain, Placement placement = Placement::automatic);
  ~CudaLaneBlock();
  CudaLaneBlock(CudaLaneBlock&&) noexcept;
  CudaLaneBlock& operator=(CudaLaneBlock&&) noexcept;

  [[nodiscard]] ChainGroup group() const { return group_; }
  [[nodiscard]] std::uint64_t sweeps() const { return sweeps_; }
  [[nodiscard]] BlockProgress progress() const { return {sweeps_, counting_ ? 1U : 0U, averaging_ ? 1U : 0U}; }
  /// Totals start anew.
  void set_progress(const BlockProgress& progress);

  /// Counts levels while `reset_counts` was called, and averages conditionals while `reset_sums` was. Returns when the
  /// sweeps are made.
  void sweep(std::uint64_t sweeps);
  void reset_counts();
  void reset_sums();
  [[nodiscard]] bool counts() const { return counting_; }
  [[nodiscard]] bool averages() const { return averaging_; }

  // Of one chain of the run; other threads may set and get other chains at the same time, while none sweeps.
  void set_levels(std::size_t chain, std::span<const Value> levels);
  void get_levels(std::size_t chain, std::span<Value> levels) const;
  void set_totals(std::size_t chain, const LaneTotals& totals);
  [[nodiscard]] LaneTotals get_totals(std::size_t chain) const;
  void get_counts(std::size_t chain, std::span<std::uint64_t> counts) const;
  void get_sums(std::size_t chain, std::span<double> sums) const;

  // Of all chains of the group, in one go.
  /// Units of log p, one factor after the other as the CPU adds them up.
  [[nodiscard]] std::vector<double> log_sums() const;
  /// The same, where their sum is exact in integers.
  [[nodiscard]] std::vector<std::int64_t> exact_sums() const;
  struct Tally {
    std::vector<std::uint32_t> different;  ///< variables that are not as in the reference
    std::vector<std::uint32_t> up;         ///< those at level 1
    std::vector<std::uint32_t> most;       ///< those at the most frequent level
  };
  [[nodiscard]] Tally tally() const;
  /// Chain after chain.
  void get_all_levels(std::span<Value> levels) const;

 private:
  static constexpr std::uint64_t kMostRecent = 255;  // sweeps that a byte can count

  class OnDevice;
  template <class Use>
  void for_each_entry(Use&& use) const;
  [[nodiscard]] std::uint32_t lane(std::size_t chain) const;

  std::shared_ptr<const CudaLaneModel> model_;
  ChainGroup group_{};
  std::uint64_t first_chain_ = 0;
  bool counting_ = false;
  bool averaging_ = false;
  std::uint64_t sweeps_ = 0;
  std::unique_ptr<OnDevice> device_;
};

}  // namespace poise
