/// Searching an elimination order: what is tried, and when it no longer pays.
#include "exact/elimination_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <poise/extend/base/rng.hpp>

#include "exact/elimination_tree.hpp"

namespace poise::exact {

namespace {

// Measured: a look at an edge takes as long as five operations of inference, give or take a factor of two.
constexpr double kOperationsPerLook = 5.0;

// Greedy orders: planning shall not take much longer than what it plans, and once it takes longer than a tenth of a
// second annealing is the better way, where it will be tried. A few trials there are in any case, unless some variable
// has so many neighbours that looking at them takes too long.
constexpr double kLooksPerEntry = 1.0;
constexpr double kLooksPerEdge = 300.0;
constexpr double kMostForEntries = 2e7;
constexpr double kMostLooks = 6e8;
// Where every order gives up, trying on is not worth as much.
constexpr double kMostLooksInVain = 1e8;
constexpr std::uint64_t kMostTrialsInVain = 64;
// An order that takes far longer is not worth the memory that it saves.
constexpr double kMoreEntries = 1.5;

// Annealing: rounds of twice the length each. A round shorter than some hundreds of sweeps does not cool slowly enough;
// a look at all rotations of a sweep takes some forty looks at edges each.
constexpr double kFewestLooks = 1e6;
constexpr double kFewestPerVertex = 12000.0;
constexpr std::array kTemperatures = {0.5, 0.35, 0.65};
constexpr double kMostAnnealing = 2e9;
constexpr double kMostAnnealingInVain = 4e8;
// A round is expected to save half the fraction that the last one has saved, and this much if it is the first; less
// with every round that has saved nothing.
constexpr double kFirstSaving = 0.2;
constexpr double kNothing = 0.01;

class Search {
 public:
  Search(const Network& network, const Graph& graph, const SearchOptions& options, FoundOrder& found)
      : network_(network), graph_(graph), options_(options), found_(found) {
    effort_.deadline = options.deadline;
  }

  void try_greedy_orders();
  void anneal();

 private:
  void consider(Order order) {
    EliminationPlan plan = plan_of(network_, graph_, order);
    if (found_.order.complete && cost(plan, options_) >= cost(found_.plan, options_)) return;
    found_.plan = std::move(plan);
    found_.order = std::move(order);
  }

  [[nodiscard]] double first_round() const { return std::max(kFewestLooks, kFewestPerVertex * graph_.size()); }
  /// Whether so many looks cost less than a fraction of inference.
  [[nodiscard]] bool pays(double looks, double fraction) const {
    return looks * kOperationsPerLook <= fraction * cost(found_.plan, options_) * options_.times;
  }
  [[nodiscard]] bool first_round_pays() const { return found_.order.complete && pays(first_round(), kFirstSaving); }

  const Network& network_;
  const Graph& graph_;
  const SearchOptions& options_;
  FoundOrder& found_;
  Effort effort_;
};

void Search::try_greedy_orders() {
  found_.order = order_by_table(graph_);
  if (found_.order.complete) {
    found_.plan = plan_of(network_, graph_, found_.order);
  } else {
    found_.plan.width = found_.order.width;
  }
  double fewest = found_.order.complete ? found_.order.entries : 4.0 * kLargestStart;
  Rng rng = make_rng(kOrderSeed, Stream::elimination_prefix);
  const double least = std::min(kMostLooks, kLooksPerEdge * static_cast<double>(graph_.neighbours.size()));
  const std::uint64_t beside = 1000 + graph_.size() + network_.num_factors();  // what a trial costs beside looks
  for (std::uint64_t trial = 0; !found_.order.complete || found_.plan.width > 1; ++trial) {
    const bool in_vain = !found_.order.complete;
    const double entries = std::min(kLooksPerEntry * fewest, first_round_pays() ? kMostForEntries : kMostLooks);
    effort_.most = static_cast<std::uint64_t>(in_vain ? kMostLooksInVain : std::min(kMostLooks, entries + least));
    effort_.looks += beside;
    if (effort_.spent() || effort_.late() || (in_vain && trial == kMostTrialsInVain)) break;
    FillOptions fill;
    fill.weight = trial % 2 == 0 ? EdgeWeight::one : EdgeWeight::levels;
    fill.second_choice = trial < 2 ? 0.0 : trial % 4 < 2 ? 0.3 : 0.1;
    fill.trial = trial;
    fill.most_entries = kMoreEntries * fewest;
    fill.largest_table = kLargestStart;
    // Half of the trials go the best way so far for a while and then a way of their own.
    if (trial % 8 >= 4) {
      const auto length = static_cast<std::size_t>(rng.uniform() * static_cast<double>(found_.order.vertices.size()));
      if (!in_vain) fill.prefix = std::span<const Index>(found_.order.vertices).first(length);
    }
    Order order = order_by_fill(graph_, fill, effort_);
    if (!order.complete) continue;
    fewest = std::min(fewest, order.entries);
    consider(std::move(order));
  }
}

void Search::anneal() {
  if (!found_.order.complete || found_.plan.width < 2) return;
  Rng rng = annealing_rng(0);
  const std::uint64_t start = effort_.looks;
  double looks = first_round();
  double saved = 2.0 * kFirstSaving;
  double failures = 0.0;
  for (std::size_t round = 0;; ++round, looks *= 2.0) {
    const double before = cost(found_.plan, options_);
    const double expected = failures == 0.0 ? saved / 2.0 : kFirstSaving / (1.0 + failures * failures);
    const double most = found_.plan.largest_clique > kLargestTable ? kMostAnnealingInVain : kMostAnnealing;
    if (!pays(looks, expected) || effort_.late()) break;
    if (static_cast<double>(effort_.looks - start) + looks > most) break;
    EliminationTree tree(graph_, found_.order.vertices);
    tree.anneal(
        {.first_temperature = kTemperatures[round % kTemperatures.size()], .looks = static_cast<std::uint64_t>(looks)},
        rng, effort_);
    consider(tree.order());
    saved = 1.0 - cost(found_.plan, options_) / before;
    failures = saved < kNothing ? failures + 1.0 : 0.0;
  }
}

}  // namespace

SearchOptions search_options(const PlanOptions& options) {
  SearchOptions search;
  if (std::isfinite(options.memory_limit)) search.memory = options.memory_limit;
  constexpr double longest = 1e8;  // beyond it a point in time may be out of range
  if (options.seconds < longest) {
    search.deadline = Effort::Clock::now() + std::chrono::duration_cast<Effort::Clock::duration>(
                                                 std::chrono::duration<double>(options.seconds));
  }
  return search;
}

Rng annealing_rng(std::uint64_t number) { return make_rng(kOrderSeed, Stream::elimination_annealing, number); }

double cost(const EliminationPlan& plan, const SearchOptions& options) {
  const double slices = plan.bytes > options.memory ? std::max(2.0, plan.bytes / options.memory) : 1.0;
  return plan.operations * slices;
}

FoundOrder search_order(const Network& network, const Graph& graph, const SearchOptions& options) {
  FoundOrder found;
  Search search(network, graph, options, found);
  search.try_greedy_orders();
  search.anneal();
  return found;
}

void improve_order(const Network& network, const Graph& graph, const SearchOptions& options, FoundOrder& found) {
  Search(network, graph, options, found).anneal();
}

}  // namespace poise::exact
