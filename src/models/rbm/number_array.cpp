/// Arrays of numbers from npy, npz and text.
#include "models/rbm/number_array.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include "base/file.hpp"
#include "models/ising/ising_model.hpp"

namespace poise {

namespace {

NumberArray from_npz(std::string_view content, std::string_view name) {
  const ZipReader zip(content, name);
  std::vector<std::string> names;
  const ZipReader::Entry* chosen = nullptr;
  for (const ZipReader::Entry& entry : zip.entries()) {
    if (!entry.name.ends_with(".npy")) continue;
    names.emplace_back(entry.name.substr(0, entry.name.size() - 4));
    const bool is_named =
        names.back() == "X" || names.back() == "x" || names.back() == "data" || names.back() == "arr_0";
    if (is_named && chosen == nullptr) chosen = &entry;
  }
  if (chosen == nullptr && names.size() == 1) {
    chosen = &*std::find_if(zip.entries().begin(), zip.entries().end(),
                            [](const ZipReader::Entry& entry) { return entry.name.ends_with(".npy"); });
  }
  if (chosen == nullptr) {
    refuse_file(name, fmt::format("found the arrays {}, expected one, or one named X, x, data or arr_0",
                                  names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
  }
  const std::string bytes = zip.unpack(*chosen);
  const std::string within = fmt::format("{}, {}", name, quote(chosen->name));
  return numbers_of(parse_npy(bytes, within), within);
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
  NumberArray out{{matrix.rows, matrix.columns}, {}};
  out.values = matrix.values;
  return out;
}

}  // namespace

NumberArray parse_number_array(std::string_view content, std::string_view name) {
  if (content.starts_with(kNpyMagic)) return numbers_of(parse_npy(content, name), name);
  if (content.starts_with("PK")) return from_npz(content, name);
  return from_text(content, name);
}

NumberArray read_number_array(const std::string& path) { return parse_number_array(read_file(path), path); }

}  // namespace poise
