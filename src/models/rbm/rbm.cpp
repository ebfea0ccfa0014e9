/// Restricted Boltzmann machines: activations, products of factors, and one matrix product for many gradients.
#include "models/rbm/rbm.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <poise/extend/base/math.hpp>
#include "models/rbm/rbm_layer.hpp"

namespace poise {

namespace {

/// Products of factors must stay between e^-600 and e^600: normal doubles, with room for rounding.
constexpr double kLogRange = 600.0;

/// Columns of the matrix that are summed together: their part of it is used by many states while it is in the cache.
constexpr std::size_t kColumns = 32;

/// Both sigmoids of eight activations, without cancellation.
POISE_INLINE void sigmoids8(const Doubles8& a, Doubles8& on, Doubles8& off) {
  const Doubles8 small = exp8(-1.0 * abs8(a));
  const Doubles8 likely = 1.0 / (1.0 + small);
  const Doubles8 unlikely = small * likely;
  const Ints8 negative = less8(a, Doubles8{});
  on = select8(negative, unlikely, likely);
  off = select8(negative, likely, unlikely);
}

POISE_INLINE double product8(const Doubles8& v) {
  const auto half = v.low * v.high;
  return (half[0] * half[1]) * (half[2] * half[3]);
}

/// Sigmoids of unit * units + offset.
void fill_sigmoids(std::span<const std::int64_t> units, double unit, const double* offset, double* on, double* off) {
  hot([=] {
    for (std::size_t j = 0; j < units.size(); j += 8) {
      Doubles8 a;
      for (unsigned k = 0; k < 8; ++k) a.set(k, unit * static_cast<double>(units[j + k]));
      a += load8(offset + j);
      Doubles8 p, q;
      sigmoids8(a, p, q);
      store8(on + j, p);
      store8(off + j, q);
    }
  });
}

/// Sums of log(off + on * factor), a logarithm every `chunks_per_log` chunks of eight.
double log_of_products(const double* on, const double* off, const double* factor, std::size_t count,
                       std::size_t chunks_per_log) {
  return hot([=] {
    double log = 0.0;
    for (std::size_t first = 0; first < count; first += 8 * chunks_per_log) {
      const std::size_t last = std::min(count, first + 8 * chunks_per_log);
      Doubles8 product = broadcast8(1.0);
      for (std::size_t j = first; j < last; j += 8) {
        product = product * (load8(off + j) + load8(on + j) * load8(factor + j));
      }
      log += std::log(product8(product));
    }
    return log;
  });
}

void multiply_by(double* to, const double* by, std::size_t count) {
  hot([=] {
    for (std::size_t j = 0; j < count; j += 8) store8(to + j, load8(to + j) * load8(by + j));
  });
}

void add_units(std::int64_t* to, const std::int64_t* row, std::int64_t sign, std::size_t count) {
  hot([=] {
    for (std::size_t j = 0; j < count; ++j) to[j] += sign * row[j];
  });
}

/// The sum of rows, kColumns columns of them, in registers.
void sum_rows(const std::int64_t* matrix, std::size_t stride, std::span<const Index> rows, std::int64_t* sums) {
  hot([=] {
    Ints8 s0 = {}, s1 = {}, s2 = {}, s3 = {};
    for (const Index row : rows) {
      const std::int64_t* from = matrix + row * stride;
      s0 += load8(from);
      s1 += load8(from + 8);
      s2 += load8(from + 16);
      s3 += load8(from + 24);
    }
    store8(sums, s0);
    store8(sums + 8, s1);
    store8(sums + 16, s2);
    store8(sums + 24, s3);
  });
}

/// Adds rows that are switched on and takes away those that are switched off, kColumns columns of them, in registers.
/// -v is ~v + 1: the ones are added at the end.
void add_changes(const std::int64_t* matrix, std::size_t stride, std::span<const Move> moves,
                 const std::int64_t* before, std::int64_t* to) {
  hot([=] {
    Ints8 s0 = {}, s1 = {}, s2 = {}, s3 = {};
    std::int64_t off = 0;
    for (const Move& move : moves) {
      const std::int64_t* from = matrix + move.variable * stride;
      const std::int64_t mask = std::int64_t{move.value} - 1;
      off -= mask;
      s0 += load8(from) ^ mask;
      s1 += load8(from + 8) ^ mask;
      s2 += load8(from + 16) ^ mask;
      s3 += load8(from + 24) ^ mask;
    }
    store8(to, load8(before) + s0 + off);
    store8(to + 8, load8(before + 8) + s1 + off);
    store8(to + 16, load8(before + 16) + s2 + off);
    store8(to + 24, load8(before + 24) + s3 + off);
  });
}

}  // namespace

Rbm::Rbm(RbmWeights weights) {
  const Index visible = weights.visible;
  const Index hidden = weights.hidden;
  if (visible == 0 || hidden == 0 || weights.weights.size() != std::size_t{visible} * hidden ||
      weights.visible_bias.size() != visible || weights.hidden_bias.size() != hidden) {
    throw InputError("the weights of the RBM do not fit its numbers of visible and hidden units");
  }
  const auto numbers = std::make_shared<Numbers>();
  for (const auto* values : {&weights.weights, &weights.visible_bias, &weights.hidden_bias}) {
    for (const float value : *values) {
      if (!std::isfinite(value)) throw InputError("the RBM has a weight that is not a finite number");
      const double size = std::abs(static_cast<double>(value));
      if (values == &weights.weights) numbers->largest = std::max(numbers->largest, size);
    }
  }
  constexpr double strongest = kLogRange / 8.0;
  if (numbers->largest > strongest) {
    throw InputError(
        fmt::format("the RBM has a weight of {} in size, expected at most {}", numbers->largest, strongest));
  }
  const std::size_t stride = numbers->stride = (std::size_t{hidden} + 7) / 8 * 8;

  // The unit lets the largest sum of an activation, or of the visible biases, have 60 bits.
  double sum = 1.0;
  double biases = 0.0;
  for (const float value : weights.visible_bias) biases += std::abs(value);
  for (Index j = 0; j < hidden; ++j) {
    double one = std::abs(weights.hidden_bias[j]);
    for (Index i = 0; i < visible; ++i) one += std::abs(weights.weights[std::size_t{j} * visible + i]);
    sum = std::max(sum, one);
  }
  numbers->unit = std::ldexp(1.0, std::ilogb(std::max(sum, biases)) + 1 - 60);
  numbers->weight_units.assign(std::size_t{visible} * (stride / 8), {});
  numbers->bias_units.resize(visible);
  numbers->hidden_units.assign(stride, 0);
  for (Index i = 0; i < visible; ++i) {
    numbers->bias_units[i] = numbers->to_units(weights.visible_bias[i]);
    for (Index j = 0; j < hidden; ++j) {
      const std::size_t place = std::size_t{i} * stride + j;
      numbers->weight_units[place / 8].lanes[place % 8] =
          numbers->to_units(weights.weights[std::size_t{j} * visible + i]);
    }
  }
  for (Index j = 0; j < hidden; ++j) numbers->hidden_units[j] = numbers->to_units(weights.hidden_bias[j]);
  numbers->total_units = numbers->hidden_units;
  for (Index i = 0; i < visible; ++i) add_units(numbers->total_units.data(), numbers->units_row(i), 1, stride);
  numbers->gradient = PackedMatrix(visible, hidden);
  for (Index i = 0; i < visible; ++i) {
    for (Index j = 0; j < hidden; ++j) numbers->gradient.set(i, j, weights.weights[std::size_t{j} * visible + i]);
  }
  numbers->weights = std::move(weights);
  *this = Rbm(numbers, 1.0, {std::vector<double>(visible, 0.0), std::vector<double>(hidden, 0.0)});
}

Rbm::Rbm(std::shared_ptr<const Numbers> numbers, double beta, Base offsets)
    : numbers_(std::move(numbers)),
      beta_(beta),
      unit_(beta * numbers_->unit),
      offsets_(std::move(offsets)),
      lazy_(std::make_shared<LazyFactors>()) {
  offsets_.hidden.resize(numbers_->stride, 0.0);
}

Rbm Rbm::heated(double beta, const Base& base) const {
  Base offsets = base;
  for (std::vector<double>* layer : {&offsets.visible, &offsets.hidden}) {
    for (double& offset : *layer) offset *= 1.0 - beta;
  }
  return {numbers_, beta, std::move(offsets)};
}

const Rbm::Factors& Rbm::make_factors() const {
  const std::lock_guard lock(lazy_->making);
  if (lazy_->made) return *lazy_->made;
  auto made = std::make_unique<Factors>();
  const double largest = beta_ * numbers_->largest;
  made->chunks_per_log = static_cast<std::size_t>(std::clamp(kLogRange / (8.0 * std::max(largest, 1e-3)), 1.0, 1e6));
  constexpr Line8 ones = {{1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0}};
  made->up.assign(numbers_->weight_units.size(), ones);
  made->down.assign(numbers_->weight_units.size(), ones);
  made->chunk_range.assign(num_variables(), 0.0);
  for (Index i = 0; i < num_variables(); ++i) {
    double range = 0.0;
    for (Index j = 0; j < num_hidden(); ++j) {
      const std::size_t place = std::size_t{i} * numbers_->stride + j;
      const auto units = numbers_->weight_units[place / 8].lanes[place % 8];
      const double weight = unit_ * static_cast<double>(units);
      made->up[place / 8].lanes[place % 8] = std::exp(weight);
      made->down[place / 8].lanes[place % 8] = std::exp(-weight);
      range = (j % 8 == 0 ? 0.0 : range) + std::abs(weight);
      made->chunk_range[i] = std::max(made->chunk_range[i], range);
    }
  }
  lazy_->made = std::move(made);
  lazy_->ready.store(lazy_->made.get(), std::memory_order_release);
  return *lazy_->made;
}

std::shared_ptr<const RbmLayers> Rbm::layers() const {
  const std::lock_guard lock(numbers_->making);
  if (!numbers_->layers) numbers_->layers = std::make_shared<const RbmLayers>(*this, 0.0);
  return numbers_->layers;
}

/// To the nearest integer. Adding a half to a float of 24 bits is exact or, where doubles have no halves, does nothing.
std::int64_t Rbm::Numbers::to_units(float value) const {
  const double exact = static_cast<double>(value) / unit;
  return static_cast<std::int64_t>(exact + std::copysign(0.5, exact));
}

Rbm::State Rbm::make_state(std::span<const Value> x) const {
  State state;
  state.x.resize(num_variables());
  state.units.resize(numbers_->stride);
  state.on.assign(numbers_->stride, 0.0);
  state.off.assign(numbers_->stride, 1.0);
  RbmUnits units(num_variables());
  units.take(x);
  units.list();
  const NewLevels one[] = {{&state, &units}};
  set(one);
  return state;
}

void Rbm::set(std::span<const NewLevels> all) const {
  for (std::size_t first = 0; first < numbers_->stride; first += kColumns) {
    const std::size_t columns = std::min(kColumns, numbers_->stride - first);
    for (const auto& [state, units] : all) {
      std::int64_t sums[kColumns] = {};
      if (columns == kColumns) {
        sum_rows(numbers_->units_row(0) + first, numbers_->stride, units->listed(), sums);
      } else {
        for (const Index i : units->listed()) add_units(sums, numbers_->units_row(i) + first, 1, columns);
      }
      const std::int64_t* start = (units->lists_off() ? numbers_->total_units : numbers_->hidden_units).data() + first;
      std::copy_n(start, columns, state->units.data() + first);
      add_units(state->units.data() + first, sums, units->lists_off() ? -1 : 1, columns);
    }
  }
  for (const auto& [state, units] : all) {
    units->give(state->x);
    state->bias_units = 0;
    state->count = 0;
    for_each_unit(units->bits(), [&, to = state](Index i) {
      to->bias_units += numbers_->bias_units[i];
      to->count += 1;
    });
    settle(*state);
  }
}

void Rbm::change(std::span<const Changes> all) const {
  for (std::size_t first = 0; first < numbers_->stride; first += kColumns) {
    const std::size_t columns = std::min(kColumns, numbers_->stride - first);
    for (const auto& [state, from, moves] : all) {
      const std::int64_t* before = from->units.data() + first;
      std::int64_t* to = state->units.data() + first;
      if (columns == kColumns) {
        add_changes(numbers_->units_row(0) + first, numbers_->stride, moves, before, to);
        continue;
      }
      if (to != before) std::copy_n(before, columns, to);
      for (const Move& move : moves) {
        add_units(to, numbers_->units_row(move.variable) + first, move.value != 0 ? 1 : -1, columns);
      }
    }
  }
  for (const auto& [state, from, moves] : all) {
    if (state != from) std::copy(from->x.begin(), from->x.end(), state->x.begin());
    std::int64_t bias_units = from->bias_units;
    std::int64_t count = from->count;
    for (const Move& move : moves) {
      const std::int64_t sign = move.value != 0 ? 1 : -1;
      state->x[move.variable] = move.value;
      count += sign;
      bias_units += sign * numbers_->bias_units[move.variable];
    }
    state->count = count;
    state->bias_units = bias_units;
    settle(*state);
  }
}

void Rbm::settle(State& state) const {
  fill_sigmoids(state.units, unit_, offsets_.hidden.data(), state.on.data(), state.off.data());
  for (std::size_t j = num_hidden(); j < numbers_->stride; ++j) {  // neutral
    state.on[j] = 0.0;
    state.off[j] = 1.0;
  }
}

void Rbm::apply(State& state, Move move) const {
  const std::int64_t* row = numbers_->units_row(move.variable);
  const std::int64_t sign = move.value != 0 ? 1 : -1;
  state.x[move.variable] = move.value;
  state.count += sign;
  state.bias_units += sign * numbers_->bias_units[move.variable];
  add_units(state.units.data(), row, sign, numbers_->stride);
  settle(state);
}

void Rbm::multiply_factors(double* factor, const double* change) const {
  multiply_by(factor, change, numbers_->stride);
}

double Rbm::log_product(const double* on, const double* off, const double* factor, std::size_t chunks_per_log) const {
  return log_of_products(on, off, factor, numbers_->stride, chunks_per_log);
}

/// A factor (1 - s) + s e^d lies between 1 and e^d, where d = sum of +-W_ji over the variables i that changed. So its
/// logarithm is at most the sum of |W_ji| over the block in size, whatever the configuration, and that of the product
/// of any factors in a chunk of eight is at most R, the sum of chunk_range_ over the block. kLogRange / R chunks can be
/// multiplied. Where R exceeds kLogRange not even e^d need be in range.
std::size_t Rbm::block_chunks_per_log(std::span<const Index> block) const {
  const Factors& made = factors();
  double range = 0.0;
  for (const Index i : block) range += made.chunk_range[i];
  if (range > kLogRange) return 0;
  return range * static_cast<double>(made.chunks_per_log) <= kLogRange ? made.chunks_per_log
                                                                       : static_cast<std::size_t>(kLogRange / range);
}

/// softplus(a) = max(a, 0) - log(max(sigmoid(a), sigmoid(-a))).
double Rbm::log_prob(const State& state) const {
  std::int64_t positive = 0;
  double sum = 0.0;
  double product = 1.0;
  double positive_sum = 0.0;
  for (Index j = 0; j < num_hidden(); ++j) {
    if (beta_ == 1.0) {
      positive += std::max<std::int64_t>(state.units[j], 0) >> 12;  // in 4096 units, so that thousands of them fit
      positive_sum += static_cast<double>(std::max<std::int64_t>(state.units[j], 0) & 4095);
    } else {
      sum += std::max(unit_ * static_cast<double>(state.units[j]) + offsets_.hidden[j], 0.0);
    }
    product *= std::max(state.on[j], state.off[j]);
    if (j % 256 == 255) {
      sum -= std::log(product);
      product = 1.0;
    }
  }
  sum -= std::log(product);
  if (beta_ != 1.0) {
    for (Index i = 0; i < num_variables(); ++i) sum += state.x[i] != 0 ? offsets_.visible[i] : 0.0;
  }
  return unit_ * (static_cast<double>(state.bias_units) + 4096.0 * static_cast<double>(positive) + positive_sum) + sum;
}

/// The likelier state of a unit has a probability of at least a half, so hundreds of them can be multiplied.
double Rbm::quick_log_prob(const State& state) const {
  double sum = hot([&state, unit = unit_, offset = offsets_.hidden.data(), count = numbers_->stride] {
    constexpr std::size_t chunks_per_log = 512;
    double total = 0.0;
    for (std::size_t first = 0; first < count; first += 8 * chunks_per_log) {
      Doubles8 positive = {};
      Doubles8 product = broadcast8(1.0);
      for (std::size_t j = first; j < std::min(count, first + 8 * chunks_per_log); j += 8) {
        Doubles8 a = {};
        for (unsigned k = 0; k < 8; ++k) a.set(k, unit * static_cast<double>(state.units[j + k]));
        positive += max8(Doubles8{}, a + load8(offset + j));
        product = product * max8(load8(state.on.data() + j), load8(state.off.data() + j));
      }
      double all = 1.0;
      for (unsigned k = 0; k < 4; ++k) all *= product[k];
      total += sum8(positive) - std::log(all);
      all = 1.0;
      for (unsigned k = 4; k < 8; ++k) all *= product[k];
      total -= std::log(all);
    }
    return total;
  });
  if (beta_ != 1.0) {
    for (Index i = 0; i < num_variables(); ++i) sum += state.x[i] != 0 ? offsets_.visible[i] : 0.0;
  }
  return unit_ * static_cast<double>(state.bias_units) + sum;
}

/// softplus(x) = max(x, 0) + log(1 + e^-|x|), and hundreds of factors from 1 to 2 can be multiplied before a logarithm.
double Rbm::log_prob_change(const State& state, double from, double to, const Base& base) const {
  const auto count = static_cast<std::size_t>(num_hidden());
  return hot([&state, &base, unit = numbers_->unit, count, from, to] {
    // (1 - to) base - (1 - from) base = (from - to) base, of the units that are on.
    Doubles8 on = {};
    const std::size_t visible = base.visible.size() / 8 * 8;
    for (std::size_t i = 0; i < visible; i += 8) {
      double x[8];
      for (unsigned k = 0; k < 8; ++k) x[k] = state.x[i + k];
      on += load8(x) * load8(base.visible.data() + i);
    }
    double linear = unit * static_cast<double>(state.bias_units);
    for (unsigned k = 0; k < 8; ++k) linear -= on[k];
    for (std::size_t i = visible; i < base.visible.size(); ++i) linear -= state.x[i] * base.visible[i];
    double sum = (to - from) * linear;
    constexpr std::size_t chunks_per_log = 512;
    for (std::size_t first = 0; first < count; first += 8 * chunks_per_log) {
      Doubles8 positive = {};
      Doubles8 below = broadcast8(1.0);
      Doubles8 above = broadcast8(1.0);
      for (std::size_t j = first; j < std::min(count, first + 8 * chunks_per_log); j += 8) {
        Doubles8 a = {};
        Doubles8 hot_end = {};
        for (unsigned k = 0; k < 8 && j + k < count; ++k) {
          a.set(k, unit * static_cast<double>(state.units[j + k]));
          hot_end.set(k, base.hidden[j + k]);
        }
        const Doubles8 before = from * a + (1.0 - from) * hot_end;
        const Doubles8 after = to * a + (1.0 - to) * hot_end;
        positive += max8(after, Doubles8{}) - max8(before, Doubles8{});
        below = below * (1.0 + exp8(-1.0 * abs8(before)));
        above = above * (1.0 + exp8(-1.0 * abs8(after)));
      }
      for (unsigned k = 0; k < 8; ++k) sum += positive[k] + std::log(above[k] / below[k]);
    }
    return sum;
  });
}

double Rbm::log_ratio(const State& state, Move move) const {
  const double linear = bias(move.variable);
  return (move.value != 0 ? linear : -linear) +
         log_product(state.on.data(), state.off.data(), factors(move.variable, move.value), factors().chunks_per_log);
}

void Rbm::log_ratios(const State& state, std::span<double> out) const {
  for (Index i = 0; i < num_variables(); ++i) out[i] = log_ratio(state, {i, static_cast<Value>(1 - state.x[i])});
}

double Rbm::hidden_activation(Index j, std::span<const std::uint64_t> visible) const {
  std::int64_t sum = numbers_->hidden_units[j];
  // Row j of the weights lies together, column j of their units does not.
  const float* row = weights().weights.data() + std::size_t{j} * num_variables();
  for_each_unit(visible, [&](Index i) { sum += numbers_->to_units(row[i]); });
  return unit_ * static_cast<double>(sum) + offsets_.hidden[j];
}

double Rbm::visible_activation(Index i, std::span<const std::uint64_t> hidden) const {
  std::int64_t sum = numbers_->bias_units[i];
  const std::int64_t* row = numbers_->units_row(i);
  for_each_unit(hidden, [&](Index j) { sum += row[j]; });
  return unit_ * static_cast<double>(sum) + offsets_.visible[i];
}

}  // namespace poise
