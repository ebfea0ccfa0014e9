/// Diagnostics of all variables, block by block, and the worst of them.
#include <poise/diagnose.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <thread>

#include "base/thread_pool.hpp"

#include "diagnose/batch_counts.hpp"
#include "diagnose/bit_chains.hpp"
#include "diagnose/bit_columns.hpp"
#include "diagnose/effective_size.hpp"

namespace poise {
namespace {

namespace detail = diagnose_detail;
using detail::undefined;

/// Columns copied at a time: a cache line of each draw, fewer when the chains are so long that the copy would be huge.
std::size_t block_width(const ColumnSource& draws) {
  constexpr std::size_t copy_limit = std::size_t{1} << 26;
  const bool are_bits = draws.in_memory() != nullptr && draws.in_memory()->bits != nullptr;
  const std::size_t values = draws.chains() * draws.draws();
  const std::size_t fitting = (are_bits ? 8 * copy_limit : copy_limit) / std::max<std::size_t>(values, 1);
  return std::clamp<std::size_t>(fitting, 1, 64);
}

/// Draws that are all in memory, draw by draw.
class MemoryColumns final : public ColumnSource {
 public:
  explicit MemoryColumns(DrawsView draws) : draws_(draws) {}
  [[nodiscard]] std::size_t chains() const override { return draws_.chains; }
  [[nodiscard]] std::size_t draws() const override { return draws_.draws; }
  [[nodiscard]] std::size_t variables() const override { return draws_.variables; }
  [[nodiscard]] std::size_t load(std::size_t first) override { return draws_.variables - first; }
  [[nodiscard]] const DrawsView* in_memory() const override { return &draws_; }

  /// Transposes tile by tile: sixteen draws of the block stay in the cache while its columns are written.
  void copy(std::size_t first, std::size_t count, std::int8_t* to, std::size_t stride) const override {
    constexpr std::size_t tile = 16;
    if (draws_.bits != nullptr) throw std::logic_error("columns of bits are taken by take_columns");
    const std::size_t total = draws_.chains * draws_.draws;
    for (std::size_t begin = 0; begin < total; begin += tile) {
      const std::size_t end = std::min(begin + tile, total);
      for (std::size_t i = 0; i < count; ++i) {
        const std::int8_t* source = draws_.data + begin * draws_.variables + first + i;
        std::int8_t* target = to + i * stride;
        for (std::size_t draw = begin; draw < end; ++draw, source += draws_.variables) target[draw] = *source;
      }
    }
  }

 private:
  DrawsView draws_;
};

/// Turns the series of one variable after another into rows. One per thread, so that memory is reused.
class RowMaker {
 public:
  /// With `cuts` effective sizes are estimated from batches.
  RowMaker(const ColumnSource& draws, const detail::BatchCuts* cuts)
      : source_(draws),
        cuts_(cuts),
        chains_(draws.chains()),
        draws_(draws.draws()),
        total_(chains_ * draws_),
        stride_(total_ + 64),
        rows_(rows_of_bits(draws)) {
    if (rows_ == nullptr) columns_.resize(block_width(draws) * stride_);
  }

  static bool is_of_bits(const ColumnSource& draws) { return rows_of_bits(draws) != nullptr; }

  std::vector<VariableRow> block(std::size_t first, std::size_t count) {
    if (rows_ != nullptr) return block_of_bits(first, count);
    source_.copy(first, count, columns_.data(), stride_);
    std::vector<VariableRow> rows;
    rows.reserve(count);
    for (std::size_t i = 0; i < count; ++i)
      add_rows(static_cast<Index>(first + i), columns_.data() + i * stride_, rows);
    return rows;
  }

 private:
  static const DrawsView* rows_of_bits(const ColumnSource& draws) {
    const DrawsView* const memory = draws.in_memory();
    return memory != nullptr && memory->bits != nullptr ? memory : nullptr;
  }

  std::vector<VariableRow> block_of_bits(std::size_t first, std::size_t count) {
    bits_.resize(std::max(bits_.size(), count));
    detail::take_columns(*rows_, first, std::span(bits_).first(count));
    std::vector<VariableRow> rows;
    rows.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto variable = static_cast<Index>(first + i);
      const auto [low, high] = std::minmax(rows_->low, rows_->high);
      const std::uint64_t ones = bits_[i].ones();
      if (ones == 0 || ones == total_) {
        rows.push_back(detail::constant_row(variable, ones == 0 ? low : high));
      } else {
        rows.push_back(two_valued_row(variable, bits_[i], low, high));
      }
    }
    return rows;
  }

