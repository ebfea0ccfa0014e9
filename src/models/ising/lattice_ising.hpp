/// Ising model on a rectangular lattice with one coupling and a field: log p(x) = sum a_i x_i + lambda sum_(ij) x_i
/// x_j.
///
/// A site is a code of four bits: its spin and how many of its neighbours are up. These are integers, so nothing ever
/// drifts. The log ratio of a flip, -2 x_i (a_i + lambda sum of neighbours), is a linear function of a_i whose
/// coefficients are looked up by the code. A neighbour that an open lattice lacks counts as down, and the field of the
/// site makes up for it. log p is kept as integers too, so that equal states have equal log p whatever led to them:
/// ranks would take differences in the last bit for differences between chains.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <poise/extend/base/concepts.hpp>

namespace poise {

enum class Boundary { torus, open };

class LatticeIsing {
 public:
  /// 8 for spin +1 (0 for -1), plus the number of neighbours with spin +1.
  using Site = std::uint8_t;
  static constexpr Site kUp = 8;
  static constexpr Index kCodes = 16;

  struct State {
    std::vector<Site> sites;
    std::int64_t pairs = 0;          // sum of x_i x_j over all edges
    std::int64_t fields = 0;         // sum of a_i x_i in units of `unit_`
    std::int64_t magnetization = 0;  // sum of all spins

    template <class A>
    void archive(A& archive) {
      archive(sites, pairs, fields, magnetization);
    }
  };

  /// A torus needs at least three rows and columns: with fewer, two neighbours would be the same site.
  LatticeIsing(Index rows, Index columns, Boundary boundary, double coupling, const std::vector<double>& field)
      : rows_(rows),
        columns_(columns),
        size_(rows * columns),
        torus_(boundary == Boundary::torus),
        coupling_(coupling),
        local_(field.begin(), field.end()) {
    if (rows == 0 || columns == 0 || local_.size() != size_) {
      throw InputError("a lattice needs at least one site and one field value for each");
    }
    if (torus_ && (rows < 3 || columns < 3)) throw InputError("a torus needs at least three rows and three columns");
    if (columns_ == 1) std::swap(rows_, columns_);  // the same sites and neighbours, and the reciprocal fits 64 bits
    reciprocal_ = ~std::uint64_t{0} / columns_ + 1;
    for (int site = 0; site < 16; ++site) {
      const int spin = spin_of(static_cast<Site>(site));
      flip_[site] = {-2.0 * spin, -2.0 * spin * coupling * (2 * (site & 7) - 4)};
    }
    double sum = 0.0;
    for (const double value : local_) sum += std::abs(value);
    if (!std::isfinite(sum) || !std::isfinite(coupling)) {
      throw InputError("a lattice needs a finite coupling and fields whose sum is finite");
    }
    has_field_ = sum > 0.0;
    unit_ = std::max(sum * 0x1p-61, std::numeric_limits<double>::min());
    for (Index i = 0; i < size_ && !torus_; ++i) local_[i] += coupling * missing(i);
  }

  [[nodiscard]] Index rows() const { return rows_; }
  [[nodiscard]] Index columns() const { return columns_; }
  [[nodiscard]] bool is_torus() const { return torus_; }
  [[nodiscard]] double coupling() const { return coupling_; }
  [[nodiscard]] double field(Index i) const { return torus_ ? local_[i] : local_[i] - coupling_ * missing(i); }

  template <class Visit>
  void for_each_neighbour(Index i, Visit&& visit) const {
    for (const Index j : neighbours(i)) {
      if (j != i) visit(j, coupling_, std::int64_t{1});
    }
  }
  template <class Spin>
  [[nodiscard]] double local_field(Index i, Spin&& spin) const {
    double sum = 0.0;
    std::size_t k = 0;
    for_each_neighbour(i, [&](Index, double, std::int64_t) { sum += spin(k++); });
    return field(i) + coupling_ * sum;
  }

  /// A field as an integer, in the unit that State::fields has.
  [[nodiscard]] POISE_INLINE std::int64_t field_units(Index i) const {
    return static_cast<std::int64_t>(field(i) / unit_);
  }

  [[nodiscard]] Index num_variables() const { return size_; }
  [[nodiscard]] Index num_moves() const { return size_; }
  [[nodiscard]] Index cardinality(Index) const { return 2; }
  [[nodiscard]] static constexpr std::size_t max_affected() { return 5; }

  [[nodiscard]] State make_state(std::span<const Value> x) const {
    State state;
    state.sites.resize(size_);
    assign(state, x);
    return state;
  }

  [[nodiscard]] static int spin_of(Site site) { return (site & kUp) != 0 ? 1 : -1; }
  [[nodiscard]] Value level(const State& state, Index i) const { return (state.sites[i] & kUp) != 0 ? 1 : 0; }
  [[nodiscard]] double log_prob(const State& state) const {
    return unit_ * static_cast<double>(state.fields) + coupling_ * static_cast<double>(state.pairs);
  }
  [[nodiscard]] Move move_at(const State& state, Index i) const {
    return {i, static_cast<Value>((state.sites[i] & kUp) != 0 ? 0 : 1)};
  }

