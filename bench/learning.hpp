/// Chain steps a second while a balancing function is being learned.
#pragma once

#include <benchmark/benchmark.h>

#include <poise/run.hpp>

namespace poise {

/// Sixteen chains on one thread; `thin` 0 is a sweep.
inline void time_learning(benchmark::State& state, const Model& model, const char* sampler, std::size_t warmup,
                          std::uint64_t thin) {
  RunOptions options;
  options.chains = 16;
  options.warmup = warmup;
  options.thin = thin;
  options.draws = 1;
  options.keep = Keep::monitors;
  options.threads = 1;
  std::int64_t done = 0;
  for (auto _ : state) {
    const RunResult result = run(model, parse_sampler(sampler), options);
    done += static_cast<std::int64_t>(result.warmup_steps * options.chains);
    state.SetIterationTime(result.warmup_seconds);
  }
  state.SetItemsProcessed(done);
}

}  // namespace poise
