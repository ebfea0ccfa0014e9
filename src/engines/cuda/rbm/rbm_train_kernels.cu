/// Probabilities, metrics, the gradient and Adam of contrastive divergence, a few rows and 128 units a block.
#include "engines/cuda/rbm/rbm_train_kernels.hpp"

#include "engines/common/host_device.hpp"
#include "engines/cuda/common/kernel.cuh"
#include "engines/cuda/rbm/rbm_gibbs_draw.hpp"

namespace poise::cuda {

namespace {

constexpr unsigned kWarp = 32;
constexpr unsigned kThreads = 128;
constexpr unsigned kRows = 8;  // of a block, which share the weights that it reads

__device__ float sigmoid(float a) { return 1.0F / (1.0F + expf(-a)); }

__global__ void __launch_bounds__(kThreads)
    gather_kernel(TrainShape shape, TrainRows rows, std::uint32_t* batch, std::uint32_t* chains) {
  const std::size_t from = rows.order[blockIdx.x] * shape.visible_words;
  const std::size_t to = static_cast<std::size_t>(blockIdx.x) * shape.visible_words;
  for (unsigned w = threadIdx.x; w < shape.visible_words; w += kThreads) {
    const std::uint32_t word = rows.data[from + w];
    batch[to + w] = word;
    if (chains != nullptr) chains[to + w] = word;
  }
}

/// Sums of weights of the units that are on, in their order.
__global__ void __launch_bounds__(kThreads)
    hidden_kernel(TrainShape shape, const float* biases, const float* transposed, TrainPhase phase, TrainHidden what) {
  const unsigned j = blockIdx.x * kThreads + threadIdx.x;
  const unsigned first = blockIdx.y * kRows, stride = kWarp * shape.hidden_words;
  if (j >= shape.hidden) return;
  float sums[kRows];
  for (float& sum : sums) sum = biases[j];
  for (unsigned w = 0; w < shape.visible_words; ++w) {
    std::uint32_t any = 0, own[kRows];
#pragma unroll
    for (unsigned r = 0; r < kRows; ++r) {
      own[r] = first + r < phase.rows ? phase.visible[std::size_t{first + r} * shape.visible_words + w] : 0;
      any |= own[r];
    }
    for (; any != 0; any &= any - 1) {
      const unsigned bit = __ffs(static_cast<int>(any)) - 1;
      const float weight = transposed[std::size_t{w * kWarp + bit} * stride + j];
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r) {
        if ((own[r] >> bit & 1U) != 0) sums[r] += weight;
      }
    }
  }
#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) {
    if (first + r >= phase.rows) break;
    phase.hidden[std::size_t{first + r} * stride + j] = what == TrainHidden::probabilities ? sigmoid(sums[r]) : sums[r];
  }
}

/// log p(v_i | the others) = -softplus(log p(v with i changed) - log p(v)), of one i that stands for all. A block for
/// each row.
__global__ void __launch_bounds__(kThreads)
    pseudo_kernel(TrainShape shape, TrainNumbers rbm, TrainPhase data, TrainMetrics metrics) {
  __shared__ BlockSum<kThreads> sum_of_block;
  const std::size_t row = blockIdx.x;
  const Philox random = philox(metrics.offset, metrics.stream + row, metrics.seed);
  const auto i = static_cast<unsigned>(std::uint64_t{random.word[0]} * shape.visible >> 32);
  const bool on = (data.visible[row * shape.visible_words + i / kWarp] >> i % kWarp & 1U) != 0;
  const float sign = on ? -1.0F : 1.0F;
  float* const hidden = data.hidden + row * kWarp * shape.hidden_words;
  double change = 0.0;
  for (unsigned j = threadIdx.x; j < shape.hidden; j += kThreads) {
    const float a = hidden[j], after = a + sign * rbm.weights[std::size_t{j} * kWarp * shape.visible_words + i];
    change += fmaxf(after, 0.0F) - fmaxf(a, 0.0F) + (log1pf(expf(-fabsf(after))) - log1pf(expf(-fabsf(a))));
    hidden[j] = sigmoid(a);
  }
  const double log_ratio = sum_of_block(change) + sign * rbm.visible_bias[i];
  if (threadIdx.x != 0) return;
  metrics.pseudo[row] = -(fmax(log_ratio, 0.0) + log1p(exp(-fabs(log_ratio)))) * shape.visible;
}

