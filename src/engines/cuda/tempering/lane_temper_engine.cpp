/// Ladders on a GPU as an engine: the host knows of them what it has last asked for.
#include "engines/cpu/tempering/temper.hpp"
#include "engines/cuda/common/chains_engine.hpp"
#include "engines/cuda/engines.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <poise/extend/engines/tuner.hpp>
#include "engines/common/exact_tables.hpp"
#include "engines/common/tempering/lane_ladders.hpp"
#include "engines/cpu/tempering/tempered_lanes.hpp"
#include "engines/cuda/lanes/lane_tile.hpp"
#include "engines/cuda/tempering/ladder.hpp"
#include "engines/cuda/tempering/lane_ladders.hpp"

namespace poise {

namespace {

template <class T>
class CudaTemperedLanes final : public LaneLadders<T> {
  using Base = LaneLadders<T>;
  using Rungs = typename Base::Rungs;
  using Base::betas;
  using Base::bring_ladders;
  using Base::has_pair;
  using Base::rungs;
  using Base::traits_;

 public:
  CudaTemperedLanes(const std::shared_ptr<const T>& target, const std::shared_ptr<const LaneModel>& model,
                    const EngineOptions& options)
      : Base(target, model, LaneEnergy<T>(*target, *model).log_hot(), options),
        ladders_(device_model(*target, model, options), device_options(*model, options)),
        chains_(traits_.chains) {
    constexpr std::size_t kMostSteps = 256;  // tens of microseconds each, of a small model
    constexpr std::size_t kUpdates = std::size_t{1} << 30;
    const std::size_t updates = traits_.chains * LaneTile::kMost * std::max<Index>(1, traits_.variables);
    traits_.chunk = std::clamp<std::size_t>(kUpdates / updates, 1, kMostSteps);
    traits_.group = traits_.chains;
    traits_.draws_at_once = lane_draws_at_once(traits_.chains);
    set_rungs();
    const typename T::State state = target->make_state(options.starts.front());
    for (Index i = 0; i < traits_.variables; ++i) {
      if (target->cardinality(i) == 1) observed_.push_back({i, target->level(state, i)});
    }
    for (std::size_t c = 0; c < traits_.chains; ++c) place(c, options.starts[c]);
  }

  std::vector<ChainGroup> share_out(unsigned) override { return {{0, traits_.chains}}; }

  void advance(ChainGroup group, std::uint64_t steps) override {
    if (group.count != traits_.chains) throw std::logic_error("ladders on a GPU are moved on together");
    send_ladders();
    start(steps);
    ladders_.wait();
    add_paths();
  }

  void advance_and_observe(ChainGroup group, std::uint64_t steps, std::span<const Observables> draws) override {
    if (group.count != traits_.chains || !wants_sums_alone(draws.front())) {
      return Engine::advance_and_observe(group, steps, draws);
    }
    send_ladders();
    const std::uint64_t before = rungs(0).step;
    ladders_.sum_draws(
        draws.size(), [&] { start(steps); },
        [&](std::size_t draw, const CudaLaneSums& sums) {
          observe_sums(this->target(), sums, draws[draw]);
          const auto made = static_cast<double>(before + (draw + 1) * steps);
          std::fill(draws[draw].accepted.begin(), draws[draw].accepted.end(), made);
        });
    add_paths();
  }

  void observe(ChainGroup group, const Observables& out) const override {
    send_ladders();
    if (!out.log_prob.empty() || !out.statistics.empty() || !out.distance.empty()) {
      const CudaLaneSums all = ladders_.sums();
      const auto part = [&](auto sums) { return sums.subspan(group.first, group.count); };
      observe_sums(this->target(), {part(all.units), part(all.different), part(all.at_level)}, out);
    }
    for (std::size_t k = 0; k < group.count; ++k) {
      const std::size_t c = group.first + k;
      this->observe_steps(c, k, out);
      if (!out.empirical_marginals.empty()) {
        this->observe_counts(ladders_.totals(c).counts, rungs(c).step - chains_[c].counted_from,
                             Base::row(out.empirical_marginals, k, traits_.entries));
      }
      if (out.levels.empty()) continue;
      const std::span<const Value> levels = ladders_.cold_levels(c);
      std::copy(levels.begin(), levels.end(), Base::row(out.levels, k, traits_.variables).begin());
    }
  }

  void restart(std::size_t c, std::span<const Value> levels) override {
    place(c, {levels.begin(), levels.end()});
    chains_[c].counted_from = rungs(c).step;
    if (!ladders_.counts()) return;
    LaneTotals totals = ladders_.totals(c);
    std::fill(totals.counts.begin(), totals.counts.end(), std::uint64_t{0});
    ladders_.set_totals(c, totals);
  }

