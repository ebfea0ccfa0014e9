/// Reading and writing zip files, by the records of PKWARE's application note: 4.3.7, 4.3.12 and 4.3.16.
#include "models/rbm/rbm_weights_zip.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "base/image/inflate.hpp"
#include <poise/extend/base/spec.hpp>
#include "models/rbm/rbm_weights_parts.hpp"

namespace poise {
namespace {

constexpr std::string_view kLocal = "PK\x03\x04";
constexpr std::string_view kCentral = "PK\x01\x02";
constexpr std::string_view kEnd = "PK\x05\x06";
constexpr std::uint64_t kLocalBytes = 30;
constexpr std::uint64_t kCentralBytes = 46;
constexpr std::uint64_t kEndBytes = 22;
constexpr std::uint64_t kLongestComment = 0xffff;
constexpr std::uint64_t kElsewhere = 0xffffffff;                // the value is in a record of the 64-bit form
constexpr std::size_t kChunk = std::size_t{1} << 22;            // memory is taken as bytes arrive
constexpr std::uint64_t kFirstDay = std::uint64_t{0x21} << 16;  // 1 January 1980, the earliest date there is

std::span<const std::uint8_t> as_numbers(std::string_view bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

}  // namespace

void ZipReader::fail(const std::string& what) const { refuse_rbm(name_, what); }

std::uint64_t ZipReader::number(std::uint64_t at, std::size_t bytes) const {
  return from_little_endian(content_.substr(at, bytes));
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
      const std::size_t chunk = std::min<std::uint64_t>(kChunk, entry.size - before);
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

void ZipWriter::add(std::string_view entry_name, std::string_view bytes) {
  const std::string common = little_endian(20, 2) + little_endian(0, 4) + little_endian(kFirstDay, 4) +
                             little_endian(crc32_of(as_numbers(bytes)), 4) + little_endian(bytes.size(), 4) +
                             little_endian(bytes.size(), 4) + little_endian(entry_name.size(), 2) + little_endian(0, 2);
  directory_ += std::string(kCentral) + little_endian(20, 2) + common + little_endian(0, 6) + little_endian(0, 4) +
                little_endian(content_.size(), 4) + std::string(entry_name);
  content_ += std::string(kLocal) + common + std::string(entry_name);
  content_ += bytes;
  ++count_;
}

std::string ZipWriter::finish() {
  const std::string end = std::string(kEnd) + little_endian(0, 4) + little_endian(count_, 2) +
                          little_endian(count_, 2) + little_endian(directory_.size(), 4) +
                          little_endian(content_.size(), 4) + little_endian(0, 2);
  return std::move(content_) + directory_ + end;
}

}  // namespace poise
