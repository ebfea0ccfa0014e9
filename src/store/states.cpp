/// Rows of labels as bits, and back.
#include <poise/states.hpp>

#include <algorithm>
#include <stdexcept>

#include <poise/trace.hpp>
#include "store/label_bits.hpp"

namespace poise {

States::States(std::size_t variables, std::int8_t low, std::int8_t high)
    : variables_(variables), row_bytes_(low == high ? variables : (variables + 7) / 8), low_(low), high_(high) {}

States::States(const VariableLayout& layout)
    : States(layout.variables, bit_labels(layout).low, bit_labels(layout).high) {}

std::int8_t States::at(std::size_t k) const {
  if (k >= size()) throw std::out_of_range("States::at");
  return (*this)[k];
}

void States::unpack(std::size_t row, std::span<std::int8_t> to) const {
  const std::uint8_t* const from = bytes_.data() + row * row_bytes_;
  if (has_bits()) return unpack_labels(from, low_, high_, to.first(variables_));
  std::copy_n(from, variables_, to.begin());
}

std::vector<std::int8_t> States::unpack() const {
  std::vector<std::int8_t> labels(size());
  for (std::size_t row = 0; row < rows(); ++row) {
    unpack(row, std::span(labels).subspan(row * variables_, variables_));
  }
  return labels;
}

void States::append(std::span<const std::int8_t> labels) {
  if (labels.empty()) return;
  if (variables_ == 0 || labels.size() % variables_ != 0) {
    throw std::invalid_argument("States::append: labels are not whole rows");
  }
  const std::size_t before = rows();
  const std::size_t more = labels.size() / variables_;
  resize(before + more);
  for (std::size_t k = 0; k < more; ++k) {
    const auto from = labels.subspan(k * variables_, variables_);
    if (!has_bits()) {
      std::copy(from.begin(), from.end(), row(before + k).begin());
    } else if (!pack_labels(from, low_, high_, row(before + k).data())) {
      resize(before);
      throw std::invalid_argument("States::append: a state of two-valued variables has a third label");
    }
  }
}

void States::append(const States& from, std::size_t first_row, std::size_t rows) {
  const auto first = from.bytes_.begin() + static_cast<std::ptrdiff_t>(first_row * row_bytes_);
  bytes_.insert(bytes_.end(), first, first + static_cast<std::ptrdiff_t>(rows * row_bytes_));
}

}  // namespace poise
