/// The table of costs anew: what an evaluation takes by every kernel on every kind of model, beside what the library
/// believes (src/run/costs.cpp). `tools/bench-ratios` prints both.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include <poise/network.hpp>
#include <poise/extend/base/rng.hpp>
#include <poise/extend/engines/candidates.hpp>
#include <poise/run.hpp>
#include "models/ising/ising_model.hpp"
#include "models/rbm/rbm.hpp"
#include <poise/extend/engines/engine.hpp>
#include "random_rbm.hpp"

namespace {

using namespace poise;

/// A graph with couplings in which variables have ten neighbours: random ones and fields, or all the same and no field,
/// so that it has clusters.
Model random_graph(bool clusters) {
  IsingModel ising;
  ising.variables = 2000;
  ising.name = "graph";
  Rng rng(3, 5);
  for (Index i = 0; i < ising.variables; ++i) {
    ising.field.push_back(clusters ? 0.0 : 0.5 * rng.normal());
    for (const Index step : {1, 7, 43, 301, 977}) {
      ising.edges.push_back(
          {i, static_cast<Index>((i + step) % ising.variables), clusters ? 0.11 : 0.3 * rng.normal()});
    }
  }
  return ising_model(std::move(ising));
}

/// Binary variables with tables over up to four of them.
Model random_network() {
  Network network;
  network.name = "network";
  network.cardinalities.assign(200, 2);
  Rng rng(11, 0);
  for (Index i = 4; i < 200; ++i) {
    std::vector<Index> scope;
    for (const Index back : {4, 3, 1, 0}) scope.push_back(i - back);
    std::vector<double> table;
    for (int k = 0; k < 16; ++k) table.push_back(std::exp(0.5 * rng.normal()));
    network.add_factor(scope, table);
  }
  return network_model(std::make_shared<const Network>(std::move(network)));
}

Model random_rbm(Index visible, Index hidden) {
  return rbm_model("rbm", std::make_shared<const Rbm>(random_rbm_weights(visible, hidden)));
}

/// Counters: `work` by the library's table of a second's steps, in seconds; it would be 1 if the table were right.
void cost(benchmark::State& state, const Model& model, const std::string& name, std::size_t chains) {
  RunOptions options;
  options.chains = chains;
  options.threads = 1;
  const Sampler sampler = parse_sampler(name);
  Run run(model, sampler, options);
  const SamplerCost cost = *sampler_cost(sampler, model_facts(model, chains));
  const auto updates = static_cast<double>(model.layout.variables * chains);
  const std::uint64_t sweeps = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(2e5 / updates));
  const std::uint64_t steps = run.engine().traits().steps_per_sweep * sweeps;
  // In which clusters find out how many make a sweep.
  run.begin_warm_up(run.engine().traits().steps_per_sweep == 1 ? 200 : steps);
  run.advance(steps);
  const Evals before = total_evals(run.engine());
  for (auto _ : state) run.advance(steps);
  const Evals evals = total_evals(run.engine()) - before;
  state.counters["evaluations"] =
      benchmark::Counter(static_cast<double>(evals.of_target()), benchmark::Counter::kIsRate);
  state.counters["work"] = benchmark::Counter(1e-9 * cost.of(evals), benchmark::Counter::kIsRate);
}

/// Sweeps of a warm-up that nobody gave a length (RunOptions).
constexpr std::uint64_t kWarmupSweeps = 1000;

/// A whole warm-up that learns, of the length that a run has by default, beside what as many steps cost that do not.
/// Counters: `work` as above, and `learning` by the table, which is the true one times `work`.
void learning_cost(benchmark::State& state, const Model& model, const std::string& name) {
  RunOptions options;
  options.threads = 1;
  const Sampler sampler = parse_sampler(name);
  const SamplerCost cost = *sampler_cost(sampler, model_facts(model, options.chains));
  const double steps = static_cast<double>(kWarmupSweeps * cost.steps_per_sweep * options.chains);
  for (auto _ : state) {
    state.PauseTiming();
    Run run(model, sampler, options);
    state.ResumeTiming();
    run.warm_up();
  }
  const double work = steps * cost.of(cost.step) * cost.learning * static_cast<double>(state.iterations());
  state.counters["work"] = benchmark::Counter(1e-9 * work, benchmark::Counter::kIsRate);
  state.counters["learning"] = cost.learning;
}

const bool registered = [] {
  struct Row {
    std::string kind;
    Model model;
    std::vector<std::string> samplers;
  };
  const std::vector<Row> rows = {
      {"lattice", make_model("ising:size=50,lambda=0.44,sigma=1"), {"gibbs", "lb", "gibbs:block=2", "gibbs:block=4"}},
      {"graph", random_graph(false), {"gibbs", "lb", "gibbs:block=2", "gibbs:block=4"}},
      {"network", random_network(), {"gibbs", "lb", "gibbs:block=2", "gibbs:block=4", "exact"}},
      {"potts", make_model("potts:size=20,levels=3,coupling=0.7"), {"gibbs", "lb", "gibbs:block=2"}},
      {"critical lattice", make_model("ising:size=100,lambda=0.44"), {"sw", "wolff"}},
      {"critical graph", random_graph(true), {"sw", "wolff"}},
      {"critical potts", make_model("potts:size=50,levels=3,coupling=1"), {"sw", "wolff"}},
      {"rbm", random_rbm(784, 250), {"gibbs", "gwg", "dlsb", "gibbs:block=2", "rbm-gibbs"}},
      {"small rbm", random_rbm(24, 16), {"gibbs", "gwg", "dlsb", "gibbs:block=2", "rbm-gibbs"}},
      {"flat rbm", random_rbm(784, 32), {"gibbs", "gwg", "dlsb", "gibbs:block=2", "rbm-gibbs"}},
  };
  const auto add = [](const Row& row, const std::string& sampler, std::size_t chains) {
    const std::string name = "cost/" + row.kind + "/" + sampler + "/" + std::to_string(chains);
    benchmark::RegisterBenchmark(name.c_str(), [model = row.model, sampler, chains](benchmark::State& state) {
      cost(state, model, sampler, chains);
    })->MinTime(0.2);
  };
  for (const Row& row : rows) {
    for (const std::string& sampler : row.samplers) add(row, sampler, 4);
  }
  const auto add_learning = [](const Row& row, const std::string& sampler) {
    const std::string name = "learning cost/" + row.kind + "/" + sampler;
    benchmark::RegisterBenchmark(name.c_str(), [model = row.model, sampler](benchmark::State& state) {
      learning_cost(state, model, sampler);
    })->Iterations(1);
  };
  for (const std::size_t kind : {0, 1, 2, 8}) add_learning(rows[kind], "lsb");
  for (const std::size_t kind : {7, 8, 9}) add_learning(rows[kind], "dlsb");
  for (const std::size_t chains : {1, 16, 128, 512}) add(rows[0], "gibbs", chains);
  for (const std::size_t kind : {1, 2, 3}) {
    for (const std::size_t chains : {1, 16, 64}) add(rows[kind], "gibbs", chains);
  }
  return true;
}();

}  // namespace
