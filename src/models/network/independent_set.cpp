/// Hard-core models from graphs in two text formats.
#include "models/network/independent_set.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/file.hpp"
#include "models/ising/ising_text.hpp"

namespace poise {

namespace {

constexpr double kStrongestFugacity = 300.0;                   // so that tables hold neither zeros nor infinities
constexpr std::size_t kMostComplement = std::size_t{1} << 26;  // edges

class GraphReader {
 public:
  GraphReader(std::string_view content, std::string_view name) : name_(name), size_(content.size()), lines_(content) {}

  SimpleGraph read() {
    while (lines_.next()) {
      const auto& words = lines_.words;
      if (words[0] == "c") continue;
      if (!header_line_) {
        read_header();
      } else if (!dimacs_) {
        read_edge(0);
      } else if (words[0] == "e") {
        read_edge(1);
      } else if (words[0] != "n") {
        fail_at(name_, lines_.number, fmt::format("found {}, expected 'e i j'", quote(words[0])));
      }
    }
    if (!header_line_) {
      throw InputError(
          fmt::format("{}: found no numbers, expected a line 'vertices edges' or 'p edge vertices edges'", name_));
    }
    if (!dimacs_ && graph_.edges.size() != declared_) {
      throw InputError(fmt::format("{}: found {} edges, expected {} as line {} declares", name_, graph_.edges.size(),
                                   declared_, *header_line_));
    }
    std::sort(graph_.edges.begin(), graph_.edges.end());
    graph_.edges.erase(std::unique(graph_.edges.begin(), graph_.edges.end()), graph_.edges.end());
    return std::move(graph_);
  }

 private:
  void read_header() {
    const auto& words = lines_.words;
    dimacs_ = words[0] == "p";
    const std::size_t first = dimacs_ ? 2 : 0;
    const bool known = !dimacs_ || (words.size() == 4 && (words[1] == "edge" || words[1] == "col"));
    if (!known || words.size() < first + 2 || (!dimacs_ && words.size() > 3)) {
      fail_at(name_, lines_.number,
              fmt::format("found a line of {} words that begins with {}, expected 'vertices edges' or 'p edge vertices "
                          "edges'",
                          words.size(), quote(words[0])));
    }
    header_line_ = lines_.number;
    const Expected plausible{"a number of vertices", 1, max_variables(size_), kMaxVariablesReason};
    graph_.vertices = static_cast<Index>(integer_at(words[first], plausible, name_, lines_.number));
    declared_ = static_cast<std::size_t>(
        integer_at(words[first + 1], {"a number of edges", 0, kMaxEdges}, name_, lines_.number));
  }

  /// `first`: the word with which the two vertices begin.
  void read_edge(std::size_t first) {
    const auto& words = lines_.words;
    if (words.size() != first + 2 && words.size() != first + 3) {
      fail_at(name_, lines_.number, fmt::format("found {} words, expected an edge 'i j'", words.size() - first));
    }
    const Expected range{"the number of a vertex,", 1, graph_.vertices};
    const auto i = static_cast<Index>(integer_at(words[first], range, name_, lines_.number) - 1);
    const auto j = static_cast<Index>(integer_at(words[first + 1], range, name_, lines_.number) - 1);
    if (words.size() == first + 3) (void)real_at(words[first + 2], name_, lines_.number);
    if (i == j) {
      fail_at(name_, lines_.number, fmt::format("found an edge from {} to itself, expected two vertices", i + 1));
    }
    graph_.edges.emplace_back(std::min(i, j), std::max(i, j));
  }

  std::string_view name_;
  std::size_t size_;
  Lines lines_;
  std::optional<std::size_t> header_line_;
  bool dimacs_ = false;
  std::size_t declared_ = 0;
  SimpleGraph graph_;
};

SimpleGraph complement(const SimpleGraph& graph, const std::string& file) {
  const std::size_t n = graph.vertices;
  const std::size_t edges = n * (n - 1) / 2 - graph.edges.size();
  if (edges > kMostComplement) {
    throw InputError(fmt::format(
        "{}: found {} vertices and {} edges, whose complement has {} edges, expected at most {} for cliques", file, n,
        graph.edges.size(), edges, kMostComplement));
  }
  SimpleGraph out{graph.vertices, {}};
  out.edges.reserve(edges);
  auto next = graph.edges.begin();
  for (Index i = 0; i < graph.vertices; ++i) {
    for (Index j = i + 1; j < graph.vertices; ++j) {
      if (next != graph.edges.end() && *next == std::pair(i, j)) {
        ++next;
      } else {
        out.edges.emplace_back(i, j);
      }
    }
  }
  return out;
}

Network make_sets(const Spec& spec, const char* model, VertexSets sets) {
  SpecReader reader(spec, "model");
  const std::string file = reader.text("file", "");
  if (file.empty()) reader.problem(fmt::format("no key 'file' in model '{}', expected {}:file=FILE", model, model));
  const double beta = read_beta(reader, -kStrongestFugacity, kStrongestFugacity);
  reader.finish({"file", "beta", "T"});
  Network network = network_of_sets(parse_graph(read_file(file), file), sets, beta, file);
  network.name = fmt::format("{}:file={},beta={}", model, file, beta);
  return network;
}

}  // namespace

SimpleGraph parse_graph(std::string_view content, std::string_view name) { return GraphReader(content, name).read(); }

/// All edges share one table, and all vertices another.
Network network_of_sets(SimpleGraph graph, VertexSets sets, double beta, const std::string& where) {
  if (sets == VertexSets::cliques) graph = complement(graph, where);
  Network network;
  network.cardinalities.assign(graph.vertices, 2);
  network.values = {1.0, std::exp(beta), 1.0, 1.0, 1.0, 0.0};
  const auto add = [&](std::initializer_list<Index> scope, std::size_t table) {
    network.scopes.insert(network.scopes.end(), scope);
    network.scope_start.push_back(network.scopes.size());
    network.table_start.push_back(table);
  };
  for (Index i = 0; i < graph.vertices; ++i) add({i}, 0);
  for (const auto& [i, j] : graph.edges) add({i, j}, 2);
  return network;
}

Network make_independent_set(const Spec& spec) { return make_sets(spec, "mis", VertexSets::independent); }

Network make_clique(const Spec& spec) { return make_sets(spec, "clique", VertexSets::cliques); }

}  // namespace poise
