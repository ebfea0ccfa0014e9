/// Warm-up in two phases: approach the bulk of the distribution with sqrt, then learn the balancing function there.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <poise/run/ensemble.hpp>
#include <poise/run/run.hpp>
#include <poise/run/thread_pool.hpp>

namespace poise {

struct WarmupOutcome {
  BalancingFunction balance;
  std::uint64_t initial_steps = 0;
  std::uint64_t steps = 0;
  double objective = 0.0;
  std::vector<RunResult::WarmupPoint> trace;
};

/// `report(phase, steps done)` is called after every round; warm-up ends early when it returns false.
WarmupOutcome warm_up(Ensemble& ensemble, const Sampler& sampler, std::uint64_t steps, ThreadPool& pool,
                      const std::function<bool(Phase, std::uint64_t)>& report);

}  // namespace poise
