/// Chains of an Ising problem across SIMD lanes, each at a temperature of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <poise/extend/base/archive.hpp>
#include <poise/extend/base/rng.hpp>
#include "inference/optimize/spin_problem.hpp"

namespace poise {

/// Every variable has a row with one number per chain, its spin. The local fields of all chains are sums of rows. A
/// flip that loses 2 g is accepted where g <= temperature * E, E drawn from an exponential law: this is Metropolis'
/// rule at the temperature 2 * temperature. Rounded thresholds of this kind lie ready in a table whose rows are taken
/// from a random one on and renewed now and then, so that a sweep draws no random numbers. Neighbouring variables
/// use different rows. That is no exact sampling, which a search can do without.
class SpinLanes {
 public:
  virtual ~SpinLanes() = default;
  SpinLanes(const SpinLanes&) = delete;
  SpinLanes& operator=(const SpinLanes&) = delete;

  [[nodiscard]] unsigned lanes() const { return static_cast<unsigned>(temperatures.size()); }
  /// The value of each chain's state, as far as lanes can tell: where weights need more than 32 bits it is rounded.
  [[nodiscard]] const std::vector<std::int64_t>& values() const { return values_; }
  [[nodiscard]] virtual std::size_t num_variables() const = 0;
  void set_random();
  /// Computes the values from scratch.
  virtual void recompute_values() = 0;
  /// Renews all thresholds.
  virtual void renew() = 0;
  /// A sweep over all variables; a part of the thresholds is renewed, one row per `variables_per_row` variables.
  virtual void sweep(unsigned variables_per_row) = 0;
  /// The same, and values follow.
  virtual void sweep_with_values(unsigned variables_per_row) = 0;
  /// Exchanges the states of lanes c and c + 1 where exchange[c] is set, which no two neighbouring entries may be.
  virtual void exchange_neighbours(const std::vector<bool>& exchange) = 0;
  virtual void get(unsigned lane, std::span<Spin> spins) const = 0;
  virtual void set(unsigned lane, std::span<const Spin> spins) = 0;
  virtual void save(Saver& out) = 0;
  virtual void load(Loader& in) = 0;

  std::vector<double> temperatures;  ///< per chain; take effect as thresholds are renewed

 protected:
  SpinLanes(unsigned lanes, std::uint64_t seed, std::uint64_t number)
      : temperatures(lanes, 1.0), values_(lanes, 0), rng_(make_rng(seed, Stream::annealing, number)) {}

  std::vector<std::int64_t> values_;
  Rng rng_;
};

/// Lanes as narrow as the weights and the highest temperature allow: 64 chains of bytes, or 32 of 16 or 32 bits. Where
/// many weights add up to more than a byte holds, they are summed in chunks. The problem must outlive them.
[[nodiscard]] std::unique_ptr<SpinLanes> make_spin_lanes(const SpinProblem& problem, double hottest, std::uint64_t seed,
                                                         std::uint64_t number);

}  // namespace poise
