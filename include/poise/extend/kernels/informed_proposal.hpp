/// Balanced proposals where every move changes every ratio: with exact ratios, or with first-order ones from a gradient
/// (Gibbs With Gradients and its learned forms), and full Metropolis-Hastings with the reverse proposal at the new
/// state.
///
/// A step costs one evaluation of all ratios, at the proposed state; if the proposal is accepted they are those of the
/// next step. Chains of a group make their steps together, so that targets can evaluate all of them in one go. Now and
/// then a step rests (kernels/step.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <poise/extend/base/archive.hpp>
#include <poise/extend/base/concepts.hpp>
#include <poise/extend/base/hot.hpp>
#include <poise/extend/kernels/step.hpp>
#include <poise/extend/learning/balancing_function.hpp>
#include <poise/types.hpp>

namespace poise {

/// Balanced weights g(e^u) of all moves of one state.
struct WeighedMoves {
  std::vector<double> log_ratios;  ///< padded with -inf to a multiple of eight
  std::vector<double> weights;     ///< g e^-offset
  double offset = 0.0;
  double total = 0.0;

  void resize(Index moves) {
    log_ratios.resize((moves + std::size_t{7}) / 8 * 8, -std::numeric_limits<double>::infinity());
    weights.resize(log_ratios.size());
  }
  [[nodiscard]] double log_total() const { return std::log(total) + offset; }
  template <class A>
  void archive(A& archive) {
    archive(log_ratios, weights, offset, total);
  }
};

/// Turns log ratios into weights, relative to the largest log g, so that the sum is never out of range. False where a
/// log ratio is illegal.
bool weigh_moves(const BalancingFunction& function, WeighedMoves& out);

enum class Ratios { exact, first_order };

/// At most this many chains are looked at in one go, so that lists of them have their places on the stack.
inline constexpr std::size_t kLookTogether = 64;

/// The step and the loop of a kernel K whose step has three parts, `propose`, `look_ahead` and `decide`. The second one
/// takes a whole group of chains, so that targets can evaluate all of them in one go.
template <class K, Target T>
class GroupedSteps {
 public:
  static constexpr std::size_t kChainsTogether = 16;  // fill the lanes of one matrix product

  template <class Scratch>
  StepInfo step(const T& target, typename T::State& state, Scratch& scratch, Rng& rng) const {
    self().propose(target, state, scratch, rng);
    self().look_ahead(target, &scratch);
    return self().decide(target, state, scratch);
  }

  template <class Chain>
  void advance(const T& target, std::span<Chain* const> chains, std::uint64_t steps) const {
    std::vector<typename K::Scratch*> scratches;
    for (Chain* chain : chains) scratches.push_back(&chain->scratch);
    for (std::uint64_t made = 0; made < steps; ++made) {
      for (Chain* chain : chains) self().propose(target, chain->state, chain->scratch, chain->rng);
      self().look_ahead(target, scratches);
      for (Chain* chain : chains) chain->count(self(), target, self().decide(target, chain->state, chain->scratch));
    }
  }

 private:
  [[nodiscard]] const K& self() const { return static_cast<const K&>(*this); }
};

/// A target that gives first-order log ratios of all moves of many states at once.
template <class T>
concept GradientTarget = Target<T> &&
    requires(const T& target, std::span<const typename T::State* const> states, std::span<double* const> out) {
  target.first_order_log_ratios(states, out);
};

template <Target T>
class InformedProposal : public GroupedSteps<InformedProposal<T>, T> {
 public:
  using Weighed = WeighedMoves;
  struct Scratch {
    explicit Scratch(const T& target)
        : proposed(target.make_state(std::vector<Value>(target.num_variables(), 0))),
          first_move(first_moves(target)),
          rests(target.num_moves()) {
      here.resize(target.num_moves());
      there.resize(target.num_moves());
    }
    typename T::State proposed;  // the present state, with the proposed move made while it is looked at
    Weighed here;
    Weighed there;
    std::vector<Index> first_move;  // number of the first move of each variable
    Rests rests;
    Index move = 0;
    Move change = {};
    Value old_level = 0;
    double log_prob = 0.0;   // of the present state, where the target remembers it
    double log_ratio = 0.0;  // exact, of the proposed move
    double threshold = 0.0;
    bool isolated = false;  // no move has any weight, and none is proposed
    const char* failure = nullptr;
    Evals evals;

