/// NumPy's npz format: a zip file of npy files, each a header in Python's notation and the numbers of one array.
#include <algorithm>
#include <charconv>
#include <list>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include "models/rbm/rbm_weights_parts.hpp"
#include "models/rbm/rbm_weights_zip.hpp"

namespace poise {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxDimensions = 32;         // NumPy's own limit for long
constexpr std::uint64_t kMostBytes = 0xffff'0000;  // of an npz file in the 32-bit form, with room for its directory

/// What the header of an npy file says.
struct NpyHeader {
  std::string type;
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;
};

/// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`, keys in any order.
class NpyHeaderReader {
 public:
  NpyHeaderReader(std::string_view text, std::string_view name) : rest_(text), name_(name) {}

  NpyHeader read() {
    NpyHeader header;
    unsigned seen = 0;
    expect('{');
    while (!take('}')) {
      const std::string key = string();
      expect(':');
      const unsigned bit = key == "descr" ? 1 : key == "fortran_order" ? 2 : key == "shape" ? 4 : 0;
      if (bit == 0 || (seen & bit) != 0) fail(key);
      seen |= bit;
      if (bit == 1) header.type = string();
      if (bit == 2) header.fortran_order = boolean();
      if (bit == 4) header.shape = tuple();
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_blanks();
    if (!rest_.empty()) fail(rest_);
    if (seen != 7) fail("a header without all of them");
    return header;
  }

 private:
  [[noreturn]] void fail(std::string_view found) const {
    refuse_rbm(name_,
               fmt::format("found {}, expected an npy header with 'descr' (one type), 'fortran_order' and 'shape'",
                           quote(found)));
  }

  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }

  bool take(char c) {
    skip_blanks();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char c) {
    if (!take(c)) fail(rest_);
  }

  std::string string() {
    skip_blanks();
    const char mark = rest_.empty() ? '\0' : rest_[0];
    const std::size_t end = mark == '\'' || mark == '"' ? rest_.find(mark, 1) : std::string_view::npos;
    if (end == std::string_view::npos) fail(rest_);
    std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }

  bool boolean() {
    skip_blanks();
    for (const std::string_view word : {"True", "False"}) {
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return word == "True";
    }
    fail(rest_);
  }

  std::vector<std::uint64_t> tuple() {
    std::vector<std::uint64_t> numbers;
    expect('(');
    while (!take(')')) {
      skip_blanks();
      std::uint64_t number = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
      if (error != std::errc() || numbers.size() == kMaxDimensions) fail(rest_);
      numbers.push_back(number);
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      if (rest_.starts_with('L')) rest_.remove_prefix(1);  // as Python 2 wrote it
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return numbers;
  }

  std::string_view rest_;
  std::string_view name_;
};

/// An npy file: its header, and the bytes after it.
struct Npy {
  NpyHeader header;
  std::string_view data;
};

Npy parse_npy(std::string_view content, std::string_view name) {
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
  return {NpyHeaderReader(after.substr(length_bytes, length), name).read(), after.substr(length_bytes + length)};
}

void check_bytes(const Npy& npy, std::uint64_t number_bytes, std::string_view name) {
  if (bytes_of(npy.header.shape, number_bytes) == npy.data.size()) return;
  refuse_rbm(name, fmt::format("found {} bytes of numbers for shape {} and type {}, expected as many as these call for",
                               npy.data.size(), shape_text(npy.header.shape), quote(npy.header.type)));
}

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
  return std::string(kMagic) + little_endian(1, 2) + little_endian(header.size(), 2) + header;
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
