/// Calls to the NetCDF library: one at a time in the whole process, with exceptions for status codes.
#pragma once

#include <mutex>
#include <stdexcept>

#include <netcdf.h>  // before netcdf_mem.h, which needs it
#include <netcdf_mem.h>

namespace poise::netcdf {

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

}  // namespace poise::netcdf
