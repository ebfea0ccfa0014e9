/// Sums over the factors of all replicas of a ladder, which swaps are decided by.
#include <array>
#include <cmath>

#include <poise/extend/base/hot.hpp>
#include "engines/cpu/lanes/lane_layout.hpp"
#include "engines/cpu/tempering/tempered_lanes.hpp"

namespace poise {

namespace {

double log_states(const LaneModel& model) {
  double sum = 0.0;
  for (std::size_t k = 0; k + 1 < model.variables().size(); ++k) sum += std::log(model.variables()[k].levels);
  return sum;
}

}  // namespace

LaneEnergy<MarkovNetwork>::LaneEnergy(const MarkovNetwork& target, const LaneModel& model)
    : unit_(target.unit()), log_hot_(target.log_prob_of(0.0) + log_states(model)), scopes_(target, model.positions()) {
  const FactorScopes scopes(target);
  const std::vector<std::int64_t> lowest = lowest_units(target, scopes);
  bool has_zeros = false;
  for (std::size_t f = 0; f < target.num_factors(); ++f) {
    table_.push_back(target.table_start(f));
    const std::size_t end = target.table_start(f) + scopes.entries(target, f);
    if (units_.size() < end) units_.resize(end);
    if (is_zero_.size() < end) is_zero_.resize(end);
    for (std::size_t e = target.table_start(f); e < end; ++e) {
      const bool is_zero = target.is_zero(target.units(e));
      units_[e] = static_cast<double>(is_zero ? lowest[f] : target.units(e));
      is_zero_[e] = is_zero ? 1.0 : 0.0;
      has_zeros = has_zeros || is_zero;
    }
  }
  if (!has_zeros) is_zero_.clear();
}

void LaneEnergy<MarkovNetwork>::sum(const LaneTile& block, LaneEnergies& out) const {
  const std::size_t lanes = block.lanes();
  out.log_weight.assign(lanes, 0.0);
  out.zeros.assign(lanes, 0.0);
  hot([lanes, levels = block.levels(), factors = table_.size(), tables = table_.data(), start = scopes_.start.data(),
       sites = scopes_.sites.data(), units = units_.data(), is_zero = is_zero_.empty() ? nullptr : is_zero_.data(),
       sums = out.log_weight.data(), zeros = out.zeros.data()] {
    std::int32_t entry[LaneTile::kMost];
    for (std::size_t f = 0; f < factors; ++f) {
      for (std::size_t l = 0; l < lanes; ++l) entry[l] = static_cast<std::int32_t>(tables[f]);
      for (const auto* site = sites + start[f]; site != sites + start[f + 1]; ++site) {
        const Value* row = levels + site->variable * lanes;
        for (std::size_t l = 0; l < lanes; ++l) entry[l] += static_cast<std::int32_t>(site->stride * row[l]);
      }
      for (std::size_t l = 0; l < lanes; ++l) sums[l] += units[entry[l]];
      if (is_zero == nullptr) continue;
      for (std::size_t l = 0; l < lanes; ++l) zeros[l] += is_zero[entry[l]];
    }
  });
  for (double& sum : out.log_weight) sum *= unit_;
}

LaneEnergy<GraphIsing>::LaneEnergy(const GraphIsing& target, const LaneModel& model)
    : unit_(target.unit()),
      log_hot_(log_states(model)),
      terms_(spin_terms(target, [&](Index i) { return model.position(i); })) {}

void LaneEnergy<GraphIsing>::sum(const LaneTile& block, LaneEnergies& out) const {
  const std::size_t lanes = block.lanes();
  std::array<std::int64_t, LaneTile::kMost> sums{};
  sum_spin_terms(block, terms_, sums);
  out.zeros.assign(lanes, 0.0);
  out.log_weight.resize(lanes);
  for (std::size_t l = 0; l < lanes; ++l) out.log_weight[l] = unit_ * static_cast<double>(sums[l]);
}

}  // namespace poise
