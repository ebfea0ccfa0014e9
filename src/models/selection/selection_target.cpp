/// States of the selection target, and their changes.
#include "models/selection/selection_target.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace poise {

namespace {

/// Adds `sign` times w^2 scale to v and w product to r, where w is a sum of columns times factors.
struct Update {
  double of_square;
  double of_product;
};

using Term = SelectionTarget::Term;

Term term_of(const CrossColumn& column, double factor) { return {column.values, column.first, column.count, factor}; }

void update_whole(const std::vector<Term>& terms, const Update& update, std::size_t padded,
                  SelectionTarget::Part& part) {
  hot_lanes([terms = terms.data(), count = terms.size(), update, padded, v = numbers_of(part.v),
             r = numbers_of(part.r)]<class L>(L) {
    for (std::size_t j = 0; j < padded; j += 8) {
      typename L::Doubles w = L::load(terms[0].values + j) * terms[0].factor;
      for (std::size_t i = 1; i < count; ++i) w += L::load(terms[i].values + j) * terms[i].factor;
      store8(v + j, L::load(v + j) + w * w * update.of_square);
      store8(r + j, L::load(r + j) + w * update.of_product);
    }
  });
}

/// The same where columns have zeros that are not stored.
void update_range(const std::vector<Term>& terms, const Update& update, LineVector& sum, SelectionTarget::Part& part) {
  Index first = std::numeric_limits<Index>::max();
  Index end = 0;
  for (const Term& term : terms) {
    first = std::min(first, term.first);
    end = std::max(end, term.first + term.count);
  }
  if (first >= end) return;
  sum.assign(lines_of(end - first), {});
  double* const w = numbers_of(sum);
  for (const Term& term : terms) {
    hot([to = w + (term.first - first), from = term.values, count = term.count, factor = term.factor] {
      for (Index j = 0; j < count; j += 8) store8(to + j, load8(to + j) + load8(from + j) * factor);
    });
  }
  hot([w, count = end - first, update, v = numbers_of(part.v) + first, r = numbers_of(part.r) + first] {
    for (Index j = 0; j < count; j += 8) {
      const Doubles8 at = load8(w + j);
      store8(v + j, load8(v + j) + at * at * update.of_square);
      store8(r + j, load8(r + j) + at * update.of_product);
    }
  });
}

void update_part(SelectionTarget::Room& room, const Update& update, std::size_t padded, SelectionTarget::Part& part) {
  const bool whole = std::all_of(room.terms.begin(), room.terms.end(),
                                 [&](const Term& term) { return term.first == 0 && term.count == padded; });
  whole ? update_whole(room.terms, update, padded, part) : update_range(room.terms, update, room.sum, part);
}

/// log of the sum of exponentials.
double log_sum(const std::vector<double>& logs) {
  const double largest = *std::max_element(logs.begin(), logs.end());
  if (!(largest > kMinusInfinity)) return kMinusInfinity;
  double sum = 0.0;
  for (const double log : logs) sum += std::exp(log - largest);
  return largest + std::log(sum);
}

}  // namespace

SelectionTarget::State SelectionTarget::make_state(std::span<const Value> x) const {
  State state;
  state.x.assign(x.begin(), x.end());
  for (Index j = 0; j < num_variables(); ++j) {
    if (x[j] > 0) state.active.push_back(j);
  }
  reset(state);
  return state;
}

void SelectionTarget::reset(State& state) const {
  std::vector<Index>& wanted = state.room.wanted;
  std::swap(wanted, state.active);
  const std::vector<double>& diagonal = law_->products().diagonal();
  state.active.clear();
  state.columns.clear();
  state.changes = 0;
  state.singular = false;
  state.parts.resize(law_->parts());
  for (std::size_t k = 0; k < state.parts.size(); ++k) {
    Part& part = state.parts[k];
    part.inverse.clear();
    part.coefficients.clear();
    part.fitted = part.log_det = 0.0;
    part.v.assign(lines_of(num_variables()), {{1, 1, 1, 1, 1, 1, 1, 1}});
    part.r.assign(lines_of(num_variables()), {});
    for (Index j = 0; j < num_variables(); ++j) {
      numbers_of(part.v)[j] = diagonal[j] + law_->ridge(k);
      numbers_of(part.r)[j] = law_->xty()[j];
    }
  }
  for (const Index k : wanted) include(state, k);
}

