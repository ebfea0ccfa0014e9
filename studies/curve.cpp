/// Burn-in curves.
#include "studies/curve.hpp"

#include <limits>

#include <poise/extend/engines/engine.hpp>
#include "studies/contestant.hpp"
#include "studies/estimate.hpp"

namespace poise::reproduction {

namespace {

constexpr double kArrived = 0.95;  // part of the way

}  // namespace

CurveRecorder::CurveRecorder(const Engine& engine, Statistic statistic, Range range)
    : engine_(engine), statistic_(std::move(statistic)), range_(range), looks_(engine.traits().chains) {
  for (std::size_t c = 0; c < engine_.traits().chains; ++c) look(c, 0);
}

void CurveRecorder::look(std::size_t chain, std::uint64_t iteration) {
  if (iteration > range_.until || iteration != looks_[chain].size() * range_.every) return;
  looks_[chain].push_back({static_cast<double>(evals_of(engine_, chain).of_target()), statistic_(engine_, chain),
                           log_prob_of(engine_, chain)});
}

nlohmann::json CurveRecorder::curve() const {
  nlohmann::json out;
  for (std::size_t k = 0; k < looks_[0].size(); ++k) {
    std::vector<double> evals;
    std::vector<double> sums;
    std::vector<double> log_probs;
    for (const auto& chain : looks_) {
      evals.push_back(chain[k].evals);
      sums.push_back(chain[k].statistic);
      log_probs.push_back(chain[k].log_prob);
    }
    const Estimate sum = estimate(sums);
    const Estimate log_prob = estimate(log_probs);
    out["step"].push_back(k * range_.every);
    out["evals"].push_back(estimate(evals).mean);
    out["sum"].push_back(sum.mean);
    out["sum_error"].push_back(sum.error());
    out["log_prob"].push_back(log_prob.mean);
    out["log_prob_error"].push_back(log_prob.error());
  }
  return out;
}

nlohmann::json CurveRecorder::arrival(const std::vector<double>& finals) const {
  nlohmann::json steps = nlohmann::json::array();
  nlohmann::json evals = nlohmann::json::array();
  for (std::size_t c = 0; c < finals.size(); ++c) {
    const std::vector<Look>& chain = looks_[c];
    // The part of the way that is done: 0 at the start.
    const auto done = [&](std::size_t k) {
      return (chain[k].log_prob - chain[0].log_prob) / (finals[c] - chain[0].log_prob);
    };
    double step = std::numeric_limits<double>::quiet_NaN();
    double eval = step;
    for (std::size_t k = 1; k < chain.size(); ++k) {
      if (!(done(k) >= kArrived)) continue;
      const double part = (kArrived - done(k - 1)) / (done(k) - done(k - 1));
      step = (static_cast<double>(k - 1) + part) * static_cast<double>(range_.every);
      eval = chain[k - 1].evals + part * (chain[k].evals - chain[k - 1].evals);
      break;
    }
    steps.push_back(step);
    evals.push_back(eval);
  }
  return {{"steps", steps}, {"evals", evals}};
}

}  // namespace poise::reproduction
