/// Generators of small models, one for each kind.
#pragma once

#include "laws/dice.hpp"
#include "laws/small_model.hpp"

namespace poise::laws {

/// At most so many states: an exact draw and a chi-square look at all of them.
inline constexpr std::size_t kMostStates = 4096;

using Generator = SmallModel (*)(Dice& dice, const Folder& folder);

struct Kind {
  const char* name;
  Generator make;
};

// Spins.
SmallModel lattice(Dice& dice, const Folder& folder);
SmallModel antiferromagnet(Dice& dice, const Folder& folder);
SmallModel graph(Dice& dice, const Folder& folder);
SmallModel spin_glass(Dice& dice, const Folder& folder);
SmallModel maxcut(Dice& dice, const Folder& folder);
SmallModel qubo(Dice& dice, const Folder& folder);
SmallModel bernoulli(Dice& dice, const Folder& folder);
SmallModel hidden_markov(Dice& dice, const Folder& folder);

// Networks.
SmallModel potts(Dice& dice, const Folder& folder);
SmallModel markov(Dice& dice, const Folder& folder);
SmallModel zeros(Dice& dice, const Folder& folder);
SmallModel islands(Dice& dice, const Folder& folder);
SmallModel bayes(Dice& dice, const Folder& folder);
SmallModel evidence(Dice& dice, const Folder& folder);
SmallModel high_order(Dice& dice, const Folder& folder);

// RBMs and targets of users.
SmallModel rbm(Dice& dice, const Folder& folder);
SmallModel user_values(Dice& dice, const Folder& folder);
SmallModel user_gradient(Dice& dice, const Folder& folder);
SmallModel user_ratios(Dice& dice, const Folder& folder);
SmallModel user_support(Dice& dice, const Folder& folder);
SmallModel own_target(Dice& dice, const Folder& folder);

/// A model that only tells log p and the log ratios of single changes: nothing of its structure can be seen.
[[nodiscard]] Model hidden_in_user_code(const SmallModel& small);

/// log p = strength m^3 / n^2 by user code, with m the sum of spins relative to a planted state of n.
[[nodiscard]] Model planted_user_triples(const std::vector<double>& planted, double strength, bool has_gradient);

}  // namespace poise::laws
