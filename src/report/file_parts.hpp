/// Going through the draws of a run file that need not fit into memory.
#pragma once

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "store/netcdf.hpp"
#include <poise/types.hpp>

namespace poise {

/// What is gone through.
struct FileShape {
  std::size_t chains = 0;
  std::size_t draws = 0;           ///< per chain
  std::size_t bytes_per_draw = 1;  ///< of all chains, as they are asked for
};

/// Calls visit(trace, first draw) for all draws of a file, part by part. Throws InputError where the file has not got
/// the draws any more that it had.
template <class Visit>
void read_in_parts(const std::string& path, const FileShape& shape, ReadOptions options, Visit&& visit) {
  constexpr std::size_t kPartBytes = std::size_t{24} << 20;  // below what is taken from the system page by page
  constexpr std::size_t kChunk = 256;  // of draws in the file at most: to cut through one is to unpack it twice
  std::size_t most = std::max<std::size_t>(1, kPartBytes / std::max<std::size_t>(shape.bytes_per_draw, 1));
  if (most > kChunk) most -= most % kChunk;
  for (std::size_t first = 0; first < shape.draws; first += most) {
    options.first_draw = first;
    options.most_draws = std::min(most, shape.draws - first);
    const StoredRun part = read_netcdf(path, options);
    if (part.trace.draws != options.most_draws || part.trace.chains != shape.chains) {
      throw InputError(fmt::format("{} was changed by another program while it was read.", path));
    }
    visit(part.trace, first);
  }
}

}  // namespace poise
