/// Path auxiliary proposals without replacement (Sun et al. 2022): a path of single changes, each of another variable,
/// drawn one after another in proportion to g(r) at the present state; the reverse path, from the end, has the weights
/// of the state that the path leads to.
///
/// The length of a path is drawn first, uniformly from 1 to 2R - 1, whatever the state. With one length alone, and
/// an even one, a chain of binary variables would never change the parity of those that are up. One step in
/// `kLocalEvery` is local (kernels/many_changes.hpp), and now and then one is not made at all (kernels/step.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <poise/extend/base/concepts.hpp>
#include <poise/extend/kernels/informed_proposal.hpp>
#include <poise/extend/kernels/many_changes.hpp>
#include <poise/extend/kernels/step.hpp>

namespace poise {

/// Weights from which variables are taken one by one. Sums are made anew from what is left, never by subtraction: what
/// is left may be far less than what was taken, down to where doubles end; then it is weighed anew, beside the largest
/// that is left.
class ShrinkingWeights {
 public:
  /// `moves` and `function` are those whose weights these are, as long as moves are taken.
  POISE_INLINE void start(const WeighedMoves& moves, const BalancingFunction& function) {
    moves_ = &moves;
    function_ = &function;
    offset_ = moves.offset;
    weights_ = moves.weights;  // a multiple of eight of them
    sums_.resize((weights_.size() + kBlock - 1) / kBlock);
    sum_up();
  }
  /// 0 where no move is left.
  [[nodiscard]] double total() const { return total_; }
  [[nodiscard]] double weight(Index move) const { return weights_[move]; }
  /// Log of the share of a move that is left, also where its weight is too small for a double.
  [[nodiscard]] double log_share(Index move) const {
    return function_->log_g(moves_->log_ratios[move]) - offset_ - std::log(total_);
  }

  /// The move at a place below the total.
  [[nodiscard]] Index find(double place) const {
    std::size_t block = 0;
    while (block + 1 < sums_.size() && place >= sums_[block]) place -= sums_[block++];
    auto move = static_cast<Index>(kBlock * block);
    const auto end = static_cast<Index>(std::min(kBlock * (block + 1), weights_.size()));
    while (move + 1 < end && place >= weights_[move]) place -= weights_[move++];
    while (move > 0 && weights_[move] == 0.0) --move;  // rounding may lead past the last positive weight
    return move;
  }

  POISE_INLINE void take(Index first, Index last) {
    for (Index move = first; move < last; ++move) weights_[move] = kTaken;
    for (std::size_t block = first / kBlock; block <= (last - 1) / kBlock; ++block) sum_up(block);
    add_sums();
    if (total_ < kSmallest) [[unlikely]] {
      weigh_anew();
    }
  }

 private:
  static constexpr std::size_t kBlock = 64;
  static constexpr double kTaken = -0.0;  // what is taken adds nothing, and is told from what is merely small
  static constexpr double kSmallest = 1e-200;

  [[gnu::noinline]] void weigh_anew() {
    const auto for_each_left = [&](auto&& use) {
      for (std::size_t move = 0; move < weights_.size(); ++move) {
        if (!std::signbit(weights_[move])) use(move, function_->log_g(moves_->log_ratios[move]));
      }
    };
    double largest = -std::numeric_limits<double>::infinity();
    for_each_left([&](std::size_t, double log_g) { largest = std::max(largest, log_g); });
    if (!(largest > -std::numeric_limits<double>::infinity())) return;
    offset_ = largest;
    for_each_left([&](std::size_t move, double log_g) { weights_[move] = std::exp(log_g - largest); });
    sum_up();
  }

  POISE_INLINE void sum_up() {
    for (std::size_t block = 0; block < sums_.size(); ++block) sum_up(block);
    add_sums();
  }
  POISE_INLINE void add_sums() {
    total_ = 0.0;
    for (const double one : sums_) total_ += one;
  }
  POISE_INLINE void sum_up(std::size_t block) {
    const std::size_t end = std::min(kBlock * (block + 1), weights_.size());
    Doubles8 sum = {};
    for (std::size_t k = kBlock * block; k < end; k += 8) sum += load8(weights_.data() + k);
    sums_[block] = sum8(sum);
  }

