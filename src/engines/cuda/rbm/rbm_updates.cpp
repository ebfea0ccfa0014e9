/// Contrastive divergence on a GPU, an update after the other: data, metrics, chains, gradient and Adam.
///
/// Chains are exact (rbm_gibbs_chains.hpp); probabilities and gradients are in single precision.
#include "engines/cuda/engines.hpp"

#include <algorithm>
#include <array>

#include <poise/extend/base/rng.hpp>
#include "models/rbm/rbm_layer.hpp"

#include "engines/cuda/common/call.hpp"
#include "engines/cuda/common/launch_graph.hpp"
#include "engines/cuda/rbm/rbm_gibbs_memory.hpp"
#include "engines/cuda/rbm/rbm_train_kernels.hpp"

namespace poise {

using cuda::Array;
using cuda::RbmGibbsLayer;
using cuda::zeros;

namespace {

constexpr std::uint32_t kWordBits = 32;
/// Exact sums of chains are in this unit: with weights of up to 75 they have far less than 62 bits.
constexpr double kUnit = 0x1p-40;
/// Metrics take random numbers of a row from far behind those of its chain.
constexpr std::uint64_t kMetricsOffset = std::uint64_t{1} << 63;

/// What chains read of a layer.
struct RoundedLayer {
  RoundedLayer(Index the_units, Index the_inputs)
      : units(the_units),
        inputs(the_inputs),
        fragments(zeros<cuda::GibbsFragment>(RbmGibbsLayer::words(units) * kWordBits / RbmGibbsLayer::kFragment *
                                             RbmGibbsLayer::words(inputs) * RbmGibbsLayer::kLanes)),
        bounds(zeros<cuda::GibbsUnit>(RbmGibbsLayer::words(units) * kWordBits)) {}
  [[nodiscard]] std::uint32_t input_words() const { return static_cast<std::uint32_t>(RbmGibbsLayer::words(inputs)); }
  [[nodiscard]] cuda::TrainLayer rounded(const float* weights, const float* biases) const {
    return {units, inputs, input_words(), weights, biases, fragments.data(), bounds.data()};
  }
  [[nodiscard]] cuda::GibbsLayerView view(const float* weights, const float* biases, std::uint32_t slice) const {
    return {units,
            static_cast<std::uint32_t>(RbmGibbsLayer::words(units)),
            input_words(),
            slice,
            fragments.data(),
            bounds.data(),
            weights,
            biases};
  }

  Index units;
  Index inputs;
  Array<cuda::GibbsFragment> fragments;
  Array<cuda::GibbsUnit> bounds;
};

/// Numbers of an RBM, or as many moments.
struct NumbersOnDevice {
  explicit NumbersOnDevice(const cuda::TrainShape& shape)
      : weights(zeros<float>(std::size_t{shape.hidden} * shape.visible_words * kWordBits)),
        visible_bias(zeros<float>(shape.visible)),
        hidden_bias(zeros<float>(shape.hidden)) {}
  [[nodiscard]] cuda::TrainNumbers view() const { return {weights.data(), visible_bias.data(), hidden_bias.data()}; }

  Array<float> weights, visible_bias, hidden_bias;
};

std::vector<std::uint32_t> bits_of(std::span<const Value> levels, std::size_t visible) {
  const std::size_t words = RbmGibbsLayer::words(static_cast<Index>(visible));
  std::vector<std::uint32_t> bits(levels.size() / visible * words, 0);
  for (std::size_t r = 0; r < levels.size() / visible; ++r) {
    cuda::pack_bits(levels.subspan(r * visible, visible), std::span(bits).subspan(r * words, words));
  }
  return bits;
}

/// All that an update reads and writes.
struct TrainMemory {
  using Part = RbmUpdates::Part;

  TrainMemory(Index visible, Index hidden, std::size_t batch)
      : shape{visible, hidden, static_cast<std::uint32_t>(RbmGibbsLayer::words(visible)),
              static_cast<std::uint32_t>(RbmGibbsLayer::words(hidden))},
        numbers{NumbersOnDevice(shape), NumbersOnDevice(shape), NumbersOnDevice(shape), NumbersOnDevice(shape)},
        transposed(zeros<float>(std::size_t{visible} * shape.hidden_words * kWordBits)),
        hidden_layer(hidden, visible),
        visible_layer(visible, hidden),
        batch_visible(batch * shape.visible_words),
        batch_hidden(batch * shape.hidden_words * kWordBits),
        chain_visible(zeros<std::uint32_t>(cuda::padded_rows(batch) * shape.visible_words)),
        chain_units(zeros<std::uint32_t>(cuda::padded_rows(batch) * shape.hidden_words)),
        chain_hidden(batch * shape.hidden_words * kWordBits),
        steps(1),
        pseudo(batch),
        errors(batch * cuda::train_tiles(shape)),
        means(2) {}
  TrainMemory(const TrainMemory&) = delete;
  TrainMemory& operator=(const TrainMemory&) = delete;

