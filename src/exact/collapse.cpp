/// Sums variables out of a network, and draws them again.
#include "exact/collapse.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "models/network/support.hpp"
#include "models/network/tables.hpp"

#include "exact/collapse_order.hpp"
#include "exact/log_table.hpp"

namespace poise {

namespace {

using exact::LogTable;

/// Entries of a table at most, because strides have 32 bits.
constexpr double kLargestTable = 2147483648.0;

/// A factor of what is left. The tables of the network are read when they are needed first: many may share one.
struct Factor {
  static constexpr std::size_t kMade = std::numeric_limits<std::size_t>::max();
  LogTable table;              ///< the scope is known from the start
  std::size_t source = kMade;  ///< the factor of the network whose table it still is; kMade: it has its own
};

/// The same distribution with all variables observed that are known: no scope holds an observed variable or one whose
/// level follows from zeros.
Network with_all_known(const Network& network) {
  Evidence known;
  if (network.has_zeros()) {
    const Domains domains = propagate_zeros(network);
    for (Index i = 0; i < network.num_variables(); ++i) {
      if (network.levels(i) < 2 || domains.count[i] != 1) continue;
      Index level = 0;
      while (!domains.allows(i, level)) ++level;
      known.push_back({i, level});
    }
  }
  return condition(network, known);
}

}  // namespace

/// The network as it shrinks. A round multiplies factors into those that hold them, sums out variables in one factor
/// alone, finds an order for others and follows it; sums that are constant vanish, which may open the way for more.
class Collapse::Builder {
 public:
  Builder(const Network& network, const CollapseOptions& options, Collapse& out)
      : original_(network),
        known_(with_all_known(network)),
        options_(options),
        out_(out),
        levels_(network.num_variables()),
        first_sum_(network.num_variables()),
        removed_(network.num_variables(), false),
        factors_of_(network.num_variables()),
        count_(network.num_variables(), 0) {}

  void build() {
    number_variables();
    take_factors();
    for (bool more = true; more;) {
      multiply_inner_factors();
      const std::size_t before = out_.steps_.size();
      remove_leaves();
      const exact::CollapseLimits limits{std::min(options_.most_entries, kLargestTable), entries_left(),
                                         std::max<std::size_t>(1, options_.trials)};
      for (const Index v : exact::collapse_order(scopes(), levels_, limits)) remove(v);
      more = out_.steps_.size() > before;
    }
    out_.steps_.push_back({0, 0, out_.terms_.size(), out_.rows_.size(), 0});
    make_core();
  }

 private:
  /// A variable whose level is known without being observed is removed first of all, with nothing left to chance.
  void number_variables() {
    out_.fixed_.assign(levels_.size(), 0);
    std::size_t sum = 0;
    for (Index i = 0; i < levels_.size(); ++i) {
      first_sum_[i] = sum;
      sum += original_.levels(i) - 1;
      levels_[i] = known_.levels(i);
      if (known_.is_observed(i)) out_.fixed_[i] = static_cast<Value>(known_.observed[i]);
      if (levels_[i] > 1 || original_.levels(i) < 2) continue;
      start_step(i, original_.levels(i));
      for (Index level = 0; level + 1 < original_.levels(i); ++level) {
        out_.rows_.push_back(level < known_.observed[i] ? 0.0 : 1.0);
      }
    }
  }

  void start_step(Index variable, Index levels) {
    out_.steps_.push_back({variable, levels - 1, out_.terms_.size(), out_.rows_.size(), first_sum_[variable]});
    removed_[variable] = true;
  }

  /// Constants go; of tables that are shared each is looked at once.
  void take_factors() {
    struct Range {
      double least, most;
    };
    std::unordered_map<std::size_t, Range> ranges;
    for (std::size_t f = 0; f < known_.num_factors(); ++f) {
      const auto [known, first] = ranges.try_emplace(known_.table_start[f]);
      Range& range = known->second;
      if (first) {
        const std::span<const double> table = known_.table(f);
        const auto [least, most] = std::minmax_element(table.begin(), table.end());
        range = {*least, *most};
      }
      if (range.least == range.most) {
        out_.log_constant_ += std::log(range.most);
        continue;
      }
      Factor factor;
      for (const Index i : known_.scope(f)) {
        if (levels_[i] > 1) factor.table.scope.push_back(i);
      }
      factor.source = f;
      add(std::move(factor));
    }
  }

  void add(Factor factor) {
    for (const Index i : factor.table.scope) {
      factors_of_[i].push_back(factors_.size());
      ++count_[i];
    }
    alive_.push_back(true);
    factors_.push_back(std::move(factor));
  }

  void drop(std::size_t f) {
    alive_[f] = false;
    for (const Index i : factors_[f].table.scope) --count_[i];
    factors_[f].table = {};
  }

