/// Whether single changes lead everywhere, against all states of small networks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "exact/dominance.hpp"
#include "support/ranked_states.hpp"

namespace poise::dominance_test {

using testing::ListedState;

/// Whether changes of single variables lead from the first state to all others.
bool leads_everywhere(const std::vector<ListedState>& states) {
  const auto differ_once = [](const std::vector<Index>& a, const std::vector<Index>& b) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i] ? 1 : 0;
    return count == 1;
  };
  std::vector<bool> reached(states.size(), false);
  std::vector<std::size_t> waiting = {0};
  reached[0] = true;
  while (!waiting.empty()) {
    const std::size_t at = waiting.back();
    waiting.pop_back();
    for (std::size_t k = 0; k < states.size(); ++k) {
      if (reached[k] || !differ_once(states[at].levels, states[k].levels)) continue;
      reached[k] = true;
      waiting.push_back(k);
    }
  }
  return std::ranges::find(reached, false) == reached.end();
}

TEST(SingleChanges, ConnectWhatTheyAreSaidToConnect) {
  Rng rng(78, 0);
  int connected = 0;
  int found = 0;
  for (int trial = 0; trial < 300; ++trial) {
    SCOPED_TRACE(trial);
    const Network network =
        testing::tied_network({.factors = 2 + static_cast<Index>(trial % 6), .zeros = 0.1 + 0.1 * (trial % 4)}, rng);
    const std::vector<ListedState> states = testing::listed_states(network);
    if (states.empty()) continue;
    const bool truth = leads_everywhere(states);
    const bool known = single_changes_connect(network, 1e-3);
    EXPECT_LE(known, truth);
    connected += truth ? 1 : 0;
    found += known ? 1 : 0;
  }
  EXPECT_GT(found, connected / 2);
  EXPECT_LT(connected, 280);
}

TEST(SingleChanges, OneLevelMayAlwaysStand) {
  // No two neighbours are both in the set, and no two neighbours have the same of so many colours.
  const auto path = [](Index levels, bool all_differ, double weight = 0.5) {
    Network network;
    network.cardinalities.assign(6, levels);
    std::vector<double> table;
    for (Index a = 0; a < levels; ++a) {
      for (Index b = 0; b < levels; ++b) {
        const bool excluded = a == b && (all_differ || a > 0);
        table.push_back(excluded ? 0.0 : a + b > 0 ? weight : 0.5);
      }
    }
    for (Index i = 0; i < 6; ++i) network.add_factor(std::vector<Index>{i, (i + 1) % 6}, table);
    return network;
  };
  EXPECT_TRUE(single_changes_connect(path(2, false), 0.9));
  // The empty set is between all others, but much less probable.
  EXPECT_FALSE(single_changes_connect(path(2, false, 50.0), 0.9));
  EXPECT_TRUE(single_changes_connect(path(2, false, 50.0), 1e-5));
  EXPECT_FALSE(single_changes_connect(path(2, true), 0.9));
  EXPECT_FALSE(single_changes_connect(path(3, true), 0.9));
}

}  // namespace poise::dominance_test
