/// The run of a replica exchange, its points, and how their errors are correlated.
#include "inference/scan_exchange.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <poise/extend/engines/division.hpp>
#include <poise/extend/engines/tuner.hpp>
#include "base/state_file.hpp"
#include "engines/common/tempering/rung_numbers.hpp"
#include "report/observables.hpp"
#include "run/recommend.hpp"

namespace poise {

namespace {

/// Means of batches that correlations are estimated from, of all ladders together.
constexpr std::size_t kBatches = 128;
/// Seconds between two states that are written.
constexpr double kStateInterval = 10.0;

std::vector<double> batch_means(const std::vector<double>& series, std::size_t chains, std::size_t draws) {
  const std::size_t batches = std::clamp<std::size_t>(kBatches / chains, 1, draws);
  const std::size_t length = draws / batches;
  std::vector<double> means;
  for (std::size_t c = 0; c < chains; ++c) {
    for (std::size_t b = 0; b < batches; ++b) {
      double sum = 0.0;
      for (std::size_t t = 0; t < length; ++t) sum += series[c * draws + b * length + t];
      means.push_back(sum / static_cast<double>(length));
    }
  }
  return means;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto count = static_cast<double>(a.size());
  double mean_a = 0.0, mean_b = 0.0, aa = 0.0, bb = 0.0, ab = 0.0;
  for (std::size_t k = 0; k < a.size(); ++k) mean_a += a[k] / count, mean_b += b[k] / count;
  for (std::size_t k = 0; k < a.size(); ++k) {
    aa += (a[k] - mean_a) * (a[k] - mean_a);
    bb += (b[k] - mean_b) * (b[k] - mean_b);
    ab += (a[k] - mean_a) * (b[k] - mean_b);
  }
  return ab / std::sqrt(aa * bb);
}

/// What each draw adds to each row of a point.
std::vector<std::vector<double>> series_of(const RunResult& point) {
  std::vector<std::vector<double>> out;
  if (point.spins) {
    for (ObservableSeries& one : observable_series(*point.spins, point.trace, 1)) out.push_back(std::move(one.adds));
  }
  if (!out.empty()) return out;
  for (std::size_t k = 0; k < point.trace.monitors.size(); ++k) {
    if (point.trace.monitor_names[k] != "hamming") out.push_back(point.trace.monitors[k]);
  }
  return out;
}

/// The state that a run continues from: of the same scan, at the same points.
class ScanState {
 public:
  ScanState(const ScanOptions& options, const ScanHooks& hooks, const ExchangePlan& plan, ChainGroup ladders)
      : path_(hooks.state), words_(scan_head(options)) {
    if (!path_.empty() && hooks.collective != nullptr) path_ += fmt::format(".rank{}", hooks.collective->rank());
    words_["ladders"] = {ladders.first, ladders.count};
    words_["values"] = options.range.values;
    words_["sampler_used"] = plan.sampler.name;
  }

  void load(Run& run) const {
    if (path_.empty()) return;
    try {
      std::string note;
      const StoredState stored = read_state(path_, note);
      if (stored.words == words_) run.load(stored.bytes);
    } catch (const InputError&) {  // none
    }
  }
  void write(const Run& run) {
    last_ = Clock::now();
    if (!path_.empty() && !run.is_broken()) write_state(path_, {words_, run.save()});
  }
  void write_when_due(const Run& run) {
    if (seconds_since(last_) >= kStateInterval) write(run);
  }
  void remove() const {
    if (!path_.empty()) remove_states(path_);
  }

 private:
  std::string path_;
  nlohmann::json words_;
  Clock::time_point last_ = Clock::now();
};

/// What was drawn of some ladders, at all points.
struct Ladders {
  std::size_t count = 0;
  std::size_t points = 0;
  bool interrupted = false;
  double seconds = 0.0;
  std::vector<double> swaps;  // accepted, of each point with the next, summed over ladders
  std::string sampler;
  RunOptions options;
  Trace trace;  // chains are ladders, point by point

