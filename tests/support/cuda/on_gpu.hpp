/// Tests that need a GPU, and are skipped where there is none.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <vector>

#include <poise/devices.hpp>
#include <poise/run.hpp>

namespace poise::testing {

inline bool has_gpu() {
  std::string why;
  return !cuda_devices(why).empty();
}

class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "no GPU";
  }
};

inline RunOptions short_run_on(Device device, std::size_t chains) {
  RunOptions options;
  options.chains = chains;
  options.warmup = 3;
  options.draws = 12;
  options.device = device;
  options.seed = 5;
  return options;
}

/// The states of two-valued variables by number, one bit a variable.
inline std::size_t number_of_state(std::span<const Value> x) {
  std::size_t number = 0;
  for (std::size_t i = 0; i < x.size(); ++i) number |= std::size_t{x[i]} << i;
  return number;
}
inline std::vector<Value> state_of_number(std::size_t number, Index n) {
  std::vector<Value> x(n);
  for (Index i = 0; i < n; ++i) x[i] = static_cast<Value>(number >> i & 1);
  return x;
}

/// How far counts of many draws are from what is expected, in standard deviations of chi-square.
inline double deviation(std::span<const double> count, std::span<const double> expected) {
  double chi_square = 0.0, cells = 0.0, expected_rest = 0.0, count_rest = 0.0;
  for (std::size_t s = 0; s < count.size(); ++s) {
    if (expected[s] < 10.0) {
      expected_rest += expected[s];
      count_rest += count[s];
      continue;
    }
    chi_square += (count[s] - expected[s]) * (count[s] - expected[s]) / expected[s];
    ++cells;
  }
  if (expected_rest > 0.0) {
    const double width = std::max(expected_rest, 1.0);
    chi_square += (count_rest - expected_rest) * (count_rest - expected_rest) / width;
    ++cells;
  }
  return (chi_square - cells) / std::sqrt(2.0 * cells);
}

/// Chains that begin with draws from a distribution over the states of two-valued variables, and what is found after
/// some steps.
inline std::vector<double> counts_after(const Model& model, const Sampler& sampler, std::span<const double> probability,
                                        std::uint64_t steps) {
  constexpr std::size_t chains = 200000;
  const Index n = model.layout.variables;
  RunOptions options = short_run_on(Device::cuda, chains);
  options.start = Start::given;
  options.keep = Keep::monitors;
  options.warmup = 0;
  Rng rng(11, 2);
  for (std::size_t c = 0; c < chains; ++c) {
    double rest = rng.uniform();
    std::size_t s = 0;
    while (s + 1 < probability.size() && rest >= probability[s]) rest -= probability[s++];
    const std::vector<Value> x = state_of_number(s, n);
    options.given.insert(options.given.end(), x.begin(), x.end());
  }
  poise::Run run(model, sampler, options);
  run.advance(steps);
  const std::vector<Value> states = run.states();
  std::vector<double> count(probability.size(), 0.0);
  for (std::size_t c = 0; c < chains; ++c) ++count[number_of_state(std::span(states).subspan(c * n, n))];
  return count;
}

}  // namespace poise::testing
