/// Reading of zip files and of the npy files in them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <poise/extend/base/spec.hpp>
#include "base/image/inflate.hpp"
#include "models/rbm/rbm_weights.hpp"

namespace poise::npz {

inline constexpr std::string_view kLocal = "PK\x03\x04";
inline constexpr std::string_view kCentral = "PK\x01\x02";
inline constexpr std::string_view kEnd = "PK\x05\x06";
inline constexpr std::uint64_t kLocalBytes = 30;
inline constexpr std::uint64_t kCentralBytes = 46;
inline constexpr std::uint64_t kEndBytes = 22;
inline constexpr std::uint64_t kLongestComment = 0xffff;
inline constexpr std::uint64_t kElsewhere = 0xffffffff;              // the value is in a record of the 64-bit form
inline constexpr std::size_t kInflatedChunk = std::size_t{1} << 22;  // memory is taken as bytes arrive

inline std::span<const std::uint8_t> as_numbers(std::string_view bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

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

  ZipReader(std::string_view content, std::string_view name) : content_(content), name_(name) {
    const std::uint64_t end = find_end();
    const std::uint64_t count = number(end + 10, 2);
    const std::uint64_t bytes = number(end + 12, 4);
    directory_ = number(end + 16, 4);
    if (count == 0xffff || bytes == kElsewhere || directory_ == kElsewhere) {
      fail("found a zip file in the 64-bit form, expected one of less than 4 GiB and 65535 entries");
    }
    if (number(end + 4, 2) != 0 || number(end + 6, 2) != 0 || number(end + 8, 2) != count) {
      fail("found one part of a zip file, expected all of it in one file");
    }
    if (directory_ + bytes != end) {
      fail(fmt::format("found a zip directory of {} bytes at byte {}, expected it to end at byte {}", bytes, directory_,
                       end));
    }
    std::uint64_t at = directory_;
    for (std::uint64_t k = 0; k < count; ++k) {
      if (end - at < kCentralBytes || content_.substr(at, 4) != kCentral) {
        fail(fmt::format("found no entry {} at byte {} of a zip directory of {}, expected one", k + 1, at, count));
      }
      const std::uint64_t name_bytes = number(at + 28, 2);
      const std::uint64_t all_bytes = kCentralBytes + name_bytes + number(at + 30, 2) + number(at + 32, 2);
      if (end - at < all_bytes) {
        fail(fmt::format("found entry {} of the zip directory cut off, expected {} bytes", k + 1, all_bytes));
      }
      Entry entry;
      entry.name = content_.substr(at + kCentralBytes, name_bytes);
      entry.flags = static_cast<unsigned>(number(at + 8, 2));
      entry.method = static_cast<unsigned>(number(at + 10, 2));
      entry.crc = static_cast<std::uint32_t>(number(at + 16, 4));
      entry.packed = number(at + 20, 4);
      entry.size = number(at + 24, 4);
      entry.at = number(at + 42, 4);
      entries_.push_back(entry);
      at += all_bytes;
    }
    if (at != end)
      fail(fmt::format("found {} bytes after {} entries of the zip directory, expected none", end - at, count));
  }

  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }

  /// The bytes of an entry, checked against its checksum.
  [[nodiscard]] std::string unpack(const Entry& entry) const {
    const std::string_view packed = packed_bytes(entry);
    const auto wrong_size = [&] {
      fail(fmt::format("found {} bytes of {} that do not unpack to as many as announced, expected {}", entry.packed,
                       quote(entry.name), entry.size));
    };
    const bool possible = entry.method == 0 ? entry.size == entry.packed : entry.size <= entry.packed * kMostDeflation;
    if (!possible) wrong_size();
    std::string bytes;
    if (entry.method == 0) {
      bytes = packed;
    } else {
      Inflater inflater(packed, Wrapping::none, fmt::format("{}, {}", name_, quote(entry.name)));
      while (bytes.size() < entry.size) {
        const std::size_t before = bytes.size();
        const std::size_t chunk = std::min<std::uint64_t>(kInflatedChunk, entry.size - before);
        bytes.resize(before + chunk);
        if (inflater.read({reinterpret_cast<std::uint8_t*>(bytes.data()) + before, chunk}) < chunk) wrong_size();
      }
      std::uint8_t more = 0;
      if (inflater.read({&more, 1}) > 0 || inflater.left_over() > 0) wrong_size();
    }
    const std::uint32_t crc = crc32_of(as_numbers(bytes));
    if (crc != entry.crc) {
      fail(fmt::format("found {} with checksum {:08x}, expected {:08x}: the file is damaged", quote(entry.name), crc,
                       entry.crc));
    }
    return bytes;
  }

 private:
  [[nodiscard]] std::uint64_t number(std::uint64_t at, std::size_t bytes) const {
    return from_little_endian(content_.substr(at, bytes));
  }

  /// The last record, found from behind: only a comment may follow it.
  [[nodiscard]] std::uint64_t find_end() const {
    if (content_.size() >= kEndBytes) {
      const std::uint64_t last = content_.size() - kEndBytes;
      const std::uint64_t first = last - std::min(last, kLongestComment);
      for (std::uint64_t at = last + 1; at-- > first;) {
        if (content_.substr(at, 4) == kEnd && at + kEndBytes + number(at + 20, 2) == content_.size()) return at;
      }
    }
    fail(fmt::format("found {} bytes without a zip directory at their end, expected an npz file that is not cut off",
                     content_.size()));
  }