  /// Without the options, which all ranks have.
  template <class A>
  void archive(A& archive) {
    archive(count, interrupted, seconds, swaps, trace.draws, trace.stride, trace.dropped, trace.monitors,
            trace.acceptance_rate, trace.n_steps);
  }
};

/// Runs the ladders `own`.
Ladders run_ladders(const ScanOptions& options, const std::vector<Model>& models, const ExchangePlan& plan,
                    const ScanHooks& hooks, ChainGroup own) {
  RunOptions of_ladders = options.run;
  of_ladders.chains = own.count;
  of_ladders.first_chain += own.first;
  auto made = std::make_unique<PointsEngine>(models, plan.sampler, of_ladders, plan.proportional);
  const PointsEngine& engine = *made;
  RunOptions all = of_ladders;
  all.chains = own.count * models.size();
  all.start = Start::uniform;  // chains have begun
  all.keep = Keep::monitors;
  ScanState state(options, hooks, plan, own);
  Run run(models[0], plan.sampler, all, TunableEngine{.engine = std::move(made)},
          {.progress = hooks.sampling, .stop = hooks.stop, .after_round = [&](const Run& now) {
             state.write_when_due(now);
           }});
  state.load(run);
  run.warm_up();
  const std::size_t wanted = all.seconds > 0.0 ? std::numeric_limits<std::size_t>::max() : all.draws;
  run.sample(wanted - std::min(wanted, run.draws()));
  const bool stopped = run.stopped();
  if (stopped) state.write(run);
  Ladders out{.count = own.count,
              .points = models.size(),
              .swaps = engine.acceptance(),
              .sampler = {},
              .options = {},
              .trace = {}};
  for (double& swaps : out.swaps) swaps *= static_cast<double>(own.count);
  RunResult result = run.finish();
  if (!stopped) state.remove();
  out.interrupted = result.interrupted;
  out.seconds = result.warmup_seconds + result.sampling_seconds;
  out.sampler = result.sampler;
  out.options = result.options;
  out.trace = std::move(result.trace);
  return out;
}

/// Ladders of all ranks, in their order, as long as the shortest of them.
Ladders of_all_ranks(const Ladders& mine, Collective& ranks) {
  Saver saver;
  saver(mine.points, mine.sampler, mine.trace.monitor_names, mine.options.warmup, mine.options.thin, mine);
  const std::vector<std::size_t> one_each(static_cast<std::size_t>(ranks.size()), 1);
  std::vector<Ladders> all;
  for (const std::string& bytes : ranks.gather_strings({saver.take()}, one_each)) {
    Ladders one;
    Loader in(bytes);
    in(one.points, one.sampler, one.trace.monitor_names, one.options.warmup, one.options.thin, one);
    if (one.count > 0) all.push_back(std::move(one));
  }
  Ladders out = all.front();
  out.options = mine.count > 0 ? mine.options : out.options;
  for (const Ladders& one : all) out.trace.draws = std::min(out.trace.draws, one.trace.draws);
  for (std::size_t r = 1; r < all.size(); ++r) {
    out.count += all[r].count;
    out.interrupted = out.interrupted || all[r].interrupted;
    out.seconds = std::max(out.seconds, all[r].seconds);
    for (std::size_t k = 0; k < out.swaps.size(); ++k) out.swaps[k] += all[r].swaps[k];
  }
  const auto join = [&](const auto& of, auto& to) {
    to.clear();
    for (std::size_t point = 0; point < out.points; ++point) {
      for (const Ladders& one : all) {
        for (std::size_t l = 0; l < one.count; ++l) {
          const auto row = of(one).begin() + static_cast<std::ptrdiff_t>((point * one.count + l) * one.trace.draws);
          to.insert(to.end(), row, row + static_cast<std::ptrdiff_t>(out.trace.draws));
        }
      }
    }
  };
  for (std::size_t k = 0; k < out.trace.monitors.size(); ++k) {
    join(
        [k](const Ladders& one) -> const auto& { return one.trace.monitors[k]; }, out.trace.monitors[k]);
  }
  join(
      [](const Ladders& one) -> const auto& { return one.trace.acceptance_rate; }, out.trace.acceptance_rate);
  join(
      [](const Ladders& one) -> const auto& { return one.trace.n_steps; }, out.trace.n_steps);
  return out;
}

/// The part of a run that is one point.
RunResult result_of_point(const Ladders& all, const Model& model, std::size_t point) {
  RunResult out;
  out.model = model.name;
  out.sampler = all.sampler;
  out.options = all.options;
  out.options.chains = all.count;
  out.layout = model.layout;
  out.spins = model.spins;
  out.interrupted = all.interrupted;
  out.trace.chains = all.count;
  out.trace.draws = all.trace.draws;
  out.trace.stride = all.trace.stride;
  out.trace.dropped = all.trace.dropped;
  out.trace.monitor_names = all.trace.monitor_names;
  const std::size_t count = all.count * all.trace.draws;
  const auto part = [&](const auto& values, auto& to) {
    if (values.empty()) return;
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(point * count);
    to.assign(first, first + static_cast<std::ptrdiff_t>(count));
  };
  out.trace.monitors.resize(all.trace.monitors.size());
  for (std::size_t k = 0; k < all.trace.monitors.size(); ++k) part(all.trace.monitors[k], out.trace.monitors[k]);
  part(all.trace.acceptance_rate, out.trace.acceptance_rate);
  part(all.trace.n_steps, out.trace.n_steps);
  return out;
}

std::vector<ScanPoint> points_of(const ScanOptions& options, const std::vector<Model>& models, const Ladders& all) {
  if (all.trace.draws == 0) return {};
  std::vector<ScanPoint> points;
  std::vector<std::vector<std::vector<double>>> means;  // [point][row]
  for (std::size_t k = 0; k < models.size(); ++k) {
    const RunResult of_point = result_of_point(all, models[k], k);
    points.push_back(point_of(options.range.values[k], make_report(of_point)));
    points[k].seconds = all.seconds / static_cast<double>(models.size());
    if (k < all.swaps.size()) points[k].acceptance = all.swaps[k] / static_cast<double>(all.count);
    auto& of_rows = means.emplace_back();
    for (const std::vector<double>& series : series_of(of_point)) {
      of_rows.push_back(batch_means(series, all.count, of_point.trace.draws));
    }
  }
  const auto correlation_of = [&](std::size_t k, std::size_t row, std::size_t other) {
    if (other == k) return 1.0;
    // At beta = 0 a spin model has no scale of energies, and other rows.
    const auto found = std::find_if(points[other].rows.begin(), points[other].rows.end(),
                                    [&](const Observable& one) { return one.name == points[k].rows[row].name; });
    if (found == points[other].rows.end()) return std::nan("");
    return correlation(means[k][row], means[other][static_cast<std::size_t>(found - points[other].rows.begin())]);
  };
  for (std::size_t k = 0; k < points.size(); ++k) {
    points[k].correlations.resize(points[k].rows.size());
    for (std::size_t row = 0; row < points[k].rows.size(); ++row) {
      for (std::size_t other = 0; other < points.size(); ++other) {
        points[k].correlations[row].push_back(correlation_of(k, row, other));
      }
    }
  }
  return points;
}

}  // namespace

ExchangePlan plan_exchange(const ScanOptions& options, const std::vector<Model>& models) {
  if (models.size() < 2) throw NoExchange("there is one point");
  if (models.size() > kMostRungs) throw NoExchange(fmt::format("there are more than {} points", kMostRungs));
  if (options.run.device != Device::cpu) throw NoExchange("it runs on the CPU only");
  Sampler sampler = parse_sampler(options.sampler);
  if (sampler.name == "auto") {
    const Advice advice = recommend(models.back(), options.run, true);
    if (advice.sampler.name != "gibbs") {
      throw NoExchange(fmt::format("{} is what suits the model", advice.sampler.name));
    }
    sampler = exchange_sampler(models.back());
  }
  return {std::move(sampler), find_proportional(models, options.run)};
}

std::vector<ScanPoint> scan_by_exchange(const ScanOptions& options, const std::vector<Model>& models,
                                        const ExchangePlan& plan, const ScanHooks& hooks) {
  ChainGroup own{0, options.run.chains};
  if (hooks.collective != nullptr) own = Division(*hooks.collective, options.run.chains, 1).own();
  Ladders ladders{.points = models.size(), .swaps = {}, .sampler = {}, .options = options.run, .trace = {}};
  if (own.count > 0) ladders = run_ladders(options, models, plan, hooks, own);
  if (hooks.collective != nullptr) ladders = of_all_ranks(ladders, *hooks.collective);
  return points_of(options, models, ladders);
}

}  // namespace poise
