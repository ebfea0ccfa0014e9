/// Collecting and sharing out of costs, and the way back.
#include "inference/network_search/soft_costs.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace poise::network_search {

namespace {

/// The sum of all finite ranges in units: far from both ends of the integers.
constexpr double kRangeInUnits = 4503599627370496.0;  // 2^52
/// What was taken from a factor stays below.
constexpr Cost kMostMoved = Cost{1} << 55;
/// What stands for a zero; whatever is moved away from it, it stays above kNoLimit.
constexpr Cost kZero = Cost{1} << 61;

}  // namespace

SoftCosts::SoftCosts(const Network& network) : levels_(network.cardinalities) {
  const Index n = network.num_variables();
  start_.assign(1, 0);
  for (Index i = 0; i < n; ++i) {
    for (Index level = 0; level < levels_[i]; ++level) {
      list_.push_back(level);
      place_.push_back(level);
    }
    start_.push_back(list_.size());
    count_.push_back(levels_[i]);
  }
  row_start_.assign(1, 0);
  for (int kind = 0; kind < 3; ++kind) {
    for (Index i = 0; i < n; ++i) row_start_.push_back(row_start_.back() + levels_[i]);
  }
  double range = 0.0;
  std::vector<double> most(network.num_factors());
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    double largest = 0.0;
    for (const double value : network.table(f)) largest = std::max(largest, value);
    double least = largest;
    for (const double value : network.table(f)) least = value > 0.0 ? std::min(least, value) : least;
    most[f] = std::log(largest);
    log_constant_ += most[f];
    range += most[f] - std::log(least);
  }
  unit_ = std::exp2(std::floor(std::log2(kRangeInUnits / std::max(1e-6, range))));
  std::vector<std::vector<Use>> uses(n);
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    const std::span<const Index> scope = network.scope(f);
    factors_.push_back({members_.size(), scope.size(), tables_.size()});
    members_.resize(members_.size() + scope.size());
    std::size_t stride = 1;
    for (std::size_t k = scope.size(); k-- > 0;) {
      members_[factors_[f].first_member + k] = {scope[k], stride, row_start_.size() - 1};
      row_start_.push_back(row_start_.back() + levels_[scope[k]]);
      stride *= levels_[scope[k]];
      uses[scope[k]].push_back({f, factors_[f].first_member + k});
    }
    for (const double value : network.table(f)) {
      const double cost = value > 0.0 ? (most[f] - std::log(value)) * unit_ : 0.0;
      tables_.push_back(value > 0.0 ? static_cast<Cost>(std::floor(cost)) : kZero);
    }
  }
  use_start_.assign(1, 0);
  std::size_t most_uses = 0;
  Index most_levels = 0;
  for (Index i = 0; i < n; ++i) {
    uses_.insert(uses_.end(), uses[i].begin(), uses[i].end());
    use_start_.push_back(uses_.size());
    most_uses = std::max(most_uses, uses[i].size());
    most_levels = std::max(most_levels, levels_[i]);
  }
  costs_.assign(row_start_.back(), 0);
  stamp_.assign(row_start_.size() - 1, 0);
  sums_.resize(most_levels);
  messages_.resize(most_uses * most_levels);
  for (std::vector<std::uint8_t>& due : due_) due.assign(n, 1);
}

Cost SoftCosts::cost(std::span<const Value> x) const {
  Cost sum = 0;
  for (const Factor& factor : factors_) {
    std::size_t at = factor.table;
    for (std::size_t m = factor.first_member; m < factor.first_member + factor.members; ++m) {
      at += members_[m].stride * x[members_[m].variable];
    }
    if (tables_[at] >= kZero) return kNoLimit;
    sum += tables_[at];
  }
  return sum;
}

Cost SoftCosts::cost_of(double log_value) const {
  const double cost = (log_constant_ - log_value) * unit_;
  return cost < static_cast<double>(kNoLimit) ? static_cast<Cost>(std::ceil(cost)) : kNoLimit;
}

void SoftCosts::push() {
  marks_.push_back({saved_rows_.size(), saved_counts_.size(), bound_, now_});
  now_ = ++stamps_;
}

void SoftCosts::pop() {
  const Mark mark = marks_.back();
  marks_.pop_back();
  while (saved_rows_.size() > mark.rows) {
    const std::size_t row = saved_rows_.back();
    const std::size_t size = row_start_[row + 1] - row_start_[row];
    std::copy(saved_costs_.end() - static_cast<std::ptrdiff_t>(size), saved_costs_.end(),
              costs_.begin() + static_cast<std::ptrdiff_t>(row_start_[row]));
    saved_costs_.resize(saved_costs_.size() - size);
    stamp_[row] = saved_stamps_.back();
    saved_rows_.pop_back();
    saved_stamps_.pop_back();
  }
  for (; saved_counts_.size() > mark.counts; saved_counts_.pop_back()) {
    count_[saved_counts_.back().first] = saved_counts_.back().second;
  }
  bound_ = mark.bound;
  now_ = mark.stamp;
  for (std::vector<std::uint8_t>& due : due_) std::fill(due.begin(), due.end(), 0);
}

