/// What zeros rule out, and states of positive probability: against enumeration, and on larger problems made here.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>

#include "models/network/support.hpp"

namespace poise::support_search_test {

using State = std::vector<Value>;
using Holds = std::function<bool(std::span<const Index>)>;

Index below(Rng& rng, std::size_t n) { return static_cast<Index>(rng.uniform() * static_cast<double>(n)); }

/// Appends a factor that is positive exactly where `holds` is true of the levels of the scope.
void require(Network& network, const std::vector<Index>& scope, const Holds& holds) {
  std::size_t size = 1;
  for (const Index i : scope) size *= network.cardinalities[i];
  std::vector<double> table(size);
  std::vector<Index> levels(scope.size());
  for (std::size_t entry = 0; entry < size; ++entry) {
    std::size_t rest = entry;
    for (std::size_t k = scope.size(); k-- > 0; rest /= network.cardinalities[scope[k]]) {
      levels[k] = static_cast<Index>(rest % network.cardinalities[scope[k]]);
    }
    table[entry] = holds(levels) ? 0.25 : 0.0;
  }
  network.add_factor(scope, table);
}

Network with_levels(std::vector<Index> cardinalities) {
  Network network;
  network.cardinalities = std::move(cardinalities);
  return network;
}

bool differ(std::span<const Index> levels) { return levels[0] != levels[1]; }

std::size_t place_of(const Network& network, std::size_t factor, const State& x) {
  std::size_t place = 0;
  for (const Index i : network.scope(factor)) place = place * network.cardinalities[i] + x[i];
  return place;
}

std::set<std::size_t> zeros_at(const Network& network, const State& x) {
  std::set<std::size_t> zeros;
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    if (network.table(f)[place_of(network, f, x)] == 0.0) zeros.insert(f);
  }
  return zeros;
}

std::vector<State> states_of(const Network& network) {
  std::vector<State> states = {State(network.num_variables(), 0)};
  for (Index i = 0; i < network.num_variables(); ++i) {
    const std::size_t before = states.size();
    for (Index level = 1; level < network.cardinalities[i]; ++level) {
      for (std::size_t s = 0; s < before; ++s) {
        states.push_back(states[s]);
        states.back()[i] = static_cast<Value>(level);
      }
    }
  }
  return states;
}

/// Six variables of one to four levels; factors of up to three of them, the given share of their entries zero.
Network random_network(Rng& rng, Index factors, double share) {
  Network network;
  for (int i = 0; i < 6; ++i) network.cardinalities.push_back(1 + below(rng, 4));
  for (Index f = 0; f < factors; ++f) {
    std::set<Index> scope;
    for (Index k = below(rng, 3) + 1; k > 0; --k) scope.insert(below(rng, 6));
    require(network, {scope.rbegin(), scope.rend()}, [&](std::span<const Index>) { return rng.uniform() > share; });
  }
  return network;
}

/// Sums of two or three variables that must be even or odd: looking at one factor at a time tells little of them.
Network random_parities(Rng& rng) {
  Network network;
  for (int i = 0; i < 6; ++i) network.cardinalities.push_back(2 + below(rng, 3));
  for (Index f = 4 + below(rng, 5); f > 0; --f) {
    const Index i = below(rng, 4), j = i + 1, k = j + 1 + below(rng, 5 - j), odd = below(rng, 2);
    require(network, {k, i, j}, [&](std::span<const Index> x) { return (x[0] + x[1] + x[2]) % 2 == odd; });
    require(network, {i, k}, [&](std::span<const Index> x) { return x[0] != x[1] || x[0] > odd; });
  }
  return network;
}

