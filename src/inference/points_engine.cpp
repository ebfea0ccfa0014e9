/// Chains at all points of a scan, and their swaps.
#include "inference/points_engine.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <poise/extend/engines/tuner.hpp>
#include "engines/common/tempering/rung_numbers.hpp"
#include "engines/rows.hpp"
#include "run/start.hpp"

namespace poise {

namespace {

/// States at which models are compared.
constexpr std::size_t kCompared = 8;
/// Couplings are whole numbers of a fine unit, so log p of two models is proportional up to rounding.
constexpr double kRounding = 1e-6;
/// Rounds that change fewer variables are made by one thread.
constexpr std::size_t kWorthThreads = 20000;

std::vector<double> log_prob_of(const Engine& engine) {
  std::vector<double> out(engine.traits().chains);
  engine.observe({0, out.size()}, {.log_prob = out});
  return out;
}

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

bool runs(const Model& model, const char* name) { return why_not(Device::cpu, model, parse_sampler(name)).empty(); }

}  // namespace

Sampler exchange_sampler(const Model& model) {
  if (runs(model, "sw")) {
    try {
      RunOptions options;
      options.chains = 1;
      (void)make_engine(model, parse_sampler("sw"), engine_options(model, options));
      return parse_sampler("sw");
    } catch (const InputError&) {  // couplings of both signs
    }
  }
  return parse_sampler("gibbs");
}

Proportional find_proportional(const std::vector<Model>& models, const RunOptions& options) {
  for (const Model& model : models) {
    if (model.fibers() != nullptr) throw NoExchange("models of user code run one by one");
    const bool same = model.layout.variables == models[0].layout.variables &&
                      model.layout.cardinalities == models[0].layout.cardinalities &&
                      model.layout.observed == models[0].layout.observed;
    if (!same) throw NoExchange("the points have different variables");
  }
  RunOptions few = options;
  few.chains = kCompared;
  few.start = Start::uniform;
  const EngineOptions starts = engine_options(models[0], few);
  std::vector<std::vector<double>> values;
  std::size_t widest = 0;
  double spread = 0.0;
  for (const Model& model : models) {
    values.push_back(log_prob_of(*make_engine(model, parse_sampler("gibbs"), starts).engine));
    const auto [low, high] = std::minmax_element(values.back().begin(), values.back().end());
    if (!std::isfinite(*low) || !std::isfinite(*high)) throw NoExchange("log p is not finite at some states");
    if (*high - *low <= spread) continue;
    spread = *high - *low;
    widest = values.size() - 1;
  }
  if (spread == 0.0) throw NoExchange("log p is the same at all states");
  const std::vector<double>& energy = values[widest];
  const double center = mean_of(energy);
  Proportional out;
  for (const std::vector<double>& of_point : values) {
    const double mean = mean_of(of_point);
    double products = 0.0, squares = 0.0;
    for (std::size_t k = 0; k < kCompared; ++k) {
      products += (of_point[k] - mean) * (energy[k] - center);
      squares += (energy[k] - center) * (energy[k] - center);
    }
    double slope = products / squares;
    if (std::abs(slope) < kRounding) slope = 0.0;
    for (std::size_t k = 0; k < kCompared; ++k) {
      const double off = of_point[k] - mean - slope * (energy[k] - center);
      if (std::abs(off) > kRounding * spread) throw NoExchange("the parameter does not multiply log p");
    }
    out.slopes.push_back(slope);
    out.constants.push_back(mean - slope * center);
  }
  const bool rises = std::is_sorted(out.slopes.begin(), out.slopes.end());
  if (!rises && !std::is_sorted(out.slopes.rbegin(), out.slopes.rend())) {
    throw NoExchange("log p does not rise or fall with the parameter");
  }
  return out;
}

PointsEngine::PointsEngine(const std::vector<Model>& models, const Sampler& sampler, const RunOptions& options,
                           Proportional proportional)
    : Engine(EngineTraits()), proportional_(std::move(proportional)), ladders_(options.chains) {
  for (std::size_t k = 0; k < models.size(); ++k) {
    EngineOptions of_point = engine_options(models[k], options);
    of_point.first_chain += stream_offset(k, 0);
    if (options.start == Start::uniform) {  // each from states of its own
      RunOptions other = options;
      other.first_chain = of_point.first_chain;
      of_point.starts = engine_options(models[k], other).starts;
    }
    TunableEngine made = make_engine(models[k], sampler, of_point);
    const bool is_tuned = made.tuner != nullptr && (sampler.learns() || sampler.settings.many);
    if (is_tuned || made.self_tuning || made.ladder) {
      throw NoExchange("the sampler adapts itself at each point; exchange=yes goes with gibbs, sw and fixed functions");
    }
    if (proportional_.slopes[k] == 0.0 && !evaluator_) {
      const auto& slopes = proportional_.slopes;
      const auto one = std::find_if(slopes.begin(), slopes.end(), [](double slope) { return slope == 1.0; });
      const auto reference = static_cast<std::size_t>(one - slopes.begin());
      evaluator_ = make_engine(models[reference], sampler, engine_options(models[reference], options)).engine;
      evaluator_->share_out(1);
    }
    points_.push_back({std::move(made.engine), {}, models[k].log_constant - models[0].log_constant});
  }
  traits_ = points_[0].engine->traits();
  sweep_ = traits_.steps_per_sweep;
  traits_.chains = ladders_ * points_.size();
  traits_.steps_per_sweep = 1;
  traits_.chunk = std::max<std::uint64_t>(1, traits_.chunk / sweep_ / points_.size());
  traits_.group = traits_.chains;
  traits_.draws_at_once = 1;
  traits_.gives_bits =
      std::all_of(points_.begin(), points_.end(), [](const Point& point) { return point.engine->traits().gives_bits; });
  traits_.together = true;
  for (std::size_t l = 0; l < ladders_; ++l) {
    rungs_.push_back({Ladder(points_.size()), make_rng(options.seed, Stream::swaps, options.first_chain + l)});
  }
  energies_.assign(traits_.chains, 0.0);
  share_out(1);
}

std::vector<double> PointsEngine::acceptance() const {
  SwapCounts counts(points_.size());
  for (const Rung& rung : rungs_) counts.add(rung.ladder.counts());
  std::vector<double> out = counts.rejections();
  for (double& value : out) value = 1.0 - value;
  return out;
}

std::vector<ChainGroup> PointsEngine::share_out(unsigned threads) {
  for (Point& point : points_) point.groups = point.engine->share_out(1);
  const bool worthwhile = traits_.chains * traits_.variables >= kWorthThreads;
  pool_ = std::make_unique<ThreadPool>(worthwhile ? std::max(1U, threads) : 1U);
  return {{0, traits_.chains}};
}

void PointsEngine::advance(ChainGroup, std::uint64_t steps) {
  for (std::uint64_t step = 0; step < steps; ++step) {
    pool_->for_each(points_.size(), [&](std::size_t k) {
      for (const ChainGroup group : points_[k].groups) points_[k].engine->advance(group, sweep_);
    });
    swap();
    ++step_;
  }
}

void PointsEngine::find_energies() {
  pool_->for_each(points_.size(), [&](std::size_t k) {
    const std::span<double> out = std::span(energies_).subspan(k * ladders_, ladders_);
    const double slope = proportional_.slopes[k];
    if (slope != 0.0) {
      for (const ChainGroup group : points_[k].groups) {
        points_[k].engine->observe(group, {.log_prob = out.subspan(group.first, group.count)});
      }
      for (double& value : out) value = (value - proportional_.constants[k]) / slope;
    }
  });
  for (std::size_t k = 0; k < points_.size(); ++k) {
    if (proportional_.slopes[k] != 0.0) continue;
    std::vector<Value> levels(traits_.variables);
    for (std::size_t l = 0; l < ladders_; ++l) {
      points_[k].engine->observe({l, 1}, {.levels = levels});
      evaluator_->restart(l, levels);
      evaluator_->observe({l, 1}, {.log_prob = std::span(energies_).subspan(k * ladders_ + l, 1)});
    }
  }
}

void PointsEngine::swap() {
  find_energies();
  for (std::size_t l = 0; l < ladders_; ++l) {
    Rung& mine = rungs_[l];
    const auto gain = [&](std::size_t pair, std::size_t replica) {
      const double rise = proportional_.slopes[pair + 1] - proportional_.slopes[pair];
      return rise * energies_[mine.ladder.rung_of(replica) * ladders_ + l];
    };
    mine.ladder.swap(step_, mine.rng, gain,
                     [&](std::size_t pair) { points_[pair].engine->exchange(l, *points_[pair + 1].engine); });
  }
}

template <class Work>
void PointsEngine::for_each_part(ChainGroup group, Work&& work) const {
  for (std::size_t c = group.first; c < group.first + group.count;) {
    const std::size_t count = std::min(ladders_ - c % ladders_, group.first + group.count - c);
    work(points_[c / ladders_], ChainGroup{c % ladders_, count}, c - group.first);
    c += count;
  }
}

void PointsEngine::observe(ChainGroup group, const Observables& out) const {
  for_each_part(group, [&](const Point& point, ChainGroup part, std::size_t offset) {
    const auto row = [&](auto span, std::size_t width) {
      return span.empty() ? span : span.subspan(offset * width, part.count * width);
    };
    const std::span<double> log_prob = row(out.log_prob, 1);
    point.engine->observe(
        part, {log_prob, row(out.statistics, traits_.statistics), row(out.distance, 1), row(out.accepted, 1),
               row(out.levels, traits_.variables), row(out.bits, (traits_.variables + 7) / 8),
               row(out.frozen, traits_.variables), row(out.empirical_marginals, traits_.entries), row(out.evals, 1),
               row(out.proposals, 1)});
    for (double& value : log_prob) value += point.constant;
    for (double& value : row(out.accepted, 1)) value /= static_cast<double>(sweep_);
  });
}

void PointsEngine::restart(std::size_t chain, std::span<const Value> levels) {
  points_[chain / ladders_].engine->restart(chain % ladders_, levels);
}

void PointsEngine::start_marginals(ChainGroup, bool) {
  for (Point& point : points_) {
    for (const ChainGroup group : point.groups) point.engine->start_marginals(group, false);
  }
  for (Rung& rung : rungs_) rung.ladder.restart_counts(std::vector<double>(points_.size() - 1, 0.0));
}

void PointsEngine::save_common(Saver& out) const {
  out(step_, rungs_);
  for (const Point& point : points_) point.engine->save_common(out);
}

void PointsEngine::load_common(Loader& in) {
  in(step_, rungs_);
  for (Point& point : points_) point.engine->load_common(in);
}

void PointsEngine::save_chain(std::size_t chain, Saver& out) const {
  points_[chain / ladders_].engine->save_chain(chain % ladders_, out);
}

void PointsEngine::load_chain(std::size_t chain, Loader& in) {
  points_[chain / ladders_].engine->load_chain(chain % ladders_, in);
}

}  // namespace poise
