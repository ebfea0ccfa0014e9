/// RBMs from and to NumPy's npz format.
#include <algorithm>
#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include "base/image/inflate.hpp"
#include "base/npz.hpp"
#include "models/rbm/rbm_weights.hpp"

namespace poise {

namespace {

constexpr std::string_view kLocal = "PK\x03\x04";
constexpr std::string_view kCentral = "PK\x01\x02";
constexpr std::string_view kEnd = "PK\x05\x06";
constexpr std::uint64_t kFirstDay = std::uint64_t{0x21} << 16;  // 1 January 1980, the earliest date there is

std::span<const std::uint8_t> as_numbers(std::string_view bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

/// Writes entries without compression.
class ZipWriter {
 public:
  void add(std::string_view entry_name, std::string_view bytes) {
    const std::string common = little_endian(20, 2) + little_endian(0, 4) + little_endian(kFirstDay, 4) +
                               little_endian(crc32_of(as_numbers(bytes)), 4) + little_endian(bytes.size(), 4) +
                               little_endian(bytes.size(), 4) + little_endian(entry_name.size(), 2) +
                               little_endian(0, 2);
    directory_ += std::string(kCentral) + little_endian(20, 2) + common + little_endian(0, 6) + little_endian(0, 4) +
                  little_endian(content_.size(), 4) + std::string(entry_name);
    content_ += std::string(kLocal) + common + std::string(entry_name);
    content_ += bytes;
    ++count_;
  }

  /// The whole file. It may hold at most 2^32 - 1 bytes.
  [[nodiscard]] std::string finish() {
    const std::string end = std::string(kEnd) + little_endian(0, 4) + little_endian(count_, 2) +
                            little_endian(count_, 2) + little_endian(directory_.size(), 4) +
                            little_endian(content_.size(), 4) + little_endian(0, 2);
    return std::move(content_) + directory_ + end;
  }

 private:
  std::string content_;
  std::string directory_;
  std::uint64_t count_ = 0;
};

constexpr std::uint64_t kMostBytes = 0xffff'0000;  // of an npz file in the 32-bit form, with room for its directory

FileArray array_of(std::string_view content, std::string_view name) {
  const Npy npy = parse_npy(content, name);
  if (npy.header.type != "<f4" && npy.header.type != "<f8") {
    refuse_rbm(name, fmt::format("found numbers of type {}, expected '<f4' or '<f8'", quote(npy.header.type)));
  }
  const std::size_t number_bytes = npy.header.type == "<f4" ? 4 : 8;
  check_bytes(npy, number_bytes, name);
  return {npy.header.shape, number_bytes, npy.header.fortran_order, npy.data};
}

std::int64_t integer_of(std::string_view content, std::string_view name) {
  const Npy npy = parse_npy(content, name);
  const bool right = (npy.header.type == "<i8" || npy.header.type == "<i4") &&
                     (npy.header.shape.empty() || npy.header.shape == std::vector<std::uint64_t>{1});
  if (!right) {
    refuse_rbm(name, fmt::format("found type {} and shape {}, expected one integer of type '<i8' or '<i4'",
                                 quote(npy.header.type), shape_text(npy.header.shape)));
  }
  const bool wide = npy.header.type == "<i8";
  check_bytes(npy, wide ? 8 : 4, name);
  const std::uint64_t bits = from_little_endian(npy.data);
  return wide ? static_cast<std::int64_t>(bits) : static_cast<std::int32_t>(bits);
}

std::string npy_header(const std::string& type, const std::string& shape) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", type, shape);
  constexpr std::size_t fixed_bytes = 10;
  const std::size_t all_bytes = (fixed_bytes + header.size() + 1 + 63) / 64 * 64;  // numbers begin at a multiple of 64
  header.resize(all_bytes - fixed_bytes - 1, ' ');
  header += '\n';
  return std::string(kNpyMagic) + little_endian(1, 2) + little_endian(header.size(), 2) + header;
}

}  // namespace

RbmWeights parse_npz(std::string_view content, std::string_view name) {
  const ZipReader zip(content, name);
  FileArrays arrays;
  std::list<std::string> unpacked;  // what the arrays point into
  for (const ZipReader::Entry& entry : zip.entries()) {
    std::string_view array_name = entry.name;
    if (!array_name.ends_with(".npy")) continue;
    array_name.remove_suffix(4);
    const std::string within = fmt::format("{}, {}", name, quote(entry.name));
    const auto refuse_second = [&](bool second) {
      if (second) refuse_rbm(within, "found it twice, expected it once");
    };
    if (std::optional<FileArray>* place = array_named(arrays, array_name)) {
      refuse_second(place->has_value());
      *place = array_of(unpacked.emplace_back(zip.unpack(entry)), within);
    } else if (array_name == "rows" || array_name == "columns") {
      std::optional<std::int64_t>& number = array_name == "rows" ? arrays.rows : arrays.columns;
      refuse_second(number.has_value());
      number = integer_of(zip.unpack(entry), within);
    }
  }
  return assemble(arrays, name);
}

std::string npz_bytes(const RbmWeights& rbm, std::string_view name) {
  const std::uint64_t numbers = rbm.weights.size() + rbm.visible_bias.size() + rbm.hidden_bias.size();
  if (numbers > kMostBytes / sizeof(float)) {
    refuse_rbm(name, fmt::format("found {} numbers, expected at most {} in an npz file; a safetensors file takes more",
                                 numbers, kMostBytes / sizeof(float)));
  }
  ZipWriter zip;
  const auto add = [&](std::string_view array_name, const std::string& header, std::string_view bytes) {
    zip.add(fmt::format("{}.npy", array_name), header + std::string(bytes));
  };
  add("weights", npy_header("<f4", fmt::format("({}, {})", rbm.hidden, rbm.visible)), bytes_view(rbm.weights));
  add("visible_bias", npy_header("<f4", fmt::format("({},)", rbm.visible)), bytes_view(rbm.visible_bias));
  add("hidden_bias", npy_header("<f4", fmt::format("({},)", rbm.hidden)), bytes_view(rbm.hidden_bias));
  if (!rbm.visible_rates.empty()) {
    add("visible_rates", npy_header("<f4", fmt::format("({},)", rbm.visible)), bytes_view(rbm.visible_rates));
  }
  if (rbm.rows > 0) {
    add("rows", npy_header("<i8", "()"), little_endian(rbm.rows, 8));
    add("columns", npy_header("<i8", "()"), little_endian(rbm.columns, 8));
  }
  return zip.finish();
}

}  // namespace poise
