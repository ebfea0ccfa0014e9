/// The best state of a model: parts of the search against recomputation, small models against enumeration, limits.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include <nlohmann/json.hpp>

#include <poise/extend/engines/own_model.hpp>
#include <poise/model.hpp>
#include <poise/network.hpp>
#include <poise/optimize.hpp>
#include "inference/optimize/crossover.hpp"
#include "inference/optimize/enumerate_spins.hpp"
#include "inference/optimize/spin_goal.hpp"
#include "inference/optimize/spin_lanes.hpp"
#include "inference/optimize/spin_reduction.hpp"
#include "models/ising/ising_model.hpp"
#include "models/network/independent_set.hpp"
#include "support/input.hpp"
#include "support/program.hpp"
#include "support/small_rbms.hpp"

namespace poise::optimize_test {

using namespace testing_program;

/// A random graph whose weights and fields `draw` gives; a number of 0 leaves the edge or field out.
struct RandomProblem {
  RandomProblem(Index variables, double density, std::uint64_t seed, const std::function<double(Rng&)>& draw,
                bool fields) {
    Rng rng(seed, 0);
    field.assign(variables, 0.0);
    for (Index i = 0; i < variables; ++i) {
      if (fields) field[i] = draw(rng);
      for (Index j = 0; j < i; ++j) {
        if (rng.uniform() < density) edges.push_back({j, i, draw(rng)});
      }
    }
  }
  [[nodiscard]] SpinProblem problem() const { return spin_problem(field, edges); }

  std::vector<double> field;
  std::vector<Edge> edges;
};

double sign(Rng& rng) { return rng.uniform() < 0.5 ? -1.0 : 1.0; }
double small(Rng& rng) { return std::floor(9.0 * rng.uniform()) - 4.0; }
double real(Rng& rng) { return rng.normal(); }

std::vector<Spin> random_spins(Index n, Rng& rng) {
  std::vector<Spin> spins(n);
  for (Spin& spin : spins) spin = rng.uniform() < 0.5 ? -1 : 1;
  return spins;
}

std::int64_t best_by_enumeration(const SpinProblem& problem) {
  std::int64_t best = std::numeric_limits<std::int64_t>::min();
  for (std::uint32_t state = 0; state < 1U << problem.num_variables(); ++state) {
    std::vector<Spin> spins;
    for (Index i = 0; i < problem.num_variables(); ++i) spins.push_back((state >> i & 1U) != 0 ? 1 : -1);
    best = std::max(best, problem.value(spins));
  }
  return best;
}

IsingModel ising_of(const RandomProblem& random) {
  IsingModel ising;
  ising.variables = static_cast<Index>(random.field.size());
  ising.field = random.field;
  ising.edges = random.edges;
  ising.name = "random";
  return ising;
}

TEST(SpinProblem, NumbersAreMultiplesOfTheirUnit) {
  const SpinProblem problem = spin_problem({0.3, -0.6, 0.0}, {{0, 1, 1.5}, {1, 2, -0.9}});
  EXPECT_EQ(problem.field, (std::vector<std::int64_t>{1, -2, 0}));
  EXPECT_EQ(problem.weight, (std::vector<std::int64_t>{5, 5, -3, -3}));
  EXPECT_EQ(problem.strength(1), 10);
  EXPECT_FALSE(problem.is_symmetric());
  EXPECT_EQ(problem.value(std::vector<Spin>{1, -1, 1}), 1 + 2 - 5 + 3);
}

TEST(Crossover, GainIsThatOfRecomputation) {
  for (const bool fields : {false, true}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const SpinProblem problem = RandomProblem(60, 0.03, seed, small, fields).problem();
      Crossover crossover(problem);
      Rng rng(seed, 1);
      std::vector<Spin> child = random_spins(60, rng);
      const std::vector<Spin> other = random_spins(60, rng);
      const std::int64_t before = problem.value(child);
      const Crossover::Outcome outcome = crossover.improve(child, other, rng);
      EXPECT_EQ(problem.value(child), before + outcome.gain);
      EXPECT_GE(problem.value(child), std::max(before, problem.value(other)));
      EXPECT_EQ(crossover.improve(child, other, rng).gain, 0);
    }
  }
}

