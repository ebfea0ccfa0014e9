/// Junction trees: collecting towards the roots, handing probabilities out again, draws.
#include <poise/network/junction_tree.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "junction_tree_buckets.hpp"
#include "junction_tree_rows.hpp"

namespace poise {

namespace {

using exact::Bucket;
using exact::Buckets;
using exact::Digit;
using exact::Pass;
using exact::Shape;
using exact::Source;

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

std::string size_text(double bytes) {
  constexpr std::array units{"bytes", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  for (; bytes >= 1000.0 && unit + 1 < units.size(); ++unit) bytes /= 1000.0;
  return fmt::format("{:.1f} {}", bytes, units[unit]);
}

void check_memory(const EliminationPlan& plan, double limit) {
  if (plan.complete && plan.bytes <= limit) return;
  throw InputError(fmt::format(
      "exact inference needs {}{} of tables (induced width {}{}), more than the limit of {}; observe more variables, "
      "allow more memory, or sample",
      plan.complete ? "" : "more than ", size_text(plan.bytes), plan.width, plan.complete ? "" : " or more",
      size_text(limit)));
}

/// Tells the callback how far things are, not too often.
class Progress {
 public:
  Progress(const ExactOptions& options, double operations) : options_(options), total_(operations) {}
  void add(double operations) {
    constexpr double now_and_then = 4e6;  // a few milliseconds
    done_ += operations;
    if (!options_.progress || done_ < next_) return;
    next_ = done_ + now_and_then;
    if (!options_.progress(std::min(1.0, done_ / total_))) throw ExactStopped();
  }

 private:
  const ExactOptions& options_;
  double total_;
  double done_ = 0.0;
  double next_ = 0.0;
};

}  // namespace

struct JunctionTree::Tables {
  /// A factor or a message that goes into a bucket.
  struct Entry {
    Index child;         ///< whose message it is; Buckets::kNone: a factor
    std::size_t place;   ///< in the messages or the logarithms of the factors
    std::size_t digits;  ///< where they start
  };

  std::vector<Index> levels;  ///< of the variables of all cliques, one clique after another
  std::vector<Index> members;
  std::vector<std::size_t> clique_start;
  Buckets buckets;
  std::vector<std::size_t> entry_start;  ///< buckets + 1
  std::vector<Entry> entries;
  std::vector<Digit> digits;
  std::vector<double> log_values;
  std::vector<std::size_t> message_start;
  std::unique_ptr<double[]> messages;  ///< each less its largest, which goes into `scale`
  std::vector<double> scale;
  std::vector<Index> state;  ///< observed levels, 0 for the rest
  Marginals marginals;
  double log_partition = 0.0;

  Tables(const Network& network, const EliminationPlan& plan);
  void collect(Progress& progress);
  void hand_out(Progress& progress);
  void draw(Rng& rng, std::vector<Index>& out) const;

 private:
  void gather_entries(const Network& network);
  void add_factor(const Network& network, std::size_t factor, const std::vector<Index>& member);
  void add_marginals(const Bucket& bucket, const std::vector<double>& totals);

