/// Junction trees: limits, the layout of their tables, and draws from them.
#include "exact/junction_tree_tables.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <thread>

#include <fmt/format.h>

namespace poise::exact {

Tables::Tables(const Network& network, const EliminationPlan& plan)
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

void Tables::gather_entries(const Network& network) {
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

void Tables::add_factor(const Network& network, std::size_t factor, const std::vector<Index>& member) {
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

void Tables::draw(Rng& rng, std::vector<Index>& out) const {
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
      combine(summed_levels, strides, places.data());
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

unsigned threads_for(const Buckets& buckets, unsigned wanted, double spare_bytes) {
  constexpr double worth_a_thread = 4e6;  // operations: a few milliseconds
  const unsigned all = wanted == 0 ? std::max(1U, std::thread::hardware_concurrency()) : wanted;
  const double room = buckets.workspace > 0.0 ? spare_bytes / buckets.workspace : spare_bytes;
  const double useful = std::min(1.0 + std::max(0.0, room), std::max(1.0, buckets.operations / worth_a_thread));
  return static_cast<unsigned>(std::min<double>(all, useful));
}

std::string size_text(double bytes) {
  constexpr std::array units{"bytes", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  for (; bytes >= 1000.0 && unit + 1 < units.size(); ++unit) bytes /= 1000.0;
  return fmt::format("{:.1f} {}", bytes, units[unit]);
}

InputError too_large(const EliminationPlan& plan, double limit) {
  return InputError(fmt::format(
      "exact inference needs {}{} of tables (induced width {}{}), more than the limit of {}; observe more variables, "
      "allow more memory, or sample",
      plan.complete ? "" : "more than ", size_text(plan.bytes), plan.width, plan.complete ? "" : " or more",
      size_text(limit)));
}

InputError no_state(const Network& network) {
  const bool observed = std::any_of(network.observed.begin(), network.observed.end(),
                                    [](Index level) { return level != Network::kFree; });
  return InputError(fmt::format("no state has positive probability{}", observed ? " given the evidence" : ""));
}

}  // namespace poise::exact

namespace poise {

JunctionTree::JunctionTree(const Network& network, const EliminationPlan& plan, const ExactOptions& options) {
  if (!plan.complete || plan.bytes > options.memory_limit) throw exact::too_large(plan, options.memory_limit);
  tables_ = std::make_unique<exact::Tables>(network, plan);
  exact::Meter meter(options.progress, plan.operations);
  const double spare = options.memory_limit - plan.bytes;
  const unsigned threads = exact::threads_for(tables_->buckets, options.threads, spare);
  ThreadPool pool(threads);
  const exact::Crew crew{meter, pool, spare - (threads - 1) * tables_->buckets.workspace};
  tables_->collect(crew);
  if (tables_->log_partition == kMinusInfinity) throw exact::no_state(network);
  tables_->hand_out(crew);
}

JunctionTree::~JunctionTree() = default;
JunctionTree::JunctionTree(JunctionTree&&) noexcept = default;
JunctionTree& JunctionTree::operator=(JunctionTree&&) noexcept = default;

double JunctionTree::log_partition() const { return tables_->log_partition; }
const Marginals& JunctionTree::marginals() const { return tables_->marginals; }
void JunctionTree::draw(Rng& rng, std::vector<Index>& out) const { tables_->draw(rng, out); }

}  // namespace poise
