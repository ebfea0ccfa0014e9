/// Chunks of a chain go into its shard one after the other.
#include "store/zarr/shards.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <poise/types.hpp>

namespace poise::zarr {

namespace {

constexpr std::size_t kChunksOfThread = 4;  // that are compressed before they are written

}  // namespace

Shards::Shards(std::string store, const Array& array, Range chains)
    : store_(std::move(store)), array_(array), chains_(chains), shards_(chains.count) {}

void Shards::begin_at(std::size_t draws) {
  const std::size_t length = array_.chunk[1];
  const std::size_t stored = draws / length;
  const std::size_t chunks = stored % array_.sharded;
  if (chunks == 0) return;
  for (std::size_t k = 0; k < shards_.size(); ++k) {
    Shard& shard = shards_[k];
    std::vector<std::size_t> key(array_.chunk.size(), 0);
    key[0] = chains_.first + k;
    key[1] = stored - 1;
    const std::string name = chunk_path(array_, key);
    const ShardFile file(store_ + '/' + name, array_.sharded);
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      const ShardFile::Found found = file.find(chunk);
      if (found == ShardFile::Found::there && file.place(chunk).offset == shard.end) {
        shard.places.push_back(file.place(chunk));
        shard.end += shard.places.back().size;
        continue;
      }
      const std::size_t first = (stored - chunks + chunk) * length;
      throw InputError(fmt::format("{} cannot be continued: draws {} to {} of chain {} are {} ({}).", store_, first,
                                   first + length - 1, key[0],
                                   found == ShardFile::Found::missing ? "missing" : "damaged", name));
    }
    shard.last = {name, name};
  }
}

std::chrono::nanoseconds Shards::write(const Column& column, bool all, ThreadPool& pool, std::vector<NewFile>& files) {
  const std::vector<Column::Chunk> chunks = column.chunks(all);
  const auto begun = std::chrono::steady_clock::now();
  if (!chunks.empty()) {
    pool.for_each(shards_.size(), [&](std::size_t k) {
      if (shards_[k].next.first.empty()) begin_next(shards_[k], column.path(chunks[k]));
    });
  }
  const std::chrono::nanoseconds copying = std::chrono::steady_clock::now() - begun;
  // A few rows of one chunk of each chain at a time, so that memory does not depend on how much waits.
  const std::size_t chains = shards_.size();
  const std::size_t most =
      chains * std::max<std::size_t>(1, kChunksOfThread * pool.threads() / std::max<std::size_t>(1, chains));
  std::vector<std::string> encoded;
  for (std::size_t first = 0; first < chunks.size(); first += most) {
    encoded.resize(std::min(most, chunks.size() - first));
    pool.for_each(encoded.size(), [&](std::size_t k) { encoded[k] = column.encoded(chunks[first + k]); });
    pool.for_each(chains, [&](std::size_t chain) {
      for (std::size_t k = chain; k < encoded.size(); k += chains) {
        const Column::Chunk& chunk = chunks[first + k];
        add(shards_[chain], column.path(chunk), encoded[k], chunk.draws == column.chunk_draws());
      }
    });
  }
  if (all) {
    pool.for_each(chains, [&](std::size_t chain) {
      Shard& shard = shards_[chain];
      if (shard.next.first.empty()) return;
      append(store_, shard.next, index_of(shard.places, array_.sharded));
      end_version(shard);
    });
  }
  for (Shard& shard : shards_) {
    for (NewFile& file : shard.files) files.push_back(std::move(file));
    shard.files.clear();
  }
  return copying;
}

void Shards::begin_next(Shard& shard, const std::string& path) const {
  shard.next = begin_new(store_, path, shard.last, shard.end);
}

void Shards::add(Shard& shard, const std::string& path, const std::string& chunk, bool is_full) const {
  if (shard.next.first.empty()) begin_next(shard, path);
  std::vector<Place> places = shard.places;
  places.push_back({shard.end, chunk.size()});
  const bool ends = !is_full || places.size() == array_.sharded;
  append(store_, shard.next, ends ? chunk + index_of(places, array_.sharded) : chunk);
  if (ends) end_version(shard);
  if (!is_full) return;
  shard.places = std::move(places);
  shard.end += chunk.size();
  if (shard.places.size() < array_.sharded) return;
  shard.places.clear();
  shard.end = 0;
  shard.last = {};
}

void Shards::end_version(Shard& shard) {
  shard.last = std::exchange(shard.next, {});
  shard.files.push_back(shard.last);
}

}  // namespace poise::zarr