    /// What the next step depends on, and what was counted.
    template <class A>
    void archive(A& archive) {
      if constexpr (Archivable<typename T::State, A>) archive(proposed);
      archive(here, evals);
    }
  };
  struct Proposal {
    double prob;
    double accept_prob;
  };

  explicit InformedProposal(BalancingFunction function, Ratios ratios = Ratios::exact)
      : function_(std::move(function)), ratios_(ratios) {}

  [[nodiscard]] const BalancingFunction& function() const { return function_; }
  /// The same kernel with another balancing function.
  [[nodiscard]] InformedProposal with_function(BalancingFunction function) const {
    return InformedProposal(std::move(function), ratios_);
  }
  [[nodiscard]] Ratios ratios() const { return ratios_; }
  [[nodiscard]] static Index steps_per_sweep(const T& target) { return target.num_moves(); }

  void prepare(const T& target, const typename T::State& state, Scratch& scratch) const {
    check_log_prob(target, state);
    scratch.proposed = state;
    Scratch* one = &scratch;
    const typename T::State* states[] = {&state};
    look(target, states, std::span<Scratch* const>(&one, 1), [](Scratch& s) -> Weighed& { return s.here; });
    if (scratch.failure != nullptr) throw std::runtime_error(scratch.failure);
  }

  /// The same where only the balancing function is new: the ratios are there already.
  void reweigh(const T&, const typename T::State&, Scratch& scratch) const {
    weigh(scratch.here, scratch);
    scratch.evals.balance += scratch.here.log_ratios.size();
  }

  /// Q and A of a move of the present state, by making it, looking, and taking it back.
  Proposal evaluate(const T& target, const typename T::State& state, Scratch& scratch, Index move) const {
    scratch.move = move;
    scratch.isolated = false;
    if (scratch.here.weights[move] == 0.0) return {0.0, 0.0};
    make(target, state, scratch);
    look_ahead(target, &scratch);
    const Proposal proposal = judge(scratch);
    target.apply(scratch.proposed, {scratch.change.variable, scratch.old_level});
    return proposal;
  }

  // The parts of a step; the middle one takes a whole group.

  POISE_INLINE void propose(const T& target, const typename T::State& state, Scratch& scratch, Rng& rng) const {
    double place = rng.uniform() * scratch.here.total;
    scratch.threshold = rng.uniform() * scratch.rests.stretch;
    scratch.move = select(scratch.here, target.num_moves(), place);
    scratch.isolated = scratch.here.weights[scratch.move] == 0.0;
    if (!scratch.isolated) make(target, state, scratch);
  }

  /// Ratios at the proposed states of all scratches.
  void look_ahead(const T& target, std::span<Scratch* const> group) const {
    for (std::size_t first = 0; first < group.size(); first += kLookTogether) {
      const auto some = group.subspan(first, std::min(kLookTogether, group.size() - first));
      std::array<const typename T::State*, kLookTogether> states;
      for (std::size_t c = 0; c < some.size(); ++c) states[c] = &some[c]->proposed;
      look(target, {states.data(), some.size()}, some, [](Scratch& s) -> Weighed& { return s.there; });
    }
    if constexpr (MemoisingTarget<T>) {
      if (ratios_ == Ratios::exact) return;
      for (Scratch* scratch : group) scratch->log_ratio = target.log_prob(scratch->proposed) - scratch->log_prob;
    }
  }
  void look_ahead(const T& target, Scratch* one) const { look_ahead(target, std::span<Scratch* const>(&one, 1)); }

  POISE_INLINE StepInfo decide(const T& target, typename T::State& state, Scratch& scratch) const {
    if (scratch.isolated) return {0.0, false, 0};
    const Proposal proposal = judge(scratch);
    if (scratch.threshold >= proposal.accept_prob) {
      target.apply(scratch.proposed, {scratch.change.variable, scratch.old_level});
      return {proposal.accept_prob, false, 0};
    }
    if constexpr (MemoisingTarget<T>) {
      state = scratch.proposed;
    } else {
      target.apply(state, scratch.change);
    }
    std::swap(scratch.here, scratch.there);
    return {proposal.accept_prob, true, 1};
  }

