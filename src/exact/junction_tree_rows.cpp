/// Rows of a bucket: where tables lie in them, and the loops over them.
#include "exact/junction_tree_tables.hpp"

#include <algorithm>
#include <limits>

#include <poise/extend/base/math.hpp>

namespace poise::exact {

namespace {

using Stretch = Pass::Stretch;
using Term = Pass::Term;

constexpr double kLowest = std::numeric_limits<double>::lowest();

std::size_t product(std::span<const Index> levels) {
  std::size_t result = 1;
  for (const Index k : levels) result *= k;
  return result;
}

/// Adds to a row the entries of a table that belong to it.
POISE_INLINE void add_term(const Stretch& stretch, const double* from, double* row) {
  switch (stretch.kind) {
    case Stretch::Kind::constant:
      for (std::size_t r = 0; r < stretch.count; ++r, row += stretch.length) {
        const double value = from[stretch.places[r]];
        for (std::size_t i = 0; i < stretch.length; ++i) row[i] += value;
      }
      break;
    case Stretch::Kind::contiguous:
      for (std::size_t r = 0; r < stretch.count; ++r, row += stretch.length) {
        const double* part = from + stretch.places[r];
        for (std::size_t i = 0; i < stretch.length; ++i) row[i] += part[i];
      }
      break;
    case Stretch::Kind::scattered:
      for (std::size_t i = 0; i < stretch.count; ++i) row[i] += from[stretch.places[i]];
      break;
  }
}

/// The sum of a stretch, always in the same order.
POISE_INLINE double sum_stretch(const double* part, std::size_t length) {
  Doubles8 lanes{};
  std::size_t i = 0;
  for (; i + 8 <= length; i += 8) lanes += load8(part + i);
  double sum = sum8(lanes);
  for (; i < length; ++i) sum += part[i];
  return sum;
}

/// The reverse of `add_term`: every number of the row goes to the place that it belongs to.
POISE_INLINE void spread(const Stretch& stretch, const double* row, double* to) {
  switch (stretch.kind) {
    case Stretch::Kind::constant:
      for (std::size_t r = 0; r < stretch.count; ++r, row += stretch.length)
        to[stretch.places[r]] += sum_stretch(row, stretch.length);
      break;
    case Stretch::Kind::contiguous:
      for (std::size_t r = 0; r < stretch.count; ++r, row += stretch.length) {
        double* part = to + stretch.places[r];
        for (std::size_t i = 0; i < stretch.length; ++i) part[i] += row[i];
      }
      break;
    case Stretch::Kind::scattered:
      for (std::size_t i = 0; i < stretch.count; ++i) to[stretch.places[i]] += row[i];
      break;
  }
}

/// row = base + all terms, for one group. Terms that are one number for the whole row are added up first.
POISE_INLINE void fill_row(std::span<const Term> terms, std::size_t group, const double* base, std::size_t stride,
                           double* row) {
  double flat = 0.0;
  for (const Term& term : terms) {
    if (term.stretch.kind == Stretch::Kind::constant && term.stretch.count == 1) {
      flat += term.from[term.by_group[group] + term.stretch.places[0]];
    }
  }
  if (base == nullptr) {
    for (std::size_t i = 0; i < stride; ++i) row[i] = flat;
  } else {
    for (std::size_t i = 0; i < stride; ++i) row[i] = base[i] + flat;
  }
  for (const Term& term : terms) {
    if (term.stretch.kind == Stretch::Kind::constant && term.stretch.count == 1) continue;
    add_term(term.stretch, term.from + term.by_group[group], row);
  }
}

void fill_rows(std::span<const Term> terms, std::size_t groups, const double* base, std::size_t stride, double* rows) {
  hot([=] {
    for (std::size_t group = 0; group < groups; ++group) {
      fill_row(terms, group, base == nullptr ? nullptr : base + group * stride, stride, rows + group * stride);
    }
  });
}

/// log of the sum of e^x over groups. The largest is taken out first; where it is -inf, all are, and so is the result.
void sum_groups(const double* rows, std::size_t groups, std::size_t stride, double* out) {
  hot([=] {
    for (std::size_t i = 0; i < stride; i += 8) {
      if (groups == 2) {  // the largest has e^0: one exponential is enough
        const Doubles8 a = load8(rows + i);
        const Doubles8 b = load8(rows + stride + i);
        const Doubles8 largest = max8(a, b);
        const Doubles8 rest = exp8(min8(a, b) - max8(largest, broadcast8(kLowest)));
        store8(out + i, largest + log8(1.0 + rest));
        continue;
      }
      Doubles8 largest = load8(rows + i);
      for (std::size_t group = 1; group < groups; ++group) largest = max8(largest, load8(rows + group * stride + i));
      const Doubles8 shift = max8(largest, broadcast8(kLowest));
      Doubles8 sum{};
      for (std::size_t group = 0; group < groups; ++group) sum += exp8(load8(rows + group * stride + i) - shift);
      store8(out + i, largest + log8(sum));
    }
  });
}

void max_groups(const double* rows, std::size_t groups, std::size_t stride, double* out) {
  hot([=] {
    for (std::size_t i = 0; i < stride; i += 8) {
      Doubles8 largest = load8(rows + i);
      for (std::size_t group = 1; group < groups; ++group) largest = max8(largest, load8(rows + group * stride + i));
      store8(out + i, largest);
    }
  });
}

struct HandOut {
  std::span<const Term> outer;  ///< terms to be added to the base
  std::span<const Term> all;
  const double* base;
  const double* message;
  const double* probabilities;
  double* row;
  double* totals;
  std::size_t groups;
  std::size_t stride;
};

void hand_out_rows(const HandOut& work) {
  hot([&] {
    double* row = work.row;
    for (std::size_t group = 0; group < work.groups; ++group) {
      fill_row(work.outer, group, work.base + group * work.stride, work.stride, row);
      Doubles8 sum{};
      for (std::size_t i = 0; i < work.stride; i += 8) {
        const Doubles8 part = exp8(load8(row + i) - load8(work.message + i)) * load8(work.probabilities + i);
        sum += part;
        store8(row + i, part);
      }
      work.totals[group] += sum8(sum);
      for (const Term& term : work.all) {
        if (term.to != nullptr) spread(term.stretch, row, term.to + term.by_group[group]);
      }
    }
  });
}

}  // namespace

std::size_t combine(std::span<const Index> levels, std::span<const std::size_t> strides, std::ptrdiff_t* places) {
  std::size_t count = 1;
  places[0] = 0;
  for (std::size_t k = 0; k < levels.size(); ++k) {
    for (std::size_t p = count; p-- > 0;) {
      const std::ptrdiff_t place = places[p];
      for (std::size_t level = levels[k]; level-- > 0;) {
        places[p * levels[k] + level] = place + static_cast<std::ptrdiff_t>(level * strides[k]);
      }
    }
    count *= levels[k];
  }
  return count;
}

void Pass::describe(std::span<const Source> sources, std::size_t source) {
  const std::size_t number = terms_.size();
  constexpr std::size_t shortest_run = 8;
  const std::span<const Index> levels = shape_.levels;
  const std::size_t row_start = levels.size() - shape_.in_row;
  std::fill(strides_.begin(), strides_.end(), 0);
  for (const Digit& digit : sources[source].digits) strides_[digit.member] = digit.stride;

  Term term{};
  term.from = sources[source].table;
  term.by_group = by_group_.data() + number * groups_;
  combine(levels.first(shape_.summed), strides_, by_group_.data() + number * groups_);

  Stretch& stretch = term.stretch;
  std::size_t end = levels.size();
  stretch.length = 1;
  const bool constant = end == row_start || strides_[end - 1] == 0;
  while (end > row_start && strides_[end - 1] == (constant ? 0 : stretch.length)) stretch.length *= levels[--end];
  stretch.kind = constant ? Stretch::Kind::constant : Stretch::Kind::contiguous;
  if (stretch.length < shortest_run && end > row_start) {
    stretch.kind = Stretch::Kind::scattered;
    stretch.length = 1;
    end = levels.size();
  }
  std::ptrdiff_t* places = places_.data() + number * row_;
  stretch.count = combine(levels.subspan(row_start, end - row_start),
                          std::span<const std::size_t>(strides_).subspan(row_start), places);
  stretch.places = places;
  terms_.push_back(term);
  source_of_.push_back(source);
}

void Pass::prepare(const Shape& shape, std::span<const Source> sources) {
  shape_ = shape;
  const std::size_t outer = shape.levels.size() - shape.summed - shape.in_row;
  groups_ = product(shape.levels.first(shape.summed));
  row_ = product(shape.levels.last(shape.in_row));
  stride_ = padded(row_);
  strides_.resize(shape.levels.size());
  by_group_.resize(sources.size() * groups_);
  places_.resize(sources.size() * row_);
  terms_.clear();
  source_of_.clear();

  const auto is_outer = [&](const Digit& digit) {
    return digit.member >= shape.summed && digit.member < shape.summed + outer;
  };
  const auto depends = [&](const Source& s) { return std::any_of(s.digits.begin(), s.digits.end(), is_outer); };
  for (std::size_t k = 0; k < sources.size(); ++k) {
    if (depends(sources[k])) describe(sources, k);
  }
  outer_terms_ = terms_.size();
  outer_strides_.assign(outer * outer_terms_, 0);
  for (std::size_t term = 0; term < outer_terms_; ++term) {
    for (const Digit& digit : sources[source_of_[term]].digits) {
      if (is_outer(digit)) outer_strides_[(digit.member - shape.summed) * outer_terms_ + term] = digit.stride;
    }
  }
  for (std::size_t k = 0; k < sources.size(); ++k) {
    if (!depends(sources[k])) describe(sources, k);
  }
  base_.resize(groups_ * stride_);
  rows_.resize(groups_ * stride_);
  row_message_.assign(stride_, 0.0);
  row_probabilities_.assign(stride_, 0.0);
  fill_rows(std::span<const Term>(terms_).subspan(outer_terms_), groups_, nullptr, stride_, base_.data());
}

bool Pass::open(std::span<const Source> sources, std::span<const Fixed> fixed) {
  for (std::size_t term = 0; term < terms_.size(); ++term) {
    terms_[term].from = sources[source_of_[term]].table;
    terms_[term].to = sources[source_of_[term]].probabilities;
  }
  offset_ = 0;
  walk(fixed);
  return true;
}

/// A fixed variable is moved to its level once and for all.
void Pass::walk(std::span<const Fixed> fixed) {
  const std::size_t outer = shape_.levels.size() - shape_.summed - shape_.in_row;
  const std::span<const Index> levels = shape_.levels.subspan(shape_.summed, outer);
  outer_levels_.assign(levels.begin(), levels.end());
  outer_now_.assign(outer, 0);
  offset_strides_.resize(outer);
  std::size_t stride = row_;
  for (std::size_t k = outer; k-- > 0; stride *= levels[k]) offset_strides_[k] = stride;
  for (const auto& [member, level] : fixed) {
    outer_levels_[member - shape_.summed] = 1;
    move(member - shape_.summed, level);
  }
}

void Pass::move(std::size_t outer, std::ptrdiff_t times) {
  const std::size_t* strides = outer_strides_.data() + outer * outer_terms_;
  for (std::size_t t = 0; t < outer_terms_; ++t) {
    const std::ptrdiff_t distance = times * static_cast<std::ptrdiff_t>(strides[t]);
    terms_[t].from += distance;
    if (terms_[t].to != nullptr) terms_[t].to += distance;
  }
  offset_ += static_cast<std::size_t>(times * static_cast<std::ptrdiff_t>(offset_strides_[outer]));
}

bool Pass::next() {
  for (std::size_t k = outer_levels_.size(); k-- > 0;) {
    if (outer_levels_[k] == 1) continue;
    const bool carry = ++outer_now_[k] == outer_levels_[k];
    move(k, carry ? 1 - static_cast<std::ptrdiff_t>(outer_levels_[k]) : 1);
    if (!carry) return true;
    outer_now_[k] = 0;
  }
  return false;
}

void Pass::collect(double* message, Reduction reduction) {
  const double* rows = base_.data();
  if (outer_terms_ > 0) {
    fill_rows(outer_terms(), groups_, base_.data(), stride_, rows_.data());
    rows = rows_.data();
  }
  (reduction == Reduction::sum ? sum_groups : max_groups)(rows, groups_, stride_, row_message_.data());
  std::copy_n(row_message_.begin(), row_, message);
}

void Pass::hand_out(const double* message, double scale, const double* probabilities, double* totals) {
  for (std::size_t i = 0; i < row_; ++i) row_message_[i] = std::max(message[i] + scale, kLowest);
  std::copy_n(probabilities, row_, row_probabilities_.begin());
  hand_out_rows({.outer = outer_terms(),
                 .all = terms_,
                 .base = base_.data(),
                 .message = row_message_.data(),
                 .probabilities = row_probabilities_.data(),
                 .row = rows_.data(),
                 .totals = totals,
                 .groups = groups_,
                 .stride = stride_});
}

}  // namespace poise::exact
