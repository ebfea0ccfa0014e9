/// Draws of a run file that need not fit into memory: part by part, or some variables at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <poise/diagnose.hpp>
#include <fmt/format.h>

#include <poise/types.hpp>
#include "store/netcdf.hpp"

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

/// Reads the file from its beginning to its end for every load: files hold draws, each with all its variables. Where
/// variables have two values they are held as bits, so that few loads are enough.
class FileColumns final : public ColumnSource {
 public:
  /// `head` is what is known of the file; one draw in `stride` is looked at. Takes about `memory` bytes.
  FileColumns(std::string path, const StoredRun& head, std::size_t stride, double memory);

  [[nodiscard]] std::size_t chains() const override { return chains_; }
  [[nodiscard]] std::size_t draws() const override { return held_; }
  [[nodiscard]] std::size_t variables() const override { return variables_; }
  [[nodiscard]] std::size_t load(std::size_t first) override;
  void copy(std::size_t first, std::size_t count, std::int8_t* to, std::size_t stride) const override;

 private:
  /// Whether all labels were one of the two.
  [[nodiscard]] bool load_bits();
  void load_bytes();
  [[nodiscard]] std::size_t fitting(double bits_per_value) const;
  /// Calls visit(trace, first draw) for one part of the draws after the other.
  template <class Visit>
  void read(Visit&& visit) const;

  std::string path_;
  std::size_t chains_;
  std::size_t all_draws_;  // per chain in the file
  std::size_t stride_;
  std::size_t held_;  // per chain that are looked at
  std::size_t variables_;
  double memory_;
  bool two_valued_;
  std::int8_t low_ = 0, high_ = 0;

  std::size_t first_ = 0;  // variables that are loaded
  std::size_t count_ = 0;
  std::size_t column_bytes_ = 0;    // of one chain of one variable, as bits
  std::vector<std::uint8_t> bits_;  // [(variable * chains + chain) * column_bytes + draw / 8]
  std::vector<std::int8_t> bytes_;  // [(variable * chains + chain) * held + draw]
};

}  // namespace poise