  void start_marginals(ChainGroup, bool rao_blackwell) override {
    bring_ladders();
    const CudaLaneLadders::Energies energies = ladders_.energies();
    for (std::size_t c = 0; c < traits_.chains; ++c) {
      this->restart_counts(c);
      if (has_pair(c)) this->pair_of(c).freeze();
      chains_[c] = {rungs(c).step, rungs(c).step};
      if (energies.zeros[c * betas().size() + rungs(c).ladder.cold()] != 0.0) this->refuse_impossible(c);
    }
    host_is_newer_ = true;
    ladders_.reset_counts();
    if (rao_blackwell) ladders_.reset_sums();
  }

  [[nodiscard]] RaoBlackwell rao_blackwell(std::size_t c) const override {
    if (!ladders_.averages()) return {};
    const LaneTotals totals = ladders_.totals(c);
    RaoBlackwell out{totals.sums, rungs(c).step - chains_[c].averaged_from};
    for (std::size_t k = 0; k < out.sums.size(); ++k) out.sums[k] += static_cast<double>(totals.recent[k]);
    return out;
  }

  void load_common(Loader& in) override {
    this->load_ladder(in);
    this->set_heats();
    set_rungs();
  }

  // States are those of ladders on the CPU: the sums of the ladder are those of its first replica.

  void save_chain(std::size_t c, Saver& out) const override {
    bring_ladders();
    out(rungs(c));
    if (has_pair(c)) out(this->pair_of(c));
    const LaneTotals totals = ladders_.totals(c);
    TileProgress progress = ladders_.progress();
    progress.counts = 0;
    out(progress, totals.counts, chains_[c].counted_from, chains_[c].averaged_from);
    LaneTotals of_replica{{}, totals.sums, totals.recent};
    for (std::size_t r = 0; r < betas().size(); ++r) {
      const std::span<const Value> levels = ladders_.levels(c, r);
      out(std::vector<Value>(levels.begin(), levels.end()), of_replica);
      std::fill(of_replica.sums.begin(), of_replica.sums.end(), 0.0);
      std::fill(of_replica.recent.begin(), of_replica.recent.end(), 0.0F);
    }
  }

  void load_chain(std::size_t c, Loader& in) override {
    in(rungs(c));
    if (has_pair(c)) in(this->pair_of(c));
    host_is_newer_ = true;
    device_is_newer_ = false;
    TileProgress progress;
    LaneTotals totals;
    in(progress, totals.counts, chains_[c].counted_from, chains_[c].averaged_from);
    progress.counts = totals.counts.empty() ? 0 : 1;
    const TileProgress before = ladders_.progress();
    // All ladders are at the same step.
    if (progress.sweeps != before.sweeps || progress.counts != before.counts || progress.averages != before.averages) {
      ladders_.set_progress(progress);
    }
    totals.sums.assign(progress.averages != 0 ? traits_.entries : 0, 0.0);
    totals.recent.assign(totals.sums.size(), 0.0F);
    for (std::size_t r = 0; r < betas().size(); ++r) {
      std::vector<Value> levels;
      LaneTotals of_replica;
      in(levels, of_replica);
      set_observed(levels);
      ladders_.set_levels(c, r, levels);
      for (std::size_t k = 0; k < totals.sums.size(); ++k) {
        totals.sums[k] += of_replica.sums[k];
        totals.recent[k] += of_replica.recent[k];
      }
    }
    ladders_.set_totals(c, totals);
  }

 protected:
  void remake_replicas(const std::vector<double>& before) override {
    this->set_heats();
    for (auto& pair : this->pairs()) pair.reset(betas().size());
    std::vector<std::vector<Value>> states;
    for (std::size_t c = 0; c < traits_.chains; ++c) {
      for (const double beta : betas()) {
        const auto levels = ladders_.levels(c, rungs(c).ladder.replica_at(Base::nearest(before, beta)));
        states.emplace_back(levels.begin(), levels.end());
      }
    }
    set_rungs();
    for (std::size_t k = 0; k < states.size(); ++k) {
      ladders_.set_levels(k / betas().size(), k % betas().size(), states[k]);
    }
  }

  void fetch_ladders(std::vector<Rungs>& all) const override {
    if (!std::exchange(device_is_newer_, false)) return;
    const std::vector<CudaLadder> ladders = ladders_.ladders();
    for (std::size_t c = 0; c < all.size(); ++c) to_host(ladders[c], all[c]);
    const std::vector<CudaExchange> exchanges = ladders_.exchanges();
    for (std::size_t k = 0; k < exchanges.size(); ++k) {
      auto& pair = this->pair_of(2 * k);
      pair.components.assign(exchanges[k].components.begin(), exchanges[k].components.end());
      pair.tried.assign(exchanges[k].tried.begin(), exchanges[k].tried.end());
      pair.rng.move_to(exchanges[k].taken);
    }
  }

 private:
  struct Chain {
    std::uint64_t counted_from = 0;
    std::uint64_t averaged_from = 0;
  };
  struct Observed {
    Index variable;
    Value level;
  };

  static std::shared_ptr<const CudaLaneModel> device_model(const T& target,
                                                           const std::shared_ptr<const LaneModel>& model,
                                                           const EngineOptions& options) {
    auto out = std::make_shared<CudaLaneModel>();
    out->model = model;
    out->exact = exact_tables(target, *model);
    out->log_sums = log_sums_of(target);
    out->set_reference(options.reference);
    return out;
  }

