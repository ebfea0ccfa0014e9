/// Proposals that change many variables at once: every variable is drawn by itself (kernels/factorised_law.hpp), and
/// the whole is accepted with p(y) prod q_i(x_i|y) / (p(x) prod q_i(y_i|x)), the reverse law taken at y.
///
/// A step costs one evaluation of all ratios, however many variables change: that at the proposed state. If the
/// proposal is accepted it serves the next step. Chains of a group make their steps together, so that targets can
/// evaluate all of them in one go. One step in `kLocalEvery` is local (kernels/many_changes.hpp).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include <poise/extend/base/concepts.hpp>
#include <poise/extend/kernels/factorised_law.hpp>
#include <poise/extend/kernels/flips.hpp>
#include <poise/extend/kernels/many_changes.hpp>
#include <poise/extend/kernels/step.hpp>

namespace poise {

template <Target T>
class FactorisedProposal : public GroupedSteps<FactorisedProposal<T>, T> {
 public:
  /// What laws are made of.
  using Real = std::conditional_t<FloatGradientTarget<T>, float, double>;
  using Law = FactorisedLaw<Real>;

  struct Scratch {
    explicit Scratch(const T& target)
        : proposed(target.make_state(std::vector<Value>(target.num_variables(), 0))), variables(target) {
      here.resize(variables);
      there.resize(variables);
      const std::size_t needed =
          (variables.binary ? here.minor.size() / 4 : variables.variables()) + 1;  // and one for the decision
      words.resize((needed + Rng::kBatch - 1) / Rng::kBatch * Rng::kBatch);
      if (variables.binary) {
        flips.resize(here.minor.size());
        flip_bits.resize(here.minor.size() / kFlipsTogether);
        variable_of.reserve(variables.moves());
        for (Index i = 0; i < variables.variables(); ++i) {
          if (variables.moves(i) == 1) variable_of.push_back(i);
        }
      } else {
        picked.resize(here.stay_probs.size(), 1.0);
      }
      moves.reserve(variables.variables());
      changed.reserve(variables.variables());
      levels.resize(variables.variables());
    }
    typename T::State proposed;
    VariableMoves variables;
    std::vector<Index> variable_of;  // the variable of each move, where none has more than two levels
    Law here;
    Law there;
    std::vector<std::uint64_t> words;            // random
    std::vector<FlipMask<Real>> flips;           // -1 at the moves that are made; binary variables only
    std::vector<std::uint32_t> flip_bits;        // the same, a bit each
    std::vector<double> picked;                  // probabilities of what variables do, where some have more levels
    std::vector<Move> moves;                     // that are made
    std::vector<Change> changed;                 // by the last step
    std::vector<Value> levels;                   // a buffer for them
    std::vector<double> exact;                   // a buffer for ratios, where laws are floats
    const typename T::State* present = nullptr;  // the state that `moves` are moves of
    double log_prob = 0.0;                       // of the present state
    double proposed_log_prob = 0.0;
    double log_forth = 0.0;  // of the law here, of what was drawn
    double threshold = 0.0;
    bool is_local = false;
    const char* failure = nullptr;
    ProposalCounts proposals;
    Evals evals;

    /// What the next step depends on, and what was counted.
    template <class A>
    void archive(A& archive) {
      archive(here, log_prob, proposals, evals);
    }
  };
  struct Proposal {
    double prob;
    double accept_prob;
  };

  FactorisedProposal(FactorisedForm form, BalancingFunction function, Ratios ratios = Ratios::exact)
      : rule_(form, std::move(function)), ratios_(ratios) {}

  [[nodiscard]] const BalancingFunction& function() const { return rule_.function(); }
  [[nodiscard]] FactorisedForm form() const { return rule_.form(); }
  [[nodiscard]] Ratios ratios() const { return ratios_; }
  /// The same kernel with another balancing function.
  [[nodiscard]] FactorisedProposal with_function(BalancingFunction function) const {
    return FactorisedProposal(rule_.form(), std::move(function), ratios_);
  }
  /// A step proposes something for every variable.
  [[nodiscard]] static Index steps_per_sweep(const T&) { return 1; }

