/// Arrays in files of NumPy's: npz, a zip file of npy files, each a header in Python's notation and the numbers of one
/// array. What is wrong with a file is an InputError that names it; no size that it declares is believed before it is
/// known to be long enough.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/types.hpp>

namespace poise {

/// Throws InputError: "NAME: WHAT".
[[noreturn]] void refuse_file(std::string_view name, const std::string& what);

/// The lowest `count` bytes of a number, the lowest first.
[[nodiscard]] std::string little_endian(std::uint64_t value, std::size_t count);
[[nodiscard]] std::uint64_t from_little_endian(std::string_view bytes);

/// Product of the shape times `number_bytes`; nothing where it is more than 64 bits hold.
[[nodiscard]] std::optional<std::uint64_t> bytes_of(const std::vector<std::uint64_t>& shape,
                                                    std::uint64_t number_bytes);

/// "[3, 4]"
[[nodiscard]] std::string shape_text(const std::vector<std::uint64_t>& shape);

/// The files in a zip file, by its central directory: local headers may leave sizes out. A zip file in the 64-bit form,
/// one in several parts, or with encryption is an InputError, and so is damage.
class ZipReader {
 public:
  struct Entry {
    std::string_view name;
    std::uint32_t crc = 0;
    std::uint64_t packed = 0;  ///< bytes in the file
    std::uint64_t size = 0;    ///< bytes once unpacked
    std::uint64_t at = 0;      ///< where its local header is
    unsigned method = 0;
    unsigned flags = 0;
  };

  ZipReader(std::string_view content, std::string_view name);

  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }

  /// The bytes of an entry, checked against its checksum.
  [[nodiscard]] std::string unpack(const Entry& entry) const;

 private:
  [[nodiscard]] std::uint64_t number(std::uint64_t at, std::size_t bytes) const {
    return from_little_endian(content_.substr(at, bytes));
  }
  [[nodiscard]] std::uint64_t find_end() const;
  [[nodiscard]] std::string_view packed_bytes(const Entry& entry) const;
  [[noreturn]] void fail(const std::string& what) const { refuse_file(name_, what); }

  std::string_view content_;
  std::string_view name_;
  std::uint64_t directory_ = 0;
  std::vector<Entry> entries_;
};

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

/// What the header of an npy file says.
struct NpyHeader {
  std::string type;
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;
};

/// An npy file: its header, and the bytes after it.
struct Npy {
  NpyHeader header;
  std::string_view data;
};

[[nodiscard]] Npy parse_npy(std::string_view content, std::string_view name);

/// Throws an InputError where the data are not as long as the shape calls for.
void check_bytes(const Npy& npy, std::uint64_t number_bytes, std::string_view name);

/// Numbers of an array of any real type, by rows.
struct NumberArray {
  std::vector<std::uint64_t> shape;
  std::vector<double> values;
};

/// Floats of 32 or 64 bits, or whole numbers of 8 to 64.
[[nodiscard]] NumberArray numbers_of(const Npy& npy, std::string_view name);

}  // namespace poise