void SelectionTarget::fetch_columns(State& state) const {
  state.columns.resize(state.active.size());
  for (std::size_t i = 0; i < state.active.size(); ++i) {
    CrossColumn& column = state.columns[i];
    if (column.values == nullptr || column.variable != state.active[i]) {
      column = law_->products().column(state.active[i]);
    }
  }
}

void SelectionTarget::hide_included(const State& state, Part& part) {
  for (const Index j : state.active) {
    numbers_of(part.v)[j] = kIncluded;
    numbers_of(part.r)[j] = 0.0;
  }
}

void SelectionTarget::include(State& state, Index k) const {
  fetch_columns(state);
  const std::size_t s = state.active.size();
  state.active.push_back(k);
  if (state.singular) return;
  state.columns.push_back(law_->products().column(k));
  const CrossColumn& own = state.columns.back();
  std::vector<double>& c = state.room.products;
  std::vector<double>& h = state.room.factors;
  std::vector<Term>& terms = state.room.terms;
  c.resize(s);
  h.resize(s);
  for (std::size_t i = 0; i < s; ++i) c[i] = own.at(state.active[i]);
  for (std::size_t number = 0; number < state.parts.size(); ++number) {
    Part& part = state.parts[number];
    double v = law_->products().diagonal()[k] + law_->ridge(number);
    double r = law_->xty()[k];
    for (std::size_t i = 0; i < s; ++i) {
      double sum = 0.0;
      for (std::size_t l = 0; l < s; ++l) sum += part.inverse[i * s + l] * c[l];
      h[i] = sum;
      v -= sum * c[i];
      r -= part.coefficients[i] * c[i];
    }
    if (!(v > (law_->is_g_prior() ? law_->least_v()[k] : 0.0))) {
      state.singular = true;
      return;
    }
    const double b = r / v;
    terms.assign(1, term_of(own, 1.0));
    for (std::size_t i = 0; i < s; ++i) {
      if (h[i] != 0.0) terms.push_back(term_of(state.columns[i], -h[i]));
    }
    update_part(state.room, {-1.0 / v, -b}, law_->padded(), part);

    std::vector<double>& inverse = state.room.inverse;
    inverse.resize((s + 1) * (s + 1));
    for (std::size_t i = 0; i < s; ++i) {
      for (std::size_t l = 0; l < s; ++l) inverse[i * (s + 1) + l] = part.inverse[i * s + l] + h[i] * h[l] / v;
      inverse[i * (s + 1) + s] = inverse[s * (s + 1) + i] = -h[i] / v;
      part.coefficients[i] -= h[i] * b;
    }
    inverse[s * (s + 1) + s] = 1.0 / v;
    std::swap(part.inverse, inverse);
    part.coefficients.push_back(b);
    part.fitted += b * r;
    part.log_det += std::log(v);
    hide_included(state, part);
  }
}

void SelectionTarget::exclude(State& state, Index k) const {
  fetch_columns(state);
  const std::size_t s = state.active.size();
  const auto m =
      static_cast<std::size_t>(std::find(state.active.begin(), state.active.end(), k) - state.active.begin());
  // The last one takes its place.
  const auto drop = [&](auto& list) {
    list[m] = std::move(list.back());
    list.pop_back();
  };
  std::vector<double>& a = state.room.factors;
  std::vector<Term>& terms = state.room.terms;
  a.resize(s);
  // What is left of a column that others nearly determine is known to few digits, and removing it would hand these on.
  bool rebuild = false;
  for (const Part& part : state.parts) {
    rebuild = rebuild || 1.0 / part.inverse[m * s + m] < kNearlyDetermined * law_->products().diagonal()[k];
  }
  if (rebuild) {
    state.active[m] = state.active.back();
    state.active.pop_back();
    reset(state);
    return;
  }
  for (Part& part : state.parts) {
    for (std::size_t i = 0; i < s; ++i) a[i] = part.inverse[i * s + m];
    const double v = 1.0 / a[m];
    const double b = part.coefficients[m];
    terms.clear();
    for (std::size_t i = 0; i < s; ++i) {
      if (a[i] != 0.0) terms.push_back(term_of(state.columns[i], a[i]));
    }
    update_part(state.room, {v, b * v}, law_->padded(), part);
    std::vector<double>& inverse = state.room.inverse;
    inverse.resize((s - 1) * (s - 1));
    const auto old = [&](std::size_t i) { return i == m ? s - 1 : i; };
    for (std::size_t i = 0; i + 1 < s; ++i) {
      for (std::size_t l = 0; l + 1 < s; ++l) {
        inverse[i * (s - 1) + l] = part.inverse[old(i) * s + old(l)] - a[old(i)] * a[old(l)] * v;
      }
    }
    std::swap(part.inverse, inverse);
    for (std::size_t i = 0; i < s; ++i) {
      if (i != m) part.coefficients[i] -= a[i] * b * v;
    }
    drop(part.coefficients);
    part.fitted -= b * b * v;
    part.log_det -= std::log(v);
    numbers_of(part.v)[k] = v;
    numbers_of(part.r)[k] = b * v;
  }
  drop(state.active);
  drop(state.columns);
  for (Part& part : state.parts) hide_included(state, part);
}

