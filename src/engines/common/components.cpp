/// Components of a difference, found from each variable that is still in none.
#include "engines/common/components.hpp"

#include <algorithm>

namespace poise {

ComponentExchange::ComponentExchange(const LaneModel& model) : start_{0} {
  const std::vector<LaneModel::Variable>& variables = model.variables();
  for (std::size_t k = 0; k + 1 < variables.size(); ++k) {
    const auto first = static_cast<std::ptrdiff_t>(neighbours_.size());
    for (Index p = variables[k].first_pair; p < variables[k + 1].first_pair; ++p) {
      neighbours_.push_back(model.pairs()[p].position);
    }
    for (Index t = variables[k].first_term; t < variables[k + 1].first_term; ++t) {
      for (Index o = model.terms()[t].first_other; o < model.terms()[t + 1].first_other; ++o) {
        neighbours_.push_back(model.others()[o].position);
      }
    }
    std::sort(neighbours_.begin() + first, neighbours_.end());
    neighbours_.erase(std::unique(neighbours_.begin() + first, neighbours_.end()), neighbours_.end());
    start_.push_back(neighbours_.size());
  }
}

std::size_t ComponentExchange::exchange(const At& first, const At& second, Rng& rng, Scratch& scratch) const {
  const std::size_t count = start_.size() - 1;
  scratch.different.clear();
  scratch.waiting.resize(count);
  const Value* a = first.block.levels() + first.lane;
  const Value* b = second.block.levels() + second.lane;
  for (std::size_t k = 0; k < count; ++k, a += first.block.lanes(), b += second.block.lanes()) {
    scratch.waiting[k] = *a != *b ? 1 : 0;
    if (*a != *b) scratch.different.push_back(static_cast<Index>(k));
  }
  std::size_t components = 0;
  for (const Index from : scratch.different) {
    if (scratch.waiting[from] == 0) continue;
    ++components;
    scratch.reached.assign(1, from);
    scratch.waiting[from] = 0;
    for (std::size_t next = 0; next < scratch.reached.size(); ++next) {
      for (std::size_t n = start_[scratch.reached[next]]; n < start_[scratch.reached[next] + 1]; ++n) {
        const Index neighbour = neighbours_[n];
        if (scratch.waiting[neighbour] == 0) continue;
        scratch.waiting[neighbour] = 0;
        scratch.reached.push_back(neighbour);
      }
    }
    if (rng.uniform() < 0.5) continue;
    for (const Index position : scratch.reached) first.block.exchange(position, first.lane, second.block, second.lane);
  }
  return components;
}

}  // namespace poise
