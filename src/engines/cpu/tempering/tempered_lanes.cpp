/// Ladders across lanes: sweeps, energies, swaps, and what the cold replica is worth.
#include "engines/cpu/tempering/tempered_lanes.hpp"

#include <algorithm>
#include <utility>

#include <poise/extend/engines/tuner.hpp>
#include "engines/common/tempering/lane_ladders.hpp"
#include "engines/cpu/lanes/lane_layout.hpp"

namespace poise {

namespace {

template <class T>
class TemperedLanes final : public LaneLadders<T> {
  using Base = LaneLadders<T>;
  using Base::betas;
  using Base::has_pair;
  using Base::heats;
  using Base::pairs;
  using Base::rungs;
  using Base::traits_;

 public:
  TemperedLanes(const std::shared_ptr<const T>& target, const std::shared_ptr<const LaneModel>& model,
                const EngineOptions& options)
      : TemperedLanes(target, model, LaneEnergy<T>(*target, *model), options) {}

  std::vector<ChainGroup> share_out(unsigned threads) override {
    // Two ladders that exchange components stay together.
    std::vector<ChainGroup> groups = group_chains((traits_.chains + 1) / 2, threads, 1);
    for (ChainGroup& group : groups) {
      group.first *= 2;
      group.count = std::min(2 * group.count, traits_.chains - group.first);
    }
    return groups;
  }

  void advance(ChainGroup group, std::uint64_t steps) override {
    for (std::size_t c = group.first; c < group.first + group.count; c += 2) {
      const bool two = c + 1 < group.first + group.count;
      for (std::uint64_t k = 0; k < steps; ++k) {
        step(c);
        if (!two) continue;
        step(c + 1);
        exchange_parts(c);
      }
    }
  }

  void observe(ChainGroup group, const Observables& out) const override {
    for (std::size_t k = 0; k < group.count; ++k) {
      const std::size_t c = group.first + k;
      const Chain& chain = chains_[c];
      this->observe_steps(c, k, out);
      if (!out.empirical_marginals.empty()) {
        this->observe_counts(chain.counts, rungs(c).step - chain.counted_from,
                             Base::row(out.empirical_marginals, k, traits_.entries));
      }
      if (!out.wants_state()) continue;
      std::vector<Value> levels(traits_.variables);
      chain.tile.get_levels(rungs(c).ladder.cold(), levels);
      this->observe_levels(levels, k, out);
    }
  }

  void restart(std::size_t c, std::span<const Value> levels) override {
    for (std::size_t r = 0; r < betas().size(); ++r) chains_[c].tile.set_levels(r, levels);
    std::fill(chains_[c].counts.begin(), chains_[c].counts.end(), std::uint64_t{0});
    chains_[c].counted_from = rungs(c).step;
  }

  void start_marginals(ChainGroup group, bool rao_blackwell) override {
    for (std::size_t c = group.first; c < group.first + group.count; ++c) {
      Chain& chain = chains_[c];
      this->restart_counts(c);
      if (has_pair(c)) this->pair_of(c).freeze();
      chain.counts.assign(traits_.entries, 0);
      if (rao_blackwell) chain.tile.reset_sums();
      chain.counted_from = chain.averaged_from = rungs(c).step;
      energy_.sum(chain.tile, chain.energies);
      if (chain.energies.zeros[rungs(c).ladder.cold()] != 0.0) this->refuse_impossible(c);
    }
  }

  [[nodiscard]] RaoBlackwell rao_blackwell(std::size_t c) const override {
    const Chain& chain = chains_[c];
    if (!chain.tile.averages()) return {};
    RaoBlackwell out{std::vector<double>(traits_.entries, 0.0), rungs(c).step - chain.averaged_from};
    std::vector<double> sums(traits_.entries);
    for (std::size_t r = 0; r < betas().size(); ++r) {
      chain.tile.get_sums(r, sums);
      for (std::size_t k = 0; k < sums.size(); ++k) out.sums[k] += sums[k];
    }
    return out;
  }

  void load_common(Loader& in) override {
    this->load_ladder(in);
    this->set_heats();
  }

  void save_chain(std::size_t c, Saver& out) const override {
    const Chain& chain = chains_[c];
    out(rungs(c));
    if (has_pair(c)) out(this->pair_of(c));
    out(chain.tile.progress(), chain.counts, chain.counted_from, chain.averaged_from);
    std::vector<Value> levels(traits_.variables);
    for (std::size_t r = 0; r < betas().size(); ++r) {
      chain.tile.get_levels(r, levels);
      out(levels, chain.tile.get_totals(r));
    }
  }

  void load_chain(std::size_t c, Loader& in) override {
    Chain& chain = chains_[c];
    in(rungs(c));
    if (has_pair(c)) in(this->pair_of(c));
    chain.tile = make_tile(c);
    TileProgress progress;
    in(progress, chain.counts, chain.counted_from, chain.averaged_from);
    chain.tile.set_progress(progress);
    for (std::size_t r = 0; r < betas().size(); ++r) {
      std::vector<Value> levels;
      LaneTotals totals;
      in(levels, totals);
      chain.tile.set_levels(r, levels);
      chain.tile.set_totals(r, totals);
    }
    heat(c);
  }

