/// The trainer of an RBM: weights from binary data by contrastive divergence.
///
/// The gradient of the mean log-likelihood is <h v> under the data minus <h v> under the RBM. The second term comes
/// from chains of a few steps of block Gibbs that start at the data (CD, Hinton 2002) or where the step before
/// left them (PCD, Tieleman 2008). Hidden units enter both terms by their probabilities given the visible units.
///
/// What is learned depends on the seed and the data alone, not on the number of threads or the kind of processor. A GPU
/// has random numbers of its own, so it learns other weights, as good as those of the CPU.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poise/devices.hpp>
#include <poise/extend/base/rng.hpp>
#include <poise/types.hpp>
#include "base/thread_pool.hpp"
#include "engines/common/rbm_updates.hpp"
#include "models/rbm/rbm_weights.hpp"

namespace poise {

// Loops over units that matrix products leave: sigmoids, coin tosses, conditional probabilities.

/// Rows of units have room for a multiple of this many; what lies beyond the last unit must be finite, no more.
inline constexpr std::size_t kUnitLanes = 8;

/// Each activation becomes sigmoid(activation).
void to_probabilities(float* activations, std::size_t count);

/// units[i] = 1 with probability sigmoid(activations[i]), otherwise 0. Both may be the same.
void sample_units(const float* activations, std::size_t count, Rng& rng, float* units);

/// sum_j softplus(a_j + change_j) - softplus(a_j): what the hidden units add to the log ratio of a changed input.
/// `change` is 0 beyond the last unit.
double softplus_change(const float* activations, const float* change, std::size_t count);

/// sum_i (data_i - probability_i)^2.
double squared_distance(const float* data, const float* probabilities, std::size_t count);

enum class Divergence {
  cd,  ///< chains start at the data of each batch: little noise, but what lies far from the data stays unseen
  pcd  ///< chains are kept from batch to batch: closer to the likelihood, with a smaller rate and more epochs
};

struct RbmTrainerOptions {
  Divergence method = Divergence::cd;
  std::uint64_t gibbs_steps = 10;  ///< of block Gibbs per update; more cost time in proportion and bias less
  std::uint64_t batch = 28;        ///< rows of data per update, and the number of chains that PCD keeps
  double rate = 1e-3;              ///< of Adam, at most 1: about the most that an update changes a weight by
  std::uint64_t seed = 1;
  unsigned threads = 0;  ///< 0 takes all cores
  Device device = Device::cpu;

  /// Throws an InputError with everything that is wrong.
  void check() const;
};

struct RbmMetrics {
  /// Mean over pixels of (v - P(v = 1 | h))^2, with h the probabilities of the hidden units given v.
  double reconstruction_error = 0.0;
  /// Estimate of sum_i log p(v_i | all others) per row: one i is drawn for each row and stands for all.
  double pseudo_log_likelihood = 0.0;

  /// Adds the means of so many rows, or a share of them.
  void add(const RbmMetrics& more, double times) {
    reconstruction_error += times * more.reconstruction_error;
    pseudo_log_likelihood += times * more.pseudo_log_likelihood;
  }
  [[nodiscard]] RbmMetrics over(std::size_t rows) const {
    return {reconstruction_error / static_cast<double>(rows), pseudo_log_likelihood / static_cast<double>(rows)};
  }
};

struct RbmProgress {
  std::uint64_t batch = 0;  ///< done in this epoch
  std::uint64_t batches = 0;
  std::uint64_t rows = 0;  ///< done in this epoch
  RbmMetrics metrics;      ///< of the last batch, before its update
};

struct RbmTrainerHooks {
  std::function<void(const RbmProgress&)> progress;  ///< after each batch
  const std::atomic<bool>* stop = nullptr;           ///< ends the epoch after the present batch
};

struct RbmEpoch {
  std::uint64_t rows = 0;  ///< that were seen; fewer than there are when it was stopped
  bool interrupted = false;
  double seconds = 0.0;
  RbmMetrics metrics;  ///< mean over the rows, each seen before the update it led to
};

/// Where training begins: weights from N(0, 0.01^2), visible biases that give each unit its mean over the data (kept
/// away from 0 and 1), hidden biases 0. `data` is row after row of `visible` zeros and ones.
[[nodiscard]] RbmWeights initial_rbm(Index visible, Index hidden, std::span<const Value> data, std::uint64_t seed);

class RbmTrainer {
 public:
  /// Throws an InputError where a GPU is asked for and there is none.
  RbmTrainer(RbmWeights start, const RbmTrainerOptions& options);

