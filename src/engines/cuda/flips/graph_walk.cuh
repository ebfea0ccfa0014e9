/// A chain of single flips on a graph, made by the lanes of a warp: on a device, and by threads on the host for tests.
///
/// Lanes go down the tree of sums together, one level after the other, and share out what a flip affects; four lanes
/// sum a node.
///
/// A proposal is written into the tree to find Z(x'), and taken back where it is not accepted: weights are functions of
/// the state, so what is computed anew is what was there before.
#pragma once

#include "engines/common/host_device.hpp"
#include "engines/common/step_guards.hpp"
#include "engines/cuda/flips/graph_flip_kernels.hpp"

namespace poise::cuda {

inline constexpr unsigned kLanes = 32;
inline constexpr unsigned kAll = 0xffffffff;
inline constexpr unsigned kOfNode = 4;  // lanes that sum a node
inline constexpr unsigned kNodesAtOnce = kLanes / kOfNode;

static_assert(kChildren == kLanes);

using Word64 = unsigned long long;  // as shuffles and atomic additions take it

/// In the order of FlipTree, so that every lane has the same bits.
__device__ inline double sum_of_lanes(double value) {
#pragma unroll
  for (unsigned step = 1; step < kLanes; step *= 2) value = plain_sum(value, __shfl_xor_sync(kAll, value, step));
  return value;
}

__device__ inline double quarter_of(const double* children, unsigned lane) {
  const auto* const pairs = reinterpret_cast<const double2*>(children + 8 * (lane % kOfNode));
  const double2 a = pairs[0], b = pairs[1], c = pairs[2], d = pairs[3];
  const double eight[8] = {a.x, a.y, b.x, b.y, c.x, c.y, d.x, d.y};
  return sum_of_eight(eight);
}

/// The chain of a warp, at its offset in memory.
struct WalkMemory {
  SpinField* spin_fields;
  double* leaves;
  double* nodes;
};

__device__ inline WalkMemory memory_of(const GraphView& graph, const GraphChainsView& all, std::uint32_t number) {
  const std::size_t leaves = static_cast<std::size_t>(number) * graph.tree.leaves;
  return {all.spin_fields + leaves, all.leaves + leaves,
          all.nodes + static_cast<std::size_t>(number) * graph.tree.nodes};
}

class Walk {
 public:
  __device__ Walk(const GraphView& graph, const FlipWeigher& weigher, const WalkMemory& memory, unsigned lane)
      : graph_(graph), weigher_(weigher), at_(memory), lane_(lane), total_(sum_up()) {}

  [[nodiscard]] __device__ double total() const { return total_; }

  /// The flip at a offset below the sum of all weights.
  __device__ std::uint32_t find(double offset) const {
    std::uint32_t index = 0;
    for (std::uint32_t level = graph_.tree.levels - 1; level > 0; --level) {
      const double* const nodes = at_.nodes + graph_.tree.first[level];
      index = index * kChildren + choose(nodes + static_cast<std::size_t>(index) * kChildren, offset);
    }
    return index * kChildren + choose(at_.leaves + static_cast<std::size_t>(index) * kChildren, offset);
  }

  /// What this lane has of a flip: the first 32 of what is affected are held, one by each, and the first nodes above
  /// it. They come from memory at once, not when they are needed.
  struct Flip {
    std::uint32_t variable;
    std::uint32_t first;  ///< of what it affects
    std::uint32_t count;
    std::uint32_t mine;
    std::int64_t coupling;
    SpinField before;          ///< of the variable
    std::uint32_t first_node;  ///< of level 1
    std::uint32_t end_node;
    std::uint32_t node;
  };
  __device__ Flip look_at(std::uint32_t variable) const {
    Flip flip{};
    flip.variable = variable;
    flip.first = __ldg(graph_.first + variable);
    flip.count = __ldg(graph_.first + variable + 1) - flip.first;
    if (lane_ < flip.count) {
      flip.mine = __ldg(graph_.affected + flip.first + lane_);
      flip.coupling = coupling(flip.first + lane_);
    }
    if (graph_.tree.levels > 1) {
      const std::uint32_t* const rows = nodes_above(variable);
      flip.first_node = __ldg(rows);
      flip.end_node = __ldg(rows + 1);
      flip.node = touched(flip.first_node, flip.end_node);
    }
    flip.before = at_.spin_fields[variable];
    return flip;
  }

