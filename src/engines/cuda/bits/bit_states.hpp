/// Chains as bits, on a GPU: the chains of engines/cpu/bits/bit_tile.hpp with a thread for every variable of a colour
/// and 32 chains (bit_tile.hpp) or, where chains are few, with words of 32 variables of one chain (bit_chains.hpp).
/// What both have in common.
///
/// Random words, probabilities and their comparison are those of the CPU, all in integers, so the states are the
/// same bit by bit.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <poise/extend/engines/engine.hpp>
#include "engines/cpu/bits/bit_tables.hpp"
#include "engines/cpu/bits/bit_tile.hpp"
#include "engines/cuda/bits/bit_counts.hpp"
#include "engines/cuda/common/call.hpp"

namespace poise {

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
/// Calls use(draw, sums), on any thread and in any order.
using UseSpinSums = std::function<void(std::size_t draw, const CudaSpinSums& sums)>;

/// `Self` has start_sweeps(sweeps), which does not wait for them; row(number) and row_to_change(number), the words of a
/// chain of the group on the host, and offset(variable), that of a bit in them; counted_words(), of all chains, and
/// counted_bits(number), those of one.
template <class Self>
class CudaBits {
 public:
  using Totals = BitTotals;

  [[nodiscard]] ChainGroup group() const { return group_; }
  [[nodiscard]] std::uint64_t sweeps() const { return sweeps_; }
  [[nodiscard]] TileProgress progress() const { return {sweeps_, counting_ ? 1U : 0U, 0}; }
  /// Counts start anew.
  void set_progress(const TileProgress& progress) {
    sweeps_ = progress.sweeps;
    if (progress.counts != 0) reset_counts();
  }

  /// Counts levels once `reset_counts` was called. Returns when the sweeps are made.
  void sweep(std::uint64_t sweeps) {
    static_cast<Self&>(*this).start_sweeps(sweeps);
    cuda::check(cudaDeviceSynchronize(), "sweeps were made");
  }
  void reset_counts() {
    counts_.reset(self().counted_words());
    counting_ = true;
  }
  [[nodiscard]] bool counts() const { return counting_; }

  // One chain of the run; other threads may set and get other chains at the same time, while none sweeps.
  void set_levels(std::size_t chain, std::span<const Value> levels) {
    cuda::pack_bits(levels, self().row_to_change(chain - group_.first), offsets());
  }
  void get_levels(std::size_t chain, std::span<Value> levels) const {
    cuda::unpack_bits(self().row(chain - group_.first), levels, offsets());
  }
  void set_totals(std::size_t chain, const BitTotals& totals) {
    const std::lock_guard lock(*mutex_);
    const CountedBits bits = self().counted_bits(chain - group_.first);
    std::vector<std::uint64_t> sorted(bits.count, 0);
    for (Index i = 0; i < totals.counts.size(); ++i) sorted[self().offset(i)] = totals.counts[i];
    counts_.set(bits.first, bits.step, sorted);
  }
  [[nodiscard]] BitTotals get_totals(std::size_t chain) const {
    BitTotals totals{std::vector<std::uint64_t>(counting_ ? tables_->variables() : 0)};
    if (counting_) get_counts(chain, totals.counts);
    return totals;
  }
  void get_counts(std::size_t chain, std::span<std::uint64_t> counts) const {
    const std::lock_guard lock(*mutex_);
    const CountedBits bits = self().counted_bits(chain - group_.first);
    const std::vector<std::uint64_t> sorted = counts_.get(bits.first, bits.step, bits.count);
    for (Index i = 0; i < counts.size(); ++i) counts[i] = sorted[self().offset(i)];
  }

 protected:
  /// Bits first, first + step and so on.
  struct CountedBits {
    std::size_t first, step, count;
  };

  CudaBits(std::shared_ptr<const BitTables> tables, ChainGroup group) : tables_(std::move(tables)), group_(group) {}

  /// Where states are counted.
  [[nodiscard]] cuda::BitCounts* counts_if_any() { return counting_ ? &counts_ : nullptr; }

  std::shared_ptr<const BitTables> tables_;
  ChainGroup group_{};
  std::uint64_t sweeps_ = 0;

 private:
  [[nodiscard]] const Self& self() const { return static_cast<const Self&>(*this); }
  [[nodiscard]] auto offsets() const {
    return [this](Index variable) { return self().offset(variable); };
  }

  bool counting_ = false;
  cuda::BitCounts counts_;
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();  // of the counts
};

}  // namespace poise
