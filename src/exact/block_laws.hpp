/// Exact conditional laws of a few variables of a network, all others given: what single changes cannot reach.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <poise/network.hpp>

namespace poise {

/// Exact marginals; empty where they would take more than `operations` (EliminationPlan::operations), and where no
/// state has positive probability.
[[nodiscard]] std::optional<Marginals> cheap_marginals(const Network& network, double operations);

/// Exact marginals of variables that no other depends on.
struct ExactPart {
  std::vector<Index> variables;
  Marginals marginals;  ///< in the order of `variables`
};

/// The connected components of a network that may all be solved with so many operations. Of those of many variables
/// the search for a plan takes long by itself: components are left out that have more than `variables` in all.
[[nodiscard]] std::vector<ExactPart> cheap_parts(const Network& network, double operations, std::size_t variables);

/// The network must outlive this.
class BlockLaws {
 public:
  explicit BlockLaws(const Network& network);

  /// Free variables around `i`, nearest first and at most `most`: those that share a factor with zeros, and of two
  /// variables that share any factor those that are both in `tied`.
  [[nodiscard]] std::vector<Index> around(Index i, std::span<const std::uint8_t> tied, std::size_t most) const;

  /// The law of each variable of the block, in its order, with all others as in `x`. Empty as above.
  [[nodiscard]] std::optional<Marginals> laws(std::span<const Index> block, std::span<const Value> x,
                                              double operations) const;

 private:
  [[nodiscard]] std::span<const std::size_t> factors(Index i) const {
    return {factors_.data() + start_[i], start_[i + 1] - start_[i]};
  }

  const Network& network_;
  std::vector<std::size_t> start_;    // variables + 1
  std::vector<std::size_t> factors_;  // of each variable
  std::vector<std::uint8_t> zeros_;   // whether a factor has any
};

}  // namespace poise
