/// A graph, states and weights of their flips on the device.
#include "engines/cuda/flips/graph_flip_chains.hpp"

#include <algorithm>
#include <utility>

#include <poise/extend/base/rng.hpp>

#include "engines/cuda/common/call.hpp"
#include "engines/cuda/common/chain_counts.hpp"
#include "engines/cuda/common/mirrored.hpp"
#include "engines/cuda/common/this_device.hpp"
#include "engines/cuda/flips/flip_graph.hpp"
#include "engines/cuda/flips/graph_flip_kernels.hpp"

namespace poise {

using cuda::Array;

static_assert(static_cast<cuda::Held>(CudaGraphFlipChains::Memory::all_shared) == cuda::Held::all &&
              static_cast<cuda::Held>(CudaGraphFlipChains::Memory::sums_shared) == cuda::Held::nodes &&
              static_cast<cuda::Held>(CudaGraphFlipChains::Memory::global) == cuda::Held::none);

namespace {

std::vector<std::int64_t> fields_of(const GraphIsing& target) {
  std::vector<std::int64_t> fields;
  for (Index i = 0; i < target.num_variables(); ++i) fields.push_back(target.field_units(i));
  return fields;
}

void set_bits(std::span<const Value> levels, std::span<std::uint32_t> bits) {
  std::fill(bits.begin(), bits.end(), 0U);
  for (std::size_t i = 0; i < levels.size(); ++i) bits[i / 32] |= (levels[i] != 0 ? 1U : 0U) << i % 32;
}

}  // namespace

class CudaGraphFlipChains::OnDevice {
 public:
  OnDevice(const CudaGraph& from, const cuda::FlipGraph& graph, std::size_t chains)
      : variables(from.target->num_variables()),
        unit(from.target->unit()),
        tree(graph.tree),
        shape{chains, tree, static_cast<double>(graph.affected.size()) / variables},
        plan(cuda::plan_graph_flips(shape, cuda::this_device())),
        words((variables + std::size_t{31}) / 32),
        first(graph.first),
        affected(graph.affected),
        couplings(graph.couplings),
        first_node(graph.first_node),
        touched(graph.touched),
        fields(fields_of(*from.target)),
        lattice_fields(from.lattice_fields),
        cells(cuda::kFlipCells),
        reference(words),
        spin_fields(chains * tree.leaves),
        leaves(chains * tree.leaves),
        nodes(chains * tree.nodes),
        state(chains, words),
        counts(chains, variables),
        summed(4 * chains) {
    nodes.clear();  // what fills levels up stays so
    std::vector<std::uint32_t> bits(words);
    set_bits(from.reference, bits);
    reference.upload(bits);
  }

  [[nodiscard]] cuda::GraphView graph() const {
    return {variables,         tree,           first.data(), affected.data(), couplings.data(),
            first_node.data(), touched.data(), fields.data()};
  }
  [[nodiscard]] cuda::GraphChainsView chains(std::uint64_t step) {
    const cuda::CountsView counted = counts.for_device();
    return {spin_fields.data(),
            leaves.data(),
            nodes.data(),
            state.on_device(),
            static_cast<std::uint32_t>(words),
            static_cast<std::uint32_t>(shape.chains),
            counted.accepted,
            counted.up,
            first_chain,
            seed,
            step,
            counted.counted_from};
  }
  /// Log p of a lattice has other fields, and edges that are all alike.
  [[nodiscard]] cuda::GraphTerms terms() const {
    if (lattice_fields.empty()) return {fields.data(), couplings.data(), reference.data()};
    return {lattice_fields.data(), nullptr, reference.data()};
  }

  std::uint32_t variables;
  double unit;
  cuda::FlipTree tree;
  cuda::GraphFlipShape shape;
  cuda::GraphFlipPlan plan;
  std::size_t words;  // of a chain's state
  std::uint64_t first_chain = 0;
  std::uint64_t seed = 0;
  cuda::FlipWeigher weigher{};
  bool is_prepared = false;

  Array<std::uint32_t> first, affected;
  Array<std::int64_t> couplings;
  Array<std::uint32_t> first_node, touched;
  Array<std::int64_t> fields, lattice_fields;
  Array<cuda::FlipCell> cells;
  Array<std::uint32_t> reference;

