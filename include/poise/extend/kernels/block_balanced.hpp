/// Locally balanced proposals over the configurations of a random block: a configuration z of a few variables, other
/// than the present one, is proposed in proportion to g(p(z)/p(x)) and accepted with probability min{1, Z(x)/Z(z)}.
///
/// Every configuration of a block has the same others around it, so the ratios that the proposal needs also give the
/// way back: a step costs one evaluation of the block.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <poise/extend/kernels/block_moves.hpp>
#include <poise/extend/learning/balancing_function.hpp>

namespace poise {

/// The number of a configuration in the order of walk_all: the inverse of gray_code.
inline std::size_t gray_number(std::span<const Index> cardinalities, std::span<const Value> levels) {
  std::size_t number = 0;
  for (std::size_t k = levels.size(); k-- > 0;) {
    const std::size_t digit = number % 2 == 0 ? levels[k] : cardinalities[k] - 1U - levels[k];
    number = number * cardinalities[k] + digit;
  }
  return number;
}

/// All configurations of a block as they are seen from one of them.
struct BlockView {
  std::size_t from = 0;            // the number of that one
  std::vector<double> log_ratios;  // to it, padded with -inf to a multiple of eight
  std::vector<double> weights;     // g e^-offset, 0 for itself
  double offset = 0.0;
  double total = 0.0;

  [[nodiscard]] double log_total() const { return std::log(total) + offset; }
  /// Looks from configuration `from`; `log_ratios` are to any of them. Says whether all are legal.
  bool look(const BalancingFunction& function, std::span<const double> log_ratios_to_any, std::size_t number);
};

template <Target T>
class BlockBalanced {
 public:
  /// A block that was looked at for learning.
  struct Look {
    std::vector<Index> block;
    std::vector<Index> cardinalities;
    std::size_t present = 0;
    std::vector<double> log_ratios;  // of all configurations to the present one
  };
  struct Scratch : BlockScratch<T> {
    using BlockScratch<T>::BlockScratch;
    BlockView here;
    BlockView there;
    std::vector<Look> looks;         // the last ones
    std::vector<Index> first_entry;  // of each variable in what was learned from them
  };
  struct Proposal {
    double prob;
    double accept_prob;
  };

  BlockBalanced(BalancingFunction function, Index size) : function_(std::move(function)), size_(size) {}

  [[nodiscard]] const BalancingFunction& function() const { return function_; }
  /// The same kernel with another balancing function.
  [[nodiscard]] BlockBalanced with_function(BalancingFunction function) const { return {std::move(function), size_}; }
  void reweigh(const T&, const typename T::State&, Scratch&) const {}

  [[nodiscard]] Index size() const { return size_; }
  [[nodiscard]] Index steps_per_sweep(const T& target) const {
    return std::max<Index>(1, target.num_variables() / size_);
  }
  /// Throws InputError where a block of the target may have too many configurations.
  void prepare(const T& target, const typename T::State& state, Scratch& scratch) const {
    const std::size_t most = most_configurations(scratch.free_cardinalities(target), size_);
    scratch.reserve(size_, most);
    for (BlockView* view : {&scratch.here, &scratch.there}) {
      view->log_ratios.reserve(most + 7);
      view->weights.reserve(most + 7);
    }
    check_log_prob(target, state);
  }

  /// Looks at the configurations of `scratch.block` from the present one.
  void look(const T& target, const typename T::State& state, Scratch& scratch) const {
    look_at_block(target, state, scratch);
    const std::size_t present = gray_number(scratch.cardinalities, scratch.now);
    scratch.direction.resize(scratch.block.size());
    weigh_configurations(target, state, scratch, [&](auto&& change, auto&& take) {
      walk_all(scratch.cardinalities, scratch.now, scratch.direction, change, take);
    });
    scratch.evals.balance += scratch.weights.size();
    if (!scratch.here.look(function_, scratch.weights, present)) scratch.failure = kBadLogRatio;
  }
  /// Q and A of configuration `number` of the block last looked at.
  Proposal evaluate(Scratch& scratch, std::size_t number) const {
    const BlockView& here = scratch.here;
    const double weight = here.weights[number];
    if (weight == 0.0) return {0.0, 0.0};
    scratch.evals.balance += scratch.weights.size();
    if (!scratch.there.look(function_, scratch.weights, number)) scratch.failure = kBadLogRatio;
    return {weight / here.total, std::exp(std::min(0.0, here.log_total() - scratch.there.log_total()))};
  }

  StepInfo step(const T& target, typename T::State& state, Scratch& scratch, Rng& rng) const {
    scratch.changed.clear();
    draw_block(scratch, size_, rng);
    const double place = rng.uniform();
    const double threshold = rng.uniform();
    look(target, state, scratch);
    if (scratch.failure != nullptr || !(scratch.here.total > 0.0)) return {0.0, false, 0};
    const std::size_t chosen = draw(scratch.here, place);
    const double accept_prob = evaluate(scratch, chosen).accept_prob;
    if (scratch.failure != nullptr || threshold >= accept_prob) return {accept_prob, false, 0};
    gray_code(scratch.cardinalities, chosen, scratch.now);
    StepInfo info = move_to(target, state, scratch);
    info.accept_prob = accept_prob;
    return info;
  }

 private:
  /// A configuration in proportion to its weight; `place` is uniform.
  static std::size_t draw(const BlockView& view, double place) {
    place *= view.total;
    std::size_t chosen = 0;
    while (chosen + 1 < view.weights.size() && place >= view.weights[chosen]) place -= view.weights[chosen++];
    while (chosen > 0 && view.weights[chosen] == 0.0) --chosen;  // rounding may lead past the last positive weight
    while (view.weights[chosen] == 0.0) ++chosen;
    return chosen;
  }

  BalancingFunction function_;
  Index size_;
};

}  // namespace poise
