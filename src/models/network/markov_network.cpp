/// Compiles a network into a target: factors inside others are multiplied into them, tables become integers.
#include "models/network/markov_network.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include <fmt/format.h>

#include "models/network/tables.hpp"

namespace poise {

namespace {

/// Scopes without observed variables and those of one level, which take no part.
Scopes free_scopes(const Network& network) {
  Scopes scopes;
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    for (const Index i : network.scope(f)) {
      if (network.levels(i) > 1) scopes.variables.push_back(i);
    }
    scopes.close();
  }
  return scopes;
}

/// Tables that several factors share take up nothing, they would have to be copied.
std::vector<bool> unshared(const Network& network) {
  std::unordered_map<std::size_t, int> users;
  for (const std::size_t start : network.table_start) ++users[start];
  std::vector<bool> out(network.num_factors());
  for (std::size_t f = 0; f < out.size(); ++f) out[f] = users[network.table_start[f]] == 1;
  return out;
}

}  // namespace

/// The steps of compiling; each leaves its part of the target complete.
class MarkovNetwork::Builder {
 public:
  Builder(const Network& network, MarkovNetwork& target)
      : network_(network),
        target_(target),
        scopes_(free_scopes(network)),
        host_(find_hosts(scopes_, unshared(network), network.num_variables())) {}

  void build() {
    number_moves();
    make_tables();
    link();
    find_neighbours();
  }

 private:
  void number_moves() {
    check_levels(network_);
    const Index n = network_.num_variables();
    target_.levels_.resize(n);
    target_.clamped_.assign(n, 0);
    target_.first_move_.assign(n + 1, 0);
    std::size_t moves = 0;
    for (Index i = 0; i < n; ++i) {
      const Index levels = network_.levels(i);
      target_.levels_[i] = levels;
      if (network_.is_observed(i)) target_.clamped_[i] = static_cast<Value>(network_.observed[i]);
      target_.first_move_[i] = static_cast<Index>(moves);
      moves += levels - 1;
      if (moves > std::numeric_limits<Index>::max() / 2) throw InputError("the network has too many levels to sample");
      target_.owner_.resize(moves, i);
    }
    target_.first_move_[n] = static_cast<Index>(moves);
    target_.is_lattice_ = network_.rows > 0 && moves > 0;
  }

  /// Log tables of all hosts with their guests, then the unit that lets all sums fit, then integers.
  void make_tables() {
    const std::size_t factors = network_.num_factors();
    std::vector<std::vector<std::size_t>> guests(factors);
    for (std::size_t f = 0; f < factors; ++f) {
      if (host_[f] != f) guests[host_[f]].push_back(f);
    }
    std::unordered_map<std::size_t, std::uint32_t> placed;  // tables by their place in the network
    std::vector<double> logs;
    std::vector<double> ranges;  // of each factor's log table, between its finite entries
    bool zeros = false;
    for (std::size_t f = 0; f < factors; ++f) {
      if (host_[f] != f) continue;
      if (scopes_[f].empty()) {
        target_.constant_ += std::log(network_.table(f)[0]);
        continue;
      }
      const auto [known, first] = placed.try_emplace(network_.table_start[f], static_cast<std::uint32_t>(logs.size()));
      kept_.push_back(f);
      target_.factor_start_.push_back(known->second);
      const std::size_t size = network_.table_size(f);
      if (first) {
        if (logs.size() + size > std::numeric_limits<std::uint32_t>::max()) {
          throw InputError("the tables of the network have more than 4294967295 entries, which is too many to sample");
        }
        for (const double value : network_.table(f)) logs.push_back(std::log(value));
        for (const std::size_t guest : guests[f]) {
          TableWalk walk = walk_within(network_.scope(guest), network_.scope(f), network_.cardinalities);
          for (double& entry : std::span(logs).subspan(known->second, size)) {
            entry += std::log(network_.table(guest)[walk.offset()]);
            walk.next();
          }
        }
      }
      const std::span<double> table{logs.data() + known->second, size};
      const double largest = *std::max_element(table.begin(), table.end());
      if (largest == kMinusInfinity) {
        throw InputError(
            fmt::format("no state has positive probability: {}, together with the factors inside it, is "
                        "zero everywhere",
                        network_.factor_name(f)));
      }
      double range = 0.0;
      for (const double value : table) {
        if (value == kMinusInfinity)
          zeros = true;
        else
          range = std::max(range, largest - value);
      }
      ranges.push_back(range);
      largest_.push_back(largest);
      target_.constant_ += largest;
    }
    choose_unit(ranges, zeros);
    // A shared table has the same largest entry for all its factors; it is turned into integers once.
    target_.values_.resize(logs.size());
    for (std::size_t k = 0; k < kept_.size(); ++k) {
      const std::size_t start = target_.factor_start_[k];
      for (std::size_t e = start; e < start + network_.table_size(kept_[k]); ++e) {
        target_.values_[e] =
            logs[e] == kMinusInfinity ? -2 * target_.half_zero_ : std::llround((logs[e] - largest_[k]) / target_.unit_);
      }
    }
  }