  [[nodiscard]] const NumbersOnDevice& part(Part which) const { return numbers[static_cast<unsigned>(which)]; }
  [[nodiscard]] cuda::TrainLearned learned() const {
    return {part(Part::weights).view(), part(Part::first_moment).view(), part(Part::second_moment).view(),
            part(Part::gradient).view(), transposed.data()};
  }
  void round() {
    const NumbersOnDevice& rbm = part(Part::weights);
    cuda::launch_train_round(hidden_layer.rounded(rbm.weights.data(), rbm.hidden_bias.data()), stream);
    cuda::launch_train_round(visible_layer.rounded(transposed.data(), rbm.visible_bias.data()), stream);
    is_rounded = true;
  }
  /// Block Gibbs of so many chains.
  [[nodiscard]] cuda::GibbsView gibbs(std::size_t chains, std::uint64_t seed) const {
    const NumbersOnDevice& rbm = part(Part::weights);
    const auto first_visible = static_cast<std::uint32_t>(RbmLayer::padded(shape.hidden) / kWordBits);
    const auto row = static_cast<std::uint64_t>(Stream::training_row);
    return {hidden_layer.view(rbm.weights.data(), rbm.hidden_bias.data(), 0),
            visible_layer.view(transposed.data(), rbm.visible_bias.data(), first_visible),
            {seed, row, static_cast<std::uint64_t>(Stream::training_digits) - row,
             static_cast<std::uint32_t>(RbmLayers::random_words(shape.visible, shape.hidden)), steps.data()},
            kUnit,
            1.0 / kUnit,
            {static_cast<std::uint32_t>(chains), chain_visible.data(), chain_units.data(), nullptr, nullptr}};
  }

  cuda::TrainShape shape;
  std::array<NumbersOnDevice, 4> numbers;  // by Part
  Array<float> transposed;                 // the weights, [visible][hidden]
  RoundedLayer hidden_layer, visible_layer;
  bool is_rounded = false;
  Array<std::uint32_t> data;
  Array<std::uint64_t> order;
  Array<std::uint32_t> batch_visible;
  Array<float> batch_hidden;
  Array<std::uint32_t> chain_visible, chain_units;
  Array<float> chain_hidden;  // probabilities
  Array<std::uint64_t> steps;
  Array<double> pseudo, errors, means;
  cuda::CudaStream stream;
};

class CudaRbmUpdates final : public RbmUpdates {
 public:
  CudaRbmUpdates(Index visible, Index hidden, const Options& options)
      : options_(options), visible_(visible), hidden_(hidden), device_(visible, hidden, options.batch) {}

  void set_data(std::span<const Value> data, std::span<const std::uint64_t> order) override;
  Metrics step(std::size_t first, std::size_t rows, std::uint64_t update, const Adam& adam) override;
  void set(Part part, const RbmWeights& numbers) override;
  void get(Part part, RbmWeights& numbers) const override;
  void set_chains(std::span<const Value> levels) override;
  [[nodiscard]] std::vector<Value> chains() const override;

