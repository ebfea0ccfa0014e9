/// Terms of conditionals as tables of floats, how far they may be off, and the same as plain arrays.
#include "engines/cpu/lanes/lane_model.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "engines/common/colouring.hpp"
#include "engines/common/keyed_words.hpp"
#include "engines/cpu/lanes/lane_image.hpp"
#include "engines/cpu/lanes/lane_sweep.hpp"

namespace poise {

namespace {

/// Half of the last digit of a float.
constexpr double kRounding = 0x1p-24;

unsigned bits_of(Index levels) { return static_cast<unsigned>(std::bit_width(levels - 1U)); }

/// Calls `use` with all configurations of some variables, in the order of a table whose first variable has the lowest
/// bits, and with that place.
template <class Use>
void for_each_configuration(const std::vector<Index>& levels, std::span<const Index> variables, Use&& use) {
  std::vector<Value> digits(variables.size(), 0);
  for (;;) {
    std::size_t place = 0;
    unsigned shift = 0;
    for (std::size_t k = 0; k < digits.size(); ++k) {
      place |= std::size_t{digits[k]} << shift;
      shift += bits_of(levels[variables[k]]);
    }
    use(std::span<const Value>(digits), place);
    std::size_t k = 0;
    while (k < digits.size() && ++digits[k] == levels[variables[k]]) digits[k++] = 0;
    if (k == digits.size()) return;
  }
}

/// A difference of logarithms as a float; where both are zeros the configuration never occurs.
float difference(double a, double b) {
  const double infinity = std::numeric_limits<double>::infinity();
  if (a == b) return 0.0F;
  if (a == -infinity) return LaneModel::kZero;
  if (b == -infinity) return -LaneModel::kZero;
  return static_cast<float>(a - b);
}

}  // namespace

/// Adds variables one after the other, in the order of updates.
class LaneModel::Builder {
 public:
  explicit Builder(LaneModel& model) : model_(model), levels_(model.source_.levels) {}

  void add(Index variable) {
    const Index levels = levels_[variable];
    Variable added{};
    added.variable = variable;
    added.levels = levels;
    added.entry = entries_;
    added.first_pair = static_cast<Index>(model_.pairs_.size());
    added.first_term = static_cast<Index>(model_.terms_.size());
    entries_ += levels - 1;
    range_ = 0.0;
    zeros_ = 0.0;
    double base = 0.0;
    double base_zeros = 0.0;
    std::size_t summands = 1;
    model_.source_.terms(variable, [&](const LaneTerm& term) {
      ++summands;
      if (levels == 2 && term.others.empty()) {
        const Soft up = entry(variable, term, {}, 1);
        const Soft down = entry(variable, term, {}, 0);
        base += difference(up.log, down.log);
        base_zeros += up.zero - down.zero;
        zeros_ += up.zero + down.zero;
      } else if (levels == 2 && term.others.size() == 1 && levels_[term.others[0]] == 2 && !is_soft(variable, term)) {
        add_pair(variable, term);
      } else {
        add_term(variable, term);
      }
    });
    added.base = static_cast<float>(base);
    added.zeros = static_cast<float>(base_zeros);
    range_ += std::abs(base) < -LaneModel::kZero / 2 ? std::abs(base) : 0.0;
    // Every summand is rounded once, and every sum: `summands` roundings of at most the sum of all that is added. With
    // more than two levels it is the difference of two such sums that counts. Heat adds a product and a sum, with at
    // most `zeros_` zeros.
    double error = static_cast<double>(summands + 1) * kRounding * range_;
    if (model_.zeros_ == LaneZeros::soft) error += 2.0 * kRounding * (range_ - 2.0 * kLowestLogZero * zeros_);
    error *= levels == 2 ? 1.0 : 2.0;
    const double spread = std::expm1(error) * 1.0001;
    constexpr double kMostSpread = 0.5;  // beyond it floats are asked for nothing: the margin is the whole range
    const bool useful = spread <= kMostSpread;
    added.spread = static_cast<float>(useful ? spread : kMostSpread);
    // The exponential (2^-21 of the odds), a quotient, sums over levels, and the digits of the random number left out.
    added.margin = useful ? static_cast<float>((14.0 + levels) * kRounding) : 2.0F;
    model_.variables_.push_back(added);
  }

  void end() {
    Variable last{};
    last.entry = entries_;
    last.first_pair = static_cast<Index>(model_.pairs_.size());
    last.first_term = static_cast<Index>(model_.terms_.size());
    model_.variables_.push_back(last);
    model_.terms_.push_back({0, 0, static_cast<Index>(model_.others_.size()), 0});
  }

 private:
  /// A logarithm, and whether it stands for that of zero.
  struct Soft {
    double log;
    double zero;
  };
  [[nodiscard]] Soft entry(Index variable, const LaneTerm& term, std::span<const Value> others, Index own) const {
    const double log = model_.source_.entry(variable, term, others, static_cast<Value>(own));
    const bool is_zero = log == -std::numeric_limits<double>::infinity();
    if (model_.zeros_ == LaneZeros::hard || !is_zero) return {log, 0.0};
    return {model_.source_.lowest(term), 1.0};
  }