void SelectionTarget::apply(State& state, Move move) const {
  state.x[move.variable] = move.value;
  if (state.singular || ++state.changes >= kRefresh) {
    if (move.value > 0) {
      state.active.push_back(move.variable);
    } else {
      std::erase(state.active, move.variable);
    }
    reset(state);
  } else if (move.value > 0) {
    include(state, move.variable);
  } else {
    exclude(state, move.variable);
  }
}

double SelectionTarget::part_log_likelihood(const State& state, std::size_t k) const {
  const double rest = residual(state, k);
  const auto s = static_cast<double>(state.active.size());
  const double volume = s * law_->log_slab(k) - law_->half() * state.parts[k].log_det;
  if (law_->residual_variance()) return volume + (law_->yty() - rest) / (2.0 * *law_->residual_variance());
  if (!(rest > 0.0)) return kMinusInfinity;
  return volume - 0.5 * law_->observations() * (std::log(rest) - std::log(law_->yty()));
}

double SelectionTarget::log_likelihood(const State& state) const {
  if (state.singular) return kMinusInfinity;
  if (state.parts.size() == 1) return part_log_likelihood(state, 0);
  std::vector<double> logs(state.parts.size());
  for (std::size_t k = 0; k < logs.size(); ++k) logs[k] = part_log_likelihood(state, k);
  return log_sum(logs) - std::log(static_cast<double>(logs.size()));
}

double SelectionTarget::log_prob(const State& state) const {
  const double prior = law_->log_prior(state.x, state.active);
  if (beta_ == 0.0) return state.singular ? kMinusInfinity : prior;
  return prior + beta_ * log_likelihood(state);
}

void SelectionTarget::part_weights(const State& state, std::vector<double>& out) const {
  out.assign(state.parts.size(), 0.0);
  if (out.size() == 1) return;
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = part_log_likelihood(state, k);
  const double sum = log_sum(out);
  for (double& log : out) log -= sum;
}

double SelectionTarget::part_log_odds(const State& state, std::size_t k, Index j) const {
  const Part& part = state.parts[k];
  double v = numbers_of(part.v)[j];
  double r = numbers_of(part.r)[j];
  double rest = residual(state, k);
  if (state.x[j] > 0) {
    const std::size_t s = state.active.size();
    const auto m =
        static_cast<std::size_t>(std::find(state.active.begin(), state.active.end(), j) - state.active.begin());
    v = 1.0 / part.inverse[m * s + m];
    r = part.coefficients[m] * v;
    rest += law_->explained(k) * r * r / v;
  } else if (!(v > (law_->is_g_prior() ? law_->least_v()[j] : 0.0))) {
    return kMinusInfinity;
  }
  const double volume = law_->log_slab(k) - law_->half() * std::log(v);
  const double gain = law_->explained(k) * r * r / v;
  if (law_->residual_variance()) return volume + gain / (2.0 * *law_->residual_variance());
  const double t = gain / rest;
  if (!(t < 1.0 - 0x1p-50)) return state.x[j] > 0 ? std::numeric_limits<double>::max() : kMinusInfinity;
  return volume - 0.5 * law_->observations() * std::log1p(-t);
}

