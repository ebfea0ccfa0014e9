/// A sampler as it takes part in an experiment: its chains as one engine, watched step by step, and its burn-in.
#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <poise/extend/engines/engine.hpp>
#include <poise/extend/engines/tuner.hpp>
#include <poise/model.hpp>
#include <poise/run.hpp>
#include <poise/sampler.hpp>

namespace poise::reproduction {

/// Seconds of processor time of this thread: what others do meanwhile on the machine does not count.
[[nodiscard]] inline double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Where a chain is: in which member, and its number there.
struct MemberChain {
  std::size_t member;
  std::size_t chain;
};

/// The published Ising runs learn from thirty targets at once, and figures show burn-in step by step whoever drives it;
/// so this stands between the members, all with the same variables, and the run.
class JointEngine final : public Engine {
 public:
  /// Called after every step of every chain with the number of steps it has made.
  using Watch = std::function<void(std::size_t chain, std::uint64_t step)>;

  explicit JointEngine(std::vector<std::unique_ptr<Engine>> members)
      : Engine(traits_of(members)), members_(std::move(members)) {
    for (std::size_t m = 0; m < members_.size(); ++m) {
      for (std::size_t c = 0; c < members_[m]->traits().chains; ++c) places_.push_back({m, c});
    }
    steps_.assign(places_.size(), 0);
  }

  void watch(Watch watch) { watch_ = std::move(watch); }
  [[nodiscard]] const std::vector<MemberChain>& places() const { return places_; }

  void advance(ChainGroup group, std::uint64_t steps) override {
    for (std::uint64_t done = 0; done < steps;) {
      const std::uint64_t chunk = watch_ ? 1 : steps;
      for_each_part(group, [&](Engine& member, ChainGroup part, std::size_t) { member.advance(part, chunk); });
      done += chunk;
      for (std::size_t c = group.first; c < group.first + group.count; ++c) {
        steps_[c] += chunk;
        if (watch_) watch_(c, steps_[c]);
      }
    }
  }

  void observe(ChainGroup group, const Observables& out) const override {
    for_each_part(group, [&](const Engine& member, ChainGroup part, std::size_t offset) {
      const auto row = [&](auto span, std::size_t width) {
        return span.empty() ? span : span.subspan(offset * width, part.count * width);
      };
      member.observe(part, {row(out.log_prob, 1), row(out.statistics, traits_.statistics), row(out.distance, 1),
                            row(out.accepted, 1), row(out.levels, traits_.variables),
                            row(out.bits, (traits_.variables + 7) / 8), row(out.frozen, traits_.variables),
                            row(out.empirical_marginals, traits_.entries), row(out.evals, 1), row(out.proposals, 1)});
    });
  }

  void restart(std::size_t c, std::span<const Value> levels) override {
    members_[places_[c].member]->restart(places_[c].chain, levels);
  }
  void start_marginals(ChainGroup group, bool rao_blackwell) override {
    for_each_part(group,
                  [&](Engine& member, ChainGroup part, std::size_t) { member.start_marginals(part, rao_blackwell); });
  }
  void visit_marginals(ChainGroup group) override {
    for_each_part(group, [](Engine& member, ChainGroup part, std::size_t) { member.visit_marginals(part); });
  }
  [[nodiscard]] RaoBlackwell rao_blackwell(std::size_t c) const override {
    return members_[places_[c].member]->rao_blackwell(places_[c].chain);
  }
  void save_common(Saver& out) const override {
    for (const auto& member : members_) member->save_common(out);
  }
  void load_common(Loader& in) override {
    for (const auto& member : members_) member->load_common(in);
  }
  void save_chain(std::size_t c, Saver& out) const override {
    out(steps_[c]);
    members_[places_[c].member]->save_chain(places_[c].chain, out);
  }
  void load_chain(std::size_t c, Loader& in) override {
    in(steps_[c]);
    members_[places_[c].member]->load_chain(places_[c].chain, in);
  }

 private:
  static EngineTraits traits_of(const std::vector<std::unique_ptr<Engine>>& members) {
    EngineTraits traits = members[0]->traits();
    traits.chains = 0;
    for (const auto& member : members) {
      traits.chains += member->traits().chains;
      traits.gives_bits = traits.gives_bits && member->traits().gives_bits;
    }
    traits.group = traits.chains;  // whoever watches sees all chains at the same step
    return traits;
  }

  /// Calls work(member, its chains, offset in the group) for every member that has chains in the group.
  template <class Work>
  void for_each_part(ChainGroup group, Work&& work) const {
    for (std::size_t c = group.first; c < group.first + group.count;) {
      const MemberChain& place = places_[c];
      const std::size_t count =
          std::min(members_[place.member]->traits().chains - place.chain, group.first + group.count - c);
      work(*members_[place.member], ChainGroup{place.chain, count}, c - group.first);
      c += count;
    }
  }

