/// A callback target: user code, in Python say, computes log p of many states at once.
///
/// What is asked for is gathered until `wait` returns (see base/fiber_scheduler.hpp), so that one call serves all
/// chains. A state memoises its log p and that of the states around it that were looked at last, so that nothing is
/// asked twice.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <poise/extend/base/concepts.hpp>
#include <poise/extend/models/batch_function.hpp>
#include <poise/types.hpp>

namespace poise {

class BatchTarget {
 public:
  /// log p and first-order ratios come from one evaluation and are kept with the state (see InformedProposal).
  static constexpr bool kMemoises = true;
  /// Requests are gathered in the target (see SingleThreadTarget).
  static constexpr bool kSingleThread = true;

  /// What it memoises is what the function gave, whatever the temperature.
  struct State {
    std::vector<Value> x;
    mutable double log_prob = 0.0;
    mutable bool known = false;
    // log p with one variable at each of its levels, where it was asked for.
    mutable Index seen = std::numeric_limits<Index>::max();
    mutable std::vector<double> seen_log_prob;

    template <class A>
    void archive(A& archive) {
      archive(x, log_prob, known, seen, seen_log_prob);
    }
  };

  struct BlockMemory {
    explicit BlockMemory(const BatchTarget& /*target*/) {}
    std::vector<Value> now;  // levels of the block
  };

  BatchTarget(BatchShape shape, std::shared_ptr<BatchFunction> function);

  /// The same target at an inverse temperature: log p times beta, where there is any probability. Requests of all
  /// temperatures are answered together.
  [[nodiscard]] BatchTarget heated(double beta) const;
  [[nodiscard]] double beta() const { return beta_; }
  /// States at all temperatures are alike.
  void adopt(State& /*state*/) const {}
  /// Whether the function has called any state impossible so far.
  [[nodiscard]] bool met_zero() const { return requests_->met_zero; }

  /// Called when an answer is needed; has to call `serve` before it returns. Without it every request is served at
  /// once.
  void set_wait(std::function<void()> wait) { wait_ = std::move(wait); }
  /// Answers all requests asked since the last time, in as few calls as there are kinds of them.
  void serve() const;
  /// Drops the requests that no chain waits for any more, after a failure.
  void forget() const;

  [[nodiscard]] const BatchFunction& function() const { return *function_; }
  [[nodiscard]] const BatchShape& shape() const { return shape_; }
  [[nodiscard]] Index num_variables() const { return static_cast<Index>(shape_.cardinalities.size()); }
  [[nodiscard]] Index num_moves() const { return num_moves_; }
  [[nodiscard]] Index cardinality(Index i) const { return shape_.cardinalities[i]; }
  [[nodiscard]] State make_state(std::span<const Value> x) const {
    State state;
    state.x.assign(x.begin(), x.end());
    return state;
  }
  [[nodiscard]] Value level(const State& state, Index i) const { return state.x[i]; }
  [[nodiscard]] Move move_at(const State& state, Index move) const {
    const Index i = variable_of_[move];
    const auto k = static_cast<Value>(move - first_move_[i]);
    return {i, k < state.x[i] ? k : static_cast<Value>(k + 1)};
  }

  /// log p of states, one behind the other, outside of any chain.
  [[nodiscard]] std::vector<double> log_probs(std::span<const Value> rows) const;
  [[nodiscard]] double log_prob(const State& state) const;
  [[nodiscard]] double log_ratio(const State& state, Move move) const;
  void log_ratios(const State& state, std::span<double> out) const;
  void first_order_log_ratios(std::span<const State* const> states, std::span<double* const> out) const;
  void apply(State& state, Move move) const;

  /// log p of configurations of a few variables relative to the present one; see BlockTarget. The present one is among
  /// those that the walk takes.
  template <class Walk>
  void block_log_ratios(const State& state, std::span<const Index> block, BlockMemory& memory, std::vector<double>& out,
                        Walk&& walk) const;

 private:
  /// Rows that wait for the same kind of answer, and the answers.
  struct Requests {
    std::vector<Value> rows;
    std::vector<double> log_prob;
    std::vector<double> numbers;  // of all rows: derivatives or ratios
    bool answered = true;
  };

  /// Shared by all temperatures.
  struct AllRequests {
    Requests values;
    Requests gradients;
    Requests ratios;
    bool met_zero = false;
  };

  /// Rows that one call takes: they hold some millions of levels, 32 MB where they are handed on as doubles.
  [[nodiscard]] std::size_t rows_per_call() const;
  /// Room for one more row; its number is what the answer is found by after `wait`.
  std::pair<std::size_t, std::span<Value>> ask(Requests& requests) const;
  std::size_t ask(Requests& requests, const State& state) const;
  void wait() const { wait_ ? wait_() : serve(); }
  void learn(const State& state, double log_prob) const;
  /// log p, or a ratio, at this temperature.
  [[nodiscard]] double scaled(double log_prob) const {
    return log_prob == -std::numeric_limits<double>::infinity() ? log_prob : beta_ * log_prob;
  }
  /// First-order ratios of all moves from derivatives by levels, or by the numbers that stand for them.
  void spread_one_hot(const State& state, const double* gradient, double* out) const;
  void spread_ordered(const State& state, const double* gradient, double* out) const;

  BatchShape shape_;
  std::shared_ptr<BatchFunction> function_;
  std::function<void()> wait_;
  std::vector<Index> first_move_;
  std::vector<Index> variable_of_;  // of each move
  Index num_moves_ = 0;
  bool binary_ = true;
  std::size_t one_hot_width_ = 0;
  double beta_ = 1.0;
  std::shared_ptr<AllRequests> requests_;
};

template <class Walk>
void BatchTarget::block_log_ratios(const State& state, std::span<const Index> block, BlockMemory& memory,
                                   std::vector<double>& out, Walk&& walk) const {
  std::vector<Value>& now = memory.now;
  now.resize(block.size());
  for (std::size_t k = 0; k < block.size(); ++k) now[k] = state.x[block[k]];
  out.clear();
  std::size_t changed = 0;  // places where `now` is not the present configuration
  std::size_t present = 0;
  std::size_t first = 0;
  std::size_t count = 0;
  // Some rows at a time: all of a large block would take as much memory as it has configurations times variables.
  const auto answer = [&] {
    if (count == 0) return;
    wait();
    for (std::size_t k = first; k < first + count; ++k) out.push_back(requests_->values.log_prob[k]);
    count = 0;
  };
  walk(
      [&](std::size_t k, Value level) {
        const Value here = state.x[block[k]];
        changed += (level != here ? 1U : 0U);
        changed -= (now[k] != here ? 1U : 0U);
        now[k] = level;
      },
      [&] {
        const auto [number, row] = ask(requests_->values);
        std::copy(state.x.begin(), state.x.end(), row.begin());
        for (std::size_t k = 0; k < block.size(); ++k) row[block[k]] = now[k];
        if (changed == 0) present = out.size() + count;
        if (count++ == 0) first = number;
        if (count == rows_per_call()) answer();
      });
  answer();
  const double here = out[present];
  learn(state, here);
  for (double& log_prob : out) log_prob = scaled(log_prob - here);
}

}  // namespace poise
