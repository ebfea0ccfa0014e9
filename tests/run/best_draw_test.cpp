/// The best draw of a run: its value, its place and its state, whatever is kept.
#include <gtest/gtest.h>

#include <algorithm>

#include "models/ising/ising_model.hpp"
#include "support/run_cases.hpp"

namespace poise::best_draw_test {

using namespace poise::testing;

/// The best draw by looking through all of them: the earliest, then the first chain.
BestDraw search(const Model& model, const Trace& trace) {
  const auto monitor = std::find(trace.monitor_names.begin() + 1, trace.monitor_names.end(), model.objective);
  const bool has_objective = monitor != trace.monitor_names.end();
  const auto& values =
      trace.monitors[has_objective ? static_cast<std::size_t>(monitor - trace.monitor_names.begin()) : 0];
  const bool maximise = !has_objective || model.maximise;
  BestDraw best{has_objective ? model.objective : "", values[0], 0, 0, {}};
  for (std::size_t draw = 0; draw < trace.draws; ++draw) {
    for (std::size_t chain = 0; chain < trace.chains; ++chain) {
      const double value = values[chain * trace.draws + draw];
      if (maximise ? value > best.value : value < best.value) {
        best.value = value;
        best.chain = chain;
        best.draw = draw;
      }
    }
  }
  const std::size_t n = trace.x.size() / (trace.chains * trace.draws);
  const auto first = trace.x.begin() + static_cast<std::ptrdiff_t>((best.chain * trace.draws + best.draw) * n);
  best.state.assign(first, first + static_cast<std::ptrdiff_t>(n));
  return best;
}

/// A function of zeros and ones whose energy is to be small.
Model quadratic() {
  return ising_model(ising_of_qubo({false, {-1.0, 0.5, -2.0, 0.25}, {{0, 2, 1.5}, {1, 3, -0.75}}}, {.name = "qubo"}));
}

TEST(BestDraw, IsThatOfAllDrawsWhateverIsKept) {
  std::vector<RunCase> cases = run_cases();
  cases.push_back({"objective", quadratic(), {"gibbs", "lsb", "temper"}});
  for (const RunCase& which : cases) {
    for (const std::string& name : which.samplers) {
      RunOptions options = short_run_of(5);
      const RunResult kept = run(which.model, parse_sampler(name), options);
      ASSERT_TRUE(kept.best) << which.name << " " << name;
      EXPECT_EQ(*kept.best, search(which.model, kept.trace)) << which.name << " " << name;
      options.keep = Keep::monitors;
      options.threads = 3;
      const RunResult monitors = run(which.model, parse_sampler(name), options);
      EXPECT_TRUE(monitors.trace.x.empty());
      EXPECT_EQ(monitors.best, kept.best) << which.name << " " << name;
    }
  }
}

TEST(BestDraw, ManyChainsInTheBitsOfWords) {
  const Model model = make_model("ising:size=8,coupling=0.4");
  RunOptions options;
  options.chains = 200;
  options.warmup = 10;
  options.draws = 40;
  const RunResult kept = run(model, parse_sampler("gibbs"), options);
  EXPECT_EQ(kept.best, search(model, kept.trace));
  options.keep = Keep::monitors;
  for (const unsigned threads : {1U, 3U}) {
    options.threads = threads;
    EXPECT_EQ(run(model, parse_sampler("gibbs"), options).best, kept.best);
  }
}

}  // namespace poise::best_draw_test
