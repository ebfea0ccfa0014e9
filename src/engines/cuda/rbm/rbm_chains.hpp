/// Chains of a restricted Boltzmann machine on a GPU: proposals from gradients of log p, of one change or of many.
/// Weights are in tiny units and in half precision; steps are graphs of launches.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "engines/cuda/common/launch_graph.hpp"
#include "engines/cuda/gradient/gradient_chains.hpp"
#include "engines/cuda/rbm/rbm_kernels.hpp"
#include "models/rbm/rbm_weights.hpp"

namespace poise {

class CudaRbmChains final : public CudaGradientChains {
 public:
  /// Throws an InputError where the GPU has too little memory.
  CudaRbmChains(const RbmWeights& rbm, CudaGradientForm form, std::size_t chains, std::uint64_t seed,
                std::uint64_t first_chain)
      : CudaGradientChains({form, chains, rbm.visible, seed, first_chain}),
        visible_stride_(cuda::padded_columns(rbm.visible)),
        hidden_stride_(padded(rbm.hidden)),
        unit_(find_unit(rbm)),
        weights_(std::size_t{rbm.visible} * hidden_stride_),
        hidden_bias_(hidden_stride_),
        visible_bias_(rbm.visible),
        bias_gradients_(visible_stride_),
        halves_(visible_stride_ * hidden_stride_),
        half_(cuda::zeros<std::uint8_t>(chains)),
        activations_(2 * chains * hidden_stride_),
        linear_(2 * chains),
        log_prob_(2 * chains),
        gradients_{cuda::zeros<__half>(padded(chains) * visible_stride_),
                   cuda::zeros<__half>(padded(chains) * visible_stride_)},
        on_(cuda::zeros<__half>(padded(chains) * hidden_stride_)),
        real_sums_(chains),
        whole_sums_(2 * chains) {
    upload(rbm);
    share_out();
  }

  // A graph of launches has the function and the counts as they were.

  void set_function(const BalancingFunction& function) {
    CudaGradientChains::set_function(function);
    forget_graphs();
  }
  void start_counting() {
    CudaGradientChains::start_counting();
    forget_graphs();
  }

  /// Returns when the steps are made. A step is decided when the next one is proposed; the last one by itself.
  void advance(std::uint64_t steps) {
    if (steps == 0) return;
    prepare();
    state_.to_device(true);
    if (changes_many()) {
      make_steps_and_local_ones(steps);
    } else {
      make_steps(steps);
    }
    wait("steps were made");
    steps_ += steps;
  }

  [[nodiscard]] std::uint64_t local_ratios() const {
    return changes_many() ? cuda::local_steps_before(steps_) * cuda::local_tries(variables_) : 0;
  }

  struct Sums {
    std::vector<double> log_prob;
    std::vector<std::int64_t> on;
    std::vector<std::int64_t> different;  ///< units that are not as in the reference
  };
  [[nodiscard]] Sums sums() const {
    prepare();
    std::int64_t* const whole = whole_sums_.data();
    cuda::launch_rbm_sums(rbm(), view(), {real_sums_.data(), whole, whole + chains_, reference_.data()}, stream());
    cuda::check_launch("states were summed");
    const std::vector<std::int64_t> both = whole_sums_.download();
    const auto middle = both.begin() + static_cast<std::ptrdiff_t>(chains_);
    return {real_sums_.download(), {both.begin(), middle}, {middle, both.end()}};
  }

  /// What a step from the present states is made of, for tests.
  struct Law {
    std::vector<double> log_prob;         ///< of each chain, as acceptances have it
    std::vector<std::uint64_t> proposal;  ///< [chain][unit]: weights, or probabilities in units of 2^-32
  };
  [[nodiscard]] Law law() const {
    prepare();
    const cuda::Array<std::uint64_t> found(chains_ * variables_);
    cuda::launch_rbm_law(rbm(), view(), law_, found.data(), stream());
    cuda::check_launch("probabilities were asked for");
    Law out{{}, found.download()};
    const std::vector<std::int64_t> both = log_prob_.download();
    const std::vector<std::uint8_t> half = half_.download();
    for (std::size_t c = 0; c < chains_; ++c) {
      out.log_prob.push_back(unit_ * static_cast<double>(both[half[c] * chains_ + c]));
    }
    return out;
  }

