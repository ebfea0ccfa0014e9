/// What is decided before a file is created: its chunks, its size and whether it can be written at all.
#pragma once

#include <cstddef>
#include <string>

#include "store/netcdf.hpp"

namespace poise::netcdf {

inline constexpr std::size_t kMegabyte = 1'000'000;
inline constexpr std::size_t kChunkBytes = 4 * kMegabyte;  ///< of x, at most
inline constexpr std::size_t kSeriesChunk = 8192;          ///< numbers in a chunk of a (chain, draw) variable

/// Draws in a chunk of x.
[[nodiscard]] std::size_t chunk_draws(std::size_t variables, std::size_t draws);

/// Draws in a chunk of a (chain, draw) variable.
[[nodiscard]] std::size_t series_chunk_draws(std::size_t draws);

/// Whether x is large enough to be worth the time of compression.
[[nodiscard]] bool is_deflated(const NetcdfOptions& options);

/// Throws an InputError when PATH cannot be written. Nothing is changed.
void check_writable(const std::string& path);

/// Throws an InputError when the run is known to be larger than the free space of the disk.
void check_space(const std::string& path, const NetcdfOptions& options);

}  // namespace poise::netcdf
