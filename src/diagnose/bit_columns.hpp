/// Columns of variables out of rows of draws, both as bits.
#pragma once

#include <cstddef>
#include <span>

#include <poise/diagnose.hpp>
#include "diagnose/bit_chains.hpp"

namespace poise::diagnose_detail {

/// The series of up to 64 neighbouring variables, from `first` on, out of draws that are bits: ones are the
/// larger label.
void take_columns(const DrawsView& draws, std::size_t first, std::span<BitChains> columns);

}  // namespace poise::diagnose_detail
