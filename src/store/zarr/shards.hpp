/// The shards of states that are written, one of each chain at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/thread_pool.hpp"
#include "store/run_file.hpp"
#include "store/zarr/column.hpp"
#include "store/zarr/folder.hpp"
#include "store/zarr/shard_file.hpp"

namespace poise::zarr {

/// Full chunks are appended to a file that has no name yet. A commit appends the chunk that is not full and the index,
/// and gives the file its name; what comes then goes to a new file that begins with the same full chunks.
///
/// Failures are a std::runtime_error that names the path.
class Shards {
 public:
  Shards(std::string store, const Array& array, Range chains);

  /// Goes on behind so many draws of each chain, all in full chunks that are there. Throws an InputError otherwise.
  void begin_at(std::size_t draws);
  /// Chunks of what waits: those that are full or, for `all`, the last one too. Adds to the files of the next commit:
  /// full shards and, for `all`, the others with anything new. Gives the time that copies of full chunks took.
  std::chrono::nanoseconds write(const Column& column, bool all, ThreadPool& pool, std::vector<NewFile>& files);

 private:
  struct Shard {
    std::vector<Place> places;  // of full chunks
    std::uint64_t end = 0;      // of these
    NewFile last;               // the last version that was committed, or is being so
    NewFile next;               // the one that grows; empty names: none
    std::vector<NewFile> files;
  };
  void begin_next(Shard& shard, const std::string& path) const;
  void add(Shard& shard, const std::string& path, const std::string& chunk, bool is_full) const;
  static void end_version(Shard& shard);

  std::string store_;
  Array array_;
  Range chains_;
  std::vector<Shard> shards_;  // by chains
};

}  // namespace poise::zarr