  void prepare(const T& target, const typename T::State& state, Scratch& scratch) const {
    check_log_prob(target, state);
    scratch.proposed = state;
    Scratch* one = &scratch;
    look(target, std::span<Scratch* const>(&one, 1));
    std::swap(scratch.here, scratch.there);
    scratch.log_prob = find_log_prob(target, state);
    if (scratch.failure != nullptr) throw std::runtime_error(scratch.failure);
  }

  /// The same where only the balancing function is new: the ratios are there already.
  void reweigh(const T&, const typename T::State&, Scratch& scratch) const {
    static_cast<void>(rule_.fill(scratch.here, scratch.variables));
    scratch.evals.balance += scratch.variables.moves();
  }

  /// Q and A of a whole state, by making it and looking.
  Proposal evaluate(const T& target, const typename T::State& state, Scratch& scratch,
                    std::span<const Value> to) const {
    choose(target, state, scratch, to);
    look_ahead(target, &scratch);
    return {std::exp(scratch.log_forth), judge(target, scratch)};
  }

  /// The acceptance probability of a proposal of many changes that is drawn for the sake of it.
  double probe(const T& target, const typename T::State& state, Scratch& scratch, Rng& rng) const {
    rng.fill(scratch.words);
    propose_many(target, state, scratch, rng);
    look_ahead(target, &scratch);
    return judge(target, scratch);
  }

  // The parts of a step; the middle one takes a whole group.

  void propose(const T& target, const typename T::State& state, Scratch& scratch, Rng& rng) const {
    rng.fill(scratch.words);
    const std::uint64_t last = scratch.words.back();
    scratch.threshold = to_unit(last);
    scratch.is_local = last % kLocalEvery == 0;  // bits that the threshold leaves
    if (scratch.is_local) {
      propose_local(target, state, scratch, std::span<const Index>(scratch.variables.first), rng);
    } else {
      propose_many(target, state, scratch, rng);
    }
  }

  /// What every variable does, by `words`, which are random.
  void propose_many(const T& target, const typename T::State& state, Scratch& scratch, Rng& rng) const {
    scratch.moves.clear();
    scratch.changed.clear();
    if (scratch.variables.binary) {
      draw_flips(scratch, rng);
      hot<InstructionSet::avx2>([&] { list_flips(target, state, scratch); });
      if (!scratch.moves.empty()) scratch.log_forth = log_prob_of_flips<Real>(scratch.here.minor, scratch.flips.data());
    } else {
      draw_levels(target, state, scratch);
      if (!scratch.moves.empty()) scratch.log_forth = sum_of_logs(scratch.picked);
    }
    set_out_from(target, state, scratch);
  }

  /// Log p and ratios at the proposed states of all scratches; none where nothing is to change.
  void look_ahead(const T& target, std::span<Scratch* const> group) const {
    look_at_proposed<T>(target, group, ratios_, [&](std::span<Scratch* const> active) { look(target, active); });
  }
  void look_ahead(const T& target, Scratch* one) const { look_ahead(target, std::span<Scratch* const>(&one, 1)); }

  StepInfo decide(const T& target, typename T::State& state, Scratch& scratch) const {
    if (scratch.is_local) return decide_local<T>(state, scratch);
    return decide_many<T>(state, scratch, [&] { return judge(target, scratch); });
  }

  static void draw_flips(Scratch& scratch, Rng& rng) {
    FlipDraws::draw<Real>(scratch.here.minor, scratch.words.data(), scratch.flips.data(), rng);
  }

 private:
  /// 52 random bits as a number below 1.
  POISE_INLINE static double to_unit(std::uint64_t word) { return static_cast<double>(word >> 12) * 0x1p-52; }

  POISE_INLINE static void list_flips(const T& target, const typename T::State& state, Scratch& scratch) {
    std::size_t count = 0;
    for (std::size_t block = 0; block < scratch.flip_bits.size(); ++block) {
      scratch.flip_bits[block] = bits_of_flips(scratch.flips.data() + kFlipsTogether * block);
      count += static_cast<std::size_t>(std::popcount(scratch.flip_bits[block]));
    }
    scratch.moves.resize(count);
    scratch.changed.resize(count);
    Move* moves = scratch.moves.data();
    Change* changed = scratch.changed.data();
    for (std::size_t block = 0; block < scratch.flip_bits.size(); ++block) {
      for (std::uint32_t bits = scratch.flip_bits[block]; bits != 0; bits &= bits - 1) {
        const auto move = static_cast<Index>(kFlipsTogether * block + static_cast<unsigned>(std::countr_zero(bits)));
        const Index i = scratch.variable_of[move];
        const Value old = target.level(state, i);
        *moves++ = {i, static_cast<Value>(1 - old)};
        *changed++ = {i, move, old};
      }
    }
  }