TEST(SpinReduction, LosesNothingAndExpandsToTheBest) {
  for (const auto& draw : {sign, small}) {
    for (const bool fields : {false, true}) {
      for (std::uint64_t seed = 0; seed < 40; ++seed) {
        const SpinProblem problem = RandomProblem(12, 0.25, seed, draw, fields).problem();
        const SpinReduction reduction(problem, {});
        SearchRecord record{SolutionPool(1), 0, {}, {}};
        enumerate_spins(reduction.core(), FreeFlips(reduction.core()), record);
        const std::vector<Spin> spins = reduction.expand(record.pool.best().spins);
        EXPECT_EQ(problem.value(spins), best_by_enumeration(problem)) << seed;
      }
    }
  }
}

TEST(SpinReduction, SolvesTreesAndKeepsWhatIsFixed) {
  std::vector<Edge> edges;
  for (Index i = 1; i < 1000; ++i) edges.push_back({i / 2, i, i % 3 == 0 ? 1.0 : -2.0});
  const SpinProblem problem = spin_problem(std::vector<double>(1000, 0.0), edges);
  const SpinReduction free(problem, {});
  EXPECT_EQ(free.core().num_variables(), 0U);
  std::int64_t all = 0;
  for (const Edge& edge : edges) all += static_cast<std::int64_t>(std::abs(edge.coupling));
  EXPECT_EQ(problem.value(free.expand({})), all);
  std::vector<Spin> fixed(1000, 0);
  fixed[7] = -1;
  fixed[15] = 1;
  const std::vector<Spin> spins = SpinReduction(problem, fixed).expand({});
  EXPECT_EQ(spins[7], -1);
  EXPECT_EQ(spins[15], 1);
}

/// Values that lanes keep beside their sweeps are those of their states, whatever the width of a lane.
TEST(SpinLanes, ValuesFollowSweepsAndExchanges) {
  std::vector<Edge> star;
  for (Index i = 1; i <= 300; ++i) star.push_back({0, i, i % 2 == 0 ? 1.0 : -1.0});
  const std::vector<SpinProblem> problems = {
      RandomProblem(50, 0.1, 1, sign, false).problem(), RandomProblem(50, 0.1, 2, small, true).problem(),
      RandomProblem(70, 1.0, 3, small, true).problem(), spin_problem(std::vector<double>(301, 0.0), star),
      spin_problem({300000.0, 1.0}, {{0, 1, -70001.0}})};
  for (const SpinProblem& problem : problems) {
    const auto lanes = make_spin_lanes(problem, 6.0, 1, 0);
    lanes->set_random();
    for (unsigned lane = 0; lane < lanes->lanes(); ++lane) lanes->temperatures[lane] = 0.1 * lane;
    lanes->renew();
    lanes->recompute_values();
    for (int sweep = 0; sweep < 50; ++sweep) {
      lanes->sweep_with_values(4);
      std::vector<bool> exchange(lanes->lanes(), false);
      for (unsigned lane = sweep % 2; lane + 1 < lanes->lanes(); lane += 4) exchange[lane] = true;
      lanes->exchange_neighbours(exchange);
    }
    const std::vector<std::int64_t> kept = lanes->values();
    lanes->recompute_values();
    EXPECT_EQ(kept, lanes->values());
  }
}

/// A hub of degree 300 that feels 201 where it is at its best: more than a byte holds, and less than nothing if the sum
/// wrapped around. Its flip, which all but 100 leaves follow, then loses 2 in a sweep.
SpinProblem hub_problem() {
  std::vector<double> field(301, 0.0);
  std::vector<Edge> star;
  for (Index i = 1; i <= 300; ++i) {
    star.push_back({0, i, 1.0});
    if (i <= 100) field[i] = -2.0;
  }
  field[0] = 101.0;
  return spin_problem(field, star);
}

