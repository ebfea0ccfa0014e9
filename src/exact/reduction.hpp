/// What elimination does with the entries of a table that differ in the variable that goes.
#pragma once

namespace poise {

/// The logarithm of the sum of what the entries are logarithms of, or the largest of them.
enum class Reduction { sum, max };

}  // namespace poise
