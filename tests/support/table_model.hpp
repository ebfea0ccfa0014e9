/// A TableTarget as a model of your own; compiled once, because it instantiates every kernel.
#pragma once

#include <poise/model.hpp>
#include "support/table_target.hpp"

namespace poise::testing {

[[nodiscard]] Model table_model(const TableTarget& target);

}  // namespace poise::testing
