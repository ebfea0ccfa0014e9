/// Finding the factors with zeros, and for each variable those that it is in.
#include "models/network/support_constraints.hpp"

#include <algorithm>

namespace poise::support {

Constraints::Constraints(const Network& network) : use_start_(network.num_variables() + 1, 0) {
  std::vector<std::size_t> zeros;  // in `values`, found once however many factors share a table
  for (std::size_t k = 0; k < network.values.size(); ++k) {
    if (!(network.values[k] > 0.0)) zeros.push_back(k);
  }
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    const std::span<const double> table = network.table(f);
    const auto zero = std::lower_bound(zeros.begin(), zeros.end(), network.table_start[f]);
    if (zero == zeros.end() || *zero >= network.table_start[f] + table.size()) continue;
    entries_ += table.size();
    factors_.push_back(f);
    tables_.push_back(table.data());
    const std::span<const Index> scope = network.scope(f);
    std::size_t stride = 1;
    for (std::size_t k = scope.size(); k-- > 0;) {
      members_.push_back({scope[k], stride});
      stride *= network.cardinalities[scope[k]];
      ++use_start_[scope[k] + 1];
    }
    member_start_.push_back(members_.size());
  }
  for (std::size_t i = 0; i + 1 < use_start_.size(); ++i) use_start_[i + 1] += use_start_[i];
  uses_.resize(members_.size());
  std::vector<std::size_t> next(use_start_.begin(), use_start_.end() - 1);
  for (Index c = 0; c < size(); ++c) {
    for (const Member& member : members(c)) uses_[next[member.variable]++] = {c, member.stride};
  }
}

}  // namespace poise::support
