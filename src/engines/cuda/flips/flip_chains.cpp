/// States on the device and on the host, and weights as integers.
#include "engines/cuda/flips/flip_chains.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <poise/extend/base/streams.hpp>

#include "engines/cuda/common/call.hpp"
#include "engines/cuda/common/chain_counts.hpp"
#include "engines/cuda/common/mirrored.hpp"
#include "engines/cuda/flips/flip_kernels.hpp"

namespace poise {

using cuda::Array;

struct CudaFlipChains::OnDevice {
  OnDevice(const CudaLattice& lattice, std::size_t chains, std::size_t words)
      : weights(std::size_t{cuda::kSiteCodes} * lattice.sites()),
        corrections(weights.size()),
        fields(lattice.fields),
        reference(words),
        state(chains, words),
        counts(chains, lattice.sites()),
        summed(4 * chains) {}

  Array<std::uint64_t> weights;
  Array<double> corrections;
  Array<std::int64_t> fields;
  Array<std::uint32_t> reference;
  cuda::MirroredWords state;
  cuda::ChainCounts counts;
  Array<std::int64_t> summed;

  [[nodiscard]] cuda::LatticeView view(const CudaLattice& lattice) const {
    return {lattice.rows,       lattice.columns, lattice.torus,    weights.data(),
            corrections.data(), fields.data(),   reference.data(), (lattice.columns + 31) / 32};
  }
};

CudaFlipChains::CudaFlipChains(CudaLattice lattice, std::size_t chains, std::uint64_t seed, std::uint64_t first_chain)
    : lattice_(std::move(lattice)), chains_(chains), seed_(seed), first_chain_(first_chain) {
  device_ = std::make_unique<OnDevice>(lattice_, chains, words());
  std::vector<std::uint32_t> bits(words(), 0);
  const std::size_t in_row = words() / lattice_.rows;
  for (Index i = 0; i < lattice_.sites(); ++i) {
    const Index row = i / lattice_.columns, column = i % lattice_.columns;
    if (lattice_.reference[i] != 0) bits[row * in_row + column / 32] |= 1U << column % 32;
  }
  device_->reference.upload(bits);
}

CudaFlipChains::~CudaFlipChains() = default;

std::size_t CudaFlipChains::words() const { return std::size_t{lattice_.rows} * ((lattice_.columns + 31) / 32); }

/// The largest weight leaves room for the sum of all of them; the smallest is one.
void CudaFlipChains::set_weights(std::span<const double> log_g) {
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
  device_->weights.upload(weights);
  device_->corrections.upload(corrections);
}

void CudaFlipChains::advance(std::uint64_t steps) {
  device_->state.to_device(true);
  const std::uint64_t stream = static_cast<std::uint64_t>(Stream::device) + first_chain_;
  const cuda::CountsView counted = device_->counts.for_device();
  cuda::launch_flips(device_->view(lattice_),
                     {device_->state.on_device(), counted.accepted, counted.up, static_cast<std::uint32_t>(chains_),
                      stream, seed_, steps_, counted.counted_from},
                     steps);
  cuda::check_launch("steps were started");
  cuda::check(cudaDeviceSynchronize(), "steps were made");
  steps_ += steps;
}

void CudaFlipChains::set_levels(std::size_t chain, std::span<const Value> levels) {
  const std::size_t in_row = words() / lattice_.rows;
  const std::span<std::uint32_t> own = device_->state.row_to_change(chain);
  std::fill(own.begin(), own.end(), 0U);
  for (Index i = 0; i < levels.size(); ++i) {
    const Index row = i / lattice_.columns, column = i % lattice_.columns;
    if (levels[i] != 0) own[row * in_row + column / 32] |= 1U << column % 32;
  }
}

void CudaFlipChains::get_levels(std::size_t chain, std::span<Value> levels) const {
  const std::size_t in_row = words() / lattice_.rows;
  const std::span<const std::uint32_t> own = device_->state.row(chain);
  for (Index i = 0; i < levels.size(); ++i) {
    const Index row = i / lattice_.columns, column = i % lattice_.columns;
    levels[i] = static_cast<Value>(own[row * in_row + column / 32] >> column % 32 & 1U);
  }
}

std::vector<double> CudaFlipChains::accepted() const { return device_->counts.accepted(); }
double CudaFlipChains::accepted(std::size_t chain) const { return device_->counts.accepted(chain); }
void CudaFlipChains::set_accepted(std::size_t chain, double accepted) { device_->counts.set_accepted(chain, accepted); }

void CudaFlipChains::start_counting() { device_->counts.start(steps_); }
bool CudaFlipChains::counts() const { return device_->counts.is_counting(); }

std::vector<std::int64_t> CudaFlipChains::up_counts(std::size_t chain) const {
  std::vector<Value> levels(lattice_.sites());
  get_levels(chain, levels);
  return device_->counts.up(chain, levels, steps_);
}

void CudaFlipChains::set_up_counts(std::size_t chain, std::span<const std::int64_t> counts) {
  std::vector<Value> levels(lattice_.sites());
  get_levels(chain, levels);
  device_->counts.set_up(chain, counts, levels, steps_);
}

CudaFlipChains::Sums CudaFlipChains::sums() const {
  device_->state.to_device(false);
  std::int64_t* const to = device_->summed.data();
  cuda::launch_flip_sums(device_->view(lattice_), device_->state.on_device(), static_cast<std::uint32_t>(chains_),
                         {to, to + chains_, to + 2 * chains_, to + 3 * chains_});
  cuda::check_launch("states were summed");
  std::vector<std::int64_t> all(4 * chains_);
  device_->summed.download(all);
  const auto part = [&](std::size_t number) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(number * chains_);
    return std::vector<std::int64_t>(begin, begin + static_cast<std::ptrdiff_t>(chains_));
  };
  return {part(0), part(1), part(2), part(3)};
}

CudaFlipChains::Probabilities CudaFlipChains::probabilities() const {
  device_->state.to_device(false);
  const std::size_t sites = lattice_.sites();
  const Array<std::uint64_t> weights(chains_ * sites);
  const Array<double> acceptance(chains_ * sites);
  cuda::launch_flip_probabilities(device_->view(lattice_), device_->state.on_device(),
                                  static_cast<std::uint32_t>(chains_), weights.data(), acceptance.data());
  cuda::check_launch("probabilities were asked for");
  std::vector<std::uint64_t> found(chains_ * sites);
  weights.download(found);
  Probabilities out{std::vector<double>(found.size()), std::vector<double>(found.size())};
  acceptance.download(out.acceptance);
  for (std::size_t c = 0; c < chains_; ++c) {
    double total = 0.0;
    for (std::size_t i = 0; i < sites; ++i) total += static_cast<double>(found[c * sites + i]);
    for (std::size_t i = 0; i < sites; ++i) {
      out.proposal[c * sites + i] = static_cast<double>(found[c * sites + i]) / total;
    }
  }
  return out;
}

}  // namespace poise
