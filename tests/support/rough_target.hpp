/// A target with a gradient that is wrong.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <utility>

#include "support/table_target.hpp"

namespace poise::testing {

/// A categorical target whose first-order ratios are wrong by a fixed amount at each (state, move): any such thing must
/// leave the distribution alone.
class RoughTarget : public TableTarget {
 public:
  explicit RoughTarget(TableTarget target) : TableTarget(std::move(target)) {}
  void first_order_log_ratios(std::span<const State* const> states, std::span<double* const> out) const {
    for (std::size_t c = 0; c < states.size(); ++c) {
      log_ratios(*states[c], {out[c], num_moves()});
      std::uint64_t hash = 7;
      for (const Value level : states[c]->x) hash = hash * 31 + level;
      for (Index m = 0; m < num_moves(); ++m) {
        if (std::isfinite(out[c][m]))
          out[c][m] += std::sin(static_cast<double>(hash * 17 + m));
        else
          out[c][m] = -1.5;  // a gradient knows nothing of zeros
      }
    }
  }
};

}  // namespace poise::testing