 private:
  Options options_;
  Index visible_;
  Index hidden_;
  TrainMemory device_;
};

void CudaRbmUpdates::set_data(std::span<const Value> data, std::span<const std::uint64_t> order) {
  const std::vector<std::uint32_t> bits = bits_of(data, visible_);
  if (device_.data.size() != bits.size()) device_.data = Array<std::uint32_t>(bits.size());
  if (device_.order.size() != order.size()) device_.order = Array<std::uint64_t>(order.size());
  device_.data.upload(bits);
  device_.order.upload(order);
}

CudaRbmUpdates::Metrics CudaRbmUpdates::step(std::size_t first, std::size_t rows, std::uint64_t update,
                                             const Adam& adam) {
  TrainMemory& device = device_;
  const bool kept = options_.chains == Chains::kept;
  const auto count = static_cast<std::uint32_t>(rows);
  const auto chains = kept ? static_cast<std::uint32_t>(options_.batch) : count;
  const cuda::TrainNumbers rbm = device.part(Part::weights).view();
  const cuda::TrainPhase data{device.batch_visible.data(), device.batch_hidden.data(), count};
  const cuda::TrainPhase model{device.chain_visible.data(), device.chain_hidden.data(), chains};
  const std::uint64_t steps_before = (update - 1) * options_.gibbs_steps;
  cuda::check(
      cudaMemcpyAsync(device.steps.data(), &steps_before, sizeof steps_before, cudaMemcpyHostToDevice, device.stream),
      "data were copied to it");
  if (!device.is_rounded) device.round();
  cuda::launch_train_gather(device.shape, {device.data.data(), device.order.data() + first, count},
                            device.batch_visible.data(), kept ? nullptr : device.chain_visible.data(), device.stream);
  cuda::launch_train_hidden(device.shape, rbm, device.transposed.data(), data, cuda::TrainHidden::activations,
                            device.stream);
  cuda::launch_train_metrics(device.shape, rbm, data,
                             {options_.seed, static_cast<std::uint64_t>(Stream::training_row), kMetricsOffset + update,
                              device.pseudo.data(), device.errors.data(), device.means.data()},
                             device.stream);
  const cuda::GibbsView gibbs = device.gibbs(chains, options_.seed);
  for (std::uint64_t k = 0; k < options_.gibbs_steps; ++k) {
    cuda::launch_gibbs_sweep(gibbs, static_cast<std::uint32_t>(k), device.stream);
  }
  cuda::launch_train_hidden(device.shape, rbm, device.transposed.data(), model, cuda::TrainHidden::probabilities,
                            device.stream);
  cuda::launch_train_update(
      device.shape, device.learned(), data, model,
      {adam.scale, adam.second_correction, adam.first_fresh, adam.second_fresh, adam.epsilon, adam.tiny},
      device.stream);
  device.round();
  cuda::check_launch("an update was started");
  double means[2] = {};
  cuda::check(cudaMemcpyAsync(means, device.means.data(), sizeof means, cudaMemcpyDeviceToHost, device.stream),
              "data were copied from it");
  cuda::check(cudaStreamSynchronize(device.stream), "an update was made");
  return {means[1], means[0]};
}

void CudaRbmUpdates::set(Part part, const RbmWeights& numbers) {
  NumbersOnDevice& to = device_.numbers[static_cast<unsigned>(part)];
  const std::size_t stride = std::size_t{device_.shape.visible_words} * kWordBits;
  std::vector<float> rows(hidden_ * stride, 0.0F);
  for (Index j = 0; j < hidden_; ++j) {
    std::copy_n(numbers.weights.begin() + std::ptrdiff_t{j} * visible_, visible_, rows.begin() + j * stride);
  }
  to.weights.upload(rows);
  to.visible_bias.upload(numbers.visible_bias);
  to.hidden_bias.upload(numbers.hidden_bias);
  if (part != Part::weights) return;
  const std::size_t other = std::size_t{device_.shape.hidden_words} * kWordBits;
  std::vector<float> columns(visible_ * other, 0.0F);
  for (Index j = 0; j < hidden_; ++j) {
    for (Index i = 0; i < visible_; ++i) columns[i * other + j] = numbers.weights[std::size_t{j} * visible_ + i];
  }
  device_.transposed.upload(columns);
  device_.is_rounded = false;
}

void CudaRbmUpdates::get(Part part, RbmWeights& numbers) const {
  const NumbersOnDevice& from = device_.part(part);
  const std::size_t stride = std::size_t{device_.shape.visible_words} * kWordBits;
  const std::vector<float> rows = from.weights.download();
  for (Index j = 0; j < hidden_; ++j) {
    std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(j * stride), visible_,
                numbers.weights.begin() + std::ptrdiff_t{j} * visible_);
  }
  from.visible_bias.download(numbers.visible_bias);
  from.hidden_bias.download(numbers.hidden_bias);
}

void CudaRbmUpdates::set_chains(std::span<const Value> levels) {
  device_.chain_visible.upload(bits_of(levels, visible_));
}

std::vector<Value> CudaRbmUpdates::chains() const {
  const std::size_t words = device_.shape.visible_words;
  const std::vector<std::uint32_t> bits = device_.chain_visible.download();
  std::vector<Value> levels(options_.batch * visible_);
  for (std::size_t r = 0; r < options_.batch; ++r) {
    cuda::unpack_bits(std::span(bits).subspan(r * words, words), std::span(levels).subspan(r * visible_, visible_));
  }
  return levels;
}

}  // namespace

std::unique_ptr<RbmUpdates> make_cuda_rbm_updates(Index visible, Index hidden, const RbmUpdates::Options& options) {
  return std::make_unique<CudaRbmUpdates>(visible, hidden, options);
}

}  // namespace poise
