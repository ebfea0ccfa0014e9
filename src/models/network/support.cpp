/// What zeros rule out, and a state inside: two searches take turns, because each solves what the other cannot.
#include "models/network/support.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "models/network/support_propagation.hpp"
#include "models/network/support_search.hpp"

namespace poise {

namespace {

using support::Backtracking;
using support::Breakout;
using support::Constraints;
using support::Effort;
using support::Propagation;

/// All levels of free variables, and the level of observed ones.
Domains all_levels(const Network& network) {
  Domains domains;
  domains.start.assign(1, 0);
  for (const Index levels : network.cardinalities) domains.start.push_back(domains.start.back() + levels);
  domains.allowed.assign(domains.start.back(), 1);
  domains.count = network.cardinalities;
  for (Index i = 0; i < network.num_variables(); ++i) {
    if (!network.is_observed(i)) continue;
    std::fill_n(domains.allowed.begin() + static_cast<std::ptrdiff_t>(domains.start[i]), domains.count[i], 0);
    domains.allowed[domains.start[i] + network.observed[i]] = 1;
    domains.count[i] = 1;
  }
  return domains;
}

Value random_level(const Domains& domains, Index i, Rng& rng) {
  std::size_t ahead = support::random_below(rng, domains.count[i]);
  Index level = 0;
  while (!domains.allows(i, level) || ahead-- > 0) ++level;
  return static_cast<Value>(level);
}

bool is_allowed(const Domains& domains, Index i, Value level) {
  return domains.start[i] + level < domains.start[i + 1] && domains.allows(i, level);
}

bool is_inside(const Constraints& constraints, const Domains& domains, const std::vector<Value>& x) {
  for (Index i = 0; i < x.size(); ++i) {
    if (!is_allowed(domains, i, x[i])) return false;
  }
  for (Index c = 0; c < constraints.size(); ++c) {
    if (!constraints.positive(c, constraints.place(c, x))) return false;
  }
  return true;
}

/// "2 factors stay at zero in the best state seen: factor 12 (x[3], x[7]), factor 15 (x[7], x[9])".
std::string what_is_left(const Network& network, const Constraints& constraints, const Breakout& breakout) {
  std::string names;
  for (const Index c : breakout.examples()) {
    names += (names.empty() ? "" : ", ") + network.factor_name(constraints.factor(c));
  }
  const std::size_t count = breakout.fewest();
  return fmt::format("{} factor{} at zero in the best state seen{} {}", count, count == 1 ? " stays" : "s stay",
                     count > breakout.examples().size() ? ", among them" : ":", names);
}

}  // namespace

Domains propagate_zeros(const Network& network) {
  const Constraints constraints(network);
  Domains domains = all_levels(network);
  Effort effort;
  Propagation propagation(constraints, domains, effort);
  propagation.enqueue_all();
  if (propagation.propagate() == Propagation::Outcome::impossible) {
    throw InputError(fmt::format("no state has positive probability: {} is zero wherever the other factors are not",
                                 network.factor_name(constraints.factor(propagation.culprit()))));
  }
  for (Index i = 0; i < network.num_variables(); ++i) {
    domains.count[i] = propagation.count(i);
    for (Index level = 0; level < network.cardinalities[i]; ++level) {
      domains.allowed[domains.start[i] + level] = propagation.allows(i, level) ? 1 : 0;
    }
  }
  return domains;
}

std::vector<Value> repair(const Network& network, const Domains& domains, std::vector<Value> x, Rng& rng,
                          const RepairOptions& options) {
  if (x.size() != network.num_variables()) {
    throw InputError(
        fmt::format("a state to start from has {} variables, the model {}", x.size(), network.num_variables()));
  }
  const Constraints constraints(network);
  if (is_inside(constraints, domains, x)) return x;
  for (Index i = 0; i < x.size(); ++i) {
    if (!is_allowed(domains, i, x[i])) x[i] = random_level(domains, i, rng);
  }
  Effort effort;
  effort.stop = options.stop;
  effort.most_changes = options.changes > 0 ? options.changes : std::max<std::uint64_t>(1'000'000, 2000 * x.size());
  effort.most_looks = 200'000'000 + 200 * constraints.entries();
  Breakout breakout(constraints, domains, effort);
  Backtracking backtracking(constraints, domains, effort);
  // The first turn is long enough for large problems that are easy; growing ones waste little, whichever search does
  // it.
  std::uint64_t turn = 1'000'000 + 50 * constraints.memberships();
  do {
    effort.turn_end = effort.looks + turn;
    if (breakout.search(x, rng)) return x;
    effort.turn_end = effort.looks + turn + 10 * constraints.entries();
    const Backtracking::Outcome outcome = backtracking.search(x, rng);
    if (outcome == Backtracking::Outcome::found) return x;
    if (outcome == Backtracking::Outcome::impossible) {
      throw InputError(
          fmt::format("no state has positive probability: {}", what_is_left(network, constraints, breakout)));
    }
    for (Index i = 0; i < x.size(); ++i) {
      if (!constraints.uses(i).empty()) x[i] = random_level(domains, i, rng);
    }
    turn *= 2;
  } while (!effort.spent());
  throw InputError(fmt::format("{} {} changes: {}",
                               effort.stopped() ? "the search for a starting state was interrupted after"
                                                : "no starting state of positive probability was found in",
                               effort.changes, what_is_left(network, constraints, breakout)));
}

}  // namespace poise