  /// One update from up to `batch` rows of zeros and ones.
  RbmMetrics step(std::span<const Value> rows);

  /// One pass over all rows of the data in random order, or the rest of one that was stopped.
  RbmEpoch epoch(std::span<const Value> data, const RbmTrainerHooks& hooks = {});

  /// Metrics of the present weights. Changes nothing: training continues as if it had not been called.
  [[nodiscard]] RbmMetrics evaluate(std::span<const Value> data);

  /// Inside RbmTrainerHooks::progress they may be those of an earlier batch, where training is on a GPU.
  [[nodiscard]] const RbmWeights& weights() const { return weights_; }
  /// Where training is, which tells what Device::automatic came to.
  [[nodiscard]] Device device() const { return device_ ? Device::cuda : Device::cpu; }

  /// Everything that training depends on from here, also from inside RbmTrainerHooks::progress. A trainer of the same
  /// options that loads it, and is given the same data, continues as this one would have, bitwise identical. Throws
  /// std::runtime_error where the bytes are not of such a trainer.
  [[nodiscard]] std::string save() const;
  void load(std::string_view bytes);

  /// The estimate that the last step followed, before Adam scaled it.
  [[nodiscard]] const RbmWeights& gradient() const { return gradient_; }

 private:
  /// Rows of the batch that are worked on together.
  struct Rows {
    std::size_t first;
    std::size_t count;
  };
  void hidden_activations(const std::vector<float>& visible, std::vector<float>& hidden, Rows rows) const;
  void visible_activations(const std::vector<float>& hidden, std::vector<float>& visible, Rows rows) const;
  void see_data(std::span<const Value> data, Rows rows, std::span<Rng> rngs);
  void run_chains(Rows rows);
  void update(std::size_t data_rows, std::size_t chains);
  void update_hidden(std::size_t first, std::size_t data_rows, std::size_t chains);
  [[nodiscard]] double pseudo_log_likelihood(std::size_t row, Rng& rng);
  [[nodiscard]] RbmMetrics mean_metrics(std::size_t rows) const;
  template <class A>
  void archive(A& archive);

  // On a GPU.
  void start_on_device();
  /// What is there beside the chains.
  [[nodiscard]] std::array<std::pair<RbmUpdates::Part, RbmWeights*>, 4> parts() const;
  void put_on_device() const;
  void fetch() const;
  /// An update of rows from place `first` of the order on.
  RbmMetrics step_on_device(std::size_t first, std::size_t rows);

  RbmTrainerOptions options_;
  // Copies of what is on a GPU, where training is there.
  mutable RbmWeights weights_;
  mutable RbmWeights gradient_;
  mutable RbmWeights first_moment_;  // of Adam
  mutable RbmWeights second_moment_;
  std::uint64_t updates_ = 0;
  std::size_t visible_stride_;  // units, rounded up to a multiple of eight; what the rest holds does not matter
  std::size_t hidden_stride_;

  // One row for each row of the batch, or for each chain.
  std::vector<float> data_visible_;
  std::vector<float> data_hidden_;  // activations, then probabilities
  mutable std::vector<float> chain_visible_;
  std::vector<float> chain_hidden_;  // activations, then units, and in the end probabilities
  std::vector<float> reconstruction_;
  std::vector<float> change_;  // of the activations when one visible unit changes
  std::vector<RbmMetrics> metrics_;
  std::vector<Rng> rngs_;

  Rng shuffle_;
  /// The epoch that is under way.
  struct Present {
    std::vector<std::uint64_t> order;  // of the rows
    RbmProgress progress;
    RbmMetrics sums;  // over rows
    double seconds = 0.0;
  };
  std::optional<Present> present_;
  ThreadPool pool_;
  std::unique_ptr<RbmUpdates> device_;  // none on the CPU
};

}  // namespace poise