  /// Puts the weights after a flip into the tree and gives their sum.
  __device__ double propose(const Flip& flip) const {
    __syncwarp();  // all have read
    for_each_affected(flip, [&](std::uint32_t j, std::int64_t coupling) {
      at_.leaves[j] = weight(weigher_, after(flip, j, coupling));
    });
    sum_nodes_above(flip);
    return sum_up();
  }

  /// The proposal becomes the state.
  __device__ void take(const Flip& flip, double total) {
    for_each_affected(flip,
                      [&](std::uint32_t j, std::int64_t coupling) { at_.spin_fields[j] = after(flip, j, coupling); });
    total_ = total;
    __syncwarp();
  }

  /// The tree becomes that of the state again.
  __device__ void take_back(const Flip& flip) const {
    __syncwarp();  // all have read
    for_each_affected(flip,
                      [&](std::uint32_t j, std::int64_t) { at_.leaves[j] = weight(weigher_, at_.spin_fields[j]); });
    sum_nodes_above(flip);
  }

  /// The probability of accepting, or more than 1.
  [[nodiscard]] __device__ double acceptance_of(const Flip& flip, double total_after) const {
    return acceptance(weigher_, flip.before, total_, total_after);
  }

 private:
  __device__ std::int64_t coupling(std::uint32_t number) const {
    return __ldg(reinterpret_cast<const long long*>(graph_.couplings) + number);
  }

  template <class Use>
  __device__ void for_each_affected(const Flip& flip, Use&& use) const {
    if (lane_ < flip.count) use(flip.mine, flip.coupling);
    for (std::uint32_t k = lane_ + kLanes; k < flip.count; k += kLanes) {
      use(__ldg(graph_.affected + flip.first + k), coupling(flip.first + k));
    }
  }

  __device__ SpinField after(const Flip& flip, std::uint32_t j, std::int64_t coupling) const {
    if (j == flip.variable) return flip.before ^ 1;
    return beside_flip(at_.spin_fields[j], coupling, is_up(flip.before));
  }

  /// Where the nodes above what a flip affects are listed, level by level.
  __device__ const std::uint32_t* nodes_above(std::uint32_t variable) const {
    return graph_.first_node + static_cast<std::size_t>(variable) * (graph_.tree.levels - 1);
  }
  /// The one of eight nodes that this lane has a part in.
  __device__ std::uint32_t touched(std::uint32_t some, std::uint32_t end) const {
    const std::uint32_t number = some + lane_ / kOfNode;
    return __ldg(graph_.touched + (number < end ? number : some));
  }

  /// Sums of the nodes above what a flip affects, from below.
  __device__ void sum_nodes_above(const Flip& flip) const {
    std::uint32_t begin = flip.first_node, end = flip.end_node;
    for (std::uint32_t level = 1; level < graph_.tree.levels; ++level) {
      if (level > 1) {
        begin = end;
        end = __ldg(nodes_above(flip.variable) + level);
      }
      const double* const below = level == 1 ? at_.leaves : at_.nodes + graph_.tree.first[level - 1];
      __syncwarp();  // what is below is written
      for (std::uint32_t some = begin; some < end; some += kNodesAtOnce) {
        const std::uint32_t node = level == 1 && some == begin ? flip.node : touched(some, end);
        double sum = quarter_of(below + static_cast<std::size_t>(node) * kChildren, lane_);
        sum = plain_sum(sum, __shfl_xor_sync(kAll, sum, 1));
        sum = plain_sum(sum, __shfl_xor_sync(kAll, sum, 2));
        const bool there = some + lane_ / kOfNode < end;
        if (there && lane_ % kOfNode == 0) at_.nodes[graph_.tree.first[level] + node] = sum;
      }
    }
    __syncwarp();
  }

