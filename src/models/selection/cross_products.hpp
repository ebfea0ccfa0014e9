/// X'X by columns: in memory, computed from X when it is wanted, or read from a file of correlations.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <poise/extend/base/simd.hpp>
#include <poise/types.hpp>

namespace poise {

/// Doubles from one cache line to the next, so that no load of eight lies across two.
using LineVector = std::vector<Line8>;

[[nodiscard]] inline std::size_t lines_of(std::size_t numbers) { return (numbers + 7) / 8; }
[[nodiscard]] inline double* numbers_of(LineVector& lines) { return lines.empty() ? nullptr : lines.front().lanes; }
[[nodiscard]] inline const double* numbers_of(const LineVector& lines) {
  return lines.empty() ? nullptr : lines.front().lanes;
}

/// The rows of a column that may differ from zero. `first` and `count` are multiples of eight; beyond the last variable
/// there are zeros.
struct CrossColumn {
  Index variable = 0;
  Index first = 0;
  Index count = 0;
  const double* values = nullptr;     ///< of row `first` and those below it
  std::shared_ptr<const void> owner;  ///< keeps them; empty where they live as long as the matrix

  [[nodiscard]] double at(Index row) const { return row < first || row >= first + count ? 0.0 : values[row - first]; }
};

/// A symmetric matrix that is never changed and may be read by several threads.
class CrossProducts {
 public:
  virtual ~CrossProducts() = default;
  [[nodiscard]] Index size() const { return static_cast<Index>(diagonal_.size()); }
  [[nodiscard]] const std::vector<double>& diagonal() const { return diagonal_; }
  [[nodiscard]] virtual CrossColumn column(Index k) const = 0;
  /// One number, without its column where that would cost more.
  [[nodiscard]] virtual double entry(Index row, Index k) const { return column(k).at(row); }
  /// Whether it is known to be positive semidefinite, as any X'X is.
  [[nodiscard]] virtual bool is_positive() const { return true; }

 protected:
  std::vector<double> diagonal_;
};

/// Columns that were used last, up to a number of bytes. What a column holds does not depend on when it is made, so
/// neither does anything else on what happens to be here.
class ColumnCache {
 public:
  explicit ColumnCache(double bytes) : bytes_(bytes) {}

  template <class Make>
  CrossColumn get(Index k, Make&& make) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = places_.find(k);
      if (found != places_.end()) {
        columns_.splice(columns_.begin(), columns_, found->second);
        return found->second->second;
      }
    }
    CrossColumn made = make();  // two threads may make the same one; that is rare, and waiting would not be
    const std::lock_guard lock(mutex_);
    if (!places_.contains(k)) {
      columns_.emplace_front(k, made);
      places_[k] = columns_.begin();
      held_ += 8.0 * made.count;
      while (held_ > bytes_ && columns_.size() > 1) {
        held_ -= 8.0 * columns_.back().second.count;
        places_.erase(columns_.back().first);
        columns_.pop_back();
      }
    }
    return made;
  }

 private:
  using Columns = std::list<std::pair<Index, CrossColumn>>;
  std::mutex mutex_;
  Columns columns_;  // the one used last first
  std::unordered_map<Index, Columns::iterator> places_;
  double bytes_;
  double held_ = 0.0;
};

/// All of it in memory.
class DenseCrossProducts final : public CrossProducts {
 public:
  /// Room for p columns, to be filled by `row`, then `finish`.
  explicit DenseCrossProducts(Index size);
  [[nodiscard]] std::span<double> row(Index k) { return {numbers_of(values_) + stride_ * k, size_}; }
  void finish();
  /// Says that nobody has looked whether it is positive semidefinite.
  void doubt() { is_positive_ = false; }
  [[nodiscard]] bool is_positive() const override { return is_positive_; }

  [[nodiscard]] CrossColumn column(Index k) const override {
    return {k, 0, static_cast<Index>(stride_), numbers_of(values_) + stride_ * k, nullptr};
  }

 private:
  Index size_;
  std::size_t stride_;
  LineVector values_;
  bool is_positive_ = true;
};

/// Columns of a table, one behind the other, each padded with zeros to whole lines.
struct ColumnTable {
  std::size_t rows = 0;
  std::size_t stride = 0;
  LineVector values;

  ColumnTable() = default;
  ColumnTable(std::size_t the_rows, std::size_t columns)
      : rows(the_rows), stride(8 * lines_of(the_rows)), values(lines_of(the_rows) * columns) {}
  [[nodiscard]] std::span<double> column(std::size_t k) { return {numbers_of(values) + stride * k, rows}; }
  [[nodiscard]] std::span<const double> column(std::size_t k) const { return {numbers_of(values) + stride * k, rows}; }
};

/// The inner product of two spans that are padded to whole lines with zeros, always summed in the same order.
[[nodiscard]] double padded_product(const double* a, const double* b, std::size_t padded);

/// Columns of X'X from those of X, one at a time: for many more variables than observations.
class ThinCrossProducts final : public CrossProducts {
 public:
  ThinCrossProducts(std::shared_ptr<const ColumnTable> table, Index columns, double cache_bytes);
  [[nodiscard]] CrossColumn column(Index k) const override;
  [[nodiscard]] double entry(Index row, Index k) const override {
    return padded_product(table_->column(row).data(), table_->column(k).data(), table_->stride);
  }

 private:
  std::shared_ptr<const ColumnTable> table_;
  mutable ColumnCache cache_;
};

/// A symmetric matrix with many zeros, such as correlations within a band or within blocks, by its columns.
struct SparseColumns {
  std::vector<std::size_t> start;  ///< of each column, and the end of the last
  std::vector<Index> rows;
  std::vector<float> values;
};

/// Times `scale`. A column is spread out over the rows between its first and its last entry.
class SparseCrossProducts final : public CrossProducts {
 public:
  SparseCrossProducts(SparseColumns columns, double scale, double cache_bytes);
  [[nodiscard]] CrossColumn column(Index k) const override;
  [[nodiscard]] bool is_positive() const override { return false; }

 private:
  SparseColumns columns_;
  double scale_;
  mutable ColumnCache cache_;
};

}  // namespace poise
