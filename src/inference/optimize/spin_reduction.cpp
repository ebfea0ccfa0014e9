/// Elimination of variables by max, as long as what they leave behind is a sum over pairs.
#include "inference/optimize/spin_reduction.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <numeric>

namespace poise {

namespace {

constexpr unsigned kMostDegree = 3;
/// What elimination leaves behind are halves and quarters. Weights are multiplied by this first, so that ten
/// eliminations one on top of the other stay among integers; a variable whose coefficients do not is kept.
constexpr std::int64_t kScale = 1024;

/// Whether any variable can go. Large dense problems, where none can, are spared the copy as a graph that changes.
bool can_begin(const SpinProblem& whole, std::span<const Spin> fixed, SpinReduction::Eliminate eliminate) {
  for (Index i = 0; i < whole.num_variables(); ++i) {
    if (fixed[i] != 0) return true;
    if (eliminate == SpinReduction::Eliminate::no) continue;
    const bool decided = 2 * std::abs(whole.field[i]) >= whole.strength(i);
    if (decided || whole.degree(i) <= kMostDegree) return true;
  }
  return false;
}

}  // namespace

/// The problem while variables leave it.
class SpinReduction::Graph {
 public:
  Graph(const SpinProblem& whole, std::span<const Spin> fixed)
      : neighbours_(whole.num_variables()),
        field_(whole.num_variables()),
        strength_(whole.num_variables()),
        gone_(whole.num_variables(), false) {
    const auto is_fixed = [&](Index i) { return !fixed.empty() && fixed[i] != 0; };
    for (Index i = 0; i < whole.num_variables(); ++i) {
      if (is_fixed(i)) {
        gone_[i] = true;
        continue;
      }
      field_[i] = kScale * whole.field[i];
      for (std::size_t k = whole.start[i]; k < whole.start[i + 1]; ++k) {
        const Index j = whole.neighbour[k];
        if (is_fixed(j)) {
          field_[i] += kScale * whole.weight[k] * fixed[j];
        } else if (whole.weight[k] != 0) {
          neighbours_[i][j] = kScale * whole.weight[k];
          strength_[i] += std::abs(kScale * whole.weight[k]);
        }
      }
    }
    for (Index i = 0; i < whole.num_variables(); ++i) enqueue(i);
  }

  /// Eliminates a variable that its field decides, or one of the smallest degree; gives nothing when none is left that
  /// can go.
  std::optional<Eliminated> eliminate() {
    while (!decided_.empty()) {
      const Index v = decided_.back();
      decided_.pop_back();
      if (!gone_[v]) return settle(v);
    }
    for (unsigned degree = 0; degree <= kMostDegree;) {
      if (waiting_[degree].empty()) {
        ++degree;
        continue;
      }
      const Index v = waiting_[degree].back();
      waiting_[degree].pop_back();
      if (gone_[v] || neighbours_[v].size() != degree) continue;
      if (std::optional<Eliminated> done = try_variable(v)) return done;
    }
    return std::nullopt;
  }

  /// Numbers what is left, and divides by what all weights have in common.
  SpinProblem rest(std::vector<Index>& kept) const {
    std::vector<Index> number(field_.size());
    std::int64_t divisor = 0;
    for (Index i = 0; i < field_.size(); ++i) {
      if (gone_[i]) continue;
      number[i] = static_cast<Index>(kept.size());
      kept.push_back(i);
      divisor = std::gcd(divisor, field_[i]);
      for (const auto& [j, weight] : neighbours_[i]) divisor = std::gcd(divisor, weight);
    }
    divisor = std::max<std::int64_t>(divisor, 1);
    SpinProblem problem;
    for (const Index i : kept) {
      problem.field.push_back(field_[i] / divisor);
      for (const auto& [j, weight] : neighbours_[i]) {
        problem.neighbour.push_back(number[j]);
        problem.weight.push_back(weight / divisor);
      }
      problem.start.push_back(problem.neighbour.size());
    }
    return problem;
  }

 private:
  void enqueue(Index i) {
    if (gone_[i]) return;
    if (std::abs(field_[i]) >= strength_[i]) {
      decided_.push_back(i);
    } else if (neighbours_[i].size() <= kMostDegree) {
      waiting_[neighbours_[i].size()].push_back(i);
    }
  }