void SoftCosts::save(std::size_t row) {
  if (stamp_[row] == now_) return;
  saved_rows_.push_back(row);
  saved_stamps_.push_back(std::exchange(stamp_[row], now_));
  saved_costs_.insert(saved_costs_.end(), costs_.begin() + static_cast<std::ptrdiff_t>(row_start_[row]),
                      costs_.begin() + static_cast<std::ptrdiff_t>(row_start_[row + 1]));
}

void SoftCosts::take_out(Index i, std::size_t place) {
  saved_counts_.emplace_back(i, count_[i]);
  Index* const list = list_.data() + start_[i];
  const std::size_t last = --count_[i];
  std::swap(list[place], list[last]);
  place_[start_[i] + list[place]] = static_cast<Index>(place);
  place_[start_[i] + list[last]] = static_cast<Index>(last);
}

void SoftCosts::settle(Index i, Index level) {
  while (count_[i] > 1) take_out(i, list_[start_[i]] == level ? 1 : 0);
  wake_beside(i);
}

void SoftCosts::remove(Index i, Index level) {
  take_out(i, place_[start_[i] + level]);
  wake_beside(i);
}

/// A variable whose levels have changed is to be visited again, and so are those beside it.
void SoftCosts::wake_beside(Index i) {
  for (std::vector<std::uint8_t>& due : due_) {
    due[i] = 1;
    for (std::size_t u = use_start_[i]; u < use_start_[i + 1]; ++u) {
      const Factor& factor = factors_[uses_[u].factor];
      for (std::size_t m = factor.first_member; m < factor.first_member + factor.members; ++m) {
        due[members_[m].variable] = 1;
      }
    }
  }
}

bool SoftCosts::propagate(Cost limit, const Effort& effort, const std::function<bool()>& halt) {
  for (unsigned round = 0; round < effort.rounds && !(halt && halt()); ++round) {
    const Cost before = bound_;
    const auto missing = static_cast<double>(limit >= kNoLimit ? Cost{1} : limit - bound_);
    const auto move = static_cast<Cost>(effort.least_move * missing);
    if (!pass(true, limit, move) || !pass(false, limit, move)) return false;
    if (static_cast<double>(bound_ - before) <= effort.least_gain * missing) break;
  }
  return true;
}

bool SoftCosts::pass(bool forward, Cost limit, Cost move) {
  const Index n = size();
  for (Index k = 0; k < n; ++k) {
    const Index i = forward ? k : n - 1 - k;
    if (due_[forward][i] == 0) continue;
    if (visit(i, forward, limit, move)) continue;
    failed_ = i;
    return false;
  }
  return true;
}

bool SoftCosts::reaches(const Factor& factor, Index i, bool up) const {
  for (std::size_t m = factor.first_member; m < factor.first_member + factor.members; ++m) {
    const Index j = members_[m].variable;
    if (count_[j] > 1 && (up ? j > i : j < i)) return true;
  }
  return false;
}

/// The least cost of a factor at each level of a variable, over what is left of the others.
void SoftCosts::minima(const Use& use, Cost* out) {
  const Factor& factor = factors_[use.factor];
  const Member& member = members_[use.member];
  const Cost* table = tables_.data() + factor.table;
  Cost moved = 0;
  axes_.clear();
  double entries = count_[member.variable];
  for (std::size_t m = factor.first_member; m < factor.first_member + factor.members; ++m) {
    if (m == use.member) continue;
    const Member& other = members_[m];
    const Cost* const row = costs_.data() + row_start_[other.row];
    const std::span<const Index> left = levels(other.variable);
    if (left.size() == 1) {
      table += other.stride * left[0];
      moved += row[left[0]];
    } else {
      axes_.push_back({other.stride, left, row});
      entries *= static_cast<double>(left.size());
    }
  }
  looks_ += entries;
  const Cost* const own = costs_.data() + row_start_[member.row];
  const std::span<const Index> left = levels(member.variable);
  for (std::size_t p = 0; p < left.size(); ++p) {
    Cost least = kZero;
    minima_over(axes_.size(), table + member.stride * left[p], moved + own[left[p]], least);
    out[p] = least;
  }
}