/// The definition, taken at its word and repeated until nothing goes; nothing where nothing stays of a variable.
std::optional<std::vector<std::vector<bool>>> consistent_levels(const Network& network) {
  std::vector<std::vector<bool>> stays;
  for (const Index levels : network.cardinalities) stays.emplace_back(levels, true);
  const std::vector<State> states = states_of(network);
  const auto has_support = [&](std::size_t f, Index i, Index level) {
    for (const State& x : states) {
      if (x[i] != level || network.table(f)[place_of(network, f, x)] == 0.0) continue;
      bool all = true;
      for (const Index j : network.scope(f)) all = all && stays[j][x[j]];
      if (all) return true;
    }
    return false;
  };
  for (bool again = true; again;) {
    again = false;
    for (std::size_t f = 0; f < network.num_factors(); ++f) {
      for (const Index i : network.scope(f)) {
        for (Index level = 0; level < network.cardinalities[i]; ++level) {
          if (!stays[i][level] || has_support(f, i, level)) continue;
          stays[i][level] = false;
          again = true;
        }
        if (std::none_of(stays[i].begin(), stays[i].end(), [](bool stay) { return stay; })) return std::nullopt;
      }
    }
  }
  return stays;
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

State random_state(const Network& network, Rng& rng) {
  State x;
  for (const Index levels : network.cardinalities) x.push_back(static_cast<Value>(below(rng, levels)));
  return x;
}

/// From random starts with several seeds: always inside, and in different places.
void expect_solved(const Network& network, std::uint64_t seeds, std::size_t different) {
  const Domains domains = propagate_zeros(network);
  std::set<State> seen;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    Rng rng(seed, 0);
    const State x = repair(network, domains, random_state(network, rng), rng);
    EXPECT_TRUE(zeros_at(network, x).empty());
    for (Index i = 0; i < x.size(); ++i) {
      EXPECT_TRUE(domains.allows(i, x[i]));
    }
    seen.insert(x);
  }
  EXPECT_GE(seen.size(), different);
}

TEST(PropagateZeros, LeavesWhatTheDefinitionLeaves) {
  Rng rng(1, 0);
  int impossible = 0;
  std::size_t gone = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const Network network = random_network(rng, 3 + below(rng, 9), 0.8 * rng.uniform());
    const auto expected = consistent_levels(network);
    if (!expected) {
      EXPECT_NE(message_of([&] { (void)propagate_zeros(network); }).find("factor "), std::string::npos);
      ++impossible;
      continue;
    }
    const Domains domains = propagate_zeros(network);
    for (Index i = 0; i < network.num_variables(); ++i) {
      Index count = 0;
      for (Index level = 0; level < network.cardinalities[i]; ++level) {
        ASSERT_EQ(domains.allows(i, level), (*expected)[i][level]);
        count += domains.allows(i, level) ? 1 : 0;
      }
      ASSERT_EQ(domains.count[i], count);
      gone += network.cardinalities[i] - count;
    }
    for (const State& x : states_of(network)) {
      for (Index i = 0; i < x.size(); ++i) {
        if (!domains.allows(i, x[i])) {
          ASSERT_FALSE(zeros_at(network, x).empty());
        }
      }
    }
  }
  EXPECT_GT(impossible, 20);  // the trials are of all kinds
  EXPECT_LT(impossible, 200);
  EXPECT_GT(gone, 100U);
}

TEST(PropagateZeros, ObservedVariablesKeepTheirLevelOnly) {
  Network network = with_levels({3, 3, 2});
  require(network, {0, 1}, [](std::span<const Index> x) { return x[0] == x[1]; });
  const Network given = condition(network, {{0, 2}});
  const Domains domains = propagate_zeros(given);
  EXPECT_EQ(domains.count, (std::vector<Index>{1, 1, 2}));
  EXPECT_EQ(domains.allowed, (std::vector<std::uint8_t>{0, 0, 1, 0, 0, 1, 1, 1}));
  Rng rng(1, 0);
  const State x = repair(given, domains, {0, 0, 1}, rng);
  EXPECT_EQ(x, (State{2, 2, 1}));
}

TEST(PropagateZeros, FactorsMayShareATable) {
  Network network = with_levels({2, 2, 2, 2});
  require(network, {0, 1}, differ);
  for (const Index i : {1U, 2U}) {
    network.table_start.push_back(0);
    network.scopes.insert(network.scopes.end(), {i, i + 1});
    network.scope_start.push_back(network.scopes.size());
  }
  const Domains domains = propagate_zeros(condition(network, {{0, 1}}));
  EXPECT_EQ(domains.allowed, (std::vector<std::uint8_t>{0, 1, 1, 0, 0, 1, 1, 0}));
}

TEST(PropagateZeros, ConstantsAndFactorsWithoutZeros) {
  Network network = with_levels({2, 4});
  require(network, {0, 1}, [](std::span<const Index>) { return true; });
  EXPECT_EQ(propagate_zeros(network).count, (std::vector<Index>{2, 4}));
  const double zero = 0.0;
  network.add_factor({}, {&zero, 1});
  EXPECT_THROW((void)propagate_zeros(network), InputError);
  EXPECT_TRUE(propagate_zeros(Network{}).count.empty());
}