  [[nodiscard]] std::span<const Index> of(const std::vector<Index>& flat, const Bucket& bucket) const {
    const std::size_t first = clique_start[bucket.clique] + bucket.first;
    return {flat.data() + first, clique_start[bucket.clique + 1] - first};
  }
  [[nodiscard]] Shape shape(const Bucket& bucket) const {
    return {.levels = of(levels, bucket), .summed = bucket.summed, .in_row = bucket.in_row};
  }
  [[nodiscard]] std::span<const Entry> entries_of(Index b) const {
    return {entries.data() + entry_start[b], entry_start[b + 1] - entry_start[b]};
  }
  [[nodiscard]] std::span<const Digit> digits_of(const Entry& entry) const {
    return {digits.data() + entry.digits, (&entry)[1].digits - entry.digits};
  }
  [[nodiscard]] const double* table(const Entry& entry) const {
    return (entry.child == Buckets::kNone ? log_values.data() : messages.get()) + entry.place;
  }
};

JunctionTree::Tables::Tables(const Network& network, const EliminationPlan& plan)
    : buckets(network, plan), state(network.num_variables(), 0), marginals(network.cardinalities) {
  std::size_t total = 0;
  for (const std::vector<Index>& clique : plan.cliques) total += clique.size();
  members.reserve(total);
  levels.reserve(total);
  clique_start.reserve(plan.cliques.size() + 1);
  clique_start.push_back(0);
  for (const std::vector<Index>& clique : plan.cliques) {
    for (const Index i : clique) {
      members.push_back(i);
      levels.push_back(network.levels(i));
    }
    clique_start.push_back(members.size());
  }
  for (Index i = 0; i < network.num_variables(); ++i) {
    if (network.is_observed(i)) state[i] = network.observed[i];
    if (buckets.of_variable[i] == Buckets::kNone) marginals.of(i)[state[i]] = 1.0;
  }
  log_values.reserve(network.values.size());
  for (const double value : network.values) log_values.push_back(std::log(value));
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    if (buckets.of_factor[f] != Buckets::kNone) continue;
    std::size_t place = 0;
    for (const Index i : network.scope(f)) place = place * network.cardinalities[i] + state[i];
    log_partition += log_values[network.table_start[f] + place];
  }
  message_start.reserve(buckets.all.size() + 1);
  message_start.push_back(0);
  for (const Bucket& bucket : buckets.all) {
    message_start.push_back(message_start.back() + static_cast<std::size_t>(bucket.kept));
  }
  gather_entries(network);
  messages = std::make_unique_for_overwrite<double[]>(message_start.back());
  scale.resize(buckets.all.size());
}

void JunctionTree::Tables::gather_entries(const Network& network) {
  entry_start.assign(buckets.all.size() + 1, 0);
  for (std::size_t b = 0; b < buckets.all.size(); ++b) entry_start[b + 1] = entry_start[b] + buckets.all[b].sources;
  struct Item {
    std::size_t number;
    bool is_factor;
  };
  std::vector<Item> items(entry_start.back());
  std::vector<std::size_t> next(entry_start.begin(), entry_start.end() - 1);
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    if (buckets.of_factor[f] != Buckets::kNone) items[next[buckets.of_factor[f]]++] = {f, true};
  }
  for (Index b = 0; b < buckets.all.size(); ++b) {
    if (buckets.all[b].parent != b) items[next[buckets.all[b].parent]++] = {b, false};
  }
  entries.reserve(items.size() + 1);
  std::size_t total = 0;
  for (const Index i : network.scopes) total += buckets.of_variable[i] != Buckets::kNone;
  for (const Bucket& bucket : buckets.all) total += of(members, bucket).size() - bucket.summed;
  digits.reserve(total);
  std::vector<Index> member(network.num_variables(), Buckets::kNone);
  for (Index b = 0; b < buckets.all.size(); ++b) {
    const std::span<const Index> variables = of(members, buckets.all[b]);
    for (Index k = 0; k < variables.size(); ++k) member[variables[k]] = k;
    for (std::size_t k = entry_start[b]; k < entry_start[b + 1]; ++k) {
      if (items[k].is_factor) {
        add_factor(network, items[k].number, member);
        continue;
      }
      const Bucket& child = buckets.all[items[k].number];
      entries.push_back({static_cast<Index>(items[k].number), message_start[items[k].number], digits.size()});
      std::size_t stride = message_start[items[k].number + 1] - message_start[items[k].number];
      for (const Index i : of(members, child).subspan(child.summed)) {
        stride /= network.levels(i);
        digits.push_back({member[i], stride});
      }
    }
    for (const Index i : variables) member[i] = Buckets::kNone;
  }
  entries.push_back({Buckets::kNone, 0, digits.size()});  // the end of the last one's digits
}

void JunctionTree::Tables::add_factor(const Network& network, std::size_t factor, const std::vector<Index>& member) {
  Entry entry{Buckets::kNone, network.table_start[factor], digits.size()};
  std::size_t stride = 1;
  const std::span<const Index> scope = network.scope(factor);
  for (std::size_t k = scope.size(); k-- > 0;) {
    const Index i = scope[k];
    if (member[i] != Buckets::kNone) {
      digits.push_back({member[i], stride});
    } else {
      entry.place += stride * state[i];
    }
    stride *= network.cardinalities[i];
  }
  std::sort(digits.begin() + static_cast<std::ptrdiff_t>(entry.digits), digits.end(),
            [](const Digit& a, const Digit& b) { return a.member < b.member; });
  entries.push_back(entry);
}

void JunctionTree::Tables::collect(Progress& progress) {
  Pass pass;
  std::vector<Source> sources;
  for (Index b = 0; b < buckets.all.size(); ++b) {
    sources.clear();
    for (const Entry& entry : entries_of(b)) sources.push_back({table(entry), digits_of(entry)});
    double* message = messages.get() + message_start[b];
    double largest = kMinusInfinity;
    for (bool more = pass.open(shape(buckets.all[b]), sources); more; more = pass.next()) {
      double* row = message + pass.offset();
      pass.collect(row);
      largest = std::max(largest, *std::max_element(row, row + pass.row()));
      progress.add(static_cast<double>(pass.groups() * pass.row() * (sources.size() + 1)));
    }
    log_partition += scale[b] = largest;
    if (largest == kMinusInfinity) return;
    const std::size_t size = message_start[b + 1] - message_start[b];
    for (std::size_t k = 0; k < size; ++k) message[k] -= largest;
  }
}

