/// The layout of variables as the JSON text that files keep: what the dimensions of the draws do not say.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include <poise/trace.hpp>

namespace poise {

/// Names are not part of it; they are a variable of the file.
[[nodiscard]] std::string layout_text(const VariableLayout& layout);

/// The layout that was written so. Throws an InputError that begins with the reader's own word for the file, as in
/// "run.nc has a layout with ..."; `most` bounds the number of variables, for a damaged one must not decide how much
/// memory is taken.
[[nodiscard]] VariableLayout parse_layout(const nlohmann::json& stored, const std::string& path, std::uint64_t most);

}  // namespace poise
