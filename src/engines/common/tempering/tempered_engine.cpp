/// Ladders of all chains: pooled, spaced anew, reported.
#include <poise/extend/engines/tempered_engine.hpp>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include <poise/extend/base/rng.hpp>
#include <poise/extend/engines/division.hpp>
#include <poise/extend/engines/engine.hpp>
#include "base/student.hpp"

namespace poise {

namespace {

/// log Z along a ladder, interpolated: the ratios of neighbours on another one.
std::vector<double> interpolate(std::span<const double> betas, std::span<const double> log_ratios,
                                std::span<const double> other) {
  std::vector<double> at(other.size(), 0.0);
  std::size_t pair = 0;
  double below = 0.0;
  for (std::size_t k = 1; k < other.size(); ++k) {
    while (pair + 2 < betas.size() && betas[pair + 1] <= other[k]) below += log_ratios[pair++];
    at[k] = below + log_ratios[pair] * (other[k] - betas[pair]) / (betas[pair + 1] - betas[pair]);
  }
  std::vector<double> out(other.size() - 1);
  for (std::size_t k = 0; k < out.size(); ++k) {
    out[k] = at[k + 1] - at[k];
    if (!std::isfinite(out[k])) out[k] = 0.0;
  }
  return out;
}

}  // namespace

TemperedEngine::TemperedEngine(const EngineTraits& traits, const EngineOptions& options, double log_hot)
    : Engine(traits), log_hot_(log_hot), division_(options.division) {
  for (std::size_t c = 0; c < traits.chains; ++c) {
    rungs_.push_back({Ladder(), make_rng(options.seed, Stream::swaps, options.first_chain + c), 0});
  }
}

void TemperedEngine::set_first_betas(std::vector<double> betas) {
  betas_ = std::move(betas);
  guesses_.assign(betas_.size() - 1, 0.0);
  for (Rungs& rungs : rungs_) {
    rungs.ladder = Ladder(betas_.size());
    rungs.ladder.restart_counts(guesses_);
  }
}

void TemperedEngine::restart_counts(std::size_t chain) { rungs_[chain].ladder.restart_counts(guesses_); }

void TemperedEngine::adapt() {
  SwapCounts counts(betas_.size());
  BridgeSums bridges(guesses_);
  for (const Ladder& ladder : all_ladders()) {
    counts.add(ladder.counts());
    bridges.add(ladder.bridges());
  }
  const std::vector<double> rejections = counts.rejections();
  const std::vector<double> log_ratios = bridges.log_ratios();
  std::size_t wanted = rungs_for(barrier_of(rejections));
  // Where hardly any swap is accepted, rejections say little of how much higher the barrier is.
  constexpr double kBroken = 0.95;
  if (*std::max_element(rejections.begin(), rejections.end()) > kBroken) wanted = std::max(wanted, betas_.size() + 1);
  const std::size_t count = round_rungs(wanted);
  const std::vector<double> before = std::exchange(betas_, equal_rejection(betas_, rejections, count));
  guesses_ = interpolate(before, log_ratios, betas_);
  remake_replicas(before);
  for (Rungs& rungs : rungs_) {
    rungs.ladder = Ladder(betas_.size());
    rungs.ladder.restart_counts(guesses_);
  }
}

std::vector<Ladder> TemperedEngine::all_ladders() const {
  bring_ladders();
  std::vector<Ladder> all;
  if (!division_) {
    for (const Rungs& rungs : rungs_) all.push_back(rungs.ladder);
    return all;
  }
  std::vector<std::string> own;
  for (std::size_t c = 0; c < division_->own().count; ++c) {
    Saver out;
    out(rungs_[c].ladder);
    own.push_back(out.take());
  }
  for (const std::string& bytes : division_->gather(own)) {
    Loader in(bytes);
    in(all.emplace_back());
  }
  return all;
}

std::optional<TemperingReport> TemperedEngine::tempering() const {
  const std::vector<Ladder> ladders_of_run = all_ladders();
  TemperingReport report;
  report.betas = betas_;
  report.ladders = ladders_of_run.size();
  SwapCounts counts(betas_.size());
  BridgeSums bridges(guesses_);
  for (const Ladder& ladder : ladders_of_run) {
    counts.add(ladder.counts());
    bridges.add(ladder.bridges());
    report.round_trips += ladder.round_trips();
    const std::vector<double> ratios = ladder.bridges().log_ratios();
    report.log_partition_by_ladder.push_back(std::accumulate(ratios.begin(), ratios.end(), log_hot_));
  }
  report.steps = ladders_of_run.front().counts().tried.front() * 2;
  const std::vector<double> rejections = counts.rejections();
  report.barrier = barrier_of(rejections);
  for (const double rejection : rejections) report.acceptance.push_back(1.0 - rejection);
  report.paths = ladders_of_run.front().paths();
  const std::vector<double> ratios = bridges.log_ratios();
  report.log_partition = std::accumulate(ratios.begin(), ratios.end(), log_hot_);
  const auto ladders = static_cast<double>(ladders_of_run.size());
  double square = 0.0;
  const double mean =
      std::accumulate(report.log_partition_by_ladder.begin(), report.log_partition_by_ladder.end(), 0.0) / ladders;
  for (const double of_ladder : report.log_partition_by_ladder) square += (of_ladder - mean) * (of_ladder - mean);
  report.log_partition_error = ladders < 2.0
                                   ? std::numeric_limits<double>::quiet_NaN()
                                   : student_widening(ladders - 1.0) * std::sqrt(square / (ladders - 1.0) / ladders);
  return report;
}

void LadderTuner::made(std::uint64_t steps) {
  left_ -= steps;
  if (left_ > 0) return;
  engine_.adapt();
  round_ *= 2;
  left_ = round_;
}

}  // namespace poise
