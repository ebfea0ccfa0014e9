/// Ladders across lanes: sweeps, energies, swaps, and what the cold replica is worth.
#include <poise/run/tempered_lanes.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <poise/hot.hpp>
#include <poise/run/division.hpp>
#include <poise/run/lane_layout.hpp>
#include <poise/run/states.hpp>
#include <poise/streams.hpp>
#include "factor_scopes.hpp"

namespace poise {

namespace {

/// Stands for log 0 where it is multiplied by a number of zeros.
constexpr double kLogZero = -1e30;
/// Of every so many steps one goes into the ratios of normalising constants.
constexpr std::uint64_t kBridgeEvery = 4;
/// Random words of replicas are those of lanes far from all chains'.
constexpr std::uint64_t kFirstReplica = std::uint64_t{1} << 40;
constexpr std::size_t kVector = LaneBlock::kVector;

double log_states(const LaneModel& model) {
  double sum = 0.0;
  for (std::size_t k = 0; k + 1 < model.variables().size(); ++k) sum += std::log(model.variables()[k].levels);
  return sum;
}

/// At beta = 0 a zero is a level like others, at 1 it is impossible.
LaneHeat heat_of(double beta) {
  LaneHeat heat;
  heat.beta = beta;
  if (beta < 1.0) heat.log_zero = static_cast<float>(std::max(5.0 * std::log1p(-beta), LaneModel::kLowestLogZero));
  return heat;
}

template <class T>
class TemperedLanes final : public TemperedEngine {
 public:
  TemperedLanes(const std::shared_ptr<const T>& target, const std::shared_ptr<const LaneModel>& model,
                const EngineOptions& options)
      : TemperedLanes(target, model, LaneEnergy<T>(*target, *model), options) {}

  std::vector<ChainGroup> share_out(unsigned threads) override {
    // Two ladders that exchange components stay together.
    const std::size_t pairs = (traits_.chains + 1) / 2;
    std::vector<ChainGroup> groups = group_chains(pairs, threads, 1);
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
        exchange(c);
      }
    }
  }

  void observe(ChainGroup group, const Observables& out) const override {
    for (std::size_t k = 0; k < group.count; ++k) observe_chain(group.first + k, k, out);
  }

  void restart(std::size_t c, std::span<const Value> levels) override {
    for (std::size_t r = 0; r < betas().size(); ++r) chains_[c].block.set_levels(r, levels);
    std::fill(chains_[c].counts.begin(), chains_[c].counts.end(), std::uint64_t{0});
    chains_[c].counted_from = rungs(c).step;
  }

  void start_marginals(ChainGroup group, bool rao_blackwell) override {
    for (std::size_t c = group.first; c < group.first + group.count; ++c) {
      Chain& chain = chains_[c];
      restart_counts(c);
      if (has_pair(c)) pairs_[c / 2].freeze();
      chain.counts.assign(traits_.entries, 0);
      if (rao_blackwell) chain.block.reset_sums();
      chain.counted_from = chain.averaged_from = rungs(c).step;
      energy_.sum(chain.block, chain.energies);
      if (chain.energies.zeros[rungs(c).ladder.cold()] != 0.0) {
        throw InputError(fmt::format("chain {} has found no state of positive probability: a longer warm-up may help",
                                     first_chain_ + c));
      }
    }
  }

  void visit_marginals(ChainGroup) override {}

  [[nodiscard]] RaoBlackwell rao_blackwell(std::size_t c) const override {
    const Chain& chain = chains_[c];
    if (!chain.block.averages()) return {};
    RaoBlackwell out{std::vector<double>(traits_.entries, 0.0), rungs(c).step - chain.averaged_from};
    std::vector<double> sums(traits_.entries);
    for (std::size_t r = 0; r < betas().size(); ++r) {
      chain.block.get_sums(r, sums);
      for (std::size_t k = 0; k < sums.size(); ++k) out.sums[k] += sums[k];
    }
    return out;
  }

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

  void load_common(Loader& in) override {
    load_ladder(in);
    set_heats();
  }

  void save_chain(std::size_t c, Saver& out) const override {
    const Chain& chain = chains_[c];
    out(rungs(c));
    if (has_pair(c)) out(pairs_[c / 2]);
    out(chain.block.progress(), chain.counts, chain.counted_from, chain.averaged_from);
    std::vector<Value> levels(traits_.variables);
    for (std::size_t r = 0; r < betas().size(); ++r) {
      chain.block.get_levels(r, levels);
      out(levels, chain.block.get_totals(r));
    }
  }