TEST(Repair, FindsAStateWhereverThereIsOne) {
  Rng rng(2, 0);
  int solved = 0, impossible = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const Network network =
        trial % 2 == 0 ? random_parities(rng) : random_network(rng, 8 + below(rng, 16), 0.5 * rng.uniform());
    const std::vector<State> states = states_of(network);
    const bool possible =
        std::any_of(states.begin(), states.end(), [&](const State& x) { return zeros_at(network, x).empty(); });
    if (!consistent_levels(network)) {
      ASSERT_FALSE(possible);
      continue;
    }
    const Domains domains = propagate_zeros(network);
    const State start = random_state(network, rng);
    if (possible) {
      ASSERT_TRUE(zeros_at(network, repair(network, domains, start, rng)).empty());
      ++solved;
      continue;
    }
    // The sentence is true: some state has this many zeros, the factor it names among them.
    const std::string message = message_of([&] { (void)repair(network, domains, start, rng); });
    ASSERT_EQ(message.find("no state has positive probability: "), 0U) << message;
    const std::size_t count = std::stoul(message.substr(message.find(": ") + 2));
    const std::size_t named = std::stoul(message.substr(message.find(" factor ", message.find("seen")) + 8));
    ASSERT_TRUE(std::any_of(states.begin(), states.end(), [&](const State& x) {
      const std::set<std::size_t> zeros = zeros_at(network, x);
      return zeros.size() == count && zeros.contains(named);
    })) << message;
    ++impossible;
  }
  EXPECT_GT(solved, 50);
  EXPECT_GT(impossible, 20);
}

TEST(Repair, AStateInsideStaysAsItIs) {
  Network network = with_levels({3, 3, 3, 5});
  for (const Index i : {0U, 1U}) require(network, {i, i + 1}, differ);
  Rng rng(3, 0);
  const State x = {0, 2, 1, 4};
  EXPECT_EQ(repair(network, propagate_zeros(network), x, rng), x);
  EXPECT_EQ(rng.position(), 0U);
}

TEST(Repair, KeepsVariablesWithoutZerosAndReplacesLevelsThatDoNotExist) {
  Network network = with_levels({2, 2, 200, 2});
  require(network, {0, 1}, differ);
  Rng rng(3, 0);
  const State x = repair(network, propagate_zeros(network), {1, 1, 77, 250}, rng);
  EXPECT_NE(x[0], x[1]);
  EXPECT_EQ(x[2], 77);
  EXPECT_LT(x[3], 2);
  EXPECT_THROW((void)repair(network, propagate_zeros(network), {1, 1}, rng), InputError);
}

TEST(Repair, SameSeedSameState) {
  Rng make(4, 0);
  const Network network = random_network(make, 8, 0.4);
  const Domains domains = propagate_zeros(network);
  Rng a(5, 1), b(5, 1);
  const State start(6, 0);
  EXPECT_EQ(repair(network, domains, start, a), repair(network, domains, start, b));
}

/// x[i] xor x[i+1] xor ... is given for every run of `length` variables.
Network parity_chain(Index variables, Index length, std::uint64_t seed) {
  Network network = with_levels(std::vector<Index>(variables, 2));
  Rng rng(seed, 0);
  for (Index first = 0; first + length <= variables; ++first) {
    std::vector<Index> scope(length);
    for (Index k = 0; k < length; ++k) scope[k] = first + k;
    const Index parity = below(rng, 2);
    require(network, scope, [&](std::span<const Index> x) {
      Index sum = 0;
      for (const Index level : x) sum ^= level;
      return sum == parity;
    });
  }
  return network;
}

TEST(Repair, SolvesCopiesAlongAChain) { expect_solved(parity_chain(200, 2, 1), 10, 2); }
TEST(Repair, SolvesParitiesAlongAChain) { expect_solved(parity_chain(200, 5, 2), 5, 3); }
TEST(Repair, SolvesALongChainThatWeightsAloneDoNot) { expect_solved(parity_chain(5000, 3, 3), 2, 1); }

TEST(Repair, ColoursASparseGraph) {
  constexpr Index n = 400;
  Network network = with_levels(std::vector<Index>(n, 3));
  Rng rng(6, 0);
  while (network.num_factors() < 2 * n) {  // the graph has the colouring i mod 3
    const Index i = below(rng, n), j = below(rng, n);
    if (i % 3 != j % 3) require(network, {i, j}, differ);
  }
  expect_solved(network, 5, 5);
}

