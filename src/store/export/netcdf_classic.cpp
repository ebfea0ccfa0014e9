/// The head of a NetCDF file in the classic form: all numbers have the highest byte first, names and texts are filled
/// up to four bytes.
#include <algorithm>
#include <map>

#include "store/export/array_file.hpp"

namespace poise::exported {

namespace {

enum Tag : std::uint32_t { kDimension = 10, kVariable = 11, kAttribute = 12 };
enum Code : std::uint32_t { kByte = 1, kChar = 2, kInt = 4, kDouble = 6 };

std::uint64_t padded(std::uint64_t bytes) { return (bytes + 3) / 4 * 4; }

struct Kind {
  Code code;
  std::uint64_t bytes;
};
Kind kind_of(Array::Type type) {
  switch (type) {
    case Array::Type::int8: return {kByte, 1};
    case Array::Type::text: return {kChar, 1};
    case Array::Type::int32: return {kInt, 4};
    default: return {kDouble, 8};  // also of int64, for which the form with 64-bit offsets has no type
  }
}

class Head {
 public:
  explicit Head(bool long_numbers) : long_(long_numbers) { bytes_ = std::string("CDF") + (long_ ? '\5' : '\2'); }

  void tag(std::uint32_t value) { put(value, 4); }
  void number(std::uint64_t value) { put(value, long_ ? 8 : 4); }
  void offset(std::uint64_t value) { put(value, 8); }
  void text(std::string_view value) {
    number(value.size());
    bytes_ += value;
    bytes_.resize(bytes_.size() + padded(value.size()) - value.size());
  }
  void attributes(const Attributes& all) {
    tag(all.empty() ? 0 : kAttribute);
    number(all.size());
    for (const auto& [name, value] : all) {
      text(name);
      tag(kChar);
      text(value);
    }
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void put(std::uint64_t value, int count) {
    for (int k = count - 1; k >= 0; --k) bytes_ += static_cast<char>(value >> (8 * k) & 0xff);
  }

  bool long_;
  std::string bytes_;
};

/// Dimensions in the order in which arrays name them; texts have one more, for their bytes.
struct Dimensions {
  std::vector<std::pair<std::string, std::uint64_t>> all;
  std::map<std::string, std::size_t> number;

  void add(const std::string& name, std::uint64_t length) {
    if (number.emplace(name, all.size()).second) all.emplace_back(name, length);
  }
};

std::string text_dimension(const Array& array) { return array.name + "_bytes"; }

}  // namespace

std::string netcdf_head(std::vector<Array>& arrays, const Attributes& attributes, std::uint64_t most) {
  Dimensions dimensions;
  const auto bytes_of = [](const Array& array) {
    const std::uint64_t width = array.type == Array::Type::text ? array.text_bytes : kind_of(array.type).bytes;
    return padded(array.entries() * width);
  };
  bool is_long = false;
  for (const Array& array : arrays) {
    for (std::size_t k = 0; k < array.shape.size(); ++k) dimensions.add(array.dimensions[k], array.shape[k]);
    if (array.type == Array::Type::text) dimensions.add(text_dimension(array), array.text_bytes);
    is_long = is_long || bytes_of(array) > most;
  }
  const auto written = [&] {
    Head head(is_long);
    head.number(0);  // no dimension grows
    head.tag(kDimension);
    head.number(dimensions.all.size());
    for (const auto& [name, length] : dimensions.all) {
      head.text(name);
      head.number(length);
    }
    head.attributes(attributes);
    head.tag(kVariable);
    head.number(arrays.size());
    for (const Array& array : arrays) {
      head.text(array.name);
      const bool is_text = array.type == Array::Type::text;
      head.number(array.shape.size() + (is_text ? 1 : 0));
      for (const std::string& dimension : array.dimensions) head.number(dimensions.number.at(dimension));
      if (is_text) head.number(dimensions.number.at(text_dimension(array)));
      head.attributes(array.long_name.empty() ? Attributes{} : Attributes{{"long_name", array.long_name}});
      head.tag(kind_of(array.type).code);
      head.number(bytes_of(array));
      head.offset(array.offset);
    }
    return head.bytes();
  };
  std::uint64_t at = written().size();  // offsets change nothing of its length
  for (Array& array : arrays) {
    array.offset = at;
    at += bytes_of(array);
  }
  return written();
}

}  // namespace poise::exported
