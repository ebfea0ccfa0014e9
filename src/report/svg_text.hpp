/// Text in SVG: escaping, widths and coordinates.
#pragma once

#include <string>
#include <string_view>

namespace poise::svg {

/// Text as XML: markup is escaped, and what XML cannot hold is replaced.
[[nodiscard]] std::string escaped(std::string_view text);

/// About the width of a text in a sans-serif font, rather too large than too small.
[[nodiscard]] double width_of(std::string_view text, double size);

/// A number of pixels with at most two decimals.
[[nodiscard]] std::string coordinate(double value);

}  // namespace poise::svg
