/// Weights in tiny units and in half precision; steps as graphs of launches.
#include "engines/cuda/rbm/rbm_chains.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "engines/cuda/common/call.hpp"
#include "engines/cuda/common/launch_graph.hpp"
#include "engines/cuda/gradient/gradient_memory.hpp"
#include "engines/cuda/rbm/rbm_kernels.hpp"

namespace poise {

using cuda::Array;

namespace {

constexpr std::uint64_t kStepsOfGraph = 32;
// Measured: parts of a few hundred chains gain nothing, and more than three no more.
constexpr std::size_t kLeastInPart = 1024;
constexpr std::size_t kMostParts = 3;
constexpr float kLargestHalf = 60000.0F;

std::size_t padded(std::size_t count) { return cuda::padded_to(count, cuda::kProductTile); }

/// A power of two, such that no sum of weights and biases leaves 62 bits.
double find_unit(const RbmWeights& weights) {
  double largest = 1e-30;
  for (Index j = 0; j < weights.hidden; ++j) {
    double sum = std::abs(static_cast<double>(weights.hidden_bias[j]));
    for (Index i = 0; i < weights.visible; ++i) {
      sum += std::abs(static_cast<double>(weights.weights[std::size_t{j} * weights.visible + i]));
    }
    largest = std::max(largest, sum);
  }
  double all = (largest + 1.0) * weights.hidden;  // softplus is summed too
  for (const float bias : weights.visible_bias) all += std::abs(static_cast<double>(bias));
  return std::ldexp(1.0, std::ilogb(all) + 2 - 62);
}

std::int64_t to_units(double value, double unit) { return std::llround(value / unit); }

}  // namespace

struct CudaRbmChains::OnDevice {
  OnDevice(const RbmWeights& rbm, cuda::GradientMemory& walk_memory, std::size_t chains)
      : memory(walk_memory),
        visible(rbm.visible),
        visible_stride(cuda::padded_columns(rbm.visible)),
        hidden_stride(padded(rbm.hidden)),
        unit(find_unit(rbm)),
        weights(std::size_t{rbm.visible} * hidden_stride),
        hidden_bias(hidden_stride),
        visible_bias(rbm.visible),
        bias_gradients(visible_stride),
        halves(visible_stride * hidden_stride),
        half(chains),
        activations(2 * chains * hidden_stride),
        linear(2 * chains),
        log_prob(2 * chains),
        gradients{Array<__half>(padded(chains) * visible_stride), Array<__half>(padded(chains) * visible_stride)},
        on(padded(chains) * hidden_stride),
        real_sums(chains),
        whole_sums(2 * chains) {
    upload(rbm);
    half.clear();
    for (Array<__half>& some : gradients) some.clear();
    on.clear();
    share_out();
  }

  /// Parts of the chains, which the device works on side by side: while one waits for memory, another one multiplies.
  struct Part {
    cuda::RbmRange range;
    cuda::CudaStream stream;
    std::array<cuda::Graph, 2> graphs{};  // by where gradients are
  };
  /// Equal but for the last, and of whole tiles of the product.
  void share_out() {
    const std::size_t chains = half.size();
    const std::size_t count = std::clamp<std::size_t>(chains / kLeastInPart, 1, kMostParts);
    const std::size_t each = padded((chains + count - 1) / count);
    for (std::size_t first = 0; first < chains; first += each) {
      parts.push_back(std::make_unique<Part>());
      parts.back()->range = {static_cast<std::uint32_t>(first),
                             static_cast<std::uint32_t>(std::min(each, chains - first))};
    }
  }

