/// Whether matrices are correlations of the variants of z scores, and in their order.
#include "models/selection/correlation_checks.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>

namespace poise {

void fill_dense(const SymmetricMatrix& matrix, const std::vector<std::string>& names, double most,
                DenseCrossProducts& out) {
  const std::size_t p = names.size();
  for (std::size_t i = 0; i < p; ++i) {
    for (std::size_t j = 0; j < p; ++j) {
      const double entry = matrix.dense[i * p + j];
      if (!std::isfinite(entry)) {
        throw InputError(
            fmt::format("{}: found {} for {} and {}, expected a number", matrix.source, entry, names[i], names[j]));
      }
      if (std::abs(entry) > most) {
        throw InputError(fmt::format("{}: found {} for {} and {}, expected a correlation", matrix.source, entry,
                                     names[i], names[j]));
      }
      const double other = matrix.dense[j * p + i];
      if (std::abs(entry - other) > kSloppy * std::max({1.0, std::abs(entry), std::abs(other)})) {
        throw InputError(
            fmt::format("{}: found {} for {} and {} but {} the other way round, expected a symmetric "
                        "matrix",
                        matrix.source, entry, names[i], names[j], other));
      }
      out.row(static_cast<Index>(i))[j] = 0.5 * (entry + other);
    }
  }
  out.finish();
}

void check_size(const SymmetricMatrix& matrix, std::size_t p, const std::string& of) {
  const bool sparse = !matrix.column_start.empty();
  if (sparse ? matrix.column_start.size() == p + 1 : matrix.dense.size() == p * p) return;
  const double found = sparse ? static_cast<double>(matrix.column_start.size() - 1)
                              : std::sqrt(static_cast<double>(matrix.dense.size()));
  throw InputError(
      fmt::format("{}: found {:.6g} columns, expected {}, one for each variable of {}", matrix.source, found, p, of));
}

void add_other_triangle(SymmetricMatrix& matrix) {
  const std::size_t p = matrix.column_start.size() - 1;
  std::size_t halves = 0;
  std::size_t above = 0;
  std::size_t below = 0;
  std::vector<std::size_t> start(p + 1, 0);
  const auto for_all = [&](const auto& work) {
    for (std::size_t k = 0; k < p; ++k) {
      for (std::size_t e = matrix.column_start[k]; e < matrix.column_start[k + 1]; ++e) {
        work(std::min<std::size_t>(k, matrix.rows[e]), std::max<std::size_t>(k, matrix.rows[e]), e, k);
      }
    }
  };
  if (matrix.column_start.back() != matrix.rows.size() ||
      !std::is_sorted(matrix.column_start.begin(), matrix.column_start.end()) ||
      std::any_of(matrix.rows.begin(), matrix.rows.end(), [&](std::uint32_t row) { return row >= p; })) {
    return;  // which is for others to say
  }
  for_all([&](std::size_t low, std::size_t high, std::size_t e, std::size_t k) {
    halves += low == high && std::abs(static_cast<double>(matrix.values[e]) - 0.5) <= kSloppy ? 1 : 0;
    above += low < high && high == k ? 1 : 0;
    below += low < high && low == k ? 1 : 0;
    ++start[high + 1];
    if (low < high) ++start[low + 1];
  });
  if (halves != p || (above > 0 && below > 0)) return;
  std::partial_sum(start.begin(), start.end(), start.begin());
  std::vector<std::uint32_t> rows(start.back());
  std::vector<float> values(start.back());
  std::vector<std::size_t> next(start.begin(), start.end() - 1);
  const auto put = [&](std::size_t here, std::size_t there, float value) {
    rows[next[there]] = static_cast<std::uint32_t>(here);
    values[next[there]++] = value;
  };
  // What is above the diagonal, and the diagonal, first: so rows come in increasing order.
  for_all([&](std::size_t low, std::size_t high, std::size_t e, std::size_t) {
    put(low, high, low == high ? 2.0F * matrix.values[e] : matrix.values[e]);
  });
  for_all([&](std::size_t low, std::size_t high, std::size_t e, std::size_t) {
    if (low < high) put(high, low, matrix.values[e]);
  });
  matrix.column_start = std::move(start);
  matrix.rows = std::move(rows);
  matrix.values = std::move(values);
}

void follow_names(SymmetricMatrix& matrix, SummaryTable& table, std::vector<std::string>& notes) {
  const std::size_t p = table.names.size();
  if (matrix.names.empty()) return;
  if (table.is_numbered && matrix.names.size() == p) table.names = matrix.names;
  if (matrix.names == table.names || matrix.dense.size() != p * p) return;
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t k = 0; k < matrix.names.size(); ++k) places.emplace(matrix.names[k], k);
  std::vector<std::size_t> from;
  std::vector<char> taken(p, 0);
  for (const std::string& name : table.names) {
    const auto found = places.find(name);
    if (found == places.end()) {
      throw InputError(fmt::format("{}: found no variant {}, expected the names of {} in any order", matrix.source,
                                   quote(name), table.source));
    }
    if (taken[found->second]++ != 0 || places.size() != p) {
      throw InputError(
          fmt::format("{}: found names in another order than in {}, some of them more than once, expected "
                      "the same order",
                      matrix.source, table.source));
    }
    from.push_back(found->second);
  }
  std::vector<double> ordered(p * p);
  for (std::size_t i = 0; i < p; ++i) {
    for (std::size_t j = 0; j < p; ++j) ordered[i * p + j] = matrix.dense[from[i] * p + from[j]];
  }
  matrix.dense = std::move(ordered);
  notes.push_back(fmt::format("the variants of {} are in another order than those of {}, which was followed",
                              matrix.source, table.source));
}

