/// The status of a series that is finite and not constant, from its counts alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include <poise/diagnose.hpp>

namespace poise::diagnose_detail {

inline SeriesStatus status_of(std::size_t chains, std::size_t draws, std::uint64_t transitions) {
  if (transitions == 0) return SeriesStatus::frozen;
  if (draws < 12) return SeriesStatus::too_short;
  if (transitions < rare_transitions && 10 * transitions < chains * (draws - 1)) return SeriesStatus::rare;
  return SeriesStatus::ok;
}

}  // namespace poise::diagnose_detail