TEST(SpinLanes, ChainsAtTemperatureZeroOnlyClimb) {
  for (const SpinProblem& problem : {RandomProblem(200, 0.05, 4, small, true).problem(), hub_problem()}) {
    const auto lanes = make_spin_lanes(problem, 6.0, 1, 0);
    lanes->set_random();
    std::fill(lanes->temperatures.begin(), lanes->temperatures.end(), 0.0);
    lanes->renew();
    lanes->recompute_values();
    for (int sweep = 0; sweep < 20; ++sweep) {
      const std::vector<std::int64_t> before = lanes->values();
      lanes->sweep_with_values(1);
      for (unsigned lane = 0; lane < lanes->lanes(); ++lane) EXPECT_GE(lanes->values()[lane], before[lane]);
    }
  }
}

TEST(SpinLanes, WeightsBeyondThirtyTwoBitsAreSearchedToo) {
  Rng rng(8, 0);
  RandomProblem random(14, 1.0, 8, real, true);
  for (Edge& edge : random.edges) edge.coupling *= std::exp(5.0 * rng.normal());
  const OptimizeAnswer answer = find_best(ising_model(ising_of(random)), {.sweeps = 2000, .solutions = 2});
  const SpinProblem problem = random.problem();
  std::vector<Spin> spins;
  for (const Value level : answer.best().state) spins.push_back(level != 0 ? 1 : -1);
  EXPECT_EQ(problem.value(spins), best_by_enumeration(problem));
}

TEST(Optimize, SmallModelsAreSolvedAndProved) {
  for (const auto& draw : {sign, small, real}) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const RandomProblem random(14, 0.6, seed, draw, seed % 2 == 0);
      const Model model = ising_model(ising_of(random));
      const OptimizeAnswer answer = find_best(model, {.sweeps = 10});
      const SpinProblem problem = random.problem();
      std::vector<Spin> spins;
      for (const Value level : answer.best().state) spins.push_back(level != 0 ? 1 : -1);
      EXPECT_EQ(problem.value(spins), best_by_enumeration(problem));
      EXPECT_TRUE(answer.optimal);
      EXPECT_EQ(answer.bound, answer.best().objective);
    }
  }
}

/// Too large to be enumerated, small enough for the search to find the planted state: all couplings can be satisfied.
Model planted_model(Index n, std::uint64_t seed) {
  RandomProblem random(n, 0.1, seed, sign, false);
  Rng rng(seed, 9);
  const std::vector<Spin> planted = random_spins(n, rng);
  for (Edge& edge : random.edges) edge.coupling = planted[edge.i] * planted[edge.j];
  return ising_model(ising_of(random));
}

TEST(Optimize, FindsPlantedStates) {
  const Model model = planted_model(200, 3);
  const OptimizeAnswer answer = find_best(model, {.sweeps = 2000, .solutions = 5});
  RandomProblem random(200, 0.1, 3, sign, false);
  EXPECT_NEAR(answer.best().objective, static_cast<double>(random.edges.size()), 1e-9);
  EXPECT_FALSE(answer.optimal);
  ASSERT_GE(answer.solutions.size(), 2U);
  EXPECT_LT(answer.solutions[1].objective, answer.best().objective);  // the mirror image is the same state
  EXPECT_FALSE(answer.history.empty());
  EXPECT_EQ(answer.history.back().objective, answer.best().objective);
}

/// A triangle, an edge with a field at one end, and a variable without neighbours: the triangle and the last variable
/// can be flipped at no cost, each by itself.
TEST(Optimize, ListsStatesThatAreDifferentUpToFreeFlips) {
  RandomProblem problem(6, 0.0, 1, sign, false);
  problem.edges = {{0, 1, 1.0}, {1, 2, 1.0}, {0, 2, -1.0}, {3, 4, 2.0}};
  problem.field[3] = 1.0;
  const OptimizeAnswer answer = find_best(ising_model(ising_of(problem)), {.sweeps = 10, .solutions = 100});
  EXPECT_TRUE(answer.optimal);
  ASSERT_EQ(answer.solutions.size(), 4U * 4U);  // of the triangle, and of the edge
  for (const Solution& solution : answer.solutions) {
    EXPECT_EQ(solution.state[0], 1);
    EXPECT_EQ(solution.state[5], 1);
    EXPECT_EQ(solution.count, 1U);
  }
  EXPECT_NEAR(answer.solutions[2].objective, 1.0 + 3.0,
              1e-12);  // three of four ways to frustrate the triangle are best
  EXPECT_LT(answer.solutions[3].objective, 1.0 + 3.0);
}

