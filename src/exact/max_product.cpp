/// Max-product: collects maxima towards the roots, reads the best state off on the way back, and then the next best.
#include "exact/max_product.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "exact/junction_tree_tables.hpp"
#include "exact/slices.hpp"

namespace poise {

namespace {

using exact::Tables;

/// Rounding of sums of logarithms that are equal in exact arithmetic.
double value_rounding(double value) { return 1e-12 * (1.0 + std::abs(value)); }

/// The best states of one tree in order, after Lawler (1972).
///
/// Buckets are decided one after another, parents first, each at one of its groups given what was decided before it. A
/// message is the value of the best that the buckets below can do, so the best completion of a prefix takes the best
/// group everywhere. The states that agree with a known one up to a bucket and differ there split into one set for each
/// bucket; the best of such a set takes the next best group there, and the loss in that one bucket is its loss.
class RankedStates {
 public:
  RankedStates(const Tables& tables, std::size_t count) : tables_(tables), count_(count) {}

  std::vector<std::vector<Index>> list() {
    std::vector<std::vector<Index>> states;
    visit(tables_.state, Candidate{.value = tables_.log_partition}, states);
    while (states.size() < count_ && !waiting_.empty()) {
      const Candidate best = *waiting_.begin();
      waiting_.erase(waiting_.begin());
      visit(states[best.parent], best, states);
    }
    return states;
  }

 private:
  /// The best state that has the groups of `parent` before a bucket and a group of lower rank at it.
  struct Candidate {
    double value = 0.0;
    std::size_t parent = 0;    ///< among the states that were found
    std::size_t position = 0;  ///< of the bucket, in the order of handing out
    std::size_t rank = 0;      ///< of the group there: 0 is the best

    friend bool operator<(const Candidate& a, const Candidate& b) {
      return std::tie(b.value, a.parent, a.position, a.rank) < std::tie(a.value, b.parent, b.position, b.rank);
    }
  };

  /// Completes a candidate and puts the best of what it leaves undecided among those that wait.
  void visit(std::vector<Index> x, const Candidate& candidate, std::vector<std::vector<Index>>& states) {
    const std::vector<Index>& order = tables_.buckets.handing_out;
    const std::size_t number = states.size();
    const bool more = number + 1 < count_;
    for (std::size_t position = candidate.position; position < order.size(); ++position) {
      const Index b = order[position];
      const std::size_t rank = position == candidate.position ? candidate.rank : 0;
      values_.resize(static_cast<std::size_t>(tables_.buckets.all[b].groups));
      tables_.weigh_groups(b, x.data(), values_);
      rank_groups(rank + (more ? 2 : 1));
      const std::size_t group = groups_[rank];
      tables_.set_group(b, group, x);
      if (!more || rank + 1 == groups_.size()) continue;
      const double loss = values_[group] - values_[groups_[rank + 1]];
      if (loss < std::numeric_limits<double>::infinity()) wait({candidate.value - loss, number, position, rank + 1});
    }
    states.push_back(std::move(x));
  }

  /// The first few groups by value, ties by number.
  void rank_groups(std::size_t few) {
    groups_.resize(values_.size());
    for (std::size_t group = 0; group < groups_.size(); ++group) groups_[group] = group;
    const auto end = groups_.begin() + static_cast<std::ptrdiff_t>(std::min(few, groups_.size()));
    std::partial_sort(groups_.begin(), end, groups_.end(), [&](std::size_t a, std::size_t b) {
      return values_[a] != values_[b] ? values_[a] > values_[b] : a < b;
    });
  }

  /// No more candidates are kept than there are states to find.
  void wait(const Candidate& candidate) {
    waiting_.insert(candidate);
    if (waiting_.size() > count_) waiting_.erase(std::prev(waiting_.end()));
  }