  void upload(const RbmWeights& rbm) {
    std::vector<std::int64_t> units(std::size_t{visible} * hidden_stride, 0);
    std::vector<__half> small(visible_stride * hidden_stride, __float2half(0.0F));
    for (Index i = 0; i < visible; ++i) {
      for (Index j = 0; j < rbm.hidden; ++j) {
        const float weight = rbm.weights[std::size_t{j} * visible + i];
        units[i * hidden_stride + j] = to_units(weight, unit);
        small[i * hidden_stride + j] = __float2half(std::clamp(weight, -kLargestHalf, kLargestHalf));
      }
    }
    weights.upload(units);
    halves.upload(small);
    // Units that fill the stride are never on.
    std::vector<std::int64_t> bias(hidden_stride, -(std::int64_t{1} << 61));
    for (Index j = 0; j < rbm.hidden; ++j) bias[j] = to_units(rbm.hidden_bias[j], unit);
    hidden_bias.upload(bias);
    bias.resize(visible);
    for (Index i = 0; i < visible; ++i) bias[i] = to_units(rbm.visible_bias[i], unit);
    visible_bias.upload(bias);
    std::vector<float> reals(visible_stride, 0.0F);
    std::copy(rbm.visible_bias.begin(), rbm.visible_bias.end(), reals.begin());
    bias_gradients.upload(reals);
  }

  [[nodiscard]] cuda::RbmView rbm() const {
    return {visible,
            static_cast<std::uint32_t>(visible_stride),
            static_cast<std::uint32_t>(hidden_stride),
            unit,
            static_cast<float>(unit),
            static_cast<float>(1.0 / unit),
            weights.data(),
            hidden_bias.data(),
            visible_bias.data(),
            bias_gradients.data()};
  }
  [[nodiscard]] cuda::RbmChainsView chains() const {
    return {memory.view(),
            half.data(),
            activations.data(),
            linear.data(),
            log_prob.data(),
            gradients[present].data(),
            gradients[1 - present].data(),
            on.data()};
  }
  /// Those of proposals, or of states that are dealt with as if they were.
  void find_gradients(const cuda::RbmRange& range, cudaStream_t stream) const {
    const std::size_t first = range.first;
    cuda::launch_product(
        {on.data() + first * hidden_stride, halves.data(), gradients[1 - present].data() + first * visible_stride,
         range.count, static_cast<std::uint32_t>(visible_stride), static_cast<std::uint32_t>(hidden_stride)},
        stream);
  }
  void launch_step(const Part& part, cuda::GradientPhases phases, cudaStream_t stream) const {
    cuda::launch_rbm_step(rbm(), chains(), part.range, memory.law, phases, stream);
  }
  /// When all proposals are decided about, gradients of states are where those of the proposals were.
  void turn() { present = 1 - present; }

  void propose() {
    for (const auto& part : parts) {
      launch_step(*part, {false, true}, part->stream);
      find_gradients(part->range, part->stream);
    }
  }
  /// Decides about proposals and makes the next ones, `steps` times.
  void go_on(const Part& part, std::uint64_t steps, cudaStream_t stream) {
    const unsigned before = present;
    for (std::uint64_t k = 0; k < steps; ++k) {
      launch_step(part, {true, true}, stream);
      turn();
      find_gradients(part.range, stream);
    }
    present = before;
  }
  /// An even number of steps, so gradients are back where they were.
  void go_on_by_graphs() {
    static_assert(kStepsOfGraph % 2 == 0);
    for (const auto& part : parts) {
      cuda::Graph& graph = part->graphs[present];
      if (!graph.is_made()) graph = cuda::Graph([&](cudaStream_t stream) { go_on(*part, kStepsOfGraph, stream); });
      graph.launch(part->stream);
    }
  }
  /// A step is decided when the next one is proposed; the last one by itself.
  void make_steps(std::uint64_t steps) {
    propose();
    std::uint64_t left = steps - 1;
    for (; left >= kStepsOfGraph; left -= kStepsOfGraph) go_on_by_graphs();
    for (const auto& part : parts) go_on(*part, left, part->stream);
    if (left % 2 == 1) turn();
    for (const auto& part : parts) launch_step(*part, {true, false}, part->stream);
    turn();
  }
  void wait(const char* what) const {
    cuda::check_launch(what);
    for (const auto& part : parts) cuda::check(cudaStreamSynchronize(part->stream), what);
  }
  void forget_graphs() {
    for (const auto& part : parts) part->graphs = {};
  }
  /// The stream of work on all chains.
  [[nodiscard]] cudaStream_t stream() const { return parts.front()->stream; }

