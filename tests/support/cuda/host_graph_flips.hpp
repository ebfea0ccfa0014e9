/// A chain of single flips on a graph that is moved on as on a GPU, on the host.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include "engines/common/step_guards.hpp"
#include "engines/cuda/flips/flip_graph.hpp"

namespace poise::testing {

/// What a warp does, lane by lane.
class HostGraphChain {
 public:
  HostGraphChain(const GraphIsing& target, const BalancingFunction& function, std::span<const Value> levels)
      : graph_(target), weigher_(cuda::make_flip_weigher(function, target.unit())) {
    if (function.table() != nullptr) cells_ = cuda::flip_cells(*function.table());
    weigher_.cells = cells_.data();
    spin_fields_.assign(graph_.tree.leaves, 0);
    leaves_.assign(graph_.tree.leaves, 0.0);
    nodes_.assign(graph_.tree.nodes, 0.0);
    const GraphIsing::State state = target.make_state(levels);
    for (Index i = 0; i < target.num_variables(); ++i) {
      spin_fields_[i] = 2 * state.units[i] + levels[i];
      leaves_[i] = cuda::weight(weigher_, spin_fields_[i]);
    }
    for (std::uint32_t level = 1; level < graph_.tree.levels; ++level) {
      for (std::uint32_t node = 0; node < graph_.tree.within[level]; ++node) sum(level, node);
    }
  }

  [[nodiscard]] Value level(Index i) const { return cuda::is_up(spin_fields_[i]) ? 1 : 0; }
  [[nodiscard]] std::span<const cuda::SpinField> spin_fields() const { return spin_fields_; }
  [[nodiscard]] std::span<const double> leaves() const { return leaves_; }
  [[nodiscard]] std::span<const double> nodes() const { return nodes_; }
  [[nodiscard]] const cuda::FlipGraph& graph() const { return graph_; }
  [[nodiscard]] const cuda::FlipWeigher& weigher() const { return weigher_; }

  [[nodiscard]] double total() const {
    const std::uint32_t top = graph_.tree.levels - 1;
    return cuda::sum_of_children(top == 0 ? leaves_.data() : nodes_.data() + graph_.tree.first[top]);
  }

  [[nodiscard]] Index find(double offset) const {
    Index index = 0;
    for (std::uint32_t level = graph_.tree.levels - 1; level > 0; --level) {
      const double* const nodes = nodes_.data() + graph_.tree.first[level];
      index = index * cuda::kChildren + choose(nodes + index * cuda::kChildren, offset);
    }
    return index * cuda::kChildren + choose(leaves_.data() + index * cuda::kChildren, offset);
  }

  /// The sum of all weights after a flip, which is put into the tree.
  double propose(Index i) {
    for_each_affected(
        i, [&](Index j, std::int64_t coupling) { leaves_[j] = cuda::weight(weigher_, after(i, j, coupling)); });
    sum_nodes_above(i);
    return total();
  }
  void take(Index i) {
    const cuda::SpinField before = spin_fields_[i];
    for_each_affected(i, [&](Index j, std::int64_t coupling) {
      spin_fields_[j] = j == i ? before ^ 1 : cuda::beside_flip(spin_fields_[j], coupling, cuda::is_up(before));
    });
  }
  void take_back(Index i) {
    for_each_affected(i, [&](Index j, std::int64_t) { leaves_[j] = cuda::weight(weigher_, spin_fields_[j]); });
    sum_nodes_above(i);
  }

  /// Probability of accepting a flip; the tree is as before afterwards.
  double acceptance(Index i) {
    const double before = total();
    const double found = cuda::acceptance(weigher_, spin_fields_[i], before, propose(i));
    take_back(i);
    return std::min(1.0, found);
  }

  void step(std::uint64_t seed, std::uint64_t chain, std::uint64_t number) {
    const std::uint64_t stream = static_cast<std::uint64_t>(Stream::device) + chain;
    const auto low = [](std::uint64_t word) { return static_cast<std::uint32_t>(word); };
    const auto words =
        philox({low(number), low(number >> 32), low(stream), low(stream >> 32)}, {low(seed), low(seed >> 32)});
    const auto whole = [&](unsigned k) {
      return static_cast<double>((static_cast<std::uint64_t>(words[k]) << 32 | words[k + 1]) >> 11);
    };
    const double before = total();
    const Index i = find(whole(0) * 0x1p-53 * before);
    const double ratio = cuda::acceptance(weigher_, spin_fields_[i], before, propose(i));
    const auto variables = static_cast<std::uint32_t>(graph_.first.size() - 1);
    if (cuda::resting_level((whole(2) + 0.5) * 0x1p-53, cuda::rest_stretch(variables)) >= ratio) {
      take_back(i);
    } else {
      take(i);
    }
  }

 private:
  template <class Use>
  void for_each_affected(Index i, Use&& use) const {
    for (std::uint32_t k = graph_.first[i]; k < graph_.first[i + 1]; ++k) use(graph_.affected[k], graph_.couplings[k]);
  }

  [[nodiscard]] cuda::SpinField after(Index i, Index j, std::int64_t coupling) const {
    if (j == i) return spin_fields_[i] ^ 1;
    return cuda::beside_flip(spin_fields_[j], coupling, cuda::is_up(spin_fields_[i]));
  }

  void sum(std::uint32_t level, std::uint32_t node) {
    const double* const below = level == 1 ? leaves_.data() : nodes_.data() + graph_.tree.first[level - 1];
    nodes_[graph_.tree.first[level] + node] = cuda::sum_of_children(below + node * cuda::kChildren);
  }

  void sum_nodes_above(Index i) {
    const std::uint32_t* const rows = graph_.first_node.data() + std::size_t{i} * (graph_.tree.levels - 1);
    for (std::uint32_t level = 1; level < graph_.tree.levels; ++level) {
      for (std::uint32_t k = rows[level - 1]; k < rows[level]; ++k) sum(level, graph_.touched[k]);
    }
  }

  /// The sums of the lanes up to each are those of shuffles: by one, two, four, ... lanes.
  static Index choose(const double* children, double& offset) {
    double end[cuda::kChildren];
    std::copy_n(children, cuda::kChildren, end);
    for (Index step = 1; step < cuda::kChildren; step *= 2) {
      for (Index lane = cuda::kChildren; lane-- > step;) end[lane] += end[lane - step];
    }
    Index child = cuda::kChildren;
    for (Index lane = cuda::kChildren; lane-- > 0;) {
      if (children[lane] > 0.0 && end[lane] > offset) child = lane;
    }
    for (Index lane = 0; lane < cuda::kChildren && child == cuda::kChildren; ++lane) {
      const Index last = cuda::kChildren - 1 - lane;
      if (children[last] > 0.0) child = last;
    }
    if (child > 0) offset = std::max(0.0, offset - end[child - 1]);
    return child;
  }

  cuda::FlipGraph graph_;
  cuda::FlipWeigher weigher_;
  std::vector<cuda::FlipCell> cells_;
  std::vector<cuda::SpinField> spin_fields_;
  std::vector<double> leaves_;
  std::vector<double> nodes_;
};

}  // namespace poise::testing