  const WeighedMoves* moves_ = nullptr;
  const BalancingFunction* function_ = nullptr;
  std::vector<double> weights_;  // g e^-offset of what is left
  std::vector<double> sums_;     // of blocks
  double total_ = 0.0;
  double offset_ = 0.0;
};

template <Target T>
class PathProposal : public GroupedSteps<PathProposal<T>, T> {
 public:
  struct Scratch {
    explicit Scratch(const T& target)
        : proposed(target.make_state(std::vector<Value>(target.num_variables(), 0))),
          first_move(first_moves(target)),
          rests(target.num_moves()) {
      for (Index i = 0; i < target.num_variables(); ++i) free += target.cardinality(i) > 1 ? 1 : 0;
      here.resize(target.num_moves());
      there.resize(target.num_moves());
      moves.reserve(free);
      changed.reserve(free);
      levels.resize(target.num_variables());
      left.start(here, BalancingFunction());  // for its memory
    }
    typename T::State proposed;
    WeighedMoves here;
    WeighedMoves there;
    ShrinkingWeights left;
    std::vector<Index> first_move;  // number of the first move of each variable
    Index free = 0;                 // variables that have moves
    Rests rests;
    std::vector<Move> moves;                     // the path
    std::vector<Change> changed;                 // by the last step, in the order of the path
    std::vector<Value> levels;                   // a buffer for them
    const typename T::State* present = nullptr;  // the state that `moves` are moves of
    double log_prob = 0.0;                       // of the present state
    double proposed_log_prob = 0.0;
    double log_forth = 0.0;
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
  /// What one variable more on the paths of a step costs beside the rest of the step, which looks at all moves. From
  /// the times of steps with radius 1 to 256: 0.028 to 0.041 on RBMs with 784 visible units (25 to 250 hidden ones),
  /// 0.022 and 0.012 on lattices with 2500 and 2700 moves (Ising, Potts), 0.006 and 0.007 on graphs with 10000.
  [[nodiscard]] static double element_work(Index moves) { return 0.004 + 25.0 / moves; }

  /// The level of the function is log R.
  explicit PathProposal(BalancingFunction function, Ratios ratios = Ratios::exact)
      : function_(std::move(function)),
        radius_(static_cast<Index>(std::clamp(std::round(std::exp(function_.level())), 1.0, 1e6))),
        ratios_(ratios) {}

  [[nodiscard]] Index radius() const { return radius_; }
  [[nodiscard]] const BalancingFunction& function() const { return function_; }
  [[nodiscard]] Ratios ratios() const { return ratios_; }
  /// The same kernel with another balancing function.
  [[nodiscard]] PathProposal with_function(BalancingFunction function) const {
    return PathProposal(std::move(function), ratios_);
  }
  /// Brings the weights up to date where only the balancing function is new.
  void reweigh(const T&, const typename T::State&, Scratch& scratch) const {
    static_cast<void>(weigh_moves(function_, scratch.here));
    scratch.evals.balance += scratch.here.log_ratios.size();
  }
  [[nodiscard]] Index steps_per_sweep(const T& target) const {
    return std::max<Index>(1, target.num_moves() / radius_);
  }
  /// The longest path that is drawn.
  [[nodiscard]] Index longest(const Scratch& scratch) const { return std::min(2 * radius_ - 1, scratch.free); }

  void prepare(const T& target, const typename T::State& state, Scratch& scratch) const {
    check_log_prob(target, state);
    scratch.proposed = state;
    Scratch* one = &scratch;
    look(target, std::span<Scratch* const>(&one, 1));
    std::swap(scratch.here, scratch.there);
    scratch.log_prob = find_log_prob(target, state);
    if (scratch.failure != nullptr) throw std::runtime_error(scratch.failure);
  }

  /// Q and A of one path of moves, in their order, given its length.
  Proposal evaluate(const T& target, const typename T::State& state, Scratch& scratch,
                    std::span<const Index> path) const {
    begin(scratch);
    for (const Index move : path) {
      if (scratch.left.weight(move) == 0.0) {
        scratch.moves.clear();
        return {0.0, 0.0};
      }
      follow(target, state, scratch, move);
    }
    set_out_from(target, state, scratch);
    look_ahead(target, &scratch);
    return {std::exp(scratch.log_forth), judge(target, scratch)};
  }

