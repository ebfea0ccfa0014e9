/// Independent sets and cliques of a graph, as networks: hard-core models.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poise/extend/base/spec.hpp>
#include <poise/network.hpp>

namespace poise {

/// A graph without weights: edges i < j, none twice, in order.
struct SimpleGraph {
  Index vertices = 0;
  std::vector<std::pair<Index, Index>> edges;
};

/// Reads an edge list, `vertices edges` and then `i j` on each line, or the DIMACS format, `p edge vertices edges` (or
/// `p col`) and then `e i j`. Vertices count from 1. A third number on the line of an edge, a weight, means nothing
/// here, and an edge may be there twice. Lines that begin with `c`, and what follows '#', are comments. In a DIMACS
/// file the declared number of edges is not checked, since many files count each edge twice; `n` lines are skipped.
[[nodiscard]] SimpleGraph parse_graph(std::string_view content, std::string_view name);

enum class VertexSets { independent, cliques };

/// The hard-core model of a graph, or of its complement for cliques: p(x) is proportional to exp(beta size) over the
/// sets, which have their vertices at level 1. Messages begin with `where`. Throws InputError where the complement
/// would be too large.
[[nodiscard]] Network network_of_sets(SimpleGraph graph, VertexSets sets, double beta, const std::string& where);

/// Reads `mis:file=FILE,beta=1`: p(x) is proportional to exp(beta size) over the independent sets of a graph: sets of
/// vertices (at level 1) no two of which are neighbours. This is the hard-core model with fugacity exp(beta). Throws
/// InputError.
[[nodiscard]] Network make_independent_set(const Spec& spec);

/// Reads `clique:file=FILE,beta=1`: the same over sets of vertices all of which are neighbours, the independent sets of
/// the complement. Throws InputError.
[[nodiscard]] Network make_clique(const Spec& spec);

}  // namespace poise
