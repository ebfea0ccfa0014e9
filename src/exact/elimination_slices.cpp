/// Conditioning: which variables to observe so that a junction tree of what is left fits the memory.
#include <algorithm>
#include <cmath>
#include <utility>

#include "exact/exact_inference.hpp"

#include "exact/elimination_search.hpp"
#include "exact/elimination_tree.hpp"

namespace poise {

namespace {

using exact::FoundOrder;
using exact::Graph;
using exact::SearchOptions;

/// Operations beyond which nobody would wait: a thousand years.
constexpr double kHopeless = 3e19;
/// Variables that are tried where one is to be added, the most promising ones.
constexpr std::size_t kTried = 3;
/// An annealing between two variables: short, and not hot, because the order is a good one.
constexpr double kLooksPerVertex = 6000.0;
constexpr double kTemperature = 0.35;

/// A network with some variables observed, at whatever level, and an order for it.
struct Conditioned {
  Network network;  ///< without numbers
  Graph graph;
  FoundOrder found;
  std::vector<Index> variables;
  double slices = 1.0;

  [[nodiscard]] double cost(const SearchOptions& options) const { return slices * exact::cost(found.plan, options); }
};

/// A copy for planning, which needs no numbers but their count.
Network skeleton_of(const Network& network) {
  Network skeleton;
  skeleton.cardinalities = network.cardinalities;
  skeleton.observed = network.observed;
  if (skeleton.observed.empty()) skeleton.observed.assign(network.num_variables(), Network::kFree);
  skeleton.scopes = network.scopes;
  skeleton.scope_start = network.scope_start;
  skeleton.table_start.assign(network.num_factors(), 0);
  skeleton.values.resize(network.values.size());
  return skeleton;
}

/// The variables by how much a slice gets cheaper for their number of levels, if the order stays as it is.
std::vector<Index> most_promising(const Conditioned& now) {
  const EliminationPlan& plan = now.found.plan;
  std::vector<double> with(now.network.num_variables(), 0.0);  // entries of tables that have the variable
  double all = 0.0;
  for (std::size_t c = 0; c < plan.cliques.size(); ++c) {
    double entries = 1.0;
    for (const Index i : plan.cliques[c]) entries *= now.network.levels(i);
    all += entries;
    for (const Index i : plan.cliques[c]) with[i] += entries;
  }
  const auto promise = [&](Index i) {
    const double levels = now.network.levels(i);
    return -std::log1p(-with[i] / all * (1.0 - 1.0 / levels)) / std::log(levels);
  };
  std::vector<std::pair<double, Index>> scored;
  for (const Index i : plan.order) scored.emplace_back(-promise(i), i);
  const std::size_t count = std::min(kTried, scored.size());
  std::partial_sort(scored.begin(), scored.begin() + static_cast<std::ptrdiff_t>(count), scored.end());
  std::vector<Index> best;
  for (std::size_t k = 0; k < count; ++k) best.push_back(scored[k].second);
  return best;
}

Conditioned observe(const Conditioned& now, Index variable, const SearchOptions& options) {
  Conditioned next;
  next.network = now.network;
  next.network.observed[variable] = 0;
  next.graph = exact::graph_of(next.network);
  next.variables = now.variables;
  next.variables.push_back(variable);
  next.slices = now.slices * now.network.levels(variable);
  std::vector<Index> vertex(now.network.num_variables(), 0);
  for (Index v = 0; v < next.graph.size(); ++v) vertex[next.graph.variables[v]] = v;
  std::vector<Index> vertices;
  for (const Index i : now.found.plan.order) {
    if (i != variable) vertices.push_back(vertex[i]);
  }
  exact::EliminationTree tree(next.graph, vertices);
  exact::Effort effort;
  effort.deadline = options.deadline;
  Rng rng = exact::annealing_rng(next.variables.size());
  tree.anneal(
      {.first_temperature = kTemperature, .looks = static_cast<std::uint64_t>(kLooksPerVertex * next.graph.size())},
      rng, effort);
  next.found.order = tree.order();
  next.found.plan = exact::plan_of(next.network, next.graph, next.found.order);
  return next;
}

}  // namespace

double ExactPlan::seconds() const {
  constexpr double per_operation = 1.6e-9;  // 1.1 to 2 were seen, once 0.2 and once 3.8
  return per_operation * operations();
}

ExactPlan plan_exact(const Network& network, const PlanOptions& options) {
  SearchOptions search = exact::search_options(options);
  Conditioned now;
  now.graph = exact::graph_of(network);
  if (options.seconds > 0.0) {
    now.found = exact::search_parts(network, now.graph, search);
  } else {
    now.found.order = exact::order_by_table(now.graph);
    now.found.plan.width = now.found.order.width;
    if (now.found.order.complete) now.found.plan = exact::plan_of(network, now.graph, now.found.order);
  }
  ExactPlan plan;
  if (!now.found.order.complete) {
    plan.tree = exact::given_up(now.found.plan.width);
    return plan;
  }
  const auto fits = [&](const EliminationPlan& tree) {
    return tree.bytes <= options.memory_limit && tree.largest_clique <= exact::kLargestTable;
  };
  if (fits(now.found.plan)) {
    plan.tree = std::move(now.found.plan);
    return plan;
  }
  plan.tree =
      now.found.plan.largest_clique <= exact::kLargestTable ? now.found.plan : exact::given_up(now.found.plan.width);
  now.network = skeleton_of(network);
  while (!fits(now.found.plan) && now.cost(search) < kHopeless && now.graph.size() > 1) {
    Conditioned best;
    for (const Index variable : most_promising(now)) {
      Conditioned next = observe(now, variable, search);
      if (best.variables.empty() || next.cost(search) < best.cost(search)) best = std::move(next);
    }
    now = std::move(best);
  }
  if (!fits(now.found.plan)) return plan;
  search.times = now.slices;
  if (options.seconds > 0.0) {
    FoundOrder better = now.found;
    exact::improve_order(now.network, now.graph, search, better);
    if (fits(better.plan)) now.found = std::move(better);
  }
  plan.tree = std::move(now.found.plan);
  plan.conditioned = std::move(now.variables);
  plan.slices = now.slices;
  return plan;
}

}  // namespace poise