  std::vector<std::unique_ptr<Engine>> members_;
  std::vector<MemberChain> places_;
  std::vector<std::uint64_t> steps_;
  Watch watch_;
};

/// The tuners of all members, as one.
class JointTuner final : public Tuner {
 public:
  JointTuner(std::vector<std::unique_ptr<Tuner>> members, std::vector<MemberChain> places)
      : members_(std::move(members)), places_(std::move(places)) {}

  void set_function(const BalancingFunction& function, std::uint64_t steps) override {
    for (const auto& member : members_) member->set_function(function, steps / members_.size());
  }
  void reweigh(std::size_t c) override { of(c).reweigh(places_[c].chain); }
  void observe(std::size_t c, const TransitionGradientOptions& options, TransitionGradient& out) override {
    of(c).observe(places_[c].chain, options, out);
  }
  void backward(std::size_t c, const TransitionGradient& observed, std::span<const double> coefficients,
                std::span<double> out) override {
    of(c).backward(places_[c].chain, observed, coefficients, out);
  }
  void save_chain(std::size_t c, Saver& out) const override { of(c).save_chain(places_[c].chain, out); }
  void load_chain(std::size_t c, Loader& in) override { of(c).load_chain(places_[c].chain, in); }

 private:
  [[nodiscard]] Tuner& of(std::size_t c) const { return *members_[places_[c].member]; }

  std::vector<std::unique_ptr<Tuner>> members_;
  std::vector<MemberChain> places_;
};

/// Chains of several targets as one; the engine is a JointEngine.
[[nodiscard]] inline TunableEngine join(std::vector<TunableEngine> made) {
  std::vector<std::unique_ptr<Engine>> engines;
  std::vector<std::unique_ptr<Tuner>> tuners;
  for (TunableEngine& one : made) {
    engines.push_back(std::move(one.engine));
    if (one.tuner) tuners.push_back(std::move(one.tuner));
  }
  auto engine = std::make_unique<JointEngine>(std::move(engines));
  std::unique_ptr<Tuner> tuner;
  if (!tuners.empty()) tuner = std::make_unique<JointTuner>(std::move(tuners), engine->places());
  return {std::move(engine), std::move(tuner)};
}

struct Contestant {
  std::string key;                   ///< in the names of parts and in tables as CSV
  std::string label;                 ///< in figures and tables
  std::string sampler;               ///< its spec
  std::string column = {};           ///< of the paper's tables; empty where the paper has no such sampler
  std::string color = {};            ///< in all figures
  std::string dash = {};             ///< the same
  unsigned steps_per_iteration = 1;  ///< in burn-in: what one plotted iteration is made of
};

/// The four fixed functions and LSB 1: what the Ising and the network experiment have in common. `learning` are the
/// paper's settings of the latter.
[[nodiscard]] std::vector<Contestant> fixed_and_mixture(const std::string& learning);

struct BurnInPlan {
  std::uint64_t iterations = 0;
  std::uint64_t learning = 0;  ///< iterations after which a function that is learned from the first step on is frozen
};

/// A contestant's chains, watched step by step.
class ContestantRun {
 public:
  ContestantRun(const Model& model, const Contestant& contestant, std::vector<TunableEngine> chains);

  /// Moves all chains through burn-in and gives the balancing function that they sample with from then on.
  ///
  /// A sampler with `schedule=paper` learns as the paper's code does, at every step from the first, at the full rate
  /// and without averaging. (`poise sample` averages the second half of the parameters, which is better.)
  BalancingFunction burn_in(const BurnInPlan& plan);
  void advance(std::uint64_t steps) { run_->advance(steps); }

  [[nodiscard]] JointEngine& engine() { return *engine_; }
  void watch(JointEngine::Watch watch) { engine_->watch(std::move(watch)); }

 private:
  Contestant contestant_;
  Sampler sampler_;
  JointEngine* engine_;  // the run's
  std::unique_ptr<Run> run_;
};

/// phi of a balancing function at |u| = 0, 1/8, ..., 16, with phi(0) = 0.
[[nodiscard]] std::vector<double> tabulated(const BalancingFunction& balance);

/// Evaluations of the target by all chains so far, in any form, per chain.
[[nodiscard]] double evals_per_chain(const Engine& engine);

/// Levels of one chain.
[[nodiscard]] std::vector<Value> levels_of(const Engine& engine, std::size_t chain);
[[nodiscard]] double log_prob_of(const Engine& engine, std::size_t chain);
[[nodiscard]] Evals evals_of(const Engine& engine, std::size_t chain);

}  // namespace poise::reproduction