 protected:
  void remake_replicas(const std::vector<double>& before) override {
    this->set_heats();
    for (auto& pair : pairs()) pair.reset(betas().size());
    std::vector<Value> levels(traits_.variables);
    for (std::size_t c = 0; c < chains_.size(); ++c) {
      Chain& chain = chains_[c];
      LaneTile tile = make_tile(c);
      tile.set_progress(chain.tile.progress());
      for (std::size_t k = 0; k < betas().size(); ++k) {
        chain.tile.get_levels(rungs(c).ladder.replica_at(Base::nearest(before, betas()[k])), levels);
        tile.set_levels(k, levels);
      }
      chain.tile = std::move(tile);
      for (std::size_t k = 0; k < betas().size(); ++k) chain.tile.heat(k, heats()[k], k + 1 == betas().size());
    }
  }

 private:
  struct Chain {
    LaneTile tile;
    LaneEnergies energies = {};
    std::vector<std::uint64_t> counts = {};  // steps of the cold replica at each level above 0
    std::uint64_t counted_from = 0;
    std::uint64_t averaged_from = 0;
    ComponentExchange::Scratch scratch = {};
  };

  TemperedLanes(const std::shared_ptr<const T>& target, const std::shared_ptr<const LaneModel>& model,
                LaneEnergy<T> energy, const EngineOptions& options)
      : Base(target, model, energy.log_hot(), options), energy_(std::move(energy)), components_(*model) {
    for (std::size_t c = 0; c < traits_.chains; ++c) {
      chains_.push_back({make_tile(c)});
      for (std::size_t r = 0; r < betas().size(); ++r) chains_[c].tile.set_levels(r, options.starts[c]);
      heat(c);
    }
  }

  [[nodiscard]] LaneTile make_tile(std::size_t c) const {
    return {this->model(), {0, betas().size()}, this->seed(), this->first_lane(c)};
  }

  void heat(std::size_t c) {
    for (std::size_t k = 0; k < heats().size(); ++k) heat_rung(c, k);
  }
  void heat_rung(std::size_t c, std::size_t k) {
    chains_[c].tile.heat(rungs(c).ladder.replica_at(k), heats()[k], k + 1 == heats().size());
  }

  void step(std::size_t c) {
    Chain& chain = chains_[c];
    auto& own = rungs(c);
    chain.tile.sweep(1);
    energy_.sum(chain.tile, chain.energies);
    const auto gain = [&](std::size_t pair, std::size_t replica) {
      return this->beta_steps()[pair] * chain.energies.log_weight[replica] +
             this->zero_steps()[pair] * chain.energies.zeros[replica];
    };
    if (own.step % Base::kBridgeEvery == 0) own.ladder.bridge(gain);
    own.ladder.swap(own.step, own.rng, gain, [&](std::size_t pair) {
      heat_rung(c, pair);
      heat_rung(c, pair + 1);
    });
    ++own.step;
    if (!chain.counts.empty()) count(chain, own.ladder.cold());
  }

  /// Between a ladder and the one after it, both at the same step.
  void exchange_parts(std::size_t c) {
    auto& pair = this->pair_of(c);
    const std::size_t rung = rungs(c).step % betas().size();
    if (pair.is_off[rung] != 0) return;
    const auto at = [&](std::size_t chain) {
      return ComponentExchange::At{chains_[chain].tile, rungs(chain).ladder.replica_at(rung)};
    };
    pair.components[rung] += static_cast<double>(components_.exchange(at(c), at(c + 1), pair.rng, chains_[c].scratch));
    pair.tried[rung] += 1.0;
  }

  void count(Chain& chain, std::size_t lane) const {
    const Value* levels = chain.tile.levels() + lane;
    const std::vector<LaneModel::Variable>& variables = this->model()->variables();
    for (std::size_t k = 0; k + 1 < variables.size(); ++k, levels += chain.tile.lanes()) {
      if (*levels > 0) ++chain.counts[this->model()->entries()[variables[k].variable] + *levels - 1];
    }
  }

  LaneEnergy<T> energy_;
  ComponentExchange components_;
  std::vector<Chain> chains_;
};

}  // namespace

template <class T>
TunableEngine make_tempered_lanes(const std::shared_ptr<const T>& target, LaneSource source,
                                  const EngineOptions& options) {
  auto engine = std::make_unique<TemperedLanes<T>>(
      target, std::make_shared<const LaneModel>(std::move(source), LaneZeros::soft), options);
  auto tuner = std::make_unique<LadderTuner>(*engine);
  return {.engine = std::move(engine), .ladder = std::move(tuner)};
}

template TunableEngine make_tempered_lanes<MarkovNetwork>(const std::shared_ptr<const MarkovNetwork>&, LaneSource,
                                                          const EngineOptions&);
template TunableEngine make_tempered_lanes<GraphIsing>(const std::shared_ptr<const GraphIsing>&, LaneSource,
                                                       const EngineOptions&);

}  // namespace poise
