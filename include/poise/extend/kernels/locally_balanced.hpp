/// Locally balanced proposals with exact ratios (Zanella 2020): propose a move with probability g(p(x')/p(x)) / Z(x),
/// accept it with probability min{1, Z(x)/Z(x')}.
///
/// On a sparse target Z(x') differs from Z(x) only by the moves that the proposal affects, so a step costs
/// O(degree + log d). Weights carry an offset, g(e^u) e^-offset, chosen anew when their sum leaves the range of
/// doubles. Now and then a step rests (kernels/step.hpp).
///
/// Where a ratio can take few values per move (an Ising site has ten), `tabulate` computes the weights of all of them
/// once, and a step evaluates no exponential at all.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <poise/extend/base/concepts.hpp>
#include <poise/extend/base/weight_tree.hpp>
#include <poise/extend/kernels/step.hpp>
#include <poise/extend/learning/balancing_function.hpp>

namespace poise {

/// A sparse target whose log ratios depend on the move and on a small code in the state alone.
template <class T>
concept CodedTarget = SparseTarget<T> && requires(const T& target, const typename T::State& state, Index i) {
  { T::kCodes } -> std::convertible_to<Index>;
  { target.coded_log_ratio(i, i) } -> std::same_as<double>;
  target.for_each_affected_code(state, i, [](Index, Index) {});
};

template <SparseTarget T>
class LocallyBalanced {
 public:
  /// Steps that look weights up in a table are a few per cent faster with AVX-512.
  static constexpr InstructionSet kWidest = CodedTarget<T> ? InstructionSet::avx512 : InstructionSet::avx2;

  struct Scratch {
    explicit Scratch(const T& target)
        : tree(target.num_moves()),
          affected(target.max_affected() + 8),
          new_weights(affected.size()),
          ratios_after(affected.size()),
          rests(target.num_moves()) {}
    WeightTree tree;
    double offset = 0.0;    // log g of a move is log(its weight) + offset
    std::size_t count = 0;  // moves affected by the proposed one, their numbers and weights after it
    std::vector<Index> affected;
    std::vector<double> new_weights;
    std::vector<std::pair<Index, double>> ratios_after;  // affected moves and their log ratios, for log_total_after
    Rests rests;
    Index node = 0;  // of the tree, in which the proposal lies; `rest` is what is left to find it there
    double rest = 0.0;
    Index move = 0;          // proposed last
    double threshold = 0.0;  // uniform number that decides on it
    Move change = {};        // made by the last accepted step
    Value old_level = 0;
    const char* failure = nullptr;  // what is wrong with the target, once something is
    Evals evals;

    /// What the next step depends on, and what was counted.
    template <class A>
    void archive(A& archive) {
      archive(tree, offset, evals);
    }
  };

  /// What is known of a proposal before it is accepted or not.
  struct Proposal {
    double prob;         ///< Q(x'|x)
    double accept_prob;  ///< A(x', x)
    bool in_range;       ///< Z(x') fits the present offset
  };

  LocallyBalanced() = default;
  explicit LocallyBalanced(BalancingFunction function) : function_(std::move(function)) {}

  [[nodiscard]] const BalancingFunction& function() const { return function_; }
  /// The same kernel with another balancing function.
  [[nodiscard]] LocallyBalanced with_function(BalancingFunction function) const {
    return LocallyBalanced(std::move(function));
  }
  [[nodiscard]] static Index steps_per_sweep(const T& target) { return target.num_moves(); }

  [[nodiscard]] bool is_tabulated() const { return coded_ != nullptr; }

  /// Tables the weights of all moves at all codes, if they fit a second-level cache and all are far from overflow, so
  /// that no offset is needed. The kernel is then for this target only.
  void tabulate(const T& target) {
    if constexpr (CodedTarget<T>) {
      coded_.reset();
      if (target.num_moves() > kMostTabled) return;
      std::vector<double> weights(std::size_t{target.num_moves()} * T::kCodes);
      for (Index move = 0; move < target.num_moves(); ++move) {
        for (Index code = 0; code < T::kCodes; code += 8) {
          double* place = &weights[std::size_t{move} * T::kCodes + code];
          for (Index k = 0; k < 8; ++k) {
            place[k] = target.coded_log_ratio(move, code + k);
            if (!std::isfinite(place[k])) return;
          }
          store8(place, function_.weights(load8(place), 0.0));
          for (Index k = 0; k < 8; ++k) {
            if (!(place[k] > kTamest && place[k] < 1.0 / kTamest)) return;
          }
        }
      }
      coded_ = std::make_shared<const std::vector<double>>(std::move(weights));
    }
  }

