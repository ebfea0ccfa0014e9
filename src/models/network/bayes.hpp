/// What must hold of a file that says it is a Bayesian network: rows that add up to 1, no cycle.
#pragma once

#include <optional>
#include <span>

#include <poise/network.hpp>

namespace poise {

/// Whether numbers in a file are meant as a distribution. Files round: to two decimals each number is off by at most
/// 0.005, and so is the sum for each level. What is further off changes the weight of the parents' levels, and with it
/// the network.
[[nodiscard]] bool adds_up_to_one(std::span<const double> row);

/// A variable that is its own ancestor, if there is one. The last variable of each scope is the child of the others,
/// and each variable is the child in one factor.
[[nodiscard]] std::optional<Index> own_ancestor(const Network& network);

}  // namespace poise