  const Tables& tables_;
  std::size_t count_;
  std::set<Candidate> waiting_;
  std::vector<double> values_;
  std::vector<std::size_t> groups_;
};

/// The best states so far, of all slices.
class BestStates {
 public:
  explicit BestStates(std::size_t count) : count_(count) {}

  /// What a slice must reach to matter.
  [[nodiscard]] double least() const {
    if (states_.size() < count_) return kMinusInfinity;
    return states_.back().log_value - value_rounding(states_.back().log_value);
  }
  void add(const Network& network, std::vector<std::vector<Index>> found) {
    for (std::vector<Index>& levels : found) {
      const double value = log_value(network, levels);
      states_.push_back({value, std::move(levels)});
    }
    std::sort(states_.begin(), states_.end());
    if (states_.size() > count_) states_.resize(count_);
  }
  [[nodiscard]] std::vector<RankedState> take(const Network& network) && {
    if (states_.empty()) throw exact::no_state(network);
    return std::move(states_);
  }

 private:
  std::size_t count_;
  std::vector<RankedState> states_;
};

/// The best states of a slice, unless none of them reaches `least`.
std::vector<std::vector<Index>> solve_slice(Tables& tables, const exact::Crew& crew, std::size_t count, double least) {
  if (tables.log_partition == kMinusInfinity) return {};
  tables.reduction = Reduction::max;
  tables.collect(crew);
  if (tables.log_partition == kMinusInfinity || tables.log_partition < least) return {};
  tables.place_groups();
  return RankedStates(tables, count).list();
}

}  // namespace

double log_value(const Network& network, std::span<const Index> levels) {
  double sum = 0.0;
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    std::size_t place = 0;
    for (const Index i : network.scope(f)) place = place * network.cardinalities[i] + levels[i];
    sum += std::log(network.values[network.table_start[f] + place]);
  }
  return sum;
}

std::vector<RankedState> most_probable_states(const Network& network, const ExactPlan& plan, std::size_t count,
                                              const ExactOptions& options) {
  exact::check_limits(plan, options);
  constexpr double collecting = 0.5;  // of the operations of a plan
  count = std::max<std::size_t>(1, count);
  BestStates best(count);
  if (plan.conditioned.empty()) {
    Tables tables(network, plan.tree);
    exact::Meter meter(options.progress, collecting * plan.tree.operations);
    const double spare = options.memory_limit - plan.tree.bytes;
    ThreadPool pool(exact::threads_for(tables.buckets, options.threads, spare));
    best.add(network, solve_slice(tables, {meter, pool, spare}, count, kMinusInfinity));
    return std::move(best).take(network);
  }
  const exact::Sharing sharing(plan, options);
  exact::Slices slices(network, plan.conditioned);
  ThreadPool outer(static_cast<unsigned>(sharing.at_a_time));
  ThreadPool inner(sharing.at_a_time > 1 ? 1 : sharing.threads_each);
  std::vector<Network> batch;
  std::vector<std::vector<std::vector<Index>>> found;
  for (bool more = slices.next(); more;) {
    const double passed = slices.passed();
    batch.clear();
    for (; more && batch.size() < sharing.at_a_time; more = slices.next()) batch.push_back(slices.network());
    const double fraction = (more ? slices.passed() : 1.0) - passed;
    const auto progress = [&](double done) { return !options.progress || options.progress(passed + fraction * done); };
    exact::Meter meter(progress, collecting * static_cast<double>(batch.size()) * plan.tree.operations);
    found.assign(batch.size(), {});
    outer.for_each(batch.size(), [&](std::size_t k) {
      ThreadPool alone(1);
      const double room = options.memory_limit / static_cast<double>(sharing.at_a_time) - plan.tree.bytes;
      Tables tables(batch[k], plan.tree);
      found[k] = solve_slice(tables, {meter, batch.size() > 1 ? alone : inner, room}, count, best.least());
    });
    for (std::vector<std::vector<Index>>& of_slice : found) best.add(network, std::move(of_slice));
  }
  return std::move(best).take(network);
}

}  // namespace poise
