/// The Potts model: a lattice whose edges share one table and whose sites share another.
#include <poise/network/potts.hpp>

#include <cmath>

#include <fmt/format.h>

namespace poise {

namespace {

constexpr std::int64_t kMaxSide = 65535;
constexpr std::int64_t kMaxSites = std::int64_t{1} << 24;
constexpr double kStrongest = 300.0;  // so that tables hold neither zeros nor infinities

struct Size {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

Size read_size(SpecReader& reader) {
  const std::string text = reader.text("size", "30");
  const std::size_t cross = text.find('x');
  const std::optional<std::int64_t> rows = parse_integer(text.substr(0, cross));
  const std::optional<std::int64_t> columns = cross == std::string::npos ? rows : parse_integer(text.substr(cross + 1));
  const auto fits = [](const std::optional<std::int64_t>& side) { return side && *side >= 1 && *side <= kMaxSide; };
  if (fits(rows) && fits(columns) && *rows * *columns <= kMaxSites) return {*rows, *columns};
  reader.reject("size", fmt::format("N or ROWSxCOLUMNS, each from 1 to {} and at most {} sites", kMaxSide, kMaxSites));
  return {1, 1};
}

}  // namespace

Network make_potts(const Spec& spec) {
  SpecReader reader(spec, "model");
  const Size size = read_size(reader);
  const auto levels = static_cast<Index>(reader.integer("levels", 3, 2, 128));
  const double coupling = reader.real("coupling", 1.0, -kStrongest, kStrongest);
  const double field = reader.real("field", 0.0, -kStrongest, kStrongest);
  const bool torus = reader.choice("boundary", "torus", {"torus", "open"}) == "torus";
  reader.finish({"size", "levels", "coupling", "field", "boundary"});

  Network network;
  network.rows = static_cast<Index>(size.rows);
  network.columns = static_cast<Index>(size.columns);
  network.name = fmt::format("potts:size={}x{},levels={},coupling={},field={},boundary={}", size.rows, size.columns,
                             levels, coupling, field, torus ? "torus" : "open");
  network.cardinalities.assign(static_cast<std::size_t>(size.rows * size.columns), levels);
  for (Index a = 0; a < levels; ++a) {
    for (Index b = 0; b < levels; ++b) network.values.push_back(a == b ? std::exp(coupling) : 1.0);
  }
  const std::size_t sites = network.values.size();
  for (Index a = 0; a < levels; ++a) network.values.push_back(a == 0 ? std::exp(field) : 1.0);
  const auto add = [&](std::initializer_list<Index> scope, std::size_t table) {
    network.scopes.insert(network.scopes.end(), scope);
    network.scope_start.push_back(network.scopes.size());
    network.table_start.push_back(table);
  };
  const auto join = [&](Index side, Index position, Index i, Index j) {
    if (side > 1 && (torus || position + 1 < side)) add({i, j}, 0);
  };
  for (Index row = 0; row < network.rows; ++row) {
    for (Index column = 0; column < network.columns; ++column) {
      const Index i = row * network.columns + column;
      join(network.columns, column, i, row * network.columns + (column + 1) % network.columns);
      join(network.rows, row, i, (row + 1) % network.rows * network.columns + column);
      if (field != 0.0) add({i}, sites);
    }
  }
  return network;
}

}  // namespace poise