  VariableRow two_valued_row(Index variable, const detail::BitChains& series, std::int8_t low, std::int8_t high) {
    VariableRow row = indicator_row(series);
    row.variable = variable;
    detail::label_row(row, low, high);
    return row;
  }

  void add_rows(Index variable, const std::int8_t* series, std::vector<VariableRow>& rows) {
    std::int8_t low = series[0];
    std::int8_t high = series[0];
    for (std::size_t i = 0; i < total_; ++i) {
      low = std::min(low, series[i]);
      high = std::max(high, series[i]);
    }
    if (low == high) {
      rows.push_back(detail::constant_row(variable, low));
      return;
    }
    std::size_t others = 0;
    for (std::size_t i = 0; i < total_; ++i) others += (series[i] != low && series[i] != high) ? 1U : 0U;
    if (others == 0) {
      rows.push_back(two_valued_row(variable, is_at(series, high), low, high));
      return;
    }
    std::array<bool, 256> seen{};
    for (std::size_t i = 0; i < total_; ++i) seen[static_cast<std::size_t>(series[i] + 128)] = true;
    for (int level = low; level <= high; ++level) {
      if (!seen[static_cast<std::size_t>(level + 128)]) continue;
      VariableRow row = indicator_row(is_at(series, static_cast<std::int8_t>(level)));
      row.variable = variable;
      row.level = static_cast<std::int8_t>(level);
      rows.push_back(row);
    }
  }

  const detail::BitChains& is_at(const std::int8_t* series, std::int8_t level) {
    whole_.reset(chains_, draws_);
    for (std::size_t chain = 0; chain < chains_; ++chain) whole_.fill_equal(chain, series + chain * draws_, level);
    whole_.count();
    return whole_;
  }

  VariableRow indicator_row(const detail::BitChains& whole) {
    if (cuts_ != nullptr) return detail::estimated_row(whole, *cuts_);
    halves_.take_halves(whole);
    VariableRow row{};
    const auto ones = static_cast<double>(whole.ones());
    const auto total = static_cast<double>(total_);
    row.mean = ones / total;
    const detail::BitMixing mixing = detail::mixing_of(halves_);
    row.ess = mixing.ess;
    row.r_hat = mixing.r_hat;
    row.chance = mixing.chance;
    row.mcse = std::sqrt(ones * (total - ones) / (total * (total - 1)) / row.ess);
    row.transitions = whole.transitions();
    row.status = detail::status_of(chains_, draws_, row.transitions);
    return row;
  }

  const ColumnSource& source_;
  const detail::BatchCuts* cuts_;
  std::size_t chains_;
  std::size_t draws_;
  std::size_t total_;
  std::size_t stride_;     // past the length, so that columns of 4096 draws do not fall on the same cache lines
  const DrawsView* rows_;  // where draws are rows of bits
  std::vector<detail::BitChains> bits_;
  std::vector<std::int8_t> columns_;
  detail::BitChains whole_;
  detail::BitChains halves_;
};

/// Type 7, of values in ascending order; infinities are taken as they are.
double quantile(const std::vector<double>& sorted, double probability) {
  const double index = static_cast<double>(sorted.size() - 1) * probability;
  const double below = std::floor(index);
  const double low = sorted[static_cast<std::size_t>(below)];
  const double high = sorted[static_cast<std::size_t>(std::ceil(index))];
  return low == high ? low : low + (index - below) * (high - low);
}

Quantiles quantiles(const std::vector<VariableRow>& rows, double VariableRow::*field) {
  std::vector<double> values;
  values.reserve(rows.size());
  for (const VariableRow& row : rows) {
    if (!std::isnan(row.*field)) values.push_back(row.*field);
  }
  if (values.empty()) return {undefined, undefined, undefined, undefined, undefined};
  std::sort(values.begin(), values.end());
  return {values.front(), quantile(values, 0.05), quantile(values, 0.5), quantile(values, 0.95), values.back()};
}

/// The first `count` rows by `is_worse`, among those where the field is defined; ties go by position.
template <class IsWorse>
std::vector<VariableRow> worst(const std::vector<VariableRow>& rows, std::size_t count, double VariableRow::*field,
                               IsWorse is_worse) {
  std::vector<const VariableRow*> order;
  order.reserve(rows.size());
  for (const VariableRow& row : rows) {
    if (!std::isnan(row.*field)) order.push_back(&row);
  }
  count = std::min(count, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](const VariableRow* a, const VariableRow* b) {
                      if (a->*field != b->*field) return is_worse(a->*field, b->*field);
                      return a < b;
                    });
  std::vector<VariableRow> result;
  for (std::size_t i = 0; i < count; ++i) result.push_back(*order[i]);
  return result;
}