  template <class Visit>
  POISE_INLINE void for_each_change(const T&, const typename T::State&, const Scratch& scratch, const StepInfo& info,
                                    Visit&& visit) const {
    if (info.accepted) visit(scratch.change.variable, scratch.first_move[scratch.change.variable], scratch.old_level);
  }

  /// Number of the move that takes the last proposal back, at the proposed state.
  [[nodiscard]] static Index back_move(const Scratch& scratch) {
    const Value from = scratch.old_level;
    return scratch.first_move[scratch.change.variable] + (from > scratch.change.value ? from - 1U : from);
  }

 private:
  POISE_INLINE static Index select(const Weighed& here, Index moves, double place) {
    std::size_t block = 0;
    const std::size_t blocks = here.weights.size() / 8;
    for (; block + 1 < blocks; ++block) {
      const double sum = sum8(load8(here.weights.data() + 8 * block));
      if (place < sum) break;
      place -= sum;
    }
    auto move = static_cast<Index>(8 * block);
    while (move + 1 < moves && place >= here.weights[move]) place -= here.weights[move++];
    while (move > 0 && here.weights[move] == 0.0) --move;  // rounding may lead past the last positive weight
    return move;
  }

  POISE_INLINE void make(const T& target, const typename T::State& state, Scratch& scratch) const {
    scratch.change = target.move_at(state, scratch.move);
    scratch.old_level = target.level(state, scratch.change.variable);
    if (ratios_ == Ratios::exact) {
      scratch.log_ratio = scratch.here.log_ratios[scratch.move];
    } else if constexpr (MemoisingTarget<T>) {
      scratch.log_prob = target.log_prob(state);  // that of the proposed state comes with its gradient
    } else {
      scratch.log_ratio = target.log_ratio(state, scratch.change);
    }
    if (ratios_ == Ratios::first_order) scratch.evals.ratio += 1;
    target.apply(scratch.proposed, scratch.change);
  }

  /// log A = log p(x')/p(x) + log Q(x|x') - log Q(x'|x). An offset is shared by a state's weights and cancels.
  POISE_INLINE Proposal judge(Scratch& scratch) const {
    const Weighed& here = scratch.here;
    const Weighed& there = scratch.there;
    const double prob = here.weights[scratch.move] / here.total;
    if (!is_legal(scratch.log_ratio)) scratch.failure = kBadLogRatio;
    if (scratch.failure != nullptr) return {prob, 0.0};
    // First-order ratios may lead to where there is no probability, or from where they do not lead back.
    constexpr double none = -std::numeric_limits<double>::infinity();
    if (scratch.log_ratio == none || there.log_ratios[back_move(scratch)] == none) return {prob, 0.0};
    const double log_back = function_.log_g(there.log_ratios[back_move(scratch)]) - there.log_total();
    const double log_forth = function_.log_g(here.log_ratios[scratch.move]) - here.log_total();
    return {prob, std::exp(std::min(0.0, scratch.log_ratio + log_back - log_forth))};
  }

  /// Evaluates at most kLookTogether states.
  template <class Pick>
  void look(const T& target, std::span<const typename T::State* const> states, std::span<Scratch* const> group,
            Pick&& pick) const {
    std::array<double*, kLookTogether> out;
    for (std::size_t c = 0; c < group.size(); ++c) {
      Weighed& weighed = pick(*group[c]);
      weighed.resize(target.num_moves());
      out[c] = weighed.log_ratios.data();
    }
    if constexpr (GradientTarget<T>) {
      if (ratios_ == Ratios::first_order) {
        target.first_order_log_ratios(states, std::span<double* const>(out.data(), group.size()));
      }
    }
    for (std::size_t c = 0; c < group.size(); ++c) {
      Scratch& scratch = *group[c];
      if (ratios_ == Ratios::exact || !GradientTarget<T>) {
        target.log_ratios(*states[c], {pick(scratch).log_ratios.data(), target.num_moves()});
        scratch.evals.ratio += target.num_moves();
      } else {
        scratch.evals.gradient += 1;
      }
      scratch.evals.balance += target.num_moves();
      weigh(pick(scratch), scratch);
    }
  }

  void weigh(Weighed& out, Scratch& scratch) const {
    if (!weigh_moves(function_, out)) scratch.failure = kBadLogRatio;
  }

  BalancingFunction function_;
  Ratios ratios_;
};

}  // namespace poise
