/// Files of arrays whose places are known before the first number is written: NetCDF and npz.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace poise::exported {

/// One array. Numbers come draw by draw, or are here from the start.
struct Array {
  enum class Type { int8, int32, int64, float64, text };

  std::string name;
  std::string long_name;  ///< what it is called in the run, where `name` is another; else empty
  Type type = Type::float64;
  std::vector<std::uint64_t> shape;
  std::vector<std::string> dimensions;
  std::size_t text_bytes = 0;       ///< of the longest text
  std::vector<std::string> texts;   ///< all of an array of texts
  std::vector<std::int32_t> whole;  ///< all of an array of int32
  std::uint64_t offset = 0;         ///< in the file, of its first number

  [[nodiscard]] std::uint64_t entries() const;
};

using Attributes = std::vector<std::pair<std::string, std::string>>;

/// A file beside its place, which it takes by `finish`; gone otherwise. Failures are a std::runtime_error that names
/// it.
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write_at(std::uint64_t at, std::string_view bytes) const;
  [[nodiscard]] std::string read_at(std::uint64_t at, std::size_t count) const;
  void finish();

 private:
  [[noreturn]] void fail() const;

  std::string path_;
  std::string temporary_;
  int descriptor_;
};

/// The head of a NetCDF file in its classic form, with 64-bit offsets or, where an array is longer than `most` bytes,
/// with 64-bit numbers throughout (CDF-5). Sets the offsets of all arrays.
[[nodiscard]] std::string netcdf_head(std::vector<Array>& arrays, const Attributes& attributes,
                                      std::uint64_t most = (std::uint64_t{1} << 31) - 4);

/// A zip file of npy files, which are not compressed.
class NpzFile {
 public:
  /// Writes what stands before each array, and sets their offsets.
  NpzFile(std::vector<Array>& arrays, const OutputFile& file);
  /// After the last number: checksums and the directory.
  void finish();

 private:
  struct Entry {
    std::string name;
    std::uint64_t at = 0;     // of its local header
    std::uint64_t first = 0;  // of its content, npy header included
    std::uint64_t size = 0;
  };
  [[nodiscard]] std::string local_header(const Entry& entry, std::uint32_t crc) const;

  const OutputFile& file_;
  std::vector<Entry> entries_;
  std::uint64_t end_ = 0;
};

}  // namespace poise::exported
