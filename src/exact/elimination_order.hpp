/// Orders of elimination on the graph in which variables that share a factor are neighbours: greedy, then annealed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include <poise/network.hpp>
#include "exact/junction_tree.hpp"

namespace poise::exact {

/// The largest table that is worth thinking about: an order that leads to a larger one is given up.
inline constexpr double kLargestTable = 1099511627776.0;  // 2^40

/// The largest table of an order that annealing may begin with: it has been seen to take thirty levels of two away.
inline constexpr double kLargestStart = 1.2e24;  // 2^80

/// All chance in planning comes from it: plans are reproducible.
inline constexpr std::uint64_t kOrderSeed = 20060713;

/// The free variables with more than one level, numbered anew, and who shares a factor with whom.
struct Graph {
  std::vector<Index> variables;  ///< their numbers in the network
  std::vector<double> log_levels;
  std::vector<std::size_t> start;  ///< vertices + 1
  std::vector<Index> neighbours;   ///< of each vertex, ascending

  [[nodiscard]] Index size() const { return static_cast<Index>(variables.size()); }
  [[nodiscard]] std::span<const Index> of(Index v) const {
    return {neighbours.data() + start[v], start[v + 1] - start[v]};
  }
};
[[nodiscard]] Graph graph_of(const Network& network);

/// The vertices of each connected component, ascending; components by their first vertex.
[[nodiscard]] std::vector<std::vector<Index>> components_of(const Graph& graph);

/// An order of the vertices, and for each place in it the vertices that its vertex still had as neighbours when it was
/// eliminated.
struct Order {
  std::vector<Index> vertices;
  std::vector<std::size_t> start = {0};  ///< places + 1
  std::vector<Index> later;
  double entries = 0.0;  ///< of all tables, one for each vertex with its later neighbours
  Index width = 0;       ///< most later neighbours
  bool complete = false;

  [[nodiscard]] std::span<const Index> later_of(std::size_t place) const {
    return {later.data() + start[place], start[place + 1] - start[place]};
  }
};

/// What a search may cost, in looks at edges: a count, so that results do not depend on the machine's speed, unless
/// there is a limit of time.
struct Effort {
  using Clock = std::chrono::steady_clock;

  std::uint64_t looks = 0;
  std::uint64_t most = 0;
  Clock::time_point deadline = Clock::time_point::max();

  [[nodiscard]] bool spent() const { return looks >= most; }
  [[nodiscard]] bool late() const { return deadline != Clock::time_point::max() && Clock::now() >= deadline; }
};

/// Leaves go first, then the vertex that makes the smallest table. About degree^2 looks for each vertex, whatever its
/// neighbours' degrees, so that networks of millions of variables can be ordered. Stops, incomplete, at a table with
/// more than `largest_table` entries.
[[nodiscard]] Order order_by_table(const Graph& graph, double largest_table = kLargestTable);

/// What the missing edge between a and b counts in `order_by_fill`: 1, or the product of the logarithms of their
/// levels.
enum class EdgeWeight { one, levels };

struct FillOptions {
  EdgeWeight weight = EdgeWeight::one;
  std::uint64_t trial = 0;               ///< number of the trial, which tells its random numbers
  double second_choice = 0.0;            ///< probability of taking the second best vertex instead of the best
  double most_entries = kLargestTable;   ///< an order with more is given up
  double largest_table = kLargestTable;  ///< as is one with a larger table
  std::span<const Index> prefix = {};    ///< vertices to begin with, before the first choice
};

/// The vertex whose neighbours miss the fewest edges among them goes first; ties by smaller table, then at random.
/// Better than `order_by_table` on most networks, at degree^3 looks a vertex.
[[nodiscard]] Order order_by_fill(const Graph& graph, const FillOptions& options, Effort& effort);

/// How one annealing goes: from the first temperature to the last, by equal factors, within its looks. A temperature is
/// that of the logarithm of the entries.
struct Annealing {
  double first_temperature = 0.5;
  double last_temperature = 0.15;
  std::uint64_t looks = 0;
};

/// Every vertex hangs from the first one that is eliminated after it among its later neighbours. Orders in which
/// children come before their parents all lead to the same tables, so the tree is what there is to search.
///
/// The one move is a rotation: a vertex and its parent change their order. What is below both stays as it is, as does
/// what is above; two tables are new. Rotations lead from any order to any other.
class EliminationTree {
 public:
  EliminationTree(const Graph& graph, std::span<const Index> order);

  /// Sum over vertices of the table of the vertex with its later neighbours.
  [[nodiscard]] double entries() const;
  /// Children before parents.
  [[nodiscard]] std::vector<Index> vertices() const;
  /// The same, with the later neighbours of each.
  [[nodiscard]] Order order() const;
  /// Rotates at random, what makes tables smaller always, what makes them larger the less often the colder it is. Ends
  /// with the best tree that was seen at the end of a sweep. Being late ends it too.
  void anneal(const Annealing& annealing, Rng& rng, Effort& effort);

 private:
  static constexpr Index kNone = Network::kFree;

  /// What a rotation would lead to.
  struct Rotation {
    Index child;
    Index parent;
    double child_table;  ///< logarithms of the new tables
    double parent_table;
  };

  void hang_up(std::span<const Index> order);
  [[nodiscard]] Rotation look_at(Index child, Effort& effort);
  void rotate(const Rotation& rotation);
  [[nodiscard]] bool is_later(Index vertex, Index of) const;

  const Graph& graph_;
  std::vector<Index> parent_;  ///< kNone: a root
  std::vector<std::vector<Index>> children_;
  std::vector<std::vector<Index>> later_;  ///< later neighbours, in no order
  std::vector<double> log_table_;
  std::vector<std::uint64_t> mark_;
  std::vector<Index> found_;  ///< later neighbours of the parent after the rotation that was looked at last
  std::uint64_t stamp_ = 0;
};

/// The tree of cliques that an order leads to.
[[nodiscard]] EliminationPlan plan_of(const Network& network, const Graph& graph, const Order& order);

struct SearchOptions {
  Effort::Clock::time_point deadline = Effort::Clock::time_point::max();
  /// Bytes that there are: needing more counts like as many times the work, which it takes in slices.
  double memory = 1073741824.0;
  double times = 1.0;  ///< how often the tree will be worked through
  double most_looks = std::numeric_limits<double>::infinity();
};

[[nodiscard]] SearchOptions search_options(const PlanOptions& options);

/// Operations, with those of the slices that too little memory will make of the tree.
[[nodiscard]] double cost(const EliminationPlan& plan, const SearchOptions& options);

struct FoundOrder {
  Order order;  ///< incomplete where none was found
  EliminationPlan plan;
};

/// The cheapest order that is found. Its tables may exceed `kLargestTable`.
[[nodiscard]] FoundOrder search_order(const Network& network, const Graph& graph, const SearchOptions& options);

/// The same, component by component where the network is not connected.
[[nodiscard]] FoundOrder search_components(const Network& network, const Graph& graph, const SearchOptions& options);

/// What `search_components` finds, or the order of `order_by_table` where there is no time for a search.
[[nodiscard]] FoundOrder find_order(const Network& network, const Graph& graph, const PlanOptions& options);

/// The plan of a network where every order leads to too large a table.
[[nodiscard]] EliminationPlan given_up(Index width);

/// Random numbers of an annealing between two variables that are conditioned on, by how many there are.
[[nodiscard]] Rng annealing_rng(std::uint64_t number);

/// Annealing alone, which begins with `found`.
void improve_order(const Network& network, const Graph& graph, const SearchOptions& options, FoundOrder& found);

}  // namespace poise::exact
