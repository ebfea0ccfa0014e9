/// Networks: time per step, collapsing and drawing what was removed, and the speed and memory of reading a large file.
///
/// The network is a random one of the shape of the paper's (100 binary variables, up to six parents each, a fifth of
/// them observed); POISE_BENCH_NETWORK names a .uai file, and POISE_BENCH_EVIDENCE its evidence, to take in its place.
/// Two more have pairs of variables only: a grid of binary ones, and a random graph of which a quarter have four
/// levels.
#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include <poise/extend/engines/chain.hpp>
#include <poise/extend/engines/engine.hpp>
#include <poise/extend/kernels/gibbs.hpp>
#include <poise/extend/kernels/locally_balanced.hpp>
#include <poise/network.hpp>
#include "engines/cpu/lanes/lane_layout.hpp"
#include "exact/collapse.hpp"
#include "models/network/markov_network.hpp"

namespace {

using namespace poise;

Network random_bayesian_network() {
  Network network;
  network.cardinalities.assign(100, 2);
  Rng rng(11, 0);
  for (Index child = 0; child < 100; ++child) {
    std::vector<Index> scope;
    const auto parents = std::min(child, static_cast<Index>(7.0 * rng.uniform() * rng.uniform()));
    while (scope.size() < parents) {
      const auto parent = static_cast<Index>(rng.uniform() * child);
      if (std::find(scope.begin(), scope.end(), parent) == scope.end()) scope.push_back(parent);
    }
    scope.push_back(child);
    std::vector<double> table;
    for (std::size_t row = 0; row < (std::size_t{1} << (scope.size() - 1)); ++row) {
      const double p = 1.0 / (1.0 + std::exp(2.0 * rng.normal()));
      table.insert(table.end(), {p, 1.0 - p});
    }
    network.add_factor(scope, table);
  }
  Evidence evidence;
  for (Index i = 0; i < 100; i += 5) evidence.push_back({i, rng.uniform() < 0.5 ? Index{0} : Index{1}});
  return condition(network, evidence);
}

void add_random_pair(Network& network, Index a, Index b, Rng& rng) {
  std::vector<double> table(std::size_t{network.cardinalities[a]} * network.cardinalities[b]);
  for (double& entry : table) entry = std::exp(rng.normal());
  network.add_factor(std::array{a, b}, table);
}

/// 20 x 20.
Network random_grid() {
  Network network;
  network.cardinalities.assign(400, 2);
  Rng rng(12, 0);
  for (Index i = 0; i < 400; ++i) {
    if (i % 20 < 19) add_random_pair(network, i, i + 1, rng);
    if (i + 20 < 400) add_random_pair(network, i, i + 20, rng);
  }
  return network;
}

/// 80 variables with ten neighbours each, on average.
Network random_graph_of_levels() {
  Network network;
  for (Index i = 0; i < 80; ++i) network.cardinalities.push_back(i % 4 == 0 ? 4 : 2);
  Rng rng(13, 0);
  for (Index i = 0; i < 80; ++i) {
    for (Index j = i + 1; j < 80; ++j) {
      if (rng.uniform() < 10.0 / 79.0) add_random_pair(network, i, j, rng);
    }
  }
  return network;
}

/// The network that the environment names; else `other`.
Network named_network(Network (*other)()) {
  const char* path = std::getenv("POISE_BENCH_NETWORK");
  if (path == nullptr) return other();
  Network network = read_network(path);
  const char* evidence = std::getenv("POISE_BENCH_EVIDENCE");
  return evidence == nullptr ? network : condition(network, read_evidence(evidence, network));
}

const MarkovNetwork& network_target() {
  static const MarkovNetwork target(named_network(random_bayesian_network));
  return target;
}

template <class K>
void advance_network(benchmark::State& state, const K& kernel, std::uint64_t batch, std::uint64_t items) {
  const MarkovNetwork& target = network_target();
  const std::vector<Value> zeros(target.num_variables(), 0);
  Chain<MarkovNetwork, K> chain(target, zeros, zeros, Rng(1, 0));
  kernel.prepare(target, chain.state, chain.scratch);
  Chain<MarkovNetwork, K>* const alone[] = {&chain};
  for (auto _ : state) advance<MarkovNetwork, K>(kernel, target, alone, batch);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * items));
}

