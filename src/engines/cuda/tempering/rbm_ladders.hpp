/// Ladders of tempered RBMs on a GPU: block Gibbs of all replicas, which are rows of one set of chains, gains and
/// swaps, step after step, without a word from the host.
///
/// Replicas have the random words of the CPU's, and draws are made as there, bit by bit. A swap is decided by sums of
/// logarithms in doubles, which may differ from the CPU's in their last digits: one swap in 10^12 or so.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <poise/types.hpp>
#include "engines/cuda/rbm/rbm_gibbs_memory.hpp"
#include "engines/cuda/tempering/ladder_kernels.hpp"
#include "engines/cuda/tempering/ladder_memory.hpp"

namespace poise {

class CudaRbmLadders final : public CudaGibbsMemory {
 public:
  struct Options {
    std::size_t ladders = 0;
    std::uint64_t seed = 0;
    std::uint64_t first_chain = 0;  ///< number of the first ladder
    std::uint32_t sweeps = 1;       ///< of every replica in a step, at most 15
    /// For tests: the larger it is, the more units are decided exactly, with the same result.
    double doubt = 0.0;
  };
  /// A ladder of temperatures.
  struct Rungs {
    std::vector<double> betas;
    std::vector<double> guesses;      ///< of the logarithms of ratios of normalising constants of neighbours
    std::uint64_t first_replica = 0;  ///< number of the random stream of the first ladder's cold replica
  };

  /// Ladders of the RBM, which is given at beta = 1; `base` is what there is at beta = 0. Throws an InputError where
  /// the GPU has too little memory.
  CudaRbmLadders(const Rbm& target, const Rbm::Base& base, const Options& options)
      : CudaGibbsMemory(target, options.ladders, options.seed, options.doubt),
        options_(options),
        hidden_words_(cuda::RbmGibbsLayer::words(target.num_hidden())),
        hidden_base_(base.hidden.begin(), base.hidden.begin() + target.num_hidden()),
        visible_base_(base.visible.begin(), base.visible.begin() + target.num_variables()),
        hidden_base_there_(hidden_base_),
        cold_(cuda::zeros<std::uint32_t>(cuda::padded_rows(options.ladders) * words_)),
        cold_here_(options.ladders, words_),
        sums_(CudaRbmSums::kSums * options.ladders) {
    std::vector<double> rises(target.weights().visible_bias.begin(), target.weights().visible_bias.end());
    for (Index i = 0; i < visible_; ++i) rises[i] -= visible_base_[i];
    visible_rises_ = cuda::Array<double>(rises);
  }

  /// Takes other rungs. States, ladders, counts and random streams start anew.
  void set_rungs(const Rungs& rungs) {
    first_stream_ = static_cast<std::uint64_t>(Stream::chain) + rungs.first_replica;
    rungs_ = rungs.betas.size();
    hidden_layer_.heat(rungs.betas, hidden_base_);
    visible_layer_.heat(rungs.betas, visible_base_);
    betas_ = cuda::Array<double>(rungs.betas);
    std::vector<double> units = rungs.betas;
    for (double& unit : units) unit *= unit_;
    units_ = cuda::Array<double>(units);
    const std::size_t rows = cuda::padded_rows(replicas());
    state_ = std::make_unique<cuda::MirroredWords>(rows, words_);
    hidden_ = cuda::zeros<std::uint32_t>(rows * hidden_words_);
    gains_ = cuda::Array<cuda::ReplicaGain>(replicas());
    ladders_ = std::make_unique<cuda::LaddersOnDevice>(options_.ladders, rungs.guesses);
    cold_here_.forget();
    set_sweeps(0);
    if (counts()) start_counting();
  }

  /// Steps of all ladders, the first of them number `step`. Returns when the steps are made.
  void advance(std::uint64_t step, std::uint64_t steps) {
    state_->to_device(true);
    cold_here_.forget();
    const cuda::GibbsView all = view(), cold = cold_view();
    std::uint32_t ahead = 0;  // sweeps since they were counted
    const auto count = [&] {
      cuda::launch_gibbs_count(cold, made_.data(), ahead, stream_);
      ahead = 0;
    };
    for (const std::uint64_t end = step + steps; step < end; ++step) {
      if (ahead + options_.sweeps > cuda::kGibbsCounted) count();
      for (std::uint32_t k = 0; k < options_.sweeps; ++k) cuda::launch_gibbs_sweep(all, ahead++, stream_);
      sum_gains();
      cuda::launch_rbm_swaps(ladder_view(), gains_.data(), step, stream_);
      cuda::check_launch("steps of ladders were started");
    }
    count();
    sweeps_ += steps * options_.sweeps;
    wait();
  }

