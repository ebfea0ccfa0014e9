/// States as bits, counts of steps, and functions as tables.
#include "engines/cuda/gradient/gradient_chains.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <poise/extend/engines/samplers.hpp>
#include "engines/cuda/gradient/gradient_memory.hpp"

namespace poise {

std::optional<CudaGradientForm> cuda_gradient_form(const Sampler& sampler) {
  if (is_row<DlmcRow>(sampler) || is_row<DlsbRow>(sampler)) return CudaGradientForm::relaxation;
  if (is_row<DmalaRow>(sampler)) return CudaGradientForm::langevin;
  const SamplerSettings& settings = sampler.settings;
  if (!is_balanced(sampler) || settings.many || !settings.first_order || settings.block != 1) return {};
  return CudaGradientForm::single;
}

using cuda::Array;

static_assert(BalanceTable::kPoints == cuda::kPhiPoints);

namespace {

/// Eight levels by their bits.
constexpr auto kLevelsOfBytes = [] {
  std::array<std::array<Value, 8>, 256> out{};
  for (std::size_t byte = 0; byte < out.size(); ++byte) {
    for (std::size_t k = 0; k < 8; ++k) out[byte][k] = static_cast<Value>(byte >> k & 1U);
  }
  return out;
}();

}  // namespace

CudaGradientChains::CudaGradientChains(const CudaGradientOptions& options)
    : chains_(options.chains),
      variables_(options.variables),
      memory_(std::make_unique<cuda::GradientMemory>(options)) {}

CudaGradientChains::~CudaGradientChains() = default;

void CudaGradientChains::set_function(const BalancingFunction& function) {
  cuda::GradientLaw& law = memory_->law;
  law.function = static_cast<cuda::GradientFunction>(function.kind());
  law.log_length = static_cast<float>(function.level());
  law.length = static_cast<float>(std::exp(function.level()));
  if (const BalanceTable* table = function.table()) {
    const std::vector<float> phi(table->phi().begin(), table->phi().end());
    memory_->phi.upload(phi);
    law.phi_step = static_cast<float>(BalanceTable::kStep);
    law.tail_gradient = (phi[BalanceTable::kCells] - phi[BalanceTable::kCells - 1]) / law.phi_step;
  }
  law.phi = memory_->phi.data();
}

void CudaGradientChains::set_reference(std::span<const Value> reference) {
  std::vector<std::uint32_t> bits(memory_->reference.size(), 0);
  for (Index i = 0; i < reference.size(); ++i) bits[i / 32] |= std::uint32_t{reference[i]} << i % 32;
  memory_->reference.upload(bits);
}

void CudaGradientChains::set_steps(std::uint64_t steps) {
  steps_ = steps;
  memory_->steps.upload(std::vector<std::uint64_t>(chains_, steps));
}

void CudaGradientChains::set_levels(std::size_t chain, std::span<const Value> levels) {
  const std::span<std::uint32_t> own = memory_->state.row_to_change(chain);
  std::fill(own.begin(), own.end(), 0U);
  for (Index i = 0; i < levels.size(); ++i) own[i / 32] |= std::uint32_t{levels[i]} << i % 32;
}

void CudaGradientChains::get_levels(std::size_t chain, std::span<Value> levels) const {
  unpack(memory_->state.row(chain), levels);
}

void CudaGradientChains::unpack(std::span<const std::uint32_t> words, std::span<Value> levels) {
  std::size_t i = 0;
  for (; i + 8 <= levels.size(); i += 8) {
    std::copy_n(kLevelsOfBytes[words[i / 32] >> i % 32 & 0xffU].begin(), 8,
                levels.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (; i < levels.size(); ++i) levels[i] = static_cast<Value>(words[i / 32] >> i % 32 & 1U);
}

std::vector<double> CudaGradientChains::accepted() const {
  std::vector<double> out(chains_);
  memory_->accepted.download(out);
  return out;
}

double CudaGradientChains::accepted(std::size_t chain) const {
  double out = 0.0;
  cuda::check(cudaMemcpy(&out, memory_->accepted.data() + chain, sizeof out, cudaMemcpyDeviceToHost),
              "data were copied from it");
  return out;
}

void CudaGradientChains::set_accepted(std::size_t chain, double accepted) {
  memory_->accepted.upload(std::span<const double>(&accepted, 1), chain);
}

void CudaGradientChains::start_counting() {
  if (memory_->up.empty()) memory_->up = Array<std::int64_t>(chains_ * variables_);
  memory_->up.clear();
  memory_->counted_from = steps_;
  counting_ = true;
}

// A variable that has been up since counting began has nothing stored, and is counted by the steps since then.

std::vector<std::int64_t> CudaGradientChains::up_counts(std::size_t chain) const {
  std::vector<std::int64_t> counts(variables_);
  cuda::check(cudaMemcpy(counts.data(), memory_->up.data() + chain * variables_, variables_ * sizeof(std::int64_t),
                         cudaMemcpyDeviceToHost),
              "counts were copied from it");
  const std::span<const std::uint32_t> own = memory_->state.row(chain);
  for (Index i = 0; i < variables_; ++i) {
    if ((own[i / 32] >> i % 32 & 1U) != 0) counts[i] += static_cast<std::int64_t>(steps_ - memory_->counted_from);
  }
  return counts;
}

void CudaGradientChains::set_up_counts(std::size_t chain, std::span<const std::int64_t> counts) {
  std::vector<std::int64_t> stored(counts.begin(), counts.end());
  const std::span<const std::uint32_t> own = memory_->state.row(chain);
  for (Index i = 0; i < variables_; ++i) {
    if ((own[i / 32] >> i % 32 & 1U) != 0) stored[i] -= static_cast<std::int64_t>(steps_ - memory_->counted_from);
  }
  memory_->up.upload(stored, chain * variables_);
}

}  // namespace poise
