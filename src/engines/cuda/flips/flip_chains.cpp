/// Chains of single flips on the device: states, weights of flips, graphs.
#include "engines/cuda/flips/flip_chains.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <poise/extend/base/rng.hpp>
#include "engines/cuda/common/call.hpp"
#include "engines/cuda/flips/chain_counts.hpp"
#include "engines/cuda/flips/flip_graph.hpp"
#include "engines/cuda/flips/flip_kernels.hpp"
#include "engines/cuda/flips/graph_flip_kernels.hpp"

namespace poise {

using cuda::Array;

CudaCountedChains::CudaCountedChains(std::size_t chains, Index variables)
    : chains_(chains), variables_(variables), counts_(std::make_unique<cuda::ChainCounts>(chains, variables)) {}
CudaCountedChains::~CudaCountedChains() = default;

std::vector<double> CudaCountedChains::accepted() const { return counts_->accepted(); }
double CudaCountedChains::accepted(std::size_t chain) const { return counts_->accepted(chain); }
void CudaCountedChains::set_accepted(std::size_t chain, double accepted) { counts_->set_accepted(chain, accepted); }

void CudaCountedChains::start_counting() { counts_->start(steps_); }
bool CudaCountedChains::counts() const { return counts_->is_counting(); }

std::vector<std::int64_t> CudaCountedChains::up_counts(std::size_t chain) const {
  std::vector<Value> levels(variables_);
  get_levels(chain, levels);
  return counts_->up(chain, levels, steps_);
}

void CudaCountedChains::set_up_counts(std::size_t chain, std::span<const std::int64_t> counts) {
  std::vector<Value> levels(variables_);
  get_levels(chain, levels);
  counts_->set_up(chain, counts, levels, steps_);
}

struct CudaFlipChains::OnDevice {
  OnDevice(const CudaLattice& lattice, std::size_t chains, std::size_t words)
      : weights(std::size_t{cuda::kSiteCodes} * lattice.sites()),
        corrections(weights.size()),
        fields(lattice.fields),
        reference(words),
        state(chains, words),
        summed(4 * chains) {}

  Array<std::uint64_t> weights;
  Array<double> corrections;
  Array<std::int64_t> fields;
  Array<std::uint32_t> reference;
  cuda::MirroredWords state;
  Array<std::int64_t> summed;

  [[nodiscard]] cuda::LatticeView view(const CudaLattice& lattice) const {
    return {lattice.rows,       lattice.columns, lattice.torus,    weights.data(),
            corrections.data(), fields.data(),   reference.data(), (lattice.columns + 31) / 32};
  }
};

CudaFlipChains::CudaFlipChains(CudaLattice lattice, std::size_t chains, std::uint64_t seed, std::uint64_t first_chain)
    : CudaCountedChains(chains, lattice.sites()), lattice_(std::move(lattice)), seed_(seed), first_chain_(first_chain) {
  device_ = std::make_unique<OnDevice>(lattice_, chains, words());
  std::vector<std::uint32_t> bits(words(), 0);
  const std::size_t in_row = words() / lattice_.rows;
  for (Index i = 0; i < lattice_.sites(); ++i) {
    const Index row = i / lattice_.columns, column = i % lattice_.columns;
    if (lattice_.reference[i] != 0) bits[row * in_row + column / 32] |= 1U << column % 32;
  }
  device_->reference.upload(bits);
}

CudaFlipChains::~CudaFlipChains() = default;

std::size_t CudaFlipChains::words() const { return std::size_t{lattice_.rows} * ((lattice_.columns + 31) / 32); }

/// The largest weight leaves room for the sum of all of them; the smallest is one.
void CudaFlipChains::set_weights(std::span<const double> log_g) {
  const double largest = *std::max_element(log_g.begin(), log_g.end());
  const double most = std::ldexp(1.0, 62) / lattice_.sites();
  std::vector<std::uint64_t> weights(log_g.size());
  for (std::size_t k = 0; k < weights.size(); ++k) {
    weights[k] = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(most * std::exp(log_g[k] - largest)));
  }
  // A flip and the flip back: the same neighbours, the site itself the other way.
  std::vector<double> corrections(weights.size());
  const std::size_t half = weights.size() / 2;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const std::size_t back = k < half ? k + half : k - half;
    corrections[k] =
        std::exp(lattice_.log_ratios[k]) * (static_cast<double>(weights[back]) / static_cast<double>(weights[k]));
  }
  device_->weights.upload(weights);
  device_->corrections.upload(corrections);
}

