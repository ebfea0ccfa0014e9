/// Settled chains against an answer.
#include <poise/marginals.hpp>

#include <cmath>

namespace poise {

std::optional<OtherMode> find_other_mode(std::span<const SettledChain> chains, std::span<const double> answer,
                                         std::span<const double> errors) {
  constexpr double far = 0.1;    // in probability
  constexpr double sure = 10.0;  // standard errors
  for (std::size_t c = 0; c < chains.size(); ++c) {
    OtherMode found{c, 0, 0};
    double largest = 0.0;
    for (std::size_t k = 0; k < answer.size(); ++k) {
      const auto [mean, error] = chains[c].entries[k];
      const double apart = std::abs(mean - answer[k]);
      const bool differs = apart > far && apart > sure * std::hypot(error, errors[k]);  // false where one is unknown
      if (!differs) continue;
      ++found.count;
      if (apart > largest) {
        largest = apart;
        found.worst = k;
      }
    }
    if (found.count > 0) return found;
  }
  return std::nullopt;
}

}  // namespace poise
