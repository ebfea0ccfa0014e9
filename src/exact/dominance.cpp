/// Dead-end elimination with a list of variables to look at again.
#include "exact/dominance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace poise {

namespace {

/// Table entries that all comparisons look at, for each entry of the tables: variables of very many levels in large
/// tables are left alone.
constexpr double kLooksPerTableEntry = 200.0;

class Dominance {
 public:
  /// A level dominates another where log p loses no more than `most_loss` by it.
  Dominance(const Network& network, double most_loss)
      : network_(network), most_loss_(most_loss), uses_(network.num_variables()) {
    for (const Index levels : network.cardinalities) allowed_.emplace_back(levels, true);
    logs_.reserve(network.values.size());
    for (const double value : network.values) logs_.push_back(std::log(value));
    for (std::size_t f = 0; f < network.num_factors(); ++f) {
      most_looks_ += kLooksPerTableEntry * static_cast<double>(network.table_size(f));
      std::size_t stride = 1;
      const std::span<const Index> scope = network.scope(f);
      for (std::size_t k = scope.size(); k-- > 0;) {
        uses_[scope[k]].push_back({f, k, stride});
        stride *= network.cardinalities[scope[k]];
      }
    }
  }

  /// Levels that stay, of each variable.
  std::vector<std::vector<bool>> find() {
    std::vector<Index> waiting;
    std::vector<bool> waits(network_.num_variables(), true);
    for (Index i = network_.num_variables(); i-- > 0;) waiting.push_back(i);
    while (!waiting.empty() && looks_ < most_looks_) {
      const Index i = waiting.back();
      waiting.pop_back();
      waits[i] = false;
      if (!reduce(i)) continue;
      for (const Use& use : uses_[i]) {
        for (const Index j : network_.scope(use.factor)) {
          if (waits[j]) continue;
          waits[j] = true;
          waiting.push_back(j);
        }
      }
    }
    return std::move(allowed_);
  }

 private:
  struct Use {
    std::size_t factor;
    std::size_t member;
    std::size_t stride;
  };

  /// Takes the levels of a variable out that another one dominates; true where there were any.
  bool reduce(Index i) {
    bool any = false;
    const Index levels = network_.cardinalities[i];
    for (Index level = 0; level < levels; ++level) {
      for (Index other = 0; allowed_[i][level] && other < levels; ++other) {
        if (other == level || !allowed_[i][other] || !dominates(i, other, level)) continue;
        allowed_[i][level] = false;
        any = true;
      }
    }
    return any;
  }

  /// Whether `better` is never worse than `worse` by more than is allowed.
  bool dominates(Index i, Index better, Index worse) {
    double sum = 0.0;
    for (const Use& use : uses_[i]) {
      const double least = least_gain(use, better, worse);
      if (least == kMinusInfinity) return false;
      sum += least;
    }
    return sum >= -most_loss_;  // infinite where the worse level is impossible
  }

  /// The least that a factor gains by the better level, over all allowed levels of its other variables.
  double least_gain(const Use& use, Index better, Index worse) {
    const std::span<const Index> scope = network_.scope(use.factor);
    const std::size_t start = network_.table_start[use.factor];
    at_.assign(scope.size(), 0);
    double least = std::numeric_limits<double>::infinity();
    for (bool more = true; more;) {
      bool inside = true;
      std::size_t place = 0;
      for (std::size_t k = 0; k < scope.size(); ++k) {
        inside = inside && (k == use.member || allowed_[scope[k]][at_[k]]);
        place = place * network_.cardinalities[scope[k]] + (k == use.member ? 0 : at_[k]);
      }
      const double from = logs_[start + place + use.stride * worse];
      if (inside && from != kMinusInfinity) {
        least = std::min(least, logs_[start + place + use.stride * better] - from);
        if (least == kMinusInfinity) return least;
      }
      looks_ += 1.0;
      more = false;
      for (std::size_t k = scope.size(); k-- > 0 && !more;) {
        if (k == use.member) continue;
        more = ++at_[k] < network_.cardinalities[scope[k]];
        if (!more) at_[k] = 0;
      }
    }
    return least;
  }

  const Network& network_;
  double most_loss_;
  std::vector<std::vector<Use>> uses_;
  std::vector<std::vector<bool>> allowed_;
  std::vector<double> logs_;
  std::vector<Index> at_;
  double looks_ = 0.0;
  double most_looks_ = 0.0;
};

}  // namespace

Network without_dominated_levels(Network network) {
  const std::vector<std::vector<bool>> stays = Dominance(network, 0.0).find();
  for (Index i = 0; i < network.num_variables(); ++i) {
    if (std::ranges::find(stays[i], false) == stays[i].end()) continue;
    network.add_factor(std::vector<Index>{i}, std::vector<double>(stays[i].begin(), stays[i].end()));
  }
  return network;
}

bool single_changes_connect(const Network& network, double least_ratio) {
  const Network free = condition(network, {});
  const std::vector<std::vector<bool>> stays = Dominance(free, -std::log(least_ratio)).find();
  return std::ranges::all_of(stays,
                             [](const std::vector<bool>& levels) { return std::ranges::count(levels, true) == 1; });
}

}  // namespace poise
