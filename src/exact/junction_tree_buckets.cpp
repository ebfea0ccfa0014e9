/// Buckets of a junction tree: cliques cut into steps, factors to their places, and the sum of what is allocated.
#include "exact/junction_tree_buckets.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace poise::exact {

namespace {

/// Combinations that a draw goes through in one bucket, unless a single variable has more levels.
constexpr double kMostGroups = 64.0;

/// A row long enough to be worth starting, short enough that a few of them stay in the nearest cache. All rows of a
/// bucket with the same outer variables are held at once.
constexpr double kLongestRow = 512.0;
constexpr double kShortRow = 8.0;
constexpr double kMostHeld = 32768.0;

/// Where every source lies in each group and in a row is written down, so a bucket where very many meet gets fewer
/// groups and shorter rows.
constexpr double kMostPlaces = 4194304.0;

/// Operations of a draw for a bucket whose weights are kept: near, while four megabytes hold all, or far. For a
/// group and a source of one whose weights are made anew, and for a variable of the state.
constexpr double kLook = 10.0;
constexpr double kFarLook = 40.0;
constexpr double kNearWeights = 524288.0;
constexpr double kPerGroup = 8.0;
constexpr double kPerSource = 3.0;
constexpr double kPerVariable = 7.0;
/// Entries of messages that caches of a core hold, and those that the processor does. A draw looks at one entry of a
/// message; what that takes beyond these.
constexpr double kInCore = 524288.0, kInProcessor = 4194304.0;
constexpr double kFromProcessor = 15.0, kFromMemory = 200.0;

/// Small messages stay in the caches: large ones, which are rarely met twice at the same place, do not.
double operations_of_far_messages(std::vector<double> entries) {
  std::sort(entries.begin(), entries.end());
  double held = 0.0;
  double operations = 0.0;
  for (const double one : entries) {
    held += one;
    operations += held > kInProcessor ? kFromMemory : held > kInCore ? kFromProcessor : 0.0;
  }
  return operations;
}

}  // namespace

Buckets::Buckets(const Network& network, const EliminationPlan& plan)
    : of_variable(network.num_variables(), kNone), of_factor(network.num_factors(), kNone) {
  std::vector<Index> position(network.num_variables(), kNone);
  for (Index place = 0; place < plan.order.size(); ++place) position[plan.order[place]] = place;

  // A table is multiplied into the bucket that sums out the first of its variables.
  std::vector<std::size_t> attached(network.num_variables(), 0);
  std::vector<Index> first_of(network.num_factors(), kNone);
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    for (const Index i : network.scope(f)) {
      if (position[i] < (first_of[f] == kNone ? kNone : position[first_of[f]])) first_of[f] = i;
    }
    if (first_of[f] != kNone) ++attached[first_of[f]];
  }
  for (const std::vector<Index>& separator : plan.separators) {
    if (!separator.empty()) ++attached[separator.front()];
  }
  split_cliques(network, plan, attached);
  link(plan, position);
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    if (first_of[f] != kNone) of_factor[f] = of_variable[first_of[f]];
  }
  count_reads(network, plan, position);
  order_handing_out();
  cut_into_chunks(network, plan, position);
  add_up(network, plan);
}

void Buckets::split_cliques(const Network& network, const EliminationPlan& plan,
                            const std::vector<std::size_t>& attached) {
  for (Index c = 0; c < plan.cliques.size(); ++c) {
    const std::vector<Index>& members = plan.cliques[c];
    const std::size_t eliminated = members.size() - plan.separators[c].size();
    double entries = std::accumulate(members.begin(), members.end(), 1.0,
                                     [&](double product, Index i) { return product * network.levels(i); });
    for (Index first = 0; first < eliminated;) {
      Bucket bucket{.clique = c,
                    .first = first,
                    .summed = 0,
                    .in_row = 0,
                    .parent = 0,
                    .sources = 0,
                    .groups = 1.0,
                    .kept = 0.0,
                    .reads = 0.0};
      if (first > 0) ++bucket.sources;  // what the bucket before left over
      for (; first < eliminated; ++first, ++bucket.summed) {
        const double groups = bucket.groups * network.levels(members[first]);
        const auto sources = static_cast<double>(bucket.sources + attached[members[first]]);
        if (bucket.summed > 0 && (groups > kMostGroups || groups * sources > kMostPlaces)) break;
        bucket.groups = groups;
        bucket.sources += attached[members[first]];
      }
      entries = bucket.kept = entries / bucket.groups;
      double row = 1.0;
      for (std::size_t k = members.size(); k > first; --k, ++bucket.in_row) {
        row *= network.levels(members[k - 1]);
        if (row > kLongestRow || row * static_cast<double>(bucket.sources) > kMostPlaces) break;
        if (row > kShortRow && row * bucket.groups > kMostHeld) break;
      }
      all.push_back(bucket);
    }
  }
}

