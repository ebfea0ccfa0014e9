/// A warp is a chain. Its lanes go down the tree of sums together, one level after the other, and share out what a flip
/// affects; four lanes sum a node.
///
/// A proposal is written into the tree to find Z(x'), and taken back where it is not accepted: weights are functions of
/// the state, so what is computed anew is what was there before.
#include "graph_flip_kernels.hpp"

#include "philox.cuh"

namespace poise::cuda {

namespace {

constexpr unsigned kLanes = 32;
constexpr unsigned kAll = 0xffffffff;
constexpr unsigned kOfNode = 4;  // lanes that sum a node
constexpr unsigned kNodesAtOnce = kLanes / kOfNode;
constexpr unsigned kWarps = 4;            // of blocks that prepare and sum
constexpr std::uint32_t kOfSlice = 8192;  // variables that a warp sums

static_assert(kChildren == kLanes);

using Word64 = unsigned long long;  // as shuffles and atomic additions take it

/// In the order of FlipTree, so that every lane has the same bits.
__device__ inline double sum_of_lanes(double value) {
#pragma unroll
  for (unsigned step = 1; step < kLanes; step *= 2) value = sum_of_two(value, __shfl_xor_sync(kAll, value, step));
  return value;
}

__device__ inline double quarter_of(const double* children, unsigned lane) {
  const auto* const pairs = reinterpret_cast<const double2*>(children + 8 * (lane % kOfNode));
  const double2 a = pairs[0], b = pairs[1], c = pairs[2], d = pairs[3];
  const double eight[8] = {a.x, a.y, b.x, b.y, c.x, c.y, d.x, d.y};
  return sum_of_eight(eight);
}

/// The chain of a warp, at its place in memory.
struct Place {
  SpinField* spin_fields;
  double* leaves;
  double* nodes;
};

__device__ inline Place place_of(const GraphView& graph, const GraphChainsView& all, std::uint32_t number) {
  const std::size_t leaves = static_cast<std::size_t>(number) * graph.tree.leaves;
  return {all.spin_fields + leaves, all.leaves + leaves,
          all.nodes + static_cast<std::size_t>(number) * graph.tree.nodes};
}

class Walk {
 public:
  __device__ Walk(const GraphView& graph, const FlipWeigher& weigher, const Place& place, unsigned lane)
      : graph_(graph), weigher_(weigher), at_(place), lane_(lane), total_(sum_up()) {}

  [[nodiscard]] __device__ double total() const { return total_; }

