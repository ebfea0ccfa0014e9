/// Chunks of draws as zlib streams, which every reader of NetCDF files unpacks, made several times faster than zlib
/// does.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace poise::netcdf {

/// Where draws are noise, looking for what is alike costs most of the time of compression and finds next to nothing: a
/// code for each label is enough, and for two labels that is a bit for the one that is more frequent and two for the
/// other. Where draws are much like each other, zlib makes streams that are far shorter. A part of the chunk is tried
/// both ways, so a stream is a function of its chunk alone.
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

}  // namespace poise::netcdf
