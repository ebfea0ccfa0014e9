/// Time per step of every kernel; `tools/bench-ratios` turns the numbers into the ratios that are promised.
#include <benchmark/benchmark.h>

#include <map>
#include <memory>
#include <set>

#include <poise/extend/engines/chain.hpp>
#include <poise/extend/engines/engine.hpp>
#include <poise/extend/kernels/gibbs.hpp>
#include <poise/extend/kernels/locally_balanced.hpp>
#include <poise/extend/learning/learned_function.hpp>
#include <poise/poise.hpp>
#include "engines/cpu/bits/ising_bits.hpp"
#include "learning.hpp"
#include "models/ising/ising_model.hpp"
#include "models/ising/lattice_ising.hpp"
#include "tests/support/plain.hpp"

namespace {

using namespace poise;

/// The third case of the paper (coupling 1, noisy field) at any size.
std::shared_ptr<const LatticeIsing> lattice(Index side) {
  static std::map<Index, std::shared_ptr<const LatticeIsing>> made;
  if (!made[side]) {
    IsingModel model = make_ising(parse_spec("ising:case=3,size=" + std::to_string(side)));
    made[side] = std::make_shared<const LatticeIsing>(side, side, Boundary::torus, 1.0, std::move(model.field));
  }
  return made[side];
}

/// A state near stationarity: a few dozen sweeps of Gibbs from a random start.
std::vector<Value> typical_state(const std::shared_ptr<const LatticeIsing>& target) {
  const Index n = target->num_variables();
  std::vector<Value> x(n);
  Rng rng(7, 7);
  for (Value& level : x) level = rng.uniform() < 0.5 ? 1 : 0;
  EngineOptions options;
  options.starts = {x};
  options.reference = std::vector<Value>(n, 0);
  using Layout = BitLayout<LatticeIsing>;
  TileEngine<LatticeIsing, Layout> gibbs(target, Layout(target, bit_model(target)), options);
  gibbs.advance({0, 1}, 50);
  gibbs.observe({0, 1}, {.levels = x});
  return x;
}

/// A function that was really learned, on the small lattice.
BalancingFunction learned() {
  static const BalancingFunction balance = [] {
    RunOptions options;
    options.warmup = 200;
    options.draws = 1;
    const RunResult result = run(make_model("ising:case=3"), parse_sampler("lsb"), options);
    return BalancingFunction(std::make_shared<const BalanceTable>(result.log_phi));
  }();
  return balance;
}

BalancingFunction frozen_sqrt() {
  return BalancingFunction(std::make_shared<const BalanceTable>(std::vector<double>(BalanceTable::kPoints)));
}

/// `together` chains, as one thread of a run moves them on.
template <unsigned together, class K>
void steps(benchmark::State& state, Index side, K kernel, std::uint64_t batch) {
  const auto target = lattice(side);
  const std::vector<Value> start = typical_state(target);
  const std::vector<Value> reference(start.size(), 0);
  if constexpr (requires { kernel.tabulate(*target); }) kernel.tabulate(*target);
  std::vector<std::unique_ptr<Chain<LatticeIsing, K>>> chains;
  std::vector<Chain<LatticeIsing, K>*> group;
  for (unsigned c = 0; c < together; ++c) {
    chains.push_back(std::make_unique<Chain<LatticeIsing, K>>(*target, start, reference, Rng(1, c)));
    group.push_back(chains.back().get());
    kernel.prepare(*target, group[c]->state, group[c]->scratch);
  }
  for (auto _ : state) advance<LatticeIsing, K>(kernel, *target, group, batch);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * batch * together));
  state.counters["acceptance"] = group[0]->accepted / static_cast<double>(group[0]->steps);
}

using Fast = LocallyBalanced<LatticeIsing>;

/// The plain kernel with the interface of the others.
struct Plain : PlainBalanced<LatticeIsing> {
  using PlainBalanced<LatticeIsing>::PlainBalanced;
  template <class Visit>
  void for_each_change(const LatticeIsing&, const LatticeIsing::State&, const Scratch&, const StepInfo&,
                       Visit&&) const {}
};

void plain_30(benchmark::State& state) { steps<1>(state, 30, Plain(BalancingFunction()), 10); }
void sqrt_30(benchmark::State& state) { steps<4>(state, 30, Fast(BalancingFunction()), 10000); }
void sqrt_30_alone(benchmark::State& state) { steps<1>(state, 30, Fast(BalancingFunction()), 10000); }
void barker_30(benchmark::State& state) {
  steps<4>(state, 30, Fast(BalancingFunction(BalancingFunction::Kind::barker)), 10000);
}
void frozen_sqrt_30(benchmark::State& state) { steps<4>(state, 30, Fast(frozen_sqrt()), 10000); }
void learned_30(benchmark::State& state) { steps<4>(state, 30, Fast(learned()), 10000); }
// Beyond 8192 sites weights are computed as needed, not tabled.
void sqrt_100(benchmark::State& state) { steps<4>(state, 100, Fast(BalancingFunction()), 10000); }
void frozen_sqrt_100(benchmark::State& state) { steps<4>(state, 100, Fast(frozen_sqrt()), 10000); }
void sqrt_1000(benchmark::State& state) { steps<2>(state, 1000, Fast(BalancingFunction()), 10000); }
BENCHMARK(plain_30);
BENCHMARK(sqrt_30);
BENCHMARK(frozen_sqrt_30);
BENCHMARK(learned_30);
BENCHMARK(barker_30);
BENCHMARK(sqrt_30_alone);
BENCHMARK(sqrt_100);
BENCHMARK(frozen_sqrt_100);
BENCHMARK(sqrt_1000);

