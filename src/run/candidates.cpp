/// Facts about models, and the rows that want to be tried.
#include <poise/extend/engines/candidates.hpp>

#include <algorithm>

#include <poise/extend/engines/samplers.hpp>
#include <poise/model.hpp>
#include "engines/cpu/bits/ising_bits.hpp"
#include "engines/cpu/chains/bonds.hpp"
#include "engines/cpu/lanes/lane_layout.hpp"
#include "exact/junction_tree.hpp"
#include "models/ising/graph_ising.hpp"
#include "models/ising/lattice_ising.hpp"
#include "models/network/markov_network.hpp"
#include "models/rbm/rbm.hpp"
#include "models/user/batch_target.hpp"

namespace poise {

namespace {

/// Moves that are looked at for an average.
constexpr Index kLookedAt = 64;
/// Tables of the junction tree that may be made without asking.
constexpr double kMostBytes = 1073741824.0;

template <SparseTarget T>
double mean_affected(const T& target) {
  const std::vector<Value> zeros(target.num_variables(), 0);
  const auto state = target.make_state(zeros);
  const Index stride = std::max<Index>(1, target.num_moves() / kLookedAt);
  double sum = 0.0;
  double count = 0.0;
  for (Index move = 0; move < target.num_moves(); move += stride) {
    target.for_each_affected(state, move, [&](const AffectedLanes& lanes) { sum += lanes.count; });
    count += 1.0;
  }
  return count > 0.0 ? sum / count : 0.0;
}

void add(ModelFacts& facts, const std::shared_ptr<const LatticeIsing>& target) {
  facts.kind = ModelKind::lattice;
  facts.affected = mean_affected(*target);
  facts.bits = true;
  facts.clusters = lacks_clusters(*target).empty();
}

void add(ModelFacts& facts, const std::shared_ptr<const GraphIsing>& target) {
  facts.kind = ModelKind::graph;
  facts.affected = mean_affected(*target);
  facts.bits = BitTables::fits(bit_model(target));
  facts.lanes = !facts.bits && LaneModel::fits(lane_source(target));
  facts.clusters = lacks_clusters(*target).empty();
}

void add(ModelFacts& facts, const NetworkDescription& network) {
  facts.kind = ModelKind::network;
  facts.affected = mean_affected(*network.target);
  facts.lanes = LaneModel::fits(lane_source(network.target));
  facts.clusters = lacks_clusters(*network.network).empty();
  const EliminationPlan plan = plan_elimination(*network.network, 0.0);
  if (!plan.complete || plan.bytes > kMostBytes) return;
  // What the search of plan_elimination takes at most.
  double edges = 0.0;
  for (const auto& clique : plan.cliques) edges += static_cast<double>(clique.size() * clique.size());
  facts.exact = ExactFacts{plan.bytes, std::min(6e8, 2.0 * plan.entries + 300.0 * edges), plan.operations};
}

void add(ModelFacts& facts, const std::shared_ptr<const Rbm>& target) {
  facts.kind = ModelKind::rbm;
  facts.hidden = target->num_hidden();
  facts.gradient = true;
}

void add(ModelFacts& facts, const CallbackDescription& callback) {
  facts.kind = ModelKind::callback;
  facts.gradient = callback.target->function().has_gradient();
  facts.log_ratios = callback.target->function().has_log_ratios();
}

void add(ModelFacts& facts, const std::shared_ptr<const OwnDescription>&) { facts.kind = ModelKind::own; }

/// Moves that one change affects in a target of unknown structure: a small Markov blanket.
constexpr double kUsualAffected = 6.0;

template <class Row>
void collect(const ModelFacts& facts, std::vector<Candidate>& out) {
  if constexpr (std::is_base_of_v<AutoCandidate, Row>) {
    for (const std::string& spec : Row::candidates(facts)) {
      Sampler sampler = parse_sampler(spec);
      const SamplerCost cost = Row::cost(facts, sampler.settings);
      out.push_back({std::move(sampler), cost, std::is_same_v<Row, ExactRow>});
    }
  }
}

}  // namespace

ModelFacts model_facts(const Model& model, std::size_t chains) {
  ModelFacts facts;
  facts.chains = chains;
  facts.variables = model.layout.variables;
  for (Index i = 0; i < model.layout.variables; ++i) {
    const Index levels = model.layout.levels(i);
    facts.free += levels > 1 ? 1 : 0;
    facts.moves += levels - 1;
    facts.most_levels = std::max(facts.most_levels, levels);
  }
  if (model.sparse) facts.affected = kUsualAffected;
  std::visit([&](const auto& description) { add(facts, description); }, model.description);
  return facts;
}

std::vector<Candidate> find_candidates(const ModelFacts& facts) {
  std::vector<Candidate> out;
  [&]<class... Rows>(std::tuple<Rows...>*) { (collect<Rows>(facts, out), ...); }(static_cast<SamplerRows*>(nullptr));
  return out;
}

std::optional<SamplerCost> sampler_cost(const Sampler& sampler, const ModelFacts& facts) {
  std::optional<SamplerCost> found;
  const auto look = [&]<class Row>(std::type_identity<Row>) {
    if constexpr (std::is_base_of_v<AutoCandidate, Row>) {
      if (is_row<Row>(sampler)) found = Row::cost(facts, sampler.settings);
    }
  };
  [&]<class... Rows>(std::tuple<Rows...>*) {
    (look(std::type_identity<Rows>()), ...);
  }(static_cast<SamplerRows*>(nullptr));
  return found;
}

std::string work_unit(ModelKind kind) { return kind == ModelKind::callback ? "rows" : "ns"; }

}  // namespace poise
