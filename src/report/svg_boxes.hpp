/// One box of a box plot.
#pragma once

#include <functional>
#include <string>

#include <poise/plot.hpp>

namespace poise::svg {

struct BoxPlace {
  double middle;  ///< x of its middle line
  double width;
  std::string color;
};

/// Markup of the box; `height` gives the y of a value.
[[nodiscard]] std::string box_markup(const Boxed& box, const BoxPlace& place,
                                     const std::function<double(double)>& height);

}  // namespace poise::svg
