/// Scopes and tables of factors: walks through entries, and which factors lie inside others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include <poise/network.hpp>
#include <poise/types.hpp>

namespace poise {

/// Lists of different variables, one after another.
struct Scopes {
  std::vector<std::size_t> start = {0};  ///< scopes + 1
  std::vector<Index> variables;

  [[nodiscard]] std::size_t size() const { return start.size() - 1; }
  [[nodiscard]] std::span<const Index> operator[](std::size_t k) const {
    return {variables.data() + start[k], start[k + 1] - start[k]};
  }
  /// Closes the scope whose variables were appended last.
  void close() { start.push_back(variables.size()); }
};

/// Throws InputError where a variable has more levels than sampling takes.
void check_levels(const Network& network);

/// Offsets in a table, one for each combination of levels of some variables.
class TableWalk {
 public:
  /// Adds a variable, after all that change faster.
  void add(std::size_t stride, Index levels) { digits_.push_back({stride, levels}); }
  [[nodiscard]] std::size_t offset() const { return offset_; }
  /// False after the last combination; then it is back at the first.
  bool next() {
    for (Digit& digit : digits_) {
      offset_ += digit.stride;
      if (++digit.level < digit.levels) return true;
      offset_ -= digit.stride * digit.levels;
      digit.level = 0;
    }
    return false;
  }
  /// Takes the fastest variables out, until they have `enough` combinations, and gives the offsets of these. They are
  /// the same, but for a constant, at every combination of the slower ones.
  [[nodiscard]] std::vector<std::size_t> take_fastest(std::size_t enough) {
    std::vector<std::size_t> offsets = {0};
    auto digit = digits_.begin();
    for (; digit != digits_.end() && offsets.size() < enough; ++digit) {
      const std::size_t size = offsets.size();
      for (Index level = 1; level < digit->levels; ++level) {
        for (std::size_t k = 0; k < size; ++k) offsets.push_back(offsets[k] + level * digit->stride);
      }
    }
    digits_.erase(digits_.begin(), digit);
    return offsets;
  }

 private:
  struct Digit {
    std::size_t stride;
    Index levels;
    Index level = 0;
  };
  std::vector<Digit> digits_;  // the fastest first
  std::size_t offset_ = 0;
};

/// Offsets in the table of `guest` in the order of entries of `host`, whose scope holds all variables of the guest that
/// have more than one level.
[[nodiscard]] inline TableWalk walk_within(std::span<const Index> guest, std::span<const Index> host,
                                           std::span<const Index> levels) {
  std::vector<std::size_t> strides(host.size(), 0);
  std::size_t stride = 1;
  for (std::size_t k = guest.size(); k-- > 0;) {
    if (levels[guest[k]] == 1) continue;
    strides[static_cast<std::size_t>(std::find(host.begin(), host.end(), guest[k]) - host.begin())] = stride;
    stride *= levels[guest[k]];
  }
  TableWalk walk;
  for (std::size_t k = host.size(); k-- > 0;) walk.add(strides[k], levels[host[k]]);
  return walk;
}

/// For each scope the one that takes it up: itself, or one that holds all of its variables and is its own host. Where
/// `may_host` is false a scope takes up nothing. Empty scopes stay by themselves.
[[nodiscard]] inline std::vector<std::size_t> find_hosts(const Scopes& scopes, const std::vector<bool>& may_host,
                                                         Index num_variables) {
  std::vector<std::vector<std::size_t>> hosts_of(num_variables);  // hosts that hold a variable
  std::vector<std::size_t> by_size(scopes.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](std::size_t a, std::size_t b) { return scopes[a].size() > scopes[b].size(); });
  std::vector<std::size_t> host(scopes.size());
  std::vector<std::size_t> seen(num_variables, scopes.size());  // the scope that last marked a variable
  for (const std::size_t f : by_size) {
    host[f] = f;
    const std::span<const Index> scope = scopes[f];
    if (scope.empty()) continue;
    const Index rarest = *std::min_element(scope.begin(), scope.end(),
                                           [&](Index a, Index b) { return hosts_of[a].size() < hosts_of[b].size(); });
    for (const std::size_t candidate : hosts_of[rarest]) {
      for (const Index i : scopes[candidate]) seen[i] = f;
      const bool inside = std::all_of(scope.begin(), scope.end(), [&](Index i) { return seen[i] == f; });
      for (const Index i : scopes[candidate]) seen[i] = scopes.size();
      if (!inside) continue;
      host[f] = candidate;
      break;
    }
    if (host[f] != f || !may_host[f]) continue;
    for (const Index i : scope) hosts_of[i].push_back(f);
  }
  return host;
}

}  // namespace poise