  // All ladders, in one go.
  [[nodiscard]] std::vector<CudaLadder> ladders() const { return ladders_->get(); }
  void set_ladders(std::span<const CudaLadder> ladders) {
    ladders_->set(ladders);
    cold_here_.forget();
  }
  /// Rungs of all replicas, ladder by ladder.
  [[nodiscard]] std::vector<std::uint8_t> rungs_of_replicas() const { return ladders_->rungs_of_replicas(); }

  /// By replica, ladder by ladder: log p at the next rung above less log p at its own, and log p at its own less log p
  /// at the next rung below.
  struct Gains {
    std::vector<double> above;
    std::vector<double> below;
  };
  [[nodiscard]] Gains gains() const {
    state_->to_device(false);
    sum_gains();
    cuda::check_launch("gains were summed");
    wait();
    Gains out;
    for (const cuda::ReplicaGain& gain : gains_.download()) {
      out.above.push_back(gain.above);
      out.below.push_back(gain.below);
    }
    return out;
  }

  // One replica; other threads may set and get others at the same time, while none advances.
  void set_levels(std::size_t ladder, std::size_t replica, std::span<const Value> levels) {
    cuda::pack_bits(levels, state_->row_to_change(ladder * rungs_ + replica));
    cold_here_.forget();
  }
  void get_levels(std::size_t ladder, std::size_t replica, std::span<Value> levels) const {
    cuda::unpack_bits(state_->row(ladder * rungs_ + replica), levels);
  }

  /// Sums of the cold replicas, by ladder.
  [[nodiscard]] CudaRbmSums cold_sums() const {
    const std::lock_guard lock(mutex_);
    gather_cold();
    start_sums(cold_view(), sums_.data());
    wait();
    return {sums_.download().data(), options_.ladders};
  }
  void get_cold_levels(std::size_t ladder, std::span<Value> levels) const {
    const auto fetch = [&](std::span<std::uint32_t> all) {
      const std::lock_guard lock(mutex_);
      gather_cold();
      wait();
      cold_.download(all);
    };
    cuda::unpack_bits(cold_here_.row(ladder, fetch), levels);
  }

 private:
  [[nodiscard]] std::size_t replicas() const { return options_.ladders * rungs_; }

  [[nodiscard]] cuda::GibbsView view() const {
    cuda::GibbsView view = view_of(replicas(), state_->on_device(), hidden_.data(), first_stream_);
    view.rungs = {ladders_->rung_of(), static_cast<std::uint32_t>(rungs_), units_.data()};
    return view;
  }
  /// The cold replicas as chains: what is told of them.
  [[nodiscard]] cuda::GibbsView cold_view() const {
    return view_of(options_.ladders, cold_.data(), hidden_.data(), first_stream_);
  }
  [[nodiscard]] cuda::LadderView ladder_view() const {
    return ladders_->view(seed_, static_cast<std::uint64_t>(Stream::swaps) + options_.first_chain);
  }

  void sum_gains() const {
    cuda::launch_rbm_gains(view(), {betas_.data(), hidden_base_there_.data(), visible_rises_.data()}, gains_.data(),
                           stream_);
  }
  void gather_cold() const {
    state_->to_device(false);
    cuda::launch_rbm_cold(view(), ladder_view(), cold_.data(), stream_);
    cuda::check_launch("states were gathered");
  }
  void wait() const { cuda::check(cudaStreamSynchronize(stream_), "steps of ladders were made"); }

  Options options_;
  std::size_t hidden_words_;
  std::size_t rungs_ = 0;
  std::uint64_t first_stream_ = 0;
  std::vector<double> hidden_base_, visible_base_;  // biases at beta = 0
  cuda::Array<double> hidden_base_there_, visible_rises_;
  cuda::Array<double> betas_, units_;           // of each rung
  std::unique_ptr<cuda::MirroredWords> state_;  // of visible units
  cuda::Array<std::uint32_t> hidden_;
  std::unique_ptr<cuda::LaddersOnDevice> ladders_;
  cuda::Array<cuda::ReplicaGain> gains_;
  cuda::Array<std::uint32_t> cold_;  // [ladder][word]
  mutable cuda::HostRows<std::uint32_t> cold_here_;
  cuda::Array<double> sums_;  // [sum][ladder]
  mutable std::mutex mutex_;  // of what is gathered of the cold replicas
};

}  // namespace poise
