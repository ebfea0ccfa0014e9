/// Transition probabilities and their gradient where a random block takes another configuration: T_z = g(z) / max{Z(x),
/// Z(z)}, for all configurations z of a few blocks.
///
/// An entry is a level of one variable, and its transition probability that of all configurations with this level
/// together. So a criterion may be a function of how often variables change, and of nothing else.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include <poise/extend/kernels/block_balanced.hpp>
#include <poise/extend/learning/transition_gradient.hpp>

namespace poise {

/// Configurations of a block that can be learned from: every one is looked at from every other.
inline constexpr std::size_t kMostLearnedConfigurations = 256;

namespace block_gradient {

/// Pairs of configurations that one observation of a chain looks at.
constexpr std::size_t kPairs = std::size_t{1} << 16;
constexpr std::size_t kMostBlocks = 64;

/// Where the entries of each variable begin; those not looked at have none.
template <Target T>
std::vector<Index> first_entries(const T& target, Index stride) {
  std::vector<Index> first(target.num_variables() + std::size_t{1}, 0);
  for (Index i = 0; i < target.num_variables(); ++i) {
    first[i + 1] = first[i] + (i % stride == 0 ? target.cardinality(i) - 1 : 0);
  }
  return first;
}

/// Calls visit(entry) for all levels that a configuration of a block has and the present one has not.
template <class Visit>
void for_each_entry(std::span<const Index> block, std::span<const Value> present, std::span<const Value> levels,
                    std::span<const Index> first, Visit&& visit) {
  for (std::size_t k = 0; k < block.size(); ++k) {
    if (levels[k] == present[k] || first[block[k] + std::size_t{1}] == first[block[k]]) continue;
    visit(first[block[k]] + (levels[k] > present[k] ? levels[k] - 1U : levels[k]));
  }
}

}  // namespace block_gradient

template <Target T>
void transition_gradient(const BlockBalanced<T>& kernel, const T& target, const typename T::State& state,
                         typename BlockBalanced<T>::Scratch& scratch, Rng& rng,
                         const TransitionGradientOptions& options, TransitionGradient& out) {
  out.sampled.clear();
  out.probes.clear();
  reserve_entries(target, options, out);
  out.log_prob = target.log_prob(state);
  const Index variables = target.num_variables();
  const Index stride = (variables + options.max_variables - 1) / options.max_variables;
  std::vector<double> exact(target.num_moves());  // what marginals are learned from
  target.log_ratios(state, exact);
  scratch.evals.ratio += exact.size();
  for_each_looked_at(target, options, out, [&](Index position, Index first, Index end) {
    for (Index move = first; move < end; ++move) {
      out.entries.push_back({move, position, target.move_at(state, move).value, exact[move], 0.0, 0.0});
    }
  });

  scratch.first_entry = block_gradient::first_entries(target, stride);
  scratch.looks.clear();
  std::size_t blocks = 1;
  std::vector<Value> present, levels;
  for (std::size_t b = 0; b < blocks; ++b) {
    draw_block(scratch, kernel.size(), rng);
    kernel.look(target, state, scratch);
    const std::size_t count = scratch.weights.size();
    blocks = std::clamp<std::size_t>(block_gradient::kPairs / (count * count), 1, block_gradient::kMostBlocks);
    scratch.looks.push_back({scratch.block, scratch.cardinalities, scratch.here.from, scratch.weights});
    present.resize(scratch.block.size());
    levels.resize(scratch.block.size());
    gray_code(scratch.cardinalities, scratch.here.from, present);
    for (std::size_t z = 0; z < count; ++z) {
      const auto proposal = kernel.evaluate(scratch, z);
      gray_code(scratch.cardinalities, z, levels);
      block_gradient::for_each_entry(scratch.block, present, levels, scratch.first_entry, [&](Index entry) {
        out.entries[entry].transition += proposal.prob * proposal.accept_prob;
      });
    }
  }
  for (auto& entry : out.entries) entry.transition /= static_cast<double>(blocks);
}

template <Target T>
void add_gradient(const BlockBalanced<T>& kernel, const T&, const typename T::State&,
                  typename BlockBalanced<T>::Scratch& scratch, const TransitionGradient&,
                  std::span<const double> coefficients, std::span<double> out) {
  const BalanceTable& table = *kernel.function().table();
  BlockView& here = scratch.here;
  BlockView& there = scratch.there;
  const auto spread = [&](const BlockView& view, double weight) {
    for (std::size_t k = 0; k < view.weights.size(); ++k) {
      if (view.weights[k] == 0.0) continue;
      table.add_gradient(view.log_ratios[k], weight * view.weights[k] / view.total, out);
    }
  };
  std::vector<Value> present, levels;
  for (const auto& look : scratch.looks) {
    here.look(kernel.function(), look.log_ratios, look.present);
    if (!(here.total > 0.0)) continue;
    present.resize(look.block.size());
    levels.resize(look.block.size());
    gray_code(look.cardinalities, look.present, present);
    double mean_here = 0.0;
    for (std::size_t z = 0; z < look.log_ratios.size(); ++z) {
      if (here.weights[z] == 0.0) continue;
      gray_code(look.cardinalities, z, levels);
      double weight = 0.0;
      block_gradient::for_each_entry(look.block, present, levels, scratch.first_entry,
                                     [&](Index entry) { weight += coefficients[entry]; });
      there.look(kernel.function(), look.log_ratios, z);
      const double accept_prob = std::exp(std::min(0.0, here.log_total() - there.log_total()));
      weight *= here.weights[z] / here.total * accept_prob / static_cast<double>(scratch.looks.size());
      if (weight == 0.0) continue;
      table.add_gradient(here.log_ratios[z], weight, out);
      if (accept_prob < 1.0) {
        spread(there, -weight);
      } else {
        mean_here += weight;
      }
    }
    spread(here, -mean_here);
  }
}

}  // namespace poise