  /// No couplings can outweigh the field of v, so its spin is known, and its neighbours feel it as a field.
  Eliminated settle(Index v) {
    const int spin = field_[v] < 0 ? -1 : 1;
    gone_[v] = true;
    for (const auto& [j, weight] : neighbours_[v]) {
      field_[j] += spin * weight;
      strength_[j] -= std::abs(weight);
      neighbours_[j].erase(v);
      enqueue(j);
    }
    neighbours_[v].clear();
    return {v, 0, {}, {}, field_[v]};
  }

  std::optional<Eliminated> try_variable(Index v) {
    Eliminated out{v, 0, {}, {}, field_[v]};
    for (const auto& [j, weight] : neighbours_[v]) {
      out.neighbour[out.degree] = j;
      out.weight[out.degree++] = weight;
    }
    // |h| for all values of the neighbours, and its Walsh transform: the coefficient of each product of spins.
    const unsigned states = 1U << out.degree;
    std::array<std::int64_t, 1U << kMostDegree> best{};
    for (unsigned state = 0; state < states; ++state) {
      std::int64_t h = out.field;
      for (unsigned k = 0; k < out.degree; ++k) h += (state >> k & 1) != 0 ? out.weight[k] : -out.weight[k];
      best[state] = std::abs(h);
    }
    std::array<std::int64_t, 1U << kMostDegree> coefficient{};
    for (unsigned product = 1; product < states; ++product) {
      std::int64_t sum = 0;
      for (unsigned state = 0; state < states; ++state) {
        sum += std::popcount(product & ~state) % 2 == 0 ? best[state] : -best[state];
      }
      if (sum % states != 0) return std::nullopt;
      coefficient[product] = sum / states;
      if (std::popcount(product) > 2 && sum != 0) return std::nullopt;
    }
    gone_[v] = true;
    for (unsigned k = 0; k < out.degree; ++k) {
      field_[out.neighbour[k]] += coefficient[1U << k];
      neighbours_[out.neighbour[k]].erase(v);
      strength_[out.neighbour[k]] -= std::abs(out.weight[k]);
      for (unsigned l = 0; l < k; ++l) couple(out.neighbour[k], out.neighbour[l], coefficient[1U << k | 1U << l]);
    }
    neighbours_[v].clear();
    for (unsigned k = 0; k < out.degree; ++k) enqueue(out.neighbour[k]);
    return out;
  }

  void couple(Index i, Index j, std::int64_t weight) {
    if (weight == 0) return;
    const std::int64_t before = neighbours_[i][j];
    const std::int64_t sum = before + weight;
    neighbours_[i][j] = neighbours_[j][i] = sum;
    for (const Index end : {i, j}) strength_[end] += std::abs(sum) - std::abs(before);
    if (sum != 0) return;
    neighbours_[i].erase(j);
    neighbours_[j].erase(i);
  }

  std::vector<std::map<Index, std::int64_t>> neighbours_;
  std::vector<std::int64_t> field_;
  std::vector<std::int64_t> strength_;  // what all couplings of a variable can add up to
  std::vector<bool> gone_;
  std::vector<Index> decided_;
  std::array<std::vector<Index>, kMostDegree + 1> waiting_;  // by their degree when they came
};

SpinReduction::SpinReduction(const SpinProblem& whole, std::span<const Spin> fixed, Eliminate eliminate)
    : fixed_(fixed.begin(), fixed.end()) {
  fixed_.resize(whole.num_variables(), 0);
  if (!can_begin(whole, fixed_, eliminate)) {
    core_ = whole;
    kept_.resize(whole.num_variables());
    std::iota(kept_.begin(), kept_.end(), Index{0});
    return;
  }
  Graph graph(whole, fixed_);
  while (eliminate == Eliminate::yes) {
    const std::optional<Eliminated> next = graph.eliminate();
    if (!next) break;
    eliminated_.push_back(*next);
  }
  core_ = graph.rest(kept_);
}

std::vector<Spin> SpinReduction::expand(std::span<const Spin> core) const {
  std::vector<Spin> spins = fixed_;
  for (std::size_t k = 0; k < kept_.size(); ++k) spins[kept_[k]] = core[k];
  for (auto it = eliminated_.rbegin(); it != eliminated_.rend(); ++it) {
    std::int64_t h = it->field;
    for (unsigned k = 0; k < it->degree; ++k) h += it->weight[k] * spins[it->neighbour[k]];
    spins[it->variable] = h < 0 ? -1 : 1;
  }
  return spins;
}

std::vector<Spin> SpinReduction::restrict(std::span<const Spin> whole) const {
  std::vector<Spin> core;
  core.reserve(kept_.size());
  for (const Index i : kept_) core.push_back(whole[i]);
  return core;
}

}  // namespace poise