void count_variables(VariablesSummary& summary) {
  const auto& rows = summary.rows;
  for (std::size_t first = 0; first < rows.size();) {
    bool constant = false;
    bool frozen = false;
    bool rare = false;
    bool high_r_hat = false;
    bool low_ess = false;
    std::size_t row = first;
    for (; row < rows.size() && rows[row].variable == rows[first].variable; ++row) {
      constant = constant || rows[row].status == SeriesStatus::constant;
      frozen = frozen || rows[row].status == SeriesStatus::frozen;
      rare = rare || rows[row].status == SeriesStatus::rare;
      high_r_hat = high_r_hat || detail::is_high(rows[row].chance, rows.size());
      low_ess = low_ess || rows[row].ess < ess_limit;
    }
    summary.constant += constant ? 1 : 0;
    summary.frozen += frozen ? 1 : 0;
    summary.rare += rare ? 1 : 0;
    summary.high_r_hat += high_r_hat && !frozen ? 1 : 0;
    summary.low_ess += low_ess && !frozen ? 1 : 0;
    first = row;
  }
}

using Rows = std::vector<VariableRow>;

void append(std::vector<Rows>& parts, Rows& rows) {
  std::size_t total = rows.size();
  for (const Rows& part : parts) total += part.size();
  rows.reserve(total);
  for (Rows& part : parts) {
    rows.insert(rows.end(), part.begin(), part.end());
    Rows().swap(part);
  }
}

/// Variables that are next to each other.
struct Stretch {
  std::size_t first;
  std::size_t count;
};

/// Calls work(maker, number) for each of `count` pieces of work, makers having memory of their own that neighbours
/// share.
template <class Work>
void with_makers(const ColumnSource& draws, const detail::BatchCuts* cuts, std::size_t count, ThreadPool& pool,
                 Work&& work) {
  const std::size_t shares = std::min<std::size_t>(count, std::size_t{8} * pool.threads());
  pool.for_each(shares, [&](std::size_t share) {
    RowMaker maker(draws, cuts);
    for (std::size_t k = count * share / shares; k < count * (share + 1) / shares; ++k) work(maker, k);
  });
}

/// The rows of the variables that are loaded, in their order.
void add_rows(const ColumnSource& draws, Stretch loaded, const detail::BatchCuts* cuts, ThreadPool& pool, Rows& rows) {
  const DrawsView* const memory = cuts != nullptr && !RowMaker::is_of_bits(draws) ? draws.in_memory() : nullptr;
  std::size_t width = block_width(draws);
  if (memory != nullptr) {  // counts of a tile should fit the cache
    constexpr std::size_t kTileBytes = std::size_t{1} << 22;
    width = std::clamp<std::size_t>(kTileBytes / (draws.chains() * cuts->slots() * 4) / 64 * 64, 64, 1024);
  }
  const std::size_t blocks = (loaded.count + width - 1) / width;
  std::vector<Rows> parts(blocks);
  const auto stretch = [&](std::size_t block) {
    return Stretch{loaded.first + block * width, std::min(width, loaded.count - block * width)};
  };
  if (memory != nullptr) {
    pool.for_each(blocks, [&](std::size_t block) {
      const Stretch here = stretch(block);
      parts[block] = detail::estimated_rows(*memory, *cuts, here.first, here.count);
    });
  } else {
    with_makers(draws, cuts, blocks, pool, [&](RowMaker& maker, std::size_t block) {
      const Stretch here = stretch(block);
      parts[block] = maker.block(here.first, here.count);
    });
  }
  append(parts, rows);
}

/// The variables to be diagnosed at every lag: those of the worst rows, and groups of neighbours at equal distances.
std::vector<char> chosen(const VariablesSummary& summary, std::size_t most) {
  constexpr std::size_t kNeighbours = 8;  // are in memory together
  std::vector<char> is_chosen(summary.variables, 0);
  std::size_t left = most;
  const auto choose = [&](std::size_t variable) {
    if (is_chosen[variable] != 0 || left == 0) return;
    is_chosen[variable] = 1;
    --left;
  };
  for (const auto* list : {&summary.worst_by_r_hat, &summary.worst_by_ess}) {
    for (const VariableRow& row : *list) choose(row.variable);
  }
  const std::size_t groups = (left + kNeighbours - 1) / kNeighbours;
  for (std::size_t group = 0; group < groups; ++group) {
    const std::size_t first = summary.variables * group / groups;
    for (std::size_t k = 0; k < kNeighbours && first + k < summary.variables; ++k) choose(first + k);
  }
  return is_chosen;
}

