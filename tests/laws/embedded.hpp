/// A small model beside a part that no junction tree can be made of: exact inference is out of reach, and the marginals
/// of the small part are what they were.
#pragma once

#include <optional>

#include "laws/small_model.hpp"

namespace poise::laws {

struct Embedded {
  Model model;
  Known known;  ///< of all variables
};

/// Nothing where the model is neither a network nor one of spins.
[[nodiscard]] std::optional<Embedded> embed(const SmallModel& small, const Known& known);

}  // namespace poise::laws
