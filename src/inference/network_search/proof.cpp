/// Rounds of shifting and pruning, the exact solution of what is left, branch and bound, and mini-buckets.
#include "inference/network_search/proof.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "exact/cost_shifting.hpp"
#include "exact/dominance.hpp"
#include "exact/max_product.hpp"
#include "exact/mini_buckets.hpp"

namespace poise::network_search {

namespace {

/// Shifting is repeated where levels went: on fewer levels it goes lower.
constexpr int kRoundsOfShifting = 4;
/// Rounds end where fewer than this part of all levels went.
constexpr double kLeastShrinking = 0.02;
/// Looks at edges for an order of what is left, for each variable.
constexpr double kOrderLooks = 4000.0;
/// Max-product beside sums and marginals, in time.
constexpr double kOfSums = 0.25;
/// The first size of mini-buckets, and how much larger the next ones are.
constexpr double kFirstTable = 1024.0;
constexpr double kNextTable = 8.0;
/// Tables that variables are eliminated in before branch and bound.
constexpr double kMostCollapsed = 64.0;

double levels_of(const Network& network) {
  double sum = 0.0;
  for (const Index levels : network.cardinalities) sum += levels - 1.0;
  return sum;
}

double proof_rounding(double value) { return 1e-9 * (1.0 + std::abs(value)); }

}  // namespace

Proof::Proof(const Network& network, ProofOptions options) : options_(std::move(options)), left_(network) {}

void Proof::lower_bound_of_rest(double log_value) {
  const ShiftedCosts costs(left_, {.operations = options_.operations / 2.0, .halt = options_.halt});
  bound_ = std::min(bound_, std::max(log_value, costs.log_bound() + constant_));
  cut_into_buckets(costs.shifted(), costs.log_bound() + constant_, log_value);
}

void Proof::cut_into_buckets(const Network& shifted, double constant, double log_value) {
  MiniBucketOptions mini{.largest_table = kFirstTable, .memory_limit = options_.memory / 2.0, .halt = options_.halt};
  const double room = options_.memory / (2.0 * sizeof(double));
  for (double operations = 0.0; operations < options_.operations / 2.0 && mini.largest_table < kNextTable * room;) {
    const MiniBucketBound found = mini_bucket_bound(shifted, mini);
    bound_ = std::min(bound_, std::max(log_value, found.log_bound + constant));
    if (found.exact || !std::isfinite(found.log_bound)) break;
    operations += (1.0 + kNextTable) * found.operations;
    mini.largest_table *= kNextTable;
  }
}

/// Takes levels out that no state as good as this has. True where nothing is left: then there is none better.
bool Proof::prune(double log_value) {
  const ShiftedCosts costs(left_, {.operations = options_.operations / 2.0, .halt = options_.halt});
  bound_ = std::min(bound_, std::max(log_value, costs.log_bound() + constant_));
  if (bound_ <= log_value + proof_rounding(log_value)) return true;
  const std::vector<bool> out = costs.ruled_out(log_value - constant_);
  std::size_t at = 0;
  for (Index i = 0; i < left_.num_variables(); ++i) {
    std::vector<double> stays;
    for (Index level = 0; level < left_.cardinalities[i]; ++level) stays.push_back(out[at++] ? 0.0 : 1.0);
    if (std::ranges::find(stays, 0.0) == stays.end()) continue;
    left_.add_factor(std::vector<Index>{i}, stays);
  }
  try {
    reduced_.emplace_back(without_dominated_levels(left_));
  } catch (const InputError&) {  // no state is as good: those that are known are no better than that
    return true;
  }
  left_ = reduced_.back().network;
  constant_ += reduced_.back().log_constant;
  return false;
}

/// The best state of what is left, where that takes little.
std::optional<Proof::Outcome> Proof::solve(double log_value) {
  std::vector<Index> levels;
  if (left_.num_variables() > 0) {
    ExactPlan plan;
    plan.tree = plan_elimination(
        left_, PlanOptions{.memory_limit = options_.memory, .most_looks = kOrderLooks * left_.num_variables()});
    if (!plan.fits(options_.memory) || kOfSums * plan.seconds() > options_.seconds) return {};
    ExactOptions exact;
    exact.memory_limit = options_.memory;
    exact.threads = options_.threads;
    exact.progress = [&](double) { return !(options_.halt && options_.halt()); };
    try {
      levels = most_probable_states(left_, plan, 1, exact).front().levels;
    } catch (const ExactStopped&) {
      return {};
    } catch (const InputError&) {
      return Outcome{.proved = true, .better = {}};
    }
  }
  const double value = log_value_of_rest(levels);
  bound_ = std::min(bound_, std::max(log_value, value));
  Outcome outcome{.proved = true, .better = {}};
  if (value <= log_value + proof_rounding(log_value)) return outcome;
  outcome.better = original(std::move(levels), reduced_.size());
  return outcome;
}

std::vector<Value> Proof::original(std::vector<Index> levels, std::size_t reductions) const {
  while (reductions-- > 0) levels = reduced_[reductions].original_state(levels);
  return {levels.begin(), levels.end()};
}

Proof::Tree::Tree(const Network& left, double memory)
    : collapse(left, {.most_entries = kMostCollapsed, .memory_limit = memory, .reduction = Reduction::max}),
      search(collapse.core(), memory),
      constant(collapse.log_constant()),
      levels(levels_of(left)),
      variables(left.num_variables()) {}

Proof::Outcome Proof::search_tree(double log_value, double looks) {
  if (bound_ <= log_value + proof_rounding(log_value)) return {.proved = true, .better = {}};
  if (tree_ == nullptr || levels_of(left_) < (1.0 - kLeastShrinking) * tree_->levels) {
    try {
      tree_ = std::make_unique<Tree>(left_, options_.memory / 4.0);
    } catch (const InputError&) {  // no state is as good: those that are known are no better than that
      bound_ = log_value;
      return {.proved = true, .better = {}};
    }
    tree_->reductions = reduced_.size();
    tree_->constant += constant_;
  }
  BranchAndBound& search = tree_->search;
  search.look_above(log_value - tree_->constant);
  Outcome outcome{.proved = search.search({.looks = looks, .halt = options_.halt}), .better = {}};
  bound_ = std::min(bound_, std::max(log_value, search.log_bound() + tree_->constant));
  if (!search.best()) return outcome;
  Rng rng(0, 0);  // nothing is left to chance in levels that are maxima
  std::vector<Value> levels(tree_->variables);
  tree_->collapse.draw(*search.best(), rng, levels, {});
  outcome.better = original({levels.begin(), levels.end()}, tree_->reductions);
  return outcome;
}

double Proof::log_value_of_rest(const std::vector<Index>& levels) const {
  return constant_ + poise::log_value(left_, levels);
}

Proof::Outcome Proof::attempt(double log_value) {
  Outcome outcome = search_tree(log_value, options_.operations / 8.0);
  if (outcome.proved || !outcome.better.empty()) return outcome;
  for (int round = 0; round < kRoundsOfShifting; ++round) {
    const double before = levels_of(left_);
    if (prune(log_value)) {
      bound_ = log_value;
      return {.proved = true, .better = {}};
    }
    if (const std::optional<Outcome> solved = solve(log_value)) return *solved;
    if (levels_of(left_) > (1.0 - kLeastShrinking) * before) break;
    if (options_.halt && options_.halt()) return outcome;
  }
  outcome = search_tree(log_value, options_.operations / 4.0);
  if (outcome.proved || !outcome.better.empty()) return outcome;
  lower_bound_of_rest(log_value);
  return {.proved = bound_ <= log_value + proof_rounding(log_value), .better = {}};
}

}  // namespace poise::network_search