  // The largest first: what does not fit is refused before the host sets anything aside.
  Array<cuda::SpinField> spin_fields;
  Array<double> leaves, nodes;
  cuda::MirroredWords state;
  cuda::ChainCounts counts;
  Array<std::int64_t> summed;
};

CudaGraphFlipChains::CudaGraphFlipChains(CudaGraph graph, std::size_t chains, std::uint64_t seed,
                                         std::uint64_t first_chain)
    : chains_(chains),
      variables_(graph.target->num_variables()),
      device_(std::make_unique<OnDevice>(graph, cuda::FlipGraph(*graph.target), chains)) {
  device_->seed = seed;
  device_->first_chain = static_cast<std::uint64_t>(Stream::device) + first_chain;
  set_function(BalancingFunction());
}

CudaGraphFlipChains::~CudaGraphFlipChains() = default;

void CudaGraphFlipChains::set_function(const BalancingFunction& function) {
  device_->weigher = cuda::make_flip_weigher(function, device_->unit);
  device_->weigher.cells = device_->cells.data();
  if (const BalanceTable* table = function.table()) device_->cells.upload(cuda::flip_cells(*table));
  device_->is_prepared = false;
}

void CudaGraphFlipChains::upload_states() const {
  if (device_->state.to_device(false)) device_->is_prepared = false;
}

/// Weights are kept from one call to the next, until states or the function are others.
void CudaGraphFlipChains::prepare() const {
  upload_states();
  if (device_->is_prepared) return;
  cuda::launch_graph_prepare(device_->graph(), device_->weigher, device_->chains(steps_));
  cuda::check_launch("chains were prepared");
  device_->is_prepared = true;
}

void CudaGraphFlipChains::advance(std::uint64_t steps) {
  if (steps == 0) return;
  prepare();
  static_cast<void>(device_->state.to_device(true));
  cuda::launch_graph_flips(device_->graph(), device_->weigher, device_->chains(steps_), device_->plan, steps);
  cuda::check_launch("steps were started");
  cuda::check(cudaDeviceSynchronize(), "steps were made");
  steps_ += steps;
}

void CudaGraphFlipChains::set_levels(std::size_t chain, std::span<const Value> levels) {
  set_bits(levels, device_->state.row_to_change(chain));
}

void CudaGraphFlipChains::get_levels(std::size_t chain, std::span<Value> levels) const {
  const std::span<const std::uint32_t> own = device_->state.row(chain);
  for (std::size_t i = 0; i < levels.size(); ++i) levels[i] = static_cast<Value>(own[i / 32] >> i % 32 & 1U);
}

std::vector<double> CudaGraphFlipChains::accepted() const { return device_->counts.accepted(); }
double CudaGraphFlipChains::accepted(std::size_t chain) const { return device_->counts.accepted(chain); }
void CudaGraphFlipChains::set_accepted(std::size_t chain, double accepted) {
  device_->counts.set_accepted(chain, accepted);
}

void CudaGraphFlipChains::start_counting() { device_->counts.start(steps_); }
bool CudaGraphFlipChains::counts() const { return device_->counts.is_counting(); }

std::vector<std::int64_t> CudaGraphFlipChains::up_counts(std::size_t chain) const {
  std::vector<Value> levels(variables_);
  get_levels(chain, levels);
  return device_->counts.up(chain, levels, steps_);
}

void CudaGraphFlipChains::set_up_counts(std::size_t chain, std::span<const std::int64_t> counts) {
  std::vector<Value> levels(variables_);
  get_levels(chain, levels);
  device_->counts.set_up(chain, counts, levels, steps_);
}

CudaGraphFlipChains::Sums CudaGraphFlipChains::sums() const {
  upload_states();
  device_->summed.clear();
  std::int64_t* const to = device_->summed.data();
  cuda::launch_graph_sums(device_->graph(), device_->chains(steps_), device_->terms(),
                          {to, to + chains_, to + 2 * chains_, to + 3 * chains_});
  cuda::check_launch("states were summed");
  std::vector<std::int64_t> all(4 * chains_);
  device_->summed.download(all);
  const auto part = [&](std::size_t number) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(number * chains_);
    return std::vector<std::int64_t>(begin, begin + static_cast<std::ptrdiff_t>(chains_));
  };
  return {part(0), part(1), part(2), part(3)};
}

CudaGraphFlipChains::Probabilities CudaGraphFlipChains::probabilities() const {
  prepare();
  const Array<double> totals(chains_);
  const Array<double> acceptance(chains_ * variables_);
  cuda::launch_graph_probabilities(device_->graph(), device_->weigher, device_->chains(steps_), totals.data(),
                                   acceptance.data());
  cuda::check_launch("probabilities were asked for");
  std::vector<double> weights(device_->leaves.size()), total(chains_);
  device_->leaves.download(weights);
  totals.download(total);
  Probabilities out{{}, std::vector<double>(acceptance.size())};
  acceptance.download(out.acceptance);
  for (std::size_t c = 0; c < chains_; ++c) {
    for (Index i = 0; i < variables_; ++i) {
      out.proposal.push_back(weights[c * device_->tree.leaves + i] / total[c]);
    }
  }
  return out;
}

CudaGraphFlipChains::Memory CudaGraphFlipChains::memory() const { return static_cast<Memory>(device_->plan.held); }

void CudaGraphFlipChains::set_memory(Memory memory) {
  const cuda::GraphFlipPlan plan =
      cuda::plan_graph_flips(device_->shape, cuda::this_device(), static_cast<cuda::Held>(memory));
  if (!plan.fits) throw InputError("the model does not fit the shared memory of the GPU");
  device_->plan = plan;
}

}  // namespace poise
