/// Networks and graphs laid out for chains across lanes.
#include "engines/cpu/lanes/lane_layout.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <poise/extend/base/hot.hpp>
#include "engines/common/factor_scopes.hpp"

namespace poise {

namespace {

std::vector<Index> levels_of(const auto& target) {
  std::vector<Index> levels(target.num_variables());
  for (Index i = 0; i < levels.size(); ++i) levels[i] = target.cardinality(i);
  return levels;
}

/// Sums of units of all levels of a variable, and the zeros among what was added.
struct LevelSums {
  const std::int64_t* units;
  const std::int64_t* zeros;
  double unit;
};

/// Their logarithms at a temperature, the largest 0. Differences of units are taken first, so that at beta = 1 they
/// are those of the target to the last digit.
void weigh_levels(const LevelSums& sums, const LaneHeat& heat, std::span<double> log_weights) {
  const double infinity = std::numeric_limits<double>::infinity();
  const bool hard = heat.log_zero == -infinity;
  const auto log_of = [&](std::size_t v, std::size_t of) {
    const double difference = static_cast<double>(sums.units[v] - sums.units[of]);
    const std::int64_t zeros = sums.zeros[v] - sums.zeros[of];
    if (zeros != 0 && hard) return zeros > 0 ? -infinity : infinity;
    return heat.beta * (sums.unit * difference) + (zeros == 0 ? 0.0 : heat.log_zero * static_cast<double>(zeros));
  };
  std::size_t largest = 0;
  for (std::size_t v = 1; v < log_weights.size(); ++v) {
    if (log_of(v, largest) > 0.0) largest = v;
  }
  for (std::size_t v = 0; v < log_weights.size(); ++v) log_weights[v] = log_of(v, largest);
}

/// What is asked of a tile, lane by lane, without those that are no chains.
template <class Number>
void copy_lanes(const LaneTile& tile, const std::array<Number, LaneTile::kMost>& lanes, std::span<Number> out) {
  std::copy_n(lanes.begin() + static_cast<std::ptrdiff_t>(tile.lane(tile.group().first)), tile.group().count,
              out.begin());
}

}  // namespace

LaneSource lane_source(const std::shared_ptr<const MarkovNetwork>& target) {
  const auto scopes = std::make_shared<const FactorScopes>(*target);
  LaneSource source;
  source.levels = levels_of(*target);
  source.terms = [=](Index i, const std::function<void(const LaneTerm&)>& visit) {
    std::vector<Index> others;
    for (const MarkovNetwork::Link& link : target->links(i)) {
      others.clear();
      for (const FactorScopes::Site& site : (*scopes)[link.factor]) {
        if (site.variable != i) others.push_back(site.variable);
      }
      visit({others, std::uint64_t{target->table_start(link.factor)} << 32 | link.stride, link.factor});
    }
  };
  source.entry = [=](Index i, const LaneTerm& term, std::span<const Value> levels, Value own) {
    std::size_t entry = target->table_start(term.number);
    std::size_t k = 0;
    for (const FactorScopes::Site& site : (*scopes)[term.number]) {
      entry += std::size_t{site.stride} * (site.variable == i ? own : levels[k++]);
    }
    return target->to_log(target->units(entry));
  };
  const auto lowest = std::make_shared<const std::vector<std::int64_t>>(lowest_units(*target, *scopes));
  source.lowest = [=](const LaneTerm& term) { return target->unit() * static_cast<double>((*lowest)[term.number]); };
  source.exact = [=](Index i, const LaneLevels& levels, const LaneHeat& heat, std::span<double> log_weights) {
    std::array<std::int64_t, LaneModel::kMostLevels> sums{};
    std::array<std::int64_t, LaneModel::kMostLevels> zeros{};
    for (const MarkovNetwork::Link& link : target->links(i)) {
      std::size_t entry = target->table_start(link.factor);
      for (const FactorScopes::Site& site : (*scopes)[link.factor]) {
        if (site.variable != i) entry += std::size_t{site.stride} * levels[site.variable];
      }
      for (std::size_t v = 0; v < log_weights.size(); ++v) {
        const std::int64_t units = target->units(entry + v * link.stride);
        const bool is_zero = target->is_zero(units);
        sums[v] += is_zero ? (*lowest)[link.factor] : units;
        zeros[v] += is_zero ? 1 : 0;
      }
    }
    weigh_levels({sums.data(), zeros.data(), target->unit()}, heat, log_weights);
  };
  return source;
}

LaneSource lane_source(const std::shared_ptr<const GraphIsing>& target) {
  LaneSource source;
  source.levels = levels_of(*target);
  // Number 0 is the field, the others are the neighbours.
  source.terms = [=](Index i, const std::function<void(const LaneTerm&)>& visit) {
    visit({{}, 0, 0});
    std::uint64_t number = 0;
    for (const GraphIsing::Neighbour& neighbour : target->neighbours(i)) {
      visit({{&neighbour.variable, 1}, 0, ++number});
    }
  };
  source.entry = [=](Index i, const LaneTerm& term, std::span<const Value> levels, Value own) {
    const std::int64_t units = term.number == 0 ? target->field_units(i) : target->neighbours(i)[term.number - 1].units;
    const bool alike = term.number == 0 ? own != 0 : own == levels[0];
    return target->unit() * static_cast<double>(alike ? units : -units);
  };
  source.exact = [=](Index i, const LaneLevels& levels, const LaneHeat& heat, std::span<double> log_weights) {
    std::int64_t local = target->field_units(i);
    for (const GraphIsing::Neighbour& neighbour : target->neighbours(i)) {
      local += levels[neighbour.variable] != 0 ? neighbour.units : -neighbour.units;
    }
    const double log_odds = heat.beta * (2.0 * target->unit() * static_cast<double>(local));
    log_weights[0] = std::min(0.0, -log_odds);
    log_weights[1] = std::min(0.0, log_odds);
  };
  return source;
}

LaneObserver<MarkovNetwork>::LaneObserver(const MarkovNetwork& target, const LaneModel& model)
    : scopes_(target, model.positions()) {
  for (Index i = 0; i < target.num_variables(); ++i) most_levels_ = std::max(most_levels_, target.cardinality(i));
}

void LaneObserver<MarkovNetwork>::observe(const MarkovNetwork& target, const LaneTile& tile,
                                          const Observables& out) const {
  if (!out.statistics.empty()) observe_order(target, tile, out.statistics);
  if (out.log_prob.empty()) return;
  std::array<double, LaneTile::kMost> sums{};
  const std::size_t lanes = tile.lanes();
  const Value* const levels = tile.levels();
  const MarkovNetwork* const network = &target;
  const std::size_t* const start = scopes_.start.data();
  const FactorScopes::Site* const sites = scopes_.sites.data();
  // In the order in which the target itself adds them up, so that the sums are the same. No chain is ever at a zero.
  hot([=, factors = target.num_factors(), all = sums.data()] {
    std::uint32_t entry[LaneTile::kMost];
    for (std::size_t f = 0; f < factors; ++f) {
      const std::uint32_t first = network->table_start(f);
      for (std::size_t l = 0; l < lanes; ++l) entry[l] = first;
      for (const auto* site = sites + start[f]; site != sites + start[f + 1]; ++site) {
        const Value* row = levels + site->variable * lanes;
        for (std::size_t l = 0; l < lanes; ++l) entry[l] += site->stride * row[l];
      }
      for (std::size_t l = 0; l < lanes; ++l) all[l] += static_cast<double>(network->units(entry[l]));
    }
  });
  for (std::size_t l = 0; l < lanes; ++l) sums[l] = target.log_prob_of(sums[l]);
  copy_lanes(tile, sums, out.log_prob);
}

void LaneObserver<MarkovNetwork>::observe_order(const MarkovNetwork& target, const LaneTile& tile,
                                                std::span<double> out) const {
  const std::size_t lanes = tile.lanes();
  std::array<std::uint32_t, LaneTile::kMost> most{};
  for (Index level = 0; level < most_levels_; ++level) {
    std::array<std::uint32_t, LaneTile::kMost> sites{};
    hot([=, rows = tile.levels(), count = target.num_variables(), to = sites.data()] {
      for (const Value* row = rows; row != rows + count * lanes; row += lanes) {
        for (std::size_t l = 0; l < lanes; ++l) to[l] += row[l] == level ? 1 : 0;
      }
    });
    for (std::size_t l = 0; l < lanes; ++l) most[l] = std::max(most[l], sites[l]);
  }
  std::array<double, LaneTile::kMost> order{};
  for (std::size_t l = 0; l < lanes; ++l) order[l] = target.order(most[l]);
  copy_lanes(tile, order, out);
}

void sum_spin_terms(const LaneTile& tile, const SpinTerms& terms, std::span<std::int64_t, LaneTile::kMost> sums) {
  hot([lanes = tile.lanes(), levels = tile.levels(), variables = terms.fields.size(), fields = terms.fields.data(),
       edges = terms.edges.data(), count = terms.edges.size(), all = sums.data()] {
    for (std::size_t i = 0; i < variables; ++i) {
      if (fields[i] == 0) continue;
      const Value* row = levels + i * lanes;
      for (std::size_t l = 0; l < lanes; ++l) all[l] += (2 * std::int64_t{row[l]} - 1) * fields[i];
    }
    for (std::size_t e = 0; e < count; ++e) {
      const Value* first = levels + edges[e].first * lanes;
      const Value* second = levels + edges[e].second * lanes;
      const std::int64_t units = edges[e].weight;
      for (std::size_t l = 0; l < lanes; ++l) {
        const std::int64_t differ = -std::int64_t{static_cast<Value>(first[l] ^ second[l])};
        all[l] += (units ^ differ) - differ;
      }
    }
  });
}

LaneObserver<GraphIsing>::LaneObserver(const GraphIsing& target, const LaneModel& model)
    : terms_(spin_terms(target, [&](Index i) { return model.position(i); })) {}

void LaneObserver<GraphIsing>::observe(const GraphIsing& target, const LaneTile& tile, const Observables& out) const {
  if (out.log_prob.empty() && out.statistics.empty()) return;
  std::array<std::int64_t, LaneTile::kMost> sums{};
  sum_spin_terms(tile, terms_, sums);
  std::array<std::int64_t, LaneTile::kMost> spins{};
  hot([lanes = tile.lanes(), levels = tile.levels(), variables = target.num_variables(), up = spins.data()] {
    for (const Value* row = levels; row != levels + variables * lanes; row += lanes) {
      for (std::size_t l = 0; l < lanes; ++l) up[l] += row[l];
    }
  });
  GraphIsing::State summed;
  for (std::size_t k = 0; k < tile.group().count; ++k) {
    const std::size_t l = tile.lane(tile.group().first + k);
    summed.log_prob = sums[l];
    summed.magnetization = 2 * spins[l] - static_cast<std::int64_t>(target.num_variables());
    if (!out.log_prob.empty()) out.log_prob[k] = target.log_prob(summed);
    if (!out.statistics.empty()) target.statistics(summed, out.statistics.subspan(k, 1));
  }
}

template <class T>
LaneLayout<T>::LaneLayout(const std::shared_ptr<const T>& target, LaneSource source)
    : model_(std::make_shared<const LaneModel>(std::move(source))), observer_(*target, *model_) {}

template <class T>
void LaneLayout<T>::set_reference(std::span<const Value> reference) {
  reference_.resize(reference.size());
  for (Index i = 0; i < reference.size(); ++i) reference_[model_->position(i)] = reference[i];
}

template <class T>
void LaneLayout<T>::observe(const T& target, const LaneTile& tile, const Observables& out) const {
  observer_.observe(target, tile, out);
  if (!out.levels.empty()) tile.get_all_levels(out.levels);
  if (!out.bits.empty()) tile.get_all_bits(out.bits);
  if (out.distance.empty()) return;
  std::array<std::uint32_t, LaneTile::kMost> different{};
  hot([lanes = tile.lanes(), count = reference_.size(), rows = tile.levels(), reference = reference_.data(),
       to = different.data()] {
    for (std::size_t i = 0; i < count; ++i) {
      const Value* row = rows + i * lanes;
      for (std::size_t l = 0; l < lanes; ++l) to[l] += row[l] != reference[i] ? 1 : 0;
    }
  });
  for (std::size_t k = 0; k < tile.group().count; ++k) {
    out.distance[k] = different[tile.lane(tile.group().first + k)];
  }
}

template class LaneLayout<MarkovNetwork>;
template class LaneLayout<GraphIsing>;

}  // namespace poise
