/// Chains on a GPU whose proposals are made from gradients of log p, of one change or of many: what those of an RBM and
/// those of user targets have in common. Their states, the proposals under way, and balancing functions as tables.
#pragma once

#include <cmath>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include <poise/extend/kernels/step.hpp>
#include <poise/extend/learning/balancing_function.hpp>
#include <poise/types.hpp>
#include "engines/cuda/common/counted_chains.hpp"
#include "engines/cuda/gradient/gradient_view.hpp"

namespace poise {

struct Sampler;

/// What a proposal changes: one variable, or each by itself (kernel/factorised_law.hpp).
using CudaGradientForm = cuda::GradientForm;
/// What a sampler's proposals are on a GPU; nothing where it does not run there.
[[nodiscard]] std::optional<CudaGradientForm> cuda_gradient_form(const Sampler& sampler);

/// How many chains, of what, and which random numbers are theirs.
struct CudaGradientOptions {
  CudaGradientForm form = CudaGradientForm::single;
  std::size_t chains = 0;
  Index variables = 0;
  std::uint64_t seed = 1;
  std::uint64_t first_chain = 0;
};

class CudaGradientChains : public CudaCountedChains {
 public:
  /// Variables that there may be: with more, weights of single changes, of 24 bits, would be too coarse.
  static constexpr Index kMostVariables = 65536;

  void set_function(const BalancingFunction& function) {
    static_assert(BalanceTable::kPoints == cuda::kPhiPoints);
    law_.function = static_cast<cuda::GradientFunction>(function.kind());
    law_.log_length = static_cast<float>(function.level());
    law_.length = static_cast<float>(std::exp(function.level()));
    if (const BalanceTable* table = function.table()) {
      const std::vector<float> phi(table->phi().begin(), table->phi().end());
      phi_.upload(phi);
      law_.phi_step = static_cast<float>(BalanceTable::kStep);
      law_.tail_gradient = (phi[BalanceTable::kCells] - phi[BalanceTable::kCells - 1]) / law_.phi_step;
    }
    law_.phi = phi_.data();
  }
  void set_reference(std::span<const Value> reference) { reference_ = cuda::bits_on_device(reference, state_.words()); }
  void set_steps(std::uint64_t steps) {
    CudaCountedChains::set_steps(steps);
    made_.upload(std::vector<std::uint64_t>(chains_, steps));
  }

  void set_levels(std::size_t chain, std::span<const Value> levels) override {
    cuda::pack_bits(levels, state_.row_to_change(chain));
  }
  void get_levels(std::size_t chain, std::span<Value> levels) const override {
    cuda::unpack_bits(state_.row(chain), levels);
  }

  /// What step lengths are tuned by, of each chain: as on the CPU, neither proposals that change nothing nor local
  /// steps are among them.
  [[nodiscard]] std::vector<ProposalCounts> proposals() const {
    const std::vector<double> accepted = this->accepted(), left_out = left_out_.download();
    const double steps = static_cast<double>(steps_ - (changes_many() ? cuda::local_steps_before(steps_) : 0));
    std::vector<ProposalCounts> out(chains_);
    for (std::size_t c = 0; c < chains_; ++c) {
      out[c] = {steps - left_out[c], accepted[c] - left_out[chains_ + c]};
    }
    return out;
  }

  /// What is left out of these, of one chain; other threads may set and get other chains at the same time.
  struct LeftOut {
    double unchanged = 0.0;       ///< proposals that would have changed nothing
    double local_accepted = 0.0;  ///< acceptance probabilities of local steps, summed
  };
  [[nodiscard]] LeftOut left_out(std::size_t chain) const {
    const std::lock_guard lock(mutex_);
    if (left_out_here_.empty()) left_out_here_ = left_out_.download();
    return {left_out_here_[chain], left_out_here_[chains_ + chain]};
  }
  void set_left_out(std::size_t chain, const LeftOut& numbers) {
    const std::lock_guard lock(mutex_);
    left_out_here_.clear();
    left_out_.upload({&numbers.unchanged, 1}, chain);
    left_out_.upload({&numbers.local_accepted, 1}, chains_ + chain);
  }

  /// Exact ratios of single changes so far.
  [[nodiscard]] static std::uint64_t local_ratios() { return 0; }

 protected:
  explicit CudaGradientChains(const CudaGradientOptions& options)
      : CudaCountedChains(options.chains, options.variables),
        seed_(options.seed),
        first_stream_(static_cast<std::uint64_t>(Stream::device) + options.first_chain),
        phi_(cuda::kPhiPoints),
        state_(options.chains, (options.variables + std::size_t{31}) / 32),
        reference_(cuda::zeros<std::uint32_t>(state_.words())),
        flips_(cuda::zeros<std::uint32_t>(options.chains * state_.words())),
        level_(options.chains),
        largest_(options.chains),
        whole_(options.chains),
        forth_(options.chains),
        made_(cuda::zeros<std::uint64_t>(options.chains)),
        left_out_(cuda::zeros<double>(2 * options.chains)) {
    law_.form = options.form;
  }

  /// Whether proposals are of many changes, with local steps among them.
  [[nodiscard]] bool changes_many() const { return law_.form != CudaGradientForm::single; }

  [[nodiscard]] cuda::GradientChainsView view() const {
    const Counts counted = counts_on_device();
    const std::lock_guard lock(mutex_);
    left_out_here_.clear();
    return {static_cast<std::uint32_t>(chains_),
            variables_,
            static_cast<std::uint32_t>(state_.words()),
            first_stream_,
            seed_,
            state_.on_device(),
            flips_.data(),
            level_.data(),
            changes_many() ? 1.0 : cuda::rest_stretch(variables_),
            largest_.data(),
            whole_.data(),
            forth_.data(),
            made_.data(),
            counted.accepted,
            left_out_.data(),
            left_out_.data() + chains_,
            counted.up,
            counted.counted_from};
  }

  cuda::GradientLaw law_{};
  std::uint64_t seed_;
  std::uint64_t first_stream_;
  cuda::Array<float> phi_;
  mutable cuda::MirroredWords state_;
  cuda::Array<std::uint32_t> reference_;
  cuda::Array<std::uint32_t> flips_;
  cuda::Array<std::uint64_t> level_;
  cuda::Array<float> largest_;
  cuda::Array<std::uint64_t> whole_;
  cuda::Array<double> forth_;
  cuda::Array<std::uint64_t> made_;  // steps of each chain

 private:
  cuda::Array<double> left_out_;  // `unchanged` of all chains, then `local_accepted`
  mutable std::mutex mutex_;
  mutable std::vector<double> left_out_here_;  // empty where they are old
};

}  // namespace poise
