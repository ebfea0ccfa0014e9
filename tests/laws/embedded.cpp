/// The wide part: spins that are all coupled with each other, so weakly that they mix at once.
#include "laws/embedded.hpp"

#include <array>
#include <cmath>

#include <poise/extend/base/rng.hpp>
#include "models/ising/ising_model.hpp"

namespace poise::laws {

namespace {

/// A table over all of them has 2^48 entries: two thousand tebibytes, or days of work in slices.
constexpr Index kWide = 48;

/// Couplings of either sign with a variance of 0.2^2 / n: far above the temperature of any transition.
template <class Add>
void for_each_wide_coupling(Add&& add) {
  Rng rng(48, 1);
  for (Index j = 0; j < kWide; ++j) {
    for (Index i = 0; i < j; ++i) add(i, j, 0.2 / std::sqrt(static_cast<double>(kWide)) * rng.normal());
  }
}

Known with_wide_part(const Known& known, const std::vector<Index>& cardinalities) {
  std::vector<Index> all = cardinalities;
  all.resize(cardinalities.size() + kWide, 2);
  Known out;
  out.marginals = Marginals(all);
  // Without fields both levels are as likely.
  std::fill(out.marginals.values.begin(), out.marginals.values.end(), 0.5);
  std::copy(known.marginals.values.begin(), known.marginals.values.end(), out.marginals.values.begin());
  return out;
}

Model beside_spins(const Spins& spins) {
  IsingModel ising;
  const auto first = static_cast<Index>(spins.field.size());
  ising.variables = first + kWide;
  ising.name = "embedded";
  ising.field = spins.field;
  ising.field.resize(ising.variables, 0.0);
  std::vector<double> dense(std::size_t{first} * first, 0.0);  // a pair may be there twice
  for (const Spins::Coupling& one : spins.couplings) {
    dense[std::size_t{std::min(one.i, one.j)} * first + std::max(one.i, one.j)] += one.value;
  }
  for (Index i = 0; i < first; ++i) {
    for (Index j = i + 1; j < first; ++j) {
      if (dense[std::size_t{i} * first + j] != 0.0) ising.edges.push_back({i, j, dense[std::size_t{i} * first + j]});
    }
  }
  for_each_wide_coupling([&](Index i, Index j, double value) { ising.edges.push_back({first + i, first + j, value}); });
  return ising_model(std::move(ising));
}

Model beside_network(Network network) {
  const Index first = network.num_variables();
  network.rows = network.columns = 0;
  network.names.clear();
  network.level_names.clear();
  network.name = "embedded";
  network.cardinalities.resize(first + kWide, 2);
  if (!network.observed.empty()) network.observed.resize(first + kWide, Network::kFree);
  for_each_wide_coupling([&](Index i, Index j, double value) {
    const double alike = std::exp(value);
    network.add_factor(std::array{first + i, first + j}, std::array{alike, 1.0 / alike, 1.0 / alike, alike});
  });
  return network_model(std::make_shared<const Network>(std::move(network)));
}

}  // namespace

std::optional<Embedded> embed(const SmallModel& small, const Known& known) {
  if (!small.spins && !small.network) return std::nullopt;
  Embedded out;
  out.model = small.spins ? beside_spins(*small.spins) : beside_network(*small.network);
  out.known = with_wide_part(known, small.cardinalities);
  return out;
}

}  // namespace poise::laws
