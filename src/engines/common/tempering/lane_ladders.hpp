/// Tempering across lanes, wherever the lanes are: what ladders are made of, observed by and counted in.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/extend/base/rng.hpp>
#include <poise/extend/engines/chain.hpp>
#include <poise/extend/engines/division.hpp>
#include <poise/extend/engines/engine.hpp>
#include <poise/extend/engines/tempered_engine.hpp>
#include "engines/cpu/lanes/lane_tile.hpp"

namespace poise {

/// Replicas are single-site Gibbs, each at the temperature of its rung; states stay, temperatures move.
template <class T>
class LaneLadders : public TemperedEngine {
 public:
  [[nodiscard]] std::optional<TemperingReport> tempering() const override {
    std::optional<TemperingReport> report = TemperedEngine::tempering();
    double components = 0.0;
    double exchanges = 0.0;
    for (const Pair& pair : all_pairs()) {
      for (std::size_t k = 0; k < pair.tried.size(); ++k) {
        if (pair.is_off[k] != 0) continue;
        components += pair.components[k];
        exchanges += pair.tried[k];
      }
    }
    report->components = exchanges > 0.0 ? components / exchanges : 0.0;
    return report;
  }

  void save_common(Saver& out) const override { save_ladder(out); }

  void visit_marginals(ChainGroup) override {}

 protected:
  /// Stands for log 0 where it is multiplied by a number of zeros.
  static constexpr double kLogZero = -1e30;
  /// One of so many steps goes into the ratios of normalising constants.
  static constexpr std::uint64_t kBridgeEvery = 4;
  /// Random words of replicas are those of lanes far from all chains'.
  static constexpr std::uint64_t kFirstReplica = std::uint64_t{1} << 40;

  /// Two ladders that exchange components of the states at one of their rungs, in turn.
  struct Pair {
    Rng rng{0, 0};
    std::vector<double> components = {};  // seen at each rung, summed
    std::vector<double> tried = {};
    std::vector<std::uint8_t> is_off = {};  // rungs at which states differ in one component as a rule

    void reset(std::size_t rungs) {
      components.assign(rungs, 0.0);
      tried.assign(rungs, 0.0);
      is_off.assign(rungs, 0);
    }
    /// From here on no rung is looked at where exchange does nothing.
    void freeze() {
      constexpr double kWorthwhile = 1.05;
      for (std::size_t k = 0; k < tried.size(); ++k) {
        is_off[k] = tried[k] > 0.0 && components[k] < kWorthwhile * tried[k] ? 1 : 0;
        components[k] = tried[k] = 0.0;
      }
    }

    template <class A>
    void archive(A& archive) {
      archive(rng, components, tried, is_off);
    }
  };

  LaneLadders(std::shared_ptr<const T> target, std::shared_ptr<const LaneModel> model, double log_hot,
              const EngineOptions& options)
      : TemperedEngine(traits_of(*target, options), options, log_hot),
        target_(std::move(target)),
        model_(std::move(model)),
        seed_(options.seed),
        first_chain_(options.first_chain),
        reference_(options.reference) {
    traits_.rounding = model_->rounding();
    set_first_betas(first_betas(round_rungs(2 * LaneTile::kVector)));
    set_heats();
    for (std::size_t c = 0; c + 1 < traits_.chains; c += 2) {
      pairs_.push_back({make_rng(seed_, Stream::components, first_chain_ + c)});
      pairs_.back().reset(betas().size());
    }
  }

  [[nodiscard]] std::size_t round_rungs(std::size_t wanted) const final {
    constexpr std::size_t kVector = LaneTile::kVector;
    return std::clamp((wanted + kVector - 1) / kVector * kVector, kVector, LaneTile::kMost);
  }

  [[nodiscard]] const T& target() const { return *target_; }
  [[nodiscard]] const std::shared_ptr<const LaneModel>& model() const { return model_; }
  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  [[nodiscard]] std::uint64_t first_chain() const { return first_chain_; }
  /// The lane of the first replica of a ladder, among all lanes.
  [[nodiscard]] std::uint64_t first_lane(std::size_t c) const {
    return kFirstReplica + (first_chain_ + c) * LaneTile::kMost;
  }
  [[nodiscard]] const std::vector<LaneHeat>& heats() const { return heats_; }
  [[nodiscard]] const std::vector<double>& beta_steps() const { return beta_steps_; }
  [[nodiscard]] const std::vector<double>& zero_steps() const { return zero_steps_; }

