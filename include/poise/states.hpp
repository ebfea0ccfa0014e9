/// The states of draws in memory: a bit for each variable where all have two values, a byte where some have more.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

namespace poise {

struct VariableLayout;

/// Rows of labels, one row for each state. Reads like a vector of labels, row by row: `states[row * variables + i]`.
/// Whole rows are read faster by `unpack`.
///
///     for (std::size_t row = 0; row < trace.x.rows(); ++row) {
///       trace.x.unpack(row, labels);  // std::vector<std::int8_t> labels(trace.x.variables())
///     }
class States {
 public:
  class Iterator;
  using value_type = std::int8_t;
  using iterator = Iterator;
  using const_iterator = Iterator;

  States() = default;
  /// No states yet. Where `low` and `high` differ, they are the only labels, and rows are bits.
  explicit States(std::size_t variables, std::int8_t low = 0, std::int8_t high = 0);
  /// No states yet, of the variables of a layout.
  explicit States(const VariableLayout& layout);

  [[nodiscard]] std::size_t variables() const { return variables_; }
  [[nodiscard]] std::size_t rows() const { return row_bytes_ == 0 ? 0 : bytes_.size() / row_bytes_; }
  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  /// Labels in all rows.
  [[nodiscard]] std::size_t size() const { return rows() * variables_; }
  [[nodiscard]] std::int8_t label(std::size_t row, std::size_t variable) const {
    const std::uint8_t* const of_row = bytes_.data() + row * row_bytes_;
    if (!has_bits()) return static_cast<std::int8_t>(of_row[variable]);
    return (of_row[variable / 8] >> variable % 8 & 1U) != 0 ? high_ : low_;
  }
  /// Label number k of all rows, one row after the other.
  [[nodiscard]] std::int8_t operator[](std::size_t k) const { return label(k / variables_, k % variables_); }
  /// The same; throws std::out_of_range.
  [[nodiscard]] std::int8_t at(std::size_t k) const;
  [[nodiscard]] Iterator begin() const;
  [[nodiscard]] Iterator end() const;

  /// The labels of a row.
  void unpack(std::size_t row, std::span<std::int8_t> to) const;
  /// The labels of all rows.
  [[nodiscard]] std::vector<std::int8_t> unpack() const;
  /// Labels of whole rows at the end. Throws std::invalid_argument where two-valued variables have a third label.
  void append(std::span<const std::int8_t> labels);
  /// Rows of states of the same variables at the end.
  void append(const States& from, std::size_t first_row, std::size_t rows);

  /// Whether a row is bits, the first variable lowest, set for the label `high`; rows are whole bytes, and what is left
  /// of the last one is zero. Otherwise it is labels.
  [[nodiscard]] bool has_bits() const { return low_ != high_; }
  [[nodiscard]] std::int8_t low() const { return low_; }
  [[nodiscard]] std::int8_t high() const { return high_; }
  [[nodiscard]] std::size_t row_bytes() const { return row_bytes_; }
  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return bytes_; }
  [[nodiscard]] std::span<std::uint8_t> bytes() { return bytes_; }
  [[nodiscard]] std::span<const std::uint8_t> row(std::size_t row) const {
    return bytes().subspan(row * row_bytes_, row_bytes_);
  }
  [[nodiscard]] std::span<std::uint8_t> row(std::size_t row) { return bytes().subspan(row * row_bytes_, row_bytes_); }
  void resize(std::size_t rows) { bytes_.resize(rows * row_bytes_); }
  void reserve(std::size_t rows) { bytes_.reserve(rows * row_bytes_); }
  /// Forgets all rows, and gives their memory back.
  void clear() { std::vector<std::uint8_t>().swap(bytes_); }

  /// States that are none are equal, of whatever variables.
  friend bool operator==(const States& a, const States& b) {
    return a.bytes_ == b.bytes_ &&
           (a.empty() || (a.variables_ == b.variables_ && a.low_ == b.low_ && a.high_ == b.high_));
  }

  template <class A>
  void archive(A& archive) {
    archive(variables_, row_bytes_, low_, high_, bytes_);
  }

 private:
  std::size_t variables_ = 0;
  std::size_t row_bytes_ = 0;
  std::int8_t low_ = 0;
  std::int8_t high_ = 0;
  std::vector<std::uint8_t> bytes_;
};

/// Goes through labels one by one.
class States::Iterator {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = std::int8_t;
  using difference_type = std::ptrdiff_t;
  using pointer = const std::int8_t*;
  using reference = std::int8_t;

  Iterator() = default;
  Iterator(const States& states, std::ptrdiff_t k) : states_(&states), k_(k) {}

  std::int8_t operator*() const { return (*states_)[static_cast<std::size_t>(k_)]; }
  std::int8_t operator[](std::ptrdiff_t n) const { return *(*this + n); }
  Iterator& operator+=(std::ptrdiff_t n) { return k_ += n, *this; }
  Iterator& operator-=(std::ptrdiff_t n) { return k_ -= n, *this; }
  Iterator& operator++() { return *this += 1; }
  Iterator& operator--() { return *this -= 1; }
  Iterator operator++(int) { return Iterator(*states_, k_++); }
  Iterator operator--(int) { return Iterator(*states_, k_--); }
  friend Iterator operator+(Iterator it, std::ptrdiff_t n) { return it += n; }
  friend Iterator operator+(std::ptrdiff_t n, Iterator it) { return it += n; }
  friend Iterator operator-(Iterator it, std::ptrdiff_t n) { return it -= n; }
  friend std::ptrdiff_t operator-(const Iterator& a, const Iterator& b) { return a.k_ - b.k_; }
  friend auto operator<=>(const Iterator& a, const Iterator& b) { return a.k_ <=> b.k_; }
  friend bool operator==(const Iterator& a, const Iterator& b) { return a.k_ == b.k_; }

 private:
  const States* states_ = nullptr;
  std::ptrdiff_t k_ = 0;
};

inline States::Iterator States::begin() const { return {*this, 0}; }
inline States::Iterator States::end() const { return {*this, static_cast<std::ptrdiff_t>(size())}; }

}  // namespace poise
