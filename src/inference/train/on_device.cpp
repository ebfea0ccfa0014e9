/// Training on a GPU: what is there, and updates by Adam's numbers.
#include <algorithm>
#include <string>
#include <thread>

#include <poise/devices.hpp>
#include <poise/extend/learning/optimizer.hpp>
#include "engines/rows.hpp"
#include "inference/train/rbm_trainer.hpp"

namespace poise {

namespace {

/// Whether training is faster on a GPU, and there is one.
bool is_faster_on_device(const RbmWeights& weights, const RbmTrainerOptions& options) {
  // An update takes a GPU some hundred microseconds, in which a core makes about so many products.
  constexpr double few = 1.25e6;
  const double cores = options.threads > 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  const double products = static_cast<double>(options.batch) * static_cast<double>(options.gibbs_steps) *
                          static_cast<double>(weights.weights.size());
  std::string why;
  return products > few * cores && !cuda_devices(why).empty();
}

}  // namespace

void RbmTrainer::start_on_device() {
  const bool automatic = options_.device == Device::automatic && is_faster_on_device(weights_, options_);
  if (!automatic && options_.device != Device::cuda) return;
  require_cuda();
  using Chains = RbmUpdates::Chains;
  device_ = engine_table().gpu->make_rbm_updates(weights_.visible, weights_.hidden,
                                                 {options_.method == Divergence::pcd ? Chains::kept : Chains::at_data,
                                                  options_.gibbs_steps, options_.batch, options_.seed});
  put_on_device();
}

std::array<std::pair<RbmUpdates::Part, RbmWeights*>, 4> RbmTrainer::parts() const {
  using Part = RbmUpdates::Part;
  return {{{Part::weights, &weights_},
           {Part::first_moment, &first_moment_},
           {Part::second_moment, &second_moment_},
           {Part::gradient, &gradient_}}};
}

void RbmTrainer::put_on_device() const {
  std::vector<Value> chains;
  for (std::size_t r = 0; r < options_.batch; ++r) {
    const float* row = chain_visible_.data() + r * visible_stride_;
    for (Index i = 0; i < weights_.visible; ++i) chains.push_back(row[i] != 0.0F ? 1 : 0);
  }
  for (const auto& [part, numbers] : parts()) device_->set(part, *numbers);
  device_->set_chains(chains);
}

void RbmTrainer::fetch() const {
  for (const auto& [part, numbers] : parts()) device_->get(part, *numbers);
  const std::vector<Value> chains = device_->chains();
  for (std::size_t r = 0; r < options_.batch; ++r) {
    const Value* from = chains.data() + r * weights_.visible;
    std::copy_n(from, weights_.visible, chain_visible_.begin() + static_cast<std::ptrdiff_t>(r * visible_stride_));
  }
}

RbmMetrics RbmTrainer::step_on_device(std::size_t first, std::size_t rows) {
  using Step = AdamStep<float>;
  const Step adam(options_.rate, ++updates_);
  const RbmUpdates::Metrics metrics =
      device_->step(first, rows, updates_,
                    {adam.scale(), adam.second_correction(), static_cast<float>(1.0 - Step::kFirstDecay),
                     static_cast<float>(1.0 - Step::kSecondDecay), Step::kEpsilon, Step::kTiny});
  return {metrics.reconstruction_error, metrics.pseudo_log_likelihood};
}

}  // namespace poise
