/// Open nodes, depth-first searches from them, and what they decide.
#include "inference/network_search/branch_and_bound.hpp"

#include <algorithm>
#include <utility>

namespace poise::network_search {

namespace {

/// The root takes its time, because all other nodes begin with its costs.
constexpr SoftCosts::Effort kAtRoot{.rounds = 1000, .least_gain = 1e-4, .least_move = 1e-6};
constexpr SoftCosts::Effort kAtNode{.rounds = 4, .least_gain = 0.05, .least_move = 0.02};
/// A depth-first search has more failures where more than a tenth of all nodes are visited again on the way to open
/// ones, and fewer where less than a twentieth are.
constexpr std::uint64_t kMostRevisited = 10;
constexpr std::uint64_t kFewRevisited = 20;
constexpr std::uint64_t kMostFailures = 16384;

}  // namespace

BranchAndBound::BranchAndBound(const Network& network, double memory)
    : costs_(network),
      most_steps_(static_cast<std::size_t>(memory / (sizeof(Step) + sizeof(Open)))),
      guess_(network.num_variables()),
      weight_(network.num_variables(), 1.0) {
  open_.push_back({0, kRoot, 0, opened_++});
}

void BranchAndBound::look_above(double log_value) {
  const Cost cost = costs_.cost_of(log_value);
  if (cost >= kNoLimit || cost - costs_.rounding() >= limit_) return;
  limit_ = cost - costs_.rounding();
  best_.reset();
}

double BranchAndBound::log_bound() const {
  Cost least = limit_;
  for (const Open& open : open_) least = std::min(least, open.bound);
  return least >= kNoLimit ? kMinusInfinity : costs_.log_of(least - costs_.rounding());
}

bool BranchAndBound::search(const Limits& limits) {
  const double last_look = costs_.looks() + limits.looks;
  const auto is_over = [&] { return costs_.looks() >= last_look || (limits.halt && limits.halt()); };
  if (nodes_ == 0) {
    const Cost before = costs_.bound();
    if (!costs_.propagate(limit_, kAtRoot, is_over)) open_.clear();
    for (Open& root : open_) root.bound = costs_.bound();
    const auto gain = static_cast<double>(costs_.bound() - before);
    const bool settles = gain <= kAtRoot.least_gain * static_cast<double>(limit_ - before);
    if (!settles && is_over()) return open_.empty();
    ++nodes_;
  }
  while (!open_.empty()) {
    if (is_over()) return false;
    std::pop_heap(open_.begin(), open_.end());
    const Open node = open_.back();
    open_.pop_back();
    if (node.bound >= limit_) {  // and so are all others
      open_.clear();
      break;
    }
    costs_.push();
    failures_ = 0;
    if (enter(node)) descend(limits, last_look);
    leave_open();
    while (!branches_.empty()) {
      branches_.pop_back();
      costs_.pop();
    }
    costs_.pop();
    const bool is_full = steps_.size() >= most_steps_;
    if (is_full) {
      most_failures_ = std::numeric_limits<std::uint64_t>::max();
    } else if (revisited_ > nodes_ / kMostRevisited) {
      most_failures_ = std::min(kMostFailures, 2 * most_failures_);
    } else if (revisited_ < nodes_ / kFewRevisited && most_failures_ > 1) {
      most_failures_ /= 2;
    }
  }
  return true;
}

/// Makes the decisions on the way to an open node. False where nothing is left there.
bool BranchAndBound::enter(const Open& open) {
  entered_ = open.step;
  entered_depth_ = open.depth;
  entered_bound_ = open.bound;
  path_.clear();
  std::vector<Decision> way;
  for (std::uint32_t step = open.step; step != kRoot; step = steps_[step].parent) way.push_back(steps_[step].decision);
  for (std::size_t k = way.size(); k-- > 0;) {
    const Decision& one = way[k];
    const std::span<const Index> left = costs_.levels(one.variable);
    const bool is_left = std::find(left.begin(), left.end(), one.level) != left.end();
    if (one.is_it ? !is_left : is_left && left.size() == 1) return false;
    if (one.is_it) costs_.settle(one.variable, one.level);
    if (!one.is_it && is_left) costs_.remove(one.variable, one.level);
  }
  revisited_ += way.size();
  ++nodes_;
  return costs_.propagate(limit_, kAtNode);
}

/// Depth first from the present node until nothing is left, or until it is time to look elsewhere: then false.
bool BranchAndBound::descend(const Limits& limits, double last_look) {
  for (;;) {
    if (is_solved()) {
      if (!retreat()) return true;
      continue;
    }
    const bool enough = failures_ >= most_failures_ || costs_.looks() >= last_look || (limits.halt && limits.halt());
    const Decision decision = choose();
    branches_.push_back({decision, std::max(costs_.bound(), entered_bound_), path_.size()});
    costs_.push();
    if (enough) return false;  // the caller leaves both sides open
    path_.push_back(decision);
    if (!apply(decision) && !retreat()) return true;
  }
}

bool BranchAndBound::apply(const Decision& decision) {
  ++nodes_;
  if (decision.is_it) {
    costs_.settle(decision.variable, decision.level);
  } else {
    costs_.remove(decision.variable, decision.level);
  }
  if (costs_.propagate(limit_, kAtNode)) return true;
  weight_[costs_.failed()] += 1.0;
  conflict_ = decision.variable;
  ++failures_;
  return false;
}

/// Goes back to the last decision whose opposite is open, and makes that. False where there is none.
bool BranchAndBound::retreat() {
  while (!branches_.empty()) {
    Branch branch = branches_.back();
    branches_.pop_back();
    costs_.pop();
    path_.resize(branch.path);
    branch.decision.is_it = false;
    if (branch.bound >= limit_) continue;
    path_.push_back(branch.decision);
    if (apply(branch.decision)) return true;
  }
  return false;
}

/// Whether the levels that cost least each for itself make a state that no other one here is better than.
bool BranchAndBound::is_solved() {
  bool settled = true;
  for (Index i = 0; i < costs_.size(); ++i) {
    const std::span<const Index> left = costs_.levels(i);
    const std::span<const Cost> excess = costs_.excess(i);
    Index level = left[0];
    for (const Index other : left) {
      if (excess[other] < excess[level]) level = other;
    }
    guess_[i] = static_cast<Value>(level);
    settled = settled && left.size() == 1;
  }
  const Cost cost = costs_.cost(guess_);
  if (cost < limit_) {
    best_ = guess_;
    limit_ = cost;
  }
  return settled || costs_.bound() >= limit_;
}

/// The variable with few levels at which much has failed, first of all that of the last failure. Its best level.
BranchAndBound::Decision BranchAndBound::choose() const {
  Index chosen = Network::kFree;
  double best = 0.0;
  for (Index i = 0; i < costs_.size(); ++i) {
    if (costs_.is_settled(i)) continue;
    if (i == conflict_) {
      chosen = i;
      break;
    }
    const double score = weight_[i] / static_cast<double>(costs_.levels(i).size());
    if (chosen != Network::kFree && score <= best) continue;
    best = score;
    chosen = i;
  }
  return {chosen, guess_[chosen], true};
}

/// Both sides of the last branch where it was not decided, and the opposite of every other one join the open nodes.
void BranchAndBound::leave_open() {
  std::uint32_t step = entered_;
  std::size_t at = 0;
  const auto add_step = [&](const Decision& decision) {
    steps_.push_back({step, decision});
    return static_cast<std::uint32_t>(steps_.size() - 1);
  };
  const auto add_open = [&](Cost bound, const Decision& decision) {
    open_.push_back({bound, add_step(decision), static_cast<std::uint32_t>(entered_depth_ + at + 1), opened_++});
    std::push_heap(open_.begin(), open_.end());
  };
  for (const Branch& branch : branches_) {
    for (; at < branch.path; ++at) step = add_step(path_[at]);
    if (branch.bound >= limit_) continue;
    Decision decision = branch.decision;
    if (branch.path == path_.size()) add_open(branch.bound, decision);
    decision.is_it = false;
    add_open(branch.bound, decision);
  }
}

}  // namespace poise::network_search