  void load_chain(std::size_t c, Loader& in) override {
    Chain& chain = chains_[c];
    in(rungs(c));
    if (has_pair(c)) in(pairs_[c / 2]);
    chain.block = make_block(c);
    BlockProgress progress;
    in(progress, chain.counts, chain.counted_from, chain.averaged_from);
    chain.block.set_progress(progress);
    for (std::size_t r = 0; r < betas().size(); ++r) {
      std::vector<Value> levels;
      LaneTotals totals;
      in(levels, totals);
      chain.block.set_levels(r, levels);
      chain.block.set_totals(r, totals);
    }
    heat(c);
  }

 protected:
  [[nodiscard]] std::size_t round_rungs(std::size_t wanted) const override {
    return std::clamp((wanted + kVector - 1) / kVector * kVector, kVector, LaneBlock::kMost);
  }

  void remake_replicas(const std::vector<double>& before) override {
    set_heats();
    for (Pair& pair : pairs_) pair.reset(betas().size());
    std::vector<Value> levels(traits_.variables);
    for (std::size_t c = 0; c < chains_.size(); ++c) {
      Chain& chain = chains_[c];
      LaneBlock block = make_block(c);
      block.set_progress(chain.block.progress());
      for (std::size_t k = 0; k < betas().size(); ++k) {
        chain.block.get_levels(rungs(c).ladder.replica_at(nearest(before, betas()[k])), levels);
        block.set_levels(k, levels);
      }
      chain.block = std::move(block);
      for (std::size_t k = 0; k < betas().size(); ++k) chain.block.heat(k, heats_[k], k + 1 == betas().size());
    }
  }

 private:
  struct Chain {
    LaneBlock block;
    LaneEnergies energies = {};
    std::vector<std::uint64_t> counts = {};  // steps of the cold replica at each level above 0
    std::uint64_t counted_from = 0;
    std::uint64_t averaged_from = 0;
    ComponentExchange::Scratch scratch = {};
  };

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

  TemperedLanes(std::shared_ptr<const T> target, std::shared_ptr<const LaneModel> model, LaneEnergy<T> energy,
                const EngineOptions& options)
      : TemperedEngine(traits_of(*target, options), options, energy.log_hot()),
        target_(std::move(target)),
        model_(std::move(model)),
        energy_(std::move(energy)),
        components_(*model_),
        seed_(options.seed),
        first_chain_(options.first_chain),
        reference_(options.reference) {
    set_first_betas(first_betas(round_rungs(2 * kVector)));
    set_heats();
    for (std::size_t c = 0; c < traits_.chains; ++c) {
      chains_.push_back({make_block(c)});
      for (std::size_t r = 0; r < betas().size(); ++r) chains_[c].block.set_levels(r, options.starts[c]);
      heat(c);
    }
    for (std::size_t c = 0; c + 1 < traits_.chains; c += 2) {
      pairs_.push_back({make_rng(seed_, Stream::components, first_chain_ + c)});
      pairs_.back().reset(betas().size());
    }
  }

  static EngineTraits traits_of(const T& target, const EngineOptions& options) {
    constexpr std::uint64_t kChunkUpdates = std::uint64_t{1} << 16;
    EngineTraits traits;
    traits.chains = options.starts.size();
    traits.variables = target.num_variables();
    traits.entries = target.num_moves();
    if constexpr (requires { target.statistic_names(); }) traits.statistics = target.statistic_names().size();
    traits.chunk = std::max<std::uint64_t>(1, kChunkUpdates / std::max<Index>(1, traits.variables));
    traits.group = 2;
    return traits;
  }

  /// Whether it exchanges components with the next one: chains of a rank begin at an even one.
  [[nodiscard]] bool has_pair(std::size_t c) const { return c % 2 == 0 && c / 2 < pairs_.size(); }

