/// Long runs of many variables: what one pass over all draws tells of a series of zeros and ones. Its mean, its
/// transitions and its split R-hat are exact; its effective size is estimated from batch means of the half-chains.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <poise/diagnose.hpp>
#include "diagnose/bit_chains.hpp"

namespace poise::diagnose_detail {

/// How the draws of a chain are cut: each half into batches of equal length and what is left over, with the middle draw
/// of an odd number, which belongs to no half, between the two.
class BatchCuts {
 public:
  BatchCuts(std::size_t draws, std::size_t chains);

  [[nodiscard]] std::size_t batches() const { return batches_; }  ///< of a half-chain
  [[nodiscard]] std::size_t length() const { return length_; }    ///< of a batch
  [[nodiscard]] std::size_t half() const { return half_; }        ///< draws of a half-chain
  [[nodiscard]] std::size_t slots() const { return ends_.size() - 1; }
  [[nodiscard]] std::size_t begin(std::size_t slot) const { return ends_[slot]; }
  [[nodiscard]] std::size_t end(std::size_t slot) const { return ends_[slot + 1]; }
  /// Where slots end; the next one begins there.
  [[nodiscard]] std::span<const std::size_t> ends() const { return std::span(ends_).subspan(1); }
  /// The first batch of a half; what is left over is behind its batches.
  [[nodiscard]] std::size_t first_slot(std::size_t half) const { return half == 0 ? 0 : batches_ + 2; }

 private:
  std::size_t half_;
  std::size_t batches_;
  std::size_t length_;
  std::vector<std::size_t> ends_;
};

/// The row of a series with so many ones in each slot of each chain; without its variable and level. Of a series whose
/// draws are not all the same.
[[nodiscard]] VariableRow estimated_row(std::span<const std::uint32_t> ones, std::uint64_t transitions,
                                        std::size_t chains, const BatchCuts& cuts);
[[nodiscard]] VariableRow estimated_row(const BitChains& series, const BatchCuts& cuts);

/// The rows of neighbouring variables, from all their draws in one pass.
[[nodiscard]] std::vector<VariableRow> estimated_rows(DrawsView draws, const BatchCuts& cuts, std::size_t first,
                                                      std::size_t variables);

/// The row of a variable that never changed.
[[nodiscard]] VariableRow constant_row(Index variable, std::int8_t label);

/// A row of the indicator of a label as one of a variable that has this label and a lower one.
void label_row(VariableRow& row, std::int8_t low, std::int8_t high);

}  // namespace poise::diagnose_detail