Model set_model(Index vertices, const std::vector<std::pair<Index, Index>>& edges, double beta = 1.0) {
  Model model = network_model(
      std::make_shared<Network>(network_of_sets(SimpleGraph{vertices, edges}, VertexSets::independent, beta, "sets")));
  model.objective = "size";
  return model;
}

TEST(Optimize, ListsAllMaximalSets) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    // The first one is a single edge, whose price leaves no field.
    const Index n = seed == 0 ? 2 : 9;
    std::vector<std::pair<Index, Index>> edges;
    for (const Edge& edge : RandomProblem(n, seed == 0 ? 1.0 : 0.3, seed, sign, false).edges) {
      edges.emplace_back(edge.i, edge.j);
    }
    std::vector<std::size_t> sizes;
    for (std::uint32_t set = 0; set < 1U << n; ++set) {
      const auto has = [&](Index i) { return (set >> i & 1U) != 0; };
      std::vector<bool> blocked(n, false);
      bool independent = true;
      for (const auto& [i, j] : edges) {
        independent = independent && !(has(i) && has(j));
        if (has(i)) blocked[j] = true;
        if (has(j)) blocked[i] = true;
      }
      bool maximal = true;
      for (Index i = 0; i < n; ++i) maximal = maximal && (has(i) || blocked[i]);
      if (independent && maximal) sizes.push_back(static_cast<std::size_t>(std::popcount(set)));
    }
    std::sort(sizes.rbegin(), sizes.rend());
    const OptimizeAnswer answer = find_best(set_model(n, edges), {.sweeps = 10, .solutions = 100});
    ASSERT_EQ(answer.solutions.size(), sizes.size()) << seed;
    for (std::size_t k = 0; k < sizes.size(); ++k) EXPECT_EQ(answer.solutions[k].objective, sizes[k]);
  }
}

TEST(Optimize, SetsKeepWhatIsFixedAndIgnoreBeta) {
  const std::vector<std::pair<Index, Index>> path = {{0, 1}, {1, 2}};
  for (const double beta : {-1.0, 0.0, 2.0}) {
    EXPECT_EQ(find_best(set_model(3, path, beta), {.sweeps = 5}).best().objective, 2.0) << beta;
  }
  OptimizeStart start;
  start.fixed = {std::nullopt, Value{1}, std::nullopt};
  for (const std::size_t solutions : {1, 3}) {
    const OptimizeAnswer answer = find_best(set_model(3, path), {.sweeps = 5, .solutions = solutions}, start);
    EXPECT_EQ(answer.best().state, (std::vector<Value>{0, 1, 0}));
    EXPECT_EQ(answer.solutions.size(), 1U);
  }
  start.fixed = {Value{0}, Value{0}, std::nullopt};
  EXPECT_EQ(find_best(set_model(3, path), {.sweeps = 5}, start).best().state, (std::vector<Value>{0, 0, 1}));
  start.fixed = {Value{1}, Value{1}, std::nullopt};
  EXPECT_EQ(testing::refusal([&] { (void)find_best(set_model(3, path), {.sweeps = 5}, start); }),
            "no state has positive probability: neighbours x[0] and x[1] are both fixed at level 1");
}

/// A network that happens to be a hard-core model has states that are no maximal sets.
TEST(Optimize, ListsOfNetworksHaveAllStates) {
  Model model = set_model(3, {{0, 1}, {1, 2}});
  model.objective.clear();
  const OptimizeAnswer answer = find_best(model, {.sweeps = 5, .solutions = 100});
  EXPECT_EQ(answer.objective, "log_prob");
  EXPECT_EQ(answer.solutions.size(), 5U);
}

