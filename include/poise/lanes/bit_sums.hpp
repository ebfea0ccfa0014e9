/// Sums over the variables of a block of chains that are bits, one for each chain.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <poise/lanes/bit_vector.hpp>
#include <poise/types.hpp>

namespace poise {

/// A bit for each chain, made of the words at one or two positions: `first`, or whether the two differ.
struct BitTerm {
  static constexpr Index kNone = ~Index{0};
  Index first;
  Index second = kNone;
};

/// out[lane] is how many of the terms are set, `words` * 64 lanes.
void count_terms(const std::uint64_t* state, std::size_t words, std::span<const BitTerm> terms,
                 std::span<std::int64_t> out);
/// The same with weights: the sum of those of the terms that are set.
void weigh_terms(const std::uint64_t* state, std::size_t words, std::span<const BitTerm> terms,
                 std::span<const std::int64_t> weights, std::span<std::int64_t> out);
/// out[lane] is at how many positions the chain differs from `reference`.
void count_differences(const std::uint64_t* state, std::size_t words, std::span<const Value> reference,
                       std::span<std::int64_t> out);

}  // namespace poise