  /// The flip at a place below the sum of all weights.
  __device__ std::uint32_t find(double place) const {
    std::uint32_t index = 0;
    for (std::uint32_t level = graph_.tree.levels - 1; level > 0; --level) {
      const double* const nodes = at_.nodes + graph_.tree.first[level];
      index = index * kChildren + choose(nodes + static_cast<std::size_t>(index) * kChildren, place);
    }
    return index * kChildren + choose(at_.leaves + static_cast<std::size_t>(index) * kChildren, place);
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
  /// Of eight nodes, the one that this lane has a part in.
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
        sum = sum_of_two(sum, __shfl_xor_sync(kAll, sum, 1));
        sum = sum_of_two(sum, __shfl_xor_sync(kAll, sum, 2));
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

  /// The child in which a place falls, which becomes what is left of it there. Rounding may put it behind the last
  /// child: then it is in the last one that weighs anything.
  __device__ std::uint32_t choose(const double* children, double& place) const {
    const double mine = children[lane_];
    double end = mine;
#pragma unroll
    for (unsigned step = 1; step < kLanes; step *= 2) {
      const double other = __shfl_up_sync(kAll, end, step);
      if (lane_ >= step) end += other;
    }
    const unsigned there = __ballot_sync(kAll, mine > 0.0);
    const unsigned behind = __ballot_sync(kAll, mine > 0.0 && end > place);
    const unsigned child =
        behind != 0 ? __ffs(static_cast<int>(behind)) - 1 : kLanes - 1 - __clz(static_cast<int>(there));
    const double before = __shfl_sync(kAll, end, static_cast<int>((child + kLanes - 1) % kLanes));
    if (child > 0) place = fmax(0.0, place - before);
    return child;
  }

  const GraphView& graph_;
  const FlipWeigher& weigher_;
  Place at_;
  unsigned lane_;
  double total_;
};

template <class T>
__device__ void copy(T* to, const T* from, std::size_t count, unsigned lane) {
  for (std::size_t k = lane; k < count; k += kLanes) to[k] = from[k];
}

/// A block is a chain, which is in shared memory while it goes on, as far as the plan says.
template <Held held>
__global__ void __launch_bounds__(kLanes)
    graph_flip_kernel(const __grid_constant__ GraphView graph, const __grid_constant__ FlipWeigher weigher,
                      GraphChainsView all, std::uint64_t steps) {
  extern __shared__ __align__(16) double memory[];
  const unsigned lane = threadIdx.x;
  const std::uint32_t number = blockIdx.x;
  const Place home = place_of(graph, all, number);
  Place place = home;
  if constexpr (held != Held::none) {
    place.nodes = memory;
    copy(place.nodes, home.nodes, graph.tree.nodes, lane);
  }
  if constexpr (held == Held::all) {
    place.leaves = memory + graph.tree.nodes;
    place.spin_fields = reinterpret_cast<SpinField*>(place.leaves + graph.tree.leaves);
    copy(place.leaves, home.leaves, graph.tree.leaves, lane);
    copy(place.spin_fields, home.spin_fields, graph.tree.leaves, lane);
  }
  __syncwarp();
  std::uint32_t* const state = all.state + static_cast<std::size_t>(number) * all.words;
  std::int64_t* const up = all.up == nullptr ? nullptr : all.up + static_cast<std::size_t>(number) * graph.variables;
  Walk walk(graph, weigher, place, lane);
  double accepted = 0.0;
  for (std::uint64_t done = 0; done < steps; done += kLanes) {
    // The random numbers of as many steps as there are lanes.
    const Philox mine = philox(all.first_step + done + lane, all.first_chain + number, all.seed);
    const auto whole = [&](unsigned k) {
      return static_cast<double>((static_cast<std::uint64_t>(mine.word[k]) << 32 | mine.word[k + 1]) >> 11);
    };
    const double fraction = whole(0) * 0x1p-53, level = (whole(2) + 0.5) * 0x1p-53;
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
  if constexpr (held != Held::none) copy(home.nodes, place.nodes, graph.tree.nodes, lane);
  if constexpr (held == Held::all) {
    copy(home.leaves, place.leaves, graph.tree.leaves, lane);
    copy(home.spin_fields, place.spin_fields, graph.tree.leaves, lane);
  }
  if (lane == 0) all.accepted[number] += accepted;
}

/// A warp for every 32 variables of every chain, and the node above them.
__global__ void __launch_bounds__(kWarps* kLanes)
    prepare_kernel(const __grid_constant__ GraphView graph, const __grid_constant__ FlipWeigher weigher,
                   GraphChainsView all, std::size_t warps) {
  const unsigned lane = threadIdx.x % kLanes;
  const std::size_t at = static_cast<std::size_t>(blockIdx.x) * kWarps + threadIdx.x / kLanes;
  if (at >= warps) return;
  const std::uint32_t groups = graph.tree.leaves / kLanes;
  const auto number = static_cast<std::uint32_t>(at / groups), group = static_cast<std::uint32_t>(at % groups);
  const std::uint32_t* const state = all.state + static_cast<std::size_t>(number) * all.words;
  const auto bit = [&](std::uint32_t variable) { return state[variable / 32] >> variable % 32 & 1U; };
  const std::uint32_t i = group * kLanes + lane;
  const Place place = place_of(graph, all, number);
  SpinField of = 0;
  double mine = 0.0;
  if (i < graph.variables) {
    std::int64_t local = graph.fields[i];
    for (std::uint32_t k = graph.first[i]; k < graph.first[i + 1]; ++k) {
      const std::int64_t coupling = graph.couplings[k];  // with itself it is 0
      local += bit(graph.affected[k]) != 0 ? coupling : -coupling;
    }
    of = static_cast<SpinField>(static_cast<std::uint64_t>(local) << 1 | bit(i));
    mine = weight(weigher, of);
  }
  place.spin_fields[i] = of;
  place.leaves[i] = mine;
  const double sum = sum_of_lanes(mine);
  if (graph.tree.levels > 1 && lane == 0) place.nodes[graph.tree.first[1] + group] = sum;
}

/// A warp for every node of a level above the first.
__global__ void __launch_bounds__(kWarps* kLanes)
    level_kernel(const __grid_constant__ GraphView graph, GraphChainsView all, std::uint32_t level, std::size_t warps) {
  const unsigned lane = threadIdx.x % kLanes;
  const std::size_t at = static_cast<std::size_t>(blockIdx.x) * kWarps + threadIdx.x / kLanes;
  if (at >= warps) return;
  const std::uint32_t within = graph.tree.within[level];
  const auto number = static_cast<std::uint32_t>(at / within), node = static_cast<std::uint32_t>(at % within);
  double* const nodes = all.nodes + static_cast<std::size_t>(number) * graph.tree.nodes;
  const double sum = sum_of_lanes(nodes[graph.tree.first[level - 1] + node * kChildren + lane]);
  if (lane == 0) nodes[graph.tree.first[level] + node] = sum;
}

__global__ void __launch_bounds__(kWarps* kLanes)
    probability_kernel(const __grid_constant__ GraphView graph, const __grid_constant__ FlipWeigher weigher,
                       GraphChainsView all, double* totals, double* acceptances) {
  const unsigned lane = threadIdx.x % kLanes;
  const std::uint32_t number = blockIdx.x * kWarps + threadIdx.x / kLanes;
  if (number >= all.chains) return;
  Walk walk(graph, weigher, place_of(graph, all, number), lane);
  if (lane == 0) totals[number] = walk.total();
  for (std::uint32_t variable = 0; variable < graph.variables; ++variable) {
    const Walk::Flip flip = walk.look_at(variable);
    const double ratio = walk.acceptance_of(flip, walk.propose(flip));
    walk.take_back(flip);
    if (lane == 0) acceptances[static_cast<std::size_t>(number) * graph.variables + variable] = fmin(1.0, ratio);
  }
}

/// A warp for every slice of every chain; sums are of integers, in any order.
__global__ void __launch_bounds__(kWarps* kLanes)
    graph_sums_kernel(GraphView graph, GraphChainsView all, GraphTerms terms, GraphSums sums) {
  const unsigned lane = threadIdx.x % kLanes;
  const std::size_t at = static_cast<std::size_t>(blockIdx.x) * kWarps + threadIdx.x / kLanes;
  const std::uint32_t slices = (graph.variables + kOfSlice - 1) / kOfSlice;
  const auto number = static_cast<std::uint32_t>(at / slices), slice = static_cast<std::uint32_t>(at % slices);
  if (at / slices >= all.chains) return;
  const std::uint32_t* const state = all.state + static_cast<std::size_t>(number) * all.words;
  const auto bit = [](const std::uint32_t* bits, std::uint32_t variable) {
    return bits[variable / 32] >> variable % 32 & 1U;
  };
  std::int64_t up = 0, fields = 0, pairs = 0, different = 0;
  const std::uint32_t first = slice * kOfSlice;
  const std::uint32_t end = graph.variables - first < kOfSlice ? graph.variables : first + kOfSlice;
  for (std::uint32_t i = first + lane; i < end; i += kLanes) {
    const std::uint32_t x = bit(state, i);
    up += x;
    different += x != bit(terms.reference, i);
    if (x != 0) fields += terms.fields[i];
    for (std::uint32_t k = graph.first[i]; k < graph.first[i + 1]; ++k) {
      const std::uint32_t j = graph.affected[k];
      if (j > i && bit(state, j) != x) pairs += terms.weights == nullptr ? 1 : terms.weights[k];
    }
  }
  const auto add = [&](std::int64_t* to, std::int64_t value) {
    for (unsigned step = kLanes / 2; step > 0; step /= 2) {
      value += __shfl_xor_sync(kAll, static_cast<long long>(value), step);
    }
    if (lane == 0) atomicAdd(reinterpret_cast<Word64*>(to + number), static_cast<Word64>(value));
  };
  add(sums.up, up);
  add(sums.fields, fields);
  add(sums.pairs, pairs);
  add(sums.different, different);
}

unsigned blocks_for(std::size_t warps) { return static_cast<unsigned>((warps + kWarps - 1) / kWarps); }

}  // namespace

void launch_graph_prepare(const GraphView& graph, const FlipWeigher& weigher, const GraphChainsView& chains) {
  const std::size_t groups = static_cast<std::size_t>(chains.chains) * (graph.tree.leaves / kLanes);
  prepare_kernel<<<blocks_for(groups), kWarps * kLanes>>>(graph, weigher, chains, groups);
  for (std::uint32_t level = 2; level < graph.tree.levels; ++level) {
    const std::size_t nodes = static_cast<std::size_t>(chains.chains) * graph.tree.within[level];
    level_kernel<<<blocks_for(nodes), kWarps * kLanes>>>(graph, chains, level, nodes);
  }
}

void launch_graph_flips(const GraphView& graph, const FlipWeigher& weigher, const GraphChainsView& chains,
                        const GraphFlipPlan& plan, std::uint64_t steps) {
  using Kernel = void (*)(GraphView, FlipWeigher, GraphChainsView, std::uint64_t);
  static constexpr Kernel kernels[] = {graph_flip_kernel<Held::all>, graph_flip_kernel<Held::nodes>,
                                       graph_flip_kernel<Held::none>};
  const Kernel kernel = kernels[static_cast<unsigned>(plan.held)];
  // More than 48 KiB have to be asked for; where that fails the launch fails too, and whoever asks for the last error
  // finds out.
  static_cast<void>(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(plan.shared_bytes)));
  kernel<<<chains.chains, kLanes, plan.shared_bytes>>>(graph, weigher, chains, steps);
}

void launch_graph_probabilities(const GraphView& graph, const FlipWeigher& weigher, const GraphChainsView& chains,
                                double* totals, double* acceptance) {
  probability_kernel<<<blocks_for(chains.chains), kWarps * kLanes>>>(graph, weigher, chains, totals, acceptance);
}

void launch_graph_sums(const GraphView& graph, const GraphChainsView& chains, const GraphTerms& terms,
                       const GraphSums& sums) {
  const std::size_t slices = (graph.variables + kOfSlice - 1) / kOfSlice;
  graph_sums_kernel<<<blocks_for(slices * chains.chains), kWarps * kLanes>>>(graph, chains, terms, sums);
}

}  // namespace poise::cuda