/// Steps of Gibbs are sweeps; an item is the update of one site of one chain. Chains as bits, on one core.
template <class T>
void sweeps(benchmark::State& state, const std::shared_ptr<const T>& target, std::size_t chains, bool monitors) {
  EngineOptions options;
  options.starts.assign(chains, std::vector<Value>(target->num_variables(), 0));
  options.reference.assign(target->num_variables(), 0);
  TileEngine<T, BitLayout<T>> engine(target, BitLayout<T>(target, bit_model(target)), options);
  const std::vector<ChainGroup> groups = engine.share_out(1);
  for (const ChainGroup& group : groups) engine.start_marginals(group, false);
  std::vector<double> log_prob(chains), statistics(chains);
  std::vector<std::int64_t> distance(chains);
  for (auto _ : state) {
    for (const ChainGroup& group : groups) {
      engine.advance(group, 1);
      const auto part = [&](auto& values) { return std::span(values).subspan(group.first, group.count); };
      if (monitors) {
        engine.observe(group, {.log_prob = part(log_prob), .statistics = part(statistics), .distance = part(distance)});
      }
    }
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * chains * target->num_variables()));
}

void gibbs(benchmark::State& state) {
  sweeps(state, lattice(static_cast<Index>(state.range(0))), static_cast<std::size_t>(state.range(1)), false);
}
void gibbs_monitors(benchmark::State& state) {
  sweeps(state, lattice(static_cast<Index>(state.range(0))), static_cast<std::size_t>(state.range(1)), true);
}

/// A random graph in which every variable has about `degree` neighbours and none has more, couplings and fields real.
void gibbs_graph(benchmark::State& state) {
  const auto degree = static_cast<Index>(state.range(0));
  constexpr Index n = 10000;
  Rng rng(3, 3);
  std::vector<double> field(n);
  for (double& value : field) value = rng.uniform() - 0.5;
  std::set<std::pair<Index, Index>> joined;
  std::vector<Edge> edges;
  std::vector<Index> degrees(n, 0);
  for (Index tries = 0; tries < 20 * n * degree && edges.size() < std::size_t{n} * degree / 2; ++tries) {
    const auto i = static_cast<Index>(rng.uniform() * n), j = static_cast<Index>(rng.uniform() * n);
    if (i >= j || degrees[i] == degree || degrees[j] == degree || !joined.insert({i, j}).second) continue;
    edges.push_back({i, j, rng.uniform() - 0.5});
    ++degrees[i], ++degrees[j];
  }
  sweeps(state, std::make_shared<const GraphIsing>(field, edges), static_cast<std::size_t>(state.range(1)), false);
}
BENCHMARK(gibbs)->ArgsProduct({{30, 50, 1000}, {1, 4, 16, 128, 512}});
BENCHMARK(gibbs_monitors)->ArgsProduct({{50, 1000}, {16, 128, 512}});
BENCHMARK(gibbs_graph)->ArgsProduct({{4, 6}, {1, 16, 128, 512}});

void naive_gibbs(benchmark::State& state) {
  const auto target = lattice(30);
  const std::vector<Value> start = typical_state(target);
  const std::vector<Value> reference(start.size(), 0);
  Chain<LatticeIsing, Gibbs<LatticeIsing>> chain(*target, start, reference, Rng(1, 0));
  const Gibbs<LatticeIsing> kernel;
  kernel.prepare(*target, chain.state, chain.scratch);
  Chain<LatticeIsing, Gibbs<LatticeIsing>>* const alone[] = {&chain};
  for (auto _ : state) advance<LatticeIsing, Gibbs<LatticeIsing>>(kernel, *target, alone, 10);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * 10 * target->num_variables());
}
BENCHMARK(naive_gibbs);

/// A whole run of eight chains, warm-up left out, on one and on two threads. An item is a step.
void eight_chains(benchmark::State& state) {
  const Model model = make_model("ising:case=3");
  RunOptions options;
  options.chains = 8;
  options.warmup = 0;
  options.draws = 2000;
  options.keep = Keep::monitors;
  options.threads = static_cast<unsigned>(state.range(0));
  std::int64_t done = 0;
  for (auto _ : state) {
    const RunResult result = run(model, parse_sampler("lb:g=sqrt"), options);
    done += static_cast<std::int64_t>(result.steps);
    state.SetIterationTime(result.sampling_seconds);
  }
  state.SetItemsProcessed(done);
}
BENCHMARK(eight_chains)->Arg(1)->Arg(2)->UseManualTime();

/// Chain steps a second while a function is being learned: rounds of one sweep and one update (lsb), and the paper's
/// schedule of one update at every step (mi-bound).
void learning(benchmark::State& state, const char* sampler, std::size_t warmup) {
  time_learning(state, make_model("ising:case=3"), sampler, warmup, 0);
}
BENCHMARK_CAPTURE(learning, lsb, "lsb", 1000)->UseManualTime()->Iterations(1);
BENCHMARK_CAPTURE(learning, lsb2_paper, "lsb2:objective=mi-bound,schedule=paper", 3)->UseManualTime()->Iterations(1);

void random_numbers(benchmark::State& state) {
  Rng rng(1, 1);
  for (auto _ : state) {
    for (int k = 0; k < 1024; ++k) benchmark::DoNotOptimize(rng.uniform());
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * 1024);
}
BENCHMARK(random_numbers);

}  // namespace

BENCHMARK_MAIN();
