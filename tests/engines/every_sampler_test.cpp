/// Every sampler of the registry on every kind of model that takes it: chains that start from exact draws keep the law.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <poise/extend/check/exactness.hpp>
#include <poise/extend/engines/samplers.hpp>
#include <poise/model.hpp>
#include "engines/rows.hpp"
#include "support/run_cases.hpp"

namespace poise::every_sampler_test {

using namespace poise::testing;

/// All but those that only choose, or whose chains are ladders, which start out of equilibrium.
std::vector<std::string> samplers_with_chains() {
  std::vector<std::string> names;
  for (const NameHelp& row : sampler_help()) {
    if (row.name != AutoRow::name && row.name != TemperRow::name) names.push_back(row.name);
  }
  return names;
}

std::vector<Model> small_models() {
  return {make_model("ising:size=3,lambda=0.4,mu=0.5,sigma=1,seed=3"),
          make_model("ising:size=3,lambda=0.2"),
          make_model("ising:size=2x4,lambda=0.3,sigma=1"),
          make_model("potts:size=2,levels=3,coupling=0.4"),
          network_model(std::make_shared<const Network>(mixed_network(0.2, 4))),
          rbm_model("rbm", std::make_shared<const Rbm>(random_rbm(8, 4, 0.8, 4))),
          selection_model(make_case({"default", {}}, 7)),
          table_model(small_categorical()),
          callback_model("coins", {std::vector<Index>(6, 2), {}}, std::make_shared<Coins>(), {})};
}

/// z of the states of chains that have made a few steps from exact draws; nothing where the model refuses the sampler.
std::optional<double> law_of(const Model& model, const StateSpace& space, const Sampler& sampler) {
  constexpr std::size_t kChains = 4000;
  constexpr std::uint64_t kSteps = 3;
  EngineOptions options;
  options.seed = 11;
  options.reference.assign(model.layout.variables, 0);
  Rng rng(12, 0);
  for (std::size_t c = 0; c < kChains; ++c) options.starts.push_back(space.states[state_at(space, rng.uniform())]);
  TunableEngine made;
  try {
    made = make_engine(model, sampler, options);
  } catch (const InputError&) {
    return std::nullopt;
  }
  Engine& engine = *made.engine;
  std::vector<double> count(space.size(), 0.0);
  std::vector<Value> levels(model.layout.variables);
  for (const ChainGroup& group : engine.share_out(1)) engine.advance(group, kSteps);
  for (std::size_t c = 0; c < kChains; ++c) {
    engine.observe({c, 1}, {.levels = levels});
    ++count[space.number(levels)];
  }
  return chi_square_z(count, space);
}

TEST(EverySampler, KeepsTheLawOnEveryModelThatTakesIt) {
  std::set<std::string> ran;
  for (const Model& model : small_models()) {
    const StateSpace space = enumerate_states(*target_of(model));
    for (const std::string& name : samplers_with_chains()) {
      const std::optional<double> z = law_of(model, space, parse_sampler(name));
      if (!z) continue;
      ran.insert(name);
      EXPECT_LT(std::abs(*z), 6.0) << name << " on " << model.name;
    }
  }
  for (const std::string& name : samplers_with_chains()) EXPECT_EQ(ran.count(name), 1U) << name << " ran nowhere";
}

}  // namespace poise::every_sampler_test
