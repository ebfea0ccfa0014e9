/// Runs longer than memory: what is held of them, and diagnostics from their file, which are those of memory.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include <poise/report.hpp>
#include <poise/run.hpp>
#include "store/zarr/writer.hpp"
#include "support/output.hpp"

namespace poise::bounded_memory_test {

using namespace poise::testing;

class BoundedMemory : public OutputTest {};

RunOptions options_of(std::size_t draws, double memory) {
  RunOptions options;
  options.chains = 3;
  options.draws = draws;
  options.warmup = 10;
  options.seed = 4;
  options.memory = memory;
  return options;
}

RunResult run_to(const std::string& path, const Model& model, const RunOptions& options) {
  zarr::Writer sink(path);
  RunHooks hooks;
  hooks.sink = &sink;
  RunResult result = run(model, parse_sampler("gibbs"), options, hooks);
  sink.close_draws();
  return result;
}

void expect_same(const SeriesSummary& a, const SeriesSummary& b, const std::string& what) {
  const auto same = [&](double x, double y, const char* name) {
    if (std::isnan(x) && std::isnan(y)) return;
    EXPECT_NEAR(x, y, 1e-10 * std::max(1.0, std::abs(x))) << what << " " << name;
  };
  same(a.mean, b.mean, "mean");
  same(a.sd, b.sd, "sd");
  same(a.mcse, b.mcse, "mcse");
  same(a.ess, b.ess, "ess");
  same(a.ess_tail, b.ess_tail, "ess_tail");
  same(a.r_hat, b.r_hat, "r_hat");
  EXPECT_EQ(a.transitions, b.transitions) << what;
  EXPECT_EQ(a.status, b.status) << what;
}

void expect_same(const Report& a, const Report& b, const std::string& what) {
  EXPECT_EQ(a.draws, b.draws) << what;
  EXPECT_EQ(a.chains, b.chains) << what;
  EXPECT_EQ(a.steps, b.steps) << what;
  EXPECT_NEAR(a.acceptance_rate, b.acceptance_rate, 1e-12) << what;
  ASSERT_EQ(a.monitors.size(), b.monitors.size()) << what;
  for (std::size_t k = 0; k < a.monitors.size(); ++k) {
    EXPECT_EQ(a.monitors[k].name, b.monitors[k].name);
    expect_same(a.monitors[k].summary, b.monitors[k].summary, what + " " + a.monitors[k].name);
  }
  ASSERT_EQ(a.variables.has_value(), b.variables.has_value()) << what;
  if (!a.variables) return;
  ASSERT_EQ(a.variables->rows.size(), b.variables->rows.size()) << what;
  for (std::size_t k = 0; k < a.variables->rows.size(); ++k) {
    const VariableRow& x = a.variables->rows[k];
    const VariableRow& y = b.variables->rows[k];
    EXPECT_EQ(x.variable, y.variable) << what;
    EXPECT_EQ(x.level, y.level) << what;
    EXPECT_EQ(x.mean, y.mean) << what << " row " << k;
    EXPECT_EQ(std::isnan(x.ess) ? 0.0 : x.ess, std::isnan(y.ess) ? 0.0 : y.ess) << what << " row " << k;
    EXPECT_EQ(std::isnan(x.r_hat) ? 0.0 : x.r_hat, std::isnan(y.r_hat) ? 0.0 : y.r_hat) << what << " row " << k;
    EXPECT_EQ(x.transitions, y.transitions) << what << " row " << k;
  }
  EXPECT_EQ(a.warnings, b.warnings) << what;
}

TEST_F(BoundedMemory, DiagnosticsFromTheFileAreThoseFromMemory) {
  for (const char* name : {"ising:size=7x9,lambda=0.35", "potts:size=5,levels=3,coupling=0.5"}) {
    for (const std::size_t draws : {std::size_t{333}, std::size_t{64}}) {
      const Model model = make_model(name);
      const RunResult whole = run(model, parse_sampler("gibbs"), options_of(draws, 0.0));
      const Report expected = make_report(whole);
      // Less than the states take; a column of a variable still fits, and few do at once.
      const double values = 3.0 * static_cast<double>(draws);
      const RunResult part = run_to(path("run.zarr"), model, options_of(draws, values * 10.0));
      ASSERT_TRUE(part.trace.x.empty());
      EXPECT_GT(part.trace.stride, 1U);
      for (const double columns : {160.0, 4000.0, 1e9}) {
        const FileReportOptions reading{.memory = values * columns, .threads = 2};
        expect_same(expected, make_report(part, path("run.zarr"), reading), name);
        const Report stored = make_report(path("run.zarr"), reading);
        EXPECT_EQ(stored.monitors.size(), expected.monitors.size());
        expect_same(expected.monitors[0].summary, stored.monitors[0].summary, name);
        EXPECT_EQ(stored.variables->rows.size(), expected.variables->rows.size());
      }
      const StoredRun read = read_run(path("run.zarr"));
      EXPECT_EQ(read.trace.x, whole.trace.x);
      EXPECT_EQ(read.trace.monitors, whole.trace.monitors);
    }
  }
}

TEST_F(BoundedMemory, SeriesThatDoNotFitAreLookedAtEvenlySpaced) {
  const Model model = make_model("ising:size=6,lambda=0.3");
  const RunResult whole = run(model, parse_sampler("gibbs"), options_of(1001, 0.0));
  const RunResult part = run_to(path("run.zarr"), model, options_of(1001, 1000.0));
  const Report report = make_report(part, path("run.zarr"), {.memory = 3.0 * 1001.0 * 40.0});
  ASSERT_EQ(report.notes.size(), 1U);
  const std::size_t stride = 4;  // 136 bytes for each value, of which 40 are allowed
  EXPECT_NE(report.notes[0].find("one draw in 4 is looked at"), std::string::npos) << report.notes[0];
  std::vector<double> spaced;
  for (std::size_t chain = 0; chain < 3; ++chain) {
    for (std::size_t draw = 0; draw < 1001; draw += stride) {
      spaced.push_back(whole.trace.monitors[0][chain * 1001 + draw]);
    }
  }
  expect_same(summarize({spaced.data(), 3, spaced.size() / 3}), report.monitors[0].summary, "every fourth");
  EXPECT_EQ(report.draws, 1001U);
  EXPECT_EQ(report.variables->draws, spaced.size() / 3);
}

TEST_F(BoundedMemory, WithoutAFileMonitorsStayEvenlySpaced) {
  const Model model = make_model("ising:size=6,lambda=0.3");
  RunOptions options = options_of(1500, 0.0);
  options.keep = Keep::monitors;
  const RunResult whole = run(model, parse_sampler("lb:g=sqrt"), options);
  EXPECT_EQ(whole.trace.dropped, 0U);
  options.memory = 20'000.0;  // three chains of 40 bytes a draw
  const RunResult part = run(model, parse_sampler("lb:g=sqrt"), options);
  const std::size_t stride = part.trace.stride;
  EXPECT_GT(stride, 4U);
  EXPECT_EQ(part.trace.all_draws(), 1500U);
  EXPECT_LE(static_cast<double>(part.trace.draws) * 3.0 * 40.0, 20'000.0);
  EXPECT_EQ(part.trace.draws, (1500 + stride - 1) / stride);
  for (std::size_t k = 0; k < whole.trace.monitors.size(); ++k) {
    for (std::size_t chain = 0; chain < 3; ++chain) {
      for (std::size_t draw = 0; draw < part.trace.draws; ++draw) {
        ASSERT_EQ(part.trace.monitors[k][chain * part.trace.draws + draw],
                  whole.trace.monitors[k][chain * 1500 + draw * stride]);
      }
    }
  }
  EXPECT_EQ(part.acceptance_rate, whole.acceptance_rate);
  EXPECT_EQ(part.steps, whole.steps);
  const Report report = make_report(part);
  EXPECT_EQ(report.draws, 1500U);
  ASSERT_EQ(report.notes.size(), 1U);
  EXPECT_NE(report.notes[0].find("one draw in "), std::string::npos);
}

TEST_F(BoundedMemory, TheBestOfAllDrawsIsFoundAmongThemAll) {
  const Model model = make_model("bernoulli:size=8");
  RunOptions options = options_of(900, 0.0);
  Model cut = model;
  cut.objective = "hamming";
  cut.maximise = true;
  const RunResult whole = run(cut, parse_sampler("gibbs"), options);
  options.memory = 5000.0;
  options.keep = Keep::monitors;
  const RunResult part = run(cut, parse_sampler("gibbs"), options);
  EXPECT_GT(part.trace.stride, 1U);
  ASSERT_TRUE(whole.best);
  EXPECT_EQ(whole.best->objective, "hamming");
  EXPECT_EQ(part.best, whole.best);
}

TEST_F(BoundedMemory, TheSamplerThatAutoChoosesHandsItsStatesOn) {
  const Model model = make_model("ising:size=6,lambda=0.3");
  RunOptions options = options_of(400, 0.0);
  options.warmup.reset();
  const RunResult whole = run(model, parse_sampler("auto"), options);
  options.memory = 10'000.0;
  zarr::Writer sink(path("run.zarr"));
  RunHooks hooks;
  hooks.sink = &sink;
  const RunResult part = run(model, parse_sampler("auto"), options, hooks);
  sink.close_draws();
  EXPECT_TRUE(part.trace.x.empty());
  EXPECT_EQ(read_run(path("run.zarr")).trace.x, whole.trace.x);
}

TEST_F(BoundedMemory, StatesAreDroppedWhereTheClockGoesBeyondTheMemory) {
  const Model model = make_model("ising:size=8,lambda=0.3");
  RunOptions options = options_of(1, 30'000.0);
  options.seconds = 0.3;
  const RunResult result = run(model, parse_sampler("gibbs"), options);
  EXPECT_TRUE(result.trace.x.empty());
  ASSERT_FALSE(result.notes.empty());
  EXPECT_NE(result.notes[0].find("were not kept"), std::string::npos);
  EXPECT_FALSE(make_report(result).variables.has_value());
}

TEST_F(BoundedMemory, PartsOfAFileAreReadAsTheyWereWritten) {
  const Model model = make_model("ising:size=5x6,lambda=0.3");
  const RunResult whole = run_to(path("run.zarr"), model, options_of(50, 0.0));
  const StoredRun head = read_run(path("run.zarr"), {.draws = false, .series = false, .most_draws = 0});
  EXPECT_EQ(head.trace.all_draws(), 50U);
  EXPECT_EQ(head.trace.monitor_names, whole.trace.monitor_names);
  EXPECT_TRUE(head.has_states);
  EXPECT_TRUE(head.trace.x.empty());
  const StoredRun part =
      read_run(path("run.zarr"), {.first_draw = 7, .most_draws = 20, .first_variable = 11, .most_variables = 4});
  ASSERT_EQ(part.trace.draws, 20U);
  EXPECT_EQ(part.trace.all_draws(), 50U);
  for (std::size_t chain = 0; chain < 3; ++chain) {
    for (std::size_t draw = 0; draw < 20; ++draw) {
      EXPECT_EQ(part.trace.monitors[0][chain * 20 + draw], whole.trace.monitors[0][chain * 50 + 7 + draw]);
      for (std::size_t i = 0; i < 4; ++i) {
        ASSERT_EQ(part.trace.x[(chain * 20 + draw) * 4 + i], whole.trace.x[(chain * 50 + 7 + draw) * 30 + 11 + i]);
      }
    }
  }
  EXPECT_EQ(read_run(path("run.zarr"), {.first_draw = 45}).trace.draws, 5U);
  EXPECT_EQ(read_run(path("run.zarr"), {.first_draw = 99}).trace.draws, 0U);
}

TEST_F(BoundedMemory, AFileThatWasClosedTakesItsResultsLater) {
  const Model model = make_model("ising:size=4,lambda=0.3");
  zarr::Writer sink(path("run.zarr"));
  RunHooks hooks;
  hooks.sink = &sink;
  const RunResult result = run(model, parse_sampler("gibbs"), options_of(30, 0.0), hooks);
  sink.close_draws();
  EXPECT_EQ(read_run(path("run.zarr")).trace.x, result.trace.x);
  EXPECT_TRUE(read_run(path("run.zarr")).results.is_null());
  sink.finish(R"({"steps": 3})");
  EXPECT_EQ(read_run(path("run.zarr")).results.at("steps"), 3);
  EXPECT_EQ(read_run(path("run.zarr")).trace.x, result.trace.x);
}

/// Bytes of all files in a folder.
std::uintmax_t size_of(const std::string& folder) {
  std::uintmax_t size = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    size += entry.is_regular_file() ? entry.file_size() : 0;
  return size;
}

TEST_F(BoundedMemory, StoresHoldWhatWasWritten) {
  // The last chunk is not full.
  for (const char* name :
       {"ising:size=60x70,lambda=0.3", "potts:size=60,levels=4,coupling=0.2", "ising:size=60,lambda=2"}) {
    const Model model = make_model(name);
    StoreOptions shape;
    shape.chains = 3;
    shape.draws = 1'000'000;
    shape.variables = model.layout.variables;
    shape.monitors = model.statistics.size() + 2;
    shape.threads = 2;
    for (const Index levels : model.layout.cardinalities) shape.levels = std::max<std::size_t>(shape.levels, levels);
    zarr::Writer sink(path("run.zarr"), shape);
    RunHooks hooks;
    hooks.sink = &sink;
    const RunResult result = run(model, parse_sampler("gibbs"), options_of(700, 0.0), hooks);
    sink.close_draws();
    sink.finish("{}");
    const StoredRun read = read_run(path("run.zarr"));
    EXPECT_EQ(read.trace.x, result.trace.x) << name;
    EXPECT_EQ(read.trace.monitors, result.trace.monitors) << name;
    EXPECT_LT(size_of(path("run.zarr")), result.trace.x.size() / 3 + 1'500'000) << name;
  }
}

}  // namespace poise::bounded_memory_test
