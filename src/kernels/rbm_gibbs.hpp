/// The RBM's own block Gibbs: all hidden units given the visible ones, then all visible units given the hidden
/// ones.
///
/// A unit is on if u < sigmoid(a), where u has 52 random bits. Its first sixteen belong to the chain's stream;
/// `RbmLayer` decides nearly all units by these, many chains at a time. Where it cannot, the other 36 are made (a
/// function of the chain and the place of the sixteen) and a is summed exactly. So a chain is that of the exact rule
/// bit by bit.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include <poise/extend/base/concepts.hpp>
#include <poise/extend/kernels/step.hpp>
#include "models/rbm/rbm.hpp"
#include "models/rbm/rbm_layer.hpp"

namespace poise {

class RbmGibbs {
 public:
  struct Scratch {
    explicit Scratch(const Rbm& target);

    RbmUnits hidden;
    RbmUnits visible;
    std::vector<std::uint64_t> random;
    std::uint64_t first_random = 0;     // place of the first sixteen of them in the stream, in sixteens
    std::vector<std::uint64_t> open;    // units that are not decided yet
    std::vector<std::uint32_t> unused;  // counts of hidden units, which are not used
    std::vector<std::uint32_t> counts;  // of the steps of the last `advance` after which a visible unit was on
    std::vector<Value> before;          // the levels before the last `step`
    std::vector<Change> changed;        // by it
    Evals evals;

    /// What the next step depends on, and what was counted.
    template <class A>
    void archive(A& archive) {
      archive(evals);
    }
  };

  /// `doubt` is for tests: the larger it is, the more units are decided exactly, with the same result.
  explicit RbmGibbs(const Rbm& target, double doubt = 0.0);

  [[nodiscard]] static Index steps_per_sweep(const Rbm&) { return 1; }
  void prepare(const Rbm&, const Rbm::State&, Scratch&) const {}

  StepInfo step(const Rbm& target, Rbm::State& state, Scratch& scratch, Rng& rng) const;

  struct Member {
    Rbm::State* state;
    Scratch* scratch;
    Rng* rng;
  };
  /// Most members of a group.
  static constexpr std::size_t kChainsTogether = 16;
  /// Takes every chain of a group through as many steps, fewer than 2^32. What a chain does does not depend on its
  /// company.
  void advance(const Rbm& target, std::span<const Member> group, std::uint64_t steps) const;

  /// `advance` counts the levels of every step by itself.
  static constexpr bool kCountsLevels = true;
  /// The same for any number of chains and steps.
  template <class Chain>
  void advance(const Rbm& target, std::span<Chain* const> chains, std::uint64_t steps) const {
    constexpr std::uint64_t most = std::uint64_t{1} << 30;  // counts have 32 bits
    for (std::size_t first = 0; first < chains.size(); first += kChainsTogether) {
      const auto group = chains.subspan(first, std::min(kChainsTogether, chains.size() - first));
      std::vector<Member> members;
      for (Chain* chain : group) members.push_back({&chain->state, &chain->scratch, &chain->rng});
      for (std::uint64_t done = 0; done < steps; done += most) {
        const std::uint64_t now = std::min(most, steps - done);
        advance(target, std::span<const Member>(members), now);
        for (Chain* chain : group) chain->count_levels(chain->scratch.counts, now);
      }
    }
  }

 private:
  void draw_hidden(const Rbm& target, std::span<const Member> group) const;
  void draw_visible(const Rbm& target, std::span<const Member> group) const;

  std::shared_ptr<const RbmLayers> layers_;
};

}  // namespace poise
