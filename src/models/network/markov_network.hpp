/// A network as a target: ratios of all moves kept up to date over the Markov blanket of what changes.
///
/// For every variable i and level v the state keeps l_i(v) - l_i(0), where l_i(v) sums the log tables of the factors of
/// i with i at v and the rest as it is. A change of one variable touches the sums of its neighbours alone, by four
/// table entries per shared factor and level.
///
/// Log tables are integers, multiples of a unit far below anything that matters (3e-15 in a typical network). Sums of
/// integers neither drift nor depend on the way they came about. And they can hold zeros: log 0 is a number so low that
/// no finite sum reaches it, added and taken away again exactly, so a sum always knows how many zeros are in it.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <poise/extend/base/concepts.hpp>
#include <poise/network.hpp>

namespace poise {

class MarkovNetwork {
 public:
  struct State {
    std::vector<Value> x;
    std::vector<std::uint32_t> place;         // of each factor's present entry among all table entries
    std::vector<std::int64_t> local;          // l_i(v) - l_i(0) at first_move(i) + v - 1
    mutable std::vector<std::int64_t> ahead;  // what `local` will be after the move looked at last

    template <class A>
    void archive(A& archive) {
      archive(x, place, local, ahead);
    }
  };

  /// Observed variables stay at their level: they have one level only and no moves. Throws InputError where a variable
  /// has more levels than a Value can tell apart, or the tables too many entries.
  explicit MarkovNetwork(const Network& network);

  [[nodiscard]] Index num_variables() const { return static_cast<Index>(levels_.size()); }
  [[nodiscard]] Index num_moves() const { return static_cast<Index>(owner_.size()); }
  [[nodiscard]] Index cardinality(Index i) const { return levels_[i]; }
  [[nodiscard]] Index first_move(Index i) const { return first_move_[i]; }
  [[nodiscard]] std::size_t max_affected() const { return max_affected_; }
  /// Factors after those inside others have been multiplied into them.
  [[nodiscard]] std::size_t num_factors() const { return factor_start_.size(); }
  [[nodiscard]] double unit() const { return unit_; }

  struct Link {  ///< a factor of a variable
    Index factor;
    std::uint32_t stride;  ///< of the variable in the factor's table
  };
  /// The factors of a variable; none where it is observed.
  [[nodiscard]] std::span<const Link> links(Index i) const {
    return {links_.data() + link_start_[i], link_start_[i + 1] - link_start_[i]};
  }
  /// The first entry of a factor's table among all table entries; factors may share a table.
  [[nodiscard]] std::uint32_t table_start(std::size_t factor) const { return factor_start_[factor]; }
  /// An entry of the log tables, in units.
  [[nodiscard]] std::int64_t units(std::size_t entry) const { return values_[entry]; }
  [[nodiscard]] bool is_zero(std::int64_t units) const { return units < -half_zero_; }
  /// A difference of sums, present zeros less zeros there, as a logarithm.
  [[nodiscard]] POISE_INLINE double to_log(std::int64_t units) const {
    if (units < -half_zero_) return -std::numeric_limits<double>::infinity();
    if (units > half_zero_) return std::numeric_limits<double>::infinity();
    return unit_ * static_cast<double>(units);
  }
  /// log p of a state whose factors' entries are in sum that many units.
  [[nodiscard]] double log_prob_of(double units) const { return constant_ + unit_ * units; }

  /// The levels of observed variables in `x` are not looked at.
  [[nodiscard]] State make_state(std::span<const Value> x) const;
  /// Puts a state at other levels, all of them at once: for kernels that change so many that it is faster.
  void assign(State& state, std::span<const Value> x) const;

  [[nodiscard]] POISE_INLINE Value level(const State& state, Index i) const { return state.x[i]; }
  /// Sums over all factors: for once in a sweep, not for every step.
  [[nodiscard]] double log_prob(const State& state) const;

