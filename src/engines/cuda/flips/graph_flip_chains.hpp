/// Chains of single flips on an Ising model on any graph, on a GPU: locally balanced proposals, a warp for each chain.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <poise/extend/learning/balancing_function.hpp>
#include "engines/cuda/flips/flip_chains.hpp"
#include "engines/cuda/flips/flip_graph.hpp"
#include "engines/cuda/flips/graph_flip_kernels.hpp"
#include "models/ising/graph_ising.hpp"

namespace poise {

struct CudaGraph {
  std::shared_ptr<const GraphIsing> target;
  /// Where log p is a lattice's: its fields, in its own unit. Every edge counts one then. Empty where log p is that of
  /// the target.
  std::vector<std::int64_t> lattice_fields = {};
  std::vector<Value> reference;
};

class CudaGraphFlipChains final : public CudaSpinChains {
 public:
  /// Throws an InputError where the GPU has too little memory.
  CudaGraphFlipChains(const CudaGraph& graph, std::size_t chains, std::uint64_t seed, std::uint64_t first_chain)
      : CudaGraphFlipChains(graph, cuda::FlipGraph(*graph.target), chains, seed, first_chain) {}

  /// Proposals are proportional to g.
  void set_function(const BalancingFunction& function) {
    weigher_ = cuda::make_flip_weigher(function, unit_);
    weigher_.cells = cells_.data();
    if (const BalanceTable* table = function.table()) cells_.upload(cuda::flip_cells(*table));
    is_prepared_ = false;
  }

  /// Returns when the steps are made.
  void advance(std::uint64_t steps) {
    if (steps == 0) return;
    prepare();
    state_.to_device(true);
    cuda::launch_graph_flips(graph(), weigher_, view(), plan_, steps);
    cuda::check_launch("steps were started");
    cuda::check(cudaDeviceSynchronize(), "steps were made");
    steps_ += steps;
  }

  void set_levels(std::size_t chain, std::span<const Value> levels) override {
    cuda::pack_bits(levels, state_.row_to_change(chain));
  }
  void get_levels(std::size_t chain, std::span<Value> levels) const override {
    cuda::unpack_bits(state_.row(chain), levels);
  }

  [[nodiscard]] Sums sums() const {
    upload_states();
    summed_.clear();
    return find_sums([&](const cuda::FlipSums& sums) { cuda::launch_graph_sums(graph(), view(), terms(), sums); });
  }
  [[nodiscard]] Probabilities probabilities() const {
    prepare();
    const cuda::Array<double> totals(chains_);
    const cuda::Array<double> acceptance(chains_ * variables_);
    cuda::launch_graph_probabilities(graph(), weigher_, view(), totals.data(), acceptance.data());
    cuda::check_launch("probabilities were asked for");
    const std::vector<double> weights = leaves_.download(), total = totals.download();
    Probabilities out{{}, acceptance.download()};
    for (std::size_t c = 0; c < chains_; ++c) {
      for (Index i = 0; i < variables_; ++i) out.proposal.push_back(weights[c * tree_.leaves + i] / total[c]);
    }
    return out;
  }

  /// Where chains keep what they work on, for tests. No draw depends on it. Throws an InputError where it does not fit.
  void set_memory(cuda::Held memory) {
    const cuda::GraphFlipPlan plan = cuda::plan_graph_flips(shape_, cuda::this_device(), memory);
    if (!plan.fits) throw InputError("the model does not fit the shared memory of the GPU");
    plan_ = plan;
  }

 private:
  CudaGraphFlipChains(const CudaGraph& from, const cuda::FlipGraph& graph, std::size_t chains, std::uint64_t seed,
                      std::uint64_t first_chain)
      : CudaSpinChains(chains, from.target->num_variables(), seed, first_chain),
        unit_(from.target->unit()),
        tree_(graph.tree),
        shape_{chains, tree_, static_cast<double>(graph.affected.size()) / variables_},
        plan_(cuda::plan_graph_flips(shape_, cuda::this_device())),
        first_(graph.first),
        affected_(graph.affected),
        couplings_(graph.couplings),
        first_node_(graph.first_node),
        touched_(graph.touched),
        fields_(fields_of(*from.target)),
        lattice_fields_(from.lattice_fields),
        cells_(cuda::kFlipCells),
        spin_fields_(chains * tree_.leaves),
        leaves_(chains * tree_.leaves),
        nodes_(cuda::zeros<double>(chains * tree_.nodes)),
        state_(chains, (variables_ + std::size_t{31}) / 32) {
    reference_ = cuda::bits_on_device(from.reference, state_.words());
    set_function(BalancingFunction());
  }

  static std::vector<std::int64_t> fields_of(const GraphIsing& target) {
    std::vector<std::int64_t> fields;
    for (Index i = 0; i < target.num_variables(); ++i) fields.push_back(target.field_units(i));
    return fields;
  }

  [[nodiscard]] cuda::GraphView graph() const {
    return {variables_,         tree_,           first_.data(), affected_.data(), couplings_.data(),
            first_node_.data(), touched_.data(), fields_.data()};
  }
  [[nodiscard]] cuda::GraphChainsView view() const {
    const Counts counted = counts_on_device();
    return {spin_fields_.data(),
            leaves_.data(),
            nodes_.data(),
            state_.on_device(),
            static_cast<std::uint32_t>(state_.words()),
            chains(),
            counted.accepted,
            counted.up,
            first_stream_,
            seed_,
            steps_,
            counted.counted_from,
            cuda::rest_stretch(variables_)};
  }
  /// Log p of a lattice has other fields, and edges that are all alike.
  [[nodiscard]] cuda::GraphTerms terms() const {
    if (lattice_fields_.empty()) return {fields_.data(), couplings_.data(), reference_.data()};
    return {lattice_fields_.data(), nullptr, reference_.data()};
  }

  void upload_states() const {
    if (state_.to_device(false)) is_prepared_ = false;
  }
  /// Weights are kept from one call to the next, until states or the function are others.
  void prepare() const {
    upload_states();
    if (is_prepared_) return;
    cuda::launch_graph_prepare(graph(), weigher_, view());
    cuda::check_launch("chains were prepared");
    is_prepared_ = true;
  }

  double unit_;
  cuda::FlipTree tree_;
  cuda::GraphFlipShape shape_;
  cuda::GraphFlipPlan plan_;
  cuda::FlipWeigher weigher_{};
  mutable bool is_prepared_ = false;

  cuda::Array<std::uint32_t> first_, affected_;
  cuda::Array<std::int64_t> couplings_;
  cuda::Array<std::uint32_t> first_node_, touched_;
  cuda::Array<std::int64_t> fields_, lattice_fields_;
  cuda::Array<cuda::FlipCell> cells_;
  cuda::Array<std::uint32_t> reference_;

  // The largest first: what does not fit is refused before the host sets anything aside.
  cuda::Array<cuda::SpinField> spin_fields_;
  cuda::Array<double> leaves_, nodes_;  // what fills levels up stays 0
  mutable cuda::MirroredWords state_;
};

}  // namespace poise
