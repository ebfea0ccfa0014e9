/// Contrastive divergence on a device: what kernels work on, and how they are started.
///
/// Chains are those of rbm_gibbs_kernels.hpp. Probabilities, gradients and Adam are in single precision, and every sum
/// has one order: what is learned depends on the seed and the data alone.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "engines/cuda/rbm/rbm_gibbs_draw.hpp"

namespace poise::cuda {

struct TrainShape {
  std::uint32_t visible;
  std::uint32_t hidden;
  std::uint32_t visible_words;  ///< of bits, in a row; rows of numbers have room for 32 times as many
  std::uint32_t hidden_words;
};

/// Numbers of an RBM.
struct TrainNumbers {
  float* weights;  ///< [hidden][32 * visible_words]
  float* visible_bias;
  float* hidden_bias;
};

/// Rows of the data by their index in an order.
struct TrainRows {
  const std::uint32_t* data;   ///< [row][visible_words]
  const std::uint64_t* order;  ///< from the first of the batch on
  std::uint32_t rows;
};
/// Copies rows of data to `batch` and, unless it is null, to `chains`.
void launch_train_gather(const TrainShape& shape, const TrainRows& rows, std::uint32_t* batch, std::uint32_t* chains,
                         cudaStream_t stream);

/// Rows of bits and what follows from them.
struct TrainPhase {
  const std::uint32_t* visible;  ///< [row][visible_words]
  float* hidden;                 ///< [row][32 * hidden_words]: activations or probabilities
  std::uint32_t rows;
};
enum class TrainHidden { activations, probabilities };
/// `transposed` are the weights, [visible][32 * hidden_words].
void launch_train_hidden(const TrainShape& shape, const TrainNumbers& rbm, const float* transposed,
                         const TrainPhase& phase, TrainHidden what, cudaStream_t stream);

/// What is told about a batch, and makes activations probabilities.
struct TrainMetrics {
  std::uint64_t seed;
  std::uint64_t stream;  ///< of the random numbers of the first row
  std::uint64_t offset;  ///< in it
  double* pseudo;        ///< [row]
  double* errors;        ///< [row][tile of visible units]
  double* means;         ///< pseudo log-likelihood and reconstruction error
};
/// So many tiles have errors of their own.
std::uint32_t train_tiles(const TrainShape& shape);
void launch_train_metrics(const TrainShape& shape, const TrainNumbers& rbm, const TrainPhase& data,
                          const TrainMetrics& metrics, cudaStream_t stream);

/// One step of Adam (adapt/adam.hpp).
struct TrainAdam {
  float scale;
  float second_correction;
  float first_fresh;  ///< 1 less the decays
  float second_fresh;
  float epsilon;
  float tiny;
};
struct TrainLearned {
  TrainNumbers rbm;
  TrainNumbers first;  ///< moments
  TrainNumbers second;
  TrainNumbers gradient;
  float* transposed;  ///< the weights, which are written in both ways
};
void launch_train_update(const TrainShape& shape, const TrainLearned& learned, const TrainPhase& data,
                         const TrainPhase& chains, const TrainAdam& adam, cudaStream_t stream);

/// Makes what chains read of a layer from its weights (rbm_gibbs_round.hpp).
struct TrainLayer {
  std::uint32_t units;
  std::uint32_t inputs;
  std::uint32_t input_words;
  const float* weights;  ///< [unit][32 * input_words]
  const float* biases;
  GibbsFragment* fragments;
  GibbsUnit* bounds;
};
void launch_train_round(const TrainLayer& layer, cudaStream_t stream);

}  // namespace poise::cuda
