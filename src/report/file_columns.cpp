/// Columns of variables from a file that holds one draw after the other.
#include "report/file_columns.hpp"

#include <algorithm>
#include <utility>

#include "base/bits8.hpp"
#include "store/journal.hpp"

namespace poise {

namespace {

bool is_two_valued(const VariableLayout& layout) {
  return std::all_of(layout.cardinalities.begin(), layout.cardinalities.end(),
                     [](Index levels) { return levels <= 2; });
}

}  // namespace

FileColumns::FileColumns(std::string path, const StoredRun& head, std::size_t stride, double memory)
    : path_(std::move(path)),
      chains_(head.trace.chains),
      all_draws_(head.trace.all_draws()),
      stride_(stride),
      held_((all_draws_ + stride - 1) / stride),
      variables_(head.layout.variables),
      memory_(memory),
      two_valued_(is_two_valued(head.layout)),
      low_(head.layout.label(0)),
      high_(two_valued_ ? head.layout.label(1) : low_) {}

std::size_t FileColumns::fitting(double bits_per_value) const {
  const double values = static_cast<double>(chains_) * static_cast<double>(held_);
  const double most = std::max(1.0, 8.0 * memory_ / (bits_per_value * values));
  const std::size_t left = variables_ - first_;
  return most >= static_cast<double>(left) ? left : static_cast<std::size_t>(most);
}

std::size_t FileColumns::load(std::size_t first) {
  first_ = first;
  if (two_valued_ && !load_bits()) two_valued_ = false;
  if (!two_valued_) load_bytes();
  return count_;
}

template <class Visit>
void FileColumns::read(Visit&& visit) const {
  ReadOptions options;
  options.series = false;
  options.first_variable = first_;
  options.most_variables = count_;
  read_in_parts(path_, {chains_, all_draws_, chains_ * count_}, options, visit);
}

/// Eight draws at a time where all draws are looked at; one by one at the end.
bool FileColumns::load_bits() {
  count_ = fitting(1.0);
  column_bytes_ = (held_ + 7) / 8;
  bits_.assign(count_ * chains_ * column_bytes_, 0);
  const std::size_t width = (count_ + 7) / 8;
  std::vector<std::uint8_t> packed(8 * width);  // eight draws
  bool known = true;
  read([&](const Trace& part, std::size_t first_draw) {
    const std::size_t whole_draws = stride_ == 1 && first_draw % 8 == 0 ? part.draws / 8 * 8 : 0;
    const std::size_t begin = std::max(whole_draws, (stride_ - first_draw % stride_) % stride_);
    for (std::size_t chain = 0; chain < chains_; ++chain) {
      const std::int8_t* x = part.x.data() + chain * part.draws * count_;
      const auto column = [&](std::size_t i) { return bits_.data() + (i * chains_ + chain) * column_bytes_; };
      for (std::size_t draw = 0; draw < whole_draws; draw += 8) {
        for (std::size_t k = 0; k < 8; ++k) {
          known = pack_labels({x + (draw + k) * count_, count_}, low_, high_, packed.data() + k * width) && known;
        }
        for (std::size_t i = 0; i < count_; i += 8) {
          std::uint64_t rows = 0;
          for (std::size_t k = 0; k < 8; ++k) rows |= std::uint64_t{packed[k * width + i / 8]} << 8 * k;
          rows = transpose8(rows);
          for (std::size_t k = 0; k < std::min<std::size_t>(8, count_ - i); ++k) {
            column(i + k)[(first_draw + draw) / 8] = static_cast<std::uint8_t>(rows >> 8 * k);
          }
        }
      }
      for (std::size_t draw = begin; draw < part.draws; draw += stride_) {
        const std::size_t held = (first_draw + draw) / stride_;
        for (std::size_t i = 0; i < count_; ++i) {
          const std::int8_t label = x[draw * count_ + i];
          known = known && (label == low_ || label == high_);
          const unsigned bit = label == high_ ? 1U << held % 8 : 0U;
          column(i)[held / 8] = static_cast<std::uint8_t>(column(i)[held / 8] | bit);
        }
      }
    }
  });
  if (!known) std::vector<std::uint8_t>().swap(bits_);
  return known;
}

void FileColumns::load_bytes() {
  count_ = fitting(8.0);
  bytes_.resize(count_ * chains_ * held_);
  read([&](const Trace& part, std::size_t first_draw) {
    const std::size_t begin = (stride_ - first_draw % stride_) % stride_;
    for (std::size_t chain = 0; chain < chains_; ++chain) {
      const std::int8_t* x = part.x.data() + chain * part.draws * count_;
      for (std::size_t draw = begin; draw < part.draws; draw += stride_) {
        const std::size_t held = (first_draw + draw) / stride_;
        for (std::size_t i = 0; i < count_; ++i) bytes_[(i * chains_ + chain) * held_ + held] = x[draw * count_ + i];
      }
    }
  });
}

void FileColumns::copy(std::size_t first, std::size_t count, std::int8_t* to, std::size_t stride) const {
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t column = (first - first_ + i) * chains_;
    if (!two_valued_) {
      std::copy_n(bytes_.data() + column * held_, chains_ * held_, to + i * stride);
      continue;
    }
    for (std::size_t chain = 0; chain < chains_; ++chain) {
      unpack_labels(bits_.data() + (column + chain) * column_bytes_, low_, high_,
                    {to + i * stride + chain * held_, held_});
    }
  }
}

}  // namespace poise