void JunctionTree::Tables::add_marginals(const Bucket& bucket, const std::vector<double>& totals) {
  std::size_t stride = totals.size();
  for (Index k = 0; k < bucket.summed; ++k) {
    const Index variable = of(members, bucket)[k];
    const std::span<double> marginal = marginals.of(variable);
    stride /= marginal.size();
    for (std::size_t group = 0; group < totals.size(); ++group)
      marginal[group / stride % marginal.size()] += totals[group];
    double sum = 0.0;
    for (const double value : marginal) sum += value;
    for (double& value : marginal) value /= sum;
  }
}

/// The message that a bucket sends is the sum of its table over the variables summed out, so the table divided by the
/// message is their conditional probability given the variables of the message; times the probability of these it is
/// that of the whole bucket, which the children take their share of.
void JunctionTree::Tables::hand_out(Progress& progress) {
  Pass pass;
  std::vector<Source> sources;
  std::vector<double> totals;
  std::vector<std::unique_ptr<double[]>> probabilities(buckets.all.size());
  for (const Index b : buckets.handing_out) {
    if (buckets.all[b].parent == b) {
      probabilities[b] = std::make_unique<double[]>(1);
      probabilities[b][0] = 1.0;
    }
    sources.clear();
    for (const Entry& entry : entries_of(b)) {
      sources.push_back({table(entry), digits_of(entry)});
      if (entry.child == Buckets::kNone) continue;
      auto& share = probabilities[entry.child];
      share = std::make_unique<double[]>(message_start[entry.child + 1] - message_start[entry.child]);
      sources.back().probabilities = share.get();
    }
    totals.assign(static_cast<std::size_t>(buckets.all[b].groups), 0.0);
    for (bool more = pass.open(shape(buckets.all[b]), sources); more; more = pass.next()) {
      pass.hand_out(messages.get() + message_start[b] + pass.offset(), scale[b], probabilities[b].get() + pass.offset(),
                    totals.data());
      progress.add(static_cast<double>(pass.groups() * pass.row() * (sources.size() + 1)));
    }
    add_marginals(buckets.all[b], totals);
    probabilities[b].reset();
  }
}

void JunctionTree::Tables::draw(Rng& rng, std::vector<Index>& out) const {
  out = state;
  std::vector<double> weights;
  std::vector<std::ptrdiff_t> places;
  for (const Index b : buckets.handing_out) {
    const Bucket& bucket = buckets.all[b];
    const std::span<const Index> variables = of(members, bucket);
    const std::span<const Index> summed_levels = of(levels, bucket).first(bucket.summed);
    weights.assign(static_cast<std::size_t>(bucket.groups), 0.0);
    places.resize(weights.size());
    for (const Entry& entry : entries_of(b)) {
      const double* from = table(entry);
      std::array<std::size_t, 64> strides{};
      for (const Digit& digit : digits_of(entry)) {
        if (digit.member < bucket.summed) {
          strides[digit.member] = digit.stride;
        } else {
          from += digit.stride * out[variables[digit.member]];
        }
      }
      exact::combine(summed_levels, strides, places.data());
      for (std::size_t group = 0; group < weights.size(); ++group) weights[group] += from[places[group]];
    }
    const double largest = *std::max_element(weights.begin(), weights.end());
    double sum = 0.0;
    for (double& weight : weights) weight = sum += std::exp(weight - largest);
    const double at = rng.uniform() * sum;
    auto group = static_cast<std::size_t>(std::upper_bound(weights.begin(), weights.end(), at) - weights.begin());
    for (Index k = bucket.summed; k-- > 0;) {
      out[variables[k]] = static_cast<Index>(group % summed_levels[k]);
      group /= summed_levels[k];
    }
  }
}

JunctionTree::JunctionTree(const Network& network, const EliminationPlan& plan, const ExactOptions& options) {
  check_memory(plan, options.memory_limit);
  tables_ = std::make_unique<Tables>(network, plan);
  Progress progress(options, plan.operations);
  tables_->collect(progress);
  if (tables_->log_partition == kMinusInfinity) {
    const bool observed = std::any_of(network.observed.begin(), network.observed.end(),
                                      [](Index level) { return level != Network::kFree; });
    throw InputError(fmt::format("no state has positive probability{}", observed ? " given the evidence" : ""));
  }
  tables_->hand_out(progress);
}

JunctionTree::~JunctionTree() = default;
JunctionTree::JunctionTree(JunctionTree&&) noexcept = default;
JunctionTree& JunctionTree::operator=(JunctionTree&&) noexcept = default;

double JunctionTree::log_partition() const { return tables_->log_partition; }
const Marginals& JunctionTree::marginals() const { return tables_->marginals; }
void JunctionTree::draw(Rng& rng, std::vector<Index>& out) const { tables_->draw(rng, out); }

}  // namespace poise
