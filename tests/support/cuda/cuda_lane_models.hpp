/// Models whose chains are across lanes, as a block on a GPU takes them, and runs of them that are to be the same.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <type_traits>
#include <vector>

#include <poise/run.hpp>
#include "engines/common/exact_tables.hpp"
#include "engines/cpu/lanes/lane_layout.hpp"
#include "engines/cuda/lanes/lane_tile.hpp"
#include "models/ising/ising_model.hpp"
#include "support/lane_models.hpp"

namespace poise::testing {

inline std::shared_ptr<const MarkovNetwork> target_of(const Network& network) {
  return std::make_shared<const MarkovNetwork>(network);
}

template <class T>
std::shared_ptr<const LaneModel> model_of(const std::shared_ptr<const T>& target) {
  return std::make_shared<const LaneModel>(lane_source(target));
}

inline Model model_with(const Network& network) { return network_model(std::make_shared<const Network>(network)); }

/// Nobody has fewer than eight neighbours.
inline Model dense_graph_model() {
  IsingModel ising;
  ising.variables = 40;
  ising.name = "graph";
  ising.field = random_field(40, 1.0, 2);
  Rng rng(2, 1);
  for (Index i = 0; i < 40; ++i) {
    for (Index away = 1; away <= 4; ++away) ising.edges.push_back({i, (i + away) % 40, rng.uniform() - 0.5});
  }
  return ising_model(std::move(ising));
}

inline std::vector<Model> models() {
  return {model_with(chain_network(30, 2, 0.0, 1)), model_with(chain_network(30, 3, 0.1, 2)),
          model_with(mixed_network_with_evidence(0.2, 4)), dense_graph_model(),
          make_model("potts:size=6,levels=3,coupling=0.7")};
}

inline void expect_same(const RunResult& here, const RunResult& there) {
  EXPECT_EQ(here.trace.x, there.trace.x);
  EXPECT_EQ(here.trace.monitors, there.trace.monitors);
  EXPECT_EQ(here.trace.acceptance_rate, there.trace.acceptance_rate);
  EXPECT_EQ(here.empirical_marginals, there.empirical_marginals);
  ASSERT_EQ(here.rao_blackwell.size(), there.rao_blackwell.size());
  for (std::size_t k = 0; k < here.rao_blackwell.size(); ++k) {
    EXPECT_NEAR(here.rao_blackwell[k], there.rao_blackwell[k], 1e-5);
  }
}

template <class T>
std::shared_ptr<const CudaLaneModel> on_device(const std::shared_ptr<const T>& target) {
  auto model = std::make_shared<CudaLaneModel>();
  model->model = model_of(target);
  model->exact = exact_tables(*target, *model->model);
  model->reference.assign(target->num_variables(), 1);
  if constexpr (std::is_same_v<T, GraphIsing>) model->log_sums = CudaLogSums::in_integers;
  return model;
}

}  // namespace poise::testing
