/// Large models with known answers: far beyond enumeration, and most of them beyond a junction tree.
#pragma once

#include <string>

#include "laws/small_model.hpp"

namespace poise::laws {

struct LargeModel {
  std::string kind;
  std::string recipe;
  Model model;
  Known known;
};

[[nodiscard]] LargeModel make_large_model(std::uint64_t seed, std::uint64_t number);

/// log Z of the Ising model without field on a torus of `rows` by `columns` sites, both at least 3 (Kaufman 1949).
[[nodiscard]] double kaufman_log_partition(Index rows, Index columns, double coupling);

}  // namespace poise::laws