void Buckets::link(const EliminationPlan& plan, const std::vector<Index>& position) {
  const auto member = [&](const Bucket& bucket, Index k) { return plan.cliques[bucket.clique][bucket.first + k]; };
  // By the last variable summed out, as cliques are ordered in a plan: parents come later.
  const auto last = [&](const Bucket& bucket) { return position[member(bucket, bucket.summed - 1)]; };
  std::sort(all.begin(), all.end(), [&](const Bucket& a, const Bucket& b) { return last(a) < last(b); });
  for (Index b = 0; b < all.size(); ++b) {
    for (Index k = 0; k < all[b].summed; ++k) of_variable[member(all[b], k)] = b;
  }
  for (Index b = 0; b < all.size(); ++b) {
    const bool root = all[b].first + all[b].summed == plan.cliques[all[b].clique].size();
    all[b].parent = root ? b : of_variable[member(all[b], all[b].summed)];
  }
}

/// A chunk adds to the probabilities of the bucket's children. Those that have all variables that tell chunks apart get
/// each number from one chunk; the others' are summed chunk by chunk, apart, and this must not take much memory.
/// A table of rows alone is added once for all of them, one that is the same all over a row once for each row. When
/// probabilities are handed out, messages take their share of every row, but sums of whole rows take little time.
void Buckets::count_reads(const Network& network, const EliminationPlan& plan, const std::vector<Index>& position) {
  constexpr double sum_of_rows = 1.0 / 8.0;  // measured, beside reading an entry
  const auto for_every_entry = [&](const Bucket& bucket, std::span<const Index> scope) {
    const std::span<const Index> variables = std::span(plan.cliques[bucket.clique]).subspan(bucket.first);
    const std::span<const Index> outer =
        variables.subspan(bucket.summed, variables.size() - bucket.summed - bucket.in_row);
    if (outer.empty()) return false;
    bool in_outer = false;
    bool in_row = bucket.in_row == 0;
    for (const Index i : scope) {
      if (position[i] == kNone || position[i] < position[outer.front()]) continue;
      (position[i] <= position[outer.back()] ? in_outer : in_row) = true;
    }
    return in_outer && in_row;
  };
  for (Index b = 0; b < all.size(); ++b) {
    if (all[b].parent == b) continue;
    Bucket& parent = all[all[b].parent];
    const std::span<const Index> message = std::span(plan.cliques[all[b].clique]).subspan(all[b].first + all[b].summed);
    parent.reads += for_every_entry(parent, message) ? 1.0 : sum_of_rows;
  }
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    if (of_factor[f] == kNone) continue;
    Bucket& bucket = all[of_factor[f]];
    if (for_every_entry(bucket, network.scope(f))) bucket.reads += 1.0;
  }
}

void Buckets::cut_into_chunks(const Network& network, const EliminationPlan& plan, const std::vector<Index>& position) {
  constexpr double large = 5e5;  // operations: a fraction of a millisecond
  constexpr double most_chunks = 32.0;
  constexpr double enough_chunks = 8.0;
  constexpr double most_apart = 1048576.0;
  constexpr double most_apart_fraction = 1.0 / 32.0;
  std::vector<std::vector<Index>> children(all.size());
  bool any = false;
  double messages = 0.0;
  for (Index b = 0; b < all.size(); ++b) {
    messages += all[b].kept;
    if (all[all[b].parent].operations() < large) continue;
    any = true;
    if (all[b].parent != b) children[all[b].parent].push_back(b);
  }
  if (!any) return;
  const auto has = [&](Index child, Index variable) {
    const std::vector<Index>& clique = plan.cliques[all[child].clique];
    const auto message = clique.begin() + static_cast<std::ptrdiff_t>(all[child].first + all[child].summed);
    const auto found =
        std::lower_bound(message, clique.end(), variable, [&](Index x, Index y) { return position[x] < position[y]; });
    return found != clique.end() && *found == variable;
  };
  for (Index b = 0; b < all.size(); ++b) {
    chunk_start_.push_back(chunk_members_.size());
    const Bucket& bucket = all[b];
    if (bucket.operations() < large) continue;
    const std::span<const Index> variables = std::span(plan.cliques[bucket.clique]).subspan(bucket.first);
    std::vector<std::pair<double, Index>> by_apart;  // entries of children without the variable, and the variable
    for (Index k = bucket.summed; k + bucket.in_row < variables.size(); ++k) {
      double apart = 0.0;
      for (const Index child : children[b]) apart += has(child, variables[k]) ? 0.0 : all[child].kept;
      by_apart.emplace_back(apart, k);
    }
    std::sort(by_apart.begin(), by_apart.end());
    double chunks = 1.0;
    double summed_apart = 0.0;
    std::vector<bool> is_apart(children[b].size(), false);
    for (const auto& [apart, k] : by_apart) {
      const double more = chunks * network.levels(variables[k]);
      double entries = 0.0;
      for (std::size_t c = 0; c < children[b].size(); ++c) {
        if (is_apart[c] || !has(children[b][c], variables[k])) entries += more * all[children[b][c]].kept;
      }
      if (chunks >= enough_chunks || more > most_chunks) break;
      if (entries > std::max(most_apart, most_apart_fraction * messages)) break;
      for (std::size_t c = 0; c < children[b].size(); ++c) {
        if (!has(children[b][c], variables[k])) is_apart[c] = true;
      }
      chunks = more;
      summed_apart = entries;
      chunk_members_.push_back(k);
    }
    apart_ = std::max(apart_, summed_apart);
  }
  chunk_start_.push_back(chunk_members_.size());
}

