/// Ladders of an RBM on the device: all replicas are rows of one set of chains.
#include "engines/cuda/tempering/rbm_ladders.hpp"

#include <algorithm>
#include <mutex>

#include <poise/extend/base/rng.hpp>
#include "models/rbm/rbm_layer.hpp"

#include "engines/cuda/common/call.hpp"
#include "engines/cuda/rbm/rbm_gibbs_memory.hpp"
#include "engines/cuda/tempering/ladder_kernels.hpp"
#include "engines/cuda/tempering/ladder_memory.hpp"

namespace poise {

using cuda::Array;

namespace cuda {

/// A layer at every temperature.
struct HeatedLayer {
  HeatedLayer(const Rbm& target, RbmLayer::Side side, std::span<const double> hot_end, double the_doubt)
      : host(target.weights(), side, the_doubt),
        base(hot_end.begin(), hot_end.begin() + host.units()),
        doubt(the_doubt),
        device(host, side == RbmLayer::Side::hidden ? target.weights().hidden_bias : target.weights().visible_bias,
               side == RbmLayer::Side::hidden
                   ? 0
                   : static_cast<std::uint32_t>(RbmLayer::padded(target.num_hidden()) / kGibbsSlice)) {}

  void set_rungs(std::span<const double> betas) {
    std::vector<GibbsUnit> bounds;
    std::vector<double> offsets;
    for (const double beta : betas) {
      std::vector<double> of_rung = base;
      for (double& offset : of_rung) offset *= 1.0 - beta;
      const std::vector<GibbsUnit> heated = host.heated(beta, of_rung, doubt);
      bounds.insert(bounds.end(), heated.begin(), heated.end());
      offsets.insert(offsets.end(), of_rung.begin(), of_rung.end());
    }
    device.heat(bounds, offsets);
  }

