/// Exact inference slice by slice: which variables to condition on, and the mixture of all slices.
#include "exact/exact_inference.hpp"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "exact/elimination_order.hpp"
#include "exact/junction_tree_tables.hpp"
#include "exact/slices.hpp"

namespace poise {

namespace {

using exact::FoundOrder;
using exact::Graph;
using exact::SearchOptions;

/// Operations beyond any patience: a thousand years on one core.
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
  now.found = exact::find_order(network, now.graph, options);
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

namespace {

/// Sums of slices weighted by their partition functions, all divided by the largest of these so far.
class Mixture {
 public:
  explicit Mixture(const Network& network) : marginals_(network.cardinalities) {}

  void add(const exact::Tables& slice) {
    const double log_weight = slice.log_partition;
    if (log_weight == kMinusInfinity) return;
    if (log_weight > largest_) {
      const double shrink = std::exp(largest_ - log_weight);
      for (double& value : marginals_.values) value *= shrink;
      total_ *= shrink;
      largest_ = log_weight;
    }
    const double weight = std::exp(log_weight - largest_);
    total_ += weight;
    for (std::size_t k = 0; k < marginals_.values.size(); ++k) {
      marginals_.values[k] += weight * slice.marginals.values[k];
    }
    slices_ += 1.0;
  }

  [[nodiscard]] bool empty() const { return slices_ == 0.0; }
  [[nodiscard]] ExactAnswer answer() && {
    for (double& value : marginals_.values) value /= total_;
    return {.marginals = std::move(marginals_), .log_partition = largest_ + std::log(total_), .slices = slices_};
  }

 private:
  Marginals marginals_;
  double total_ = 0.0;
  double largest_ = kMinusInfinity;
  double slices_ = 0.0;
};

}  // namespace

void exact::check_limits(const ExactPlan& plan, const ExactOptions& options) {
  if (!plan.fits(options.memory_limit)) throw exact::too_large(plan.tree, options.memory_limit);
  if (plan.seconds() <= options.seconds) return;
  if (plan.conditioned.empty()) {
    throw InputError(fmt::format(
        "exact inference would visit {:.2g} table entries, about {:.2g} s on one core, more than the limit of "
        "{:.3g} s; observe more variables, allow more time, or sample",
        plan.operations(), plan.seconds(), options.seconds));
  }
  throw InputError(fmt::format(
      "exact inference would need {:.3g} slices (conditioning on {} variables) with {} of tables each, about {:.2g} s "
      "in "
      "all on one core; the limits are {} and {:.3g} s: observe more variables, allow more memory or time, or sample",
      plan.slices, plan.conditioned.size(), exact::size_text(plan.tree.bytes), plan.seconds(),
      exact::size_text(options.memory_limit), options.seconds));
}

ExactAnswer solve_exact(const Network& network, const ExactPlan& plan, const ExactOptions& options) {
  exact::check_limits(plan, options);
  if (plan.conditioned.empty()) {
    ExactOptions without_draws = options;
    without_draws.draws = false;
    const JunctionTree tree(network, plan.tree, without_draws);
    return {.marginals = tree.marginals(), .log_partition = tree.log_partition()};
  }
  const exact::Sharing sharing(plan, options);
  exact::Slices slices(network, plan.conditioned);
  Mixture mixture(network);
  ThreadPool outer(static_cast<unsigned>(sharing.at_a_time));
  ThreadPool inner(sharing.at_a_time > 1 ? 1 : sharing.threads_each);
  std::vector<Network> batch;
  std::vector<std::unique_ptr<exact::Tables>> solved;
  for (bool more = slices.next(); more;) {
    const double passed = slices.passed();
    batch.clear();
    for (; more && batch.size() < sharing.at_a_time; more = slices.next()) batch.push_back(slices.network());
    const double fraction = (more ? slices.passed() : 1.0) - passed;
    const auto progress = [&](double done) { return !options.progress || options.progress(passed + fraction * done); };
    exact::Meter meter(progress, static_cast<double>(batch.size()) * plan.tree.operations);
    solved.clear();
    solved.resize(batch.size());
    outer.for_each(batch.size(), [&](std::size_t k) {
      ThreadPool alone(1);
      const double room = options.memory_limit / static_cast<double>(sharing.at_a_time) - plan.tree.bytes;
      ThreadPool& pool = batch.size() > 1 ? alone : inner;
      auto tables = std::make_unique<exact::Tables>(batch[k], plan.tree);
      const exact::Crew crew{meter, pool, room};
      tables->collect(crew);
      if (tables->log_partition != kMinusInfinity) tables->hand_out(crew);
      tables->messages.reset();
      solved[k] = std::move(tables);
    });
    for (const std::unique_ptr<exact::Tables>& slice : solved) mixture.add(*slice);
  }
  if (mixture.empty()) throw exact::no_state(network);
  return std::move(mixture).answer();
}

}  // namespace poise