/// Squared distances of some rows of data from P(v = 1 | probabilities of hidden units), of 128 visible units.
__global__ void __launch_bounds__(kThreads)
    error_kernel(TrainShape shape, TrainNumbers rbm, TrainPhase data, double* errors) {
  __shared__ BlockSum<kThreads> sum_of_block;
  __shared__ float hidden[kRows][kThreads];
  const unsigned i = blockIdx.x * kThreads + threadIdx.x, first = blockIdx.y * kRows;
  const unsigned stride = kWarp * shape.hidden_words;
  float sums[kRows];
  for (float& sum : sums) sum = i < shape.visible ? rbm.visible_bias[i] : 0.0F;
  for (unsigned from = 0; from < shape.hidden; from += kThreads) {
    const unsigned count = min(kThreads, shape.hidden - from);
    __syncthreads();
    for (unsigned r = 0; r < kRows && threadIdx.x < count; ++r) {
      hidden[r][threadIdx.x] =
          first + r < data.rows ? data.hidden[std::size_t{first + r} * stride + from + threadIdx.x] : 0.0F;
    }
    __syncthreads();
    for (unsigned j = 0; i < shape.visible && j < count; ++j) {
      const float weight = rbm.weights[std::size_t{from + j} * kWarp * shape.visible_words + i];
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r) sums[r] += weight * hidden[r][j];
    }
  }
  for (unsigned r = 0; r < kRows && first + r < data.rows; ++r) {
    double squared = 0.0;
    if (i < shape.visible) {
      const std::uint32_t word = data.visible[std::size_t{first + r} * shape.visible_words + i / kWarp];
      const float difference = static_cast<float>(word >> i % kWarp & 1U) - sigmoid(sums[r]);
      squared = difference * difference;
    }
    const double sum = sum_of_block(squared);
    if (threadIdx.x == 0) errors[std::size_t{first + r} * gridDim.x + blockIdx.x] = sum / shape.visible;
  }
}

__global__ void __launch_bounds__(kThreads) mean_kernel(TrainMetrics metrics, std::uint32_t rows, std::uint32_t tiles) {
  __shared__ BlockSum<kThreads> sum_of_block;
  double pseudo = 0.0, error = 0.0;
  for (unsigned r = threadIdx.x; r < rows; r += kThreads) {
    pseudo += metrics.pseudo[r];
    for (unsigned tile = 0; tile < tiles; ++tile) error += metrics.errors[std::size_t{r} * tiles + tile];
  }
  pseudo = sum_of_block(pseudo);
  error = sum_of_block(error);
  if (threadIdx.x != 0) return;
  metrics.means[0] = pseudo / rows;
  metrics.means[1] = error / rows;
}

/// Where a number and its moments are.
struct AdamNumbers {
  float* rbm;
  float* first;
  float* second;
  float* gradient;
};

/// Follows the gradient, and gives the number that it comes to.
__device__ float adam_step(const AdamNumbers& numbers, float g, const TrainAdam& adam) {
  const float m = *numbers.first + adam.first_fresh * (g - *numbers.first);
  const float s = *numbers.second + adam.second_fresh * (g * g - *numbers.second);
  *numbers.first = fabsf(m) < adam.tiny ? 0.0F : m;
  *numbers.second = s < adam.tiny ? 0.0F : s;
  *numbers.gradient = g;
  return *numbers.rbm += adam.scale * m / (sqrtf(s * adam.second_correction) + adam.epsilon);
}

constexpr unsigned kTile = 32;  // units of either layer
constexpr unsigned kEach = 4;   // hidden units of a warp
constexpr unsigned kTileThreads = kTile / kEach * kWarp;