void network_step(benchmark::State& state) {
  advance_network(state, LocallyBalanced<MarkovNetwork>{BalancingFunction()}, 10000, 10000);
}
BENCHMARK(network_step);

void network_gibbs(benchmark::State& state) {
  std::uint64_t free = 0;
  for (Index i = 0; i < network_target().num_variables(); ++i) free += network_target().cardinality(i) > 1 ? 1 : 0;
  advance_network(state, Gibbs<MarkovNetwork>(), 100, 100 * free);
}
BENCHMARK(network_gibbs);

/// Chains across lanes, on one core; conditionals are averaged on the way, as marginals need them. An item is the
/// update of one variable of one chain.
void sweeps(benchmark::State& state, const std::shared_ptr<const MarkovNetwork>& target) {
  const auto chains = static_cast<std::size_t>(state.range(0));
  EngineOptions options;
  options.starts.assign(chains, std::vector<Value>(target->num_variables(), 0));
  options.reference.assign(target->num_variables(), 0);
  const std::unique_ptr<Engine> engine = make_lane_engine(target, lane_source(target), options).engine;
  const std::vector<ChainGroup> groups = engine->share_out(1);
  for (const ChainGroup& group : groups) engine->start_marginals(group, true);
  for (auto _ : state) {
    for (const ChainGroup& group : groups) engine->advance(group, 10);
  }
  std::uint64_t free = 0;
  for (Index i = 0; i < target->num_variables(); ++i) free += target->cardinality(i) > 1 ? 1 : 0;
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * 10 * chains * free));
}
void network_lanes(benchmark::State& state) { sweeps(state, std::make_shared<const MarkovNetwork>(network_target())); }
void grid_lanes(benchmark::State& state) { sweeps(state, std::make_shared<const MarkovNetwork>(random_grid())); }
void levels_lanes(benchmark::State& state) {
  sweeps(state, std::make_shared<const MarkovNetwork>(random_graph_of_levels()));
}
BENCHMARK(network_lanes)->Arg(1)->Arg(4)->Arg(16)->Arg(64);
BENCHMARK(grid_lanes)->Arg(1)->Arg(4)->Arg(16)->Arg(64);
BENCHMARK(levels_lanes)->Arg(1)->Arg(4)->Arg(16)->Arg(64);

/// Tables of up to 2^range entries. What is read for an update: of every factor of a variable one entry for each level.
void network_collapse(benchmark::State& state) {
  const Network network = named_network(random_grid);
  const CollapseOptions options{.most_entries = std::exp2(static_cast<double>(state.range(0)))};
  for (auto _ : state) benchmark::DoNotOptimize(Collapse(network, options));
  const Collapse collapse(network, options);
  const Network& core = collapse.core();
  std::size_t largest = 0;
  std::size_t reads = 0;
  for (std::size_t f = 0; f < core.num_factors(); ++f) {
    largest = std::max(largest, core.table_size(f));
    for (const Index i : core.scope(f)) reads += core.cardinalities[i];
  }
  state.counters["removed"] = collapse.num_removed();
  state.counters["kept"] = core.num_variables();
  state.counters["largest_table"] = static_cast<double>(largest);
  state.counters["reads_per_sweep"] = static_cast<double>(reads);
}
BENCHMARK(network_collapse)->Arg(12)->Arg(16)->Unit(benchmark::kMillisecond);

