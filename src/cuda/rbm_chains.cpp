/// Weights in tiny units and in half precision; steps as graphs of launches.
#include <poise/cuda/rbm_chains.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <poise/streams.hpp>

#include "call.hpp"
#include "half_product.hpp"
#include "mirrored.hpp"
#include "rbm_kernels.hpp"

namespace poise {

using cuda::Array;

static_assert(BalanceTable::kPoints == cuda::kPhiPoints);

namespace {

constexpr std::uint64_t kStepsOfGraph = 32;
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
  OnDevice(const RbmWeights& rbm, CudaRbmForm form, std::size_t chains)
      : visible(rbm.visible),
        visible_stride(cuda::padded_columns(rbm.visible)),
        hidden_stride(padded(rbm.hidden)),
        words((rbm.visible + std::size_t{31}) / 32),
        unit(find_unit(rbm)),
        weights(std::size_t{rbm.visible} * hidden_stride),
        hidden_bias(hidden_stride),
        visible_bias(rbm.visible),
        bias_slopes(visible_stride),
        halves(visible_stride * hidden_stride),
        phi(cuda::kPhiPoints),
        reference(words),
        state(chains, words),
        flips(chains * words),
        half(chains),
        activations(2 * chains * hidden_stride),
        linear(2 * chains),
        log_prob(2 * chains),
        level(chains),
        largest(chains),
        whole(chains),
        forth(chains),
        slopes(padded(chains) * visible_stride),
        proposed_slopes(padded(chains) * visible_stride),
        on(padded(chains) * hidden_stride),
        steps(chains),
        accepted(chains),
        real_sums(chains),
        whole_sums(2 * chains) {
    law.form = static_cast<cuda::RbmForm>(form);
    upload(rbm);
    flips.clear();
    half.clear();
    slopes.clear();
    proposed_slopes.clear();
    on.clear();
    steps.clear();
    accepted.clear();
    reference.clear();
    cuda::check(cudaStreamCreate(&stream), "a stream was made");
  }
  ~OnDevice() {
    forget_graph();
    static_cast<void>(cudaStreamDestroy(stream));
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

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
    bias_slopes.upload(reals);
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
            bias_slopes.data()};
  }
  [[nodiscard]] cuda::RbmChainsView chains() const {
    return {static_cast<std::uint32_t>(half.size()),
            static_cast<std::uint32_t>(words),
            first_chain,
            seed,
            state.on_device(),
            flips.data(),
            half.data(),
            activations.data(),
            linear.data(),
            log_prob.data(),
            level.data(),
            largest.data(),
            whole.data(),
            forth.data(),
            slopes.data(),
            proposed_slopes.data(),
            on.data(),
            steps.data(),
            accepted.data(),
            up.data(),
            counted_from};
  }
  void find_slopes() const {
    cuda::launch_product({on.data(), halves.data(), proposed_slopes.data(), static_cast<std::uint32_t>(half.size()),
                          static_cast<std::uint32_t>(visible_stride), static_cast<std::uint32_t>(hidden_stride)},
                         stream);
  }
  /// Decides about the proposal that there is and makes the next one.
  void go_on() const {
    cuda::launch_rbm_step(rbm(), chains(), law, {true, true}, stream);
    find_slopes();
  }
  void forget_graph() {
    if (graph != nullptr) static_cast<void>(cudaGraphExecDestroy(graph));
    graph = nullptr;
  }
  cudaGraphExec_t steps_as_graph() {
    if (graph != nullptr) return graph;
    cudaGraph_t captured = nullptr;
    cuda::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "steps were put together");
    for (std::uint64_t k = 0; k < kStepsOfGraph; ++k) go_on();
    cuda::check(cudaStreamEndCapture(stream, &captured), "steps were put together");
    const cudaError_t status = cudaGraphInstantiate(&graph, captured, 0);
    static_cast<void>(cudaGraphDestroy(captured));
    cuda::check(status, "steps were put together");
    return graph;
  }

  std::uint32_t visible;
  std::size_t visible_stride, hidden_stride, words;
  double unit;
  std::uint64_t first_chain = 0;
  std::uint64_t seed = 0;
  std::uint64_t counted_from = 0;
  cuda::RbmLaw law{};
  cudaStream_t stream = nullptr;
  cudaGraphExec_t graph = nullptr;
  bool is_prepared = false;

  Array<std::int64_t> weights, hidden_bias, visible_bias;
  Array<float> bias_slopes;
  Array<__half> halves;
  Array<float> phi;
  Array<std::uint32_t> reference;

  cuda::MirroredWords state;
  Array<std::uint32_t> flips;
  Array<std::uint8_t> half;
  Array<std::int64_t> activations, linear;
  Array<std::int64_t> log_prob;
  Array<std::uint64_t> level;
  Array<float> largest;
  Array<std::uint64_t> whole;
  Array<double> forth;
  Array<__half> slopes, proposed_slopes, on;
  Array<std::uint64_t> steps;
  Array<double> accepted;
  Array<std::int64_t> up;
  Array<double> real_sums;
  Array<std::int64_t> whole_sums;
};

