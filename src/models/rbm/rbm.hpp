/// A restricted Boltzmann machine with its hidden units summed out:
/// log p(x) = b . x + sum_j softplus(a_j), a_j = c_j + sum_i W_ji x_i, x_i in {0, 1}.
///
/// Changing x_i multiplies e^(a_j) by X_ji = e^(+-W_ji), and (1 + e^a X) / (1 + e^a) = (1 - s) + s X with s =
/// sigmoid(a). So a ratio is a product of such factors, without cancellation, and takes a logarithm once in a few dozen
/// of them.
///
/// Activations are sums of integers in a tiny unit: they do not drift and do not depend on the way to a state. An RBM
/// that is heated has the same integers in a smaller unit, so its states differ from those at other temperatures in
/// their sigmoids only.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <poise/extend/base/concepts.hpp>
#include "models/rbm/packed_matrix.hpp"
#include "models/rbm/rbm_weights.hpp"

namespace poise {

class RbmUnits;
struct RbmLayers;

class Rbm {
 public:
  struct State {
    std::vector<Value> x;
    std::vector<std::int64_t> units;  // activations of the hidden units
    std::vector<double> on;           // sigmoid(a_j), P(hidden unit j is on)
    std::vector<double> off;          // sigmoid(-a_j)
    std::int64_t bias_units = 0;      // b . x
    std::int64_t count = 0;           // visible units that are 1

    template <class A>
    void archive(A& archive) {
      archive(x, units, on, off, bias_units, count);
    }
  };

  struct BlockMemory {
    explicit BlockMemory(const Rbm& target)
        : factors(target.numbers_->stride / 8),
          walker(target.make_state(std::vector<Value>(target.num_variables(), 0))) {
      static_cast<void>(target.factors());  // made here, so that steps take no memory
    }
    [[nodiscard]] double* factor() { return factors.front().lanes; }
    std::vector<Line8> factors;  // e^(change of a_j)
    State walker;                // where such factors may leave the range of doubles
  };

  /// Throws InputError where weights are not finite or sizes do not fit each other.
  explicit Rbm(RbmWeights weights);

  /// Biases of units that are all independent of each other: what there is at beta = 0.
  struct Base {
    std::vector<double> visible;
    std::vector<double> hidden;
  };
  /// The RBM at an inverse temperature: weights times beta, biases beta times their own and 1 - beta times the base's.
  [[nodiscard]] Rbm heated(double beta, const Base& base) const;
  [[nodiscard]] double beta() const { return beta_; }
  /// 1 - beta times the base.
  [[nodiscard]] const Base& offsets() const { return offsets_; }
  /// log p at inverse temperature `to` less that at `from`, of a state at any temperature.
  [[nodiscard]] double log_prob_change(const State& state, double from, double to, const Base& base) const;
  /// Makes a state at another temperature one at this.
  void adopt(State& state) const { settle(state); }

  /// As given: at beta = 1.
  [[nodiscard]] const RbmWeights& weights() const { return numbers_->weights; }
  /// What activations are sums of integers of, at beta = 1: each weight and bias is rounded to a multiple of it.
  [[nodiscard]] double activation_unit() const { return numbers_->unit; }
  /// Both layers at beta = 1; made once, for all temperatures.
  [[nodiscard]] std::shared_ptr<const RbmLayers> layers() const;
  [[nodiscard]] Index num_variables() const { return weights().visible; }
  [[nodiscard]] Index num_hidden() const { return weights().hidden; }
  [[nodiscard]] Index num_moves() const { return weights().visible; }
  [[nodiscard]] Index cardinality(Index) const { return 2; }

  [[nodiscard]] State make_state(std::span<const Value> x) const;
  [[nodiscard]] POISE_INLINE Value level(const State& state, Index i) const { return state.x[i]; }
  [[nodiscard]] double log_prob(const State& state) const;
  /// The same up to rounding, in vectors: for kernels that need it at every step.
  [[nodiscard]] double quick_log_prob(const State& state) const;
  [[nodiscard]] POISE_INLINE Move move_at(const State& state, Index i) const {
    return {i, static_cast<Value>(1 - state.x[i])};
  }
  [[nodiscard]] double log_ratio(const State& state, Move move) const;
  void log_ratios(const State& state, std::span<double> out) const;
  void apply(State& state, Move move) const;
  /// Makes states from others that differ in many variables, in one walk through the weights.
  struct Changes {
    State* state;                 ///< that is made, from any state of this RBM
    const State* from;            ///< may be the same
    std::span<const Move> moves;  ///< each to a level that its variable does not have
  };
  void change(std::span<const Changes> all) const;
  /// Gives states all new levels, in one walk through the weights.
  struct NewLevels {
    State* state;
    const RbmUnits* units;  ///< listed
  };
  void set(std::span<const NewLevels> all) const;

  /// The visible units that are on.
  [[nodiscard]] static std::vector<std::string> statistic_names() { return {"units_on"}; }
  void statistics(const State& state, std::span<double> out) const { out[0] = static_cast<double>(state.count); }

  /// First-order log ratios of all moves, (1 - 2 x_i) d log p / d x_i, for many states in one matrix product. What a
  /// state gets does not depend on its company.
  void first_order_log_ratios(std::span<const State* const> states, std::span<double* const> out) const;
  /// The same in floats, which is what the product is made of.
  void first_order_log_ratios(std::span<const State* const> states, std::span<float* const> out) const;