  RbmGibbsLayer host;
  std::vector<double> base;
  double doubt;
  GibbsLayerOnDevice device;
};

}  // namespace cuda

struct CudaRbmLadders::OnDevice {
  OnDevice(const Rbm& target, const Rbm::Base& base, const Options& the_options)
      : options(the_options),
        words(cuda::RbmGibbsLayer::words(target.num_variables())),
        hidden_words(cuda::RbmGibbsLayer::words(target.num_hidden())),
        unit(target.activation_unit()),
        random_words(RbmLayers::random_words(target.num_variables(), target.num_hidden())),
        hidden_layer(target, RbmLayer::Side::hidden, base.hidden, options.doubt),
        visible_layer(target, RbmLayer::Side::visible, base.visible, options.doubt),
        hidden_base(hidden_layer.base),
        reference(words),
        cold(cuda::padded_rows(options.ladders) * words),
        sums(3 * options.ladders),
        steps(1) {
    std::vector<double> rises = visible_layer.base;
    for (Index i = 0; i < rises.size(); ++i) {
      rises[i] = static_cast<double>(target.weights().visible_bias[i]) - rises[i];
    }
    visible_rises = Array<double>(rises);
    reference.clear();
    cold.clear();
    cuda::check(cudaStreamCreate(&stream), "a stream was made");
  }
  ~OnDevice() { static_cast<void>(cudaStreamDestroy(stream)); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  void set_rungs(const Rungs& rungs) {
    first_replica = static_cast<std::uint64_t>(Stream::chain) + rungs.first_replica;
    num_rungs = rungs.betas.size();
    hidden_layer.set_rungs(rungs.betas);
    visible_layer.set_rungs(rungs.betas);
    betas = Array<double>(rungs.betas);
    std::vector<double> of_rungs = rungs.betas;
    for (double& of_rung : of_rungs) of_rung *= unit;
    units = Array<double>(of_rungs);
    const std::size_t rows = cuda::padded_rows(replicas());
    visible = std::make_unique<cuda::MirroredWords>(rows, words);
    hidden = Array<std::uint32_t>(rows * hidden_words);
    hidden.clear();
    gains = Array<cuda::ReplicaGain>(replicas());
    ladders = std::make_unique<cuda::LaddersOnDevice>(options.ladders, rungs.guesses);
    cold_is_current = false;
  }

  [[nodiscard]] std::size_t replicas() const { return options.ladders * num_rungs; }

  [[nodiscard]] cuda::GibbsView view() const {
    return {.hidden = hidden_layer.device.view(),
            .visible = visible_layer.device.view(),
            .stream = {options.seed, first_replica, static_cast<std::uint64_t>(Stream::further_digits),
                       static_cast<std::uint32_t>(random_words), steps.data()},
            .unit = unit,
            .in_one = 1.0 / unit,
            .chains = {static_cast<std::uint32_t>(replicas()), visible->on_device(), hidden.data(),
                       counted.planes.data(), counted.counts.data()},
            .rungs = {ladders->rung_of(), static_cast<std::uint32_t>(num_rungs), units.data()}};
  }
  /// The cold replicas as chains: what is told of them.
  [[nodiscard]] cuda::GibbsView cold_view() const {
    cuda::GibbsView out = view();
    out.chains.chains = static_cast<std::uint32_t>(options.ladders);
    out.chains.visible = cold.data();
    out.rungs = {};
    return out;
  }
  [[nodiscard]] cuda::LadderView ladder_view() const {
    return ladders->view(options.seed, static_cast<std::uint64_t>(Stream::swaps) + options.first_chain);
  }

  void sum_gains() const {
    cuda::launch_rbm_gains(view(), {betas.data(), hidden_base.data(), visible_rises.data()}, gains.data(), stream);
  }

  void gather_cold() const {
    static_cast<void>(visible->to_device(false));
    cuda::launch_rbm_cold(view(), ladder_view(), cold.data(), stream);
    cuda::check_launch("states were gathered");
  }
  void wait() const { cuda::check(cudaStreamSynchronize(stream), "steps of ladders were made"); }

  Options options;
  std::size_t words, hidden_words;
  double unit;
  std::size_t random_words;
  std::size_t num_rungs = 0;
  std::uint64_t first_replica = 0;
  cudaStream_t stream = nullptr;

  cuda::HeatedLayer hidden_layer, visible_layer;
  Array<double> hidden_base, visible_rises;
  Array<double> betas, units;  // of each rung
  mutable std::unique_ptr<cuda::MirroredWords> visible;
  Array<std::uint32_t> hidden;
  std::unique_ptr<cuda::LaddersOnDevice> ladders;
  Array<cuda::ReplicaGain> gains;
  Array<std::uint32_t> reference;
  Array<std::uint32_t> cold;  // [ladder][word]
  Array<double> sums;         // [sum][ladder]
  Array<std::uint64_t> steps;
  cuda::GibbsCountsOnDevice counted;
  mutable std::mutex mutex;  // of the cold replicas and
  mutable std::vector<std::uint32_t> cold_on_host;
  mutable bool cold_is_current = false;
};

CudaRbmLadders::CudaRbmLadders(const Rbm& target, const Rbm::Base& base, const Options& options)
    : visible_(target.num_variables()), device_(std::make_unique<OnDevice>(target, base, options)) {}

CudaRbmLadders::~CudaRbmLadders() = default;

void CudaRbmLadders::set_rungs(const Rungs& rungs) {
  device_->set_rungs(rungs);
  set_sweeps(0);
  if (counting_) start_counting();
}

void CudaRbmLadders::set_reference(std::span<const Value> reference) {
  cuda::upload_bits(reference, device_->reference);
}

void CudaRbmLadders::advance(std::uint64_t step, std::uint64_t steps) {
  OnDevice& device = *device_;
  static_cast<void>(device.visible->to_device(true));
  device.cold_is_current = false;
  const cuda::GibbsView view = device.view(), cold = device.cold_view();
  const cuda::LadderView ladders = device.ladder_view();
  const std::uint32_t sweeps = device.options.sweeps;
  std::uint32_t ahead = 0;  // sweeps since they were counted
  const auto count = [&] {
    cuda::launch_gibbs_count(cold, device.steps.data(), ahead, device.stream);
    ahead = 0;
  };
  for (const std::uint64_t end = step + steps; step < end; ++step) {
    if (ahead + sweeps > cuda::kGibbsCounted) count();
    for (std::uint32_t k = 0; k < sweeps; ++k) cuda::launch_gibbs_sweep(view, ahead++, device.stream);
    device.sum_gains();
    cuda::launch_rbm_swaps(ladders, device.gains.data(), step, device.stream);
    cuda::check_launch("steps of ladders were started");
  }
  count();
  sweeps_ += steps * sweeps;
  device.wait();
}

void CudaRbmLadders::set_sweeps(std::uint64_t sweeps) {
  sweeps_ = sweeps;
  device_->steps.upload(std::span<const std::uint64_t>(&sweeps, 1));
}

std::vector<CudaLadder> CudaRbmLadders::ladders() const { return device_->ladders->get(); }

void CudaRbmLadders::set_ladders(std::span<const CudaLadder> ladders) {
  device_->ladders->set(ladders);
  device_->cold_is_current = false;
}

std::vector<std::uint8_t> CudaRbmLadders::rungs_of_replicas() const { return device_->ladders->rungs_of_replicas(); }

CudaRbmLadders::Gains CudaRbmLadders::gains() const {
  static_cast<void>(device_->visible->to_device(false));
  device_->sum_gains();
  cuda::check_launch("gains were summed");
  device_->wait();
  std::vector<cuda::ReplicaGain> found(device_->replicas());
  device_->gains.download(found);
  Gains out;
  for (const cuda::ReplicaGain& gain : found) {
    out.above.push_back(gain.above);
    out.below.push_back(gain.below);
  }
  return out;
}

void CudaRbmLadders::set_levels(std::size_t ladder, std::size_t replica, std::span<const Value> levels) {
  cuda::put_bits(levels, device_->visible->row_to_change(ladder * device_->num_rungs + replica));
  const std::lock_guard lock(device_->mutex);
  device_->cold_is_current = false;
}

void CudaRbmLadders::get_levels(std::size_t ladder, std::size_t replica, std::span<Value> levels) const {
  cuda::get_bits(device_->visible->row(ladder * device_->num_rungs + replica), levels);
}

CudaRbmSums CudaRbmLadders::cold_sums() const {
  const std::lock_guard lock(device_->mutex);
  const std::size_t count = device_->options.ladders;
  device_->gather_cold();
  cuda::launch_gibbs_sums(device_->cold_view(), cuda::sums_at(device_->sums.data(), count, device_->reference.data()),
                          device_->stream);
  cuda::check_launch("states were summed");
  device_->wait();
  std::vector<double> all(3 * count);
  device_->sums.download(all);
  return {all.data(), count};
}

void CudaRbmLadders::get_cold_levels(std::size_t ladder, std::span<Value> levels) const {
  const OnDevice& device = *device_;
  const std::lock_guard lock(device.mutex);
  if (!device.cold_is_current) {
    device.gather_cold();
    device.wait();
    device.cold_on_host.resize(device.options.ladders * device.words);
    device.cold.download(device.cold_on_host);
    device.cold_is_current = true;
  }
  cuda::get_bits(std::span<const std::uint32_t>(device.cold_on_host).subspan(ladder * device.words, device.words),
                 levels);
}

void CudaRbmLadders::start_counting() {
  static_cast<void>(device_->counted.start(device_->options.ladders, device_->words, visible_));
  counting_ = true;
}

std::vector<std::uint64_t> CudaRbmLadders::up_counts(std::size_t ladder) const {
  return device_->counted.get(ladder, visible_);
}

void CudaRbmLadders::set_up_counts(std::size_t ladder, std::span<const std::uint64_t> counts) {
  device_->counted.counts.upload(counts, ladder * visible_);
}

}  // namespace poise