CudaRbmChains::CudaRbmChains(const RbmWeights& weights, CudaRbmForm form, std::size_t chains, std::uint64_t seed,
                             std::uint64_t first_chain)
    : chains_(chains), visible_(weights.visible), device_(std::make_unique<OnDevice>(weights, form, chains)) {
  device_->seed = seed;
  device_->first_chain = static_cast<std::uint64_t>(Stream::device) + first_chain;
}

CudaRbmChains::~CudaRbmChains() = default;

void CudaRbmChains::set_function(const BalancingFunction& function) {
  cuda::RbmLaw& law = device_->law;
  law.function = static_cast<cuda::RbmFunction>(function.kind());
  law.log_length = static_cast<float>(function.level());
  law.length = static_cast<float>(std::exp(function.level()));
  if (const BalanceTable* table = function.table()) {
    const std::vector<float> phi(table->phi().begin(), table->phi().end());
    device_->phi.upload(phi);
    law.phi_step = static_cast<float>(BalanceTable::kStep);
    law.tail_slope = (phi[BalanceTable::kCells] - phi[BalanceTable::kCells - 1]) / law.phi_step;
  }
  law.phi = device_->phi.data();
  device_->forget_graph();
}

void CudaRbmChains::set_reference(std::span<const Value> reference) {
  std::vector<std::uint32_t> bits(device_->words, 0);
  for (Index i = 0; i < reference.size(); ++i) bits[i / 32] |= std::uint32_t{reference[i]} << i % 32;
  device_->reference.upload(bits);
}

void CudaRbmChains::prepare() const {
  if (device_->state.to_device(false)) device_->is_prepared = false;
  if (device_->is_prepared) return;
  cuda::launch_rbm_prepare(device_->rbm(), device_->chains(), device_->stream);
  device_->find_slopes();
  cuda::check(cudaMemcpyAsync(device_->slopes.data(), device_->proposed_slopes.data(),
                              device_->slopes.size() * sizeof(__half), cudaMemcpyDeviceToDevice, device_->stream),
              "slopes were copied");
  cuda::check_launch("chains were prepared");
  cuda::check(cudaStreamSynchronize(device_->stream), "chains were prepared");
  device_->is_prepared = true;
}

void CudaRbmChains::advance(std::uint64_t steps) {
  if (steps == 0) return;
  prepare();
  static_cast<void>(device_->state.to_device(true));
  make_steps(steps);
  steps_ += steps;
}

