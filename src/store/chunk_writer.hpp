/// Chunks of draws, compressed several times faster than zlib does it, and written into a file that the NetCDF library
/// holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <poise/trace.hpp>
#include "base/thread_pool.hpp"

namespace poise::netcdf {

/// Makes zlib streams of chunks, which every reader of NetCDF files unpacks. Where draws are noise, looking for what is
/// alike costs most of the time of compression and finds next to nothing: a code for each label is enough, and for two
/// labels that is a bit for the one that is more frequent and two for the other. Where draws are much like each other,
/// zlib makes streams that are far shorter. A fraction of the chunk is tried both ways, so a stream is a function of
/// its chunk alone.
class ChunkCoder {
 public:
  /// Labels that are the only ones; alike where there may be others.
  ChunkCoder(std::int8_t low, std::int8_t high) : low_(low), high_(high) {}

  [[nodiscard]] std::string operator()(std::span<const std::int8_t> chunk) const;

 private:
  /// By codes of labels alone, runs of one label apart; empty where that cannot be.
  [[nodiscard]] std::string by_labels(std::span<const std::int8_t> chunk) const;

  std::int8_t low_;
  std::int8_t high_;
};

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
  void write(const DrawBatch& block, std::size_t written);

 private:
  Shape shape_;
  std::size_t variables_;
  ChunkCoder coder_;
  ThreadPool pool_;
  std::int64_t dataset_ = -1;  // HDF5's hid_t
};

}  // namespace poise::netcdf