  /// Whether zeros of the term are to be counted.
  [[nodiscard]] bool is_soft(Index variable, const LaneTerm& term) const {
    if (model_.zeros_ == LaneZeros::hard) return false;
    bool found = false;
    for_each_configuration(levels_, term.others, [&](std::span<const Value> others, std::size_t) {
      for (Index v = 0; v < levels_[variable]; ++v) found = found || entry(variable, term, others, v).zero != 0.0;
    });
    return found;
  }

  void add_pair(Index variable, const LaneTerm& term) {
    Pair pair{model_.position_[term.others[0]], {}};
    const Value at[2] = {0, 1};
    for (unsigned k = 0; k < 2; ++k) {
      pair.log_odds[k] =
          difference(entry(variable, term, {at + k, 1}, 1).log, entry(variable, term, {at + k, 1}, 0).log);
    }
    range_ += std::max(finite(pair.log_odds[0]), finite(pair.log_odds[1]));
    model_.pairs_.push_back(pair);
  }

  void add_term(Index variable, const LaneTerm& term) {
    unsigned bits = 0;
    const auto first_other = static_cast<Index>(model_.others_.size());
    for (const Index j : term.others) {
      model_.others_.push_back({model_.position_[j], bits_of(levels_[j])});
      bits += bits_of(levels_[j]);
    }
    const auto [known, is_new] = tables_.try_emplace(term.key);
    if (is_new) known->second = make_table(variable, term, bits);
    model_.terms_.push_back({known->second.first, known->second.zeros, first_other, bits});
    range_ += known->second.range;
    zeros_ += known->second.zeros != 0 ? 1.0 : 0.0;
  }

  struct Table {
    std::size_t first = 0;
    std::size_t zeros = 0;
    double range = 0.0;
  };

  Table make_table(Index variable, const LaneTerm& term, unsigned bits) {
    const Index levels = levels_[variable];
    Table table;
    const std::size_t size = std::max<std::size_t>(16, std::size_t{1} << bits);
    const std::size_t columns = levels == 2 ? 1 : levels;
    table.first = add_lines(columns * size);
    if (is_soft(variable, term)) table.zeros = add_lines(columns * size);
    float* const tables = model_.lines_.front().entries;
    float* const entries = tables + table.first;
    float* const zeros = tables + table.zeros;
    std::vector<double> logs(levels);
    for_each_configuration(levels_, term.others, [&](std::span<const Value> others, std::size_t place) {
      for (Index v = 0; v < levels; ++v) {
        const Soft soft = entry(variable, term, others, v);
        logs[v] = soft.log;
        if (table.zeros == 0) continue;
        if (levels == 2) {
          zeros[place] += static_cast<float>(v == 1 ? soft.zero : -soft.zero);
        } else {
          zeros[v * size + place] = static_cast<float>(soft.zero);
        }
      }
      if (levels == 2) {
        entries[place] = difference(logs[1], logs[0]);
        table.range = std::max(table.range, finite(entries[place]));
        return;
      }
      const double largest = *std::max_element(logs.begin(), logs.end());
      for (Index v = 0; v < levels; ++v) {
        entries[v * size + place] = difference(logs[v], largest);
        table.range = std::max(table.range, finite(entries[v * size + place]));
      }
    });
    return table;
  }

  /// The first of so many entries more, all zero.
  std::size_t add_lines(std::size_t entries) {
    const std::size_t first = model_.lines_.size() * 16;
    model_.lines_.resize(model_.lines_.size() + entries / 16);
    return first;
  }

  static double finite(float entry) { return std::abs(entry) < -LaneModel::kZero / 2 ? std::abs(entry) : 0.0; }