  /// After the ladder has changed.
  void set_heats() {
    heats_.clear();
    beta_steps_.clear();
    zero_steps_.clear();
    for (const double beta : betas()) heats_.push_back(heat_of(beta));
    for (std::size_t k = 0; k + 1 < heats_.size(); ++k) {
      beta_steps_.push_back(heats_[k + 1].beta - heats_[k].beta);
      zero_steps_.push_back(std::max(heats_[k + 1].log_zero, kLogZero) - heats_[k].log_zero);
    }
  }

  /// To be changed too where they are brought up to date.
  [[nodiscard]] std::vector<Pair>& pairs() const { return pairs_; }
  /// Whether it exchanges components with the next one: chains of a rank begin at an even one.
  [[nodiscard]] bool has_pair(std::size_t c) const { return c % 2 == 0 && c / 2 < pairs_.size(); }
  [[nodiscard]] Pair& pair_of(std::size_t c) const { return pairs_[c / 2]; }

  static std::size_t nearest(std::span<const double> betas, double beta) {
    const auto above = std::lower_bound(betas.begin(), betas.end(), beta);
    if (above == betas.begin()) return 0;
    const auto at = static_cast<std::size_t>(above - betas.begin());
    return at == betas.size() || beta - betas[at - 1] < betas[at] - beta ? at - 1 : at;
  }

  [[noreturn]] void refuse_impossible(std::size_t c) const {
    throw InputError(fmt::format("chain {} has found no state of positive probability: a longer warm-up may help",
                                 first_chain_ + c));
  }

  /// What is wanted of chain c beside its state and its counts, as number k.
  void observe_steps(std::size_t c, std::size_t k, const Observables& out) const {
    const std::uint64_t steps = rungs(c).step;
    if (!out.accepted.empty()) out.accepted[k] = static_cast<double>(steps);
    if (!out.evals.empty()) {
      out.evals[k] = {};
      out.evals[k].ratio = steps * traits_.entries * betas().size();
    }
    if (out.frozen.empty()) return;
    // What single changes cannot reach from here, hotter replicas can.
    const std::span<std::uint8_t> none = row(out.frozen, k, traits_.variables);
    std::fill(none.begin(), none.end(), std::uint8_t{0});
  }

  /// What is wanted of the levels of a cold replica, as number k.
  void observe_levels(std::span<const Value> levels, std::size_t k, const Observables& out) const {
    this->observe_state(*target_, target_->make_state(levels), reference_, k, out);
  }

  /// How often the cold replica was at each level, since a step.
  void observe_counts(std::span<const std::uint64_t> counts, std::uint64_t steps, std::span<double> out) const {
    const auto counted = static_cast<double>(std::max<std::uint64_t>(1, steps));
    for (std::size_t e = 0; e < out.size(); ++e) {
      out[e] = counts.empty() ? 0.0 : static_cast<double>(counts[e]) / counted;
    }
  }

 private:
  static EngineTraits traits_of(const T& target, const EngineOptions& options) {
    constexpr std::uint64_t kChunkUpdates = std::uint64_t{1} << 16;
    EngineTraits traits = EngineTraits::of(target, options.starts.size());
    traits.set_chunk(kChunkUpdates);
    traits.group = 2;
    return traits;
  }

  /// At beta = 0 a zero is a level like others, at 1 it is impossible.
  static LaneHeat heat_of(double beta) {
    LaneHeat heat;
    heat.beta = beta;
    if (beta < 1.0) heat.log_zero = static_cast<float>(std::max(5.0 * std::log1p(-beta), LaneModel::kLowestLogZero));
    return heat;
  }

  /// Those of all chains of the run, in their order.
  [[nodiscard]] std::vector<Pair> all_pairs() const {
    const Division* division = division_of_ladders();
    if (division == nullptr) return pairs_;
    std::vector<std::string> own(division->own().count);
    for (std::size_t c = 0; c < own.size(); ++c) {
      if (!has_pair(c)) continue;
      Saver out;
      out(pair_of(c));
      own[c] = out.take();
    }
    std::vector<Pair> all;
    for (const std::string& bytes : division->gather(own)) {
      if (bytes.empty()) continue;
      Loader in(bytes);
      in(all.emplace_back());
    }
    return all;
  }

  std::shared_ptr<const T> target_;
  std::shared_ptr<const LaneModel> model_;
  std::uint64_t seed_;
  std::uint64_t first_chain_;
  std::vector<Value> reference_;
  std::vector<LaneHeat> heats_;  // of rungs
  std::vector<double> beta_steps_;
  std::vector<double> zero_steps_;
  mutable std::vector<Pair> pairs_;
};

}  // namespace poise
