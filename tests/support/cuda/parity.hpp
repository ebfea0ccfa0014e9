/// Parities of states a sweep apart where p is flat, on a GPU.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include <poise/run.hpp>
#include "support/cuda/on_gpu.hpp"

namespace poise::testing {

/// Chains of single changes from all zeros on a model of n two-valued variables whose states are all as likely: n steps
/// later the parity of a state is (-1)^n (1 - 2/(n + 1))^n on average, which it would be (-1)^n without rests.
inline void expect_parity_of_a_sweep(const Model& model, const std::string& sampler) {
  constexpr std::size_t kChains = 20000;
  const Index n = model.layout.variables;
  SCOPED_TRACE(sampler + " of " + std::to_string(n) + " variables");
  RunOptions options = short_run_on(Device::cuda, kChains);
  options.start = Start::zeros;
  options.keep = Keep::monitors;
  options.warmup = 0;
  poise::Run run(model, parse_sampler(sampler), options);
  run.advance(n);
  const std::vector<Value> states = run.states();
  double even = 0.0;
  for (std::size_t c = 0; c < kChains; ++c) {
    unsigned up = 0;
    for (Index i = 0; i < n; ++i) up += states[c * n + i];
    even += up % 2 == 0 ? 1.0 : 0.0;
  }
  const double mean = (n % 2 == 0 ? 1.0 : -1.0) * std::pow(1.0 - 2.0 / (n + 1.0), n);
  const double expected = 0.5 * (1.0 + mean);
  EXPECT_NEAR(even / kChains, expected, 6.0 * std::sqrt(expected * (1.0 - expected) / kChains));
}

}  // namespace poise::testing