  /// Weights of all moves of the state.
  void prepare(const T& target, const typename T::State& state, Scratch& scratch) const {
    check_log_prob(target, state);
    weigh(target, state, scratch);
    if (scratch.failure != nullptr) throw std::runtime_error(scratch.failure);
  }

  /// The same where only the balancing function is new.
  void reweigh(const T& target, const typename T::State& state, Scratch& scratch) const {
    prepare(target, state, scratch);
  }

  /// Proposal and acceptance probability of move number `move`: what the step uses, what learning differentiates and
  /// what the exactness test checks.
  POISE_INLINE Proposal evaluate(const T& target, const typename T::State& state, Scratch& scratch, Index move) const {
    if constexpr (CodedTarget<T>) {
      if (coded_ != nullptr) return evaluate_coded(target, state, scratch, move);
    }
    const WeightTree& tree = scratch.tree;
    // A move to a state without probability is never made, and ratios there mean nothing.
    if (tree.weight(move) == 0.0) return {0.0, 0.0, true};
    const double total = tree.total();
    Doubles8 change = {};
    Ints8 legal = all8(std::int64_t{-1});
    std::size_t count = 0;
    target.for_each_affected(state, move, [&](const AffectedLanes& lanes) {
      const auto old = [&](unsigned lane) { return lane < lanes.count ? tree.weight(lanes.moves[lane]) : 0.0; };
      const Doubles8 before = lanes8(old(0), old(1), old(2), old(3), old(4), old(5), old(6), old(7));
      const Doubles8 after = function_.weights(lanes.log_ratios, scratch.offset);
      change += after - before;
      legal = legal & legal8(lanes.log_ratios);
      Index* moves = scratch.affected.data() + count;
      for (unsigned lane = 0; lane < 8; ++lane) moves[lane] = lanes.moves[lane];
      store8(&scratch.new_weights[count], after);
      count += lanes.count;
    });
    scratch.count = count;
    scratch.evals.ratio += count;
    scratch.evals.balance += count;
    // Where Z falls the proposal is accepted whatever the rounding of this sum; where it rises nothing cancels.
    const double after = total + sum8(change);
    const double prob = tree.weight(move) / total;
    if (!all_of8(legal)) {
      scratch.failure = kBadLogRatio;
      return {prob, 0.0, true};
    }
    if (in_range(after)) return {prob, after <= total ? 1.0 : total / after, true};
    const double log_after = log_total_after(target, state, scratch, move);
    const double log_before = std::log(total) + scratch.offset;
    return {prob, std::exp(std::min(0.0, log_before - log_after)), false};
  }

  /// The parts of one chain's step wait for each other and for memory, those of different chains do not: chains that go
  /// through each part together make a third more steps a second.
  static constexpr unsigned kChainsTogether = 4;

  template <class Chain>
  void advance(const T& target, std::span<Chain* const> chains, std::uint64_t steps) const {
    // Large models take two at a time: four would push each other's weights out of the cache.
    const std::size_t most = chains[0]->scratch.tree.is_large() ? 2 : kChainsTogether;
    for (std::size_t first = 0; first < chains.size(); first += most) {
      const auto count = static_cast<unsigned>(std::min(most, chains.size() - first));
      advance_together(target, chains.data() + first, count, steps);
    }
  }

  POISE_INLINE StepInfo step(const T& target, typename T::State& state, Scratch& scratch, Rng& rng) const {
    start(scratch, rng);
    propose(target, state, scratch);
    const Proposal proposal = evaluate(target, state, scratch, scratch.move);
    return decide(target, state, scratch, proposal);
  }

  // The parts of a step.

  POISE_INLINE void start(Scratch& scratch, Rng& rng) const {
    scratch.rest = rng.uniform() * scratch.tree.total();
    scratch.threshold = rng.uniform() * scratch.rests.stretch;
    scratch.node = scratch.tree.find_node(scratch.rest);
  }