TEST(Optimize, TheAnswerOfSweepsDoesNotDependOnThreads) {
  const RandomProblem random(300, 0.05, 5, small, true);
  const Model model = ising_model(ising_of(random));
  const OptimizeAnswer one = find_best(model, {.sweeps = 1500, .seed = 4, .threads = 1});
  for (const unsigned threads : {2U, 5U}) {
    const OptimizeAnswer many = find_best(model, {.sweeps = 1500, .seed = 4, .threads = threads});
    EXPECT_EQ(one.best().state, many.best().state);
    ASSERT_EQ(one.history.size(), many.history.size());
    for (std::size_t k = 0; k < one.history.size(); ++k) EXPECT_EQ(one.history[k].sweeps, many.history[k].sweeps);
  }
}

TEST(Optimize, ASearchResumesBitwise) {
  const Model model = ising_model(ising_of(RandomProblem(300, 0.05, 6, small, true)));
  const OptimizeOptions options{.sweeps = 3000, .seed = 2, .threads = 1};
  const OptimizeAnswer whole = find_best(model, options);
  std::string state;
  std::atomic<bool> stop = false;
  int rounds = 0;
  OptimizeHooks hooks;
  hooks.stop = &stop;
  hooks.after_round = [&](const std::function<std::string()>& save) {
    if (++rounds != 5) return;
    state = save();
    stop = true;
  };
  EXPECT_TRUE(find_best(model, options, {}, hooks).interrupted);
  OptimizeStart start;
  start.resumed = state;
  const OptimizeAnswer resumed = find_best(model, options, start);
  EXPECT_EQ(resumed.best().state, whole.best().state);
  ASSERT_EQ(resumed.history.size(), whole.history.size());
  EXPECT_EQ(resumed.history.back().sweeps, whole.history.back().sweeps);
}

TEST(Optimize, FixedVariablesKeepTheirLevel) {
  const Model model = planted_model(100, 4);
  OptimizeStart start;
  start.fixed.assign(100, std::nullopt);
  const OptimizeAnswer free = find_best(model, {.sweeps = 500});
  start.fixed[3] = static_cast<Value>(1 - free.best().state[3]);
  start.fixed[9] = free.best().state[9];
  const OptimizeAnswer fixed = find_best(model, {.sweeps = 500}, start);
  EXPECT_EQ(fixed.best().state[3], *start.fixed[3]);
  EXPECT_EQ(fixed.best().state[9], *start.fixed[9]);
  EXPECT_LT(fixed.best().objective, free.best().objective);
}

