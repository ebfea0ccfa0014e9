/// What is checked and set right of matrices that claim to be correlations. Each throws an InputError.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <poise/extend/models/selection_data.hpp>
#include "models/selection/cross_products.hpp"

namespace poise {

/// By how much a correlation may differ from what it must be: files hold a few digits.
inline constexpr double kSloppy = 1e-3;

/// Writes the entries of a dense symmetric matrix into `out`; none may be beyond `most`.
void fill_dense(const SymmetricMatrix& matrix, const std::vector<std::string>& names, double most,
                DenseCrossProducts& out);

/// Whether there is a column for each of the p variables of `of`.
void check_size(const SymmetricMatrix& matrix, std::size_t p, const std::string& of);

/// A triangle with half of the diagonal is meant to be added to its transpose: PolyFun stores correlations so.
void add_other_triangle(SymmetricMatrix& matrix);

/// Whether sparse entries are correlations: in order, symmetric, with ones on the diagonal.
void check_sparse(const SymmetricMatrix& matrix, const std::vector<std::string>& names);

/// All entries in place of those that are not zero; of a matrix that has been checked.
void make_dense(SymmetricMatrix& matrix);

/// Brings correlations with names of their own into the order of the z scores, with a note; z scores that are only
/// numbered take these names.
void follow_names(SymmetricMatrix& matrix, SummaryTable& table, std::vector<std::string>& notes);

}  // namespace poise
