/// Chains of single flips on an Ising model on a lattice, on a GPU: locally balanced proposals, a warp for each chain.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include <poise/types.hpp>
#include "engines/common/step_guards.hpp"
#include "engines/cuda/common/counted_chains.hpp"
#include "engines/cuda/flips/flip_kernels.hpp"

namespace poise {

/// What chains on lattices and on graphs have in common.
class CudaSpinChains : public CudaCountedChains {
 public:
  struct Sums {
    std::vector<std::int64_t> up;         ///< variables
    std::vector<std::int64_t> fields;     ///< of variables that are up
    std::vector<std::int64_t> pairs;      ///< edges whose ends differ, or their weights
    std::vector<std::int64_t> different;  ///< variables that are not as in the reference
  };
  /// The probabilities of a step from the present states, for tests: [chain][variable].
  struct Probabilities {
    std::vector<double> proposal;
    std::vector<double> acceptance;
  };

 protected:
  CudaSpinChains(std::size_t chains, Index variables, std::uint64_t seed, std::uint64_t first_chain)
      : CudaCountedChains(chains, variables),
        seed_(seed),
        first_stream_(static_cast<std::uint64_t>(Stream::device) + first_chain),
        summed_(4 * chains) {}

  /// launch(sums) has the device sum all states.
  template <class Launch>
  [[nodiscard]] Sums find_sums(Launch&& launch) const {
    std::int64_t* const to = summed_.data();
    launch(cuda::FlipSums{to, to + chains_, to + 2 * chains_, to + 3 * chains_});
    cuda::check_launch("states were summed");
    const std::vector<std::int64_t> all = summed_.download();
    const auto part = [&](std::size_t number) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(number * chains_);
      return std::vector<std::int64_t>(begin, begin + static_cast<std::ptrdiff_t>(chains_));
    };
    return {part(0), part(1), part(2), part(3)};
  }
  [[nodiscard]] std::uint32_t chains() const { return static_cast<std::uint32_t>(chains_); }

  std::uint64_t seed_;
  std::uint64_t first_stream_;
  mutable cuda::Array<std::int64_t> summed_;
};

/// A lattice of spins, and what flipping a site is worth: [code][site], with the codes of flip_kernels.hpp.
struct CudaLattice {
  Index rows = 0;
  Index columns = 0;
  bool torus = false;
  std::vector<double> log_ratios;    ///< of a flip
  std::vector<std::int64_t> fields;  ///< of each site, for log p; empty where all are 0
  std::vector<Value> reference;

  [[nodiscard]] Index sites() const { return rows * columns; }
  [[nodiscard]] Index words_in_row() const { return (columns + 31) / 32; }
  [[nodiscard]] std::size_t words() const { return std::size_t{rows} * words_in_row(); }
  /// Where the bits of sites are.
  [[nodiscard]] auto offsets() const {
    return [this](Index site) { return std::size_t{site / columns} * 32 * words_in_row() + site % columns; };
  }
};

class CudaFlipChains final : public CudaSpinChains {
 public:
  /// Throws an InputError where the GPU has too little memory.
  CudaFlipChains(CudaLattice lattice, std::size_t chains, std::uint64_t seed, std::uint64_t first_chain)
      : CudaSpinChains(chains, lattice.sites(), seed, first_chain),
        lattice_(std::move(lattice)),
        weights_(std::size_t{cuda::kSiteCodes} * lattice_.sites()),
        corrections_(weights_.size()),
        fields_(lattice_.fields),
        reference_(cuda::bits_on_device(lattice_.reference, lattice_.words(), lattice_.offsets())),
        state_(chains, lattice_.words()) {}

  /// log g(t) of every flip, [code][site]: proposals are proportional to g. The largest weight leaves room for the sum
  /// of all of them; the smallest is one.
  void set_weights(std::span<const double> log_g) {
    const double largest = *std::max_element(log_g.begin(), log_g.end());
    const double most = std::ldexp(1.0, 62) / lattice_.sites();
    std::vector<std::uint64_t> weights(log_g.size());
    for (std::size_t k = 0; k < weights.size(); ++k) {
      weights[k] = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(most * std::exp(log_g[k] - largest)));
    }
    // A flip and the flip back: the same neighbours, the site itself the other way.
    std::vector<double> corrections(weights.size());
    const std::size_t half = weights.size() / 2;
    for (std::size_t k = 0; k < weights.size(); ++k) {
      const std::size_t back = k < half ? k + half : k - half;
      corrections[k] =
          std::exp(lattice_.log_ratios[k]) * (static_cast<double>(weights[back]) / static_cast<double>(weights[k]));
    }
    weights_.upload(weights);
    corrections_.upload(corrections);
  }

  /// Returns when the steps are made.
  void advance(std::uint64_t steps) {
    state_.to_device(true);
    const Counts counted = counts_on_device();
    cuda::launch_flips(view(),
                       {state_.on_device(), counted.accepted, counted.up, chains(), first_stream_, seed_, steps_,
                        counted.counted_from, cuda::rest_stretch(variables_)},
                       steps);
    cuda::check_launch("steps were started");
    cuda::check(cudaDeviceSynchronize(), "steps were made");
    steps_ += steps;
  }

  void set_levels(std::size_t chain, std::span<const Value> levels) override {
    cuda::pack_bits(levels, state_.row_to_change(chain), lattice_.offsets());
  }
  void get_levels(std::size_t chain, std::span<Value> levels) const override {
    cuda::unpack_bits(state_.row(chain), levels, lattice_.offsets());
  }

  [[nodiscard]] Sums sums() const {
    state_.to_device(false);
    return find_sums(
        [&](const cuda::FlipSums& sums) { cuda::launch_flip_sums(view(), state_.on_device(), chains(), sums); });
  }
  [[nodiscard]] Probabilities probabilities() const {
    state_.to_device(false);
    const std::size_t sites = lattice_.sites();
    const cuda::Array<std::uint64_t> weights(chains_ * sites);
    const cuda::Array<double> acceptance(chains_ * sites);
    cuda::launch_flip_probabilities(view(), state_.on_device(), chains(), weights.data(), acceptance.data());
    cuda::check_launch("probabilities were asked for");
    const std::vector<std::uint64_t> found = weights.download();
    Probabilities out{{found.begin(), found.end()}, acceptance.download()};
    for (std::size_t c = 0; c < chains_; ++c) {
      double total = 0.0;
      for (std::size_t i = 0; i < sites; ++i) total += out.proposal[c * sites + i];
      for (std::size_t i = 0; i < sites; ++i) out.proposal[c * sites + i] /= total;
    }
    return out;
  }

 private:
  [[nodiscard]] cuda::LatticeView view() const {
    return {lattice_.rows,       lattice_.columns, lattice_.torus,    weights_.data(),
            corrections_.data(), fields_.data(),   reference_.data(), lattice_.words_in_row()};
  }

  CudaLattice lattice_;
  cuda::Array<std::uint64_t> weights_;
  cuda::Array<double> corrections_;
  cuda::Array<std::int64_t> fields_;
  cuda::Array<std::uint32_t> reference_;
  mutable cuda::MirroredWords state_;
};

}  // namespace poise