/// An item is a removed variable, its conditional probabilities added up on the way.
void network_collapse_draw(benchmark::State& state) {
  const Network network = named_network(random_grid);
  const Collapse collapse(network, {.most_entries = std::exp2(static_cast<double>(state.range(0)))});
  std::size_t moves = 0;
  for (Index i = 0; i < network.num_variables(); ++i) moves += network.levels(i) - 1;
  const std::vector<Value> core(collapse.kept().size(), 0);
  std::vector<Value> levels(network.num_variables());
  std::vector<double> sums(moves, 0.0);
  Rng rng(1, 0);
  for (auto _ : state) collapse.draw(core, rng, levels, sums);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * collapse.num_removed());
}
BENCHMARK(network_collapse_draw)->Arg(12)->Arg(16);

/// Writes a UAI file of about 100 MB: few tables of long numbers, or many of short ones.
std::string large_file(bool long_numbers) {
  const std::string path = (std::filesystem::temp_directory_path() / "poise_bench_XXXXXX.uai").string();
  std::vector<char> name(path.begin(), path.end());
  name.push_back('\0');
  const int descriptor = ::mkstemps(name.data(), 4);
  std::FILE* file = ::fdopen(descriptor, "w");
  const int variables = 1000;
  const int factors = long_numbers ? 78 : 3'000'000;
  const int scope = long_numbers ? 16 : 2;
  std::fprintf(file, "MARKOV\n%d\n", variables);
  for (int i = 0; i < variables; ++i) std::fprintf(file, "2 ");
  std::fprintf(file, "\n%d\n", factors);
  for (int f = 0; f < factors; ++f) {
    std::fprintf(file, "%d", scope);
    for (int k = 0; k < scope; ++k) std::fprintf(file, " %d", (f + k * (1 + f % 7)) % variables);
    std::fprintf(file, "\n");
  }
  Rng rng(5, 5);
  for (int f = 0; f < factors; ++f) {
    std::fprintf(file, "%d\n", 1 << scope);
    for (int k = 0; k < 1 << scope; ++k) {
      std::fprintf(file, long_numbers ? "%.16f " : "%.2f ", 0.01 + 0.98 * rng.uniform());
    }
  }
  std::fclose(file);
  return name.data();
}

/// Reads in a process of its own, whose memory can be measured.
void read_uai(benchmark::State& state, bool long_numbers) {
  const std::string path = large_file(long_numbers);
  double seconds = 0.0;
  double peak = 0.0;
  double tables = 0.0;
  for (auto _ : state) {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    const pid_t child = ::fork();
    if (child == 0) {
      struct rusage before {};
      ::getrusage(RUSAGE_SELF, &before);
      const auto start = std::chrono::steady_clock::now();
      const Network network = read_network(path);
      const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      struct rusage after {};
      ::getrusage(RUSAGE_SELF, &after);
      const double numbers[3] = {took, 1024.0 * static_cast<double>(after.ru_maxrss - before.ru_maxrss),
                                 8.0 * static_cast<double>(network.values.size())};
      const ssize_t written = ::write(ends[1], numbers, sizeof numbers);
      ::_exit(written == sizeof numbers ? 0 : 1);
    }
    double numbers[3] = {};
    if (::read(ends[0], numbers, sizeof numbers) != sizeof numbers) std::abort();
    ::waitpid(child, nullptr, 0);
    ::close(ends[0]);
    ::close(ends[1]);
    seconds = numbers[0];
    peak = numbers[1];
    tables = numbers[2];
    state.SetIterationTime(seconds);
  }
  state.counters["file_MB"] = static_cast<double>(std::filesystem::file_size(path)) / 1e6;
  state.counters["peak_over_tables"] = peak / tables;
  state.counters["seconds"] = seconds;
  std::filesystem::remove(path);
}
BENCHMARK_CAPTURE(read_uai, long_numbers, true)->UseManualTime()->Iterations(1);
BENCHMARK_CAPTURE(read_uai, small_tables, false)->UseManualTime()->Iterations(1);

}  // namespace