 private:
  static constexpr std::uint64_t kStepsOfGraph = 32;
  // Measured: parts of a few hundred chains gain nothing, and more than three no more.
  static constexpr std::size_t kLeastInPart = 1024;
  static constexpr std::size_t kMostParts = 3;
  static constexpr float kLargestHalf = 60000.0F;

  static std::size_t padded(std::size_t count) { return cuda::padded_to(count, cuda::kProductTile); }

  /// A power of two, such that no sum of weights and biases leaves 62 bits.
  static double find_unit(const RbmWeights& weights) {
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

  void upload(const RbmWeights& rbm) {
    const auto in_units = [&](double value) { return std::int64_t{std::llround(value / unit_)}; };
    std::vector<std::int64_t> units(weights_.size(), 0);
    std::vector<__half> small(halves_.size(), __float2half(0.0F));
    for (Index i = 0; i < rbm.visible; ++i) {
      for (Index j = 0; j < rbm.hidden; ++j) {
        const float weight = rbm.weights[std::size_t{j} * rbm.visible + i];
        units[i * hidden_stride_ + j] = in_units(weight);
        small[i * hidden_stride_ + j] = __float2half(std::clamp(weight, -kLargestHalf, kLargestHalf));
      }
    }
    weights_.upload(units);
    halves_.upload(small);
    // Units that fill the stride are never on.
    std::vector<std::int64_t> bias(hidden_stride_, -(std::int64_t{1} << 61));
    std::transform(rbm.hidden_bias.begin(), rbm.hidden_bias.end(), bias.begin(), in_units);
    hidden_bias_.upload(bias);
    bias.resize(rbm.visible);
    std::transform(rbm.visible_bias.begin(), rbm.visible_bias.end(), bias.begin(), in_units);
    visible_bias_.upload(bias);
    std::vector<float> reals = rbm.visible_bias;
    reals.resize(visible_stride_, 0.0F);
    bias_gradients_.upload(reals);
  }

  /// Parts of the chains, which the device works on side by side: while one waits for memory, another one multiplies.
  struct Part {
    cuda::RbmRange range;
    cuda::CudaStream stream;
    std::array<cuda::Graph, 2> graphs{};  // by where gradients are
  };
  /// Equal but for the last, and of whole tiles of the product.
  void share_out() {
    const std::size_t count = std::clamp<std::size_t>(chains_ / kLeastInPart, 1, kMostParts);
    const std::size_t each = padded((chains_ + count - 1) / count);
    for (std::size_t first = 0; first < chains_; first += each) {
      parts_.push_back(std::make_unique<Part>());
      parts_.back()->range = {static_cast<std::uint32_t>(first),
                              static_cast<std::uint32_t>(std::min(each, chains_ - first))};
    }
  }

  [[nodiscard]] cuda::RbmView rbm() const {
    return {variables_,
            static_cast<std::uint32_t>(visible_stride_),
            static_cast<std::uint32_t>(hidden_stride_),
            unit_,
            static_cast<float>(unit_),
            static_cast<float>(1.0 / unit_),
            weights_.data(),
            hidden_bias_.data(),
            visible_bias_.data(),
            bias_gradients_.data()};
  }
  [[nodiscard]] cuda::RbmChainsView view() const {
    return {CudaGradientChains::view(),
            half_.data(),
            activations_.data(),
            linear_.data(),
            log_prob_.data(),
            gradients_[present_].data(),
            gradients_[1 - present_].data(),
            on_.data()};
  }

  void prepare() const {
    if (state_.to_device(false)) is_prepared_ = false;
    if (is_prepared_) return;
    cuda::launch_rbm_prepare(rbm(), view(), stream());
    find_gradients({0, static_cast<std::uint32_t>(chains_)}, stream());
    turn();
    wait("chains were prepared");
    is_prepared_ = true;
  }
  /// Those of proposals, or of states that are dealt with as if they were.
  void find_gradients(const cuda::RbmRange& range, cudaStream_t stream) const {
    const std::size_t first = range.first;
    cuda::launch_product(
        {on_.data() + first * hidden_stride_, halves_.data(), gradients_[1 - present_].data() + first * visible_stride_,
         range.count, static_cast<std::uint32_t>(visible_stride_), static_cast<std::uint32_t>(hidden_stride_)},
        stream);
  }
  void launch_step(const Part& part, cuda::GradientPhases phases, cudaStream_t stream) const {
    cuda::launch_rbm_step(rbm(), view(), part.range, law_, phases, stream);
  }
  /// When all proposals are decided about, gradients of states are where those of the proposals were.
  void turn() const { present_ = 1 - present_; }

  /// Steps that are not local; the last proposal is decided about too.
  void make_steps(std::uint64_t steps) {
    for (const auto& part : parts_) propose(*part, part->stream);
    std::uint64_t left = steps - 1;
    for (; left >= kStepsOfGraph; left -= kStepsOfGraph) launch_graphs();
    for (const auto& part : parts_) go_on(*part, left, part->stream);
    if (left % 2 == 1) turn();
    for (const auto& part : parts_) launch_step(*part, {true, false}, part->stream);
    turn();
  }
  /// Local steps are at the end of each period of kLocalEvery steps; whole periods are graphs.
  void make_steps_and_local_ones(std::uint64_t steps) {
    for (std::uint64_t step = steps_, end = steps_ + steps; step < end;) {
      const std::uint64_t before_local = std::min(end - step, cuda::steps_to_local(step));
      if (step % cuda::kLocalEvery == 0 && end - step >= cuda::kLocalEvery) {
        launch_graphs();
        step += cuda::kLocalEvery;
      } else if (before_local > 0) {
        make_steps(before_local);
        step += before_local;
      } else {
        for (const auto& part : parts_) make_local_step(*part, part->stream);
        turn();
        ++step;
      }
    }
  }

  void propose(const Part& part, cudaStream_t stream) const {
    launch_step(part, {false, true}, stream);
    find_gradients(part.range, stream);
  }
  void make_local_step(const Part& part, cudaStream_t stream) const {
    cuda::launch_rbm_local(rbm(), view(), part.range, stream);
    find_gradients(part.range, stream);
  }
  /// Decides about proposals and makes the next ones, `steps` times.
  void go_on(const Part& part, std::uint64_t steps, cudaStream_t stream) {
    const unsigned before = present_;
    for (std::uint64_t k = 0; k < steps; ++k) {
      launch_step(part, {true, true}, stream);
      turn();
      find_gradients(part.range, stream);
    }
    present_ = before;
  }
  /// The steps before a local one, and that one.
  void make_period(const Part& part, cudaStream_t stream) {
    static_assert(cuda::kLocalEvery % 2 == 0);
    propose(part, stream);
    go_on(part, cuda::kLocalEvery - 2, stream);
    launch_step(part, {true, false}, stream);
    turn();
    make_local_step(part, stream);
    turn();
  }
  /// Decisions and proposals in turns, or a period with a local step at its end: an even number of steps, so gradients
  /// are back where they were.
  void launch_graphs() {
    static_assert(kStepsOfGraph % 2 == 0);
    for (const auto& part : parts_) {
      cuda::Graph& graph = part->graphs[present_];
      if (!graph.is_made()) {
        graph = cuda::Graph([&](cudaStream_t stream) {
          changes_many() ? make_period(*part, stream) : go_on(*part, kStepsOfGraph, stream);
        });
      }
      graph.launch(part->stream);
    }
  }
  void wait(const char* what) const {
    cuda::check_launch(what);
    for (const auto& part : parts_) cuda::check(cudaStreamSynchronize(part->stream), what);
  }
  void forget_graphs() {
    for (const auto& part : parts_) part->graphs = {};
  }
  /// The stream of work on all chains.
  [[nodiscard]] cudaStream_t stream() const { return parts_.front()->stream; }

  std::size_t visible_stride_, hidden_stride_;
  double unit_;
  std::vector<std::unique_ptr<Part>> parts_;
  mutable unsigned present_ = 0;  // where gradients of states are
  mutable bool is_prepared_ = false;

  cuda::Array<std::int64_t> weights_, hidden_bias_, visible_bias_;
  cuda::Array<float> bias_gradients_;
  cuda::Array<__half> halves_;
  cuda::Array<std::uint8_t> half_;
  cuda::Array<std::int64_t> activations_, linear_;
  cuda::Array<std::int64_t> log_prob_;
  std::array<cuda::Array<__half>, 2> gradients_;
  cuda::Array<__half> on_;
  cuda::Array<double> real_sums_;
  cuda::Array<std::int64_t> whole_sums_;
};

}  // namespace poise
