/// Diagnostics of all variables, block by block, and the worst of them.
#include <poise/diagnose.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <thread>

#include "base/thread_pool.hpp"

#include "diagnose/bit_chains.hpp"
#include "diagnose/effective_size.hpp"

namespace poise {
namespace {

namespace detail = diagnose_detail;
using detail::undefined;

/// Columns copied at a time: a cache line of each draw, fewer when the chains are so long that the copy would be huge.
std::size_t block_width(const ColumnSource& draws) {
  constexpr std::size_t copy_limit = std::size_t{1} << 26;
  const std::size_t fitting = copy_limit / std::max<std::size_t>(draws.chains() * draws.draws(), 1);
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

  /// Transposes tile by tile: sixteen draws of the block stay in the cache while its columns are written.
  void copy(std::size_t first, std::size_t count, std::int8_t* to, std::size_t stride) const override {
    constexpr std::size_t tile = 16;
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
  explicit RowMaker(const ColumnSource& draws)
      : source_(draws),
        chains_(draws.chains()),
        draws_(draws.draws()),
        total_(chains_ * draws_),
        stride_(total_ + 64),
        columns_(block_width(draws) * stride_) {}

  std::vector<VariableRow> block(std::size_t first, std::size_t count) {
    source_.copy(first, count, columns_.data(), stride_);
    std::vector<VariableRow> rows;
    rows.reserve(count);
    for (std::size_t i = 0; i < count; ++i)
      add_rows(static_cast<Index>(first + i), columns_.data() + i * stride_, rows);
    return rows;
  }

 private:
  void add_rows(Index variable, const std::int8_t* series, std::vector<VariableRow>& rows) {
    std::int8_t low = series[0];
    std::int8_t high = series[0];
    for (std::size_t i = 0; i < total_; ++i) {
      low = std::min(low, series[i]);
      high = std::max(high, series[i]);
    }
    if (low == high) {
      rows.push_back(
          {static_cast<double>(low), undefined, undefined, undefined, 0, variable, {}, SeriesStatus::constant});
      return;
    }
    std::size_t others = 0;
    for (std::size_t i = 0; i < total_; ++i) others += (series[i] != low && series[i] != high) ? 1U : 0U;
    if (others == 0) {
      VariableRow row = indicator_row(series, high);
      row.variable = variable;
      const double width = static_cast<double>(high) - low;
      row.mean = low + width * row.mean;
      row.mcse *= width;
      rows.push_back(row);
      return;
    }
    std::array<bool, 256> seen{};
    for (std::size_t i = 0; i < total_; ++i) seen[static_cast<std::size_t>(series[i] + 128)] = true;
    for (int level = low; level <= high; ++level) {
      if (!seen[static_cast<std::size_t>(level + 128)]) continue;
      VariableRow row = indicator_row(series, static_cast<std::int8_t>(level));
      row.variable = variable;
      row.level = static_cast<std::int8_t>(level);
      rows.push_back(row);
    }
  }

  VariableRow indicator_row(const std::int8_t* series, std::int8_t level) {
    whole_.reset(chains_, draws_);
    for (std::size_t chain = 0; chain < chains_; ++chain) whole_.fill_equal(chain, series + chain * draws_, level);
    whole_.count();
    halves_.take_halves(whole_);
    VariableRow row{};
    const auto ones = static_cast<double>(whole_.ones());
    const auto total = static_cast<double>(total_);
    row.mean = ones / total;
    const detail::BitMixing mixing = detail::mixing_of(halves_);
    row.ess = mixing.ess;
    row.r_hat = mixing.r_hat;
    row.chance = mixing.chance;
    row.mcse = std::sqrt(ones * (total - ones) / (total * (total - 1)) / row.ess);
    row.transitions = whole_.transitions();
    row.status = detail::status_of(chains_, draws_, row.transitions);
    return row;
  }

  const ColumnSource& source_;
  std::size_t chains_;
  std::size_t draws_;
  std::size_t total_;
  std::size_t stride_;  // past the length, so that columns of 4096 draws do not fall on the same cache lines
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

/// The rows of the variables that are loaded, in their order.
void add_rows(const ColumnSource& draws, std::size_t from, std::size_t variables, ThreadPool& pool,
              std::vector<VariableRow>& rows) {
  const std::size_t width = block_width(draws);
  const std::size_t blocks = (variables + width - 1) / width;
  std::vector<std::vector<VariableRow>> parts(blocks);
  // Makers have memory of their own, so neighbouring blocks share one.
  const std::size_t shares = std::min<std::size_t>(blocks, std::size_t{8} * pool.threads());
  pool.for_each(shares, [&](std::size_t share) {
    RowMaker maker(draws);
    for (std::size_t block = blocks * share / shares; block < blocks * (share + 1) / shares; ++block) {
      const std::size_t first = block * width;
      parts[block] = maker.block(from + first, std::min(width, variables - first));
    }
  });
  std::size_t total_rows = rows.size();
  for (const auto& part : parts) total_rows += part.size();
  rows.reserve(total_rows);
  for (auto& part : parts) {
    rows.insert(rows.end(), part.begin(), part.end());
    std::vector<VariableRow>().swap(part);
  }
}

}  // namespace

VariablesSummary summarize_variables(DrawsView draws, const VariablesOptions& options) {
  MemoryColumns columns(draws.data == nullptr ? DrawsView{nullptr, draws.chains, 0, draws.variables} : draws);
  VariablesSummary summary = summarize_variables(columns, options);
  summary.draws = draws.draws;
  return summary;
}

VariablesSummary summarize_variables(ColumnSource& draws, const VariablesOptions& options) {
  VariablesSummary summary;
  summary.chains = draws.chains();
  summary.draws = draws.draws();
  summary.variables = draws.variables();
  const std::size_t blocks = (summary.variables + block_width(draws) - 1) / block_width(draws);
  const unsigned wanted = options.threads == 0 ? std::thread::hardware_concurrency() : options.threads;
  ThreadPool pool(std::max(1U, std::min(wanted, static_cast<unsigned>(std::min<std::size_t>(blocks, 1U << 16)))));
  const std::size_t all = summary.chains * summary.draws == 0 ? 0 : summary.variables;
  for (std::size_t first = 0; first < all;) {
    const std::size_t count = draws.load(first);
    add_rows(draws, first, count, pool, summary.rows);
    first += count;
  }
  summary.ess = quantiles(summary.rows, &VariableRow::ess);
  summary.r_hat = quantiles(summary.rows, &VariableRow::r_hat);
  summary.worst_by_r_hat = worst(summary.rows, options.worst, &VariableRow::r_hat, std::greater<>());
  summary.worst_by_ess = worst(summary.rows, options.worst, &VariableRow::ess, std::less<>());
  count_variables(summary);
  return summary;
}

}  // namespace poise
