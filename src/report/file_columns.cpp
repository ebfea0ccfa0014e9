/// Columns of variables from a file that holds one draw after the other.
#include "report/file_columns.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

namespace poise {

namespace {

constexpr std::uint64_t kOnes = 0x0101010101010101;

/// Eight labels of two kinds as a bit for each, and what in them is of neither kind.
class LabelPacker {
 public:
  LabelPacker(std::int8_t low, std::int8_t high)
      : lows_(kOnes * static_cast<std::uint8_t>(low)),
        difference_(static_cast<std::uint8_t>(low ^ high)),
        place_(std::countr_zero(static_cast<unsigned>(difference_) | 0x100U)) {}

  [[nodiscard]] std::uint8_t pack(const std::int8_t* labels) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, labels, sizeof eight);
    const std::uint64_t differs = eight ^ lows_;
    const std::uint64_t bits = differs >> place_ & kOnes;
    foreign_ |= differs ^ bits * difference_;
    return static_cast<std::uint8_t>(bits * 0x0102040810204080 >> 56);
  }
  [[nodiscard]] bool saw_foreign() const { return foreign_ != 0; }

 private:
  std::uint64_t lows_;
  std::uint64_t difference_;
  int place_;
  std::uint64_t foreign_ = 0;
};

/// The matrix of eight rows of eight bits, a byte each, with rows and columns exchanged (Warren, Hacker's Delight).
std::uint64_t transposed(std::uint64_t rows) {
  std::uint64_t moved = (rows ^ rows >> 7) & 0x00aa00aa00aa00aa;
  rows ^= moved ^ moved << 7;
  moved = (rows ^ rows >> 14) & 0x0000cccc0000cccc;
  rows ^= moved ^ moved << 14;
  moved = (rows ^ rows >> 28) & 0x00000000f0f0f0f0;
  return rows ^ moved ^ moved << 28;
}

/// Eight bytes, each all ones where its bit is set.
constexpr std::array<std::uint64_t, 256> kSpread = [] {
  std::array<std::uint64_t, 256> spread{};
  for (unsigned mask = 0; mask < spread.size(); ++mask) {
    for (unsigned i = 0; i < 8; ++i) {
      if ((mask >> i & 1U) != 0) spread[mask] |= std::uint64_t{0xff} << 8 * i;
    }
  }
  return spread;
}();

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

/// Eight draws of eight variables at a time where all draws are looked at; one by one at the edges.
bool FileColumns::load_bits() {
  count_ = fitting(1.0);
  column_bytes_ = (held_ + 7) / 8;
  bits_.assign(count_ * chains_ * column_bytes_, 0);
  LabelPacker packer(low_, high_);
  bool foreign = false;
  read([&](const Trace& part, std::size_t first_draw) {
    const bool by_eight = stride_ == 1 && first_draw % 8 == 0;
    const std::size_t whole_draws = by_eight ? part.draws / 8 * 8 : 0;
    const std::size_t whole_variables = count_ / 8 * 8;
    for (std::size_t chain = 0; chain < chains_; ++chain) {
      const std::int8_t* x = part.x.data() + chain * part.draws * count_;
      const auto column = [&](std::size_t i) { return bits_.data() + (i * chains_ + chain) * column_bytes_; };
      for (std::size_t draw = 0; draw < whole_draws; draw += 8) {
        for (std::size_t i = 0; i < whole_variables; i += 8) {
          std::uint64_t rows = 0;
          for (std::size_t k = 0; k < 8; ++k) {
            rows |= std::uint64_t{packer.pack(x + (draw + k) * count_ + i)} << 8 * k;
          }
          rows = transposed(rows);
          for (std::size_t k = 0; k < 8; ++k) {
            column(i + k)[(first_draw + draw) / 8] = static_cast<std::uint8_t>(rows >> 8 * k);
          }
        }
      }
      const std::size_t begin = (stride_ - first_draw % stride_) % stride_;
      for (std::size_t draw = begin; draw < part.draws; draw += stride_) {
        const std::size_t held = (first_draw + draw) / stride_;
        for (std::size_t i = draw < whole_draws ? whole_variables : 0; i < count_; ++i) {
          const std::int8_t label = x[draw * count_ + i];
          foreign = foreign || (label != low_ && label != high_);
          const unsigned bit = label == high_ ? 1U << held % 8 : 0U;
          column(i)[held / 8] = static_cast<std::uint8_t>(column(i)[held / 8] | bit);
        }
      }
    }
  });
  foreign = foreign || packer.saw_foreign();
  if (foreign) std::vector<std::uint8_t>().swap(bits_);
  return !foreign;
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
    const std::uint64_t lows = kOnes * static_cast<std::uint8_t>(low_);
    const std::uint64_t differences = kOnes * static_cast<std::uint8_t>(low_ ^ high_);
    for (std::size_t chain = 0; chain < chains_; ++chain) {
      const std::uint8_t* bits = bits_.data() + (column + chain) * column_bytes_;
      std::int8_t* out = to + i * stride + chain * held_;
      std::size_t draw = 0;
      for (; draw + 8 <= held_; draw += 8) {
        const std::uint64_t eight = lows ^ (kSpread[bits[draw / 8]] & differences);
        std::memcpy(out + draw, &eight, sizeof eight);
      }
      for (; draw < held_; ++draw) out[draw] = (bits[draw / 8] >> draw % 8 & 1) != 0 ? high_ : low_;
    }
  }
}

}  // namespace poise
