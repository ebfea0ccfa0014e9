/// Correlations from npz files: SciPy's sparse matrices, as PolyFun has them too, and dense arrays.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include "base/npz.hpp"
#include "models/selection/read_selection.hpp"

namespace poise {

namespace {

constexpr double kMostColumns = 4294967295.0;

/// The arrays of a file by their names.
class Arrays {
 public:
  Arrays(std::string_view content, const std::string& name) : zip_(content, name), name_(name) {}

  [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }
  [[nodiscard]] std::vector<std::string> keys() const {
    std::vector<std::string> out;
    for (const ZipReader::Entry& entry : zip_.entries()) out.emplace_back(entry.name);
    return out;
  }
  [[nodiscard]] NumberArray get(std::string_view key) const {
    const ZipReader::Entry* const entry = find(key);
    if (entry == nullptr) fail(fmt::format("found no array {}, expected that of a sparse matrix", quote(key)));
    const std::string bytes = zip_.unpack(*entry);
    const std::string of = fmt::format("{}, {}", name_, quote(key));
    return numbers_of(parse_npy(bytes, of), of);
  }
  /// Whole numbers below `end`.
  [[nodiscard]] std::vector<std::size_t> places(std::string_view key, double end) const {
    std::vector<std::size_t> out;
    for (const double value : get(key).values) {
      if (!(value >= 0.0 && value < end && value == std::floor(value))) {
        fail(fmt::format("found {} in {}, expected whole numbers from 0 to {:.0f}", value, quote(key), end - 1.0));
      }
      out.push_back(static_cast<std::size_t>(value));
    }
    return out;
  }
  [[noreturn]] void fail(const std::string& what) const { refuse_file(name_, what); }

 private:
  [[nodiscard]] const ZipReader::Entry* find(std::string_view key) const {
    for (const ZipReader::Entry& entry : zip_.entries()) {
      if (entry.name == key || entry.name == fmt::format("{}.npy", key)) return &entry;
    }
    return nullptr;
  }

  ZipReader zip_;
  std::string name_;
};

/// Entries in any order as columns with their rows in increasing order; several of one place are added up, as SciPy
/// does.
void fill_columns(const std::vector<std::size_t>& rows, const std::vector<std::size_t>& columns,
                  const std::vector<double>& values, std::size_t size, SymmetricMatrix& out) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return columns[a] != columns[b] ? columns[a] < columns[b] : rows[a] < rows[b];
  });
  out.column_start.assign(size + 1, 0);
  std::size_t last = values.size();
  for (const std::size_t e : order) {
    if (last < values.size() && rows[e] == rows[last] && columns[e] == columns[last]) {
      out.values.back() += static_cast<float>(values[e]);
      continue;
    }
    last = e;
    out.rows.push_back(static_cast<std::uint32_t>(rows[e]));
    out.values.push_back(static_cast<float>(values[e]));
    ++out.column_start[columns[e] + 1];
  }
  std::partial_sum(out.column_start.begin(), out.column_start.end(), out.column_start.begin());
}

SymmetricMatrix read_sparse(const Arrays& arrays, SymmetricMatrix out) {
  const std::vector<std::size_t> shape = arrays.places("shape", kMostColumns);
  if (shape.size() != 2 || shape[0] != shape[1] || shape[0] == 0) {
    arrays.fail(fmt::format("found a sparse matrix of shape [{}], expected a square one", fmt::join(shape, ", ")));
  }
  const std::size_t size = shape[0];
  const std::vector<double> values = arrays.get("data").values;
  if (values.size() < size) {
    arrays.fail(fmt::format("found {} numbers for {} columns, expected one on the diagonal of each at least",
                            values.size(), size));
  }
  std::vector<std::size_t> rows;
  std::vector<std::size_t> columns;
  if (arrays.has("row")) {
    rows = arrays.places("row", static_cast<double>(size));
    columns = arrays.places("col", static_cast<double>(size));
  } else {
    // By rows or by columns is the same for a symmetric matrix.
    rows = arrays.places("indices", static_cast<double>(size));
    const std::vector<std::size_t> starts = arrays.places("indptr", static_cast<double>(values.size()) + 1.0);
    const bool fits = starts.size() == size + 1 && starts.front() == 0 && starts.back() == values.size();
    if (!fits || !std::is_sorted(starts.begin(), starts.end())) {
      arrays.fail(
          fmt::format("found an 'indptr' that does not go with {} numbers in {} columns, expected where each "
                      "begins",
                      values.size(), size));
    }
    for (std::size_t k = 0; k < size; ++k) columns.insert(columns.end(), starts[k + 1] - starts[k], k);
  }
  if (rows.size() != values.size() || columns.size() != values.size()) {
    arrays.fail(fmt::format("found {} numbers at {} rows and {} columns, expected as many of each", values.size(),
                            rows.size(), columns.size()));
  }
  fill_columns(rows, columns, values, size, out);
  return out;
}

}  // namespace

SymmetricMatrix read_npz_correlations(std::string_view content, const std::string& name) {
  const Arrays arrays(content, name);
  SymmetricMatrix out;
  out.source = name;
  if (arrays.has("data") && arrays.has("shape")) return read_sparse(arrays, std::move(out));
  const std::vector<std::string> keys = arrays.keys();
  if (keys.size() != 1) {
    arrays.fail(fmt::format("found the arrays {}, expected a sparse matrix of SciPy's or one dense array",
                            fmt::join(keys, ", ")));
  }
  NumberArray dense = arrays.get(keys.front());
  if (dense.shape.size() != 2 || dense.shape[0] != dense.shape[1] || dense.shape[0] == 0) {
    arrays.fail(fmt::format("found an array of shape {}, expected a square matrix", shape_text(dense.shape)));
  }
  out.dense = std::move(dense.values);
  return out;
}

}  // namespace poise