void CudaFlipChains::advance(std::uint64_t steps) {
  device_->state.to_device(true);
  const std::uint64_t stream = static_cast<std::uint64_t>(Stream::device) + first_chain_;
  const cuda::CountsView counted = counts_->for_device();
  cuda::launch_flips(device_->view(lattice_),
                     {device_->state.on_device(), counted.accepted, counted.up, static_cast<std::uint32_t>(chains_),
                      stream, seed_, steps_, counted.counted_from},
                     steps);
  cuda::check_launch("steps were started");
  cuda::check(cudaDeviceSynchronize(), "steps were made");
  steps_ += steps;
}

void CudaFlipChains::set_levels(std::size_t chain, std::span<const Value> levels) {
  const std::size_t in_row = words() / lattice_.rows;
  const std::span<std::uint32_t> own = device_->state.row_to_change(chain);
  std::fill(own.begin(), own.end(), 0U);
  for (Index i = 0; i < levels.size(); ++i) {
    const Index row = i / lattice_.columns, column = i % lattice_.columns;
    if (levels[i] != 0) own[row * in_row + column / 32] |= 1U << column % 32;
  }
}

void CudaFlipChains::get_levels(std::size_t chain, std::span<Value> levels) const {
  const std::size_t in_row = words() / lattice_.rows;
  const std::span<const std::uint32_t> own = device_->state.row(chain);
  for (Index i = 0; i < levels.size(); ++i) {
    const Index row = i / lattice_.columns, column = i % lattice_.columns;
    levels[i] = static_cast<Value>(own[row * in_row + column / 32] >> column % 32 & 1U);
  }
}

CudaFlipChains::Sums CudaFlipChains::sums() const {
  device_->state.to_device(false);
  return find_sums(device_->summed, [&](const cuda::FlipSums& sums) {
    cuda::launch_flip_sums(device_->view(lattice_), device_->state.on_device(), static_cast<std::uint32_t>(chains_),
                           sums);
  });
}

CudaFlipChains::Probabilities CudaFlipChains::probabilities() const {
  device_->state.to_device(false);
  const std::size_t sites = lattice_.sites();
  const Array<std::uint64_t> weights(chains_ * sites);
  const Array<double> acceptance(chains_ * sites);
  cuda::launch_flip_probabilities(device_->view(lattice_), device_->state.on_device(),
                                  static_cast<std::uint32_t>(chains_), weights.data(), acceptance.data());
  cuda::check_launch("probabilities were asked for");
  std::vector<std::uint64_t> found(chains_ * sites);
  weights.download(found);
  Probabilities out{std::vector<double>(found.size()), std::vector<double>(found.size())};
  acceptance.download(out.acceptance);
  for (std::size_t c = 0; c < chains_; ++c) {
    double total = 0.0;
    for (std::size_t i = 0; i < sites; ++i) total += static_cast<double>(found[c * sites + i]);
    for (std::size_t i = 0; i < sites; ++i) {
      out.proposal[c * sites + i] = static_cast<double>(found[c * sites + i]) / total;
    }
  }
  return out;
}

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
  [[nodiscard]] cuda::GraphChainsView chains(std::uint64_t step, const cuda::CountsView& counted) {
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
  Array<std::int64_t> summed;
};

CudaGraphFlipChains::CudaGraphFlipChains(CudaGraph graph, std::size_t chains, std::uint64_t seed,
                                         std::uint64_t first_chain)
    : CudaCountedChains(chains, graph.target->num_variables()),
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
  cuda::launch_graph_prepare(device_->graph(), device_->weigher, device_->chains(steps_, counts_->for_device()));
  cuda::check_launch("chains were prepared");
  device_->is_prepared = true;
}

void CudaGraphFlipChains::advance(std::uint64_t steps) {
  if (steps == 0) return;
  prepare();
  static_cast<void>(device_->state.to_device(true));
  cuda::launch_graph_flips(device_->graph(), device_->weigher, device_->chains(steps_, counts_->for_device()),
                           device_->plan, steps);
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

CudaGraphFlipChains::Sums CudaGraphFlipChains::sums() const {
  upload_states();
  device_->summed.clear();
  return find_sums(device_->summed, [&](const cuda::FlipSums& sums) {
    cuda::launch_graph_sums(device_->graph(), device_->chains(steps_, counts_->for_device()), device_->terms(), sums);
  });
}

CudaGraphFlipChains::Probabilities CudaGraphFlipChains::probabilities() const {
  prepare();
  const Array<double> totals(chains_);
  const Array<double> acceptance(chains_ * variables_);
  cuda::launch_graph_probabilities(device_->graph(), device_->weigher, device_->chains(steps_, counts_->for_device()),
                                   totals.data(), acceptance.data());
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
