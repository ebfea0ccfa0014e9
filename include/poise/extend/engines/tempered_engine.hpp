/// What every tempered engine has in common: ladders, one for each chain, their swaps, their adaptation in warm-up.
///
/// A step moves every replica of a ladder on by a sweep and then tries swaps. Draws are the states of the rung at
/// beta = 1. How replicas are kept and moved is a matter of the engine that derives from this.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <poise/extend/base/archive.hpp>
#include <poise/extend/base/rng.hpp>
#include <poise/extend/engines/engine.hpp>
#include <poise/extend/engines/ladder.hpp>

namespace poise {

class TemperedEngine : public Engine {
 public:
  [[nodiscard]] const std::vector<double>& betas() const { return betas_; }
  [[nodiscard]] std::optional<TemperingReport> tempering() const override;

 protected:
  /// `log_hot` is log Z of the hot end, or not a number.
  TemperedEngine(const EngineTraits& traits, const EngineOptions& options, double log_hot);

  /// What there is of one ladder beside its replicas.
  struct Rungs {
    Ladder ladder;
    Rng rng{0, 0};  // of swaps
    std::uint64_t step = 0;

    template <class A>
    void archive(A& archive) {
      archive(ladder, rng, step);
    }
  };

  /// Rungs that the engine would use where so many are wanted.
  [[nodiscard]] virtual std::size_t round_rungs(std::size_t wanted) const = 0;
  /// Takes another ladder: replicas of rungs that are new begin at states of the nearest old ones. `before` is the
  /// ladder until now, and betas() is the new one; rungs(c) still has the places of replicas on the old one.
  virtual void remake_replicas(const std::vector<double>& before) = 0;
  /// Where swaps are made on a device: brings `rungs` up to date. Called before anybody looks at ladders of all chains.
  virtual void fetch_ladders(std::vector<Rungs>&) const {}

  [[nodiscard]] Rungs& rungs(std::size_t chain) { return rungs_[chain]; }
  [[nodiscard]] const Rungs& rungs(std::size_t chain) const { return rungs_[chain]; }
  void bring_ladders() const { fetch_ladders(rungs_); }
  /// Logarithms of ratios of normalising constants of neighbouring rungs, roughly.
  [[nodiscard]] const std::vector<double>& guesses() const { return guesses_; }
  /// Before the first step.
  void set_first_betas(std::vector<double> betas);
  /// From here on counts are those of the run.
  void restart_counts(std::size_t chain);

  void save_ladder(Saver& out) const { out(betas_, guesses_); }
  /// Before chains are loaded.
  void load_ladder(Loader& in) { in(betas_, guesses_); }
  [[nodiscard]] const Division* division_of_ladders() const { return division_.get(); }

 private:
  friend class LadderTuner;
  void adapt();
  /// Those of all chains of the run, in their order, wherever they are.
  [[nodiscard]] std::vector<Ladder> all_ladders() const;

  double log_hot_;
  std::shared_ptr<const Division> division_;
  std::vector<double> betas_;
  std::vector<double> guesses_;  // log ratios of normalising constants of neighbouring rungs
  mutable std::vector<Rungs> rungs_;
};

/// Spaces the ladder of a tempered engine by what its swaps tell, in rounds that double, while warm-up holds it.
class LadderTuner {
 public:
  explicit LadderTuner(TemperedEngine& engine) : engine_(engine) {}

  /// Steps of all chains until `adapt` is due.
  [[nodiscard]] std::uint64_t steps_left() const { return left_; }
  /// After steps of all chains; never more than are left.
  void made(std::uint64_t steps);

  template <class A>
  void archive(A& archive) {
    archive(round_, left_);
  }

 private:
  static constexpr std::uint64_t kFirstRound = 16;

  TemperedEngine& engine_;
  std::uint64_t round_ = kFirstRound;
  std::uint64_t left_ = kFirstRound;
};

}  // namespace poise
