/// Which factors lie inside others, so that their tables can be multiplied into those.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

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

/// For each scope the one that takes it up: itself, or one that holds all of its variables and is its own host. Where
/// `may_host` is false a scope takes up nothing. Empty scopes stay by themselves.
[[nodiscard]] std::vector<std::size_t> find_hosts(const Scopes& scopes, const std::vector<bool>& may_host,
                                                  Index num_variables);

}  // namespace poise
