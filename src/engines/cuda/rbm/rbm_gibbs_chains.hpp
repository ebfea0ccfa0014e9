/// Chains of a restricted Boltzmann machine on a GPU: block Gibbs, with the draws of the CPU (kernel/rbm_gibbs.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <poise/types.hpp>
#include "engines/cuda/common/launch_graph.hpp"
#include "engines/cuda/rbm/rbm_gibbs_memory.hpp"

namespace poise {

class CudaRbmGibbsChains final : public CudaGibbsMemory {
 public:
  /// Units of a layer that there may be: sums of weights of sixteen bits have 31.
  static constexpr Index kMostUnits = 65536;

  /// Chains of the RBM at beta = 1. Throws an InputError where the GPU has too little memory. `doubt` is for tests: the
  /// larger it is, the more units are decided exactly, with the same result.
  CudaRbmGibbsChains(const Rbm& target, std::size_t chains, std::uint64_t seed, std::uint64_t first_chain,
                     double doubt = 0.0)
      : CudaGibbsMemory(target, chains, seed, doubt),
        chains_(chains),
        first_stream_(static_cast<std::uint64_t>(Stream::chain) + first_chain),
        state_(cuda::padded_rows(chains), words_),
        hidden_(
            cuda::zeros<std::uint32_t>(cuda::padded_rows(chains) * cuda::RbmGibbsLayer::words(target.num_hidden()))) {}

  /// Returns when the steps, a sweep each, are made.
  void advance(std::uint64_t steps) {
    if (steps == 0) return;
    state_.to_device(true);
    start_steps(steps);
    cuda::check(cudaStreamSynchronize(stream_), "sweeps were made");
  }
  [[nodiscard]] std::uint64_t steps() const { return sweeps(); }
  void set_steps(std::uint64_t steps) { set_sweeps(steps); }

  // One chain; other threads may set and get other chains at the same time, while none advances.
  void set_levels(std::size_t chain, std::span<const Value> levels) {
    cuda::pack_bits(levels, state_.row_to_change(chain));
  }
  void get_levels(std::size_t chain, std::span<Value> levels) const { cuda::unpack_bits(state_.row(chain), levels); }

  /// A graph of launches has the counts as they were.
  void start_counting() {
    if (!counts()) graph_ = {};
    CudaGibbsMemory::start_counting();
  }

  using Sums = CudaRbmSums;
  [[nodiscard]] Sums sums() const {
    state_.to_device(false);
    make_room_for(1);
    start_sums(view(), sums_.data());
    return fetch_sums(1).front();
  }
  /// Makes so many steps before each of the draws, and gives sums of all of them; the host waits once.
  std::vector<Sums> advance_and_sum(std::uint64_t steps, std::size_t draws) {
    state_.to_device(true);
    make_room_for(draws);
    for (std::size_t draw = 0; draw < draws; ++draw) {
      start_steps(steps);
      start_sums(view(), sums_.data() + draw * Sums::kSums * chains_);
    }
    return fetch_sums(draws);
  }

 private:
  [[nodiscard]] cuda::GibbsView view() const {
    return view_of(chains_, state_.on_device(), hidden_.data(), first_stream_);
  }

  void start_steps(std::uint64_t steps) {
    const auto sweep = [&](std::uint32_t sweeps, cudaStream_t stream) {
      const cuda::GibbsView all = view();
      for (std::uint32_t ahead = 0; ahead < sweeps; ++ahead) cuda::launch_gibbs_sweep(all, ahead, stream);
      cuda::launch_gibbs_count(all, made_.data(), sweeps, stream);
    };
    std::uint64_t left = steps;
    for (; left >= cuda::kGibbsCounted; left -= cuda::kGibbsCounted) {
      if (!graph_.is_made()) graph_ = cuda::Graph([&](cudaStream_t stream) { sweep(cuda::kGibbsCounted, stream); });
      graph_.launch(stream_);
    }
    if (left > 0) sweep(static_cast<std::uint32_t>(left), stream_);
    cuda::check_launch("sweeps were started");
    sweeps_ += steps;
  }

  void make_room_for(std::size_t draws) const {
    const std::size_t size = draws * Sums::kSums * chains_;
    if (sums_.size() < size) sums_ = cuda::Array<double>(size);
  }
  [[nodiscard]] std::vector<Sums> fetch_sums(std::size_t draws) const {
    const std::vector<double> all = sums_.download(0, draws * Sums::kSums * chains_);
    std::vector<Sums> out;
    for (std::size_t draw = 0; draw < draws; ++draw) {
      out.emplace_back(all.data() + draw * Sums::kSums * chains_, chains_);
    }
    return out;
  }

  std::size_t chains_;
  std::uint64_t first_stream_;
  cuda::Graph graph_;
  mutable cuda::MirroredWords state_;  // of visible units
  cuda::Array<std::uint32_t> hidden_;
  mutable cuda::Array<double> sums_;  // [draw][sum][chain]
};

}  // namespace poise
