/// Sends what a run file holds, as the NetCDF library reads it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/image/inflate.hpp"
#include "store/isolated_reader.hpp"
#include "store/netcdf.hpp"

namespace poise::netcdf {

/// chains * draws * width, or nothing where a file of that length cannot hold so many entries.
[[nodiscard]] std::optional<std::size_t> entries_in(std::uint64_t file_bytes, std::uint64_t chains, std::uint64_t draws,
                                                    std::uint64_t width, std::uint64_t bytes);

/// What is known of a file before it is opened.
struct RunPath {
  std::string path;      ///< as the user wrote it
  std::string absolute;  ///< the library reads meaning (drive letters, URLs) into relative ones
  std::uint64_t file_bytes = 0;
  bool growing = false;  ///< another program holds it
};

/// The library's part of reading a run, for a child process: damaged files crash it. The order of the frames is
///   chains, draws in the file; the attributes layout, settings and results; the number of dimensions of x behind
///   (chain, draw), 0 without x, and their lengths; the names of variables, a NUL behind each; the number of monitors
///   besides log_prob and their names; acceptance_rate, n_steps, log_prob and the other monitors unless they are left
///   out; x likewise. Of these the draws and variables that were asked for.
/// Throws an InputError.
void send_run(const RunPath& file, const ReadOptions& options, FrameSender& out);

}  // namespace poise::netcdf
