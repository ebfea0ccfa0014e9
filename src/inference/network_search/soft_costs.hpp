/// Costs of a network that move between factors and variables, with levels that go and come back: the nodes of a tree
/// search.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include <poise/network.hpp>

namespace poise::network_search {

/// Negative logarithms in a unit so fine that rounding is below any difference that counts, and sums are exact.
using Cost = std::int64_t;

/// A cost that no state reaches, and what stands for a zero in a table.
inline constexpr Cost kNoLimit = Cost{1} << 60;

/// Sequential reweighted message passing as in ShiftedCosts, but on the levels that are left, only where something has
/// changed, and with a way back. What is taken from factors adds up to a bound that no state is below.
class SoftCosts {
 public:
  /// `network` has no observed variables and no empty scopes; it is not needed afterwards.
  explicit SoftCosts(const Network& network);

  [[nodiscard]] Index size() const { return static_cast<Index>(count_.size()); }
  /// Levels that are left, in any order.
  [[nodiscard]] std::span<const Index> levels(Index i) const { return {list_.data() + start_[i], count_[i]}; }
  [[nodiscard]] bool is_settled(Index i) const { return count_[i] == 1; }
  /// By level: the cost that a level has over the best one, as known when the variable was visited last.
  [[nodiscard]] std::span<const Cost> excess(Index i) const {
    return {costs_.data() + row_start_[2 * size() + i], levels_[i]};
  }
  /// No state of the levels that are left costs less.
  [[nodiscard]] Cost bound() const { return bound_; }
  /// What a state costs, rounded down; at least kNoLimit where a factor is zero.
  [[nodiscard]] Cost cost(std::span<const Value> x) const;
  /// The logarithm of a product of a given cost, and back.
  [[nodiscard]] double log_of(Cost cost) const { return log_constant_ - static_cast<double>(cost) / unit_; }
  [[nodiscard]] Cost cost_of(double log_value) const;
  /// Costs of states, and the costs of their logarithms, may differ by so much.
  [[nodiscard]] Cost rounding() const { return static_cast<Cost>(factors_.size()) + 1; }
  /// Table entries that were looked at.
  [[nodiscard]] double looks() const { return looks_; }

  /// Everything that is done from here on is taken back by `pop`.
  void push();
  void pop();
  /// Takes all levels out but one, or that one.
  void settle(Index i, Index level);
  void remove(Index i, Index level);

  struct Effort {
    unsigned rounds;    ///< of a pass and one back, at most
    double least_gain;  ///< rounds end where the bound rises by less than this part of what is missing
    double least_move;  ///< changes below this part of what is missing are not passed on
  };
  /// Moves costs and takes levels out until little changes. States that cost `limit` or more do not count. False where
  /// none is left; `failed` says at which variable that was noticed. `halt` is looked at between rounds.
  bool propagate(Cost limit, const Effort& effort, const std::function<bool()>& halt = nullptr);
  [[nodiscard]] Index failed() const { return failed_; }

 private:
  struct Factor {
    std::size_t first_member;
    std::size_t members;
    std::size_t table;
  };
  struct Member {  ///< a variable of a factor
    Index variable;
    std::size_t stride;
    std::size_t row;
  };
  struct Use {  ///< a factor of a variable
    std::size_t factor;
    std::size_t member;
  };
  struct Axis {
    std::size_t stride;
    std::span<const Index> levels;
    const Cost* moved;
  };
  struct Mark {  ///< where what came since a push begins
    std::size_t rows;
    std::size_t counts;
    Cost bound;
    std::uint32_t stamp;
  };

  bool pass(bool forward, Cost limit, Cost move);
  bool visit(Index i, bool forward, Cost limit, Cost move);
  void share_out(Index i, bool forward);
  void minima(const Use& use, Cost* out);
  void minima_over(std::size_t axes, const Cost* table, Cost moved, Cost& least) const;
  void wake_beside(Index i);
  void take_out(Index i, std::size_t place);
  void save(std::size_t row);
  [[nodiscard]] bool reaches(const Factor& factor, Index i, bool up) const;

  std::vector<Index> levels_;
  std::vector<std::size_t> start_;  ///< of a variable's levels
  std::vector<Index> list_, place_;
  std::vector<Index> count_;
  std::vector<Factor> factors_;
  std::vector<Member> members_;
  std::vector<Use> uses_;
  std::vector<std::size_t> use_start_;
  std::vector<Cost> tables_;
  /// Rows of a cost for each level of a variable: of its own, for the passes forward and back what it had over its best
  /// level after it had collected, and for each factor what was taken from it.
  std::vector<Cost> costs_;
  std::vector<std::size_t> row_start_;
  std::vector<std::uint32_t> stamp_;  ///< of a row: the push that saved it last
  std::uint32_t now_ = 0, stamps_ = 0;
  std::vector<Mark> marks_;
  std::vector<std::size_t> saved_rows_;
  std::vector<std::uint32_t> saved_stamps_;
  std::vector<Cost> saved_costs_;
  std::vector<std::pair<Index, Index>> saved_counts_;
  std::array<std::vector<std::uint8_t>, 2> due_;
  std::vector<Cost> sums_, messages_;
  std::vector<Axis> axes_;
  Cost bound_ = 0;
  double log_constant_ = 0.0;
  double unit_ = 1.0;
  double looks_ = 0.0;
  Index failed_ = 0;
};

}  // namespace poise::network_search