  POISE_INLINE void propose(const T& target, const typename T::State& state, Scratch& scratch) const {
    if constexpr (requires { target.prefetch(state, Index{}, Index{}, [](Index) {}); }) {
      if (scratch.tree.is_large()) {
        // The weights of the node are still on their way: what any of its moves may need can come along with them. What
        // only an update will touch is fetched when the move is known.
        const WeightTree& tree = scratch.tree;
        target.prefetch(state, scratch.node * WeightTree::kWidth, WeightTree::kWidth,
                        [&](Index other) { tree.prefetch_weight(other); });
        scratch.move = tree.find_entry(scratch.node, scratch.rest);
        for (const Index other : target.rows_beside(scratch.move)) tree.prefetch(other);
        return;
      }
    }
    scratch.move = scratch.tree.find_entry(scratch.node, scratch.rest);
  }

  POISE_INLINE StepInfo decide(const T& target, typename T::State& state, Scratch& scratch,
                               const Proposal& proposal) const {
    if (scratch.threshold >= proposal.accept_prob) return {proposal.accept_prob, false, 0};
    const Move move = target.move_at(state, scratch.move);
    scratch.change = move;
    scratch.old_level = target.level(state, move.variable);
    if constexpr (requires { target.apply(state, move, scratch.affected.data(), scratch.count); }) {
      target.apply(state, move, scratch.affected.data(), scratch.count);
    } else {
      target.apply(state, move);
    }
    if (proposal.in_range) {
      scratch.tree.update(scratch.affected.data(), scratch.new_weights.data(), scratch.count);
    }
    // Where nearly all weight was on the moves that changed, the sum of changes is rounding; the tree's own sum tells.
    if (!proposal.in_range || !in_range(scratch.tree.total())) weigh(target, state, scratch);
    return {proposal.accept_prob, true, 1};
  }

  /// Calls visit(variable, number of its first move, old level) for what the last step changed.
  template <class Visit>
  POISE_INLINE void for_each_change(const T&, const typename T::State&, const Scratch& scratch, const StepInfo& info,
                                    Visit&& visit) const {
    if (!info.accepted) return;
    // Moves are numbered by the level they lead to, the present one left out.
    const Value level = scratch.change.value;
    visit(scratch.change.variable, scratch.move - (level > scratch.old_level ? level - 1U : level), scratch.old_level);
  }

 private:
  /// `count` chains, at most kChainsTogether, each making the steps that it would make alone.
  template <class Chain>
  void advance_together(const T& target, Chain* const* chains, unsigned count, std::uint64_t steps) const {
    hot<kWidest>([&, this, chains, count, steps] {
      Proposal proposals[kChainsTogether];
      for (std::uint64_t made = 0; made < steps; ++made) {
        for (unsigned c = 0; c < count; ++c) start(chains[c]->scratch, chains[c]->rng);
        for (unsigned c = 0; c < count; ++c) propose(target, chains[c]->state, chains[c]->scratch);
        for (unsigned c = 0; c < count; ++c) {
          const Scratch& scratch = chains[c]->scratch;
          if (scratch.tree.is_large()) chains[c]->prefetch_counts(scratch.move);
          proposals[c] = evaluate(target, chains[c]->state, chains[c]->scratch, scratch.move);
        }
        for (unsigned c = 0; c < count; ++c) {
          chains[c]->count(*this, target, decide(target, chains[c]->state, chains[c]->scratch, proposals[c]));
        }
      }
    });
  }

  // Room for a product of two totals and for weights far below the total.
  static constexpr double kSmallest = 1e-140;
  static constexpr double kLargest = 1e140;
  POISE_INLINE static bool in_range(double total) { return total > kSmallest && total < kLargest; }

  POISE_INLINE Proposal evaluate_coded(const T& target, const typename T::State& state, Scratch& scratch,
                                       Index move) const {
    const double* coded = coded_->data();
    const double total = scratch.tree.total();
    double change = 0.0;
    std::size_t count = 0;
    target.for_each_affected_code(state, move, [&](Index other, Index code) {
      const double weight = coded[std::size_t{other} * T::kCodes + code];
      change += weight - scratch.tree.weight(other);
      scratch.affected[count] = other;
      scratch.new_weights[count++] = weight;
    });
    scratch.count = count;
    scratch.evals.ratio += count;
    scratch.evals.balance += count;
    const double after = total + change;
    return {scratch.tree.weight(move) / total, after <= total ? 1.0 : total / after, true};
  }

