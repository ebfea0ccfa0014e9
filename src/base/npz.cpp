/// Zip files by their directory, headers of npy files in Python's notation, and numbers of any type as doubles.
#include "base/npz.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <set>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <poise/extend/base/spec.hpp>
#include "base/image/inflate.hpp"

namespace poise {

namespace {

constexpr std::string_view kLocal = "PK\x03\x04";
constexpr std::string_view kCentral = "PK\x01\x02";
constexpr std::string_view kEnd = "PK\x05\x06";
constexpr std::uint64_t kLocalBytes = 30;
constexpr std::uint64_t kCentralBytes = 46;
constexpr std::uint64_t kEndBytes = 22;
constexpr std::uint64_t kLongestComment = 0xffff;
constexpr std::uint64_t kElsewhere = 0xffffffff;              // the value is in a record of the 64-bit form
constexpr std::size_t kInflatedChunk = std::size_t{1} << 22;  // memory is taken as bytes arrive
constexpr std::size_t kMaxDimensions = 32;                    // NumPy's own limit for long

std::span<const std::uint8_t> as_numbers(std::string_view bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

/// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`, keys in any order. But for quotes, parentheses,
/// words, last commas and the L that Python 2 put behind integers it is JSON.
NpyHeader parse_header(std::string_view text, std::string_view name) {
  using Json = nlohmann::json;
  const auto fail = [&](std::string_view found) {
    refuse_file(name,
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

struct NumberType {
  std::string_view name;
  std::size_t bytes;
  double (*read)(const char*);
};

template <class T>
double read_as(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

template <class T>
constexpr NumberType type_of(std::string_view name) {
  return {name, sizeof(T), &read_as<T>};
}

constexpr std::array kTypes = {
    type_of<std::uint8_t>("|b1"),  type_of<std::uint8_t>("|u1"),  type_of<std::int8_t>("|i1"),
    type_of<std::uint16_t>("<u2"), type_of<std::int16_t>("<i2"),  type_of<std::uint32_t>("<u4"),
    type_of<std::int32_t>("<i4"),  type_of<std::uint64_t>("<u8"), type_of<std::int64_t>("<i8"),
    type_of<float>("<f4"),         type_of<double>("<f8"),
};

}  // namespace

void refuse_file(std::string_view name, const std::string& what) {
  throw InputError(fmt::format("{}: {}", name, what));
}

std::optional<std::uint64_t> bytes_of(const std::vector<std::uint64_t>& shape, std::uint64_t number_bytes) {
  std::uint64_t bytes = number_bytes;
  if (std::find(shape.begin(), shape.end(), 0U) != shape.end()) return 0;
  for (const std::uint64_t length : shape) {
    if (bytes > std::numeric_limits<std::uint64_t>::max() / length) return std::nullopt;
    bytes *= length;
  }
  return bytes;
}

std::string shape_text(const std::vector<std::uint64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::string little_endian(std::uint64_t value, std::size_t count) {
  std::string bytes;
  for (std::size_t k = 0; k < count; ++k) bytes.push_back(static_cast<char>(value >> (8 * k) & 0xff));
  return bytes;
}

std::uint64_t from_little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t k = bytes.size(); k-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[k]);
  return value;
}

ZipReader::ZipReader(std::string_view content, std::string_view name) : content_(content), name_(name) {
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

std::string ZipReader::unpack(const Entry& entry) const {
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

/// The last record, found from behind: only a comment may follow it.
std::uint64_t ZipReader::find_end() const {
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

std::string_view ZipReader::packed_bytes(const Entry& entry) const {
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
    fail(
        fmt::format("found another name at byte {}, expected {} as in the zip directory", entry.at, quote(entry.name)));
  }
  const std::uint64_t begin = entry.at + kLocalBytes + name_bytes + number(entry.at + 28, 2);
  if (begin > directory_ || directory_ - begin < entry.packed) misplaced();
  return content_.substr(begin, entry.packed);
}

Npy parse_npy(std::string_view content, std::string_view name) {
  if (!content.starts_with(kNpyMagic) || content.size() < 10) {
    refuse_file(name, fmt::format("found {}, expected the beginning of an npy file", quote(content.substr(0, 6))));
  }
  const int version = static_cast<unsigned char>(content[6]);
  if (version < 1 || version > 3) {
    refuse_file(name, fmt::format("found an npy file of version {}, expected 1, 2 or 3", version));
  }
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::string_view after = content.substr(8);
  const std::uint64_t length = from_little_endian(after.substr(0, length_bytes));
  if (after.size() < length_bytes || after.size() - length_bytes < length) {
    refuse_file(name,
                fmt::format("found a header of {} bytes announced in {}, expected fewer", length, content.size()));
  }
  return {parse_header(after.substr(length_bytes, length), name), after.substr(length_bytes + length)};
}

void check_bytes(const Npy& npy, std::uint64_t number_bytes, std::string_view name) {
  if (bytes_of(npy.header.shape, number_bytes) == npy.data.size()) return;
  refuse_file(name,
              fmt::format("found {} bytes of numbers for shape {} and type {}, expected as many as these call for",
                          npy.data.size(), shape_text(npy.header.shape), quote(npy.header.type)));
}

NumberArray numbers_of(const Npy& npy, std::string_view name) {
  const auto type =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const NumberType& one) { return one.name == npy.header.type; });
  if (type == kTypes.end()) {
    refuse_file(name,
                fmt::format("found numbers of type {}, expected floats such as '<f8', whole numbers such as '<i8', "
                            "or booleans",
                            quote(npy.header.type)));
  }
  check_bytes(npy, type->bytes, name);
  NumberArray out{npy.header.shape, {}};
  const std::size_t count = npy.data.size() / type->bytes;
  out.values.resize(count);
  if (!npy.header.fortran_order) {
    for (std::size_t k = 0; k < count; ++k) out.values[k] = type->read(npy.data.data() + k * type->bytes);
    return out;
  }
  std::vector<std::uint64_t> place(out.shape.size(), 0);  // the first dimension changes fastest in the file
  for (std::size_t k = 0; k < count; ++k) {
    std::size_t to = 0;
    for (std::size_t d = 0; d < place.size(); ++d) to = to * out.shape[d] + place[d];
    out.values[to] = type->read(npy.data.data() + k * type->bytes);
    for (std::size_t d = 0; d < place.size() && ++place[d] == out.shape[d]; ++d) place[d] = 0;
  }
  return out;
}

}  // namespace poise