TEST(Optimize, StartsFromGivenStatesAndStopsAtTheTarget) {
  const Model model = planted_model(150, 5);
  const OptimizeAnswer found = find_best(model, {.sweeps = 3000});
  OptimizeStart start;
  start.states = {found.best().state};
  OptimizeOptions options{.sweeps = 1'000'000'000};
  options.target = found.best().objective;
  const OptimizeAnswer again = find_best(model, options, start);
  EXPECT_EQ(again.best().objective, found.best().objective);
  EXPECT_LT(again.history.back().sweeps, 10U);
}

TEST(Optimize, BadInputIsRefusedInOneSentence) {
  const Model model = planted_model(20, 1);
  OptimizeStart start;
  start.states = {{0, 1}};
  start.fixed.assign(20, Value{3});
  try {
    (void)find_best(model, {.seconds = -1.0, .solutions = 0, .device = Device::cuda}, start);
    FAIL();
  } catch (const InputError& error) {
    const std::string words = error.what();
    for (const char* part : {"--device", "--seconds", "--solutions", "--init", "--fix"}) {
      EXPECT_NE(words.find(part), std::string::npos) << words;
    }
  }
}

/// The best log p of an RBM, and what `find_best` says, with the first variable fixed or not.
void expect_best_of_rbm(Index visible, bool proved) {
  const RbmWeights weights = testing::random_rbm(visible, 6, 2.0, 3);
  double best = -std::numeric_limits<double>::infinity();
  for (std::uint32_t state = 0; state < 1U << visible; ++state) {
    std::vector<Value> x(visible);
    for (Index i = 0; i < visible; ++i) x[i] = state >> i & 1U;
    best = std::max(best, testing::plain_log_prob(weights, x));
  }
  const Model model = rbm_model("small", std::make_shared<const Rbm>(weights));
  const OptimizeAnswer answer = find_best(model, {.sweeps = 2000});
  EXPECT_NEAR(answer.best().objective, best, 1e-6);
  EXPECT_EQ(answer.optimal, proved);
  OptimizeStart start;
  start.fixed.assign(visible, std::nullopt);
  start.fixed[0] = static_cast<Value>(1 - answer.best().state[0]);
  if (proved) {
    EXPECT_LT(find_best(model, {.sweeps = 1}, start).best().objective, best);
  } else {
    EXPECT_THROW((void)find_best(model, {.sweeps = 1}, start), InputError);
  }
}

TEST(Optimize, SmallRbmsAreEnumeratedAndOthersSearchedByTempering) {
  expect_best_of_rbm(8, true);
  expect_best_of_rbm(13, false);
}

class OptimizeProgram : public ProgramTest {
 protected:
  [[nodiscard]] nlohmann::json json(const std::string& name) const {
    return nlohmann::json::parse(read_text(in_work(name)));
  }
  /// The weights of a random graph, with a hub of degree 300.
  void write_graph() {
    const RandomProblem random(400, 0.02, 7, sign, false);
    std::vector<Edge> edges;
    for (const Edge& edge : random.edges) {
      if (edge.i != 0) edges.push_back(edge);
    }
    for (Index i = 1; i <= 300; ++i) edges.push_back({0, i, i % 2 == 0 ? 1.0 : -1.0});
    std::string text = "400 " + std::to_string(edges.size()) + "\n";
    for (const Edge& edge : edges) {
      text += std::to_string(edge.i + 1) + " " + std::to_string(edge.j + 1) + (edge.coupling > 0 ? " 1\n" : " -1\n");
    }
    write_text(in_work("graph.mc"), text);
  }
};

TEST_F(OptimizeProgram, WritesEverythingItFinds) {
  write_graph();
  const Outcome outcome = run({"optimize", "maxcut:file=graph.mc", "--sweeps", "2000", "--solutions", "3", "--json",
                               "best.json", "--out", "best.txt", "--plot", "best.svg"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json answer = json("best.json");
  EXPECT_EQ(answer.at("best").at("state").size(), 400U);
  EXPECT_EQ(answer.at("objective"), "cut");
  EXPECT_EQ(answer.at("optimal"), false);
  EXPECT_TRUE(answer.at("bound").is_null());
  EXPECT_EQ(answer.at("solutions").size(), 3U);
  EXPECT_NE(read_text(in_work("best.svg")).find("<svg"), std::string::npos);
  // The cut, counted from the file and the state.
  std::istringstream graph(read_text(in_work("graph.mc")));
  std::size_t n = 0, m = 0;
  graph >> n >> m;
  double cut = 0.0;
  for (std::size_t e = 0; e < m; ++e) {
    std::size_t i = 0, j = 0;
    double weight = 0.0;
    graph >> i >> j >> weight;
    const auto& state = answer.at("best").at("state");
    if (state.at(i - 1) != state.at(j - 1)) cut += weight;
  }
  EXPECT_EQ(answer.at("best").at("objective"), cut);
  const Outcome again =
      run({"optimize", "maxcut:file=graph.mc", "--sweeps", "1", "--init", "best.txt", "--json", "again.json"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_GE(json("again.json").at("best").at("objective").get<double>(), cut);
}

TEST_F(OptimizeProgram, ResumesAfterAKill) {
  write_graph();
  const Arguments words = {"optimize", "maxcut:file=graph.mc", "--sweeps", "60000", "--threads", "1"};
  Arguments whole = words;
  whole.insert(whole.end(), {"--out", "whole.txt"});
  ASSERT_EQ(run(whole).code, 0);
  Arguments killed = words;
  killed.insert(killed.end(), {"--out", "killed.txt", "--checkpoint", "--checkpoint-every", "0.05"});
  start(killed);
  wait_until("a checkpoint", [&] { return files().contains("killed.txt.checkpoint"); });
  ::kill(child_, SIGKILL);
  wait();
  const Outcome anew = run(killed);
  EXPECT_EQ(anew.code, 2);
  EXPECT_NE(anew.err.find("unfinished search"), std::string::npos) << anew.err;
  const Outcome resumed = run({"resume", "killed.txt"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(read_text(in_work("killed.txt")), read_text(in_work("whole.txt")));
  EXPECT_FALSE(files().contains("killed.txt.checkpoint"));
}

TEST_F(OptimizeProgram, CtrlCGivesTheBestSoFar) {
  write_graph();
  start({"optimize", "maxcut:file=graph.mc", "--seconds", "400", "--json", "best.json", "--out", "best.txt"});
  wait_for_progress("", "best");
  ::kill(child_, SIGINT);
  const Outcome outcome = wait();
  EXPECT_EQ(outcome.code, 130);
  EXPECT_EQ(json("best.json").at("interrupted"), true);
  EXPECT_TRUE(files().contains("best.txt.checkpoint"));
}

TEST_F(OptimizeProgram, FindsIndependentSetsAndCliques) {
  // The complement of a five-cycle is a five-cycle: the largest set has two vertices either way.
  write_text(in_work("cycle.txt"), "c five\np edge 5 5\ne 1 2\ne 2 3\ne 3 4\ne 4 5\ne 5 1\n");
  for (const char* model : {"mis:file=cycle.txt", "clique:file=cycle.txt"}) {
    const Outcome outcome = run({"optimize", model, "--json", "best.json", "--solutions", "9"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const nlohmann::json answer = json("best.json");
    EXPECT_EQ(answer.at("objective"), "size");
    EXPECT_EQ(answer.at("best").at("objective"), 2.0);
    EXPECT_EQ(answer.at("optimal"), true);
    EXPECT_EQ(std::count_if(answer.at("solutions").begin(), answer.at("solutions").end(),
                            [](const auto& solution) { return solution.at("objective") == 2.0; }),
              5);
  }
  EXPECT_EQ(run({"sample", "mis:file=cycle.txt", "--draws", "100"}).code, 0);
}

TEST_F(OptimizeProgram, FixesVariablesFromAFileAndRefusesBadOnes) {
  write_graph();
  write_text(in_work("fix.txt"), "0 1\n5 = -1  # a comment\n");
  const Outcome outcome =
      run({"optimize", "maxcut:file=graph.mc", "--sweeps", "300", "--fix", "fix.txt", "--json", "best.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(json("best.json").at("best").at("state").at(0), 1);
  EXPECT_EQ(json("best.json").at("best").at("state").at(5), -1);
  const std::pair<const char*, const char*> bad[] = {{"0 1 2\n", "line 1: found 3 words"},
                                                     {"400 1\n", "found '400'"},
                                                     {"1 7\n", "found '7'"},
                                                     {"1 1\n1 -1\n", "line 2"}};
  for (const auto& [text, words] : bad) {
    write_text(in_work("bad.txt"), text);
    const Outcome refused = run({"optimize", "maxcut:file=graph.mc", "--fix", "bad.txt"});
    EXPECT_EQ(refused.code, 2);
    EXPECT_NE(refused.err.find(words), std::string::npos) << refused.err;
  }
  EXPECT_EQ(run({"optimize", "maxcut:file=graph.mc", "--init", "fix.txt"}).code, 2);
  EXPECT_EQ(run({"optimize", "maxcut:file=graph.mc", "--target", "many"}).code, 2);
  EXPECT_EQ(run({"optimize", "maxcut:file=graph.mc", "--device", "cuda"}).code, 2);
}

}  // namespace poise::optimize_test