  /// The statistics of an Ising model: its magnetization, the sum of all spins.
  [[nodiscard]] static std::vector<std::string> statistic_names() { return {"magnetization"}; }
  void statistics(const State& state, std::span<double> out) const {
    out[0] = static_cast<double>(state.magnetization);
  }

  [[nodiscard]] POISE_INLINE double log_ratio(const State& state, Move move) const {
    return log_flip_ratio(state.sites[move.variable], local_[move.variable]);
  }

  void log_ratios(const State& state, std::span<double> out) const {
    for (Index i = 0; i < size_; ++i) out[i] = log_flip_ratio(state.sites[i], local_[i]);
  }

  template <class Visit>
  POISE_INLINE void for_each_affected(const State& state, Index i, Visit&& visit) const {
    const Site* sites = state.sites.data();
    const double* field = local_.data();
    const std::array<Index, 4> j = neighbours(i);
    const int change = change_of(sites[i]);
    const auto after = [&](Index k) -> const Flip& { return flip_[static_cast<Site>(sites[k] + change)]; };
    const Flip& a = after(j[0]);
    const Flip& b = after(j[1]);
    const Flip& c = after(j[2]);
    const Flip& d = after(j[3]);
    const Flip& self = flip_[sites[i] ^ kUp];
    const Doubles8 factor = lanes8(a.factor, b.factor, c.factor, d.factor, self.factor, 0.0, 0.0, 0.0);
    const Doubles8 fields = lanes8(field[j[0]], field[j[1]], field[j[2]], field[j[3]], field[i], 0.0, 0.0, 0.0);
    constexpr double kNone = -std::numeric_limits<double>::infinity();
    const Doubles8 constant =
        lanes8(a.constant, b.constant, c.constant, d.constant, self.constant, kNone, kNone, kNone);
    AffectedLanes lanes{{j[0], j[1], j[2], j[3], i, i, i, i}, factor * fields + constant, 5};
    if (!torus_) drop_missing(i, lanes);
    visit(lanes);
  }

  // The ratio of a move depends on few things only: on the site and its code. A kernel may tabulate what it makes of
  // it.

  [[nodiscard]] double coded_log_ratio(Index i, Index code) const {
    return log_flip_ratio(static_cast<Site>(code), local_[i]);
  }
  /// Calls visit(move, code) for every affected move, with its code after move number i.
  template <class Visit>
  POISE_INLINE void for_each_affected_code(const State& state, Index i, Visit&& visit) const {
    const Site* sites = state.sites.data();
    const int change = change_of(sites[i]);
    for (const Index k : neighbours(i)) {
      if (torus_ || k != i) visit(k, static_cast<Index>(sites[k] + change));
    }
    visit(i, static_cast<Index>(sites[i] ^ kUp));
  }

  /// Fetches ahead what a look at any of `count` moves from number `first` on may read, and calls visit with every
  /// eighth of the sites above and below them.
  template <class Visit>
  POISE_INLINE void prefetch(const State& state, Index first, Index count, Visit&& visit) const {
    const std::array<Index, 2> beside = rows_beside(first);
    for (const Index row : {first, beside[0], beside[1]}) {
      __builtin_prefetch(state.sites.data() + row, 1);
      for (Index k = row; k < row + count; k += 8) {
        __builtin_prefetch(local_.data() + std::min(k, size_ - 1));
        if (row != first) visit(std::min(k, size_ - 1));
      }
    }
  }

  /// Above and below, as on a torus: where to look ahead, not what is there.
  [[nodiscard]] POISE_INLINE std::array<Index, 2> rows_beside(Index i) const {
    return {i >= columns_ ? i - columns_ : i + size_ - columns_,
            i + columns_ < size_ ? i + columns_ : i + columns_ - size_};
  }

  POISE_INLINE void apply(State& state, Move move) const {
    const Index i = move.variable;
    const int change = flip(state, i);
    for (const Index k : neighbours(i)) {
      if (k != i) state.sites[k] = static_cast<Site>(state.sites[k] + change);
    }
  }

  /// The same for a kernel that has just been told which moves it affects.
  POISE_INLINE void apply(State& state, Move move, const Index* affected, std::size_t count) const {
    const int change = flip(state, move.variable);
    for (std::size_t k = 0; k + 1 < count; ++k) {  // the last one is the flipped site itself
      state.sites[affected[k]] = static_cast<Site>(state.sites[affected[k]] + change);
    }
  }