/// <h v> of data less that of chains: a thread has a visible unit and four hidden ones, so a word of bits is what a
/// warp needs to know of a row.
__global__ void __launch_bounds__(kTileThreads)
    weights_kernel(TrainShape shape, TrainLearned learned, TrainPhase data, TrainPhase chains, TrainAdam adam) {
  __shared__ float hidden[kTile][kTile];      // [row][hidden unit]
  __shared__ float turned[kTile][kTile + 1];  // weights, by visible unit
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const unsigned i = blockIdx.x * kTile + lane, first_hidden = blockIdx.y * kTile;
  const unsigned stride = kWarp * shape.hidden_words;
  const auto add = [&](const TrainPhase& phase, float(&sums)[kEach]) {
    for (unsigned first = 0; first < phase.rows; first += kTile) {
      __syncthreads();
      for (unsigned k = threadIdx.x; k < kTile * kTile; k += kTileThreads) {
        const unsigned r = first + k / kTile, j = first_hidden + k % kTile;
        const bool is_there = r < phase.rows && j < shape.hidden;
        hidden[k / kTile][k % kTile] = is_there ? phase.hidden[std::size_t{r} * stride + j] : 0.0F;
      }
      __syncthreads();
      const unsigned count = min(kTile, phase.rows - first);
      for (unsigned r = 0; r < count; ++r) {
        if ((phase.visible[std::size_t{first + r} * shape.visible_words + blockIdx.x] >> lane & 1U) == 0) continue;
#pragma unroll
        for (unsigned k = 0; k < kEach; ++k) sums[k] += hidden[r][warp * kEach + k];
      }
    }
  };
  float up[kEach] = {}, down[kEach] = {};
  add(data, up);
  add(chains, down);
#pragma unroll
  for (unsigned k = 0; k < kEach; ++k) {
    const unsigned j = first_hidden + warp * kEach + k;
    if (i >= shape.visible || j >= shape.hidden) continue;
    const std::size_t at = std::size_t{j} * kWarp * shape.visible_words + i;
    const float g = up[k] / static_cast<float>(data.rows) - down[k] / static_cast<float>(chains.rows);
    const AdamNumbers numbers{learned.rbm.weights + at, learned.first.weights + at, learned.second.weights + at,
                              learned.gradient.weights + at};
    turned[lane][warp * kEach + k] = adam_step(numbers, g, adam);
  }
  __syncthreads();
  for (unsigned k = warp; k < kTile; k += kTileThreads / kWarp) {
    const unsigned to = blockIdx.x * kTile + k, j = first_hidden + lane;
    if (to < shape.visible && j < shape.hidden) learned.transposed[std::size_t{to} * stride + j] = turned[k][lane];
  }
}

/// Means of units of data less those of chains; visible units come first.
__global__ void __launch_bounds__(kThreads)
    biases_kernel(TrainShape shape, TrainLearned learned, TrainPhase data, TrainPhase chains, TrainAdam adam) {
  const unsigned unit = blockIdx.x * kThreads + threadIdx.x;
  if (unit >= shape.visible + shape.hidden) return;
  const bool is_visible = unit < shape.visible;
  const unsigned at = is_visible ? unit : unit - shape.visible;
  const auto mean = [&](const TrainPhase& phase) {
    double sum = 0.0;
    for (unsigned r = 0; r < phase.rows; ++r) {
      sum += is_visible ? phase.visible[std::size_t{r} * shape.visible_words + at / kWarp] >> at % kWarp & 1U
                        : phase.hidden[std::size_t{r} * kWarp * shape.hidden_words + at];
    }
    return sum / phase.rows;
  };
  const auto of = [&](const TrainNumbers& numbers) {
    return (is_visible ? numbers.visible_bias : numbers.hidden_bias) + at;
  };
  const AdamNumbers numbers{of(learned.rbm), of(learned.first), of(learned.second), of(learned.gradient)};
  adam_step(numbers, static_cast<float>(mean(data) - mean(chains)), adam);
}

