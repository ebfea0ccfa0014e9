/// Greedy orders of elimination on the graph in which variables that share a factor are neighbours.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <poise/network.hpp>

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

/// The vertices of each connected part, ascending; parts by their first vertex.
[[nodiscard]] std::vector<std::vector<Index>> parts_of(const Graph& graph);

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

}  // namespace poise::exact
