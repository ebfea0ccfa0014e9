/// Updates on a GPU by Adam's numbers.
#include "inference/train/on_device.hpp"

#include <algorithm>
#include <string>
#include <thread>

#include <poise/devices.hpp>
#include "engines/rows.hpp"

namespace poise {

bool is_faster_on_device(const RbmWeights& weights, const RbmTrainerOptions& options) {
  // An update takes a GPU some hundred microseconds, in which a core makes about so many products.
  constexpr double few = 1.25e6;
  const double cores = options.threads > 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  const double products = static_cast<double>(options.batch) * static_cast<double>(options.gibbs_steps) *
                          static_cast<double>(weights.weights.size());
  std::string why;
  return products > few * cores && !cuda_devices(why).empty();
}

void RbmTrainer::put_on_device() const {
  std::vector<Value> chains;
  for (std::size_t r = 0; r < options_.batch; ++r) {
    const float* row = chain_visible_.data() + r * visible_stride_;
    for (Index i = 0; i < weights_.visible; ++i) chains.push_back(row[i] != 0.0F ? 1 : 0);
  }
  device_->put({weights_, first_moment_, second_moment_, gradient_}, chains);
}

void RbmTrainer::fetch() const {
  const std::vector<Value> chains = device_->fetch({weights_, first_moment_, second_moment_, gradient_});
  for (std::size_t r = 0; r < options_.batch; ++r) {
    const Value* from = chains.data() + r * weights_.visible;
    std::copy_n(from, weights_.visible, chain_visible_.begin() + static_cast<std::ptrdiff_t>(r * visible_stride_));
  }
}

RbmTrainer::OnDevice::OnDevice(const RbmWeights& weights, const RbmTrainerOptions& options) {
  require_cuda();
  using Chains = RbmUpdates::Chains;
  updates_ = engine_table().gpu->make_rbm_updates(weights.visible, weights.hidden,
                                                  {options.method == Divergence::pcd ? Chains::kept : Chains::at_data,
                                                   options.gibbs_steps, options.batch, options.seed});
}

RbmTrainer::OnDevice::~OnDevice() = default;

void RbmTrainer::OnDevice::begin(std::span<const Value> data, std::span<const std::uint64_t> order) const {
  updates_->set_data(data, order);
}

RbmMetrics RbmTrainer::OnDevice::step(std::size_t first, std::size_t rows, std::uint64_t update, double rate) const {
  using Step = AdamStep<float>;
  const Step adam(rate, update);
  const RbmUpdates::Metrics metrics =
      updates_->step(first, rows, update,
                     {adam.scale(), adam.second_correction(), static_cast<float>(1.0 - Step::kFirstDecay),
                      static_cast<float>(1.0 - Step::kSecondDecay), Step::kEpsilon, Step::kTiny});
  return {metrics.reconstruction_error, metrics.pseudo_log_likelihood};
}

void RbmTrainer::OnDevice::put(const RbmLearned& learned, std::span<const Value> chains) const {
  using Part = RbmUpdates::Part;
  updates_->set(Part::weights, learned.weights);
  updates_->set(Part::first_moment, learned.first_moment);
  updates_->set(Part::second_moment, learned.second_moment);
  updates_->set(Part::gradient, learned.gradient);
  updates_->set_chains(chains);
}

std::vector<Value> RbmTrainer::OnDevice::fetch(const RbmLearned& learned) const {
  using Part = RbmUpdates::Part;
  updates_->get(Part::weights, learned.weights);
  updates_->get(Part::first_moment, learned.first_moment);
  updates_->get(Part::second_moment, learned.second_moment);
  updates_->get(Part::gradient, learned.gradient);
  return updates_->chains();
}

}  // namespace poise
