/// Chains on one target or on several as one ensemble, watched step by step.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <poise/run/ensemble.hpp>

namespace poise::reproduction {

/// The published Ising runs learn from thirty targets at once, and figures show burn-in step by step whoever drives it;
/// so this stands between the members, all with the same variables, and the warm-up.
class Chains final : public Ensemble {
 public:
  /// Called after every step of every chain with the number of steps it has made.
  using Watch = std::function<void(std::size_t chain, std::uint64_t step)>;

  explicit Chains(std::vector<std::unique_ptr<Ensemble>> members) : members_(std::move(members)) {
    for (std::size_t m = 0; m < members_.size(); ++m) {
      for (std::size_t c = 0; c < members_[m]->num_chains(); ++c) places_.push_back({m, c});
    }
    steps_.assign(places_.size(), 0);
  }

  void watch(Watch watch) { watch_ = std::move(watch); }

  [[nodiscard]] std::size_t num_chains() const override { return places_.size(); }
  [[nodiscard]] Index num_variables() const override { return members_[0]->num_variables(); }
  [[nodiscard]] std::uint64_t steps_per_sweep() const override { return members_[0]->steps_per_sweep(); }

  [[nodiscard]] std::size_t group_size() const override { return members_[0]->group_size(); }

  void advance(std::size_t first, std::size_t count, std::uint64_t steps) override {
    for (std::uint64_t done = 0; done < steps;) {
      const std::uint64_t chunk = watch_ ? 1 : steps;
      if (members_.size() == 1) {
        members_[0]->advance(first, count, chunk);
      } else {
        for (std::size_t c = first; c < first + count; ++c) of(c).advance(places_[c].chain, 1, chunk);
      }
      done += chunk;
      for (std::size_t c = first; c < first + count; ++c) {
        steps_[c] += chunk;
        if (watch_) watch_(c, steps_[c]);
      }
    }
  }
  [[nodiscard]] double log_prob(std::size_t c) const override { return of(c).log_prob(places_[c].chain); }
  void levels(std::size_t c, std::span<Value> out) const override { of(c).levels(places_[c].chain, out); }
  void restart(std::size_t c, std::span<const Value> levels) override { of(c).restart(places_[c].chain, levels); }
  [[nodiscard]] std::int64_t distance(std::size_t c) const override { return of(c).distance(places_[c].chain); }
  void statistics(std::size_t c, std::span<double> out) const override { of(c).statistics(places_[c].chain, out); }
  [[nodiscard]] double accepted(std::size_t c) const override { return of(c).accepted(places_[c].chain); }
  [[nodiscard]] Evals evals(std::size_t c) const override { return of(c).evals(places_[c].chain); }
  void reset_marginals(std::size_t c) override { of(c).reset_marginals(places_[c].chain); }
  void add_marginals(std::size_t c, std::span<double> out) override { of(c).add_marginals(places_[c].chain, out); }
  void reset_rao_blackwell(std::size_t c) override { of(c).reset_rao_blackwell(places_[c].chain); }
  void visit_rao_blackwell(std::size_t c) override { of(c).visit_rao_blackwell(places_[c].chain); }
  [[nodiscard]] const RaoBlackwell& rao_blackwell(std::size_t c) const override {
    return of(c).rao_blackwell(places_[c].chain);
  }
  void find_frozen(std::size_t c, std::span<std::uint8_t> out) const override {
    of(c).find_frozen(places_[c].chain, out);
  }
  void set_function(const BalancingFunction& balance, std::uint64_t steps) override {
    for (const auto& member : members_) member->set_function(balance, steps / members_.size());
  }
  void prepare(std::size_t c) override { of(c).prepare(places_[c].chain); }
  void transition_gradient(std::size_t c, const TransitionGradientOptions& options, TransitionGradient& out) override {
    of(c).transition_gradient(places_[c].chain, options, out);
  }
  void add_gradient(std::size_t c, const TransitionGradient& transition_gradient, std::span<const double> coefficients,
                    std::span<double> out) override {
    of(c).add_gradient(places_[c].chain, transition_gradient, coefficients, out);
  }

 private:
  struct Place {
    std::size_t member;
    std::size_t chain;
  };
  [[nodiscard]] Ensemble& of(std::size_t c) const { return *members_[places_[c].member]; }

  std::vector<std::unique_ptr<Ensemble>> members_;
  std::vector<Place> places_;
  std::vector<std::uint64_t> steps_;
  Watch watch_;
};

}  // namespace poise::reproduction