  /// The order parameter of Potts models, where this is a lattice: 0 when all levels are equally frequent, 1 when all
  /// sites agree.
  [[nodiscard]] std::vector<std::string> statistic_names() const {
    return is_lattice_ ? std::vector<std::string>{"order"} : std::vector<std::string>{};
  }
  void statistics(const State& state, std::span<double> out) const;
  /// The same of a lattice that has `most` sites at its most frequent level.
  [[nodiscard]] double order(std::size_t most) const;

  [[nodiscard]] POISE_INLINE Move move_at(const State& state, Index number) const {
    const Index i = owner_[number];
    const Index k = number - first_move_[i];
    return {i, static_cast<Value>(k < state.x[i] ? k : k + 1)};
  }

  [[nodiscard]] POISE_INLINE double log_ratio(const State& state, Move move) const {
    const std::int64_t* local = state.local.data() + first_move_[move.variable];
    return to_log(at(local, move.value) - at(local, state.x[move.variable]));
  }

  void log_ratios(const State& state, std::span<double> out) const;

  template <class Visit>
  POISE_INLINE void for_each_affected(const State& state, Index number, Visit&& visit) const {
    const Move move = move_at(state, number);
    const Change change = change_of(state, move);
    Chunk chunk;
    std::size_t count = 0;
    const auto add = [&](Index moved, std::int64_t ratio) {
      chunk.moves[chunk.count] = moved;
      chunk.log_ratios[chunk.count++] = to_log(ratio);
      if (chunk.count == 8) chunk.hand_over(visit);
    };
    for (const Neighbour& neighbour : change.neighbours) {
      const Index j = neighbour.variable;
      std::int64_t* ahead = state.ahead.data() + count;
      look_ahead(state, change, neighbour, ahead);
      const Index moves = levels_[j] - 1;
      count += moves;
      if (moves == 1) {
        add(first_move_[j], state.x[j] != 0 ? -ahead[0] : ahead[0]);
      } else {
        add_moves(first_move_[j], moves, ahead, state.x[j], add);
      }
    }
    const Index own = first_move_[move.variable];
    const Index moves = levels_[move.variable] - 1;
    for (Index k = 0; k < moves; ++k) state.ahead[count + k] = state.local[own + k];
    add_moves(own, moves, state.local.data() + own, move.value, add);
    if (chunk.count > 0) chunk.hand_over(visit);
  }

  POISE_INLINE void apply(State& state, Move move) const {
    const Change change = change_of(state, move);
    for (const Neighbour& neighbour : change.neighbours) {
      std::int64_t* local = state.local.data() + first_move_[neighbour.variable];
      look_ahead(state, change, neighbour, local);
    }
    settle(state, move, change.levels_up);
  }

  /// After `for_each_affected` of this very move, whose affected moves these are.
  POISE_INLINE void apply(State& state, Move move, const Index* affected, std::size_t count) const {
    for (std::size_t k = 0; k < count; ++k) state.local[affected[k]] = state.ahead[k];
    settle(state, move, move.value - state.x[move.variable]);
  }

 private:
  struct Neighbour {  // of some variable i
    Index variable;
    Index first_shared;  // and up to the next neighbour's: the factors that both are in
  };
  struct Shared {
    Index factor;
    std::uint32_t stride;  // of i in the factor's table
    std::uint32_t neighbour_stride;
  };
  struct Change {
    std::span<const Neighbour> neighbours;
    int levels_up;
  };
  struct Chunk {  // eight affected moves on their way
    std::array<Index, 8> moves = {};
    std::array<double, 8> log_ratios;
    unsigned count = 0;

    template <class Visit>
    POISE_INLINE void hand_over(Visit&& visit) {
      for (unsigned k = count; k < 8; ++k) log_ratios[k] = -std::numeric_limits<double>::infinity();
      visit(AffectedLanes{moves, load8(log_ratios.data()), count});
      count = 0;
    }
  };

  [[nodiscard]] POISE_INLINE static std::int64_t at(const std::int64_t* local, Index level) {
    return level == 0 ? 0 : local[level - 1];
  }

