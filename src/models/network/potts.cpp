/// The Potts model: a lattice whose edges share one table, and whose sites share another or have one each.
#include "models/network/potts.hpp"

#include <cmath>
#include <vector>

#include <fmt/format.h>

#include <poise/extend/base/rng.hpp>
#include "models/ising/ising_text.hpp"
#include "models/ising/spin_graph.hpp"

namespace poise {

namespace {

constexpr std::int64_t kMaxPottsSites = std::int64_t{1} << 24;
constexpr double kStrongest = 300.0;                        // so that tables hold neither zeros nor infinities
constexpr std::int64_t kMaxFields = std::int64_t{1} << 26;  // drawn, of every level of every site
constexpr std::uint64_t kPottsNumbers = 0;                  // of the stream of drawn parameters

}  // namespace

Network make_potts(const Spec& spec) {
  SpecReader reader(spec, "model");
  const std::vector<Index> sides = read_lattice_sides(reader, kMaxPottsSites).value_or(std::vector<Index>{30, 30});
  std::int64_t num_sites = 1;
  for (const Index side : sides) num_sites *= side;
  const auto levels = static_cast<Index>(reader.integer("levels", 3, 2, 128));
  double coupling = reader.real("coupling", 1.0, -kStrongest, kStrongest);
  double field = reader.real("field", 0.0, -kStrongest, kStrongest);
  double sigma = reader.real("sigma", 0.0, 0.0, kStrongest);
  const double beta = read_beta(reader, 0.0, kLargest);
  const auto seed = static_cast<std::uint64_t>(reader.integer("seed", 1, 0));
  const bool torus = reader.choice("boundary", "torus", {"torus", "open"}) == "torus";
  if (sigma > 0.0 && num_sites * levels > kMaxFields) {
    reader.problem(
        fmt::format("key 'sigma' in model 'potts': found {} sites with {} levels, expected at most {} levels "
                    "in all where each has a field of its own",
                    num_sites, levels, kMaxFields));
  }
  if (sigma == 0.0 && reader.has("seed")) {
    reader.problem("key 'seed' in model 'potts' does not go with sigma=0, by which nothing is random");
  }
  const std::string numbers = fmt::format("coupling={},field={}", coupling, field);
  const std::string noise = fmt::format(",sigma={},seed={}", sigma, seed);
  coupling *= beta;
  field *= beta;
  sigma *= beta;
  if (std::abs(coupling) > kStrongest) {
    reader.problem(fmt::format("model 'potts': found a coupling of {} with beta={}, expected at most {} in size",
                               coupling, beta, kStrongest));
  }
  if (std::abs(field) + sigma > kStrongest) {
    reader.problem(
        fmt::format("model 'potts': found fields of up to {} from field={} and sigma={}, expected at most {}",
                    std::abs(field) + sigma, field, sigma, kStrongest));
  }
  reader.finish({"size", "levels", "coupling", "field", "sigma", "seed", "boundary", "beta", "T"});

  Network network;
  const bool is_flat = sides.size() == 2;
  if (is_flat) {
    network.rows = sides[0];
    network.columns = sides[1];
  } else {
    network.sides = sides;
  }
  network.name = fmt::format("potts:size={},levels={},{},boundary={}", fmt::join(sides, "x"), levels, numbers,
                             torus ? "torus" : "open");
  if (sigma > 0.0) network.name += noise;
  if (beta != 1.0) network.name += fmt::format(",beta={}", beta);
  network.cardinalities.assign(static_cast<std::size_t>(num_sites), levels);
  for (Index a = 0; a < levels; ++a) {
    for (Index b = 0; b < levels; ++b) network.values.push_back(a == b ? std::exp(coupling) : 1.0);
  }
  const std::size_t sites = network.values.size();
  Rng rng = make_rng(seed, Stream::drawn_parameters, kPottsNumbers);
  const Index tables = sigma > 0.0 ? network.num_variables() : 1;
  for (Index i = 0; i < tables; ++i) {
    for (Index a = 0; a < levels; ++a) {
      const double shift = sigma > 0.0 ? sigma * (2.0 * rng.uniform() - 1.0) : 0.0;
      network.values.push_back(std::exp((a == 0 ? field : 0.0) + shift));
    }
  }
  const auto add = [&](std::initializer_list<Index> scope, std::size_t table) {
    network.scopes.insert(network.scopes.end(), scope);
    network.scope_start.push_back(network.scopes.size());
    network.table_start.push_back(table);
  };
  const LatticeShape shape{network.rows, network.columns, torus};
  if (!is_flat) GridShape{sides, torus}.for_each_edge([&](Index i, Index j, bool) { add({i, j}, 0); });
  for (Index i = 0; i < network.num_variables(); ++i) {
    if (is_flat) shape.for_each_edge_from(i, [&](Index j, bool) { add({i, j}, 0); });
    if (sigma > 0.0) {
      add({i}, sites + std::size_t{i} * levels);
    } else if (field != 0.0) {
      add({i}, sites);
    }
  }
  return network;
}

}  // namespace poise
