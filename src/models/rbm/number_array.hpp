/// Arrays of numbers from files of other programs: NumPy's npy and npz, and text.
#pragma once

#include <string>
#include <string_view>

#include "base/npz.hpp"

namespace poise {

/// Reads `.npy`, `.npz` (its only array, or the one named X, x, data or arr_0) and text: rows of numbers between commas
/// or blanks, maybe below a line of names. Told apart by content. InputError names what is wrong with the file.
[[nodiscard]] NumberArray read_number_array(const std::string& path);
[[nodiscard]] NumberArray parse_number_array(std::string_view content, std::string_view name);

}  // namespace poise