  [[nodiscard]] CudaLaneLadders::Options device_options(const LaneModel& model, const EngineOptions& options) const {
    CudaLaneLadders::Options out;
    out.ladders = traits_.chains;
    out.seed = options.seed;
    out.first_chain = options.first_chain;
    out.first_lane = this->first_lane(0);
    out.lanes_apart = LaneTile::kMost;
    const ComponentExchange components(model);
    const std::size_t positions = components.start().size() - 1;
    out.first_neighbour.push_back(0);
    for (std::size_t k = 0; k < positions; ++k) {
      for (std::size_t n = components.start()[k]; n < components.start()[k + 1]; ++n) {
        if (components.neighbours()[n] < positions) out.neighbours.push_back(components.neighbours()[n]);
      }
      out.first_neighbour.push_back(static_cast<std::uint32_t>(out.neighbours.size()));
    }
    return out;
  }

  /// After the ladder has changed: the device begins with the new one, from any states.
  void set_rungs() {
    std::vector<CudaRungStep> steps;
    for (std::size_t k = 0; k + 1 < betas().size(); ++k) {
      steps.push_back({this->beta_steps()[k], this->zero_steps()[k], this->guesses()[k]});
    }
    ladders_.set_rungs(this->heats(), steps);
    host_is_newer_ = true;
    device_is_newer_ = false;
  }

  /// Before the device looks at them.
  void send_ladders() const {
    if (!std::exchange(host_is_newer_, false)) return;
    std::vector<CudaLadder> ladders;
    for (std::size_t c = 0; c < traits_.chains; ++c) ladders.push_back(to_device(rungs(c)));
    ladders_.set_ladders(ladders);
    std::vector<CudaExchange> exchanges;
    for (const auto& pair : this->pairs()) {
      exchanges.push_back({.components = {pair.components.begin(), pair.components.end()},
                           .tried = {pair.tried.begin(), pair.tried.end()},
                           .is_off = pair.is_off,
                           .taken = pair.rng.position()});
    }
    ladders_.set_exchanges(exchanges);
  }

  /// As the target has them, whatever a start says: sums of the device look at all levels.
  void set_observed(std::vector<Value>& levels) const {
    for (const Observed& observed : observed_) levels[observed.variable] = observed.level;
  }
  void place(std::size_t c, std::vector<Value> levels) {
    set_observed(levels);
    for (std::size_t r = 0; r < betas().size(); ++r) ladders_.set_levels(c, r, levels);
  }

  /// Has the device make steps.
  void start(std::uint64_t steps) {
    device_is_newer_ = true;
    while (steps > 0) {
      // Up to where paths of replicas have their next point.
      const std::uint64_t step = rungs(0).step;
      const ReplicaPaths& paths = rungs(0).ladder.paths();
      const std::uint64_t some = std::min(steps, steps_to_point(rungs(0).ladder, step));
      ladders_.start(step, some);
      for (std::size_t c = 0; c < traits_.chains; ++c) rungs(c).step += some;
      steps -= some;
      if ((step + some - 1) % paths.stride() != 0) continue;
      followed_.push_back(step + some - 1);
      const bool has_room = ladders_.follow();
      // A path that is full has its points further apart from there on.
      if (!has_room || paths.size() + followed_.size() == ReplicaPaths::kMost) add_paths();
    }
  }

  /// Adds to the paths what was followed on the device.
  void add_paths() {
    if (followed_.empty()) return;
    const std::vector<std::uint8_t> all = ladders_.followed();
    std::vector<std::uint32_t> rung_of(betas().size());
    auto from = all.begin();
    for (const std::uint64_t step : std::exchange(followed_, {})) {
      for (std::size_t c = 0; c < traits_.chains; ++c) {
        for (std::uint32_t& rung : rung_of) rung = *from++;
        rungs(c).ladder.follow(step, rung_of);
      }
    }
  }

  mutable CudaLaneLadders ladders_;
  std::vector<Chain> chains_;
  std::vector<Observed> observed_;
  std::vector<std::uint64_t> followed_;   // steps after which rungs were kept on the device
  mutable bool host_is_newer_ = true;     // than the ladders of the device
  mutable bool device_is_newer_ = false;  // than those of the host
};

template <class T>
TunableEngine make_ladders(const std::shared_ptr<const T>& target, LaneSource source, const EngineOptions& options) {
  auto engine = std::make_unique<CudaTemperedLanes<T>>(
      target, std::make_shared<const LaneModel>(std::move(source), LaneZeros::soft), options);
  auto tuner = std::make_unique<LadderTuner>(*engine);
  return {.engine = std::move(engine), .ladder = std::move(tuner)};
}

}  // namespace

TunableEngine make_cuda_tempered(const Model& model, const Sampler& sampler, const EngineOptions& options) {
  return make_tempered_engine(model, sampler, options, {make_ladders<MarkovNetwork>, make_ladders<GraphIsing>});
}

}  // namespace poise