/// Replaces the estimates of the chosen variables.
void make_exact(ColumnSource& draws, const std::vector<char>& is_chosen, bool all_loaded, ThreadPool& pool,
                Rows& rows) {
  Rows exact;
  for (std::size_t first = 0; first < is_chosen.size();) {
    if (is_chosen[first] == 0) {
      ++first;
      continue;
    }
    const std::size_t loaded = all_loaded ? is_chosen.size() : first + draws.load(first);
    std::vector<Stretch> stretches;
    for (; first < loaded; ++first) {
      if (is_chosen[first] == 0) continue;
      const bool is_next = !stretches.empty() && stretches.back().first + stretches.back().count == first;
      if (is_next && stretches.back().count < block_width(draws)) {
        ++stretches.back().count;
      } else {
        stretches.push_back({first, 1});
      }
    }
    std::vector<Rows> parts(stretches.size());
    with_makers(draws, nullptr, stretches.size(), pool, [&](RowMaker& maker, std::size_t k) {
      parts[k] = maker.block(stretches[k].first, stretches[k].count);
    });
    append(parts, exact);
  }
  // A variable has as many rows by either way.
  auto next = exact.begin();
  for (VariableRow& row : rows) {
    if (is_chosen[row.variable] != 0) row = *next++;
  }
}

void rank(VariablesSummary& summary, std::size_t worst_rows, bool exact_only) {
  Rows exact;
  if (exact_only) {
    std::copy_if(summary.rows.begin(), summary.rows.end(), std::back_inserter(exact),
                 [](const VariableRow& row) { return !row.is_estimate; });
  }
  const Rows& known = exact_only ? exact : summary.rows;
  summary.ess = quantiles(known, &VariableRow::ess);
  summary.r_hat = quantiles(summary.rows, &VariableRow::r_hat);
  summary.worst_by_r_hat = worst(known, worst_rows, &VariableRow::r_hat, std::greater<>());
  summary.worst_by_ess = worst(known, worst_rows, &VariableRow::ess, std::less<>());
}

}  // namespace

DrawsView draws_view(const States& states, std::size_t chains, std::size_t draws) {
  const std::uint8_t* const rows = states.bytes().data();
  if (states.has_bits()) return {nullptr, chains, draws, states.variables(), rows, states.low(), states.high()};
  return {reinterpret_cast<const std::int8_t*>(rows), chains, draws, states.variables()};
}

VariablesSummary summarize_variables(DrawsView draws, const VariablesOptions& options) {
  MemoryColumns columns(!draws.has_states() ? DrawsView{nullptr, draws.chains, 0, draws.variables} : draws);
  VariablesSummary summary = summarize_variables(columns, options);
  summary.draws = draws.draws;
  return summary;
}

VariablesSummary summarize_variables(ColumnSource& draws, const VariablesOptions& options) {
  VariablesSummary summary;
  summary.chains = draws.chains();
  summary.draws = draws.draws();
  summary.variables = draws.variables();
  const std::size_t series = summary.chains * summary.draws;
  constexpr std::size_t kFewer = 4;  // values of a subset, whose variables lie apart, take so much longer
  const std::size_t fitting = values_at_every_lag / std::max<std::size_t>(series, 1);
  const std::size_t most = std::max(2 * options.worst, fitting / kFewer);
  const std::size_t blocks = (summary.variables + block_width(draws) - 1) / block_width(draws);
  const unsigned wanted = options.threads == 0 ? std::thread::hardware_concurrency() : options.threads;
  ThreadPool pool(std::max(1U, std::min(wanted, static_cast<unsigned>(std::min<std::size_t>(blocks, 1U << 16)))));
  const std::size_t all = series == 0 ? 0 : summary.variables;
  std::optional<detail::BatchCuts> cuts;
  if (all > std::max(fitting, most)) cuts.emplace(summary.draws, summary.chains);
  bool all_loaded = true;
  for (std::size_t first = 0; first < all;) {
    const std::size_t count = draws.load(first);
    add_rows(draws, {first, count}, cuts ? &*cuts : nullptr, pool, summary.rows);
    first += count;
    all_loaded = first == count && count == all;
  }
  rank(summary, options.worst, false);
  summary.exact = all;
  if (cuts) {
    const std::vector<char> is_chosen = chosen(summary, most);
    make_exact(draws, is_chosen, all_loaded, pool, summary.rows);
    rank(summary, options.worst, true);
    summary.exact = static_cast<std::size_t>(std::count(is_chosen.begin(), is_chosen.end(), char{1}));
  }
  count_variables(summary);
  return summary;
}

}  // namespace poise
