/// Networks that fall apart: which variables hang together, and the network that a part of them makes.
#pragma once

#include <span>
#include <vector>

#include <poise/network.hpp>

namespace poise {

/// The free variables with more than one level, by connected part: two that share a factor are in the same one.
/// Variables are ascending, parts by their first variable. Parts are independent of each other.
[[nodiscard]] std::vector<std::vector<Index>> connected_parts(const Network& network);

/// The network of some variables, numbered in their order, with their names, and of all factors that depend on one of
/// them or more; observed variables and those with one level leave the scopes. The other variables of these factors
/// must be in the part too: throws InputError where a factor joins the part to a free variable outside.
///
/// Factors that depend on no free variable are in no part, so the partition function of `network` is that of all parts
/// together times e to the power of `log_constant_of`.
[[nodiscard]] Network part_of(const Network& network, std::span<const Index> variables);

/// Natural logarithm of the product of the factors that depend on no free variable of more than one level.
[[nodiscard]] double log_constant_of(const Network& network);

}  // namespace poise
