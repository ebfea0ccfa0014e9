/// Bucket elimination in integers, along an order of small width.
#include "inference/optimize/spin_elimination.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numbers>
#include <span>
#include <utility>

#include "exact/elimination_order.hpp"

namespace poise {

namespace {

constexpr double kLargestTable = 0x1p22;
constexpr std::uint64_t kMostLooks = 20'000'000;

exact::Graph graph_of(const SpinProblem& problem) {
  exact::Graph graph;
  graph.start = problem.start;
  graph.neighbours = problem.neighbour;
  for (Index i = 0; i < problem.num_variables(); ++i) {
    graph.variables.push_back(i);
    std::sort(graph.neighbours.begin() + static_cast<std::ptrdiff_t>(graph.start[i]),
              graph.neighbours.begin() + static_cast<std::ptrdiff_t>(graph.start[i + 1]));
  }
  graph.log_levels.assign(graph.size(), std::numbers::ln2);
  return graph;
}

/// An order whose tables are small enough, if one is found without much effort.
std::optional<exact::Order> find_order(const SpinProblem& problem, double most_entries) {
  const exact::Graph graph = graph_of(problem);
  exact::Order order = exact::order_by_table(graph, kLargestTable);
  if (order.complete && order.entries <= most_entries) return order;
  exact::Effort effort{.most = kMostLooks};
  order = exact::order_by_fill(graph, {.most_entries = most_entries, .largest_table = kLargestTable}, effort);
  if (order.complete && order.entries <= most_entries) return order;
  return std::nullopt;
}

/// A function of some variables. Bit k of an index is set where variable k is +1.
struct Table {
  std::vector<Index> variables;
  std::vector<std::int64_t> values;
};

/// The two values of a variable, for every state of its later neighbours: what the problem and the tables of
/// variables that are gone give for -1 and +1.
class Bucket {
 public:
  Bucket(Index variable, std::span<const Index> later)
      : variable_(variable), later_(later.begin(), later.end()), entries_(std::size_t{1} << later.size()) {
    for (auto& values : values_) values.assign(entries_, 0);
  }

  void add_field(const SpinProblem& problem) {
    std::vector<std::int64_t> local(entries_);
    local[0] = problem.field[variable_];
    std::vector<std::int64_t> weight(later_.size(), 0);
    for (std::size_t k = problem.start[variable_]; k < problem.start[variable_ + 1]; ++k) {
      const auto at = std::find(later_.begin(), later_.end(), problem.neighbour[k]);
      if (at == later_.end()) continue;  // it is gone, and the edge with it
      weight[static_cast<std::size_t>(at - later_.begin())] += problem.weight[k];
      local[0] -= problem.weight[k];
    }
    for (std::size_t k = 0; k < later_.size(); ++k) {
      const std::size_t half = std::size_t{1} << k;
      for (std::size_t i = 0; i < half; ++i) local[half + i] = local[i] + 2 * weight[k];
    }
    for (std::size_t i = 0; i < entries_; ++i) {
      values_[0][i] -= local[i];
      values_[1][i] += local[i];
    }
  }

  void add(const Table& table) {
    std::vector<std::uint32_t> at(entries_, 0);
    std::uint32_t own = 0;
    std::vector<std::uint32_t> bit(later_.size(), 0);
    for (std::size_t k = 0; k < table.variables.size(); ++k) {
      const std::uint32_t here = std::uint32_t{1} << k;
      if (table.variables[k] == variable_) {
        own = here;
      } else {
        const auto found = std::find(later_.begin(), later_.end(), table.variables[k]);
        bit[static_cast<std::size_t>(found - later_.begin())] = here;
      }
    }
    for (std::size_t k = 0; k < later_.size(); ++k) {
      const std::size_t half = std::size_t{1} << k;
      for (std::size_t i = 0; i < half; ++i) at[half + i] = at[i] | bit[k];
    }
    for (std::size_t i = 0; i < entries_; ++i) {
      values_[0][i] += table.values[at[i]];
      values_[1][i] += table.values[at[i] | own];
    }
  }

  /// The best values, and whether the variable is +1 there.
  [[nodiscard]] std::pair<Table, std::vector<bool>> maximise() && {
    std::vector<bool> is_up(entries_);
    for (std::size_t i = 0; i < entries_; ++i) {
      is_up[i] = values_[1][i] >= values_[0][i];
      values_[0][i] = std::max(values_[0][i], values_[1][i]);
    }
    return {Table{std::move(later_), std::move(values_[0])}, std::move(is_up)};
  }

 private:
  Index variable_;
  std::vector<Index> later_;
  std::size_t entries_;
  std::array<std::vector<std::int64_t>, 2> values_;
};

}  // namespace

std::optional<std::vector<Spin>> eliminate_spins(const SpinProblem& problem, double most_entries) {
  const std::optional<exact::Order> order = find_order(problem, most_entries);
  if (!order) return std::nullopt;
  const std::size_t n = problem.num_variables();
  std::vector<std::size_t> place(n);
  for (std::size_t p = 0; p < n; ++p) place[order->vertices[p]] = p;
  std::vector<std::vector<Table>> waiting(n);  // by the place of the first of their variables to go
  std::vector<std::vector<bool>> is_up(n);
  for (std::size_t p = 0; p < n; ++p) {
    Bucket bucket(order->vertices[p], order->later_of(p));
    bucket.add_field(problem);
    for (const Table& table : waiting[p]) bucket.add(table);
    waiting[p] = {};
    auto [table, choice] = std::move(bucket).maximise();
    is_up[p] = std::move(choice);
    std::size_t next = n;
    for (const Index i : table.variables) next = std::min(next, place[i]);
    if (next < n) waiting[next].push_back(std::move(table));
  }
  std::vector<Spin> spins(n, 0);
  for (std::size_t p = n; p-- > 0;) {
    std::size_t at = 0;
    const std::span<const Index> later = order->later_of(p);
    for (std::size_t k = 0; k < later.size(); ++k) at |= std::size_t{spins[later[k]] > 0} << k;
    spins[order->vertices[p]] = is_up[p][at] ? 1 : -1;
  }
  return spins;
}

}  // namespace poise