  /// The offset puts the move with the largest ratio at 1, which keeps the sum in range for every monotone g; where it
  /// does not, the largest log g of all moves is looked for. Hot functions do not throw: they leave a note in
  /// `failure`.
  void weigh(const T& target, const typename T::State& state, Scratch& scratch) const {
    hot<InstructionSet::avx2>([&] {
      const std::span<double> weights = scratch.tree.weights();
      target.log_ratios(state, weights);
      double largest = -std::numeric_limits<double>::infinity();
      bool legal = true;
      for (const double u : weights) {
        legal = legal && is_legal(u);
        largest = std::max(largest, u);
      }
      if (!legal) scratch.failure = kBadLogRatio;
      if (scratch.failure != nullptr) return;
      if (largest == -std::numeric_limits<double>::infinity()) {
        // An isolated state: all weights are zero, no proposal is ever accepted, and the chain stays, as it must.
        fill(weights, 0.0, scratch);
        return;
      }
      fill(weights, coded_ != nullptr ? 0.0 : function_.log_g(largest), scratch);
      if (!in_range(scratch.tree.total())) {
        target.log_ratios(state, weights);
        double offset = -std::numeric_limits<double>::infinity();
        for (const double u : weights) offset = std::max(offset, function_.log_g(u));
        fill(weights, offset, scratch);
      }
      scratch.evals.ratio += weights.size();
      scratch.evals.balance += weights.size();
    });
  }

  /// Turns log ratios into weights, in place.
  POISE_INLINE void fill(std::span<double> weights, double offset, Scratch& scratch) const {
    const std::size_t n = weights.size();
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) store8(&weights[i], function_.weights(load8(&weights[i]), offset));
    if (i < n) {
      double rest[8] = {};
      std::copy_n(&weights[i], n - i, rest);
      store8(rest, function_.weights(load8(rest), offset));
      std::copy_n(rest, n - i, &weights[i]);
    }
    scratch.offset = offset;
    scratch.tree.rebuild();
  }

  /// log Z(x') after a move in the log domain, from legal ratios. Where the new weights are too large for the offset,
  /// what the move does not affect is known from the present sum well enough (it is small beside them); where they are
  /// too small, all moves are summed.
  [[gnu::noinline]] double log_total_after(const T& target, const typename T::State& state, Scratch& scratch,
                                           Index move) const {
    double rest = scratch.tree.total();
    double most = -std::numeric_limits<double>::infinity();
    std::size_t count = 0;
    target.for_each_affected(state, move, [&](const AffectedLanes& lanes) {
      for (unsigned k = 0; k < lanes.count; ++k) {
        rest -= scratch.tree.weight(lanes.moves[k]);
        most = std::max(most, function_.log_g(lanes.log_ratios[k]));
        scratch.ratios_after[count++] = {lanes.moves[k], lanes.log_ratios[k]};
      }
    });
    const auto affected = scratch.ratios_after.begin();
    const auto end = affected + static_cast<std::ptrdiff_t>(count);
    if (most - scratch.offset > std::log(kLargest) / 2) {
      double sum = rest > 0.0 ? std::exp(std::log(rest) + scratch.offset - most) : 0.0;
      for (auto it = affected; it != end; ++it) sum += std::exp(function_.log_g(it->second) - most);
      return most + std::log(sum);
    }
    std::sort(affected, end);
    const auto for_each_log_g = [&](auto&& use) {
      auto next = affected;
      for (Index m = 0; m < target.num_moves(); ++m) {
        const bool is_affected = next != end && next->first == m;
        use(function_.log_g(is_affected ? (next++)->second : target.log_ratio(state, target.move_at(state, m))));
      }
    };
    double largest = -std::numeric_limits<double>::infinity();
    for_each_log_g([&](double log_g) { largest = std::max(largest, log_g); });
    double sum = 0.0;
    for_each_log_g([&](double log_g) { sum += std::exp(log_g - largest); });
    scratch.evals.ratio += target.num_moves();
    scratch.evals.balance += target.num_moves();
    return largest + std::log(sum);
  }

  static constexpr Index kMostTabled = 8192;
  static constexpr double kTamest = 1e-80;  // weights between this and its inverse: sums stay in range at offset 0

  BalancingFunction function_;
  std::shared_ptr<const std::vector<double>> coded_;  // [move * codes + code]; null: weights are computed as needed
};

}  // namespace poise
