/// Arrays of numbers from npy, npz and text.
#include "models/rbm/number_array.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include "base/file.hpp"
#include "models/ising/ising_model.hpp"
#include "models/rbm/npz_reader.hpp"

namespace poise {

namespace {

constexpr std::uint64_t kMostNumbers = std::uint64_t{1} << 31;

struct NumberType {
  std::string_view name;
  std::size_t bytes;
  bool whole;
  float (*read)(const char*);
};

template <class T>
float read_as(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<float>(value);
}

template <class T>
constexpr NumberType type_of(std::string_view name) {
  return {name, sizeof(T), std::is_integral_v<T>, &read_as<T>};
}

constexpr std::array kTypes = {
    type_of<std::uint8_t>("|b1"),  type_of<std::uint8_t>("|u1"),  type_of<std::int8_t>("|i1"),
    type_of<std::uint16_t>("<u2"), type_of<std::int16_t>("<i2"),  type_of<std::uint32_t>("<u4"),
    type_of<std::int32_t>("<i4"),  type_of<std::uint64_t>("<u8"), type_of<std::int64_t>("<i8"),
    type_of<float>("<f4"),         type_of<double>("<f8"),
};

NumberArray array_of(const npz::Npy& npy, std::string_view name) {
  const auto type =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const NumberType& one) { return one.name == npy.header.type; });
  if (type == kTypes.end()) {
    refuse_rbm(name, fmt::format("found numbers of type {}, expected integers, booleans, float32 or float64",
                                 quote(npy.header.type)));
  }
  npz::check_bytes(npy, type->bytes, name);
  NumberArray out{npy.header.shape, type->whole, {}};
  const std::size_t count = npy.data.size() / type->bytes;
  if (count > kMostNumbers) {
    refuse_rbm(name, fmt::format("found {} numbers, expected at most {}", count, kMostNumbers));
  }
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

NumberArray from_npz(std::string_view content, std::string_view name) {
  const npz::ZipReader zip(content, name);
  std::vector<std::string> names;
  const npz::ZipReader::Entry* chosen = nullptr;
  for (const npz::ZipReader::Entry& entry : zip.entries()) {
    if (!entry.name.ends_with(".npy")) continue;
    names.emplace_back(entry.name.substr(0, entry.name.size() - 4));
    const bool is_named =
        names.back() == "X" || names.back() == "x" || names.back() == "data" || names.back() == "arr_0";
    if (is_named && chosen == nullptr) chosen = &entry;
  }
  if (chosen == nullptr && names.size() == 1) {
    chosen = &*std::find_if(zip.entries().begin(), zip.entries().end(),
                            [](const npz::ZipReader::Entry& entry) { return entry.name.ends_with(".npy"); });
  }
  if (chosen == nullptr) {
    refuse_rbm(name, fmt::format("found the arrays {}, expected one, or one named X, x, data or arr_0",
                                 names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
  }
  const std::string bytes = zip.unpack(*chosen);
  const std::string within = fmt::format("{}, {}", name, quote(chosen->name));
  return array_of(npz::parse_npy(bytes, within), within);
}

/// A line of names is left out.
NumberArray from_text(std::string_view content, std::string_view name) {
  const std::size_t end = std::min(content.find('\n'), content.size());
  const std::string_view head = content.substr(0, end);
  const std::size_t letter = head.find_first_not_of(" \t\r,\"");
  const bool has_names = letter != std::string_view::npos && head[letter] != '#' &&
                         !parse_real(head.substr(letter, head.find_first_of(" \t\r,", letter) - letter));
  std::string rows(content);
  if (has_names) std::fill(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(end), ' ');  // lines keep numbers
  const Matrix matrix = parse_matrix(rows, name);
  NumberArray out{{matrix.rows, matrix.columns}, false, {}};
  out.values.assign(matrix.values.begin(), matrix.values.end());
  return out;
}

}  // namespace

NumberArray parse_number_array(std::string_view content, std::string_view name) {
  if (content.starts_with(npz::kMagic)) return array_of(npz::parse_npy(content, name), name);
  if (content.starts_with("PK")) return from_npz(content, name);
  return from_text(content, name);
}

NumberArray read_number_array(const std::string& path) { return parse_number_array(read_file(path), path); }

}  // namespace poise