void SoftCosts::minima_over(std::size_t axes, const Cost* table, Cost moved, Cost& least) const {
  if (axes == 0) {
    least = std::min(least, *table - moved);
    return;
  }
  const Axis& axis = axes_[axes - 1];
  if (axes == 1) {
    for (const Index level : axis.levels) {
      least = std::min(least, table[axis.stride * level] - moved - axis.moved[level]);
    }
    return;
  }
  for (const Index level : axis.levels) {
    minima_over(axes - 1, table + axis.stride * level, moved + axis.moved[level], least);
  }
}

/// A variable collects what its factors say of its levels. The least of it goes to the bound, levels go that no wanted
/// state has, and the rest goes to the factors ahead.
bool SoftCosts::visit(Index i, bool forward, Cost limit, Cost move) {
  due_[forward][i] = 0;
  const std::size_t uses = use_start_[i + 1] - use_start_[i];
  const Index* const list = list_.data() + start_[i];
  std::size_t count = count_[i];
  const std::size_t stride = sums_.size();
  const Cost* const own = costs_.data() + row_start_[i];
  for (std::size_t p = 0; p < count; ++p) sums_[p] = own[list[p]];
  for (std::size_t u = 0; u < uses; ++u) {
    Cost* const message = messages_.data() + u * stride;
    minima(uses_[use_start_[i] + u], message);
    for (std::size_t p = 0; p < count; ++p) {
      // A level that a zero rules out has a cost beyond any limit, and zeros do not add up beyond integers.
      sums_[p] = std::min(kNoLimit, sums_[p] + std::min(message[p], kNoLimit));
    }
  }
  const Cost least = *std::min_element(sums_.begin(), sums_.begin() + static_cast<std::ptrdiff_t>(count));
  if (least >= kNoLimit || bound_ + least >= limit) return false;
  bound_ += least;
  const std::size_t before = count;
  for (std::size_t p = count; p-- > 0;) {
    if (sums_[p] < kNoLimit && bound_ + sums_[p] - least < limit) {
      sums_[p] -= least;
      continue;
    }
    take_out(i, p);
    --count;
    std::swap(sums_[p], sums_[count]);
    for (std::size_t u = 0; u < uses; ++u) std::swap(messages_[u * stride + p], messages_[u * stride + count]);
  }
  const std::size_t memory = (forward ? 1 : 2) * std::size_t{size()} + i;
  save(memory);
  Cost* const last = costs_.data() + row_start_[memory];
  Cost change = 0;
  for (std::size_t p = 0; p < count; ++p) {
    change = std::max(change, std::abs(sums_[p] - last[list[p]]));
    last[list[p]] = sums_[p];
  }
  if (count < before) {
    wake_beside(i);
    due_[forward][i] = 0;
  } else if (change > move) {
    due_[!forward][i] = 1;
    for (std::size_t u = use_start_[i]; u < use_start_[i + 1]; ++u) {
      const Factor& factor = factors_[uses_[u].factor];
      for (std::size_t m = factor.first_member; m < factor.first_member + factor.members; ++m) {
        const Index j = members_[m].variable;
        if (forward ? j > i : j < i) due_[forward][j] = 1;
      }
    }
  }
  share_out(i, forward);
  return true;
}

void SoftCosts::share_out(Index i, bool forward) {
  const std::size_t uses = use_start_[i + 1] - use_start_[i];
  const Index* const list = list_.data() + start_[i];
  const std::size_t count = count_[i];
  const std::size_t stride = sums_.size();
  Cost ahead = 0;
  Cost behind = 0;
  for (std::size_t u = use_start_[i]; count > 1 && u < use_start_[i + 1]; ++u) {
    ahead += reaches(factors_[uses_[u].factor], i, forward) ? 1 : 0;
    behind += reaches(factors_[uses_[u].factor], i, !forward) ? 1 : 0;
  }
  const Cost parts = std::max({ahead, behind, Cost{1}});
  save(i);
  Cost* const own = costs_.data() + row_start_[i];
  for (std::size_t p = 0; p < count; ++p) own[list[p]] = sums_[p];
  for (std::size_t u = 0; u < uses; ++u) {
    const Use& use = uses_[use_start_[i] + u];
    const std::size_t row = members_[use.member].row;
    const bool gives = ahead > 0 && reaches(factors_[use.factor], i, forward);
    save(row);
    Cost* const moved = costs_.data() + row_start_[row];
    for (std::size_t p = 0; p < count; ++p) {
      moved[list[p]] += messages_[u * stride + p];
      const Cost share = sums_[p] / parts;
      if (!gives || std::abs(moved[list[p]] - share) > kMostMoved) continue;
      moved[list[p]] -= share;
      own[list[p]] -= share;
    }
  }
}

}  // namespace poise::network_search
