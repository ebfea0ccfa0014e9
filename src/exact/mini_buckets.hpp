/// An upper bound of the largest product of a network, by elimination in tables that are cut to size.
#pragma once

#include <functional>

#include <poise/network.hpp>

namespace poise {

struct MiniBucketOptions {
  double largest_table = 65536.0;        ///< entries
  double memory_limit = 1073741824.0;    ///< bytes; smaller tables are taken where they would not fit
  std::function<bool()> halt = nullptr;  ///< looked at now and then; true ends with nothing gained
};

struct MiniBucketBound {
  double log_bound = 0.0;  ///< no state has a larger product; infinite where the work was halted
  bool exact = false;      ///< nothing was cut: some state has that product
  double operations = 0.0;
};

/// Mini-bucket elimination (Dechter and Rish 2003) with the max-marginals of mini-buckets matched (Ihler et al. 2012):
/// where the tables that meet at a variable would make too large a one, they are taken in groups, each maximised by
/// itself. Before that, what each group says of the variable alone is shared out evenly, which changes no sum and makes
/// the groups agree. Throws InputError where the bound shows that no state has positive probability.
[[nodiscard]] MiniBucketBound mini_bucket_bound(const Network& network, const MiniBucketOptions& options = {});

}  // namespace poise
