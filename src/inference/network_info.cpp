/// What a network is made of, and what an answer would cost.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include <poise/marginals.hpp>
#include "exact/exact_inference.hpp"
#include "models/network/support.hpp"

namespace poise {

namespace {

/// What is counted of a network.
struct NetworkCounts {
  explicit NetworkCounts(const Network& network) {
    for (Index i = 0; i < network.num_variables(); ++i) {
      observed += network.is_observed(i) ? 1 : 0;
      single += !network.is_observed(i) && network.cardinalities[i] == 1 ? 1 : 0;
      fewest = std::min(fewest, network.cardinalities[i]);
      most = std::max(most, network.cardinalities[i]);
    }
    for (std::size_t f = 0; f < network.num_factors(); ++f) {
      scope = std::max(scope, network.scope(f).size());
      entries += static_cast<double>(network.table_size(f));
      for (const double value : network.table(f)) zeros += value == 0.0 ? 1.0 : 0.0;
    }
    if (zeros > 0.0) {
      const Domains domains = propagate_zeros(network);
      for (Index i = 0; i < network.num_variables(); ++i) {
        determined += !network.is_observed(i) && network.cardinalities[i] > 1 && domains.count[i] == 1 ? 1 : 0;
      }
    }
  }
  std::size_t observed = 0;
  std::size_t single = 0;      // variables of one level
  std::size_t determined = 0;  // by zeros in the tables
  Index fewest = std::numeric_limits<Index>::max();
  Index most = 0;
  std::size_t scope = 0;  // of the largest factor
  double entries = 0.0;
  double zeros = 0.0;
};

}  // namespace

nlohmann::json network_info(const Network& network, double memory_limit) {
  const NetworkCounts counts(network);
  const ExactPlan found = plan_exact(network, {.memory_limit = memory_limit});
  const EliminationPlan& plan = found.tree;
  const bool exact = fits(found, memory_limit);
  const auto finite = [](double value) {
    return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
  };
  nlohmann::json json = {{"version", POISE_VERSION},
                         {"model", network.name},
                         {"variables", network.num_variables()},
                         {"observed", counts.observed},
                         {"one_level", counts.single},
                         {"determined", counts.determined},
                         {"cardinality", {{"min", counts.fewest}, {"max", counts.most}}},
                         {"factors", network.num_factors()},
                         {"largest_scope", counts.scope},
                         {"entries", counts.entries},
                         {"zeros", counts.zeros},
                         {"width", plan.width},
                         {"slices", found.slices},
                         {"conditioned", found.conditioned.size()},
                         {"method", exact ? "exact" : "sample"},
                         {"complete", plan.complete},
                         {"fits_memory", found.fits(memory_limit)},
                         {"cost", exact_cost(found)},
                         {"exact_bytes", finite(plan.bytes)},
                         {"largest_clique", finite(plan.largest_clique)}};
  if (!exact) json["samplers"] = pilot_samplers(network_model(std::make_shared<const Network>(network)));
  return json;
}

}  // namespace poise