/// A step is decided when the next one is proposed; the last one by itself.
void CudaRbmChains::make_steps(std::uint64_t steps) const {
  cuda::launch_rbm_step(device_->rbm(), device_->chains(), device_->law, {false, true}, device_->stream);
  device_->find_slopes();
  std::uint64_t left = steps - 1;
  for (; left >= kStepsOfGraph; left -= kStepsOfGraph) {
    cuda::check(cudaGraphLaunch(device_->steps_as_graph(), device_->stream), "steps were started");
  }
  for (; left > 0; --left) device_->go_on();
  cuda::launch_rbm_step(device_->rbm(), device_->chains(), device_->law, {true, false}, device_->stream);
  cuda::check_launch("steps were started");
  cuda::check(cudaStreamSynchronize(device_->stream), "steps were made");
}

void CudaRbmChains::set_steps(std::uint64_t steps) {
  steps_ = steps;
  device_->steps.upload(std::vector<std::uint64_t>(chains_, steps));
}

void CudaRbmChains::set_levels(std::size_t chain, std::span<const Value> levels) {
  const std::span<std::uint32_t> own = device_->state.row_to_change(chain);
  std::fill(own.begin(), own.end(), 0U);
  for (Index i = 0; i < levels.size(); ++i) own[i / 32] |= std::uint32_t{levels[i]} << i % 32;
}

void CudaRbmChains::get_levels(std::size_t chain, std::span<Value> levels) const {
  const std::span<const std::uint32_t> own = device_->state.row(chain);
  for (Index i = 0; i < levels.size(); ++i) levels[i] = static_cast<Value>(own[i / 32] >> i % 32 & 1U);
}

std::vector<double> CudaRbmChains::accepted() const {
  std::vector<double> out(chains_);
  device_->accepted.download(out);
  return out;
}

double CudaRbmChains::accepted(std::size_t chain) const {
  double out = 0.0;
  cuda::check(cudaMemcpy(&out, device_->accepted.data() + chain, sizeof out, cudaMemcpyDeviceToHost),
              "data were copied from it");
  return out;
}

void CudaRbmChains::set_accepted(std::size_t chain, double accepted) {
  device_->accepted.upload(std::span<const double>(&accepted, 1), chain);
}

void CudaRbmChains::start_counting() {
  if (device_->up.empty()) device_->up = Array<std::int64_t>(chains_ * visible_);
  device_->up.clear();
  device_->counted_from = steps_;
  device_->forget_graph();
  counting_ = true;
}

// A unit that has been on since counting began has nothing stored, and is counted by the steps since then.

std::vector<std::int64_t> CudaRbmChains::up_counts(std::size_t chain) const {
  std::vector<std::int64_t> counts(visible_);
  cuda::check(cudaMemcpy(counts.data(), device_->up.data() + chain * visible_, visible_ * sizeof(std::int64_t),
                         cudaMemcpyDeviceToHost),
              "counts were copied from it");
  const std::span<const std::uint32_t> own = device_->state.row(chain);
  for (Index i = 0; i < visible_; ++i) {
    if ((own[i / 32] >> i % 32 & 1U) != 0) counts[i] += static_cast<std::int64_t>(steps_ - device_->counted_from);
  }
  return counts;
}

void CudaRbmChains::set_up_counts(std::size_t chain, std::span<const std::int64_t> counts) {
  std::vector<std::int64_t> stored(counts.begin(), counts.end());
  const std::span<const std::uint32_t> own = device_->state.row(chain);
  for (Index i = 0; i < visible_; ++i) {
    if ((own[i / 32] >> i % 32 & 1U) != 0) stored[i] -= static_cast<std::int64_t>(steps_ - device_->counted_from);
  }
  device_->up.upload(stored, chain * visible_);
}

CudaRbmChains::Sums CudaRbmChains::sums() const {
  prepare();
  std::int64_t* const whole = device_->whole_sums.data();
  cuda::launch_rbm_sums(device_->rbm(), device_->chains(),
                        {device_->real_sums.data(), whole, whole + chains_, device_->reference.data()},
                        device_->stream);
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
  const Array<std::uint64_t> found(chains_ * visible_);
  cuda::launch_rbm_law(device_->rbm(), device_->chains(), device_->law, found.data(), device_->stream);
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
