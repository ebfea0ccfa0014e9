/// A replica exchange over the points of a scan: every point has chains of its own, and neighbours swap states.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include <poise/extend/engines/engine.hpp>
#include <poise/extend/engines/ladder.hpp>
#include <poise/model.hpp>
#include <poise/run.hpp>
#include <poise/sampler.hpp>
#include "base/thread_pool.hpp"

namespace poise {

/// Why points are not one replica exchange, as a clause.
class NoExchange : public InputError {
 public:
  using InputError::InputError;
};

/// How log p of each point follows from that of one of them: log p_k = slopes[k] E + constants[k], E being log p of
/// that one.
struct Proportional {
  std::vector<double> slopes;
  std::vector<double> constants;
};

/// What the sampler of a replica exchange is where none is named: clusters where there are any, else Gibbs.
[[nodiscard]] Sampler exchange_sampler(const Model& model);

/// Found by the states that chains of a few models begin at. Throws NoExchange where log p
/// of the models is not proportional to each other in this way, or where they have different variables.
[[nodiscard]] Proportional find_proportional(const std::vector<Model>& models, const RunOptions& options);

/// Ladder number l has chain l of every point: chain k * ladders + l of this engine is the one at point k. A step is a
/// sweep of all chains, and then a round of swaps.
class PointsEngine final : public Engine {
 public:
  /// `options.chains` ladders. Throws NoExchange where the sampler adapts itself.
  PointsEngine(const std::vector<Model>& models, const Sampler& sampler, const RunOptions& options,
               Proportional proportional);

  /// Mean acceptance of swaps of each point with the next one, since `start_marginals`.
  [[nodiscard]] std::vector<double> acceptance() const;

  std::vector<ChainGroup> share_out(unsigned threads) override;
  void advance(ChainGroup group, std::uint64_t steps) override;
  void observe(ChainGroup group, const Observables& out) const override;
  void restart(std::size_t chain, std::span<const Value> levels) override;
  void start_marginals(ChainGroup group, bool rao_blackwell) override;
  void visit_marginals(ChainGroup) override {}
  [[nodiscard]] RaoBlackwell rao_blackwell(std::size_t) const override { return {}; }
  void save_common(Saver& out) const override;
  void load_common(Loader& in) override;
  void save_chain(std::size_t chain, Saver& out) const override;
  void load_chain(std::size_t chain, Loader& in) override;

 private:
  /// The chains of a point.
  struct Point {
    std::unique_ptr<Engine> engine;
    std::vector<ChainGroup> groups;
    double constant = 0.0;  // of log p, beside that of the first point
  };
  struct Rung {
    Ladder ladder;
    Rng rng{0, 0};

    template <class A>
    void archive(A& archive) {
      archive(ladder, rng);
    }
  };

  void swap();
  /// E of the states of all chains, point by point.
  void find_energies();
  template <class Work>
  void for_each_part(ChainGroup group, Work&& work) const;

  std::vector<Point> points_;
  std::unique_ptr<Engine> evaluator_;  // of E, where log p of a point says nothing of it
  Proportional proportional_;
  std::size_t ladders_;
  std::uint64_t sweep_;     // steps of the chains
  std::uint64_t step_ = 0;  // of this engine
  std::vector<Rung> rungs_;
  std::vector<double> energies_;
  std::unique_ptr<ThreadPool> pool_;
};

}  // namespace poise
