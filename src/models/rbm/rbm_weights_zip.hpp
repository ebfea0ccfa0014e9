/// Zip files as far as npz files need them: entries of known size, stored or deflated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace poise {

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
  [[nodiscard]] std::uint64_t number(std::uint64_t at, std::size_t bytes) const;
  [[nodiscard]] std::uint64_t find_end() const;
  [[nodiscard]] std::string_view packed_bytes(const Entry& entry) const;
  [[noreturn]] void fail(const std::string& what) const;

  std::string_view content_;
  std::string_view name_;
  std::uint64_t directory_ = 0;
  std::vector<Entry> entries_;
};

/// Writes entries without compression.
class ZipWriter {
 public:
  void add(std::string_view entry_name, std::string_view bytes);

  /// The whole file. It may hold at most 2^32 - 1 bytes.
  [[nodiscard]] std::string finish();

 private:
  std::string content_;
  std::string directory_;
  std::uint64_t count_ = 0;
};

}  // namespace poise
