/// Zip files as NumPy writes them, with the fields of 64 bits where something is longer than 4 GiB.
#include <algorithm>

#include <zlib.h>

#include <fmt/format.h>

#include "base/npz.hpp"
#include "store/export/array_file.hpp"

namespace poise::exported {

namespace {

constexpr std::uint64_t kElsewhere = 0xffffffff;  // the value is in a field of 64 bits
constexpr std::size_t kSumChunk = std::size_t{1} << 22;
constexpr std::uint64_t kVersion = 45;  // of zip, that has such fields
constexpr std::uint64_t kEpoch = 0x21;  // the first of January 1980, the earliest day that there is

/// Signature, then numbers of so many bytes each, the lowest first.
std::string record(std::string_view signature, std::initializer_list<std::pair<std::uint64_t, std::size_t>> fields) {
  std::string bytes(signature);
  for (const auto& [value, count] : fields) bytes += little_endian(value, count);
  return bytes;
}

std::string npy_header(const Array& array) {
  const auto type = [&]() -> std::string {
    switch (array.type) {
      case Array::Type::int8: return "|i1";
      case Array::Type::int32: return "<i4";
      case Array::Type::int64: return "<i8";
      case Array::Type::text: return fmt::format("<U{}", array.text_bytes / 4);
      default: return "<f8";
    }
  };
  std::string shape;
  for (const std::uint64_t side : array.shape) shape += fmt::format("{}, ", side);
  if (array.shape.size() > 1) shape.resize(shape.size() - 2);
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type(), shape);
  constexpr std::size_t kAlignment = 64, kPreamble = 10;
  const std::size_t whole = (kPreamble + text.size() + kAlignment) / kAlignment * kAlignment;
  text.resize(whole - kPreamble - 1, ' ');
  text += '\n';
  return std::string(kNpyMagic) + std::string("\1\0", 2) + little_endian(text.size(), 2) + text;
}

std::uint64_t number_bytes(const Array& array) {
  switch (array.type) {
    case Array::Type::int8: return 1;
    case Array::Type::int32: return 4;
    case Array::Type::text: return array.text_bytes;
    default: return 8;
  }
}

}  // namespace

std::string NpzFile::local_header(const Entry& entry, std::uint32_t crc) const {
  // The field of 64 bits is always there: then the length of a header does not depend on sizes.
  return record("PK\x03\x04", {{kVersion, 2},
                               {0x800, 2},  // names are UTF-8
                               {0, 2},
                               {0, 2},
                               {kEpoch, 2},
                               {crc, 4},
                               {kElsewhere, 4},
                               {kElsewhere, 4},
                               {entry.name.size(), 2},
                               {20, 2}}) +
         entry.name + record("", {{1, 2}, {16, 2}, {entry.size, 8}, {entry.size, 8}});
}

NpzFile::NpzFile(std::vector<Array>& arrays, const OutputFile& file) : file_(file) {
  for (Array& array : arrays) {
    Entry entry{array.name + ".npy", end_};
    const std::string head = npy_header(array);
    entry.size = head.size() + array.entries() * number_bytes(array);
    const std::string local = local_header(entry, 0);
    entry.first = entry.at + local.size();
    array.offset = entry.first + head.size();
    file_.write_at(entry.first, head);
    end_ = entry.first + entry.size;
    entries_.push_back(std::move(entry));
  }
}

void NpzFile::finish() {
  std::string directory;
  for (const Entry& entry : entries_) {
    uLong crc = crc32(0, nullptr, 0);
    for (std::uint64_t done = 0; done < entry.size; done += kSumChunk) {
      const std::string bytes =
          file_.read_at(entry.first + done, std::min<std::uint64_t>(kSumChunk, entry.size - done));
      crc = crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
    }
    file_.write_at(entry.at, local_header(entry, static_cast<std::uint32_t>(crc)));
    directory += record("PK\x01\x02", {{kVersion, 2},
                                       {kVersion, 2},
                                       {0x800, 2},
                                       {0, 2},
                                       {0, 2},
                                       {kEpoch, 2},
                                       {crc, 4},
                                       {kElsewhere, 4},
                                       {kElsewhere, 4},
                                       {entry.name.size(), 2},
                                       {28, 2},
                                       {0, 2},
                                       {0, 2},
                                       {0, 2},
                                       {0, 4},
                                       {kElsewhere, 4}}) +
                 entry.name + record("", {{1, 2}, {24, 2}, {entry.size, 8}, {entry.size, 8}, {entry.at, 8}});
  }
  file_.write_at(end_, directory);
  const std::uint64_t end = end_ + directory.size();
  const std::uint64_t count = entries_.size();
  file_.write_at(end, record("PK\x06\x06", {{44, 8},
                                            {kVersion, 2},
                                            {kVersion, 2},
                                            {0, 4},
                                            {0, 4},
                                            {count, 8},
                                            {count, 8},
                                            {directory.size(), 8},
                                            {end_, 8}}) +
                          record("PK\x06\x07", {{0, 4}, {end, 8}, {1, 4}}) +
                          record("PK\x05\x06",
                                 {{0, 2}, {0, 2}, {0xffff, 2}, {0xffff, 2}, {kElsewhere, 4}, {kElsewhere, 4}, {0, 2}}));
}

}  // namespace poise::exported