  cuda::GradientMemory& memory;
  std::uint32_t visible;
  std::size_t visible_stride, hidden_stride;
  double unit;
  std::vector<std::unique_ptr<Part>> parts;
  unsigned present = 0;  // where gradients of states are
  bool is_prepared = false;

  Array<std::int64_t> weights, hidden_bias, visible_bias;
  Array<float> bias_gradients;
  Array<__half> halves;
  Array<std::uint8_t> half;
  Array<std::int64_t> activations, linear;
  Array<std::int64_t> log_prob;
  std::array<Array<__half>, 2> gradients;
  Array<__half> on;
  Array<double> real_sums;
  Array<std::int64_t> whole_sums;
};

CudaRbmChains::CudaRbmChains(const RbmWeights& weights, CudaGradientForm form, std::size_t chains, std::uint64_t seed,
                             std::uint64_t first_chain)
    : CudaGradientChains({form, chains, weights.visible, seed, first_chain}),
      device_(std::make_unique<OnDevice>(weights, memory(), chains)) {}

CudaRbmChains::~CudaRbmChains() = default;

// A graph of launches has the function and the counts as they were.

void CudaRbmChains::set_function(const BalancingFunction& function) {
  CudaGradientChains::set_function(function);
  device_->forget_graphs();
}

void CudaRbmChains::start_counting() {
  CudaGradientChains::start_counting();
  device_->forget_graphs();
}

void CudaRbmChains::prepare() const {
  if (memory().state.to_device(false)) device_->is_prepared = false;
  if (device_->is_prepared) return;
  cuda::launch_rbm_prepare(device_->rbm(), device_->chains(), device_->stream());
  device_->find_gradients({0, static_cast<std::uint32_t>(chains_)}, device_->stream());
  device_->turn();
  device_->wait("chains were prepared");
  device_->is_prepared = true;
}

void CudaRbmChains::advance(std::uint64_t steps) {
  if (steps == 0) return;
  prepare();
  static_cast<void>(memory().state.to_device(true));
  device_->make_steps(steps);
  device_->wait("steps were made");
  steps_ += steps;
}

CudaRbmChains::Sums CudaRbmChains::sums() const {
  prepare();
  std::int64_t* const whole = device_->whole_sums.data();
  cuda::launch_rbm_sums(device_->rbm(), device_->chains(),
                        {device_->real_sums.data(), whole, whole + chains_, memory().reference.data()},
                        device_->stream());
  cuda::check_launch("states were summed");
  Sums out{std::vector<double>(chains_), {}, {}};
  device_->real_sums.download(out.log_prob);
  std::vector<std::int64_t> both(2 * chains_);
  device_->whole_sums.download(both);
  const auto middle = both.begin() + static_cast<std::ptrdiff_t>(chains_);
  out.on.assign(both.begin(), middle);
  out.different.assign(middle, both.end());
  return out;
}

CudaRbmChains::Law CudaRbmChains::law() const {
  prepare();
  const Array<std::uint64_t> found(chains_ * variables_);
  cuda::launch_rbm_law(device_->rbm(), device_->chains(), memory().law, found.data(), device_->stream());
  cuda::check_launch("probabilities were asked for");
  Law out{std::vector<double>(chains_), std::vector<std::uint64_t>(found.size())};
  found.download(out.proposal);
  std::vector<std::int64_t> both(2 * chains_);
  device_->log_prob.download(both);
  std::vector<std::uint8_t> half(chains_);
  device_->half.download(half);
  for (std::size_t c = 0; c < chains_; ++c)
    out.log_prob[c] = device_->unit * static_cast<double>(both[half[c] * chains_ + c]);
  return out;
}

}  // namespace poise