/// A warp for each unit; a thread makes whole fragments.
__global__ void __launch_bounds__(kThreads) round_kernel(TrainLayer layer) {
  const unsigned unit = blockIdx.x * (kThreads / kWarp) + threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  if (unit >= layer.units) return;
  const float* const row = layer.weights + std::size_t{unit} * kWarp * layer.input_words;
  double largest = 0.0, total = 0.0;
  for (unsigned k = lane; k < layer.inputs; k += kWarp) {
    const double size = fabs(static_cast<double>(row[k]));
    largest = fmax(largest, size);
    total += size;
  }
  for (unsigned far = kWarp / 2; far > 0; far /= 2) {
    largest = fmax(largest, __shfl_xor_sync(~0U, largest, far));
    total += __shfl_xor_sync(~0U, total, far);
  }
  const double bias = layer.biases[unit];
  const double step = gibbs_step(largest, total + fabs(bias));
  GibbsErrors errors;
  const unsigned t = lane % 4;
  for (unsigned word = lane / 4; word < layer.input_words; word += kWarp / 4) {
    GibbsFragment fragment{};
#pragma unroll
    for (unsigned byte = 0; byte < 4; ++byte) {
      const float2 two = *reinterpret_cast<const float2*>(row + word * kWarp + 8 * byte + 2 * t);
      put_weight(fragment, 0, byte, round_weight(two.x, step, errors));
      put_weight(fragment, 1, byte, round_weight(two.y, step, errors));
    }
    layer.fragments[(std::size_t{unit / 8} * layer.input_words + word) * kWarp + unit % 8 * 4 + t] = fragment;
  }
  for (unsigned far = kWarp / 2; far > 0; far /= 2) {
    errors.low += __shfl_xor_sync(~0U, errors.low, far);
    errors.high += __shfl_xor_sync(~0U, errors.high, far);
  }
  const std::int32_t start = round_weight(bias, step, errors);
  if (lane == 0) layer.bounds[unit] = make_unit({start, step, errors}, {}, 0.0);
}

}  // namespace

void launch_train_gather(const TrainShape& shape, const TrainRows& rows, std::uint32_t* batch, std::uint32_t* chains,
                         cudaStream_t stream) {
  gather_kernel<<<rows.rows, kThreads, 0, stream>>>(shape, rows, batch, chains);
}

void launch_train_hidden(const TrainShape& shape, const TrainNumbers& rbm, const float* transposed,
                         const TrainPhase& phase, TrainHidden what, cudaStream_t stream) {
  const dim3 blocks(blocks_for(shape.hidden, kThreads), blocks_for(phase.rows, kRows));
  hidden_kernel<<<blocks, kThreads, 0, stream>>>(shape, rbm.hidden_bias, transposed, phase, what);
}

std::uint32_t train_tiles(const TrainShape& shape) { return blocks_for(shape.visible, kThreads); }

void launch_train_metrics(const TrainShape& shape, const TrainNumbers& rbm, const TrainPhase& data,
                          const TrainMetrics& metrics, cudaStream_t stream) {
  pseudo_kernel<<<data.rows, kThreads, 0, stream>>>(shape, rbm, data, metrics);
  const dim3 blocks(train_tiles(shape), blocks_for(data.rows, kRows));
  error_kernel<<<blocks, kThreads, 0, stream>>>(shape, rbm, data, metrics.errors);
  mean_kernel<<<1, kThreads, 0, stream>>>(metrics, data.rows, train_tiles(shape));
}

void launch_train_update(const TrainShape& shape, const TrainLearned& learned, const TrainPhase& data,
                         const TrainPhase& chains, const TrainAdam& adam, cudaStream_t stream) {
  const dim3 blocks(blocks_for(shape.visible, kTile), blocks_for(shape.hidden, kTile));
  weights_kernel<<<blocks, kTileThreads, 0, stream>>>(shape, learned, data, chains, adam);
  const unsigned units = shape.visible + shape.hidden;
  biases_kernel<<<blocks_for(units, kThreads), kThreads, 0, stream>>>(shape, learned, data, chains, adam);
}

void launch_train_round(const TrainLayer& layer, cudaStream_t stream) {
  round_kernel<<<blocks_for(layer.units, kThreads / kWarp), kThreads, 0, stream>>>(layer);
}

}  // namespace poise::cuda