/// Each person has two alleles and shows the unordered pair; a child has one of each parent's, as two switches say.
TEST(Repair, FindsGenotypesInAPedigree) {
  constexpr Index people = 150, founders = 30, alleles = 4;
  Network network;
  Evidence seen;
  Rng rng(7, 0);
  std::vector<std::vector<Index>> truth;
  for (Index i = 0; i < people; ++i) {
    const Index mine = 5 * i;  // maternal and paternal allele, their two switches, what is seen
    network.cardinalities.insert(network.cardinalities.end(), {alleles, alleles, 2, 2, alleles * alleles});
    truth.push_back({below(rng, alleles), below(rng, alleles)});
    if (i >= founders) {
      const Index mother = below(rng, i - 1), father = mother + 1;
      Index side = 0;
      for (const Index parent : {mother, father}) {
        truth[i][side] = truth[parent][below(rng, 2)];
        require(network, {mine + 2 + side, 5 * parent, 5 * parent + 1, mine + side},
                [](std::span<const Index> x) { return x[3] == x[1 + x[0]]; });
        ++side;
      }
    }
    const auto pair = [](Index a, Index b) { return std::min(a, b) * alleles + std::max(a, b); };
    require(network, {mine, mine + 1, mine + 4}, [&](std::span<const Index> x) { return x[2] == pair(x[0], x[1]); });
    if (rng.uniform() < 0.4) seen.push_back({mine + 4, pair(truth[i][0], truth[i][1])});
  }
  expect_solved(condition(network, seen), 5, 5);
}

/// Gates of two earlier lines each; the last lines are seen, so inputs must be found that lead to them.
TEST(Repair, FindsTheInputsOfACircuit) {
  constexpr Index inputs = 60, lines = 900;
  Network network = with_levels(std::vector<Index>(lines, 2));
  std::vector<Index> truth(lines);
  Rng rng(8, 0);
  for (Index i = 0; i < inputs; ++i) truth[i] = below(rng, 2);
  for (Index i = inputs; i < lines; ++i) {
    const Index a = i - 1 - below(rng, inputs), b = a == i - 1 ? i - 2 : i - 1, kind = below(rng, 3);
    const auto gate = [kind](Index p, Index q) { return kind == 0 ? p & q : kind == 1 ? p | q : p ^ q; };
    truth[i] = gate(truth[a], truth[b]);
    require(network, {a, b, i}, [&](std::span<const Index> x) { return x[2] == gate(x[0], x[1]); });
  }
  Evidence seen;
  for (Index i = lines - 20; i < lines; ++i) seen.push_back({i, truth[i]});
  expect_solved(condition(network, seen), 5, 5);
}

Network pigeons(Index count, Index holes) {
  Network network = with_levels(std::vector<Index>(count, holes));
  for (Index i = 0; i < count; ++i) {
    for (Index j = i + 1; j < count; ++j) require(network, {i, j}, differ);
  }
  return network;
}

TEST(Repair, ProvesThatFewPigeonsHaveNoHolesEach) {
  Rng rng(9, 0);
  const Network network = pigeons(6, 5);
  const std::string message = message_of([&] { (void)repair(network, propagate_zeros(network), State(6, 0), rng); });
  EXPECT_EQ(message.find("no state has positive probability: 1 factor stays at zero in the best state seen: factor "),
            0U)
      << message;
}

TEST(Repair, EndsWhereItIsToldTo) {
  Rng rng(10, 0);
  const Network network = pigeons(30, 28);
  const Domains domains = propagate_zeros(network);
  RepairOptions options;
  options.changes = 20000;
  EXPECT_EQ(message_of([&] {
              (void)repair(network, domains, State(30, 0), rng, options);
            }).find("no starting state of positive probability was found in 20000 changes: 2 factors stay at zero"),
            0U);
  const std::atomic<bool> stop = true;
  options.stop = &stop;
  const std::string message = message_of([&] { (void)repair(network, domains, State(30, 0), rng, options); });
  EXPECT_EQ(message.find("the search for a starting state was interrupted after 0 changes: 435 factors stay at zero"),
            0U);
  EXPECT_NE(message.find(", among them factor "), std::string::npos);
}

}  // namespace poise::support_search_test
