/// The table of costs: nanoseconds of one core for an evaluation by a kernel on a kind of model.
///
/// Measured by `make bench` (bench/costs.cpp prints the same rows anew), on one core of an AMD EPYC (Zen 4). What
/// counts is how they compare with each other: a machine that is twice as fast makes the same choice. (Rows of many
/// changes a step were measured beside `gwg` on an Intel Xeon, and are what `gwg` costs here times the ratio found
/// there.)
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <poise/extend/engines/samplers.hpp>

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
    const double fraction = static_cast<double>(chains - low.chains) / static_cast<double>(high.chains - low.chains);
    const double before = static_cast<double>(low.chains) * low.each;
    const double after = static_cast<double>(high.chains) * high.each;
    return (before + fraction * (after - before)) / static_cast<double>(chains);
  }
};

/// Gibbs, an update by the number of chains: as bits, across lanes, and one by one, which does not depend on it.
constexpr ByChains kBits = {{{{1, 3.0}, {4, 1.4}, {16, 1.0}, {128, 0.31}, {512, 0.13}}}};
constexpr ByChains kLanes = {{{{1, 21.0}, {4, 6.1}, {16, 1.7}, {64, 1.3}, {512, 1.3}}}};
constexpr double kOneByOne = 45.0;
/// Balanced proposals.
constexpr double kBalancedLattice = 20.0;
constexpr double kBalancedGraph = 24.0;
constexpr double kBalancedNetwork = 27.0;
/// Random blocks: a configuration, and a step whatever their number.
struct BlockCost {
  double each;
  double step;
};
constexpr BlockCost kBlockLattice = {17.0, 93.0};
constexpr BlockCost kBlockGraph = {31.0, 760.0};
constexpr BlockCost kBlockNetwork = {127.0, 295.0};
/// Clusters, a member: whatever its neighbours, and by these times the levels there are.
struct ClusterCost {
  double fixed;
  double neighbour;
};
struct ClusterCosts {
  ClusterCost lattice;
  ClusterCost graph;
  ClusterCost network;
};
constexpr ClusterCosts kSwendsenWang = {{20.0, 0.0}, {18.0, 2.1}, {20.0, 1.15}};
constexpr ClusterCosts kWolff = {{15.0, 0.0}, {13.0, 2.0}, {20.0, 0.8}};
/// Costs of an RBM: a constant, a part by the unit (hidden ones for ratios, visible ones for gradients, both for Gibbs
/// of its own), and by hidden times visible units.
struct RbmCost {
  double fixed;
  double unit;
  double product;
};
constexpr RbmCost kGibbsRbm = {45.0, 0.9, 0.0};
constexpr RbmCost kBlockRbm = {35.0, 0.65, 0.0};
constexpr RbmCost kBalancedRbm = {2.0, 0.25, 0.0};
constexpr RbmCost kGradientRbm = {310.0, 2.9, 0.087};
constexpr RbmCost kManyRbm = {415.0, 6.5, 0.114};
// What learning adds to a step that changes many variables, by the visible unit; spread over a default warm-up, of
// which it may leave out the later half. So it varies by a factor of two either way between RBMs of one size.
constexpr RbmCost kLearningManyRbm = {4000.0, 56.0, 0.0};
constexpr RbmCost kRbmGibbs = {105.0, 1.35, 0.0197};
// Costs of the junction tree: a look at an edge, an operation, and a draw by the variable.
constexpr double kLook = 4.0;
constexpr double kOperation = 1.0;
constexpr double kExactDraw = 130.0;
// On callback targets, in rows: a gradient, and all ratios of a state, beside log p of a state.
constexpr double kGradientRows = 3.0;
constexpr double kLogRatiosRows = 3.0;
// Configurations of a block beyond which it is not tried.
constexpr double kMostInBlock = 256.0;
// A warm-up that learns, beside one of as many steps that does not: 1.3 on lattices, 1.4 on graphs, 1.8 on networks.
constexpr double kLearning = 1.5;
// The same in rows of user code where steps change many variables: an update looks at two proposals of its
// own. 1.0, 1.1 and 2.9 times the gradients of as many steps on three RBMs, the last one where learning took the whole
// warm-up.
constexpr double kLearningMany = 1.7;

std::uint64_t whole(double count) { return static_cast<std::uint64_t>(std::llround(count)); }