  [[nodiscard]] std::string_view packed_bytes(const Entry& entry) const {
    if (entry.packed == kElsewhere || entry.size == kElsewhere || entry.at == kElsewhere) {
      fail(fmt::format("found {} in the 64-bit form of zip, expected one of less than 4 GiB", quote(entry.name)));
    }
    if ((entry.flags & 1U) != 0) fail(fmt::format("found {} encrypted, expected it in the clear", quote(entry.name)));
    if (entry.method != 0 && entry.method != 8) {
      fail(fmt::format("found {} compressed by method {}, expected it stored or deflated", quote(entry.name),
                       entry.method));
    }
    const auto misplaced = [&] {
      fail(fmt::format("found no room for {} bytes of {} at byte {}, expected them before byte {}", entry.packed,
                       quote(entry.name), entry.at, directory_));
    };
    if (entry.at > directory_ || directory_ - entry.at < kLocalBytes) misplaced();
    if (content_.substr(entry.at, 4) != kLocal) {
      fail(fmt::format("found no zip entry at byte {}, expected {}", entry.at, quote(entry.name)));
    }
    const std::uint64_t name_bytes = number(entry.at + 26, 2);
    if (content_.substr(entry.at + kLocalBytes, name_bytes) != entry.name) {
      fail(fmt::format("found another name at byte {}, expected {} as in the zip directory", entry.at,
                       quote(entry.name)));
    }
    const std::uint64_t begin = entry.at + kLocalBytes + name_bytes + number(entry.at + 28, 2);
    if (begin > directory_ || directory_ - begin < entry.packed) misplaced();
    return content_.substr(begin, entry.packed);
  }

  [[noreturn]] void fail(const std::string& what) const { refuse_rbm(name_, what); }

  std::string_view content_;
  std::string_view name_;
  std::uint64_t directory_ = 0;
  std::vector<Entry> entries_;
};

inline constexpr std::string_view kMagic = "\x93NUMPY";
inline constexpr std::size_t kMaxDimensions = 32;  // NumPy's own limit for long

/// What the header of an npy file says.
struct NpyHeader {
  std::string type;
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;
};

/// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`, keys in any order. But for quotes, parentheses,
/// words, last commas and the L that Python 2 put behind integers it is JSON.
inline NpyHeader parse_header(std::string_view text, std::string_view name) {
  using Json = nlohmann::json;
  const auto fail = [&](std::string_view found) {
    refuse_rbm(name,
               fmt::format("found {}, expected an npy header with 'descr' (one type), 'fortran_order' and 'shape'",
                           quote(found)));
  };
  std::string json;
  char mark = '\0';  // that a string began with, within one
  for (const char c : text) {
    const bool is_mark = mark == '\0' ? c == '\'' || c == '"' : c == mark;
    if (is_mark || mark != '\0') {
      json += is_mark ? '"' : c;
      if (is_mark) mark = mark == '\0' ? c : '\0';
      continue;
    }
    if (c == ')' || c == '}') {
      const std::size_t last = json.find_last_not_of(" \t\r\n");
      if (last != std::string::npos && json[last] == ',') json[last] = ' ';
    }
    if (c != 'L') json += c == '(' ? '[' : c == ')' ? ']' : c == 'T' ? 't' : c == 'F' ? 'f' : c;
  }
  std::set<std::string> keys;
  const auto see = [&](int depth, Json::parse_event_t event, const Json& parsed) {
    if (event != Json::parse_event_t::key) return true;
    const auto key = parsed.get<std::string>();
    const bool is_known = key == "descr" || key == "fortran_order" || key == "shape";
    if (depth != 1 || !is_known || !keys.insert(key).second) fail(key);
    return true;
  };
  const Json header = Json::parse(json, see, false);
  const auto is_length = [](const Json& number) { return number.is_number_unsigned(); };
  if (header.is_object() && keys.size() != 3) fail("a header without all of them");
  if (!header.is_object() || !header["descr"].is_string() || !header["fortran_order"].is_boolean() ||
      !header["shape"].is_array() || header["shape"].size() > kMaxDimensions ||
      !std::all_of(header["shape"].begin(), header["shape"].end(), is_length)) {
    fail(text);
  }
  return {header["descr"], header["fortran_order"], header["shape"]};
}

/// An npy file: its header, and the bytes after it.
struct Npy {
  NpyHeader header;
  std::string_view data;
};

inline Npy parse_npy(std::string_view content, std::string_view name) {
  if (!content.starts_with(kMagic) || content.size() < 10) {
    refuse_rbm(name, fmt::format("found {}, expected the beginning of an npy file", quote(content.substr(0, 6))));
  }
  const int version = static_cast<unsigned char>(content[6]);
  if (version < 1 || version > 3) {
    refuse_rbm(name, fmt::format("found an npy file of version {}, expected 1, 2 or 3", version));
  }
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::string_view after = content.substr(8);
  const std::uint64_t length = from_little_endian(after.substr(0, length_bytes));
  if (after.size() < length_bytes || after.size() - length_bytes < length) {
    refuse_rbm(name, fmt::format("found a header of {} bytes announced in {}, expected fewer", length, content.size()));
  }
  return {parse_header(after.substr(length_bytes, length), name), after.substr(length_bytes + length)};
}

inline void check_bytes(const Npy& npy, std::uint64_t number_bytes, std::string_view name) {
  if (bytes_of(npy.header.shape, number_bytes) == npy.data.size()) return;
  refuse_rbm(name, fmt::format("found {} bytes of numbers for shape {} and type {}, expected as many as these call for",
                               npy.data.size(), shape_text(npy.header.shape), quote(npy.header.type)));
}

}  // namespace poise::npz
