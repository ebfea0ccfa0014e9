/// Chains on a GPU whose proposals are made from gradients of log p, of one change or of many: what those of an RBM and
/// those of user targets have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <poise/extend/learning/balancing_function.hpp>
#include <poise/types.hpp>

namespace poise {

struct Sampler;

namespace cuda {
class GradientMemory;
}

/// What a proposal changes: one variable, or each by itself (kernel/factorised_law.hpp).
enum class CudaGradientForm { single, relaxation, langevin };
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

class CudaGradientChains {
 public:
  /// Variables that there may be: with more, weights of single changes, of 24 bits, would be too coarse.
  static constexpr Index kMostVariables = 65536;

  CudaGradientChains(const CudaGradientChains&) = delete;
  CudaGradientChains& operator=(const CudaGradientChains&) = delete;

  void set_function(const BalancingFunction& function);
  void set_reference(std::span<const Value> reference);

  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  void set_steps(std::uint64_t steps);

  // One chain; other threads may set and get other chains at the same time, while none advances.
  void set_levels(std::size_t chain, std::span<const Value> levels);
  void get_levels(std::size_t chain, std::span<Value> levels) const;
  /// Levels from the bits of words.
  static void unpack(std::span<const std::uint32_t> words, std::span<Value> levels);

  /// Acceptance probabilities of each chain, summed.
  [[nodiscard]] std::vector<double> accepted() const;
  [[nodiscard]] double accepted(std::size_t chain) const;
  void set_accepted(std::size_t chain, double accepted);

  /// Counts steps at which variables are at their upper level, from here on.
  void start_counting();
  [[nodiscard]] bool counts() const { return counting_; }
  /// Steps of a chain at which each variable was up since then, and what they are to be from here on.
  [[nodiscard]] std::vector<std::int64_t> up_counts(std::size_t chain) const;
  void set_up_counts(std::size_t chain, std::span<const std::int64_t> counts);

 protected:
  explicit CudaGradientChains(const CudaGradientOptions& options);
  ~CudaGradientChains();

  [[nodiscard]] cuda::GradientMemory& memory() const { return *memory_; }

  std::size_t chains_;
  Index variables_;
  std::uint64_t steps_ = 0;

 private:
  bool counting_ = false;
  std::unique_ptr<cuda::GradientMemory> memory_;
};

}  // namespace poise