  /// log p of configurations of a few variables relative to the present one; see BlockTarget.
  template <class Walk>
  void block_log_ratios(const State& state, std::span<const Index> block, BlockMemory& memory, std::vector<double>& out,
                        Walk&& walk) const;

  /// P(hidden unit j is on | x) is sigmoid of this; `visible` has a bit for each visible unit.
  [[nodiscard]] double hidden_activation(Index j, std::span<const std::uint64_t> visible) const;
  /// P(x_i = 1 | hidden) is sigmoid of this; `hidden` has a bit for each hidden unit.
  [[nodiscard]] double visible_activation(Index i, std::span<const std::uint64_t> hidden) const;

 private:
  /// A line of the cache.
  struct alignas(64) UnitsLine {
    std::int64_t lanes[8];
  };

  static constexpr std::size_t kFew = 4;  // of fewer states each is multiplied by itself

  /// What all temperatures share.
  struct Numbers {
    RbmWeights weights;
    std::size_t stride = 0;  // hidden units, rounded up to a multiple of eight; the rest is neutral
    double unit = 1.0;
    double largest = 0.0;                    // weight in size
    std::vector<UnitsLine> weight_units;     // [visible][stride / 8]
    std::vector<std::int64_t> hidden_units;  // of the hidden biases
    std::vector<std::int64_t> total_units;   // of the hidden biases and all weights
    std::vector<std::int64_t> bias_units;    // of the visible biases
    PackedMatrix gradient;                   // W with a row for each visible unit
    mutable std::mutex making;
    mutable std::shared_ptr<const RbmLayers> layers;

    [[nodiscard]] std::int64_t to_units(float value) const;
    [[nodiscard]] const std::int64_t* units_row(Index i) const {
      return weight_units[std::size_t{i} * (stride / 8)].lanes;
    }
  };

  /// What exact ratios are made of. Two doubles for every weight: made when the first ratio is asked for, because block
  /// Gibbs at many temperatures never does.
  struct Factors {
    std::size_t chunks_per_log =
        1;                    // chunks of eight factors of one flip that can be multiplied before a logarithm is due
    std::vector<Line8> up;    // e^W, [visible][stride / 8]
    std::vector<Line8> down;  // e^-W
    std::vector<double> chunk_range;  // sum of |W| over a chunk of eight hidden units, at most, by visible unit
  };
  struct LazyFactors {
    std::mutex making;
    std::atomic<const Factors*> ready = nullptr;
    std::unique_ptr<const Factors> made;
  };

  Rbm(std::shared_ptr<const Numbers> numbers, double beta, Base offsets);

  [[nodiscard]] const Factors& factors() const {
    const Factors* ready = lazy_->ready.load(std::memory_order_acquire);
    return ready != nullptr ? *ready : make_factors();
  }
  const Factors& make_factors() const;
  [[nodiscard]] const double* factors(Index i, Value to) const {
    return (to != 0 ? factors().up : factors().down)[std::size_t{i} * (numbers_->stride / 8)].lanes;
  }
  /// log of the product over hidden units of off_j + on_j factor_j.
  [[nodiscard]] double log_product(const double* on, const double* off, const double* factor,
                                   std::size_t chunks_per_log) const;
  void multiply_factors(double* factor, const double* change) const;
  /// The same as `chunks_per_log` of the factors while any of the variables of a block change; 0 where their products
  /// may leave the range of doubles.
  [[nodiscard]] std::size_t block_chunks_per_log(std::span<const Index> block) const;
  template <class Real>
  void find_gradients(std::span<const State* const> states, std::span<Real* const> out) const;
  void settle(State& state) const;
  /// The coefficient of one visible unit in the terms of log p that are linear in x.
  [[nodiscard]] double bias(Index i) const {
    return unit_ * static_cast<double>(numbers_->bias_units[i]) + offsets_.visible[i];
  }

  std::shared_ptr<const Numbers> numbers_;
  double beta_ = 1.0;
  double unit_ = 1.0;  // beta times that of the numbers
  Base offsets_;       // hidden ones with what fills the stride
  std::shared_ptr<LazyFactors> lazy_;
};

template <class Walk>
void Rbm::block_log_ratios(const State& state, std::span<const Index> block, BlockMemory& memory,
                           std::vector<double>& out, Walk&& walk) const {
  out.clear();
  const std::size_t chunks_per_log = block_chunks_per_log(block);
  if (chunks_per_log == 0) {
    memory.walker = state;
    const double here = log_prob(state);
    walk(
        [&](std::size_t k, Value level) {
          apply(memory.walker, {block[k], level});
        },
        [&] { out.push_back(log_prob(memory.walker) - here); });
    return;
  }
  std::fill_n(memory.factor(), numbers_->stride, 1.0);
  std::int64_t bias_units = 0;
  double offset = 0.0;
  walk(
      [&](std::size_t k, Value level) {
        const Index i = block[k];
        bias_units += level != 0 ? numbers_->bias_units[i] : -numbers_->bias_units[i];
        offset += level != 0 ? offsets_.visible[i] : -offsets_.visible[i];
        multiply_factors(memory.factor(), factors(i, level));
      },
      [&] {
        out.push_back(unit_ * static_cast<double>(bias_units) + offset +
                      log_product(state.on.data(), state.off.data(), memory.factor(), chunks_per_log));
      });
}

}  // namespace poise
