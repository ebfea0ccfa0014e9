/// What the files that write and read NetCDF share: calls of the library, chunks and sizes, the text of a layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>

#include <netcdf.h>  // before netcdf_mem.h, which needs it
#include <netcdf_mem.h>
#include <nlohmann/json.hpp>

#include <poise/trace.hpp>
#include "store/netcdf.hpp"

namespace poise {

namespace netcdf {

/// The HDF5 library beneath is not thread-safe, so every file of the process shares this lock.
inline std::mutex& library_lock() {
  static std::mutex lock;
  return lock;
}

/// A call failed. It never leaves the two files that make the calls: they turn it into a sentence with a path.
struct Failure : std::runtime_error {
  explicit Failure(int code) : std::runtime_error(nc_strerror(code)), status(code) {}
  int status;
};

inline void call(int status) {
  if (status != NC_NOERR) throw Failure(status);
}

inline constexpr std::size_t kMegabyte = 1'000'000;
inline constexpr std::size_t kChunkBytes = 4 * kMegabyte;  ///< of x, at most
inline constexpr std::size_t kSeriesChunk = 8192;          ///< numbers in a chunk of a (chain, draw) variable

/// Draws in a chunk of x.
[[nodiscard]] std::size_t chunk_draws(std::size_t variables, std::size_t draws);

/// Draws in a chunk of a (chain, draw) variable.
[[nodiscard]] std::size_t series_chunk_draws(std::size_t draws);

/// Whether x is large enough to be worth the time of compression.
[[nodiscard]] bool is_deflated(const NetcdfOptions& options);

/// Whether another program holds the file; `mode` is the lock that it would deny, LOCK_SH or LOCK_EX.
[[nodiscard]] bool is_held(const std::string& path, int mode);

/// Throws an InputError when PATH cannot be written. Nothing is changed.
void check_writable(const std::string& path);

}  // namespace netcdf

}  // namespace poise