  /// The table of a factor, read from the network if need be.
  LogTable& table_of(std::size_t f) {
    Factor& factor = factors_[f];
    if (factor.source != Factor::kMade) {
      factor.table = exact::log_table(known_, factor.source);
      factor.source = Factor::kMade;
    }
    return factor.table;
  }

  /// Makes the largest entry 1, for the sake of the range.
  void rescale(LogTable& table) {
    const double largest = exact::rescale(table);
    if (largest == kMinusInfinity) {
      throw InputError(fmt::format("no state has positive probability: the factors of {} exclude each other",
                                   original_.variable_name(table.scope.back())));
    }
    out_.log_constant_ += largest;
  }

  [[nodiscard]] std::vector<std::size_t> live_factors() const {
    std::vector<std::size_t> live;
    for (std::size_t f = 0; f < factors_.size(); ++f) {
      if (alive_[f]) live.push_back(f);
    }
    return live;
  }

  [[nodiscard]] Scopes scopes() const {
    Scopes scopes;
    for (const std::size_t f : live_factors()) {
      scopes.variables.insert(scopes.variables.end(), factors_[f].table.scope.begin(), factors_[f].table.scope.end());
      scopes.close();
    }
    return scopes;
  }

  /// Tables of the network that several factors share stay as they are.
  void multiply_inner_factors() {
    const std::vector<std::size_t> live = live_factors();
    std::unordered_map<std::size_t, int> users;
    for (const std::size_t f : live) {
      if (factors_[f].source != Factor::kMade) ++users[known_.table_start[factors_[f].source]];
    }
    std::vector<bool> may_host;
    for (const std::size_t f : live) {
      const std::size_t source = factors_[f].source;
      may_host.push_back(source == Factor::kMade || users[known_.table_start[source]] == 1);
    }
    const std::vector<std::size_t> host = find_hosts(scopes(), may_host, static_cast<Index>(levels_.size()));
    std::vector<std::size_t> changed;
    for (std::size_t k = 0; k < live.size(); ++k) {
      if (host[k] == k) continue;
      const std::size_t to = live[host[k]];
      exact::multiply_into(table_of(live[k]), table_of(to), levels_);
      drop(live[k]);
      changed.push_back(to);
    }
    for (const std::size_t f : changed) {
      if (!alive_[f]) continue;
      rescale(factors_[f].table);
      if (exact::is_constant(factors_[f].table)) drop(f);
    }
  }

  /// Entries of tables that may still become conditional probabilities.
  [[nodiscard]] double entries_left() const {
    return options_.memory_limit / sizeof(double) - static_cast<double>(out_.rows_.size());
  }

  /// Sums out variables in one factor or none, which makes no table larger. (Bayesian networks have many: a variable
  /// that is not observed and that nothing depends on has a sum of 1, and then its parents may follow.)
  void remove_leaves() {
    std::vector<Index> leaves;
    const auto consider = [&](Index i) {
      if (levels_[i] > 1 && !removed_[i] && count_[i] < 2) leaves.push_back(i);
    };
    for (auto i = static_cast<Index>(levels_.size()); i-- > 0;) consider(i);
    while (!leaves.empty()) {
      const Index v = leaves.back();
      leaves.pop_back();
      if (removed_[v]) continue;
      double entries = 1.0;
      std::vector<Index> beside;
      for (const std::size_t f : factors_of_[v]) {
        if (alive_[f]) beside = factors_[f].table.scope;
      }
      for (const Index i : beside) entries *= levels_[i];
      if (entries > std::min(kLargestTable, entries_left()) && !beside.empty()) continue;
      remove(v);
      for (const Index i : beside) consider(i);
    }
  }

  /// Sums a variable out of the product of its factors.
  void remove(Index v) {
    std::vector<std::size_t> bucket;
    LogTable product;
    for (const std::size_t f : factors_of_[v]) {
      if (!alive_[f]) continue;
      bucket.push_back(f);
      for (const Index i : factors_[f].table.scope) {
        if (i != v) product.scope.push_back(i);
      }
    }
    std::sort(product.scope.begin(), product.scope.end());
    product.scope.erase(std::unique(product.scope.begin(), product.scope.end()), product.scope.end());
    product.scope.push_back(v);
    std::size_t size = 1;
    for (const Index i : product.scope) size *= levels_[i];
    product.logs.assign(size, 0.0);
    for (const std::size_t f : bucket) {
      exact::multiply_into(table_of(f), product, levels_);
      drop(f);
    }
    std::vector<std::size_t>().swap(factors_of_[v]);
    rescale(product);

    start_step(v, levels_[v]);
    std::size_t stride = levels_[v] - 1;
    for (std::size_t k = product.scope.size() - 1; k-- > 0;) {
      out_.terms_.push_back({product.scope[k], static_cast<std::uint32_t>(stride)});
      stride *= levels_[product.scope[k]];
    }
    Factor rest;
    const bool sums = options_.reduction == Reduction::sum;
    rest.table = (sums ? exact::sum_out_last : exact::max_out_last)(product, levels_[v], out_.rows_);
    out_.log_constant_ += exact::rescale(rest.table);
    if (!exact::is_constant(rest.table)) add(std::move(rest));
  }

