/// Chains of single flips on graphs, each by a warp, and what is known of their states.
#include "engines/cuda/flips/graph_flip_kernels.hpp"

#include "engines/cuda/flips/graph_walk.cuh"

namespace poise::cuda {

namespace {

constexpr unsigned kWarps = 4;            // of blocks that prepare and sum
constexpr std::uint32_t kOfSlice = 8192;  // variables that a warp sums

template <class T>
__device__ void copy(T* to, const T* from, std::size_t count, unsigned lane) {
  for (std::size_t k = lane; k < count; k += kLanes) to[k] = from[k];
}

/// A block is a chain, which is in shared memory while it moves, as far as the plan says.
template <Held held>
__global__ void __launch_bounds__(kLanes)
    graph_flip_kernel(const __grid_constant__ GraphView graph, const __grid_constant__ FlipWeigher weigher,
                      GraphChainsView all, std::uint64_t steps) {
  extern __shared__ __align__(16) double memory[];
  const unsigned lane = threadIdx.x;
  const std::uint32_t number = blockIdx.x;
  const WalkMemory home = memory_of(graph, all, number);
  WalkMemory here = home;
  if constexpr (held != Held::none) {
    here.nodes = memory;
    copy(here.nodes, home.nodes, graph.tree.nodes, lane);
  }
  if constexpr (held == Held::all) {
    here.leaves = memory + graph.tree.nodes;
    here.spin_fields = reinterpret_cast<SpinField*>(here.leaves + graph.tree.leaves);
    copy(here.leaves, home.leaves, graph.tree.leaves, lane);
    copy(here.spin_fields, home.spin_fields, graph.tree.leaves, lane);
  }
  __syncwarp();
  Walk walk(graph, weigher, here, lane);
  const double accepted = make_steps(walk, graph, all, {number, lane}, steps);
  if constexpr (held != Held::none) copy(home.nodes, here.nodes, graph.tree.nodes, lane);
  if constexpr (held == Held::all) {
    copy(home.leaves, here.leaves, graph.tree.leaves, lane);
    copy(home.spin_fields, here.spin_fields, graph.tree.leaves, lane);
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
  const WalkMemory here = memory_of(graph, all, number);
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
  here.spin_fields[i] = of;
  here.leaves[i] = mine;
  const double sum = sum_of_lanes(mine);
  if (graph.tree.levels > 1 && lane == 0) here.nodes[graph.tree.first[1] + group] = sum;
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
  Walk walk(graph, weigher, memory_of(graph, all, number), lane);
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
    graph_sums_kernel(GraphView graph, GraphChainsView all, GraphTerms terms, FlipSums sums) {
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
  // More than 48 KiB have to be asked for; where that fails the launch fails too, and the call that asks for the last error
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
                       const FlipSums& sums) {
  const std::size_t slices = (graph.variables + kOfSlice - 1) / kOfSlice;
  graph_sums_kernel<<<blocks_for(slices * chains.chains), kWarps * kLanes>>>(graph, chains, terms, sums);
}

}  // namespace poise::cuda
