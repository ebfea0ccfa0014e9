/// A target of one's own, the hard-core gas (hard_core_ring.hpp): a small one is checked, a large one is sampled.
#include <poise/extend/check/conformance.hpp>
#include <poise/extend/check/exactness.hpp>
#include <poise/extend/engines/own_model.hpp>
#include <poise/poise.hpp>

#include <cmath>
#include <cstdio>

#include "hard_core_ring.hpp"

int main() {
  const HardCoreRing small(7, 0.4);
  for (const poise::CheckReport& report : {poise::check_target(small), poise::check_exactness(small)}) {
    std::fputs(report.text().c_str(), stderr);
    if (!report.ok()) return 1;
  }

  const auto ring = std::make_shared<const HardCoreRing>(40, 0.0);
  const poise::Model model = poise::own_model("hard-core ring", ring);
  poise::RunOptions options;
  options.start = poise::Start::zeros;  // the empty ring is a legal state
  const poise::RunResult fit = poise::run(model, poise::parse_sampler("lsb"), options);

  double density = 0.0;
  for (const double occupied : fit.empirical_marginals) density += occupied / 40.0;
  const double exact = (1.0 - 1.0 / std::sqrt(5.0)) / 2.0;  // of the infinite ring at activity 0, by transfer matrix
  std::printf("density %.4f, exact %.4f\n", density, exact);
  return std::abs(density - exact) < 0.005 ? 0 : 1;
}
