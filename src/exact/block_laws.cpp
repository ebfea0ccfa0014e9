/// Small networks cut out of a large one.
#include "exact/block_laws.hpp"

#include <algorithm>

#include "exact/exact_inference.hpp"
#include "exact/junction_tree.hpp"
#include "models/network/tables.hpp"

namespace poise {

std::optional<Marginals> cheap_marginals(const Network& network, double operations) {
  const EliminationPlan plan = plan_elimination(network, 0.0);
  if (!plan.complete || plan.operations > operations) return std::nullopt;
  ExactOptions options;
  options.threads = 1;
  options.draws = false;
  try {
    return JunctionTree(network, plan, options).marginals();
  } catch (const InputError&) {
    return std::nullopt;
  }
}

std::vector<ExactPart> cheap_parts(const Network& network, double operations, std::size_t variables) {
  std::vector<ExactPart> parts;
  for (const std::vector<Index>& component : connected_components(network)) {
    if (component.size() > variables) continue;
    variables -= component.size();
    const Network own = component_network(network, component);
    const EliminationPlan tree = plan_elimination(own, 0.0);
    if (!tree.complete || tree.operations > operations) continue;
    operations -= tree.operations;
    try {
      parts.push_back({component, solve_exact(own, ExactPlan{tree, {}, 1.0}).marginals});
    } catch (const InputError&) {  // no state has positive probability
    }
  }
  return parts;
}

BlockLaws::BlockLaws(const Network& network) : network_(network), start_(network.num_variables() + 1, 0) {
  for (const Index i : network.scopes) ++start_[i + 1];
  for (std::size_t i = 0; i + 1 < start_.size(); ++i) start_[i + 1] += start_[i];
  factors_.resize(network.scopes.size());
  std::vector<std::size_t> next(start_.begin(), start_.end() - 1);
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    for (const Index i : network.scope(f)) factors_[next[i]++] = f;
    const std::span<const double> table = network.table(f);
    zeros_.push_back(std::find(table.begin(), table.end(), 0.0) != table.end() ? 1 : 0);
  }
}

std::vector<Index> BlockLaws::around(Index i, std::span<const std::uint8_t> tied, std::size_t most) const {
  std::vector<Index> block = {i};
  for (std::size_t k = 0; k < block.size(); ++k) {
    for (const std::size_t f : factors(block[k])) {
      for (const Index j : network_.scope(f)) {
        if (block.size() >= most) return block;
        const bool joins = zeros_[f] != 0 || (tied[block[k]] != 0 && tied[j] != 0);
        if (!joins || network_.levels(j) < 2) continue;
        if (std::find(block.begin(), block.end(), j) == block.end()) block.push_back(j);
      }
    }
  }
  return block;
}

std::optional<Marginals> BlockLaws::laws(std::span<const Index> block, std::span<const Value> x,
                                         double operations) const {
  Network part;
  std::vector<std::size_t> touched;
  for (const Index i : block) {
    part.cardinalities.push_back(network_.cardinalities[i]);
    touched.insert(touched.end(), factors(i).begin(), factors(i).end());
  }
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  for (const std::size_t f : touched) {
    const std::span<const Index> scope = network_.scope(f);
    std::vector<Index> inside;
    TableWalk walk;
    std::size_t place = 0;
    std::size_t stride = 1;
    for (std::size_t k = scope.size(); k-- > 0;) {
      const auto found = std::find(block.begin(), block.end(), scope[k]);
      if (found == block.end()) {
        place += stride * x[scope[k]];
      } else {
        inside.insert(inside.begin(), static_cast<Index>(found - block.begin()));
        walk.add(stride, network_.cardinalities[scope[k]]);
      }
      stride *= network_.cardinalities[scope[k]];
    }
    std::vector<double> table;
    do {
      table.push_back(network_.table(f)[place + walk.offset()]);
    } while (walk.next());
    part.add_factor(inside, table);
  }
  return cheap_marginals(part, operations);
}

}  // namespace poise