  // The parts of a step; the middle one takes a whole group.

  void propose(const T& target, const typename T::State& state, Scratch& scratch, Rng& rng) const {
    scratch.is_local = rng.uniform() < 1.0 / kLocalEvery;
    scratch.threshold = rng.uniform();
    if (scratch.is_local) {
      propose_local(target, state, scratch, std::span<const Index>(scratch.first_move), rng);
      return;
    }
    scratch.threshold *= scratch.rests.stretch;
    const auto length = static_cast<Index>(rng.uniform() * longest(scratch)) + 1;
    draw_path(target, state, scratch, rng, length);
  }

  /// The acceptance probability of a path of this length, drawn for the sake of it.
  double probe(const T& target, const typename T::State& state, Scratch& scratch, Rng& rng, Index length) const {
    draw_path(target, state, scratch, rng, length);
    look_ahead(target, &scratch);
    return scratch.moves.empty() ? 0.0 : judge(target, scratch);
  }

  /// Log p and ratios at the ends of the paths of all scratches.
  void look_ahead(const T& target, std::span<Scratch* const> group) const {
    look_at_proposed<T>(target, group, ratios_, [&](std::span<Scratch* const> active) { look(target, active); });
  }
  void look_ahead(const T& target, Scratch* one) const { look_ahead(target, std::span<Scratch* const>(&one, 1)); }

  StepInfo decide(const T& target, typename T::State& state, Scratch& scratch) const {
    if (scratch.is_local) return decide_local<T>(state, scratch);
    return decide_many<T>(state, scratch, [&] { return judge(target, scratch); });
  }

 private:
  void draw_path(const T& target, const typename T::State& state, Scratch& scratch, Rng& rng, Index length) const {
    hot([&, this] {
      begin(scratch);
      for (Index k = 0; k < length; ++k) {
        const Index move = scratch.left.find(rng.uniform() * scratch.left.total());
        if (scratch.left.weight(move) == 0.0) {  // there are fewer moves than that, and the path is given up
          scratch.moves.clear();
          scratch.changed.clear();
          break;
        }
        follow(target, state, scratch, move);
      }
    });
    set_out_from(target, state, scratch);
  }

  POISE_INLINE void begin(Scratch& scratch) const {
    scratch.moves.clear();
    scratch.changed.clear();
    scratch.log_forth = 0.0;
    scratch.left.start(scratch.here, function_);
  }

  POISE_INLINE static void follow(const T& target, const typename T::State& state, Scratch& scratch, Index move) {
    const Move change = target.move_at(state, move);
    const Index i = change.variable;
    scratch.log_forth += scratch.left.log_share(move);
    scratch.moves.push_back(change);
    scratch.changed.push_back({i, scratch.first_move[i], target.level(state, i)});
    scratch.left.take(scratch.first_move[i], scratch.first_move[i + 1]);
  }

  void look(const T& target, std::span<Scratch* const> group) const {
    find_log_ratios<T>(target, group, ratios_);
    for (Scratch* scratch : group) {
      scratch->evals.balance += target.num_moves();
      if (!weigh_moves(function_, scratch->there)) scratch->failure = kBadLogRatio;
    }
  }

  /// The acceptance probability of the path, by that of the reverse one.
  double judge(const T& target, Scratch& scratch) const {
    constexpr double none = -std::numeric_limits<double>::infinity();
    if (scratch.failure != nullptr || scratch.proposed_log_prob == none) return 0.0;
    double log_back = 0.0;
    scratch.left.start(scratch.there, function_);
    for (auto change = scratch.changed.rbegin(); change != scratch.changed.rend(); ++change) {
      const Value now = target.level(scratch.proposed, change->variable);
      const Index move = change->first_move + (change->old > now ? change->old - 1U : change->old);
      log_back += scratch.left.log_share(move);
      if (!(log_back > none)) return 0.0;  // no way leads back
      scratch.left.take(change->first_move, scratch.first_move[change->variable + 1]);
    }
    const double log_ratio = scratch.proposed_log_prob - scratch.log_prob;
    return std::exp(std::min(0.0, log_ratio + log_back - scratch.log_forth));
  }

  BalancingFunction function_;
  Index radius_;
  Ratios ratios_;
};

}  // namespace poise