double SelectionTarget::log_odds(const State& state, Index j) const {
  const bool included = state.x[j] > 0;
  if (law_->is_fixed(j)) {
    return law_->is_forced(j) ? std::numeric_limits<double>::infinity() : kMinusInfinity;
  }
  const std::size_t others = state.active.size() - law_->num_forced() - (included ? 1 : 0);
  const double prior = law_->log_prior()[j] + law_->log_prior_of_size(others);
  if (state.parts.size() == 1) return prior + beta_ * part_log_odds(state, 0, j);
  // The ratio of two averages over slab variances, from the side of the present state.
  std::vector<double> logs;
  part_weights(state, logs);
  for (std::size_t k = 0; k < logs.size(); ++k) {
    const double odds = part_log_odds(state, k, j);
    logs[k] += included ? -odds : odds;
  }
  return prior + beta_ * (included ? -log_sum(logs) : log_sum(logs));
}

SelectionTarget::OddsLanes SelectionTarget::odds_lanes(const State& state, std::size_t k) const {
  OddsLanes lanes;
  lanes.v = numbers_of(state.parts[k].v);
  lanes.r = numbers_of(state.parts[k].r);
  lanes.log_prior = law_->log_prior();
  const double rest = residual(state, k);
  const std::size_t others = state.active.size() - law_->num_forced();
  lanes.known_variance = law_->residual_variance().has_value();
  // With all free variables included there are no odds of inclusion left to look at.
  const double of_size = others < law_->num_free() ? law_->log_prior_of_size(others) : 0.0;
  lanes.constant = of_size + beta_ * law_->log_slab(k);
  lanes.of_log_v = -beta_ * law_->half();
  lanes.per_residual = law_->explained(k) / (lanes.known_variance ? 2.0 * *law_->residual_variance() : rest);
  lanes.exponent = beta_ * (lanes.known_variance ? 1.0 : -0.5 * law_->observations());
  lanes.least_v = law_->least_v();
  return lanes;
}

void SelectionTarget::all_log_odds(const State& state, double* out) const {
  const std::size_t padded = law_->padded();
  if (state.parts.size() == 1) {
    hot([lanes = odds_lanes(state, 0), out, padded] {
      for (std::size_t j = 0; j < padded; j += 8) store8(out + j, lanes.at(j));
    });
  } else {
    const SelectionTarget cold(law_, 1.0);
    std::vector<double> weights;
    part_weights(state, weights);
    std::vector<OddsLanes> parts;
    for (std::size_t k = 0; k < weights.size(); ++k) {
      parts.push_back(cold.odds_lanes(state, k));
      parts.back().constant = law_->log_slab(k) + weights[k];
    }
    const std::size_t others = state.active.size() - law_->num_forced();
    const double of_size = others < law_->num_free() ? law_->log_prior_of_size(others) : 0.0;
    hot([parts = parts.data(), count = parts.size(), prior = law_->log_prior(), of_size, beta = beta_, out, padded] {
      constexpr double kLowest = -1e300;  // below all that odds can be, so that differences are numbers
      for (std::size_t j = 0; j < padded; j += 8) {
        Doubles8 largest = broadcast8(kLowest);
        for (std::size_t k = 0; k < count; ++k) largest = max8(largest, parts[k].likelihood(j));
        Doubles8 sum{};
        for (std::size_t k = 0; k < count; ++k) sum += exp8(parts[k].likelihood(j) - largest);
        const Doubles8 odds = load8(prior + j) + of_size + beta * (largest + log8(sum));
        store8(out + j, select8(less8(broadcast8(kLowest), largest), odds, broadcast8(kMinusInfinity)));
      }
    });
  }
  for (const Index j : state.active) out[j] = log_odds(state, j);
}

void SelectionTarget::log_ratios(const State& state, std::span<double> out) const {
  LineVector odds(lines_of(num_variables()));
  all_log_odds(state, numbers_of(odds));
  for (Index j = 0; j < num_variables(); ++j) {
    out[j] = state.x[j] > 0 ? -numbers_of(odds)[j] : numbers_of(odds)[j];
  }
}

}  // namespace poise
