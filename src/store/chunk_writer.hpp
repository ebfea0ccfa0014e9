/// Writes chunks of draws that were compressed here into a file that the NetCDF library holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/thread_pool.hpp"
#include <poise/trace.hpp>

#include "store/chunk_code.hpp"

namespace poise::netcdf {

/// The NetCDF library compresses what it is given itself, on one thread, by zlib alone. HDF5 beneath takes chunks that
/// are compressed already. Calls come under the library's lock and throw its Failure.
class ChunkWriter {
 public:
  struct Shape {
    std::size_t chains = 0;
    std::vector<std::size_t> inner;  ///< dimensions behind (chain, draw); a chunk covers them all
    std::size_t chunk_draws = 1;     ///< in a chunk, of one chain
  };

  /// `path` is the file as the library has opened it, in which posterior/x has been defined.
  ChunkWriter(const std::string& path, Shape shape, const ChunkCoder& coder, unsigned threads);
  ~ChunkWriter();
  ChunkWriter(const ChunkWriter&) = delete;
  ChunkWriter& operator=(const ChunkWriter&) = delete;

  /// Draws that follow the first `written`, a multiple of the draws of a chunk.
  void write(const DrawBlock& block, std::size_t written);

 private:
  Shape shape_;
  std::size_t variables_;
  ChunkCoder coder_;
  ThreadPool pool_;
  std::int64_t dataset_ = -1;  // HDF5's hid_t
};

}  // namespace poise::netcdf
