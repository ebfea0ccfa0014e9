/// Junction trees: limits, the layout of their tables, and draws from them.
#include "exact/junction_tree_tables.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <thread>

#include <fmt/format.h>

#include <poise/extend/base/hot.hpp>

namespace poise::exact {

namespace {

/// Groups that are gone through one after the other, which takes no longer than a search that processors cannot
/// foresee.
constexpr std::size_t kFewGroups = 64;

}  // namespace

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

void Tables::place_groups() {
  place_start.reserve(entries.size());
  std::vector<std::size_t> strides;
  for (Index b = 0; b < buckets.all.size(); ++b) {
    const Bucket& bucket = buckets.all[b];
    for (const Entry& entry : entries_of(b)) {
      strides.assign(bucket.summed, 0);
      for (const Digit& digit : digits_of(entry)) {
        if (digit.member < bucket.summed) strides[digit.member] = digit.stride;
      }
      place_start.push_back(group_places.size());
      group_places.resize(group_places.size() + static_cast<std::size_t>(bucket.groups));
      combine(of(levels, bucket).first(bucket.summed), strides, &group_places[place_start.back()]);
    }
  }
}

void Tables::prepare_draws() {
  place_groups();
  const std::vector<std::size_t> weights_start = keep_weights();
  for (const Index b : buckets.handing_out) {
    const Bucket& bucket = buckets.all[b];
    const std::span<const Index> variables = of(members, bucket);
    const std::span<const Index> of_variables = of(levels, bucket);
    const auto groups = static_cast<std::size_t>(bucket.groups);
    draw_steps.push_back(
        {weights_start[b], groups, variables.data(), of_variables.data(), bucket.summed, b, draw_digits.size()});
    if (weights_start[b] == kNotKept) continue;
    std::size_t stride = groups;
    for (std::size_t k = variables.size(); k-- > bucket.summed;) {
      draw_digits.push_back({variables[k], static_cast<Index>(stride)});
      stride *= of_variables[k];
    }
  }
  draw_steps.push_back({kNotKept, 0, nullptr, nullptr, 0, Buckets::kNone, draw_digits.size()});
}

std::vector<std::size_t> Tables::keep_weights() {
  std::vector<std::size_t> start(buckets.all.size(), kNotKept);
  std::vector<Index> x = state;
  for (Index b = 0; b < buckets.all.size(); ++b) {
    const Bucket& bucket = buckets.all[b];
    const double size = bucket.groups * bucket.kept;
    if (size > kMostKept || static_cast<double>(weights.size()) + size > kMostWeights) continue;
    start[b] = weights.size();
    weights.resize(weights.size() + static_cast<std::size_t>(size));
    const std::span<const Index> kept = of(members, bucket).subspan(bucket.summed);
    const std::span<const Index> kept_levels = of(levels, bucket).subspan(bucket.summed);
    const auto groups = static_cast<std::size_t>(bucket.groups);
    for (std::size_t from = start[b]; from < weights.size(); from += groups) {
      weigh(b, x.data(), {&weights[from], groups});
      for (std::size_t k = kept.size(); k-- > 0 && ++x[kept[k]] == kept_levels[k];) x[kept[k]] = 0;
    }
  }
  return start;
}

void Tables::weigh_groups(Index b, const Index* x, std::span<double> out) const {
  const Index summed = buckets.all[b].summed;
  const std::span<const Index> variables = of(members, buckets.all[b]);
  std::fill(out.begin(), out.end(), 0.0);
  for (std::size_t e = entry_start[b]; e < entry_start[b + 1]; ++e) {
    const double* from = table(entries[e]);
    for (const Digit& digit : digits_of(entries[e])) {
      if (digit.member >= summed) from += digit.stride * x[variables[digit.member]];
    }
    const std::ptrdiff_t* const places = &group_places[place_start[e]];
    for (std::size_t group = 0; group < out.size(); ++group) out[group] += from[places[group]];
  }
}

void Tables::weigh(Index b, const Index* x, std::span<double> out) const {
  weigh_groups(b, x, out);
  const double largest = *std::max_element(out.begin(), out.end());
  double sum = 0.0;
  for (double& weight : out) weight = sum += weight == largest ? 1.0 : std::exp(weight - largest);
}

void Tables::draw(Rng& rng, std::vector<Index>& out) const {
  out = state;
  std::vector<double> own;
  hot<InstructionSet::avx2>([this, &rng, &own, x = out.data()] {
    const std::size_t steps = draw_steps.size() - 1;
    for (std::size_t k = 0; k < steps; ++k) {
      const DrawStep& step = draw_steps[k];
      const double* cumulated = nullptr;
      if (step.weights != kNotKept) {
        std::size_t place = step.weights;
        for (std::size_t d = step.digits; d < draw_steps[k + 1].digits; ++d) {
          place += std::size_t{draw_digits[d].stride} * x[draw_digits[d].variable];
        }
        cumulated = &weights[place];
      } else {
        own.resize(step.groups);
        weigh(step.bucket, x, own);
        cumulated = own.data();
      }
      // The last group has all that others leave.
      const std::size_t others = step.groups - 1;
      const double at = rng.uniform() * cumulated[others];
      std::size_t group = 0;
      if (others < kFewGroups) {
        for (std::size_t g = 0; g < others; ++g) group += cumulated[g] <= at;
      } else {
        group = static_cast<std::size_t>(std::upper_bound(cumulated, cumulated + others, at) - cumulated);
      }
      for (Index s = step.count; s-- > 1;) {
        x[step.summed[s]] = static_cast<Index>(group % step.levels[s]);
        group /= step.levels[s];
      }
      x[step.summed[0]] = static_cast<Index>(group);
    }
  });
}

void Tables::set_group(Index b, std::size_t group, std::vector<Index>& x) const {
  const std::span<const Index> variables = of(members, buckets.all[b]);
  const std::span<const Index> of_variables = of(levels, buckets.all[b]);
  for (Index k = buckets.all[b].summed; k-- > 0;) {
    x[variables[k]] = static_cast<Index>(group % of_variables[k]);
    group /= of_variables[k];
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
  constexpr std::array units{"bytes", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024.0 && unit + 1 < units.size(); ++unit) bytes /= 1024.0;
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
  if (options.marginals) tables_->hand_out(crew);
  if (options.draws) tables_->prepare_draws();
}

JunctionTree::~JunctionTree() = default;
JunctionTree::JunctionTree(JunctionTree&&) noexcept = default;
JunctionTree& JunctionTree::operator=(JunctionTree&&) noexcept = default;

double JunctionTree::log_partition() const { return tables_->log_partition; }
const Marginals& JunctionTree::marginals() const { return tables_->marginals; }
void JunctionTree::draw(Rng& rng, std::vector<Index>& out) const { tables_->draw(rng, out); }

}  // namespace poise