  /// Puts a state at other levels, all of them at once: for kernels that change so many that it is faster.
  void assign(State& state, std::span<const Value> x) const {
    const Index columns = columns_;
    const std::vector<Value> none(torus_ ? 0 : columns, 0);  // beyond the ends of an open lattice
    std::int64_t up = 0;
    std::int64_t different = 0;  // edges whose ends are
    for (Index row = 0; row < rows_; ++row) {
      const Value* here = x.data() + std::size_t{row} * columns;
      const Value* above = row > 0 ? here - columns : torus_ ? here + size_ - columns : none.data();
      const Value* below = row + 1 < rows_ ? here + columns : torus_ ? x.data() : none.data();
      Site* __restrict sites = state.sites.data() + std::size_t{row} * columns;
      Index row_up = 0, row_different = 0;  // as narrow as will do, for the sake of vectors
      for (Index k = 0; k < columns; ++k) {
        sites[k] = static_cast<Site>(kUp * here[k] + above[k] + below[k]);
        row_up += here[k];
      }
      for (Index k = 0; k < columns && below != none.data(); ++k) row_different += here[k] ^ below[k];
      for (Index k = 1; k < columns; ++k) {
        sites[k] = static_cast<Site>(sites[k] + here[k - 1]);
        row_different += here[k] ^ here[k - 1];
      }
      for (Index k = 1; k < columns; ++k) sites[k - 1] = static_cast<Site>(sites[k - 1] + here[k]);
      if (torus_) {
        sites[0] = static_cast<Site>(sites[0] + here[columns - 1]);
        sites[columns - 1] = static_cast<Site>(sites[columns - 1] + here[0]);
        row_different += here[0] ^ here[columns - 1];
      }
      up += row_up;
      different += row_different;
    }
    const std::int64_t n = size_;
    const std::int64_t edges = torus_ ? 2 * n : 2 * n - rows_ - columns_;
    state.magnetization = 2 * up - n;
    state.pairs = edges - 2 * different;
    state.fields = 0;
    for (Index i = 0; i < size_ && has_field_; ++i) state.fields += field_units(i) * spin_of(state.sites[i]);
  }

  /// Up, left, right, down; where an open lattice ends, i itself.
  [[nodiscard]] POISE_INLINE std::array<Index, 4> neighbours(Index i) const {
    const auto row = static_cast<Index>((static_cast<unsigned __int128>(i) * reciprocal_) >> 64);
    const Index column = i - row * columns_;
    const Index up = row > 0 ? i - columns_ : (torus_ ? i + size_ - columns_ : i);
    const Index left = column > 0 ? i - 1 : (torus_ ? i + columns_ - 1 : i);
    const Index right = column + 1 < columns_ ? i + 1 : (torus_ ? i - (columns_ - 1) : i);
    const Index down = row + 1 < rows_ ? i + columns_ : (torus_ ? i - (size_ - columns_) : i);
    return {up, left, right, down};
  }

 private:
  struct Flip {
    double factor;
    double constant;
  };

  /// By how much the code of its neighbours changes when this site flips.
  POISE_INLINE static int change_of(Site site) { return (site & kUp) != 0 ? -1 : 1; }

  /// Flips the site alone; gives the change of its neighbours' codes.
  POISE_INLINE int flip(State& state, Index i) const {
    Site& site = state.sites[i];
    const int change = change_of(site);  // also the new spin
    state.magnetization += 2 * change;
    state.fields += 2 * change * field_units(i);
    state.pairs += 2 * change * (2 * (site & 7) - (torus_ ? 4 : 4 - missing(i)));
    site ^= kUp;
    return change;
  }

  /// Neighbours that site i of an open lattice lacks.
  [[nodiscard]] int missing(Index i) const {
    int count = 0;
    for (const Index k : neighbours(i)) count += k == i ? 1 : 0;
    return count;
  }

  POISE_INLINE double log_flip_ratio(Site site, double local) const {
    return flip_[site].factor * local + flip_[site].constant;
  }

  /// Takes the lanes of neighbours that an open lattice does not have out of the list.
  POISE_INLINE static void drop_missing(Index i, AffectedLanes& lanes) {
    unsigned count = 0;
    for (unsigned k = 0; k < 5; ++k) {
      if (k < 4 && lanes.moves[k] == i) continue;
      lanes.moves[count] = lanes.moves[k];
      lanes.log_ratios.set(count, lanes.log_ratios[k]);
      ++count;
    }
    for (unsigned k = count; k < 5; ++k) {
      lanes.log_ratios.set(k, -std::numeric_limits<double>::infinity());
    }
    lanes.count = count;
  }

  Index rows_;
  Index columns_;
  Index size_;
  bool torus_;
  double coupling_;
  std::vector<double> local_;  // the field, plus the coupling once for every neighbour that is not there
  bool has_field_ = false;
  double unit_ = 1.0;             // so that the sum of all fields fits an integer
  std::array<Flip, 16> flip_{};   // by site: the log ratio of its flip is factor * local field + constant
  std::uint64_t reciprocal_ = 0;  // ceil(2^64 / columns): i / columns is the upper half of i * reciprocal for 32-bit i
};

}  // namespace poise
