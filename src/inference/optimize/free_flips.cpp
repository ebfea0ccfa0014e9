/// Components of the graph of couplings.
#include "inference/optimize/free_flips.hpp"

#include <limits>

namespace poise {

namespace {

constexpr Index kHeld = std::numeric_limits<Index>::max();

}  // namespace

FreeFlips::FreeFlips(const SpinProblem& problem) : first_(problem.num_variables(), kHeld) {
  std::vector<bool> seen(problem.num_variables(), false);
  std::vector<Index> component;
  for (Index first = 0; first < problem.num_variables(); ++first) {
    if (seen[first]) continue;
    component.assign(1, first);
    seen[first] = true;
    bool is_free = true;
    for (std::size_t at = 0; at < component.size(); ++at) {
      const Index i = component[at];
      is_free = is_free && problem.field[i] == 0;
      for (std::size_t k = problem.start[i]; k < problem.start[i + 1]; ++k) {
        const Index j = problem.neighbour[k];
        if (problem.weight[k] == 0 || seen[j]) continue;
        seen[j] = true;
        component.push_back(j);
      }
    }
    if (!is_free) continue;
    for (const Index i : component) first_[i] = first;
  }
}

void FreeFlips::normalise(std::span<Spin> spins) const {
  // The first spin of a component comes before the others, so it is turned last.
  for (Index i = static_cast<Index>(spins.size()); i-- > 0;) {
    if (first_[i] != kHeld && spins[first_[i]] < 0) spins[i] = static_cast<Spin>(-spins[i]);
  }
}

}  // namespace poise
