/// Ising model on any graph, each edge with its own coupling: log p(x) = sum a_i x_i + sum_(ij) J_ij x_i x_j.
///
/// Ratios come from local fields in double precision, added up flip by flip and computed anew once in a while. log p is
/// summed in integers, in a unit of 2^-61 of all fields and couplings, so that equal states have equal log p whatever
/// led to them: ranks would take differences in the last bit for differences between chains.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <poise/extend/base/concepts.hpp>
#include "models/ising/spin_graph.hpp"

namespace poise {

/// What a state is worth in the problem that a model comes from: scale * log p + constant, under a name.
struct IsingObjective {
  std::string name;
  double scale = 0.0;
  double constant = 0.0;
};

class GraphIsing {
 public:
  struct State {
    std::vector<std::int8_t> spin;    // -1 or +1
    std::vector<double> local;        // a_i + sum_j J_ij x_j
    std::vector<std::int64_t> units;  // the same in units
    std::int64_t log_prob = 0;        // in units
    std::int64_t magnetization = 0;   // sum of all spins
    std::size_t flips = 0;            // since `local` was computed from scratch

    template <class A>
    void archive(A& archive) {
      archive(spin, local, units, log_prob, magnetization, flips);
    }
  };
  struct Neighbour {
    Index variable;
    double coupling;
    std::int64_t units;  // of the coupling
  };

  /// Throws InputError where an edge is there twice, in either direction, or does not join two variables of the graph,
  /// and where a field or coupling is not finite.
  GraphIsing(std::vector<double> field, std::span<const Edge> edges, IsingObjective objective = {});

  [[nodiscard]] std::span<const Neighbour> neighbours(Index i) const {
    return {neighbours_.data() + start_[i], start_[i + 1] - start_[i]};
  }

  template <class Visit>
  void for_each_neighbour(Index i, Visit&& visit) const {
    for (const Neighbour& neighbour : neighbours(i)) visit(neighbour.variable, neighbour.coupling, neighbour.units);
  }
  template <class Spin>
  [[nodiscard]] double local_field(Index i, Spin&& spin) const {
    double local = field_[i];
    std::size_t k = 0;
    for (const Neighbour& neighbour : neighbours(i)) local += neighbour.coupling * spin(k++);
    return local;
  }

  [[nodiscard]] double field(Index i) const { return field_[i]; }
  [[nodiscard]] const IsingObjective& objective() const { return objective_; }
  /// The unit of log p that integers of State::log_prob count.
  [[nodiscard]] double unit() const { return unit_; }
  /// A field as an integer, in the unit that State::log_prob has.
  [[nodiscard]] std::int64_t field_units(Index i) const { return units_[i]; }

  [[nodiscard]] Index num_variables() const { return static_cast<Index>(field_.size()); }
  [[nodiscard]] Index num_moves() const { return num_variables(); }
  [[nodiscard]] Index cardinality(Index) const { return 2; }
  [[nodiscard]] std::size_t max_affected() const { return max_degree_ + 1; }

  [[nodiscard]] State make_state(std::span<const Value> x) const {
    State state;
    state.spin.resize(field_.size());
    state.local.resize(field_.size());
    state.units.resize(field_.size());
    assign(state, x);
    return state;
  }

  [[nodiscard]] Value level(const State& state, Index i) const { return state.spin[i] > 0 ? 1 : 0; }
  [[nodiscard]] double log_prob(const State& state) const { return unit_ * static_cast<double>(state.log_prob); }
  [[nodiscard]] Move move_at(const State& state, Index i) const {
    return {i, static_cast<Value>(state.spin[i] > 0 ? 0 : 1)};
  }

  /// The statistic of an Ising model: its objective where it has one, otherwise the magnetization, the sum of all
  /// spins.
  [[nodiscard]] std::vector<std::string> statistic_names() const {
    return {objective_.name.empty() ? "magnetization" : objective_.name};
  }
  void statistics(const State& state, std::span<double> out) const {
    out[0] = objective_.name.empty() ? static_cast<double>(state.magnetization)
                                     : objective_.scale * log_prob(state) + objective_.constant;
  }

