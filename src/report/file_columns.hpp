/// The draws of a run file, some variables at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <poise/diagnose.hpp>
#include "store/netcdf.hpp"

namespace poise {

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
