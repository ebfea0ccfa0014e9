/// Colouring, and the digits of conditional probabilities.
#include "engines/cpu/bits/bit_tables.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engines/common/colouring.hpp"
#include "engines/cpu/bits/bit_vector.hpp"

namespace poise {

namespace {

void find_side_by_side(BitTables::Run& run) {
  for (std::size_t start = 0; start < run.count; start += 8) {
    const std::size_t k = std::min(start, run.count - std::min<std::size_t>(8, run.count));
    for (unsigned j = 0; j < run.size; ++j) {
      const Index first = run.blanket[k * run.size + j];
      bool together = true;
      for (Index lane = 1; lane < 8; ++lane)
        together = together && run.blanket[(k + lane) * run.size + j] == first + lane;
      run.side_by_side.push_back(together ? first : BitTables::kApart);
    }
  }
}

template <class Digit>
void add_digits(std::vector<Digit>& digits, const std::vector<std::uint64_t>& thresholds) {
  for (unsigned first = 0; first < BitTables::kDigits; first += 8) {
    const std::array<Digit, 8> eight = eight_digits<Digit>(thresholds, first);
    digits.insert(digits.end(), eight.begin(), eight.end());
  }
}

/// From [variable][neighbour] to [neighbour][variable], or to one number.
void settle_factors(BitTables::Run& run) {
  std::vector<double>& factors = run.odds.factors;
  if (!run.odds.are_products || factors.size() == 1) return;
  const std::size_t count = run.variable.size();
  std::vector<double> sorted(factors.size());
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t j = 0; j < run.size; ++j) sorted[j * count + k] = factors[k * run.size + j];
  }
  factors = std::move(sorted);
}

}  // namespace

bool BitTables::fits(const BitModel& model) {
  for (Index i = 0; i < model.variables; ++i) {
    if (model.blanket(i).size() > kMost) return false;
  }
  return true;
}

BitTables::BitTables(BitModel model) : model_(std::move(model)) {
  std::vector<std::uint8_t> sizes;
  const std::vector<Index> colour = greedy_colours(model_.variables, [&](Index i, auto&& use) {
    const std::vector<Index> blanket = model_.blanket(i);
    sizes.push_back(static_cast<std::uint8_t>(blanket.size()));
    for (const Index j : blanket) use(j);
  });
  const Index colours = colour.empty() ? 0 : *std::max_element(colour.begin(), colour.end()) + 1;
  constexpr unsigned kSizes = kMost - kLeast + 1;
  runs_.resize(std::size_t{colours} * kSizes);
  for (std::size_t r = 0; r < runs_.size(); ++r) runs_[r].size = kLeast + static_cast<unsigned>(r % kSizes);
  for (Index i = 0; i < model_.variables; ++i) {
    const unsigned size = std::max(kLeast, unsigned{sizes[i]});
    add(runs_[std::size_t{colour[i]} * kSizes + size - kLeast], i);
  }
  std::erase_if(runs_, [](const Run& run) { return run.variable.empty(); });
  position_.resize(model_.variables + std::size_t{1});
  Index next = 0;
  for (Run& run : runs_) {
    run.count = run.variable.size();
    run.first = next;
    for (const Index variable : run.variable) position_[variable] = next++;
    while (run.variable.size() < 8) add(run, run.variable.back());
  }
  position_[model_.variables] = next;
  for (Run& run : runs_) {
    for (Index& neighbour : run.blanket) neighbour = position_[neighbour];
    find_side_by_side(run);
    settle_factors(run);
  }
}

void BitTables::add(Run& run, Index variable) const {
  std::vector<Index> blanket = model_.blanket(variable);
  add_odds(run, variable, static_cast<unsigned>(blanket.size()));
  blanket.resize(run.size, model_.variables);
  run.variable.push_back(variable);
  run.blanket.insert(run.blanket.end(), blanket.begin(), blanket.end());
}

void BitTables::add_odds(Run& run, Index variable, unsigned size) const {
  if (!model_.adds_up) run.odds.are_products = false;
  if (!run.odds.are_products) return;
  const double base = model_.log_odds(variable, 0);
  double range = std::abs(base);
  double weights[kMost] = {};
  for (unsigned j = 0; j < size; ++j) {
    weights[j] = model_.log_odds(variable, 1U << j) - base;
    range += std::abs(weights[j]);
  }
  constexpr double kMostRange = 700.0;  // of which doubles have exponentials
  run.odds.are_products = range < kMostRange;
  run.odds.base.push_back(std::exp(base));
  // A neighbour that is not there is never up: its factor may be that of the others.
  const std::size_t before = run.variable.size() * run.size;
  for (unsigned j = 0; j < run.size; ++j) {
    std::vector<double>& factors = run.odds.factors;
    const double factor = std::exp(weights[j < size ? j : 0]);
    if (factors.empty()) factors.push_back(factor);
    if (factors.size() == 1 && factor == factors[0]) continue;  // alike so far
    factors.resize(std::max(factors.size(), before + j), factors[0]);
    factors.push_back(factor);
  }
}

void BitTables::make_digits() const {
  std::call_once(digits_made_, [&] {
    std::vector<std::uint64_t> found;
    for (const Run& run : runs_) {
      found.resize(std::size_t{1} << run.size);
      for (const Index variable : run.variable) {
        thresholds(variable, found);
        if (run.size == 4) add_digits(run.digits4, found);
        if (run.size == 5) add_digits(run.digits5, found);
        if (run.size == 6) add_digits(run.digits6, found);
      }
    }
  });
}

void BitTables::thresholds(Index variable, std::span<std::uint64_t> out) const {
  const unsigned inside = (1U << model_.blanket(variable).size()) - 1;
  for (unsigned c = 0; c < out.size(); ++c) out[c] = c <= inside ? threshold(variable, c) : out[c & inside];
}

std::uint64_t BitTables::threshold(Index variable, unsigned configuration) const {
  const double log_odds = model_.log_odds(variable, configuration);
  if (std::isnan(log_odds)) return 0;  // neither level is possible: the configuration never occurs
  // The less likely level has more digits.
  const double less_likely = 1.0 / (1.0 + std::exp(std::abs(log_odds)));
  const auto units = static_cast<std::uint64_t>(std::ldexp(less_likely, 64));
  if (log_odds < 0.0) return units;
  return units == 0 ? ~std::uint64_t{0} : std::uint64_t{0} - units;
}

}  // namespace poise
