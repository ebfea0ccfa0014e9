/// Variables that a user wants to keep a level.
#pragma once

#include <optional>
#include <vector>

#include <poise/network.hpp>

namespace poise {

/// `network` with the fixed variables observed: an entry for each variable, or none at all. Throws InputError where a
/// level does not exist or is not the observed one.
[[nodiscard]] Network with_fixed_levels(Network network, const std::vector<std::optional<Value>>& fixed);

}  // namespace poise