  /// A zero is worth 2^z units and the finite part of any sum less than 2^(z-1), so that counts of zeros can be read
  /// off; all zeros of a variable's factors together stay below 2^62.
  void choose_unit(const std::vector<double>& ranges, bool zeros) {
    std::vector<double> sums(network_.num_variables(), 0.0);
    std::vector<std::size_t> degrees(network_.num_variables(), 0);
    double largest_sum = 0.0;
    std::size_t largest_degree = 0;
    for (std::size_t k = 0; k < kept_.size(); ++k) {
      for (const Index i : scopes_[kept_[k]]) {
        largest_sum = std::max(largest_sum, sums[i] += ranges[k]);
        largest_degree = std::max(largest_degree, ++degrees[i]);
      }
    }
    const int zero_bits = zeros ? 61 - static_cast<int>(std::bit_width(largest_degree)) : 61;
    target_.half_zero_ = std::int64_t{1} << (zero_bits - 1);
    // A power of two, so that turning units into logarithms rounds nothing beyond the 53 bits of a double.
    const int sum_bits = largest_sum > 0.0 ? std::ilogb(largest_sum) + 1 : 1;
    target_.unit_ = std::ldexp(1.0, sum_bits - (zero_bits - 2));
  }

  void link() {
    const Index n = network_.num_variables();
    std::vector<std::size_t>& start = target_.link_start_;
    start.assign(n + 1, 0);
    for (const std::size_t f : kept_) {
      for (const Index i : scopes_[f]) ++start[i + 1];
    }
    std::partial_sum(start.begin(), start.end(), start.begin());
    target_.links_.resize(start[n]);
    std::vector<std::size_t> next(start.begin(), start.end() - 1);
    for (std::size_t k = 0; k < kept_.size(); ++k) {
      std::size_t stride = 1;
      const std::span<const Index> scope = network_.scope(kept_[k]);
      for (std::size_t s = scope.size(); s-- > 0;) {
        const Index i = scope[s];
        if (network_.levels(i) > 1) {
          target_.links_[next[i]++] = {static_cast<Index>(k), static_cast<std::uint32_t>(stride)};
        }
        stride *= network_.cardinalities[i];
      }
    }
  }

