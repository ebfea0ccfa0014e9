/// Request batches of callback targets: gathered, answered in one call, and memoised.
#include "models/user/batch_target.hpp"

#include <algorithm>

namespace poise {

namespace {

constexpr std::size_t kLevelsPerCall = std::size_t{1} << 22;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

BatchTarget::BatchTarget(BatchShape shape, std::shared_ptr<BatchFunction> function)
    : shape_(std::move(shape)), function_(std::move(function)), requests_(std::make_shared<AllRequests>()) {
  for (Index i = 0; i < num_variables(); ++i) {
    first_move_.push_back(num_moves_);
    num_moves_ += cardinality(i) - 1;
    variable_of_.resize(num_moves_, i);
    one_hot_width_ += cardinality(i);
    binary_ = binary_ && cardinality(i) == 2;
  }
}

BatchTarget BatchTarget::heated(double beta) const {
  BatchTarget target = *this;
  target.beta_ = beta;
  return target;
}

std::pair<std::size_t, std::span<Value>> BatchTarget::ask(Requests& requests) const {
  if (requests.answered) {
    requests.rows.clear();
    requests.answered = false;
  }
  const std::size_t size = requests.rows.size();
  requests.rows.resize(size + num_variables());
  return {size / num_variables(), {requests.rows.data() + size, num_variables()}};
}

std::size_t BatchTarget::ask(Requests& requests, const State& state) const {
  const auto [number, row] = ask(requests);
  std::copy(state.x.begin(), state.x.end(), row.begin());
  return number;
}

std::size_t BatchTarget::rows_per_call() const { return std::max<std::size_t>(1, kLevelsPerCall / num_variables()); }

void BatchTarget::forget() const {
  for (Requests* requests : {&requests_->values, &requests_->gradients, &requests_->ratios}) requests->answered = true;
}

void BatchTarget::serve() const try {
  const std::size_t n = num_variables();
  const std::size_t at_once = rows_per_call();
  const auto answer = [&](Requests& requests, std::size_t width, auto&& call) {
    if (requests.answered) return;
    const std::size_t rows = requests.rows.size() / n;
    requests.log_prob.resize(rows);
    requests.numbers.resize(rows * width);
    for (std::size_t first = 0; first < rows; first += at_once) {
      const std::size_t count = std::min(at_once, rows - first);
      call(std::span<const Value>(requests.rows.data() + first * n, count * n),
           std::span<double>(requests.log_prob.data() + first, count),
           std::span<double>(requests.numbers.data() + first * width, count * width));
    }
    requests.answered = true;
  };
  const auto note_zeros = [&](std::span<const double> answers) {
    requests_->met_zero = requests_->met_zero || std::find(answers.begin(), answers.end(), -kInfinity) != answers.end();
  };
  answer(requests_->values, 0, [&](auto rows, auto log_prob, auto) {
    function_->log_prob(rows, log_prob);
    note_zeros(log_prob);
  });
  answer(requests_->gradients, function_->one_hot() ? one_hot_width_ : n, [&](auto rows, auto log_prob, auto out) {
    function_->gradient(rows, log_prob, out);
    note_zeros(log_prob);
  });
  answer(requests_->ratios, num_moves_, [&](auto rows, auto, auto out) {
    function_->log_ratios(rows, out);
    note_zeros(out);
  });
} catch (...) {
  forget();
  throw;
}

void BatchTarget::learn(const State& state, double log_prob) const {
  state.log_prob = log_prob;
  state.known = true;
}

std::vector<double> BatchTarget::log_probs(std::span<const Value> rows) const {
  for (std::size_t first = 0; first < rows.size(); first += num_variables()) {
    std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(first), num_variables(),
                ask(requests_->values).second.begin());
  }
  serve();
  return requests_->values.log_prob;
}

double BatchTarget::log_prob(const State& state) const {
  if (!state.known) {
    const std::size_t row = ask(requests_->values, state);
    wait();
    learn(state, requests_->values.log_prob[row]);
  }
  return scaled(state.log_prob);
}

double BatchTarget::log_ratio(const State& state, Move move) const {
  const Index i = move.variable;
  if (state.seen != i) {
    // All levels of the variable at once: who asks for one of them asks for the others next.
    const Value here = state.x[i];
    const bool known = state.known;
    std::size_t first = 0;
    for (Index level = 0, asked = 0; level < cardinality(i); ++level) {
      if (level == here && known) continue;
      const auto [number, row] = ask(requests_->values);
      std::copy(state.x.begin(), state.x.end(), row.begin());
      row[i] = static_cast<Value>(level);
      if (asked++ == 0) first = number;
    }
    wait();
    state.seen_log_prob.resize(cardinality(i));
    for (Index level = 0; level < cardinality(i); ++level) {
      state.seen_log_prob[level] = level == here && known ? state.log_prob : requests_->values.log_prob[first++];
    }
    learn(state, state.seen_log_prob[here]);
    state.seen = i;
  }
  return scaled(state.seen_log_prob[move.value] - state.seen_log_prob[state.x[i]]);
}

void BatchTarget::log_ratios(const State& state, std::span<double> out) const {
  if (function_->has_log_ratios()) {
    const std::size_t row = ask(requests_->ratios, state);
    wait();
    std::copy_n(requests_->ratios.numbers.begin() + static_cast<std::ptrdiff_t>(row * num_moves_), num_moves_,
                out.begin());
    for (double& ratio : out) ratio = scaled(ratio);
    return;
  }
  const bool known = state.known;
  std::size_t first = 0;
  if (!known) first = ask(requests_->values, state);
  for (Index m = 0; m < num_moves_; ++m) {
    const Move move = move_at(state, m);
    const auto [number, row] = ask(requests_->values);
    std::copy(state.x.begin(), state.x.end(), row.begin());
    row[move.variable] = move.value;
    if (m == 0 && known) first = number;
  }
  wait();
  if (!known) learn(state, requests_->values.log_prob[first++]);
  for (Index m = 0; m < num_moves_; ++m) out[m] = scaled(requests_->values.log_prob[first + m] - state.log_prob);
}

void BatchTarget::first_order_log_ratios(std::span<const State* const> states, std::span<double* const> out) const {
  std::vector<std::size_t> rows;
  for (const State* state : states) rows.push_back(ask(requests_->gradients, *state));
  wait();
  const std::size_t width = function_->one_hot() ? one_hot_width_ : num_variables();
  for (std::size_t c = 0; c < states.size(); ++c) {
    const State& state = *states[c];
    learn(state, requests_->gradients.log_prob[rows[c]]);
    const double* gradient = requests_->gradients.numbers.data() + rows[c] * width;
    if (state.log_prob == -kInfinity) {
      // There is no gradient to speak of where there is no probability, and no chain will stand there.
      std::fill_n(out[c], num_moves_, 0.0);
      continue;
    }
    if (function_->one_hot()) {
      spread_one_hot(state, gradient, out[c]);
    } else if (binary_) {
      // Labels are small whole numbers, so that at beta = 1 this is exactly +step or -step.
      const double step = beta_ * (shape_.label(1) - shape_.label(0));
      double* ratios = out[c];
      const Value* x = state.x.data();
      for (Index i = 0; i < num_variables(); ++i) ratios[i] = gradient[i] * (step - 2.0 * step * x[i]);
    } else {
      spread_ordered(state, gradient, out[c]);
    }
  }
}

void BatchTarget::spread_one_hot(const State& state, const double* gradient, double* out) const {
  for (Index i = 0; i < num_variables(); gradient += cardinality(i), ++i) {
    for (Index level = 0; level < cardinality(i); ++level) {
      if (level != state.x[i]) *out++ = beta_ * (gradient[level] - gradient[state.x[i]]);
    }
  }
}

void BatchTarget::spread_ordered(const State& state, const double* gradient, double* out) const {
  for (Index i = 0; i < num_variables(); ++i) {
    const double here = shape_.label(state.x[i]);
    for (Index level = 0; level < cardinality(i); ++level) {
      if (level != state.x[i]) *out++ = beta_ * gradient[i] * (shape_.label(static_cast<Value>(level)) - here);
    }
  }
}

void BatchTarget::apply(State& state, Move move) const {
  if (state.seen == move.variable) {
    learn(state, state.seen_log_prob[move.value]);
  } else {
    state.known = false;
    state.seen = std::numeric_limits<Index>::max();
  }
  state.x[move.variable] = move.value;
}

}  // namespace poise
