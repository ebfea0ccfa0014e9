/// Ladders of tempered RBMs on a GPU: block Gibbs of all replicas, gains and swaps, step after step, without a word
/// from the host.
///
/// Replicas have the random words of the CPU's, and draws are made as there, bit by bit. A swap is decided by sums of
/// logarithms in doubles, which may differ from the CPU's in their last digits: one swap in 10^12 or so.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <poise/types.hpp>
#include "engines/cuda/rbm/rbm_gibbs_chains.hpp"
#include "engines/cuda/tempering/ladder.hpp"
#include "models/rbm/rbm.hpp"

namespace poise {

class CudaRbmLadders {
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
  CudaRbmLadders(const Rbm& target, const Rbm::Base& base, const Options& options);
  ~CudaRbmLadders();
  CudaRbmLadders(const CudaRbmLadders&) = delete;
  CudaRbmLadders& operator=(const CudaRbmLadders&) = delete;

  /// Takes other rungs. States, ladders, counts and random streams start anew.
  void set_rungs(const Rungs& rungs);
  void set_reference(std::span<const Value> reference);

  /// Steps of all ladders, the first of them number `step`. Returns when the steps are made.
  void advance(std::uint64_t step, std::uint64_t steps);
  /// That each replica has made: they say where random streams are.
  [[nodiscard]] std::uint64_t sweeps() const { return sweeps_; }
  void set_sweeps(std::uint64_t sweeps);

  // All ladders, in one go.
  [[nodiscard]] std::vector<CudaLadder> ladders() const;
  void set_ladders(std::span<const CudaLadder> ladders);
  /// Rungs of all replicas, ladder by ladder.
  [[nodiscard]] std::vector<std::uint8_t> rungs_of_replicas() const;

  /// By replica, ladder by ladder: log p at the next rung above less log p at its own, and log p at its own less log p
  /// at the next rung below.
  struct Gains {
    std::vector<double> above;
    std::vector<double> below;
  };
  [[nodiscard]] Gains gains() const;

  // One replica; other threads may set and get others at the same time, while none advances.
  void set_levels(std::size_t ladder, std::size_t replica, std::span<const Value> levels);
  void get_levels(std::size_t ladder, std::size_t replica, std::span<Value> levels) const;

  /// Sums of the cold replicas, by ladder.
  [[nodiscard]] CudaRbmSums cold_sums() const;
  void get_cold_levels(std::size_t ladder, std::span<Value> levels) const;

  /// Counts sweeps after which units of the cold replicas are on, from here on.
  void start_counting();
  [[nodiscard]] bool counts() const { return counting_; }
  [[nodiscard]] std::vector<std::uint64_t> up_counts(std::size_t ladder) const;
  void set_up_counts(std::size_t ladder, std::span<const std::uint64_t> counts);

 private:
  struct OnDevice;

  Index visible_;
  std::uint64_t sweeps_ = 0;
  bool counting_ = false;
  std::unique_ptr<OnDevice> device_;
};

}  // namespace poise
