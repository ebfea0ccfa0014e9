/// Numbers and edge lists of Ising models from text: what is read, what is refused.
#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include "models/ising/ising_model.hpp"
#include "models/ising/ising_text.hpp"

namespace poise {

namespace {

constexpr std::string_view kBlanks = " \t\r\v\f";
constexpr std::string_view kBlanksAndComma = " \t\r\v\f,";

}  // namespace

bool Lines::next() {
  words.clear();
  while (words.empty() && !rest_.empty()) {
    ++number;
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    const std::size_t comment = line.find('#');
    if (see_comment && comment != std::string_view::npos) see_comment(line.substr(comment + 1));
    split(line.substr(0, comment));
  }
  return !words.empty();
}

void Lines::split(std::string_view line) {
  bool after_comma = false;
  for (std::size_t at = 0;;) {
    at = line.find_first_not_of(kBlanks, at);
    if (at == std::string_view::npos) break;
    const std::size_t end = std::min(line.find_first_of(kBlanksAndComma, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlanks, end);
    after_comma = at != std::string_view::npos && line[at] == ',';
    if (after_comma) ++at;
  }
  if (after_comma) words.emplace_back();
}

double real_at(std::string_view word, std::string_view name, std::size_t line) {
  const std::optional<double> value = parse_real(word);
  if (!value) fail_at(name, line, fmt::format("found {}, expected a finite number", quote(word)));
  if (std::abs(*value) > kLargest) {
    fail_at(name, line, fmt::format("found {}, expected a number from {} to {}", quote(word), -kLargest, kLargest));
  }
  return *value;
}

std::int64_t integer_at(std::string_view word, const Expected& one, std::string_view name, std::size_t line) {
  const std::optional<std::int64_t> value = parse_integer(word);
  if (value && *value >= one.min && *value <= one.max) return *value;
  fail_at(name, line,
          fmt::format("found {}, expected {} from {} to {}{}", quote(word), one.noun, one.min, one.max,
                      value && *value > one.max ? one.reason : ""));
}

namespace {

/// The pair of lines that give the same edge, the earliest such repetition in the file.
void refuse_repeated(const std::vector<Edge>& edges, const std::vector<std::size_t>& lines, std::string_view name) {
  std::vector<std::pair<std::uint64_t, std::size_t>> keyed(edges.size());  // both ends in one number, place in the list
  for (std::size_t e = 0; e < edges.size(); ++e) {
    const auto [low, high] = std::minmax(edges[e].i, edges[e].j);
    keyed[e] = {std::uint64_t{low} << 32 | high, e};
  }
  std::sort(keyed.begin(), keyed.end());
  std::optional<std::pair<std::size_t, std::size_t>> repeated;
  for (std::size_t k = 1; k < keyed.size(); ++k) {
    const bool same = keyed[k].first == keyed[k - 1].first;
    if (same && (!repeated || keyed[k].second < repeated->second)) repeated = {keyed[k - 1].second, keyed[k].second};
  }
  if (!repeated) return;
  const Edge& edge = edges[repeated->second];
  fail_at(name, lines[repeated->second],
          fmt::format("found the edge {} {} of line {} again, expected each edge once, in either direction", edge.i + 1,
                      edge.j + 1, lines[repeated->first]));
}

/// Some families of max-cut files have a third number in their first line.
enum class Header { two_numbers, two_or_three };

EdgeList read_edges(std::string_view content, std::string_view name, double default_coupling, Header header) {
  EdgeList graph;
  std::optional<std::size_t> header_line;
  std::size_t declared = 0;
  std::vector<std::size_t> edge_lines;
  for (Lines lines(content); lines.next();) {
    const auto& words = lines.words;
    if (words[0] == "c") continue;
    if (!header_line) {
      if (words.size() != 2 && !(words.size() == 3 && header == Header::two_or_three)) {
        fail_at(name, lines.number, fmt::format("found {} words, expected a line 'variables edges'", words.size()));
      }
      header_line = lines.number;
      const Expected plausible{"a number of variables", 1, max_variables(content.size()), kMaxVariablesReason};
      graph.variables = static_cast<Index>(integer_at(words[0], plausible, name, lines.number));
      declared =
          static_cast<std::size_t>(integer_at(words[1], {"a number of edges", 0, kMaxEdges}, name, lines.number));
      if (words.size() == 3) real_at(words[2], name, lines.number);
      const std::size_t possible = content.size() / 4 + 1;  // "1 2\n" is the shortest edge
      graph.edges.reserve(std::min(declared, possible));
      edge_lines.reserve(std::min(declared, possible));
      continue;
    }
    if (graph.edges.size() == declared) {
      fail_at(name, lines.number,
              fmt::format("found a line after the last edge, expected {} edges as line {} declares", declared,
                          *header_line));
    }
    if (words.size() != 2 && words.size() != 3) {
      fail_at(name, lines.number, fmt::format("found {} words, expected 'i j' or 'i j coupling'", words.size()));
    }
    const Expected range{"the number of a variable,", 1, graph.variables};
    const std::int64_t i = integer_at(words[0], range, name, lines.number);
    const std::int64_t j = integer_at(words[1], range, name, lines.number);
    if (i == j) fail_at(name, lines.number, fmt::format("found an edge from {} to itself, expected two variables", i));
    const double coupling = words.size() == 3 ? real_at(words[2], name, lines.number) : default_coupling;
    graph.edges.push_back({static_cast<Index>(i - 1), static_cast<Index>(j - 1), coupling});
    edge_lines.push_back(lines.number);
  }
  if (!header_line) throw InputError(fmt::format("{}: found no numbers, expected a line 'variables edges'", name));
  if (graph.edges.size() < declared) {
    throw InputError(fmt::format("{}: found {} edges, expected {} as line {} declares", name, graph.edges.size(),
                                 declared, *header_line));
  }
  refuse_repeated(graph.edges, edge_lines, name);
  return graph;
}

}  // namespace

std::optional<std::vector<Index>> read_lattice_sides(SpecReader& reader, std::int64_t max_sites) {
  constexpr std::size_t most_sides = 8;
  if (!reader.has("size")) return std::nullopt;
  const std::string text = reader.text("size", "");
  std::vector<Index> sides;
  double sites = 1.0;
  for (std::string_view rest = text;;) {
    const std::size_t cross = rest.find('x');
    const auto side = parse_integer(rest.substr(0, cross));
    if (!side || *side < 1 || *side > kMaxSide || sides.size() == most_sides) {
      reader.reject("size", fmt::format("N, ROWSxCOLUMNS or up to {} sides such as 8x8x8, each an integer from 1 to {}",
                                        most_sides, kMaxSide));
      return std::nullopt;
    }
    sides.push_back(static_cast<Index>(*side));
    sites *= static_cast<double>(*side);
    if (cross == std::string_view::npos) break;
    rest.remove_prefix(cross + 1);
  }
  if (sides.size() == 1) {
    sides.push_back(sides[0]);
    sites *= sites;
  }
  if (sides.size() > 2) max_sites = std::min(max_sites, kMaxGridSites);
  if (sites > static_cast<double>(max_sites)) {
    reader.reject("size", fmt::format("at most {} sites", max_sites));
    return std::nullopt;
  }
  return sides;
}

double read_beta(SpecReader& reader, double least, double most) {
  if (!reader.has("T")) return reader.real("beta", 1.0, least, most);
  if (reader.has("beta")) reader.problem("keys 'beta' and 'T' say the same: expected one of them");
  const double temperature = reader.real("T", 1.0, 1 / most, kLargest);
  return 1.0 / temperature;
}

Matrix parse_matrix(std::string_view content, std::string_view name) {
  Matrix matrix;
  std::size_t columns = 0;
  std::size_t rows = 0;
  std::size_t first_line = 0;
  for (Lines lines(content); lines.next(); ++rows) {
    if (rows == 0) std::tie(columns, first_line) = std::pair{lines.words.size(), lines.number};
    for (const std::string_view word : lines.words) matrix.values.push_back(real_at(word, name, lines.number));
    if (lines.words.size() != columns) {
      const std::size_t found = lines.words.size();
      fail_at(name, lines.number,
              fmt::format("found {} numbers, expected {} as in line {}", found, columns, first_line));
    }
  }
  if (rows == 0) throw InputError(fmt::format("{}: found no numbers, expected rows of numbers", name));
  matrix.rows = static_cast<Index>(rows);
  matrix.columns = static_cast<Index>(columns);
  return matrix;
}

std::vector<double> parse_numbers(std::string_view content, std::string_view name) {
  std::vector<double> values;
  for (Lines lines(content); lines.next();) {
    for (const std::string_view word : lines.words) values.push_back(real_at(word, name, lines.number));
  }
  return values;
}

EdgeList parse_edges(std::string_view content, std::string_view name, double default_coupling) {
  return read_edges(content, name, default_coupling, Header::two_numbers);
}

EdgeList parse_maxcut(std::string_view content, std::string_view name) {
  return read_edges(content, name, 1, Header::two_or_three);
}

}  // namespace poise
