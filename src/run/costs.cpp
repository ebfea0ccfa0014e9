/// The table of costs: nanoseconds of one core for an evaluation by a kernel on a kind of model.
///
/// Measured by `make bench` (bench/costs.cpp prints the same rows anew), on one core of an AMD EPYC (Zen 4). What
/// counts is how they compare with each other: a machine that is twice as fast makes the same choice.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <poise/run/samplers.hpp>

namespace poise {

namespace {

/// Costs that depend on how many chains share a vector.
struct ByChains {
  struct Row {
    std::size_t chains;
    double each;
  };
  std::array<Row, 5> rows;

  [[nodiscard]] double at(std::size_t chains) const {
    if (chains <= rows.front().chains) return rows.front().each;
    if (chains >= rows.back().chains) return rows.back().each;
    std::size_t k = 1;
    while (chains > rows[k].chains) ++k;
    // Between two rows the cost of all chains together is a straight line.
    const Row& low = rows[k - 1];
    const Row& high = rows[k];
    const double part = static_cast<double>(chains - low.chains) / static_cast<double>(high.chains - low.chains);
    const double before = static_cast<double>(low.chains) * low.each;
    const double after = static_cast<double>(high.chains) * high.each;
    return (before + part * (after - before)) / static_cast<double>(chains);
  }
};

/// Rows of the bench of the same names.
constexpr ByChains kBits = {{{{1, 5.1}, {4, 2.6}, {16, 2.1}, {128, 0.32}, {512, 0.16}}}};
constexpr double kGibbsGraph = 28.0;
constexpr double kGibbsNetwork = 32.0;
constexpr double kBalancedLattice = 17.0;
constexpr double kBalancedGraph = 17.0;
constexpr double kBalancedNetwork = 22.0;
constexpr double kBlockLattice = 60.0;
constexpr double kBlockGraph = 60.0;
constexpr double kBlockNetwork = 130.0;
// Of an RBM: a ratio by the hidden unit, a gradient by hidden times visible units.
constexpr double kGibbsRbm = 1.3;
constexpr double kBlockRbm = 1.0;
constexpr double kBalancedRbm = 0.25;
constexpr double kGradientRbm = 0.038;
constexpr double kRbmGibbs = 0.24;
// Of the junction tree: a look at an edge, an operation, and a draw by the variable.
constexpr double kLook = 4.0;
constexpr double kOperation = 1.0;
constexpr double kExactDraw = 150.0;
// On callback targets, in rows: a gradient, and all ratios of a state, beside log p of a state.
constexpr double kGradientRows = 3.0;
constexpr double kLogRatiosRows = 3.0;
// Configurations of a block beyond which nobody would try it.
constexpr double kMostInBlock = 256.0;
// A warm-up that learns, beside one of as many steps that does not.
constexpr double kLearning = 1.5;

std::uint64_t whole(double count) { return static_cast<std::uint64_t>(count + 0.5); }

/// Balanced proposals with exact ratios.
SamplerCost balanced_cost(const ModelFacts& facts) {
  SamplerCost cost;
  cost.steps_per_sweep = facts.moves;
  cost.step.ratio = facts.affected > 0.0 ? whole(facts.affected) : facts.moves;
  switch (facts.kind) {
    case ModelKind::lattice: cost.ratio = kBalancedLattice; break;
    case ModelKind::graph: cost.ratio = kBalancedGraph; break;
    case ModelKind::network:
    case ModelKind::own: cost.ratio = kBalancedNetwork; break;
    case ModelKind::rbm: cost.ratio = kBalancedRbm * facts.hidden; break;
    case ModelKind::callback: cost.ratio = facts.log_ratios ? kLogRatiosRows / facts.moves : 1.0; break;
  }
  cost.target = cost.ratio;
  return cost;
}

/// Balanced proposals with first-order ratios.
SamplerCost first_order_cost(const ModelFacts& facts) {
  if (facts.kind != ModelKind::rbm && facts.kind != ModelKind::callback) return balanced_cost(facts);
  SamplerCost cost;
  cost.steps_per_sweep = facts.moves;
  cost.step.gradient = 1;
  // On a callback target log p of the proposed state comes with its gradient.
  cost.gradient = facts.kind == ModelKind::rbm ? kGradientRbm * facts.hidden * facts.variables : kGradientRows;
  return cost;
}

SamplerCost learned(SamplerCost cost) {
  cost.learning = kLearning;
  return cost;
}

double gibbs_ratio(const ModelFacts& facts) {
  switch (facts.kind) {
    case ModelKind::lattice:
    case ModelKind::graph: return facts.bits ? kBits.at(facts.chains) : kGibbsGraph;
    case ModelKind::network:
    case ModelKind::own: return kGibbsNetwork;
    case ModelKind::rbm: return kGibbsRbm * facts.hidden;
    case ModelKind::callback: return 1.0;
  }
  return 1.0;
}

double block_ratio(const ModelFacts& facts) {
  switch (facts.kind) {
    case ModelKind::lattice: return kBlockLattice;
    case ModelKind::graph: return kBlockGraph;
    case ModelKind::network:
    case ModelKind::own: return kBlockNetwork;
    case ModelKind::rbm: return kBlockRbm * facts.hidden;
    case ModelKind::callback: return 1.0;
  }
  return 1.0;
}

}  // namespace

std::vector<std::string> LsbRow::candidates(const ModelFacts& facts) {
  if (facts.kind == ModelKind::rbm) return {};
  return {"lsb"};
}
SamplerCost LsbRow::cost(const ModelFacts& facts, const SamplerSettings&) { return learned(balanced_cost(facts)); }

std::vector<std::string> LbRow::candidates(const ModelFacts& facts) {
  // Where chains seldom leave a mode there is little to learn from, and a bounded function is the safe one.
  if (facts.kind == ModelKind::network) return {"lb:g=barker"};
  return {};
}
SamplerCost LbRow::cost(const ModelFacts& facts, const SamplerSettings&) { return balanced_cost(facts); }

std::vector<std::string> GwgRow::candidates(const ModelFacts& facts) {
  if (!facts.gradient) return {};
  return {"gwg"};
}
SamplerCost GwgRow::cost(const ModelFacts& facts, const SamplerSettings&) { return first_order_cost(facts); }

std::vector<std::string> FlsbRow::candidates(const ModelFacts& facts) {
  if (!facts.gradient) return {};
  return {"flsb"};
}
SamplerCost FlsbRow::cost(const ModelFacts& facts, const SamplerSettings&) { return learned(first_order_cost(facts)); }

std::vector<std::string> GibbsRow::candidates(const ModelFacts& facts) {
  std::vector<std::string> specs = {"gibbs"};
  for (const Index block : {2, 4}) {
    const bool small = std::pow(facts.most_levels, block) <= kMostInBlock;
    if (small && facts.free > block) specs.push_back(fmt::format("gibbs:block={}", block));
  }
  return specs;
}
SamplerCost GibbsRow::cost(const ModelFacts& facts, const SamplerSettings& settings) {
  SamplerCost cost;
  if (settings.block == 1) {
    cost.ratio = cost.target = gibbs_ratio(facts);
    cost.step.ratio = facts.moves;
    return cost;
  }
  cost.ratio = cost.target = block_ratio(facts);
  cost.steps_per_sweep = std::max<Index>(1, facts.variables / settings.block);
  const double levels = 1.0 + static_cast<double>(facts.moves) / std::max<Index>(1, facts.free);
  cost.step.ratio = whole(std::pow(levels, settings.block));
  return cost;
}

std::vector<std::string> RbmGibbsRow::candidates(const ModelFacts& facts) {
  if (facts.kind != ModelKind::rbm) return {};
  return {"rbm-gibbs"};
}
SamplerCost RbmGibbsRow::cost(const ModelFacts& facts, const SamplerSettings&) {
  SamplerCost cost;
  cost.gradient = kRbmGibbs * facts.hidden * facts.variables;
  cost.step.gradient = 1;
  return cost;
}

std::vector<std::string> ExactRow::candidates(const ModelFacts& facts) {
  if (!facts.exact) return {};
  return {"exact"};
}
SamplerCost ExactRow::cost(const ModelFacts& facts, const SamplerSettings&) {
  SamplerCost cost;
  const ExactFacts exact = facts.exact.value_or(ExactFacts{});
  cost.setup = kLook * exact.planning + kOperation * exact.operations;
  cost.target = kExactDraw * facts.free;
  cost.step.target = 1;
  return cost;
}

}  // namespace poise