  [[nodiscard]] POISE_INLINE Change change_of(const State& state, Move move) const {
    const std::size_t first = neighbour_start_[move.variable];
    return {{neighbours_.data() + first, neighbour_start_[move.variable + 1] - first},
            move.value - state.x[move.variable]};
  }

  /// The sums of a neighbour after the change, for its levels above 0. `out` may be its own place in `local`.
  POISE_INLINE void look_ahead(const State& state, const Change& change, const Neighbour& neighbour,
                               std::int64_t* out) const {
    const Index j = neighbour.variable;
    const std::int64_t* local = state.local.data() + first_move_[j];
    const std::size_t moves = levels_[j] - 1;
    const Shared* const end = shared_.data() + (&neighbour + 1)->first_shared;
    const std::int64_t* const values = values_.data();
    if (moves == 1) {
      std::int64_t sum = local[0];
      for (const Shared* shared = shared_.data() + neighbour.first_shared; shared != end; ++shared) {
        const std::ptrdiff_t stride = shared->neighbour_stride;
        const std::int64_t* before = values + state.place[shared->factor] - stride * state.x[j];
        const std::int64_t* after = before + change.levels_up * static_cast<std::ptrdiff_t>(shared->stride);
        sum += (after[stride] - after[0]) - (before[stride] - before[0]);
      }
      out[0] = sum;
      return;
    }
    if (out != local) std::copy_n(local, moves, out);
    for (const Shared* shared = shared_.data() + neighbour.first_shared; shared != end; ++shared) {
      const std::ptrdiff_t stride = shared->neighbour_stride;
      const std::int64_t* before = values + state.place[shared->factor] - stride * state.x[j];
      const std::int64_t* after = before + change.levels_up * static_cast<std::ptrdiff_t>(shared->stride);
      const std::int64_t zero = after[0] - before[0];
      for (std::size_t k = 0; k < moves; ++k) {
        const std::ptrdiff_t step = stride * static_cast<std::ptrdiff_t>(k + 1);
        out[k] += after[step] - before[step] - zero;
      }
    }
  }

  /// The moves of a variable that is at `level`, from its sums.
  template <class Add>
  POISE_INLINE static void add_moves(Index first, Index moves, const std::int64_t* sums, Value level, Add&& add) {
    if (moves == 0) return;  // an observed variable has a level, but no sums
    const std::int64_t present = at(sums, level);
    for (Index k = 0; k < moves; ++k) add(first + k, at(sums, k < level ? k : k + 1) - present);
  }

  POISE_INLINE void settle(State& state, Move move, int levels_up) const {
    const Link* link = links_.data() + link_start_[move.variable];
    const Link* const end = links_.data() + link_start_[move.variable + 1];
    for (; link != end; ++link) {
      state.place[link->factor] += static_cast<std::uint32_t>(levels_up) * link->stride;  // modulo 2^32, as all places
    }
    state.x[move.variable] = move.value;
  }

  class Builder;

  std::vector<Index> levels_;   // of each variable; 1 where it is observed
  std::vector<Value> clamped_;  // the level of an observed variable
  std::vector<Index> first_move_;
  std::vector<Index> owner_;  // variable of each move
  std::size_t max_affected_ = 0;
  bool is_lattice_ = false;

  double unit_ = 1.0;
  double constant_ = 0.0;  // of log p
  std::int64_t half_zero_ = 0;
  std::vector<std::int64_t> values_;         // log tables, the largest entry of each 0
  std::vector<std::uint32_t> factor_start_;  // first entry of each factor's table; tables may be shared

  std::vector<std::size_t> link_start_;  // variables + 1
  std::vector<Link> links_;
  std::vector<std::size_t> neighbour_start_;  // variables + 1
  std::vector<Neighbour> neighbours_;         // and one more at the end, for its first_shared
  std::vector<Shared> shared_;
};

}  // namespace poise
