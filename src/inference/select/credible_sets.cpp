/// Credible sets from draws of models.
///
/// A set grows from its most probable variable. Each time the variable joins that is in most of the draws that have
/// none of the set, as long as its correlation with every one of the set is high enough, until as large a part of the
/// draws as is wanted has one of them. What the set claims is thus a posterior probability, whatever the number of
/// signals: that one of its variables is included. Where the variables that are correlated do not reach it there is no
/// set.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "inference/select/selection_parts.hpp"

namespace poise {

namespace {

/// Probability below which no set begins at a variable.
constexpr double kLeastLead = 0.01;

class SetSearch {
 public:
  SetSearch(const SelectionProblem& problem, const std::vector<DrawnModel>& models, const SelectOptions& options)
      : problem_(problem), models_(models), options_(options), used_(problem.names.size(), 0) {
    for (const DrawnModel& model : models) {
      total_ += model.draws;
      for (const Index j : model.variables) frequency_[j] += model.draws;
    }
  }

  std::vector<CredibleSet> run() {
    std::vector<Index> leads;
    for (const auto& [j, draws] : frequency_) {
      if (draws >= kLeastLead * total_ && !problem_.law->is_fixed(j)) leads.push_back(j);
    }
    std::sort(leads.begin(), leads.end(),
              [&](Index a, Index b) { return frequency_[a] != frequency_[b] ? frequency_[a] > frequency_[b] : a < b; });
    std::vector<CredibleSet> sets;
    for (const Index lead : leads) {
      if (used_[lead] != 0) continue;
      CredibleSet set;
      if (!grow(lead, set)) continue;
      for (const Index j : set.variables) used_[j] = 1;
      sets.push_back(std::move(set));
    }
    return sets;
  }

 private:
  /// Whether the correlated variables are enough.
  bool grow(Index lead, CredibleSet& set) {
    std::vector<char> hit(models_.size(), 0);
    double held = 0.0;
    set.purity = 1.0;
    std::unordered_map<Index, double> least;  // absolute correlation of a candidate with the set
    for (Index next = lead;;) {
      set.variables.push_back(next);
      std::unordered_map<Index, double> gain;
      for (std::size_t m = 0; m < models_.size(); ++m) {
        if (hit[m] != 0) continue;
        const std::vector<Index>& variables = models_[m].variables;
        if (std::binary_search(variables.begin(), variables.end(), next)) {
          hit[m] = 1;
          held += models_[m].draws;
          continue;
        }
        for (const Index j : variables) gain[j] += models_[m].draws;
      }
      if (held >= options_.coverage * total_) break;
      Index best = lead;
      for (const auto& [j, draws] : gain) {
        if (used_[j] != 0 || problem_.law->is_fixed(j)) continue;
        const bool better = best == lead || draws > gain[best] || (draws == gain[best] && j < best);
        if (better && correlates(j, set, least)) best = j;
      }
      if (best == lead) return false;
      set.purity = std::min(set.purity, least[best]);
      next = best;
    }
    set.mass = held / total_;
    add_shares(held, set);
    return true;
  }

  bool correlates(Index j, const CredibleSet& set, std::unordered_map<Index, double>& least) const {
    const auto [place, fresh] = least.emplace(j, 1.0);
    if (fresh) {
      for (const Index other : set.variables) {
        place->second = std::min(place->second, std::abs(problem_.correlation(j, other)));
      }
    } else {
      place->second = std::min(place->second, std::abs(problem_.correlation(j, set.variables.back())));
    }
    return place->second >= options_.purity;
  }

  void add_shares(double held, CredibleSet& set) const {
    std::vector<double> share(set.variables.size(), 0.0);
    for (const DrawnModel& model : models_) {
      std::vector<std::size_t> here;
      for (std::size_t k = 0; k < set.variables.size(); ++k) {
        if (std::binary_search(model.variables.begin(), model.variables.end(), set.variables[k])) here.push_back(k);
      }
      for (const std::size_t k : here) share[k] += model.draws / held / static_cast<double>(here.size());
    }
    std::vector<std::size_t> order(share.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return share[a] > share[b]; });
    const std::vector<Index> variables = set.variables;
    for (std::size_t k = 0; k < order.size(); ++k) {
      set.variables[k] = variables[order[k]];
      set.share.push_back(share[order[k]]);
    }
  }

  const SelectionProblem& problem_;
  const std::vector<DrawnModel>& models_;
  const SelectOptions& options_;
  std::vector<char> used_;
  std::unordered_map<Index, double> frequency_;
  double total_ = 0.0;
};

}  // namespace

std::vector<CredibleSet> credible_sets(const SelectionProblem& problem, const std::vector<DrawnModel>& models,
                                       const SelectOptions& options) {
  return SetSearch(problem, models, options).run();
}

}  // namespace poise