  [[nodiscard]] POISE_INLINE double log_ratio(const State& state, Move move) const {
    return log_flip_ratio(state.spin[move.variable], state.local[move.variable]);
  }

  void log_ratios(const State& state, std::span<double> out) const {
    for (std::size_t i = 0; i < field_.size(); ++i) {
      out[i] = log_flip_ratio(state.spin[i], state.local[i]);
    }
  }

  template <class Visit>
  POISE_INLINE void for_each_affected(const State& state, Index i, Visit&& visit) const {
    const double change = -2.0 * state.spin[i];
    const std::span<const Neighbour> all = neighbours(i);
    for (std::size_t first = 0; first <= all.size(); first += 8) {
      AffectedLanes lanes{};
      lanes.log_ratios = broadcast8(-std::numeric_limits<double>::infinity());
      for (std::size_t k = first; k < std::min(first + 8, all.size()); ++k) {
        const Index j = all[k].variable;
        lanes.moves[lanes.count] = j;
        lanes.log_ratios.set(lanes.count++, log_flip_ratio(state.spin[j], state.local[j] + change * all[k].coupling));
      }
      if (lanes.count < 8) {  // the last chunk has room for the flipped variable itself
        lanes.moves[lanes.count] = i;
        lanes.log_ratios.set(lanes.count++, -log_flip_ratio(state.spin[i], state.local[i]));
      }
      visit(lanes);
    }
  }

  POISE_INLINE void apply(State& state, Move move) const {
    const Index i = move.variable;
    const std::int64_t change = -2 * state.spin[i];
    state.log_prob += change * state.units[i];
    state.magnetization += change;
    state.spin[i] = static_cast<std::int8_t>(-state.spin[i]);
    for (const Neighbour& neighbour : neighbours(i)) {
      state.local[neighbour.variable] += static_cast<double>(change) * neighbour.coupling;
      state.units[neighbour.variable] += change * neighbour.units;
    }
    // Once every n flips costs O(degree) a flip and keeps the rounding at that of a few additions.
    if (++state.flips >= field_.size() + 1000) refresh(state);
  }

  /// Puts a state at other levels, all of them at once: for kernels that change so many that it is faster.
  void assign(State& state, std::span<const Value> x) const {
    for (std::size_t i = 0; i < field_.size(); ++i) state.spin[i] = x[i] != 0 ? 1 : -1;
    refresh(state);
  }

 private:
  POISE_INLINE static double log_flip_ratio(std::int8_t spin, double local) { return -2.0 * spin * local; }

  void refresh(State& state) const {
    std::int64_t fields = 0;
    std::int64_t pairs = 0;
    state.magnetization = 0;
    state.flips = 0;
    for (std::size_t i = 0; i < field_.size(); ++i) {
      double coupled = 0.0;
      std::int64_t coupled_units = 0;
      for (const Neighbour& neighbour : neighbours(static_cast<Index>(i))) {
        coupled += neighbour.coupling * state.spin[neighbour.variable];
        coupled_units += neighbour.units * state.spin[neighbour.variable];
      }
      state.local[i] = field_[i] + coupled;
      state.units[i] = units_[i] + coupled_units;
      fields += units_[i] * state.spin[i];
      pairs += coupled_units * state.spin[i];
      state.magnetization += state.spin[i];
    }
    state.log_prob = fields + pairs / 2;
  }

  IsingObjective objective_;
  double unit_ = 1.0;
  std::vector<double> field_;
  std::vector<std::int64_t> units_;  // of the fields
  std::vector<std::size_t> start_;
  std::vector<Neighbour> neighbours_;
  std::size_t max_degree_ = 0;
};

/// Any Ising model as one on a graph, with fields and couplings times beta. Variables keep their numbers.
template <SpinGraph T>
[[nodiscard]] GraphIsing graph_at(const T& target, double beta) {
  std::vector<double> field(target.num_variables());
  for (Index i = 0; i < field.size(); ++i) field[i] = beta * target.field(i);
  std::vector<Edge> edges;
  for_each_edge(target, [&](Index i, Index j, double coupling, std::int64_t) {
    edges.push_back({i, j, beta * coupling});
  });
  return {std::move(field), edges};
}

}  // namespace poise