  LaneModel& model_;
  const std::vector<Index>& levels_;
  std::unordered_map<std::uint64_t, Table> tables_;
  Index entries_ = 0;
  double range_ = 0.0;  // of a variable's sum without zeros
  double zeros_ = 0.0;  // that it may hold
};

bool LaneModel::fits(const LaneSource& source) {
  double variables = 0.0;
  double terms = 0.0;
  double entries = 0.0;
  std::unordered_map<std::uint64_t, bool> counted;
  for (Index i = 0; i < source.levels.size(); ++i) {
    if (source.levels[i] < 2) continue;
    variables += 1.0;
    source.terms(i, [&](const LaneTerm& term) {
      terms += 1.0;
      if (term.others.size() < 2 || !counted.emplace(term.key, true).second) return;
      double size = source.levels[i];
      for (const Index j : term.others) size *= std::ldexp(1.0, static_cast<int>(bits_of(source.levels[j])));
      entries += size;
    });
  }
  return variables > 0.0 && terms <= kMostTerms * variables && entries <= kMostEntries;
}

LaneModel::LaneModel(LaneSource source, LaneZeros zeros)
    : source_(std::move(source)), zeros_(zeros), position_(source_.levels.size()) {
  const auto variables = static_cast<Index>(position_.size());
  const std::vector<Index> colour = greedy_colours(variables, [&](Index i, auto&& use) {
    if (source_.levels[i] < 2) return;
    source_.terms(i, [&](const LaneTerm& term) {
      for (const Index j : term.others) use(j);
    });
  });
  std::vector<Index> order;
  entry_.assign(variables + std::size_t{1}, 0);
  for (Index i = 0; i < variables; ++i) {
    order.push_back(i);
    entry_[i + 1] = entry_[i] + source_.levels[i] - 1;
  }
  const auto rank = [&](Index i) { return source_.levels[i] < 2 ? variables : colour[i]; };
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return rank(a) < rank(b); });
  for (Index k = 0; k < variables; ++k) {
    position_[order[k]] = k;
    if (k == 0 || rank(order[k]) != rank(order[k - 1])) colours_.push_back(k);
  }
  if (order.empty() || source_.levels[order.back()] > 1) colours_.push_back(variables);
  Builder builder(*this);
  for (const Index i : order) {
    if (source_.levels[i] > 1) builder.add(i);
  }
  builder.end();
}

std::vector<double> LaneModel::rounding() const {
  std::vector<double> out(num_entries());
  for (std::size_t k = 0; k + 1 < variables_.size(); ++k) {
    const Variable& variable = variables_[k];
    // Odds that are off by a fraction s move a probability q by at most s q (1 - q), and q (1 - q) is at most 1/4.
    const double of_one = 0.25 * variable.spread + variable.margin + static_cast<double>(kMostSummed) * kRounding;
    std::fill_n(out.begin() + entry_[variable.variable], variable.levels - 1, std::min(of_one, 1.0));
  }
  return out;
}

void LaneModel::thresholds(Index variable, const LaneLevels& levels, const LaneHeat& heat,
                           std::span<std::uint64_t> out) const {
  std::array<double, kMostLevels> all;
  const std::span<double> weights(all.data(), out.size() + 1);
  source_.exact(variable, levels, heat, weights);
  double total = 0.0;
  for (double& weight : weights) {
    total += std::exp(weight);
    weight = total;
  }
  for (std::size_t v = 0; v < out.size(); ++v) out[v] = static_cast<std::uint64_t>(weights[v] / total * 0x1p53);
}

LaneImage::LaneImage(const LaneModel& model) : colours(model.colours()) {
  const std::vector<LaneModel::Variable>& from = model.variables();
  for (std::size_t k = 0; k + 1 < from.size(); ++k) {
    const LaneModel::Variable& variable = from[k];
    const LaneModel::Variable& next = from[k + 1];
    variables.push_back({.scatter = std::uint64_t{variable.variable} * kWordsPerUpdate * kWordStep,
                         .first_pair = variable.first_pair,
                         .end_pair = next.first_pair,
                         .first_term = variable.first_term,
                         .end_term = next.first_term,
                         .entry = variable.entry,
                         .levels = variable.levels,
                         .base = variable.base,
                         .spread = variable.spread,
                         .margin = variable.margin + 0x1p-21F,
                         .variable = variable.variable});
  }
  for (const LaneModel::Pair& pair : model.pairs()) {
    pairs.push_back({pair.position, {pair.log_odds[0], pair.log_odds[1]}, 0});
  }
  for (std::size_t k = 0; k + 1 < model.terms().size(); ++k) {
    const LaneModel::Term& term = model.terms()[k];
    const Index end = model.terms()[k + 1].first_other;
    const auto first = static_cast<std::uint32_t>(others.size());
    unsigned shift = 0;
    for (Index j = term.first_other; j < end; ++j) {
      const std::uint32_t position = model.others()[j].position;
      const std::uint32_t factor = std::uint32_t{1} << shift;
      if ((j - term.first_other) % 2 == 0) {
        others.push_back({{position, position}, {factor, 0}});
      } else {
        others.back().position[1] = position;
        others.back().factor[1] = factor;
      }
      shift += model.others()[j].bits;
    }
    terms.push_back(
        {static_cast<std::uint32_t>(term.table), first, static_cast<std::uint32_t>(others.size()), term.bits});
  }
  bool has_zeros = false;
  for (std::size_t k = 0; k + 1 < from.size(); ++k) {
    zeros.push_back(from[k].zeros);
    has_zeros = has_zeros || from[k].zeros != 0.0F;
  }
  for (std::size_t k = 0; k + 1 < model.terms().size(); ++k) {
    zero_tables.push_back(static_cast<std::uint32_t>(model.terms()[k].zeros));
    has_zeros = has_zeros || model.terms()[k].zeros != 0;
  }
  if (!has_zeros) {
    zeros.clear();
    zero_tables.clear();
  }
  if (model.tables() != nullptr) tables.assign(model.tables(), model.tables() + model.table_entries());
}

}  // namespace poise
