/// All chains of a run, as seen from a rank that moves some of them.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <poise/extend/engines/division.hpp>
#include <poise/extend/engines/tuner.hpp>

namespace poise {

/// Has an engine of the chains of its own rank, whose numbers begin at 0 there. A rank without chains has an engine of
/// one that is never moved on: it knows what all ranks must know.
class DividedEngine final : public Engine {
 public:
  DividedEngine(std::unique_ptr<Engine> own, std::shared_ptr<const Division> division)
      : Engine(traits_of(*own, *division)), own_(std::move(own)), division_(std::move(division)) {}

  [[nodiscard]] const Division* division() const override { return division_.get(); }

  std::vector<ChainGroup> share_out(unsigned threads) override {
    if (division_->own().count == 0) return {};
    std::vector<ChainGroup> groups = own_->share_out(threads);
    for (ChainGroup& group : groups) group.first += first();
    return groups;
  }
  void advance(ChainGroup group, std::uint64_t steps) override { own_->advance(here(group), steps); }
  void observe(ChainGroup group, const Observables& out) const override { own_->observe(here(group), out); }
  void advance_and_observe(ChainGroup group, std::uint64_t steps, std::span<const Observables> draws) override {
    own_->advance_and_observe(here(group), steps, draws);
  }
  void restart(std::size_t chain, std::span<const Value> levels) override { own_->restart(chain - first(), levels); }
  void start_marginals(ChainGroup group, bool rao_blackwell) override {
    own_->start_marginals(here(group), rao_blackwell);
  }
  void visit_marginals(ChainGroup group) override { own_->visit_marginals(here(group)); }
  [[nodiscard]] RaoBlackwell rao_blackwell(std::size_t chain) const override {
    return own_->rao_blackwell(chain - first());
  }
  [[nodiscard]] std::optional<TemperingReport> tempering() const override { return own_->tempering(); }

  void save_common(Saver& out) const override { own_->save_common(out); }
  void load_common(Loader& in) override { own_->load_common(in); }
  void save_chain(std::size_t chain, Saver& out) const override { own_->save_chain(chain - first(), out); }
  void load_chain(std::size_t chain, Loader& in) override { own_->load_chain(chain - first(), in); }

 private:
  static EngineTraits traits_of(const Engine& own, const Division& division) {
    EngineTraits traits = own.traits();
    traits.chains = division.chains();
    return traits;
  }
  [[nodiscard]] std::size_t first() const { return division_->own().first; }
  [[nodiscard]] ChainGroup here(ChainGroup group) const { return {group.first - first(), group.count}; }

  std::unique_ptr<Engine> own_;
  std::shared_ptr<const Division> division_;
};

class DividedTuner final : public Tuner {
 public:
  DividedTuner(std::unique_ptr<Tuner> own, std::size_t first) : own_(std::move(own)), first_(first) {}

  void set_function(const BalancingFunction& function, std::uint64_t steps) override {
    own_->set_function(function, steps);
  }
  void reweigh(std::size_t chain) override { own_->reweigh(chain - first_); }
  void observe(std::size_t chain, const TransitionGradientOptions& options, TransitionGradient& out) override {
    own_->observe(chain - first_, options, out);
  }
  void backward(std::size_t chain, const TransitionGradient& observed, std::span<const double> coefficients,
                std::span<double> out) override {
    own_->backward(chain - first_, observed, coefficients, out);
  }
  void save_chain(std::size_t chain, Saver& out) const override { own_->save_chain(chain - first_, out); }
  void load_chain(std::size_t chain, Loader& in) override { own_->load_chain(chain - first_, in); }

 private:
  std::unique_ptr<Tuner> own_;
  std::size_t first_;
};

/// Chains of this rank as all chains of the run.
[[nodiscard]] inline TunableEngine divide(TunableEngine own, const std::shared_ptr<const Division>& division) {
  own.engine = std::make_unique<DividedEngine>(std::move(own.engine), division);
  if (own.tuner) own.tuner = std::make_unique<DividedTuner>(std::move(own.tuner), division->own().first);
  return own;
}

}  // namespace poise
