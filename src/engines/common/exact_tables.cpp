/// Copies factors into plain arrays.
#include "engines/common/exact_tables.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "engines/common/factor_scopes.hpp"

namespace poise {

namespace {

/// Links of all positions, from the sites of the factors.
void add_links(const LaneModel& model, ExactTables& tables) {
  tables.first_link.assign(model.num_variables() + std::size_t{1}, 0);
  for (const ExactSite& site : tables.sites) ++tables.first_link[site.position + 1];
  for (std::size_t k = 0; k + 1 < tables.first_link.size(); ++k) tables.first_link[k + 1] += tables.first_link[k];
  tables.links.resize(tables.sites.size());
  std::vector<std::uint32_t> next(tables.first_link.begin(), tables.first_link.end() - 1);
  for (std::uint32_t f = 0; f < tables.factors.size(); ++f) {
    for (std::uint32_t s = tables.factors[f].first_site; s < tables.factors[f].end_site; ++s) {
      const ExactSite& site = tables.sites[s];
      tables.links[next[site.position]++] = {f, site.stride};
    }
  }
}

/// The factors of an Ising model; those with the same numbers share a table.
class IsingFactors {
 public:
  explicit IsingFactors(ExactTables& tables) : tables_(tables) {}

  void add_field(std::uint32_t position, std::int64_t units) {
    add({units, true}, {-units, units});
    tables_.sites.push_back({position, 1});
    end();
  }
  void add_edge(std::uint32_t first, std::uint32_t second, std::int64_t units) {
    add({units, false}, {units, -units, -units, units});
    tables_.sites.push_back({first, 1});
    tables_.sites.push_back({second, 2});
    end();
  }

 private:
  using Key = std::pair<std::int64_t, bool>;  // units, and whether it is a field

  void add(Key key, const std::vector<std::int64_t>& table) {
    const auto [known, is_new] = starts_.try_emplace(key, static_cast<std::uint32_t>(tables_.values.size()));
    if (is_new) tables_.values.insert(tables_.values.end(), table.begin(), table.end());
    tables_.factors.push_back({known->second, static_cast<std::uint32_t>(tables_.sites.size()), 0, 0});
  }
  void end() { tables_.factors.back().end_site = static_cast<std::uint32_t>(tables_.sites.size()); }

  ExactTables& tables_;
  std::map<Key, std::uint32_t> starts_;
};

}  // namespace

ExactTables exact_tables(const MarkovNetwork& target, const LaneModel& model) {
  const FactorScopes scopes(target);
  ExactTables tables;
  tables.unit = target.unit();
  for (const FactorScopes::Site& site : scopes.sites) {
    tables.sites.push_back({model.position(site.variable), site.stride});
  }
  std::size_t entries = 0;
  for (std::size_t f = 0; f < target.num_factors(); ++f) {
    tables.factors.push_back({target.table_start(f), static_cast<std::uint32_t>(scopes.start[f]),
                              static_cast<std::uint32_t>(scopes.start[f + 1]), 0});
    entries = std::max(entries, target.table_start(f) + scopes.entries(target, f));
  }
  tables.values.resize(entries);
  bool has_zeros = false;
  for (std::size_t k = 0; k < entries; ++k) {
    const bool is_zero = target.is_zero(target.units(k));
    tables.values[k] = is_zero ? ExactTables::kZero : target.units(k);
    has_zeros = has_zeros || is_zero;
  }
  if (has_zeros) tables.lowest = lowest_units(target, scopes);
  add_links(model, tables);
  return tables;
}

ExactTables exact_tables(const GraphIsing& target, const LaneModel& model) {
  ExactTables tables;
  tables.unit = target.unit();
  IsingFactors factors(tables);
  for (Index i = 0; i < target.num_variables(); ++i) {
    if (target.field_units(i) != 0) factors.add_field(model.position(i), target.field_units(i));
    for (const GraphIsing::Neighbour& neighbour : target.neighbours(i)) {
      if (neighbour.variable < i) continue;
      factors.add_edge(model.position(i), model.position(neighbour.variable), neighbour.units);
    }
  }
  add_links(model, tables);
  return tables;
}

}  // namespace poise
