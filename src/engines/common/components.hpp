/// Exchange of components between two states at one temperature.
///
/// Take the variables in which two states differ, and the connected components they form in the graph of shared
/// factors. A factor's scope is a clique, so it meets one component at most; exchanging the values of a component
/// between the states only exchanges what its factors contribute, and p(x) p(y) stays what it is: for any factors, with
/// zeros and evidence. (Houdayer 2001 has it for spins on lattices.) Each component is exchanged with probability 1/2.
#pragma once

#include <cstdint>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include "engines/cpu/lanes/lane_tile.hpp"

namespace poise {

class ComponentExchange {
 public:
  explicit ComponentExchange(const LaneModel& model);

  /// A lane of a block.
  struct At {
    LaneTile& block;
    std::size_t lane;
  };
  /// Room to work in; one for each thread.
  struct Scratch {
    std::vector<Index> different;
    std::vector<Index> reached;
    std::vector<std::uint8_t> waiting;
  };
  /// Exchanges components of the two and gives how many there were. One number of `rng` is taken for each.
  std::size_t exchange(const At& first, const At& second, Rng& rng, Scratch& scratch) const;

  /// The first neighbour of each position, and one more; and the positions that share a factor with it.
  [[nodiscard]] const std::vector<std::size_t>& start() const { return start_; }
  [[nodiscard]] const std::vector<Index>& neighbours() const { return neighbours_; }

 private:
  std::vector<std::size_t> start_;  // of each position's neighbours, and one more
  std::vector<Index> neighbours_;
};

}  // namespace poise