  void find_neighbours() {
    const Index n = network_.num_variables();
    target_.neighbour_start_.assign(n + 1, 0);
    struct Pair {
      Index variable;
      Shared shared;
    };
    std::vector<Pair> pairs;
    for (Index i = 0; i < n; ++i) {
      pairs.clear();
      for (std::size_t l = target_.link_start_[i]; l < target_.link_start_[i + 1]; ++l) {
        const Link& mine = target_.links_[l];
        std::size_t stride = 1;
        const std::span<const Index> scope = network_.scope(kept_[mine.factor]);
        for (std::size_t s = scope.size(); s-- > 0;) {
          const Index j = scope[s];
          if (j != i && network_.levels(j) > 1) {
            pairs.push_back({j, {mine.factor, mine.stride, static_cast<std::uint32_t>(stride)}});
          }
          stride *= network_.cardinalities[j];
        }
      }
      std::stable_sort(pairs.begin(), pairs.end(),
                       [](const Pair& a, const Pair& b) { return a.variable < b.variable; });
      std::size_t affected = target_.levels_[i] - 1;
      for (std::size_t p = 0; p < pairs.size(); ++p) {
        if (p == 0 || pairs[p].variable != pairs[p - 1].variable) {
          target_.neighbours_.push_back({pairs[p].variable, static_cast<Index>(target_.shared_.size())});
          affected += target_.levels_[pairs[p].variable] - 1;
        }
        target_.shared_.push_back(pairs[p].shared);
      }
      target_.neighbour_start_[i + 1] = target_.neighbours_.size();
      target_.max_affected_ = std::max(target_.max_affected_, affected);
      if (target_.shared_.size() > std::numeric_limits<Index>::max()) {
        throw InputError("the factors of the network join too many pairs of variables to sample");
      }
    }
    target_.neighbours_.push_back({0, static_cast<Index>(target_.shared_.size())});
  }

  const Network& network_;
  MarkovNetwork& target_;
  Scopes scopes_;
  std::vector<std::size_t> host_;
  std::vector<std::size_t> kept_;  // factors of the network that are factors of the target
  std::vector<double> largest_;    // log of the largest entry of each
};

MarkovNetwork::MarkovNetwork(const Network& network) { Builder(network, *this).build(); }

MarkovNetwork::State MarkovNetwork::make_state(std::span<const Value> x) const {
  State state;
  assign(state, x);
  return state;
}

void MarkovNetwork::assign(State& state, std::span<const Value> x) const {
  state.x.resize(levels_.size());
  for (Index i = 0; i < levels_.size(); ++i) state.x[i] = levels_[i] > 1 ? x[i] : clamped_[i];
  state.place.assign(factor_start_.begin(), factor_start_.end());
  state.local.assign(owner_.size(), 0);
  state.ahead.resize(max_affected_);
  for (Index i = 0; i < levels_.size(); ++i) {
    for (std::size_t l = link_start_[i]; l < link_start_[i + 1]; ++l) {
      state.place[links_[l].factor] += state.x[i] * links_[l].stride;
    }
  }
  for (Index i = 0; i < levels_.size(); ++i) {
    for (std::size_t l = link_start_[i]; l < link_start_[i + 1]; ++l) {
      const std::int64_t* zero =
          values_.data() + state.place[links_[l].factor] - static_cast<std::ptrdiff_t>(links_[l].stride) * state.x[i];
      for (Index k = 0; k + 1 < levels_[i]; ++k) {
        state.local[first_move_[i] + k] += zero[static_cast<std::ptrdiff_t>(links_[l].stride) * (k + 1)] - zero[0];
      }
    }
  }
}

double MarkovNetwork::log_prob(const State& state) const {
  double sum = 0.0;
  for (const std::uint32_t place : state.place) {
    if (values_[place] < -half_zero_) return kMinusInfinity;
    sum += static_cast<double>(values_[place]);
  }
  return log_prob_of(sum);
}

void MarkovNetwork::statistics(const State& state, std::span<double> out) const {
  if (!is_lattice_) return;
  std::array<std::size_t, std::size_t{std::numeric_limits<Value>::max()} + 1> sites{};
  for (const Value level : state.x) ++sites[level];
  out[0] = order(*std::max_element(sites.begin(), sites.end()));
}

double MarkovNetwork::order(std::size_t most) const {
  const Index levels = *std::max_element(levels_.begin(), levels_.end());
  const double share = static_cast<double>(most) / static_cast<double>(levels_.size());
  return (levels * share - 1.0) / (levels - 1.0);
}

void MarkovNetwork::log_ratios(const State& state, std::span<double> out) const {
  for (Index i = 0; i < levels_.size(); ++i) {
    const Index first = first_move_[i];
    add_moves(first, levels_[i] - 1, state.local.data() + first, state.x[i],
              [&](Index move, std::int64_t ratio) { out[move] = to_log(ratio); });
  }
}

}  // namespace poise