void make_dense(SymmetricMatrix& matrix) {
  const std::size_t p = matrix.column_start.size() - 1;
  matrix.dense.assign(p * p, 0.0);
  for (std::size_t k = 0; k < p; ++k) {
    for (std::size_t e = matrix.column_start[k]; e < matrix.column_start[k + 1]; ++e) {
      if (e >= matrix.rows.size() || matrix.rows[e] >= p) {
        throw InputError(
            fmt::format("{}: found an entry outside of {} rows, expected a square matrix", matrix.source, p));
      }
      matrix.dense[k * p + matrix.rows[e]] = static_cast<double>(matrix.values[e]);
    }
  }
  matrix.column_start.clear();
  matrix.rows = {};
  matrix.values = {};
}

void check_sparse(const SymmetricMatrix& matrix, const std::vector<std::string>& names) {
  const std::size_t p = names.size();
  for (std::size_t k = 0; k < p; ++k) {
    if (matrix.column_start[k] > matrix.column_start[k + 1] || matrix.column_start[k + 1] > matrix.rows.size()) {
      throw InputError(fmt::format("{}: found column {} to end before it begins, expected columns one behind the other",
                                   matrix.source, k + 1));
    }
  }
  for (std::size_t e = 0; e < matrix.rows.size(); ++e) {
    const double entry = static_cast<double>(matrix.values[e]);
    if (matrix.rows[e] < p && std::abs(entry) <= 1.0 + kSloppy) continue;
    throw InputError(fmt::format("{}: found {} in row {}, expected a correlation in one of {} rows", matrix.source,
                                 entry, matrix.rows[e] + std::size_t{1}, p));
  }
  // Column by column, the entry of row r is the next one of column r that has not been met yet.
  std::vector<std::size_t> next(matrix.column_start.begin(), matrix.column_start.end() - 1);
  for (std::size_t k = 0; k < p; ++k) {
    bool has_diagonal = false;
    for (std::size_t e = matrix.column_start[k]; e < matrix.column_start[k + 1]; ++e) {
      const std::size_t row = matrix.rows[e];
      const double entry = static_cast<double>(matrix.values[e]);
      if (e > matrix.column_start[k] && row <= matrix.rows[e - 1]) {
        throw InputError(fmt::format("{}: found row {} behind row {} in column {}, expected rows in increasing order",
                                     matrix.source, row + 1, matrix.rows[e - 1] + std::size_t{1}, k + 1));
      }
      const std::size_t there = next[row];
      const bool is_there = there < matrix.column_start[row + 1] && matrix.rows[there] == k;
      if (!is_there && entry == 0.0) continue;  // a zero that is stored on one side
      ++next[row];
      const double other = is_there ? static_cast<double>(matrix.values[there]) : 0.0;
      if (!is_there || std::abs(entry - other) > kSloppy) {
        throw InputError(
            fmt::format("{}: found {} for {} and {} but {} the other way round, expected a symmetric "
                        "matrix, both of its triangles",
                        matrix.source, entry, names[row], names[k], other));
      }
      if (row != k) continue;
      has_diagonal = std::abs(entry - 1.0) <= kSloppy;
    }
    if (!has_diagonal) {
      throw InputError(fmt::format("{}: found no 1 on the diagonal for {}, expected one", matrix.source, names[k]));
    }
  }
}

}  // namespace poise
