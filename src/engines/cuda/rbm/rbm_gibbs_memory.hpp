/// What block Gibbs has in the memory of the device, for chains of their own and for the replicas of ladders: layers,
/// counts, sums of states.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include <poise/types.hpp>
#include "engines/cuda/common/call.hpp"
#include "engines/cuda/common/launch_graph.hpp"
#include "engines/cuda/rbm/rbm_gibbs_kernels.hpp"
#include "engines/cuda/rbm/rbm_gibbs_layer.hpp"
#include "models/rbm/rbm.hpp"
#include "models/rbm/rbm_layer.hpp"

namespace poise {

namespace cuda {

/// Rows of states for so many chains.
inline std::size_t padded_rows(std::size_t chains) { return (chains + kGibbsRows - 1) / kGibbsRows * kGibbsRows; }

/// A layer, at beta = 1 until it is heated.
class GibbsLayerOnDevice {
 public:
  GibbsLayerOnDevice(const Rbm& target, RbmLayer::Side side, double doubt)
      : layer_(target.weights(), side, doubt),
        doubt_(doubt),
        slice_(side == RbmLayer::Side::hidden
                   ? 0
                   : static_cast<std::uint32_t>(RbmLayer::padded(target.num_hidden()) / kGibbsSlice)),
        fragments_(layer_.fragments()),
        bounds_(layer_.bounds()),
        weights_(layer_.weights()),
        biases_(side == RbmLayer::Side::hidden ? target.weights().hidden_bias : target.weights().visible_bias) {}

  /// For replicas: bounds and offsets of all rungs, one after the other. `base` are activations at beta = 0.
  void heat(std::span<const double> betas, std::span<const double> base) {
    std::vector<GibbsUnit> bounds;
    std::vector<double> offsets;
    for (const double beta : betas) {
      std::vector<double> of_rung(base.begin(), base.end());
      for (double& offset : of_rung) offset *= 1.0 - beta;
      const std::vector<GibbsUnit> heated = layer_.heated(beta, of_rung, doubt_);
      bounds.insert(bounds.end(), heated.begin(), heated.end());
      offsets.insert(offsets.end(), of_rung.begin(), of_rung.end());
    }
    bounds_ = Array<GibbsUnit>(bounds);
    offsets_ = Array<double>(offsets);
  }

  [[nodiscard]] GibbsLayerView view() const {
    return {layer_.units(),
            static_cast<std::uint32_t>(RbmGibbsLayer::words(layer_.units())),
            static_cast<std::uint32_t>(layer_.input_words()),
            slice_,
            fragments_.data(),
            bounds_.data(),
            weights_.data(),
            biases_.data(),
            offsets_.data()};
  }

 private:
  RbmGibbsLayer layer_;
  double doubt_;
  std::uint32_t slice_;
  Array<GibbsFragment> fragments_;
  Array<GibbsUnit> bounds_;
  Array<float> weights_, biases_;
  Array<double> offsets_;
};

}  // namespace cuda

/// Sums of states of block Gibbs, by chain.
struct CudaRbmSums {
  static constexpr std::size_t kSums = 3;

  /// Takes them from [sum][chain].
  CudaRbmSums(const double* from, std::size_t chains)
      : log_prob(from, from + chains),
        on(from + chains, from + 2 * chains),
        different(from + 2 * chains, from + 3 * chains) {}

  std::vector<double> log_prob;
  std::vector<double> on;
  std::vector<double> different;  ///< units that are not as in the reference
};

class CudaGibbsMemory {
 public:
  CudaGibbsMemory(const CudaGibbsMemory&) = delete;
  CudaGibbsMemory& operator=(const CudaGibbsMemory&) = delete;

  void set_reference(std::span<const Value> reference) { reference_ = cuda::bits_on_device(reference, words_); }

  /// That each chain or replica has made: they say where random streams are.
  [[nodiscard]] std::uint64_t sweeps() const { return sweeps_; }
  void set_sweeps(std::uint64_t sweeps) {
    sweeps_ = sweeps;
    made_.upload({&sweeps, 1});
  }

  /// Counts sweeps after which units of chains, or of the cold replicas of ladders, are on, from here on: in planes of
  /// bits first.
  void start_counting() {
    if (up_.empty()) {
      cuda::Array<uint4> planes(counted_ * words_);
      up_ = cuda::Array<std::uint64_t>(counted_ * visible_);
      planes_ = std::move(planes);  // once there is room for both
    }
    planes_.clear();
    up_.clear();
  }
  [[nodiscard]] bool counts() const { return !up_.empty(); }
  /// Sweeps of a chain or ladder since then, and what they are to be from here on; none where nothing is counted.
  [[nodiscard]] std::vector<std::uint64_t> up_counts(std::size_t chain) const {
    return counts() ? up_.download(chain * visible_, visible_) : std::vector<std::uint64_t>();
  }
  void set_up_counts(std::size_t chain, std::span<const std::uint64_t> counts) { up_.upload(counts, chain * visible_); }

 protected:
  /// Counts so many chains or ladders.
  CudaGibbsMemory(const Rbm& target, std::size_t counted, std::uint64_t seed, double doubt)
      : visible_(target.num_variables()),
        counted_(counted),
        words_(cuda::RbmGibbsLayer::words(visible_)),
        seed_(seed),
        unit_(target.activation_unit()),
        random_words_(static_cast<std::uint32_t>(RbmLayers::random_words(visible_, target.num_hidden()))),
        hidden_layer_(target, RbmLayer::Side::hidden, doubt),
        visible_layer_(target, RbmLayer::Side::visible, doubt),
        reference_(cuda::zeros<std::uint32_t>(words_)),
        made_(cuda::zeros<std::uint64_t>(1)) {}
  ~CudaGibbsMemory() = default;

  /// The memory of so many chains, whose states are [row][word]; `first_stream` is that of the first one.
  [[nodiscard]] cuda::GibbsView view_of(std::size_t chains, std::uint32_t* visible, std::uint32_t* hidden,
                                        std::uint64_t first_stream) const {
    return {hidden_layer_.view(),
            visible_layer_.view(),
            {seed_, first_stream, static_cast<std::uint64_t>(Stream::further_digits), random_words_, made_.data()},
            unit_,
            1.0 / unit_,
            {static_cast<std::uint32_t>(chains), visible, hidden, planes_.data(), up_.data()}};
  }
  /// Has states summed, to [sum][chain].
  void start_sums(const cuda::GibbsView& view, double* to) const {
    const std::size_t chains = view.chains.chains;
    cuda::launch_gibbs_sums(view, {to, to + chains, to + 2 * chains, reference_.data()}, stream_);
    cuda::check_launch("states were summed");
  }

  Index visible_;
  std::size_t counted_;
  std::size_t words_;
  std::uint64_t seed_;
  double unit_;
  std::uint32_t random_words_;
  std::uint64_t sweeps_ = 0;
  cuda::CudaStream stream_;

  cuda::GibbsLayerOnDevice hidden_layer_, visible_layer_;
  cuda::Array<std::uint32_t> reference_;
  cuda::Array<std::uint64_t> made_;  // sweeps
  cuda::Array<uint4> planes_;
  cuda::Array<std::uint64_t> up_;
};

}  // namespace poise