  static void draw_levels(const T& target, const typename T::State& state, Scratch& scratch) {
    const VariableMoves& variables = scratch.variables;
    for (Index i = 0; i < variables.variables(); ++i) {
      const double* const probs = scratch.here.move_probs.data() + variables.first[i];
      const Index count = variables.moves(i);
      double place = to_unit(scratch.words[i]);
      Index k = 0;
      while (k < count && place >= probs[k]) place -= probs[k++];
      if (k == count && scratch.here.stay_probs[i] == 0.0) {
        // Rounding may lead past the last move where staying is impossible.
        do --k;
        while (k > 0 && probs[k] == 0.0);
      }
      scratch.picked[i] = k < count ? probs[k] : scratch.here.stay_probs[i];
      if (k < count) add_move(target, state, scratch, i, k);
    }
  }

  static void add_move(const T& target, const typename T::State& state, Scratch& scratch, Index i, Index k) {
    const Value old = target.level(state, i);
    scratch.moves.push_back({i, static_cast<Value>(k < old ? k : k + 1)});
    scratch.changed.push_back({i, scratch.variables.first[i], old});
  }

  /// What `propose` does, with a state that is given.
  static void choose(const T& target, const typename T::State& state, Scratch& scratch, std::span<const Value> to) {
    scratch.moves.clear();
    scratch.changed.clear();
    std::fill(scratch.flips.begin(), scratch.flips.end(), 0);
    for (Index i = 0; i < scratch.variables.variables(); ++i) {
      const Value old = target.level(state, i);
      const bool moves = old != to[i] && scratch.variables.moves(i) > 0;
      const Index k = to[i] < old ? to[i] : to[i] - 1U;
      const Index move = scratch.variables.first[i] + k;
      if (moves) add_move(target, state, scratch, i, k);
      if (!scratch.variables.binary) {
        scratch.picked[i] = moves ? scratch.here.move_probs[move] : scratch.here.stay_probs[i];
      } else if (moves) {
        scratch.flips[scratch.variables.first[i]] = -1;
      }
    }
    scratch.log_forth = scratch.variables.binary ? log_prob_of_flips<Real>(scratch.here.minor, scratch.flips.data())
                                                 : sum_of_logs(scratch.picked);
    set_out_from(target, state, scratch);
  }

  /// The law at the proposed states, in `there`.
  void look(const T& target, std::span<Scratch* const> group) const {
    find_log_ratios<T>(target, group, ratios_);
    for (Scratch* scratch : group) {
      scratch->evals.balance += target.num_moves();
      if (!rule_.fill(scratch->there, scratch->variables)) scratch->failure = kBadLogRatio;
    }
  }

  /// The acceptance probability of what was drawn and looked at.
  double judge(const T& target, Scratch& scratch) const {
    if (scratch.moves.empty()) return 1.0;
    constexpr double none = -std::numeric_limits<double>::infinity();
    if (scratch.failure != nullptr || scratch.proposed_log_prob == none) return 0.0;
    double log_back = 0.0;
    if (scratch.variables.binary) {
      log_back = log_prob_of_flips<Real>(scratch.there.minor, scratch.flips.data());
    } else {
      const Law& there = scratch.there;
      std::copy(there.stay_probs.begin(), there.stay_probs.begin() + scratch.variables.variables(),
                scratch.picked.begin());
      for (const Change& change : scratch.changed) {
        const Value now = target.level(scratch.proposed, change.variable);
        scratch.picked[change.variable] =
            there.move_probs[change.first_move + (change.old > now ? change.old - 1U : change.old)];
      }
      log_back = sum_of_logs(scratch.picked);
    }
    if (log_back == none) return 0.0;  // no way leads back
    const double log_ratio = scratch.proposed_log_prob - scratch.log_prob;
    return std::exp(std::min(0.0, log_ratio + log_back - scratch.log_forth));
  }

  FactorisedRule rule_;
  Ratios ratios_;
};

}  // namespace poise