  /// Those of all chains of the run, in their order.
  [[nodiscard]] std::vector<Pair> all_pairs() const {
    const Division* division = division_of_ladders();
    if (division == nullptr) return pairs_;
    std::vector<std::string> own(division->own().count);
    for (std::size_t c = 0; c < own.size(); ++c) {
      if (!has_pair(c)) continue;
      Saver out;
      out(pairs_[c / 2]);
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

  static std::size_t nearest(std::span<const double> betas, double beta) {
    const auto above = std::lower_bound(betas.begin(), betas.end(), beta);
    if (above == betas.begin()) return 0;
    const auto at = static_cast<std::size_t>(above - betas.begin());
    return at == betas.size() || beta - betas[at - 1] < betas[at] - beta ? at - 1 : at;
  }

  [[nodiscard]] LaneBlock make_block(std::size_t c) const {
    const std::uint64_t first = kFirstReplica + (first_chain_ + c) * LaneBlock::kMost;
    return {model_, {0, betas().size()}, seed_, first};
  }

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

  void heat(std::size_t c) {
    for (std::size_t k = 0; k < heats_.size(); ++k) heat_rung(c, k);
  }
  void heat_rung(std::size_t c, std::size_t k) {
    chains_[c].block.heat(rungs(c).ladder.replica_at(k), heats_[k], k + 1 == heats_.size());
  }

  void step(std::size_t c) {
    Chain& chain = chains_[c];
    Rungs& own = rungs(c);
    chain.block.sweep(1);
    energy_.sum(chain.block, chain.energies);
    const auto gain = [&](std::size_t pair, std::size_t replica) {
      return beta_steps_[pair] * chain.energies.log_weight[replica] + zero_steps_[pair] * chain.energies.zeros[replica];
    };
    if (own.step % kBridgeEvery == 0) own.ladder.bridge(gain);
    own.ladder.swap(own.step, own.rng, gain, [&](std::size_t pair) {
      heat_rung(c, pair);
      heat_rung(c, pair + 1);
    });
    ++own.step;
    if (!chain.counts.empty()) count(chain, own.ladder.cold());
  }

  /// Between a ladder and the one after it, both at the same step.
  void exchange(std::size_t c) {
    Pair& pair = pairs_[c / 2];
    const std::size_t rung = rungs(c).step % betas().size();
    if (pair.is_off[rung] != 0) return;
    const auto at = [&](std::size_t chain) {
      return ComponentExchange::At{chains_[chain].block, rungs(chain).ladder.replica_at(rung)};
    };
    pair.components[rung] += static_cast<double>(components_.exchange(at(c), at(c + 1), pair.rng, chains_[c].scratch));
    pair.tried[rung] += 1.0;
  }

  void count(Chain& chain, std::size_t lane) const {
    const Value* levels = chain.block.levels() + lane;
    const std::vector<LaneModel::Variable>& variables = model_->variables();
    for (std::size_t k = 0; k + 1 < variables.size(); ++k, levels += chain.block.lanes()) {
      if (*levels > 0) ++chain.counts[model_->entries()[variables[k].variable] + *levels - 1];
    }
  }

  void observe_chain(std::size_t c, std::size_t k, const Observables& out) const {
    const auto row = [k](auto span, std::size_t width) { return span.subspan(k * width, width); };
    const Chain& chain = chains_[c];
    const std::uint64_t steps = rungs(c).step;
    if (!out.accepted.empty()) out.accepted[k] = static_cast<double>(steps);
    if (!out.evals.empty()) {
      out.evals[k] = {};
      out.evals[k].ratio = steps * traits_.entries * betas().size();
    }
    if (!out.empirical_marginals.empty()) {
      const std::span<double> to = row(out.empirical_marginals, traits_.entries);
      const auto counted = static_cast<double>(std::max<std::uint64_t>(1, steps - chain.counted_from));
      for (std::size_t e = 0; e < to.size(); ++e) {
        to[e] = chain.counts.empty() ? 0.0 : static_cast<double>(chain.counts[e]) / counted;
      }
    }
    if (!out.frozen.empty()) {
      // What single changes cannot reach from here, hotter replicas can.
      const std::span<std::uint8_t> none = row(out.frozen, traits_.variables);
      std::fill(none.begin(), none.end(), std::uint8_t{0});
    }
    if (out.log_prob.empty() && out.statistics.empty() && out.distance.empty() && out.levels.empty()) return;
    std::vector<Value> levels(traits_.variables);
    chain.block.get_levels(rungs(c).ladder.cold(), levels);
    const typename T::State state = target_->make_state(levels);
    copy_levels(*target_, state, std::span<Value>(levels));
    if (!out.log_prob.empty()) out.log_prob[k] = target_->log_prob(state);
    if (!out.statistics.empty()) target_->statistics(state, row(out.statistics, traits_.statistics));
    if (!out.levels.empty()) std::copy(levels.begin(), levels.end(), row(out.levels, traits_.variables).begin());
    if (out.distance.empty()) return;
    out.distance[k] = 0;
    for (Index i = 0; i < traits_.variables; ++i) out.distance[k] += levels[i] != reference_[i] ? 1 : 0;
  }

  std::shared_ptr<const T> target_;
  std::shared_ptr<const LaneModel> model_;
  LaneEnergy<T> energy_;
  ComponentExchange components_;
  std::uint64_t seed_;
  std::uint64_t first_chain_;
  std::vector<Value> reference_;
  std::vector<LaneHeat> heats_;  // of rungs
  std::vector<double> beta_steps_;
  std::vector<double> zero_steps_;
  std::vector<Chain> chains_;
  std::vector<Pair> pairs_;
};

}  // namespace

LaneEnergy<MarkovNetwork>::LaneEnergy(const MarkovNetwork& target, const LaneModel& model)
    : unit_(target.unit()), log_hot_(target.log_prob_of(0.0) + log_states(model)) {
  const FactorScopes scopes(target);
  const std::vector<std::int64_t> lowest = lowest_units(target, scopes);
  start_ = scopes.start;
  for (const FactorScopes::Site& site : scopes.sites) sites_.push_back({model.position(site.variable), site.stride});
  bool has_zeros = false;
  for (std::size_t f = 0; f < target.num_factors(); ++f) {
    table_.push_back(target.table_start(f));
    const std::size_t end = target.table_start(f) + scopes.entries(target, f);
    if (units_.size() < end) units_.resize(end);
    if (is_zero_.size() < end) is_zero_.resize(end);
    for (std::size_t e = target.table_start(f); e < end; ++e) {
      const bool is_zero = target.is_zero(target.units(e));
      units_[e] = static_cast<double>(is_zero ? lowest[f] : target.units(e));
      is_zero_[e] = is_zero ? 1.0 : 0.0;
      has_zeros = has_zeros || is_zero;
    }
  }
  if (!has_zeros) is_zero_.clear();
}

void LaneEnergy<MarkovNetwork>::sum(const LaneBlock& block, LaneEnergies& out) const {
  const std::size_t lanes = block.lanes();
  out.log_weight.assign(lanes, 0.0);
  out.zeros.assign(lanes, 0.0);
  hot([lanes, levels = block.levels(), factors = table_.size(), tables = table_.data(), start = start_.data(),
       sites = sites_.data(), units = units_.data(), is_zero = is_zero_.empty() ? nullptr : is_zero_.data(),
       sums = out.log_weight.data(), zeros = out.zeros.data()] {
    std::int32_t entry[LaneBlock::kMost];
    for (std::size_t f = 0; f < factors; ++f) {
      for (std::size_t l = 0; l < lanes; ++l) entry[l] = static_cast<std::int32_t>(tables[f]);
      for (const Site* site = sites + start[f]; site != sites + start[f + 1]; ++site) {
        const Value* row = levels + site->position * lanes;
        for (std::size_t l = 0; l < lanes; ++l) entry[l] += static_cast<std::int32_t>(site->stride * row[l]);
      }
      for (std::size_t l = 0; l < lanes; ++l) sums[l] += units[entry[l]];
      if (is_zero == nullptr) continue;
      for (std::size_t l = 0; l < lanes; ++l) zeros[l] += is_zero[entry[l]];
    }
  });
  for (double& sum : out.log_weight) sum *= unit_;
}

LaneEnergy<GraphIsing>::LaneEnergy(const GraphIsing& target, const LaneModel& model)
    : unit_(target.unit()), log_hot_(log_states(model)), fields_(target.num_variables()) {
  for (Index i = 0; i < target.num_variables(); ++i) {
    fields_[model.position(i)] = target.field_units(i);
    for (const GraphIsing::Neighbour& neighbour : target.neighbours(i)) {
      if (neighbour.variable < i) continue;
      edges_.push_back({model.position(i), model.position(neighbour.variable), neighbour.units});
    }
  }
}

void LaneEnergy<GraphIsing>::sum(const LaneBlock& block, LaneEnergies& out) const {
  const std::size_t lanes = block.lanes();
  std::array<std::int64_t, LaneBlock::kMost> sums{};
  hot([lanes, levels = block.levels(), variables = fields_.size(), fields = fields_.data(), edges = edges_.data(),
       count = edges_.size(), all = sums.data()] {
    for (std::size_t i = 0; i < variables; ++i) {
      if (fields[i] == 0) continue;
      const Value* row = levels + i * lanes;
      for (std::size_t l = 0; l < lanes; ++l) all[l] += (2 * std::int64_t{row[l]} - 1) * fields[i];
    }
    for (std::size_t e = 0; e < count; ++e) {
      const Value* first = levels + edges[e].first * lanes;
      const Value* second = levels + edges[e].second * lanes;
      const std::int64_t units = edges[e].units;
      for (std::size_t l = 0; l < lanes; ++l) {
        const std::int64_t differ = -std::int64_t{static_cast<Value>(first[l] ^ second[l])};
        all[l] += (units ^ differ) - differ;
      }
    }
  });
  out.zeros.assign(lanes, 0.0);
  out.log_weight.resize(lanes);
  for (std::size_t l = 0; l < lanes; ++l) out.log_weight[l] = unit_ * static_cast<double>(sums[l]);
}

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