  __device__ double sum_up() const {
    const std::uint32_t top = graph_.tree.levels - 1;
    return sum_of_lanes(top == 0 ? at_.leaves[lane_] : at_.nodes[graph_.tree.first[top] + lane_]);
  }

  /// The child in which a offset falls, which becomes what is left of it there. Rounding may put it behind the last
  /// child: then it is in the last one that weighs anything.
  __device__ std::uint32_t choose(const double* children, double& offset) const {
    const double mine = children[lane_];
    double end = mine;
#pragma unroll
    for (unsigned step = 1; step < kLanes; step *= 2) {
      const double other = __shfl_up_sync(kAll, end, step);
      if (lane_ >= step) end += other;
    }
    const unsigned there = __ballot_sync(kAll, mine > 0.0);
    const unsigned behind = __ballot_sync(kAll, mine > 0.0 && end > offset);
    const unsigned child =
        behind != 0 ? __ffs(static_cast<int>(behind)) - 1 : kLanes - 1 - __clz(static_cast<int>(there));
    const double before = __shfl_sync(kAll, end, static_cast<int>((child + kLanes - 1) % kLanes));
    if (child > 0) offset = fmax(0.0, offset - before);
    return child;
  }

  const GraphView& graph_;
  const FlipWeigher& weigher_;
  WalkMemory at_;
  unsigned lane_;
  double total_;
};

/// A lane of the warp that has a chain.
struct ChainLane {
  std::uint32_t chain;
  unsigned lane;
};

/// Steps of a chain that is at `walk`; gives their acceptance probabilities, summed.
__device__ inline double make_steps(Walk& walk, const GraphView& graph, const GraphChainsView& all, ChainLane which,
                                    std::uint64_t steps) {
  const unsigned lane = which.lane;
  std::uint32_t* const state = all.state + static_cast<std::size_t>(which.chain) * all.words;
  std::int64_t* const up =
      all.up == nullptr ? nullptr : all.up + static_cast<std::size_t>(which.chain) * graph.variables;
  double accepted = 0.0;
  for (std::uint64_t done = 0; done < steps; done += kLanes) {
    // The random numbers of as many steps as there are lanes.
    const Philox mine = philox(all.first_step + done + lane, all.first_chain + which.chain, all.seed);
    const auto whole = [&](unsigned k) {
      return static_cast<double>((static_cast<std::uint64_t>(mine.word[k]) << 32 | mine.word[k + 1]) >> 11);
    };
    const double fraction = whole(0) * 0x1p-53, level = resting_level((whole(2) + 0.5) * 0x1p-53, all.stretch);
    const unsigned some = static_cast<unsigned>(steps - done < kLanes ? steps - done : kLanes);
    for (unsigned k = 0; k < some; ++k) {
      const std::uint32_t variable = walk.find(__shfl_sync(kAll, fraction, static_cast<int>(k)) * walk.total());
      const Walk::Flip flip = walk.look_at(variable);
      const double total = walk.propose(flip);
      const double ratio = walk.acceptance_of(flip, total);
      accepted += fmin(1.0, ratio);
      if (__shfl_sync(kAll, level, static_cast<int>(k)) >= ratio) {
        walk.take_back(flip);
        continue;
      }
      walk.take(flip, total);
      if (lane != 0) continue;
      atomicXor(state + variable / 32, 1U << variable % 32);
      if (up == nullptr) continue;
      const auto when = static_cast<std::int64_t>(all.first_step + done + k + 1 - all.counted_from);
      atomicAdd(reinterpret_cast<Word64*>(up + variable), static_cast<Word64>(is_up(flip.before) ? when : -when));
    }
    __syncwarp();
  }
  return accepted;
}

}  // namespace poise::cuda
