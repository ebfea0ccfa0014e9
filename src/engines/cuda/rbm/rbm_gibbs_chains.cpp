/// Both layers on the device, and sweeps as graphs of launches.
#include "engines/cuda/rbm/rbm_gibbs_chains.hpp"

#include <algorithm>

#include <poise/extend/base/rng.hpp>
#include "models/rbm/rbm_layer.hpp"

#include "engines/cuda/common/call.hpp"
#include "engines/cuda/common/launch_graph.hpp"
#include "engines/cuda/rbm/rbm_gibbs_memory.hpp"

namespace poise {

using cuda::Array;
using cuda::padded_rows;

struct CudaRbmGibbsChains::OnDevice {
  OnDevice(const Rbm& target, std::size_t count, double doubt)
      : chains(count),
        words(cuda::RbmGibbsLayer::words(target.num_variables())),
        unit(target.activation_unit()),
        random_words(RbmLayers::random_words(target.num_variables(), target.num_hidden())),
        hidden_layer(cuda::RbmGibbsLayer(target.weights(), RbmLayer::Side::hidden, doubt), target.weights().hidden_bias,
                     0),
        visible_layer(cuda::RbmGibbsLayer(target.weights(), RbmLayer::Side::visible, doubt),
                      target.weights().visible_bias,
                      static_cast<std::uint32_t>(RbmLayer::padded(target.num_hidden()) / cuda::kGibbsSlice)),
        visible(padded_rows(count), words),
        hidden(padded_rows(count) * cuda::RbmGibbsLayer::words(target.num_hidden())),
        reference(words),
        steps(1) {
    hidden.clear();
    reference.clear();
    steps.clear();
  }

  [[nodiscard]] cuda::GibbsView view() const {
    return {hidden_layer.view(),
            visible_layer.view(),
            {seed, first_chain, static_cast<std::uint64_t>(Stream::further_digits),
             static_cast<std::uint32_t>(random_words), steps.data()},
            unit,
            1.0 / unit,
            {static_cast<std::uint32_t>(chains), visible.on_device(), hidden.data(), counted.planes.data(),
             counted.counts.data()}};
  }
  void sweep(std::uint32_t sweeps, cudaStream_t where) const {
    const cuda::GibbsView all = view();
    for (std::uint32_t ahead = 0; ahead < sweeps; ++ahead) cuda::launch_gibbs_sweep(all, ahead, where);
    cuda::launch_gibbs_count(all, steps.data(), sweeps, where);
  }
  void sweep_by_graph() {
    if (!graph.is_made()) graph = cuda::Graph([&](cudaStream_t where) { sweep(cuda::kGibbsCounted, where); });
    graph.launch(stream);
  }

  std::size_t chains;
  std::size_t words;
  double unit;
  std::size_t random_words;
  std::uint64_t seed = 0;
  std::uint64_t first_chain = 0;
  cuda::CudaStream stream;
  cuda::Graph graph;

  cuda::GibbsLayerOnDevice hidden_layer, visible_layer;
  mutable cuda::MirroredWords visible;
  Array<std::uint32_t> hidden;
  Array<std::uint32_t> reference;
  Array<std::uint64_t> steps;
  cuda::GibbsCountsOnDevice counted;
  Array<double> sums;  // [draw][sum][chain]
};

CudaRbmGibbsChains::CudaRbmGibbsChains(const Rbm& target, std::size_t chains, std::uint64_t seed,
                                       std::uint64_t first_chain, double doubt)
    : chains_(chains), visible_(target.num_variables()), device_(std::make_unique<OnDevice>(target, chains, doubt)) {
  device_->seed = seed;
  device_->first_chain = static_cast<std::uint64_t>(Stream::chain) + first_chain;
}

CudaRbmGibbsChains::~CudaRbmGibbsChains() = default;

void CudaRbmGibbsChains::set_reference(std::span<const Value> reference) {
  cuda::upload_bits(reference, device_->reference);
}

void CudaRbmGibbsChains::start_steps(std::uint64_t steps) {
  std::uint64_t left = steps;
  for (; left >= cuda::kGibbsCounted; left -= cuda::kGibbsCounted) device_->sweep_by_graph();
  if (left > 0) device_->sweep(static_cast<std::uint32_t>(left), device_->stream);
  cuda::check_launch("sweeps were started");
  steps_ += steps;
}

void CudaRbmGibbsChains::advance(std::uint64_t steps) {
  if (steps == 0) return;
  static_cast<void>(device_->visible.to_device(true));
  start_steps(steps);
  cuda::check(cudaStreamSynchronize(device_->stream), "sweeps were made");
}

void CudaRbmGibbsChains::set_steps(std::uint64_t steps) {
  steps_ = steps;
  device_->steps.upload(std::span<const std::uint64_t>(&steps, 1));
}

void CudaRbmGibbsChains::set_levels(std::size_t chain, std::span<const Value> levels) {
  cuda::put_bits(levels, device_->visible.row_to_change(chain));
}

void CudaRbmGibbsChains::get_levels(std::size_t chain, std::span<Value> levels) const {
  cuda::get_bits(device_->visible.row(chain), levels);
}

void CudaRbmGibbsChains::start_counting() {
  if (device_->counted.start(chains_, device_->words, visible_)) device_->graph = {};
  counting_ = true;
}

std::vector<std::uint64_t> CudaRbmGibbsChains::up_counts(std::size_t chain) const {
  return device_->counted.get(chain, visible_);
}

void CudaRbmGibbsChains::set_up_counts(std::size_t chain, std::span<const std::uint64_t> counts) {
  device_->counted.counts.upload(counts, chain * visible_);
}

void CudaRbmGibbsChains::start_sums(std::size_t draw) const {
  double* const to = device_->sums.data() + draw * kSums * chains_;
  cuda::launch_gibbs_sums(device_->view(), cuda::sums_at(to, chains_, device_->reference.data()), device_->stream);
  cuda::check_launch("states were summed");
}

CudaRbmGibbsChains::Sums CudaRbmGibbsChains::sums() const {
  static_cast<void>(device_->visible.to_device(false));
  if (device_->sums.empty()) device_->sums = Array<double>(kSums * chains_);
  start_sums(0);
  return fetch_sums(1).front();
}

std::vector<CudaRbmGibbsChains::Sums> CudaRbmGibbsChains::advance_and_sum(std::uint64_t steps, std::size_t draws) {
  static_cast<void>(device_->visible.to_device(true));
  if (device_->sums.size() < draws * kSums * chains_) device_->sums = Array<double>(draws * kSums * chains_);
  for (std::size_t draw = 0; draw < draws; ++draw) {
    start_steps(steps);
    start_sums(draw);
  }
  return fetch_sums(draws);
}

std::vector<CudaRbmGibbsChains::Sums> CudaRbmGibbsChains::fetch_sums(std::size_t draws) const {
  std::vector<double> all(draws * kSums * chains_);
  device_->sums.download(all);
  std::vector<Sums> out;
  for (std::size_t draw = 0; draw < draws; ++draw) out.emplace_back(all.data() + draw * kSums * chains_, chains_);
  return out;
}

}  // namespace poise