double rbm_cost(const RbmCost& cost, const ModelFacts& facts, Index units) {
  return cost.fixed + cost.unit * units + cost.product * facts.hidden * facts.variables;
}

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
    case ModelKind::rbm: cost.ratio = rbm_cost(kBalancedRbm, facts, facts.hidden); break;
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
  cost.gradient = facts.kind == ModelKind::rbm ? rbm_cost(kGradientRbm, facts, facts.variables) : kGradientRows;
  return cost;
}

SamplerCost learned(SamplerCost cost) {
  cost.learning = kLearning;
  return cost;
}

double gibbs_ratio(const ModelFacts& facts) {
  switch (facts.kind) {
    case ModelKind::lattice:
    case ModelKind::graph:
    case ModelKind::network:
    case ModelKind::own: return facts.bits ? kBits.at(facts.chains) : facts.lanes ? kLanes.at(facts.chains) : kOneByOne;
    case ModelKind::rbm: return rbm_cost(kGibbsRbm, facts, facts.hidden);
    case ModelKind::callback: return 1.0;
  }
  return 1.0;
}

/// A configuration of a block with so many of them.
double block_ratio(const ModelFacts& facts, double configurations) {
  const auto shared = [&](const BlockCost& cost) { return cost.each + cost.step / configurations; };
  switch (facts.kind) {
    case ModelKind::lattice: return shared(kBlockLattice);
    case ModelKind::graph: return shared(kBlockGraph);
    case ModelKind::network:
    case ModelKind::own: return shared(kBlockNetwork);
    case ModelKind::rbm: return rbm_cost(kBlockRbm, facts, facts.hidden);
    case ModelKind::callback: return 1.0;
  }
  return 1.0;
}

/// A step changes as many variables as there are, or looks at all of them.
SamplerCost cluster_cost(const ModelFacts& facts, const ClusterCosts& costs) {
  const ClusterCost& each = facts.kind == ModelKind::lattice ? costs.lattice
                            : facts.kind == ModelKind::graph ? costs.graph
                                                             : costs.network;
  const double neighbours = std::max(0.0, facts.affected / (facts.most_levels - 1.0) - 1.0);
  SamplerCost cost;
  cost.ratio = cost.target = each.fixed + each.neighbour * neighbours * facts.most_levels;
  cost.step.ratio = facts.variables;
  return cost;
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

std::vector<std::string> DlsbRow::candidates(const ModelFacts& facts) {
  // On sparse models a sweep of Gibbs changes every variable for the same price, and nothing is rejected.
  if (!facts.gradient && facts.kind != ModelKind::rbm) return {};
  return {"dlsb"};
}
SamplerCost DlsbRow::cost(const ModelFacts& facts, const SamplerSettings&) {
  SamplerCost cost = first_order_cost(facts);
  cost.steps_per_sweep = 1;
  cost.learning = kLearningMany;
  if (facts.kind == ModelKind::rbm) {
    cost.gradient = rbm_cost(kManyRbm, facts, facts.variables);
    cost.learning = 1.0 + rbm_cost(kLearningManyRbm, facts, facts.variables) / cost.gradient;
  }
  return cost;
}

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
  const double levels = 1.0 + static_cast<double>(facts.moves) / std::max<Index>(1, facts.free);
  const double configurations = std::pow(levels, settings.block);
  cost.ratio = cost.target = block_ratio(facts, configurations);
  cost.steps_per_sweep = std::max<Index>(1, facts.variables / settings.block);
  cost.step.ratio = whole(configurations);
  return cost;
}

std::vector<std::string> SwendsenWangRow::candidates(const ModelFacts& facts) {
  if (!facts.clusters) return {};
  return {"sw"};
}
SamplerCost SwendsenWangRow::cost(const ModelFacts& facts, const SamplerSettings&) {
  return cluster_cost(facts, kSwendsenWang);
}

std::vector<std::string> WolffRow::candidates(const ModelFacts& facts) {
  if (!facts.clusters) return {};
  return {"wolff"};
}
SamplerCost WolffRow::cost(const ModelFacts& facts, const SamplerSettings&) { return cluster_cost(facts, kWolff); }

std::vector<std::string> RbmGibbsRow::candidates(const ModelFacts& facts) {
  if (facts.kind != ModelKind::rbm) return {};
  return {"rbm-gibbs"};
}
SamplerCost RbmGibbsRow::cost(const ModelFacts& facts, const SamplerSettings&) {
  SamplerCost cost;
  cost.gradient = rbm_cost(kRbmGibbs, facts, facts.variables + facts.hidden);
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