/// What is small for each variable is not small for a million of them, so everything counts.
void Buckets::add_up(const Network& network, const EliminationPlan& plan) {
  double messages = 0.0;
  std::vector<double> looked_up;  // messages that draws read
  double sources = 0.0;
  double held = 0.0;
  double weights_kept = 0.0;
  double looks = 0.0;
  double digits = static_cast<double>(network.scopes.size());
  double members = 0.0;
  for (const Bucket& bucket : all) {
    const std::vector<Index>& clique = plan.cliques[bucket.clique];
    double row = 1.0;
    for (Index k = 0; k < bucket.in_row; ++k) row *= network.levels(clique[clique.size() - 1 - k]);
    const auto meet = static_cast<double>(bucket.sources);
    messages += bucket.kept;
    sources += meet;
    operations += bucket.operations();
    const auto separator = static_cast<double>(clique.size() - bucket.first - bucket.summed);
    const double weights = bucket.groups * bucket.kept;
    const bool is_kept = weights <= kMostKept && weights_kept + weights <= kMostWeights;
    if (is_kept) {
      weights_kept += weights;
      looks += 1.0;
    } else {
      looked_up.push_back(bucket.kept);
      draw_operations += meet * (bucket.groups + kPerSource) + separator + kPerGroup * bucket.groups;
    }
    held = std::max(held, 2.0 * bucket.groups * (row + 8.0) + meet * (bucket.groups + row + 32.0));
    digits += separator;
    if (bucket.first == 0) members += static_cast<double>(clique.size());
  }
  draw_operations += looks * (weights_kept > kNearWeights ? kFarLook : kLook);
  draw_operations += kPerVariable * static_cast<double>(network.num_variables());
  draw_operations += operations_of_far_messages(std::move(looked_up));
  constexpr double per_bucket = sizeof(Bucket) + 128.0;
  constexpr double per_source = 48.0;
  constexpr double per_digit = 16.0;
  constexpr double per_variable = 48.0;
  constexpr double per_factor = 16.0;
  double levels = 0.0;
  for (const Index k : network.cardinalities) levels += k;
  workspace = sizeof(double) * held;
  bytes = workspace +
          sizeof(double) * (messages + handed_out + apart_ + levels + static_cast<double>(network.values.size())) +
          per_bucket * static_cast<double>(all.size()) + per_source * sources + per_digit * digits + 8.0 * members +
          per_variable * static_cast<double>(network.num_variables()) +
          per_factor * static_cast<double>(network.num_factors());
  bytes = 1.03 * bytes + 1048576.0;  // what the allocator adds, measured: up to 2 % and a few hundred kB
}

/// When a bucket is visited, the probabilities of all its children's separators come into being, and its own go. Of the
/// subtrees below, those that need the most beyond what they already hold are visited last, when the others are gone.
void Buckets::order_handing_out() {
  std::vector<std::size_t> start(all.size() + 1, 0);
  for (Index b = 0; b < all.size(); ++b) start[all[b].parent + 1] += all[b].parent != b;
  for (std::size_t b = 0; b < all.size(); ++b) start[b + 1] += start[b];
  std::vector<Index> children(start.back());
  std::vector<std::size_t> next(start.begin(), start.end() - 1);
  for (Index b = 0; b < all.size(); ++b) {
    if (all[b].parent != b) children[next[all[b].parent]++] = b;
  }
  std::vector<double>& most = handed_out_below;
  most.resize(all.size());
  for (Index b = 0; b < all.size(); ++b) {
    const std::span<Index> below{children.data() + start[b], start[b + 1] - start[b]};
    std::sort(below.begin(), below.end(), [&](Index x, Index y) {
      const double a = most[x] - all[x].kept;
      const double c = most[y] - all[y].kept;
      return a != c ? a < c : x < y;
    });
    double waiting =
        std::accumulate(below.begin(), below.end(), 0.0, [&](double s, Index c) { return s + all[c].kept; });
    most[b] = all[b].kept + waiting;
    for (const Index c : below) {
      waiting -= all[c].kept;
      most[b] = std::max(most[b], waiting + most[c]);
    }
    if (all[b].parent == b) handed_out = std::max(handed_out, most[b]);
  }
  std::vector<Index> stack;
  for (Index root = 0; root < all.size(); ++root) {
    if (all[root].parent != root) continue;
    for (stack = {root}; !stack.empty();) {
      const Index b = stack.back();
      stack.pop_back();
      handing_out.push_back(b);
      for (std::size_t k = start[b + 1]; k > start[b]; --k) stack.push_back(children[k - 1]);
    }
  }
}

}  // namespace poise::exact