  void make_core() {
    Network& core = out_.core_;
    core.name = original_.name;
    std::vector<Index> number(levels_.size(), 0);
    for (Index i = 0; i < levels_.size(); ++i) {
      if (levels_[i] < 2 || removed_[i]) continue;
      number[i] = static_cast<Index>(out_.kept_.size());
      out_.kept_.push_back(i);
      core.cardinalities.push_back(levels_[i]);
      core.names.push_back(original_.variable_name(i));
      if (!original_.level_names.empty()) core.level_names.push_back(original_.level_names[i]);
    }
    struct Stored {
      std::size_t start;
      std::size_t roots;  ///< factors that it stands for
      double log_largest;
    };
    std::unordered_map<std::size_t, Stored> stored;  // tables of the network that are still used
    for (const std::size_t f : live_factors()) {
      const std::size_t source = factors_[f].source;
      const auto known = source == Factor::kMade ? stored.end() : stored.find(known_.table_start[source]);
      Stored place{};
      if (known == stored.end()) {
        LogTable& table = table_of(f);
        place = {core.values.size(), 1, exact::rescale(table)};
        place.roots = append_table(table.logs, core.values);
        if (source != Factor::kMade) stored.emplace(known_.table_start[source], place);
      } else {
        place = known->second;
      }
      out_.log_constant_ += place.log_largest;
      for (std::size_t root = 0; root < place.roots; ++root) {
        for (const Index i : factors_[f].table.scope) core.scopes.push_back(number[i]);
        core.scope_start.push_back(core.scopes.size());
        core.table_start.push_back(place.start);
      }
      factors_[f].table.logs = {};
    }
  }

  /// Appends a table, the largest entry 1, or the root of it where it spans too much. Gives the number of factors that
  /// it takes.
  static std::size_t append_table(const std::vector<double>& logs, std::vector<double>& values) {
    constexpr double widest = 600.0;  // e^-600 is 1e-261, far from where doubles lose digits
    double least = 0.0;
    for (const double value : logs) {
      if (value != kMinusInfinity) least = std::min(least, value);
    }
    const double roots = std::max(1.0, std::ceil(-least / widest));
    for (const double value : logs) values.push_back(std::exp(value / roots));
    return static_cast<std::size_t>(roots);
  }

  const Network& original_;
  const Network known_;
  const CollapseOptions& options_;
  Collapse& out_;
  std::vector<Index> levels_;  // 1 where a variable is observed or its level known
  std::vector<std::size_t> first_sum_;
  std::vector<bool> removed_;
  std::vector<Factor> factors_;
  std::vector<bool> alive_;
  std::vector<std::vector<std::size_t>> factors_of_;  // those that are gone included
  std::vector<Index> count_;                          // of factors that are not
};

Collapse::Collapse(const Network& network, const CollapseOptions& options) {
  check_levels(network);
  Builder(network, options, *this).build();
}

double Collapse::bytes() const { return static_cast<double>(rows_.size() * sizeof(double)); }

void Collapse::draw(std::span<const Value> core, Rng& rng, std::span<Value> levels, std::span<double> sums) const {
  std::copy(fixed_.begin(), fixed_.end(), levels.begin());
  for (std::size_t k = 0; k < kept_.size(); ++k) levels[kept_[k]] = core[k];
  hot<InstructionSet::avx2>([this, &rng, x = levels.data(), sums] {
    for (std::size_t k = steps_.size() - 1; k-- > 0;) {
      const Step& step = steps_[k];
      const double* const row = row_of(step, x);
      const double u = rng.uniform();
      Value level = 0;
      for (Index c = 0; c < step.choices; ++c) level = static_cast<Value>(level + (u >= row[c]));
      x[step.variable] = level;
      if (sums.empty()) continue;
      double* const sum = sums.data() + step.first_sum;
      for (Index c = 0; c < step.choices; ++c) sum[c] += (c + 1 < step.choices ? row[c + 1] : 1.0) - row[c];
    }
  });
}

double Collapse::log_conditional(std::span<const Value> levels) const {
  double sum = 0.0;
  for (std::size_t k = 0; k + 1 < steps_.size(); ++k) {
    const double* const row = row_of(steps_[k], levels.data());
    const Value level = levels[steps_[k].variable];
    const double below = level > 0 ? row[level - 1] : 0.0;
    const double up_to = level < steps_[k].choices ? row[level] : 1.0;
    sum += std::log(up_to - below);
  }
  return sum;
}

}  // namespace poise
